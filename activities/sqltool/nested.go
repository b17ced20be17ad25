package sqltool

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"reprise/activities/tool"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
)

// With nested: tables, each list in a row is written to a table of its own, without a description in children. The table
// is called TABLE_FIELD, and its rows have the key of their parent and their place in the list. Which fields have lists
// follows from the rows, and from the tables of earlier writes: these are still known if no row of a write has a list.

// The words of nested.
const (
	nestedJSON   = "json"
	nestedTables = "tables"
)

// valueColumn is the column for elements that are not maps.
const valueColumn = "value"

// lineSuffix ends the name of the column with the place in the list, which begins with the name of its table.
const lineSuffix = "_line"

// nestedLists says whether the lists in the rows of a table become tables without a description.
type nestedLists struct {
	// nests says that they do, made that the table itself was found in a list and not described in children.
	nests, made bool
}

// MakesTables reports whether lists of the rows become tables without a description.
func (n *nestedLists) MakesTables() bool { return n.nests }

// readNested reads nested.
func readNested(w *TableWrite, in interpreter.ToolInput) error {
	word, err := tool.ChoiceField(in, "nested", nestedJSON, nestedJSON, nestedTables)
	if err != nil || word == nestedJSON {
		return err
	}
	if len(w.Key) == 0 {
		return tool.ConfigErrorf("step %q: nested: tables needs key: its columns link the rows of a list to the row that the list was in", in.Step)
	}
	w.nests, w.in = true, in
	if w.below == nil {
		w.below = &childFigures{}
	}
	w.reports = w.reports || w.name == modeInsertOrIgnore
	for _, child := range w.children {
		if err := child.nestBelow(in); err != nil {
			return err
		}
	}
	return nil
}

// nestBelow has lists in the elements of a described table become tables too.
func (c *childTable) nestBelow(in interpreter.ToolInput) error {
	if len(c.write.Key) == 0 {
		return tool.ConfigErrorf("step %q: nested: tables needs a key for the table %q of children: its columns link the rows of a list to the element that the list was in", in.Step, c.write.Shown)
	}
	c.write.nests, c.write.reports = true, c.write.reports || c.write.name == modeInsertOrIgnore
	for _, below := range c.write.children {
		if err := below.nestBelow(in); err != nil {
			return err
		}
	}
	return nil
}

// listedRow is a row in which lists are looked for.
type listedRow struct {
	fields map[string]any
	place  string // such as row 3, items[1]
}

// nestRows finds the fields of rows that have lists, and makes tables of children for them.
func nestRows(w *TableWrite, rows []listedRow) error {
	if !w.nests {
		return nil
	}
	found := map[string]string{} // the place of the first list, by field
	for _, row := range rows {
		for field, value := range row.fields {
			if _, isList := value.([]any); !isList || found[field] != "" || w.types[field] != "" {
				continue
			}
			if slices.Contains(w.Key, field) {
				return tool.Errorf("%s, %s is a list, but the column is part of the key of table %q", row.place, field, w.Shown)
			}
			found[field] = row.place
		}
	}
	for _, field := range playbook.SortedKeys(found) {
		if !slices.ContainsFunc(w.children, func(child *childTable) bool { return child.field == field }) {
			addNested(w, field)
		}
	}
	for _, child := range w.children {
		if err := child.nestElements(rows); err != nil {
			return err
		}
	}
	return nil
}

// nestElements finds out what the elements of a field are, and which lists they have themselves.
func (c *childTable) nestElements(rows []listedRow) error {
	var below []listedRow
	maps, others := "", ""
	for _, row := range rows {
		elements, isList := row.fields[c.field].([]any)
		if element, isMap := row.fields[c.field].(map[string]any); isMap {
			elements, isList = []any{element}, true
		}
		if !isList {
			continue // which is reported where it is written
		}
		for at, element := range elements {
			place := fmt.Sprintf("%s, %s[%d]", row.place, c.field, at)
			fields, isMap := element.(map[string]any)
			switch {
			case isMap && maps == "":
				maps = place
			case !isMap && others == "":
				others = place
			}
			if isMap {
				below = append(below, listedRow{fields, place})
			}
		}
	}
	switch {
	case c.write.made && maps != "" && others != "":
		return tool.Errorf("%s is a map and %s is not, so they cannot both be rows of table %q; make all of them maps in the sink's fields, or leave %s out with exclude",
			maps, others, c.write.Shown, c.field)
	case c.write.made && others != "":
		c.values, c.seen = true, others
	}
	return nestRows(c.write, below)
}

// addNested adds a table of children for a field.
func addNested(w *TableWrite, field string) *childTable {
	name := w.nestedName(field)
	own := w.in
	own.Fields = map[string]expression.Value{"schema_contract": w.in.Fields["schema_contract"]}
	write := &TableWrite{TableName: name, mode: w.mode, rejection: w.rejection, settleRules: w.settleRules, target: w.target}
	write.types = map[string]string{}
	write.unneeded, write.below, write.in = w.unneeded, w.below, own
	write.target.Table = name.Shown
	write.nests, write.made = true, true
	child := &childTable{write: write, field: field, with: map[string]string{}, position: name.Table[len(name.Table)-1] + lineSuffix}
	for _, key := range w.Key {
		column := key
		if !w.made {
			column = w.Table[len(w.Table)-1] + "_" + key
		}
		child.with[column] = key
		child.columns = append(child.columns, column)
	}
	slices.Sort(child.columns)
	child.linked, write.links = child.columns, child.columns
	write.Key = append(slices.Clone(child.columns), child.position)
	write.reports = w.name == modeInsertOrIgnore
	stageChild(w, write, field)
	w.children = append(w.children, child)
	slices.SortFunc(w.children, func(a, b *childTable) int { return strings.Compare(a.field, b.field) })
	return child
}

// nestedName names the table for the lists of a field.
func (t *TableName) nestedName(field string) TableName {
	parts := slices.Clone(t.Table)
	parts[len(parts)-1] += "_" + field
	return TableName{Table: parts, Shown: strings.Join(lists.Map(parts, showName), ".")}
}

// showName is a part of a name as an author writes it.
func showName(part string) string {
	if strings.ContainsAny(part, `."`) {
		return quoteName(part)
	}
	return part
}

// TableColumns are the columns of a table, by the parts of its name.
type TableColumns struct{ Table, Columns []string }

// FindNested adds the tables that earlier writes have made for lists, so that rows without a list are known to have none.
func FindNested(ctx context.Context, tx StagingTx, w *TableWrite) (*TableWrite, error) {
	if !w.nests {
		return w, nil
	}
	tables, err := tx.TablesBehind(ctx, w)
	if err != nil {
		return nil, err
	}
	if err := addFound(w, tables); err != nil {
		return nil, err
	}
	w.readColumns(nil)
	all := w.AllTables()
	for i, one := range all {
		for _, other := range all[:i] {
			if sameTable(tx.Dialect(), one, other) {
				return nil, tool.Errorf("two fields have lists that would be written to the same table, one as %q, the other as %q; rename one of the fields in the sink's fields, or use children", one.Shown, other.Shown)
			}
		}
	}
	return w, refuseListColumns(ctx, tx, w)
}

// sameTable reports whether two names are of one table.
func sameTable(d *Dialect, one, other *TableWrite) bool {
	a, b := strings.Join(one.Table, "."), strings.Join(other.Table, ".")
	if d.OneCase != nil {
		a, b = d.OneCase(a), d.OneCase(b)
	}
	return a == b
}

// addFound adds tables that are there, and refuses those that are not of lists of these rows.
func addFound(w *TableWrite, tables []TableColumns) error {
	begin := w.Table[len(w.Table)-1] + "_"
	for _, there := range tables { // sorted, so that a table comes before those below it
		name := there.Table[len(there.Table)-1]
		field, is := strings.CutPrefix(name, begin)
		line := name + lineSuffix
		at := slices.IndexFunc(w.children, func(child *childTable) bool { return child.write.Table[len(child.write.Table)-1] == name })
		switch {
		case !is || field == "":
		case at >= 0 && w.children[at].write.made:
			if err := w.children[at].checkFound(w, there); err != nil {
				return err
			}
		case at < 0 && slices.Contains(there.Columns, line) && !isDeeper(w, tables, name, there.Columns):
			child := addNested(w, field)
			if slices.ContainsFunc(child.write.Key, func(column string) bool { return !slices.Contains(there.Columns, column) }) {
				w.children = slices.DeleteFunc(w.children, func(one *childTable) bool { return one == child })
				continue
			}
		}
	}
	for _, child := range w.children {
		if child.write.nests {
			if err := addFound(child.write, tables); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkFound refuses a table that is not one for the lists of the field, or one for elements of the other kind.
func (c *childTable) checkFound(w *TableWrite, there TableColumns) error {
	for _, column := range c.write.Key {
		if !slices.Contains(there.Columns, column) {
			return tool.Errorf("table %q has no column %q, so it was not made for the lists of %s in table %q; rename the table, or describe it in children",
				c.write.Shown, column, c.field, w.Shown)
		}
	}
	if own := len(there.Columns) - len(c.write.Key); c.values && own > 0 && !slices.Contains(there.Columns, valueColumn) {
		return tool.Errorf("%s is not a map, but table %q has columns for maps and none for single values; make maps of the elements in the sink's fields, or leave %s out with exclude", c.seen, c.write.Shown, c.field)
	}
	return nil
}

// isDeeper reports whether a table is of lists in the elements of other lists: it has the place of those.
func isDeeper(w *TableWrite, tables []TableColumns, name string, columns []string) bool {
	begin := w.Table[len(w.Table)-1] + "_"
	return slices.ContainsFunc(tables, func(other TableColumns) bool {
		between := other.Table[len(other.Table)-1]
		return between != name && strings.HasPrefix(between, begin) && strings.HasPrefix(name, between+"_") && slices.Contains(columns, between+lineSuffix)
	})
}

// refuseListColumns refuses lists for which their parents' table has a column: which of the two is meant is unknown.
func refuseListColumns(ctx context.Context, tx StagingTx, w *TableWrite) error {
	there, err := tx.ReadColumns(ctx, w)
	if err != nil {
		return err
	}
	for _, child := range w.children {
		if !child.write.made {
			continue
		}
		if at := slices.IndexFunc(w.Rows, func(row map[string]any) bool { _, has := row[child.field]; return has }); at >= 0 &&
			slices.ContainsFunc(there, func(column Column) bool { return column.Name == child.field }) {
			return tool.Errorf("%s, %s has a list for the table %q, but table %q has a column of that name; drop the column, or keep lists in it by naming its type, as in `columns: {%s: %s}`",
				w.RowText(w.OriginalNumber(at)), child.field, child.write.Shown, w.Shown, child.field, columnNamed(there, child.field).Type)
		}
	}
	return nil
}

// refuseOther refuses an element with another value in a column that its table has for its parent or its place.
func (c *childTable) refuseOther(fields map[string]any, column string, value any, place func() string, at int) error {
	given, has := fields[column]
	if !c.write.made || !has || expression.Text(given) == expression.Text(value) {
		return nil
	}
	return tool.Errorf("%s[%d] has the field %q with %s, but table %q fills the column of that name with %s, from the row that the list was in; rename the field in the sink's fields",
		place(), at, column, tool.CutText(expression.Text(given), 100), c.write.Shown, expression.Text(value))
}
