package sqlite

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"reprise/activities/sqltool"
	"reprise/interpreter/lists"
)

// The names that the table of a write and rows that are given have in statements.
const (
	thereName = "reprise_there"
	givenName = "reprise_given"
)

// DeleteBelow deletes rows of children. A list of rows is one JSON parameter, because SQLite bounds the number of
// parameters.
func (t tableTx) DeleteBelow(ctx context.Context, w *sqltool.TableWrite, rows sqltool.RowsBelow) (int64, error) {
	condition, args, err := belowCondition(w, rows)
	if err != nil {
		return 0, err
	}
	return t.Exec(ctx, "DELETE FROM "+w.QuotedTable()+" WHERE "+condition, args...)
}

// HasBelow reports whether there are rows below others.
func (t tableTx) HasBelow(ctx context.Context, w *sqltool.TableWrite, rows sqltool.RowsBelow) (there bool, err error) {
	condition, args, err := belowCondition(w, rows)
	if err != nil {
		return false, err
	}
	err = t.Query(ctx, "SELECT EXISTS (SELECT 1 FROM "+w.QuotedTable()+" WHERE "+condition+")", args, func(scan func(...any) error) error { return scan(&there) })
	return there, err
}

// KeysBelow returns the keys of rows below others.
func (t tableTx) KeysBelow(ctx context.Context, w *sqltool.TableWrite, rows sqltool.RowsBelow) (keys []map[string]any, err error) {
	condition, args, err := belowCondition(w, rows)
	if err != nil {
		return nil, err
	}
	err = t.selectKeys(ctx, w, "0", w.QuotedTable()+" AS "+thereName+" WHERE "+condition, args, func(_ int64, key map[string]any) { keys = append(keys, key) })
	return keys, err
}

// StoredKeys returns the keys of the rows that have one of the given keys.
func (t tableTx) StoredKeys(ctx context.Context, w *sqltool.TableWrite, given []map[string]any, onlyOlder bool) ([]map[string]any, error) {
	columns := w.DeleteColumns()
	list, err := listOfValues(w, columns, given)
	if err != nil {
		return nil, err
	}
	names := lists.Map(columns, func(column string) string { return sqltool.QuoteNames([]string{column}) })
	values := make([]string, len(columns))
	for at, column := range columns {
		values[at] = listedValue(at)
		if sqltool.BytesOfDeclared(w.TypeOf(column)) != 0 {
			values[at] = "unhex(" + values[at] + ")"
		}
		values[at] += " AS " + names[at]
	}
	condition := sqltool.SameKey(w.Key, thereName, givenName)
	if onlyOlder {
		condition += " AND " + w.NotOlder(givenName, thereName)
	}
	keys := make([]map[string]any, len(given))
	err = t.selectKeys(ctx, w, givenName+".n", "(SELECT key AS n, "+strings.Join(values, ", ")+" FROM json_each($1)) AS "+givenName+" CROSS JOIN "+w.QuotedTable()+" AS "+thereName+
		" WHERE "+condition, []any{list}, func(n int64, key map[string]any) { keys[n] = key })
	return keys, err
}

// KeysWhere returns the keys of rows that a condition holds for.
func (t tableTx) KeysWhere(ctx context.Context, w *sqltool.TableWrite, condition string) (keys []map[string]any, err error) {
	err = t.selectKeys(ctx, w, "0", w.QuotedTable()+" AS "+thereName+" WHERE "+condition, nil, func(_ int64, key map[string]any) { keys = append(keys, key) })
	return keys, err
}

// selectKeys reads a number and the key of rows of the table, which are thereName in the clauses of a SELECT.
func (t tableTx) selectKeys(ctx context.Context, w *sqltool.TableWrite, number, from string, args []any, add func(number int64, key map[string]any)) error {
	columns := lists.Map(w.Key, func(column string) string { // without the type by which the driver would make times of texts
		return "+" + thereName + "." + sqltool.QuoteNames([]string{column})
	})
	return t.Query(ctx, "SELECT "+number+", "+strings.Join(columns, ", ")+" FROM "+from, args, func(scan func(...any) error) error {
		var n int64
		values := make([]any, len(w.Key))
		targets := []any{&n}
		for at := range values {
			targets = append(targets, &values[at])
		}
		if err := scan(targets...); err != nil {
			return err
		}
		key := make(map[string]any, len(values))
		for at, column := range w.Key {
			key[column] = resultValue(values[at], "")
		}
		add(n, key)
		return nil
	})
}

// belowCondition returns the condition that a row of the table belongs to a row of the first argument, and to none of
// the second.
func belowCondition(w *sqltool.TableWrite, rows sqltool.RowsBelow) (condition string, args []any, err error) {
	given, err := listOfValues(w, rows.By, rows.Given)
	if err != nil {
		return "", nil, err
	}
	condition, args = "("+storedValues(w, rows.By)+") IN (SELECT "+listedValues(rows.By)+" FROM json_each($1))", []any{given}
	if len(rows.Except) > 0 {
		listed, err := listOfValues(w, rows.Key, rows.Except)
		if err != nil {
			return "", nil, err
		}
		condition += " AND (" + storedValues(w, rows.Key) + ") NOT IN (SELECT " + listedValues(rows.Key) + " FROM json_each($2))"
		args = append(args, listed)
	}
	return condition, args, nil
}

// storedValues returns the columns of rows of the table; JSON has no bytes.
func storedValues(w *sqltool.TableWrite, columns []string) string {
	return strings.Join(lists.Map(columns, func(column string) string {
		name := sqltool.QuoteNames([]string{column})
		if sqltool.BytesOfDeclared(w.TypeOf(column)) != 0 {
			return "hex(" + name + ")"
		}
		return name
	}), ", ")
}

// listedValues returns the same columns of an element of a list.
func listedValues(columns []string) string {
	values := make([]string, len(columns))
	for at := range columns {
		values[at] = listedValue(at)
	}
	return strings.Join(values, ", ")
}

// listedValue is one of them.
func listedValue(at int) string { return "json_extract(value, '$[" + strconv.Itoa(at) + "]')" }

// listOfValues returns a JSON list with the values that rows have in some columns.
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

// TablesBehind are tables whose names begin with that of the table of a write.
func (t tableTx) TablesBehind(ctx context.Context, w *sqltool.TableWrite) (found []sqltool.TableColumns, err error) {
	const behind = "SELECT m.name, p.name FROM sqlite_master AS m, pragma_table_info(m.name) AS p WHERE m.type = 'table' AND m.name >= $1 AND m.name < $2 ORDER BY m.name, p.cid"
	last := len(w.Table) - 1
	err = t.Query(ctx, behind, []any{w.Table[last] + "_", w.Table[last] + "`"}, func(scan func(...any) error) error {
		var name, column string
		err := scan(&name, &column)
		if n := len(found); n == 0 || found[n-1].Table[last] != name {
			found = append(found, sqltool.TableColumns{Table: append(slices.Clone(w.Table[:last]), name)})
		}
		found[len(found)-1].Columns = append(found[len(found)-1].Columns, column)
		return err
	})
	return found, err
}
