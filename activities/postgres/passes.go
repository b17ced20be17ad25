package postgres

import (
	"context"
	"slices"
	"strings"

	"reprise/activities/sqltool"
	"reprise/activities/tool"
	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
)

// thereName is the alias of a table in statements that compare its rows with given ones.
const thereName = "reprise_there"

// givenKeys are rows of a parameter, of the types of the table.
func givenKeys(w *sqltool.TableWrite) string {
	return "json_populate_recordset(NULL::" + w.QuotedTable() + ", $1::text::json) AS " + givenName
}

// onlyColumns are rows with some of their columns.
func onlyColumns(columns []string, rows []map[string]any) []map[string]any {
	return lists.Map(rows, func(row map[string]any) map[string]any {
		some := make(map[string]any, len(columns))
		for _, column := range columns {
			some[column] = row[column]
		}
		return some
	})
}

// SplitPasses asks the database which rows have the same key, if several may, and if it has to be known which of them are ignored. Rows that are deleted are locked first, with all that are written, in
// the order of their keys: what is deleted comes before what is written.
func (t *tableTx) SplitPasses(ctx context.Context, w *sqltool.TableWrite) ([]*sqltool.TableWrite, error) {
	if len(w.Deletes) > 0 {
		if err := t.lockRows(ctx, w); err != nil {
			return nil, err
		}
	}
	once := !w.UpdatesRows() || !w.MayRepeatKeys() && !t.sendsInParts(w)
	if once && (w.UpdatesRows() || !w.ReportsRows()) {
		return []*sqltool.TableWrite{w}, nil
	}
	keys, err := t.numberKeys(ctx, w)
	if err != nil {
		return nil, err
	}
	return w.PassesOf(keys), nil
}

// sendsInParts reports whether rows go to the server by several statements, of which each has an order.
func (t *tableTx) sendsInParts(w *sqltool.TableWrite) bool {
	if len(w.Rows) <= chunkRows {
		return false // unless they are very large
	}
	return !t.target.tempAllowed || t.textForms(w) == nil
}

// lockRows locks the rows that are there.
func (t *tableTx) lockRows(ctx context.Context, w *sqltool.TableWrite) error {
	keys := lists.Map(w.Key, func(key string) string { return thereName + "." + sqltool.QuoteNames([]string{key}) })
	rows := w.Deletes
	if !w.HasRejectTable() { // of those some may have no key of the column's type
		rows = slices.Concat(rows, w.Rows)
	}
	given, err := encodeKeys(w, rows)
	if err != nil {
		return err
	}
	_, err = t.tx.Exec(ctx, "SELECT FROM "+w.QuotedTable()+" AS "+thereName+", "+givenKeys(w)+" WHERE "+sqltool.SameKey(w.Key, givenName, thereName)+
		" ORDER BY "+strings.Join(keys, ", ")+" FOR UPDATE OF "+thereName, given)
	return err
}

// numberKeys numbers the keys of rows, then of deletes, as the database orders them. A key that a column cannot hold
// gets its own number, and its row is refused when it is written.
func (t *tableTx) numberKeys(ctx context.Context, w *sqltool.TableWrite) ([]int, error) {
	rows := slices.Concat(w.Rows, w.Deletes)
	numbers, err := t.keyRanks(ctx, w, rows)
	if err == nil || !w.HasRejectTable() || !refusesValue(err) {
		return numbers, err
	}
	misfit := make([]bool, len(rows))
	for _, key := range w.Key {
		misfits, err := t.FindMisfits(ctx, w, sqltool.Column{Name: key}, lists.Map(rows, func(row map[string]any) any { return row[key] }))
		if err != nil {
			return nil, err
		}
		for _, i := range misfits {
			misfit[i] = true
		}
	}
	var fit []map[string]any
	for i, row := range rows {
		if !misfit[i] {
			fit = append(fit, row)
		}
	}
	ranked, err := t.keyRanks(ctx, w, fit)
	if err != nil {
		return nil, err
	}
	numbers, behind := make([]int, len(rows)), len(fit)
	for i := range rows {
		if misfit[i] {
			numbers[i] = behind
			behind++
			continue
		}
		numbers[i], ranked = ranked[0], ranked[1:]
	}
	return numbers, nil
}

// keyRanks returns the places of keys in their order, from 0.
func (t *tableTx) keyRanks(ctx context.Context, w *sqltool.TableWrite, rows []map[string]any) ([]int, error) {
	given, err := encodeKeys(w, rows)
	if err != nil {
		return nil, err
	}
	keys := strings.Join(lists.Map(w.Key, func(key string) string { return givenName + "." + sqltool.QuoteNames([]string{key}) }), ", ")
	ranks := make([]int, 0, len(rows))
	err = t.TryPart(ctx, func() error {
		return t.Query(ctx, "SELECT dense_rank() OVER (ORDER BY "+keys+") - 1 FROM json_array_elements($1::text::json) WITH ORDINALITY AS element (fields, n), "+
			"json_populate_record(NULL::"+w.QuotedTable()+", element.fields) AS "+givenName+" ORDER BY element.n", []any{given}, func(scan func(...any) error) error {
			var rank int
			err := scan(&rank)
			ranks = append(ranks, rank)
			return err
		})
	})
	return ranks, err
}

// encodeKeys returns a JSON list of the keys of rows.
func encodeKeys(w *sqltool.TableWrite, rows []map[string]any) (string, error) {
	list, err := expression.Encode(lists.Map(onlyColumns(w.Key, rows), func(row map[string]any) any { return row }))
	if err != nil {
		return "", tool.Errorf("the keys of the rows for table %q cannot be written as JSON: %w", w.Shown, err)
	}
	return string(list), nil
}
