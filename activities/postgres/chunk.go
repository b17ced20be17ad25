package postgres

import (
	"strings"

	"reprise/activities/tool"
	"reprise/interpreter/expression"
)

// Rows that are parameters of a statement are sent in chunks with a bounded number of rows and of bytes.
const (
	chunkRows  = 1000
	chunkBytes = 4 << 20
)

// chunk is the first rows of some as the parameters of a statement.
type chunk struct {
	parameters  []any
	rows, bytes int
}

// sendRows sends rows, the parameters of a statement, in chunks.
func sendRows(rows []map[string]any, encode func([]map[string]any) (chunk, error), send func(parameters []any) error) error {
	for rest := rows; len(rest) > 0; {
		first, err := encode(rest)
		if err != nil {
			return err
		}
		if err := send(first.parameters); err != nil {
			return err
		}
		rest = rest[first.rows:]
	}
	return nil
}

// encodeChunk makes a JSON list of the first rows.
func encodeChunk(rows []map[string]any) (chunk, error) {
	list, used := []byte{'['}, 0
	for used < len(rows) && used < chunkRows && len(list) < chunkBytes {
		row, err := expression.Encode(rows[used])
		if err != nil {
			return chunk{}, tool.Errorf("row %d cannot be written as JSON: %w", used+1, err)
		}
		if used > 0 {
			list = append(list, ',')
		}
		list = append(list, row...)
		used++
	}
	list = append(list, ']')
	return chunk{[]any{string(list)}, used, len(list)}, nil
}

// encodeArrays makes an array for each column of the first rows, and for each partial one an array of whether rows have it.
func encodeArrays(i *insertion, rows []map[string]any) (chunk, error) {
	w, columns := i.write, len(i.forms)
	arrays := make([][]byte, columns+len(i.partial))
	for at := range arrays {
		arrays[at] = append(make([]byte, 0, 16*min(len(rows), chunkRows)), '{')
	}
	first := chunk{parameters: make([]any, len(arrays))}
	for first.rows < len(rows) && first.rows < chunkRows && first.bytes < chunkBytes {
		row := rows[first.rows]
		if first.rows > 0 {
			for at := range arrays {
				arrays[at] = append(arrays[at], ',')
			}
		}
		for at, name := range w.Columns {
			before := len(arrays[at])
			text, isNull, err := columnText(row[name], i.forms[at].text)
			if err != nil {
				return chunk{}, unencodableError(w, len(w.Rows)-len(rows)+first.rows, name, err)
			}
			if isNull {
				arrays[at] = append(arrays[at], "NULL"...)
			} else {
				arrays[at] = appendElement(arrays[at], text)
			}
			first.bytes += len(arrays[at]) - before
		}
		for at, name := range i.partial {
			arrays[columns+at] = appendHas(arrays[columns+at], row, name)
		}
		first.rows++
	}
	for at, array := range arrays {
		first.parameters[at] = string(append(array, '}'))
	}
	return first, nil
}

// appendHas adds whether a row has a column, as a boolean.
func appendHas(out []byte, row map[string]any, column string) []byte {
	if _, has := row[column]; has {
		return append(out, 't')
	}
	return append(out, 'f')
}

// appendElement adds a text to the literal of an array.
func appendElement(array []byte, text string) []byte {
	array = append(array, '"')
	for {
		at := strings.IndexAny(text, `\"`)
		if at < 0 {
			return append(append(array, text...), '"')
		}
		array = append(append(array, text[:at]...), '\\', text[at])
		text = text[at+1:]
	}
}
