package sqltool

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"reprise/activities/tool"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// The lists of maps in a field of a row may be rows of their own table (docs/how-to/load-nested-lists.md): children,
// written in the transaction of their parent, the row that has the field, and in its pass. So of several rows with
// one key, the children of the last row with the field count.

// childTable is the table of children in one field of a write's rows.
type childTable struct {
	field string // of the parent
	// write is a write to the table without rows. Its key, mode and contract apply to all writes of the table.
	write *TableWrite
	// with names the fields of the parent that are copied into a row, by column; linked are the columns that are
	// copied from the parent's key.
	with    map[string]string
	columns []string // of with, sorted
	linked  []string
	// position is the column that gets the place in the list, from 0; "" for none.
	position string
	// values says that the elements are no maps, and seen is the place of the first of them.
	values bool
	seen   string
}

// parentRows says which rows of a write have rows in tables of children.
type parentRows struct {
	children []*childTable // in the order of their fields
	links    []string      // columns by which the write's own rows are below others
	// reports says that the write may leave out rows. Their numbers are in skipped, and their children are not written.
	reports bool
	skipped map[int]bool
	// below are the figures of all writes to tables of children in the transaction, nil for a write without any.
	below *childFigures
}

// childFigures adds up what was done to the tables of children.
type childFigures struct {
	rows    *interpreter.Rows
	leftOut interpreter.RowCounts
	notes   []string
	done    map[string]WriteResult // by the names of the tables
}

// rowOrigin is where a row of a table of children comes from. Few rows are asked for it, so it has no text.
type rowOrigin struct {
	list *listOrigin
	at   int // in the list
}

// listOrigin is where a list of such rows comes from.
type listOrigin struct {
	field  string
	number int        // of the row that has the list
	above  *rowOrigin // of that row, nil for a row of the call
}

// row is the number of the row of the call.
func (o rowOrigin) row() int {
	if o.list.above != nil {
		return o.list.above.row()
	}
	return o.list.number
}

// path is the place within that row, such as items[2].
func (o rowOrigin) path() string {
	own := o.list.field + "[" + strconv.Itoa(o.at) + "]"
	if o.list.above != nil {
		return o.list.above.path() + "." + own
	}
	return own
}

// place is the number of the row and the places in its lists, such as 7.2.
func (o rowOrigin) place() string {
	above := strconv.Itoa(o.list.number)
	if o.list.above != nil {
		above = o.list.above.place()
	}
	return above + "." + strconv.Itoa(o.at)
}

// childKeys returns the keys of a field's value in children. depth is how deeply tables of children may be nested.
func childKeys(depth int) []playbook.Field {
	keys := []playbook.Field{
		{Name: "table", Kind: playbook.KindLiteral, Unquoted: true, Required: true, Doc: "The table for the elements of the list, with or without its schema."},
		{Name: "key", Kind: playbook.KindLiteral, Unquoted: true, Doc: "The column, or list of columns, that identifies its rows; required by mode upsert."},
		{Name: "with", Kind: playbook.KindMap, Required: true, Doc: "The columns that a row gets from its parent: a map from names of columns to names of the parent's fields. With mode upsert, all fields of the parent's key must be among them."},
		{Name: "position", Kind: playbook.KindLiteral, Unquoted: true, Doc: "The column for the position of the element in its list, from 0."},
		{Name: "columns", Kind: playbook.KindMap, Doc: "The types of columns that the sink creates, by name; other types are inferred from the rows."},
	}
	if depth > 1 {
		keys = append(keys, playbook.Field{
			Name: "children", Kind: playbook.KindMap, Each: childKeys(depth - 1),
			Doc: "The tables for lists in the elements themselves, by the names of their fields.",
		})
	}
	return keys
}

// mostNested is how deeply tables of children may be nested. The schema contains each depth.
const mostNested = 3

// readChildren reads children.
func (w *TableWrite) readChildren(in interpreter.ToolInput) error {
	fields, err := tool.MapField(in, "children")
	if err != nil || fields == nil {
		return err
	}
	if problem := w.refusesChildren(); problem != "" {
		return tool.ConfigErrorf("step %q: %s", in.Step, problem)
	}
	w.below = &childFigures{}
	if err := w.addChildren(in, "children", fields, &[]*TableWrite{w}); err != nil {
		return err
	}
	w.reports = w.name == modeInsertOrIgnore || w.sequence != ""
	return nil
}

// refusesChildren says why a write cannot have tables of children, "" if it can.
func (w *TableWrite) refusesChildren() string {
	switch {
	case w.name == modeInsertOrIgnore && len(w.Key) == 0:
		return "children cannot be used with " + playbook.IgnoringNeedsKey
	case w.where != nil && w.replace && len(w.Key) == 0:
		return "children cannot be used with " + playbook.ReplacingNeedsKey
	}
	return ""
}

// addChildren reads tables of children; path is where they are written. all are the tables so far.
func (w *TableWrite) addChildren(in interpreter.ToolInput, path string, fields map[string]any, all *[]*TableWrite) error {
	for _, field := range playbook.SortedKeys(fields) {
		own := path + "." + field
		spec, isMap := fields[field].(map[string]any)
		if !isMap {
			return tool.ConfigErrorf("step %q: %s must be a map with table and with, not a %s", in.Step, own, expression.TypeName(fields[field]))
		}
		child, err := w.readChild(in, own, spec)
		if err != nil {
			return err
		}
		child.field = field
		for _, other := range *all {
			if slices.Equal(other.Table, child.write.Table) {
				return tool.ConfigErrorf("step %q: the sink writes other rows to the table %q; use a separate table for %s", in.Step, child.write.Shown, own)
			}
		}
		*all = append(*all, child.write)
		w.children = append(w.children, child)
		below, err := tool.MapField(child.write.in, "children")
		if err != nil {
			return err
		}
		if err := child.write.addChildren(in, own, below, all); err != nil {
			return err
		}
		if child.write.reports = below != nil && w.name == modeInsertOrIgnore; child.write.reports && len(child.write.Key) == 0 {
			return tool.ConfigErrorf("step %q: %s needs key: the sink uses it to identify rows that were ignored, whose children are not written", in.Step, own)
		}
	}
	return nil
}

// readChild reads the description of one table of children.
func (w *TableWrite) readChild(in interpreter.ToolInput, path string, spec map[string]any) (*childTable, error) {
	own := in
	own.Fields = make(map[string]expression.Value, len(spec)+1)
	for name, value := range spec {
		own.Fields[name] = expression.Of(value)
	}
	own.Fields["schema_contract"] = in.Fields["schema_contract"]
	if in.Fields["path"].Data != nil { // part of the table's name in figures
		own.Fields["path"] = in.Fields["path"]
	}
	write, err := ParseTarget(own)
	if err != nil {
		return nil, tool.ConfigErrorf("step %q: %s needs table, the name of the table for the elements of the list", in.Step, path)
	}
	write.mode, write.unneeded, write.rejection, write.below = w.mode, w.unneeded, w.rejection, w.below
	write.settleRules = w.settleRules // of which readContract reads the child's own
	write.in = own
	stageChild(w, write, path)
	if err := write.readContract(own); err != nil {
		return nil, err
	}
	child := &childTable{write: write, with: map[string]string{}}
	if write.Key, err = tool.TextList(own, "key"); err != nil {
		return nil, err
	}
	if child.position, err = tool.TextField(own, "position"); err != nil {
		return nil, err
	}
	with, err := tool.MapField(own, "with")
	if err != nil {
		return nil, err
	}
	for _, column := range playbook.SortedKeys(with) {
		child.with[column] = expression.Text(with[column])
		child.columns = append(child.columns, column)
		if slices.Contains(w.Key, child.with[column]) {
			child.linked = append(child.linked, column)
		}
	}
	write.links = child.linked
	return child, child.checkIdentity(in, path, w)
}

// checkIdentity refuses a table of children whose rows could not be found again.
func (c *childTable) checkIdentity(in interpreter.ToolInput, path string, parent *TableWrite) error {
	if len(c.with) == 0 {
		return tool.ConfigErrorf("step %q: %s needs with, the columns that say to which parent a row belongs, such as {order_id: id}", in.Step, path)
	}
	if !parent.upsert && !parent.replace {
		return nil
	}
	if parent.upsert && len(c.write.Key) == 0 {
		return tool.ConfigErrorf("step %q: %s needs key, because mode upsert identifies rows by it", in.Step, path)
	}
	for _, key := range parent.Key {
		if !slices.Contains(slices.Collect(maps.Values(c.with)), key) {
			return tool.ConfigErrorf("step %q: with of %s must include %q, which is part of the parent's key: without it, rows of other parents would be deleted", in.Step, path, key)
		}
	}
	if _, nested := c.write.in.Fields["children"]; !nested {
		return nil
	}
	if len(c.write.Key) == 0 {
		return tool.ConfigErrorf("step %q: %s needs key, by which mode replace finds its own children", in.Step, path)
	}
	for _, column := range c.linked {
		if parent.upsert && !slices.Contains(c.write.Key, column) {
			return tool.ConfigErrorf("step %q: the key of %s must include %q: with it, the sink finds the children of a parent that is gone", in.Step, path, column)
		}
	}
	return nil
}

// positionColumns returns the column of the place in the list, as a list.
func (c *childTable) positionColumns() []string {
	if c.position == "" {
		return nil
	}
	return []string{c.position}
}

// leaveChildren leaves the fields of children out of the columns that are written. The rows keep them.
func (w *TableWrite) leaveChildren() {
	if len(w.children) == 0 {
		return
	}
	w.Columns = slices.DeleteFunc(slices.Clone(w.Columns), func(column string) bool {
		return slices.ContainsFunc(w.children, func(child *childTable) bool { return child.field == column })
	})
	w.uniform = !slices.ContainsFunc(w.Rows, func(row map[string]any) bool { return !hasAll(row, w.Columns) })
}

// hasLists reports whether a row has the fields of children that another one has.
func (p *parentRows) hasLists(row, other map[string]any) bool {
	return !slices.ContainsFunc(p.children, func(child *childTable) bool {
		_, has := row[child.field]
		_, had := other[child.field]
		return had && !has
	})
}

// childTables returns the tables of children, at any depth.
func (p *parentRows) childTables() (all []*TableWrite) {
	for _, child := range p.children {
		all = append(append(all, child.write), child.write.childTables()...)
	}
	return all
}

// ReportsRows reports whether the write has to know which of its rows were not written.
func (p *parentRows) ReportsRows() bool { return p.reports }

// beginReport forgets what was reported of a transaction before.
func (p *parentRows) beginReport() {
	if p.reports {
		p.skipped = map[int]bool{}
	}
}

// SkipRow keeps that a row was not written, by its number.
func (p *parentRows) SkipRow(number int) { p.skipped[number] = true }

// HasChildren reports whether rows of the write have rows below them in other tables.
func (p *parentRows) HasChildren() bool { return len(p.children) > 0 }

// AllTables returns the names of all tables that the write writes rows to, its own first.
func (w *TableWrite) AllTables() []*TableWrite { return append([]*TableWrite{w}, w.childTables()...) }

// withTables returns the table of a write that was not read yet, and the tables of its children.
func withTables(w *TableWrite, in interpreter.ToolInput) ([]*TableWrite, error) {
	read := *w
	if err := read.readMode(in); err != nil {
		return nil, err
	}
	if err := read.readChildren(in); err != nil {
		return nil, err
	}
	return append([]*TableWrite{w}, read.childTables()...), nil
}

// RowText returns the name of a row in messages, by its number.
func (s *rowSet) RowText(number int) string {
	if number > len(s.origins) {
		return "row " + expression.Text(number)
	}
	of := s.origins[number-1]
	return "row " + strconv.Itoa(of.row()) + ", " + of.path()
}

// RowsText returns the name of several rows in messages, by the first and the last number.
func (s *rowSet) RowsText(first, last int) string {
	if last > len(s.origins) {
		return fmt.Sprintf("rows %d to %d", first, last)
	}
	return s.RowText(first) + " to " + s.RowText(last)
}

// rowIdentity identifies a row in the table of rejected rows.
func (w *TableWrite) rowIdentity(number int) (operation string, row int, path string) {
	if number > len(w.origins) {
		return w.in.OperationKey, number, ""
	}
	of := w.origins[number-1]
	return strings.TrimSpace(w.in.OperationKey + " " + of.path()), of.row(), of.path()
}
