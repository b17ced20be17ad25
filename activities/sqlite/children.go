package sqlite

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"strings"

	"reprise/activities/sqltool"
	"reprise/interpreter/lists"
)

// DeleteBelow deletes rows below others. A list of rows is one parameter, of JSON, as SQLite bounds how many there are.
func (t tableTx) DeleteBelow(ctx context.Context, w *sqltool.TableWrite, rows sqltool.RowsBelow) (int64, error) {
	given, err := listOfValues(w, rows.By, rows.Given)
	if err != nil {
		return 0, err
	}
	statement := "DELETE FROM " + w.QuotedTable() + " WHERE (" + storedValues(w, rows.By) + ") IN (SELECT " + listedValues(rows.By) + " FROM json_each($1))"
	args := []any{given}
	if len(rows.Kept) > 0 {
		kept, err := listOfValues(w, rows.Key, rows.Kept)
		if err != nil {
			return 0, err
		}
		statement += " AND (" + storedValues(w, rows.Key) + ") NOT IN (SELECT " + listedValues(rows.Key) + " FROM json_each($2))"
		args = append(args, kept)
	}
	return t.Exec(ctx, statement, args...)
}

// storedValues are the columns of rows of the table; JSON has no bytes.
func storedValues(w *sqltool.TableWrite, columns []string) string {
	return strings.Join(lists.Map(columns, func(column string) string {
		name := sqltool.QuoteNames([]string{column})
		if sqltool.BytesOfDeclared(w.TypeOf(column)) != 0 {
			return "hex(" + name + ")"
		}
		return name
	}), ", ")
}

// listedValues are the same columns of an element of a list.
func listedValues(columns []string) string {
	values := make([]string, len(columns))
	for at := range columns {
		values[at] = "json_extract(value, '$[" + strconv.Itoa(at) + "]')"
	}
	return strings.Join(values, ", ")
}

// listOfValues is a JSON list with the values that rows have in some columns.
func listOfValues(w *sqltool.TableWrite, columns []string, rows []map[string]any) (string, error) {
	all := make([][]any, len(rows))
	for i, row := range rows {
		all[i] = lists.Map(columns, func(column string) any {
			value := columnValue(row[column], w.TypeOf(column))
			if bytes, is := value.([]byte); is {
				return strings.ToUpper(hex.EncodeToString(bytes))
			}
			return value
		})
	}
	text, err := json.Marshal(all)
	return string(text), err
}
