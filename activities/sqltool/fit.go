package sqltool

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"reprise/activities/tool"
	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
)

// fitRows converts the rows' values to what their columns read. The contract decides about a value that would change.
// This happens before rows with one key are compared and before they are sent, so that every way of writing gives the
// same result.
func (w *TableWrite) fitRows(d *Dialect, columns []Column) error {
	fits := lists.Map(w.Columns, func(name string) columnFit { return fitOf(w, d, columns, name) })
	findChanges(w.Rows, fits)
	changed := false
	for _, fit := range fits {
		if changed && fit.created { // by its values, some of which may be gone
			fit = fitOf(w, d, columns, fit.column.Name)
			fit.changes = !fit.reads.sendsAll()
		}
		if !fit.changes {
			continue
		}
		if err := w.fitColumn(d, fit.column, fit.reads); err != nil {
			return err
		}
		changed = true
	}
	return nil
}

// columnFit is a column whose values may have to be converted.
type columnFit struct {
	column  Column
	created bool // the table does not have it yet
	reads   Reader
	// changes says that one of its values does not fit, or is not stored as it is.
	changes bool
}

func fitOf(w *TableWrite, d *Dialect, columns []Column, name string) columnFit {
	column := w.columnOf(d, columns, name)
	exists := slices.ContainsFunc(columns, func(c Column) bool { return c.Name == name })
	return columnFit{column: column, created: !exists, reads: column.columnReader(d)}
}

// sendsAll reports whether all values are sent and stored as they are.
func (r Reader) sendsAll() bool { return r.of == readsAll && r.precision.unit == unitAll }

// findChanges finds the columns whose values are not all sent and stored as they are, which few columns of a write are. It looks at all columns of a row
// while that is in the processor's cache: one column after the other takes twice as long.
func findChanges(rows []map[string]any, fits []columnFit) {
	for _, row := range rows {
		for i := range fits {
			fit := &fits[i]
			if fit.changes || fit.reads.sendsAll() {
				continue
			}
			value := row[fit.column.Name]
			if !fit.reads.mayChange(value) {
				continue
			}
			sent, problem := fit.reads.readValue(value)
			fit.changes = problem != "" || !isSame(sent, value) || fit.reads.precision.countCut(value) != 0
		}
	}
}

// columnOf returns a column of the table, or one that is to be created.
func (w *TableWrite) columnOf(d *Dialect, columns []Column, name string) Column {
	column := columnNamed(columns, name)
	if column.Type == "" && !slices.ContainsFunc(columns, func(c Column) bool { return c.Name == name }) {
		column.Type = w.typeOf(d, name)
	}
	return column
}

// columnReader is how the column reads values.
func (c Column) columnReader(d *Dialect) Reader {
	if c.Base != "" {
		return d.ReaderOf(c.Base)
	}
	return d.ReaderOf(c.Type)
}

// fitColumn replaces the values of a column by those that the column returns once they are written. A value that does
// not fit fails the write, rejects its row, or is discarded, as the sink says.
func (w *TableWrite) fitColumn(d *Dialect, column Column, reads Reader) error {
	var marked []bool
	owned := false // the rows are those of the write alone
	for i, row := range w.Rows {
		value := row[column.Name]
		if !reads.mayChange(value) || w.deletesRow(row) && !slices.Contains(w.DeleteColumns(), column.Name) {
			continue
		}
		sent, problem := reads.readValue(value)
		switch {
		case problem != "":
			if w.contract.discardsMisfits() {
				marked = markRow(marked, i, len(w.Rows))
			} else if err := w.handleMisfit(d, i, column, value, problem); err != nil {
				return err
			}
		case !isSame(sent, value):
			if !owned {
				w.Rows, owned = slices.Clone(w.Rows), true
			}
			w.Rows[i] = w.rowWith(i, column.Name, sent)
		}
		if problem == "" {
			countCutValue(w, column.Name, reads.precision, value)
		}
	}
	if marked != nil {
		w.discardValues(column.Name, marked)
	}
	return nil
}

// countCutValue counts a value that its column keeps only in part.
func countCutValue(w *TableWrite, column string, limit precision, value any) {
	cut, isKey := limit.countCut(value), mergesBy(w, column)
	if limit.unit != ignoresBlanks || isKey {
		w.leftOut.RoundedValues += cut
	}
	if isKey {
		w.leftOut.RoundedKeys += cut
	}
}

// mergesBy reports whether rows whose values of the column are equal in the table become one row.
func mergesBy(w *TableWrite, column string) bool {
	return w.name != modeInsert && slices.Contains(w.Key, column)
}

func markRow(marked []bool, row, rows int) []bool {
	if marked == nil {
		marked = make([]bool, rows)
	}
	marked[row] = true
	return marked
}

// isSame reports whether a value is sent unchanged.
func isSame(sent, value any) bool {
	switch value := value.(type) {
	case string:
		text, isText := sent.(string)
		return isText && text == value
	case []any:
		list, isList := sent.([]any)
		return isList && len(list) == len(value) && (len(list) == 0 || &list[0] == &value[0])
	case map[string]any:
		return true // no column reads a map as another value
	}
	return sent == value
}

// rowWith returns a row with another value of a column. The table of rows that are refused gets the row as it was.
func (w *TableWrite) rowWith(i int, column string, value any) map[string]any {
	before := w.Rows[i]
	if w.HasRejectTable() {
		if w.served == nil {
			w.served = map[int]map[string]any{}
		}
		if _, known := w.served[w.OriginalNumber(i)]; !known {
			w.served[w.OriginalNumber(i)] = before
		}
	}
	row := maps.Clone(before)
	row[column] = value
	return row
}

// noteDocuments notes columns of JSON that get texts which are lists or maps in JSON, as CSV and SQLite have them: such a text is written
// as a JSON string, which it is everywhere else too, and its members are not found in the table.
func noteDocuments(w *TableWrite, d *Dialect, columns []Column) {
	if d.Types[kindJSON] == d.Types[kindText] { // the database has texts of JSON
		return
	}
	for _, name := range w.Columns {
		column := w.columnOf(d, columns, name)
		if d.KindOf(cmp.Or(column.Base, column.Type)) == kindJSON && slices.ContainsFunc(w.Rows, func(row map[string]any) bool { return isDocument(row[name]) }) {
			w.notes = append(w.notes, fmt.Sprintf("table %q, column %q of type %s: texts that are JSON are written as JSON strings; write their values with fields: "+
				"{%s: \"{{ fromJSON(row.%s) }}\"}", w.Shown, name, column.Type, name, name))
		}
	}
}

// noteEmptyTexts notes columns of bytes, and of JSON, that get empty texts from rows whose numbers are texts, as those of CSV are: there a
// null may be an empty text, which such a column takes for a value.
func noteEmptyTexts(w *TableWrite, d *Dialect, given []map[string]any) {
	hasTextForNumber := func(row map[string]any) bool {
		return slices.ContainsFunc(w.tableColumns, func(column Column) bool {
			text, isText := row[column.Name].(string)
			return isText && text != "" && d.KindOf(column.baseType()).isNumber()
		})
	}
	for _, column := range w.tableColumns {
		as := "empty bytes"
		if column.Bytes == noBytes {
			as = "empty JSON strings"
		}
		hasJSON := d.Types[kindJSON] != d.Types[kindText] && d.KindOf(column.baseType()) == kindJSON
		if column.Bytes == noBytes && !hasJSON || column.Required || !slices.Contains(w.Columns, column.Name) {
			continue
		}
		if slices.ContainsFunc(given, func(row map[string]any) bool { return row[column.Name] == "" && hasTextForNumber(row) }) {
			w.notes = append(w.notes, fmt.Sprintf("table %q, column %q of type %s: empty texts are written as %s; if they are nulls, as CSV has them, write fields: {%s: \"{{ row.%s or nil }}\"}",
				w.Shown, column.Name, column.Type, as, column.Name, column.Name))
		}
	}
}

// isDocument reports whether a value is the text of a list or map in JSON.
func isDocument(value any) bool {
	text, _ := value.(string)
	if text = strings.TrimSpace(text); text == "" || text[0] != '{' && text[0] != '[' {
		return false
	}
	return json.Valid([]byte(text))
}

// discardsMisfits reports whether values that their column does not hold are left out.
func (c contract) discardsMisfits() bool {
	return c.dataType == discardValue || c.dataType == discardRow
}

// handleMisfit handles a value that its column cannot hold exactly: unless the contract drops it, the row is refused
// as if by the database.
func (w *TableWrite) handleMisfit(d *Dialect, i int, column Column, value any, problem string) error {
	const shown = 100
	reason := fmt.Sprintf("%q %s, and its column is of type %s", tool.CutText(expression.Text(value), shown), problem, column.Type)
	if w.HasRejectTable() {
		if w.unfit == nil {
			w.unfit = map[int]*RowRefusal{}
		}
		w.unfit[w.OriginalNumber(i)] = &RowRefusal{Code: d.Mismatch, Column: column.Name, Reason: reason}
		return nil
	}
	never := ""
	if w.contract.dataType == evolve {
		never = "evolve does not change such a column to text: "
	}
	return tool.Errorf("%s%s, column %q: %s; %schange the value in args or fields, set another type for the column before the sink creates it "+
		"(`columns: {%s: text}`), or discard such values (`schema_contract: {data_type: discard_value}`)",
		w.DescribeAction(), w.RowText(w.OriginalNumber(i)), column.Name, reason, never, column.Name)
}

// isUnfit reports whether a row is refused because a value would change.
func (w *TableWrite) isUnfit(i int) bool {
	return len(w.unfit) > 0 && w.unfit[w.OriginalNumber(i)] != nil
}

// deletesRow reports whether a row deletes the one with its key.
func (r *mergeKey) deletesRow(row map[string]any) bool {
	return r.hardDelete != "" && expression.Truthy(row[r.hardDelete])
}

// rejectUnfit writes the rows with unfit values to the table of rejected rows, and returns the others.
func (r *rejecting) rejectUnfit(ctx context.Context, w *TableWrite) (*TableWrite, error) {
	if len(w.unfit) == 0 {
		return w, nil
	}
	marked := make([]bool, len(w.Rows))
	for i := range w.Rows {
		if marked[i] = w.isUnfit(i); !marked[i] {
			continue
		}
		if err := r.rejectRow(ctx, w.partOfRows(i, i+1), w.unfit[w.OriginalNumber(i)]); err != nil {
			return nil, err
		}
	}
	return w.withoutRows(marked), nil
}

// columnReaders returns how columns of the table read values, by name, without those that read all values
// unchanged.
func (w *TableWrite) columnReaders(d *Dialect, names []string) map[string]Reader {
	readers := map[string]Reader{}
	for _, name := range names {
		if reads := columnNamed(w.tableColumns, name).columnReader(d); reads.of != readsAll {
			readers[name] = reads
		}
	}
	return readers
}

// fitRow converts the values of a row to the forms in which its columns return them. It is
// false if a value does not fit its column, as no row of the table can equal such a row.
func fitRow(row map[string]any, readers map[string]Reader) bool {
	for name, reads := range readers {
		sent, problem := reads.readValue(row[name])
		if problem != "" {
			return false
		}
		row[name] = sent
	}
	return true
}
