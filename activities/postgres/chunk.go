package postgres

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"reprise/activities/sqltool"
	"reprise/activities/tool"
	"reprise/interpreter/expression"
)

// Rows that are parameters of a statement go in chunks of at most so many rows, and about so many bytes.
const (
	chunkRows  = 1000
	chunkBytes = 4 << 20
)

// chunk is the first rows of some as the parameters of a statement.
type chunk struct {
	parameters  []any
	rows, bytes int
}

// insertion is the statement that inserts rows which are its parameters, and what makes these of them. Where all columns
// have forms, there is an array for each column, which the server reads faster than JSON. Of JSON it makes columns by the
// table's own types.
func insertion(w *sqltool.TableWrite, forms []columnForm) (statement string, encode func([]map[string]any) (chunk, error)) {
	columns := sqltool.QuoteNames(w.Columns)
	insert := "INSERT INTO " + w.QuotedTable() + " (" + columns + ") SELECT "
	if forms == nil || slices.ContainsFunc(forms, func(form columnForm) bool { return form.base == "" }) {
		return insert + columns + " FROM json_populate_recordset(NULL::" + w.QuotedTable() + ", $1::text::json)" + w.Conflict(), encodeChunk
	}
	arrays, values := make([]string, len(forms)), make([]string, len(forms))
	for i, form := range forms {
		array := form.base + "[]"
		values[i] = sqltool.QuoteNames(w.Columns[i : i+1])
		if form.text == arrayText { // an array of arrays would be one of more dimensions
			array = "text[]"
			values[i] += "::" + form.base
		}
		arrays[i] = "$" + strconv.Itoa(i+1) + "::" + array
	}
	statement = insert + strings.Join(values, ", ") + " FROM unnest(" + strings.Join(arrays, ", ") + ") AS reprise_given (" + columns + ")" + w.Conflict()
	return statement, func(rows []map[string]any) (chunk, error) { return encodeArrays(w, forms, rows) }
}

// sendRows runs a statement whose parameters are rows, as often as they have chunks.
func sendRows(
	ctx context.Context, tx pgx.Tx, statement string, encode func([]map[string]any) (chunk, error), rows []map[string]any,
) (affected int64, err error) {
	for rest := rows; len(rest) > 0; {
		first, err := encode(rest)
		if err != nil {
			return 0, err
		}
		tag, err := tx.Exec(ctx, statement, first.parameters...)
		if err != nil {
			return 0, err
		}
		affected += tag.RowsAffected()
		rest = rest[first.rows:]
	}
	return affected, nil
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

// encodeArrays makes an array for each column of the first rows.
func encodeArrays(w *sqltool.TableWrite, forms []columnForm, rows []map[string]any) (chunk, error) {
	arrays := make([][]byte, len(forms))
	for i := range arrays {
		arrays[i] = append(make([]byte, 0, 16*min(len(rows), chunkRows)), '{')
	}
	first := chunk{parameters: make([]any, len(forms))}
	for first.rows < len(rows) && first.rows < chunkRows && first.bytes < chunkBytes {
		for i, name := range w.Columns {
			before := len(arrays[i])
			text, isNull, err := columnText(rows[first.rows][name], forms[i].text)
			if err != nil {
				return chunk{}, unsendable(w, len(w.Rows)-len(rows)+first.rows, name, err)
			}
			if first.rows > 0 {
				arrays[i] = append(arrays[i], ',')
			}
			if isNull {
				arrays[i] = append(arrays[i], "NULL"...)
			} else {
				arrays[i] = appendElement(arrays[i], text)
			}
			first.bytes += len(arrays[i]) - before
		}
		first.rows++
	}
	for i, array := range arrays {
		first.parameters[i] = string(append(array, '}'))
	}
	return first, nil
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
