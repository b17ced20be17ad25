package sqltool

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"reprise/activities/tool"
	"reprise/interpreter/expression"
)

// Bytes is a value of a column of bytes, which is base64 text everywhere else. Its JSON is the form that PostgreSQL
// reads.
type Bytes []byte

// PostgresHex returns the form of PostgreSQL.
func (b Bytes) PostgresHex() string { return `\x` + hex.EncodeToString(b) }

// MarshalJSON writes the form of PostgreSQL.
func (b Bytes) MarshalJSON() ([]byte, error) { return json.Marshal(b.PostgresHex()) }

// Base64 returns the text of bytes in expressions and JSON.
func (b Bytes) Base64() string { return base64.StdEncoding.EncodeToString(b) }

// ReadBytes reads the base64 of bytes, or the form of PostgreSQL, which is never base64.
func ReadBytes(text string) (Bytes, bool) {
	if digits, isHex := strings.CutPrefix(text, `\x`); isHex {
		data, err := hex.DecodeString(digits)
		return data, err == nil
	}
	data, err := base64.StdEncoding.Strict().DecodeString(text)
	return data, err == nil
}

// BytesColumn says whether a column has bytes.
type BytesColumn int

// Columns of bytes.
const (
	noBytes   BytesColumn = iota
	OnlyBytes             // and nothing else
	ListsOfBytes
	BytesAndNumbers // as SQLite keeps both in a BLOB
)

// BytesText says why a text cannot be a value of a column of bytes.
func BytesText(text string) string {
	return fmt.Sprintf("the text %q is not base64, in which bytes are written; encode other text with b64encode", tool.CutText(text, 100))
}

// readValue converts a value of the column to the form in which rows write it.
func (c BytesColumn) readValue(value any) any {
	switch v := value.(type) {
	case string:
		if data, is := ReadBytes(v); is && c != ListsOfBytes { // which may be written as one text in the form of PostgreSQL
			return data
		}
	case []any:
		if c == ListsOfBytes {
			return readList(v)
		}
	}
	return value
}

func readList(list []any) any {
	out := make([]any, len(list))
	for i, element := range list {
		if nested, isList := element.([]any); isList {
			out[i] = readList(nested)
		} else {
			out[i] = OnlyBytes.readValue(element)
		}
	}
	return out
}

// refusesValue reports whether the column cannot hold a value that read has returned.
func (c BytesColumn) refusesValue(value any) bool {
	switch v := value.(type) {
	case nil, Bytes:
		return false
	case string:
		return c != ListsOfBytes
	case []any:
		if c == ListsOfBytes {
			return slices.ContainsFunc(v, func(element any) bool {
				if _, isList := element.([]any); isList {
					return c.refusesValue(element)
				}
				return OnlyBytes.refusesValue(element)
			})
		}
	}
	return c != BytesAndNumbers
}

// readBytes decodes the values of byte columns. Values that are no bytes are left unchanged.
func (w *TableWrite) readBytes(columns []Column) {
	for _, column := range columns {
		if column.Bytes != noBytes {
			w.Rows, w.Deletes = column.readRows(w.Rows), column.readRows(w.Deletes)
		}
	}
}

func (c *Column) readRows(rows []map[string]any) []map[string]any {
	if !slices.ContainsFunc(rows, func(row map[string]any) bool { return row[c.Name] != nil }) {
		return rows
	}
	out := slices.Clone(rows)
	for i, row := range rows {
		if value := row[c.Name]; value != nil {
			out[i] = maps.Clone(row)
			out[i][c.Name] = c.Bytes.readValue(value)
		}
	}
	return out
}

// NoBytesError is the error of a value that a column of bytes does not hold.
type NoBytesError struct {
	Column string
	err    error
}

func (e *NoBytesError) Error() string { return e.err.Error() }

func (e *NoBytesError) Unwrap() error { return e.err }

// RefuseNoBytes returns the error of the first value that a column of bytes does not hold, a *NoBytesError; nil for none.
func (w *TableWrite) RefuseNoBytes() error {
	for _, column := range w.tableColumns {
		if column.Bytes == noBytes || !slices.Contains(w.Columns, column.Name) {
			continue
		}
		for i, row := range w.Rows {
			value := row[column.Name]
			if !column.Bytes.refusesValue(value) {
				continue
			}
			problem := "a " + expression.TypeName(value) + " is not bytes, which are written as base64 text"
			if text, isText := value.(string); isText {
				problem = BytesText(text)
			}
			return &NoBytesError{column.Name, tool.Errorf("%s for table %q, column %q of type %s: %s", w.RowText(w.OriginalNumber(i)), w.Shown, column.Name, column.Type, problem)}
		}
	}
	return nil
}

// inBase64 returns a row with its bytes as the author gave them.
func inBase64(row map[string]any) map[string]any {
	out := maps.Clone(row)
	for name, value := range row {
		out[name] = base64Of(value)
	}
	return out
}

func base64Of(value any) any {
	switch v := value.(type) {
	case Bytes:
		return v.Base64()
	case []any:
		out := make([]any, len(v))
		for i, element := range v {
			out[i] = base64Of(element)
		}
		return out
	}
	return value
}
