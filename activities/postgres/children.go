package postgres

import (
	"context"

	"reprise/activities/sqltool"
	"reprise/activities/tool"
	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
)

// DeleteBelow deletes rows below others. The keys of those that stay travel as one list, as each statement would else delete what
// the others keep.
func (t *tableTx) DeleteBelow(ctx context.Context, w *sqltool.TableWrite, rows sqltool.RowsBelow) (int64, error) {
	const keptName = "reprise_kept"
	given, err := encodeList(w, rows.Given)
	if err != nil {
		return 0, err
	}
	statement := "DELETE FROM " + w.QuotedTable() + " AS " + thereName + " USING " + givenKeys(w) + " WHERE " + sqltool.SameKey(rows.By, givenName, thereName)
	args := []any{given}
	if len(rows.Kept) > 0 {
		kept, err := t.encodeKept(ctx, w, rows)
		if err != nil {
			return 0, err
		}
		statement += " AND NOT EXISTS (SELECT 1 FROM json_populate_recordset(NULL::" + w.QuotedTable() + ", $2::text::json) AS " + keptName +
			" WHERE " + sqltool.SameKey(rows.Key, keptName, thereName) + ")"
		args = append(args, kept)
	}
	tag, err := t.tx.Exec(ctx, statement, args...)
	return tag.RowsAffected(), err
}

// encodeKept is a list of the keys of rows that stay. A key that its column does not hold is that of no row, and its row is refused when it
// is written.
func (t *tableTx) encodeKept(ctx context.Context, w *sqltool.TableWrite, rows sqltool.RowsBelow) (string, error) {
	kept := rows.Kept
	for _, key := range rows.Key {
		if !w.Rejects() {
			break
		}
		misfits, err := t.Misfits(ctx, w, sqltool.Column{Name: key}, lists.Map(kept, func(row map[string]any) any { return row[key] }))
		if err != nil {
			return "", err
		}
		var fit []map[string]any
		for i, row := range kept {
			if len(misfits) > 0 && misfits[0] == i {
				misfits = misfits[1:]
				continue
			}
			fit = append(fit, row)
		}
		kept = fit
	}
	return encodeList(w, kept)
}

// encodeList is a JSON list of rows.
func encodeList(w *sqltool.TableWrite, rows []map[string]any) (string, error) {
	list, err := expression.Encode(lists.Map(rows, func(row map[string]any) any { return row }))
	if err != nil {
		return "", tool.Errorf("the keys of the rows for table %q cannot be written as JSON: %w", w.Shown, err)
	}
	return string(list), nil
}
