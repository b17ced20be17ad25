package postgres

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"reprise/activities/sqltool"
	"reprise/activities/tool"
	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
)

// DeleteBelow deletes rows of children. The keys of rows that stay are sent as one list: one statement per row would
// delete what the other rows keep.
func (t *tableTx) DeleteBelow(ctx context.Context, w *sqltool.TableWrite, rows sqltool.RowsBelow) (int64, error) {
	condition, args, err := t.belowCondition(ctx, w, rows)
	if err != nil {
		return 0, err
	}
	if len(rows.Except) > 0 && t.findsByIndex(rows) { // mostly all are, and the plan of DELETE would read the whole table
		if there, err := t.existsBelow(ctx, w, rows, condition, args); !there || err != nil {
			return 0, err
		}
	}
	return t.Exec(ctx, "DELETE FROM "+w.QuotedTable()+" AS "+thereName+" USING "+givenKeys(w)+" WHERE "+condition, args...)
}

// HasBelow reports whether there are rows below others; without an index it does not read the table to know.
func (t *tableTx) HasBelow(ctx context.Context, w *sqltool.TableWrite, rows sqltool.RowsBelow) (bool, error) {
	if !t.findsByIndex(rows) {
		return true, nil
	}
	condition, args, err := t.belowCondition(ctx, w, rows)
	if err != nil {
		return false, err
	}
	return t.existsBelow(ctx, w, rows, condition, args)
}

// existsBelow reports whether the condition of belowCondition holds for a row.
func (t *tableTx) existsBelow(ctx context.Context, w *sqltool.TableWrite, rows sqltool.RowsBelow, condition string, args []any) (there bool, err error) {
	batch := &pgx.Batch{}
	batch.Queue("SELECT EXISTS (SELECT FROM "+t.sourceBelow(w, rows)+" WHERE "+condition+")", args...).QueryRow(func(row pgx.Row) error { return row.Scan(&there) })
	err = t.sendBatch(ctx, batch)
	return there, err
}

// KeysBelow returns the keys of rows below others.
func (t *tableTx) KeysBelow(ctx context.Context, w *sqltool.TableWrite, rows sqltool.RowsBelow) (keys []map[string]any, err error) {
	condition, args, err := t.belowCondition(ctx, w, rows)
	if err != nil {
		return nil, err
	}
	err = t.selectKeys(ctx, w, "0", t.sourceBelow(w, rows)+" WHERE "+condition, args, func(_ int64, key map[string]any) {
		keys = append(keys, key)
	})
	return keys, err
}

// findsByIndex reports whether an index begins with a column by which rows are below others.
func (t *tableTx) findsByIndex(rows sqltool.RowsBelow) bool {
	return slices.ContainsFunc(rows.By, func(column string) bool { return slices.Contains(t.target.leading, column) })
}

// sourceBelow returns the given rows with the rows below them. Without statistics, which a table has a minute after it is
// filled, the server takes many rows to be below each given one, and reads the whole table: OFFSET keeps it to the index.
func (t *tableTx) sourceBelow(w *sqltool.TableWrite, rows sqltool.RowsBelow) string {
	if !t.findsByIndex(rows) {
		return givenKeys(w) + ", " + w.QuotedTable() + " AS " + thereName
	}
	const belowName = "reprise_below"
	columns := sqltool.QuoteNames(slices.Compact(slices.Sorted(slices.Values(slices.Concat(rows.By, rows.Key, w.Key)))))
	return givenKeys(w) + " CROSS JOIN LATERAL (SELECT " + columns + " FROM " + w.QuotedTable() + " AS " + belowName + " WHERE " + sqltool.SameKey(rows.By, givenName, belowName) + " OFFSET 0) AS " + thereName
}

// StoredKeys returns the keys of the rows that have one of the given keys.
func (t *tableTx) StoredKeys(ctx context.Context, w *sqltool.TableWrite, given []map[string]any, onlyOlder bool) ([]map[string]any, error) {
	list, err := encodeList(w, onlyColumns(w.DeleteColumns(), given))
	if err != nil {
		return nil, err
	}
	condition := sqltool.SameKey(w.Key, givenName, thereName)
	if onlyOlder {
		condition += " AND " + w.NotOlder(givenName, thereName)
	}
	keys := make([]map[string]any, len(given))
	err = t.selectKeys(ctx, w, "element.n", "json_array_elements($1::text::json) WITH ORDINALITY AS element (fields, n), json_populate_record(NULL::"+w.QuotedTable()+
		", element.fields) AS "+givenName+", "+w.QuotedTable()+" AS "+thereName+" WHERE "+condition, []any{list}, func(n int64, key map[string]any) { keys[n-1] = key })
	return keys, err
}

// KeysWhere returns the keys of rows that a condition holds for.
func (t *tableTx) KeysWhere(ctx context.Context, w *sqltool.TableWrite, condition string) (keys []map[string]any, err error) {
	err = t.selectKeys(ctx, w, "0", w.QuotedTable()+" AS "+thereName+" WHERE "+condition, nil, func(_ int64, key map[string]any) { keys = append(keys, key) })
	return keys, err
}

// skipUnwritten reports the rows of a write whose keys are not among those that its statements have returned.
func (t *tableTx) skipUnwritten(ctx context.Context, w *sqltool.TableWrite) error {
	written := make(map[string]bool, len(t.returned))
	for _, text := range t.returned {
		key, err := readKey(w, text)
		if err != nil {
			return err
		}
		written[keyText(w, key)] = true
	}
	keys, err := t.StoredKeys(ctx, w, w.Rows, false)
	for i, key := range keys {
		if key == nil || !written[keyText(w, key)] {
			w.SkipRow(w.OriginalNumber(i))
		}
	}
	return err
}

// keyText returns the same for values of a key that are the same.
func keyText(w *sqltool.TableWrite, key map[string]any) string {
	return expression.Text(lists.Map(w.Key, func(column string) any { return key[column] }))
}

// selectKeys reads a number and the key of rows of the table, which are thereName in the clauses of a SELECT.
func (t *tableTx) selectKeys(ctx context.Context, w *sqltool.TableWrite, number, from string, args []any, add func(number int64, key map[string]any)) error {
	columns := strings.Join(lists.Map(quoteNames(w.Key), func(column string) string { return thereName + "." + column }), ", ")
	return t.Query(ctx, "SELECT "+number+", json_build_array("+columns+")::text FROM "+from, args, func(scan func(...any) error) error {
		var (
			n    int64
			text string
		)
		if err := scan(&n, &text); err != nil {
			return err
		}
		key, err := readKey(w, text)
		add(n, key)
		return err
	})
}

// readKey reads a JSON list of the values of a key in the forms in which statements give them.
func readKey(w *sqltool.TableWrite, text string) (map[string]any, error) {
	decoded, err := expression.Decode([]byte(text))
	values, _ := decoded.([]any)
	if err != nil || len(values) != len(w.Key) {
		return nil, tool.Errorf("the key %s of a row of table %q cannot be read: %v", tool.CutText(text, 100), w.Shown, err)
	}
	key := make(map[string]any, len(values))
	for at, column := range w.Key {
		key[column] = values[at]
		value, isText := values[at].(string)
		switch {
		case !isText:
		case w.TypeOf(column) == "bytea":
			if bytes, is := sqltool.ReadBytes(value); is {
				key[column] = bytes
			}
		case w.TypeOf(column) == "timestamp with time zone":
			if at, is := expression.ParseTime(value); is {
				key[column] = at.UTC().Format(time.RFC3339Nano)
			}
		}
	}
	return key, nil
}

// belowCondition returns the condition that a row of the table belongs to a row of the first argument, and to none of
// the second.
func (t *tableTx) belowCondition(ctx context.Context, w *sqltool.TableWrite, rows sqltool.RowsBelow) (condition string, args []any, err error) {
	const exceptName = "reprise_kept"
	given, err := encodeList(w, rows.Given)
	if err != nil {
		return "", nil, err
	}
	condition, args = sqltool.SameKey(rows.By, givenName, thereName), []any{given}
	if len(rows.Except) > 0 {
		except, err := t.encodeExcept(ctx, w, rows)
		if err != nil {
			return "", nil, err
		}
		condition += " AND NOT EXISTS (SELECT 1 FROM json_populate_recordset(NULL::" + w.QuotedTable() + ", $2::text::json) AS " + exceptName +
			" WHERE " + sqltool.SameKey(rows.Key, exceptName, thereName) + ")"
		args = append(args, except)
	}
	return condition, args, nil
}

// encodeExcept encodes the keys of rows that stay. A key that its column cannot hold is no row's key, and its row is
// refused when it is written.
func (t *tableTx) encodeExcept(ctx context.Context, w *sqltool.TableWrite, rows sqltool.RowsBelow) (string, error) {
	except := rows.Except
	for _, key := range rows.Key {
		if !w.HasRejectTable() {
			break
		}
		misfits, err := t.FindMisfits(ctx, w, sqltool.Column{Name: key}, lists.Map(except, func(row map[string]any) any { return row[key] }))
		if err != nil {
			return "", err
		}
		var fit []map[string]any
		for i, row := range except {
			if len(misfits) > 0 && misfits[0] == i {
				misfits = misfits[1:]
				continue
			}
			fit = append(fit, row)
		}
		except = fit
	}
	return encodeList(w, except)
}

// encodeList returns a JSON list of rows.
func encodeList(w *sqltool.TableWrite, rows []map[string]any) (string, error) {
	list, err := expression.Encode(lists.Map(rows, func(row map[string]any) any { return row }))
	if err != nil {
		return "", tool.Errorf("the keys of the rows for table %q cannot be written as JSON: %w", w.Shown, err)
	}
	return string(list), nil
}

// TablesBehind are tables whose names begin with that of the table of a write.
func (t *tableTx) TablesBehind(ctx context.Context, w *sqltool.TableWrite) (found []sqltool.TableColumns, err error) {
	const behind = `SELECT c.relname::text, array_agg(a.attname::text)
		FROM pg_class t JOIN pg_class c ON c.relnamespace = t.relnamespace AND c.relkind IN ('r', 'p') JOIN pg_attribute a ON a.attrelid = c.oid
		WHERE t.oid = to_regclass($1) AND c.relname >= $2 AND c.relname < $3 AND a.attnum > 0 AND NOT a.attisdropped GROUP BY 1 ORDER BY 1`
	last := len(w.Table) - 1
	err = t.Query(ctx, behind, []any{w.QuotedTable(), w.Table[last] + "_", w.Table[last] + "`"}, func(scan func(...any) error) error {
		var (
			name string
			one  sqltool.TableColumns
		)
		err := scan(&name, &one.Columns)
		one.Table = append(slices.Clone(w.Table[:last]), name)
		found = append(found, one)
		return err
	})
	return found, err
}
