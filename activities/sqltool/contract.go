package sqltool

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"reprise/activities/tool"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
)

// What a contract says of a difference between rows and their table.
const (
	freeze       = "freeze"
	evolve       = "evolve"
	discardValue = "discard_value"
	discardRow   = "discard_row"
)

var contractWords = []string{freeze, evolve, discardValue, discardRow}

// contract decides about rows without a table, without a column, or with a value of another
// type.
type contract struct{ tables, columns, dataType string }

// contractParts returns the members of a contract by the keys of schema_contract.
func (c *contract) contractParts() map[string]*string {
	return map[string]*string{"tables": &c.tables, "columns": &c.columns, "data_type": &c.dataType}
}

func contractKeys() []playbook.Field {
	return []playbook.Field{
		{Name: "tables", Kind: playbook.KindLiteral, Enum: contractWords, Default: freeze, Doc: "What happens to rows whose table does not exist."},
		{Name: "columns", Kind: playbook.KindLiteral, Enum: contractWords, Default: freeze, Doc: "What happens to values whose column does not exist."},
		{Name: "data_type", Kind: playbook.KindLiteral, Enum: contractWords, Default: freeze, Doc: "What happens to values that do not fit the type of their column."},
	}
}

// readContract reads schema_contract and columns.
func (w *TableWrite) readContract(in interpreter.ToolInput) error {
	parts := w.contract.contractParts()
	words, isMap := in.Fields["schema_contract"].Data.(map[string]any)
	for _, name := range playbook.SortedKeys(parts) {
		input := in
		if field := "schema_contract"; isMap {
			input.Fields = map[string]expression.Value{field: expression.Of(words[name])}
		}
		word, err := tool.ChoiceField(input, "schema_contract", freeze, contractWords...)
		if err != nil {
			return err
		}
		*parts[name] = word
	}
	for name := range words {
		if parts[name] == nil {
			return tool.ConfigErrorf("step %q: schema_contract has no key %q; its keys are columns, data_type and tables", in.Step, name)
		}
	}
	types, err := tool.MapField(in, "columns")
	if err != nil {
		return err
	}
	w.types = make(map[string]string, len(types))
	for _, name := range playbook.SortedKeys(types) {
		if w.types[name] = expression.Text(types[name]); !isType(w.types[name]) {
			return tool.ConfigErrorf("step %q: the type %q of column %q cannot be used; write the name of a type such as bigint, numeric(12, 2) or timestamptz",
				in.Step, w.types[name], name)
		}
	}
	return nil
}

// conformToContract fits the rows to the columns of their table by the contract. What has to change in
// the table is in w.changes, what is left out is counted.
func (w *TableWrite) conformToContract(d *Dialect, table []Column) error {
	if len(table) == 0 {
		return w.conformToNothing(d)
	}
	exists := make(map[string]Column, len(table))
	for _, column := range table {
		exists[column.Name] = column
	}
	if _, is := exists[w.hardDelete]; !is {
		w.leaveMark()
	}
	isNew := func(column string) bool {
		_, is := exists[column]
		return !is
	}
	if err := w.conformColumns(d, table, isNew); err != nil {
		return err
	}
	if w.contract.dataType == evolve && d.Widen != "" {
		w.widenColumns(d, table)
	}
	for _, column := range slices.Concat(w.Key, w.DeleteColumns()) {
		if isNew(column) && !slices.Contains(w.Columns, column) {
			return w.lacksColumn(table, column, "")
		}
	}
	return nil
}

// conformColumns deals with the columns that are new.
func (w *TableWrite) conformColumns(d *Dialect, table []Column, isNew func(string) bool) error {
	added := slices.DeleteFunc(slices.Clone(w.Columns), func(column string) bool { return !isNew(column) })
	if len(added) == 0 {
		return nil
	}
	left := map[string]bool{}
	switch w.contract.columns {
	case freeze:
		return w.lacksColumn(table, added[0], w.placeOf(added[0], false))
	case evolve:
		names := lists.Map(table, columnName)
		for _, column := range added {
			typed := w.typeOf(d, column)
			if typed == "" { // nil in every row: there is nothing to write yet
				left[column] = true
				continue
			}
			if slices.Contains(w.Key, column) {
				return w.lacksColumn(table, column, w.placeOf(column, false))
			}
			if problem := d.NameProblem(column, names); problem != "" {
				return tool.Errorf("%scolumn %q of table %q cannot be created: %s", w.placeOf(column, true), column, w.Shown, problem)
			}
			noteOtherSpelling(w, table, column)
			names = append(names, column)
			w.changes = append(w.changes, w.addColumn(d, quoteName(column)+" "+typed))
		}
	case discardValue, discardRow:
		marked := make([]bool, len(w.Rows))
		for _, column := range added {
			left[column] = true
			for i, row := range w.Rows {
				if row[column] != nil {
					marked[i] = true
					w.leftOut.DiscardedValues++
				}
			}
		}
		if w.contract.columns == discardRow {
			w.leftOut.DiscardedValues = 0
			w.discardRows(marked)
		}
	}
	w.leaveColumns(left)
	return nil
}

// noteOtherSpelling notes a column that is added beside one whose name differs only in case or blanks and that no row has: the source
// has changed its spelling, and the values of one column would be in two.
func noteOtherSpelling(w *TableWrite, table []Column, column string) {
	for _, there := range table {
		if strings.EqualFold(strings.TrimSpace(column), strings.TrimSpace(there.Name)) && !slices.Contains(w.Columns, there.Name) {
			w.notes = append(w.notes, fmt.Sprintf("table %q: column %q is added beside %q, which no row has; if they are one, rename it with fields and exclude",
				w.Shown, column, there.Name))
		}
	}
}

// conformToNothing creates the missing table, if the contract says so.
func (w *TableWrite) conformToNothing(d *Dialect) error {
	switch w.contract.tables {
	case freeze:
		return tool.Errorf("table %q does not exist: create it first, for example with a step that runs CREATE TABLE IF NOT EXISTS, or write schema_contract: evolve", w.Shown)
	case discardValue, discardRow:
		w.discardRows(slices.Repeat([]bool{true}, len(w.Rows)))
		w.Deletes = nil
		return nil
	}
	w.Deletes = nil
	w.leaveMark()
	if len(w.Rows) == 0 && !w.planned {
		return nil
	}
	var (
		columns, names []string
		left           = map[string]bool{}
	)
	declared := playbook.SortedKeys(w.types)
	for _, column := range slices.Concat(w.Key, w.Columns, declared) {
		if slices.Contains(names, column) || left[column] {
			continue
		}
		isKey, typed := slices.Contains(w.Key, column), w.typeOf(d, column)
		switch problem := d.NameProblem(column, names); {
		case typed == "" && isKey:
			return tool.Errorf("table %q cannot be created: column %q is the key, and no row has a value for it", w.Shown, column)
		case typed == "":
			left[column] = true
			continue
		case problem != "":
			return tool.Errorf("%scolumn %q of table %q cannot be created: %s", w.placeOf(column, true), column, w.Shown, problem)
		case isKey:
			typed += " NOT NULL"
		}
		names, columns = append(names, column), append(columns, quoteName(column)+" "+typed)
	}
	if len(columns) == 0 {
		return tool.Errorf("table %q cannot be created: no row has a value", w.Shown)
	}
	if len(w.Key) > 0 {
		columns = append(columns, "PRIMARY KEY ("+QuoteNames(w.Key)+")")
	}
	w.changes = []interpreter.DDL{w.createTable(strings.Join(columns, ", "))}
	w.leaveColumns(left)
	return nil
}

// widenColumns widens columns that cannot hold the rows' values, if no value is lost.
func (w *TableWrite) widenColumns(d *Dialect, table []Column) {
	for _, column := range table {
		if !slices.Contains(w.Columns, column.Name) {
			continue
		}
		kind := d.KindOf(column.Type)
		wider := kind
		for _, row := range w.Rows {
			wider = wider.toHold(row[column.Name], limitOf(column.Type))
		}
		if wider != kind {
			w.changes = append(w.changes, w.widenColumn(d, column.Name, d.Types[wider]))
		}
	}
}

// discardRows leaves the marked rows out, and counts them.
func (w *TableWrite) discardRows(marked []bool) {
	for _, is := range marked {
		if is {
			w.leftOut.DiscardedRows++
		}
	}
	*w = *w.withoutRows(marked)
	present, _ := columnsOf(w.Rows)
	w.Columns = slices.DeleteFunc(slices.Clone(w.Columns), func(column string) bool { return !slices.Contains(present, column) })
}

// discardValues leaves values of a column out of the marked rows. A row cannot be without its key.
func (w *TableWrite) discardValues(column string, marked []bool) {
	if w.contract.dataType == discardRow || slices.Contains(w.Key, column) {
		w.discardRows(marked)
		return
	}
	w.Rows = slices.Clone(w.Rows)
	for i, is := range marked {
		if is {
			w.Rows[i] = maps.Clone(w.Rows[i])
			w.Rows[i][column] = nil
			w.leftOut.DiscardedValues++
		}
	}
}

// leaveMark leaves out the column that marks deleted rows.
func (w *TableWrite) leaveMark() {
	if w.hardDelete != "" {
		w.leaveColumns(map[string]bool{w.hardDelete: true})
	}
}

// checkNames refuses tables whose names the database has no place for: it would cut one, and write to another table.
func (w *TableWrite) checkNames(d *Dialect) error {
	for _, name := range w.Table {
		if problem := d.NameProblem(name, nil); problem != "" {
			return tool.Errorf("table %q cannot be used: %s", w.Shown, problem)
		}
	}
	if w.table != nil {
		return w.table.checkNames(d)
	}
	return nil
}

// leaveColumns removes columns from the write.
func (s *rowSet) leaveColumns(left map[string]bool) {
	s.Columns = slices.DeleteFunc(slices.Clone(s.Columns), func(column string) bool { return left[column] })
}

// lacksColumn returns the error of a column that the table does not have, with what it might be.
func (t *TableName) lacksColumn(there []Column, column, place string) error {
	existing := lists.Map(there, columnName)
	hint := "it has " + tool.CutText(strings.Join(existing, ", "), 500)
	if near := expression.Suggest(column, existing); near != "" {
		hint = `did you mean "` + near + `"?`
	}
	return tool.Errorf("%stable %q has no column %q: %s", place, t.Shown, column, hint)
}

func columnName(column Column) string { return column.Name }

// placeOf returns the first row that has a value for the column, as the head of a message; "" for none.
func (s *rowSet) placeOf(column string, valued bool) string {
	for i, row := range s.Rows {
		if value, has := row[column]; has && (value != nil || !valued) {
			return s.RowText(s.OriginalNumber(i)) + ": "
		}
	}
	return ""
}
