package sqltool

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"reprise/activities/tool"
	"reprise/interpreter/expression"
)

// ChildError is the error of a write to a table of children.
type ChildError struct {
	Write *TableWrite
	err   error
}

func (e *ChildError) Error() string { return e.err.Error() }

func (e *ChildError) Unwrap() error { return e.err }

// FailedWrite returns the write that an error of a write is about: that one, or one to a table of children.
func FailedWrite(w *TableWrite, err error) *TableWrite {
	if child, is := errors.AsType[*ChildError](err); is {
		return child.Write
	}
	return w
}

// writeChildren writes what the rows of a part of the write have in their fields of children. A row that was refused or skipped has none, and one
// without the field leaves the rows below it as they are.
func writeChildren(ctx context.Context, tx StagingTx, w, part *TableWrite) error {
	for _, child := range w.children {
		var parents []int
		for i, row := range part.Rows {
			if _, has := row[child.field]; has && !slices.Contains(w.refused, part.OriginalNumber(i)) && !w.skipped[part.OriginalNumber(i)] {
				parents = append(parents, i)
			}
		}
		if len(parents) == 0 {
			continue
		}
		if err := child.writeBelow(ctx, tx, w, part.pickRows(parents)); err != nil {
			return err
		}
	}
	if w.HasChildren() {
		_, err := tx.ReadColumns(ctx, w) // a transaction knows one table
		return err
	}
	return nil
}

// refuseOrphans refuses to write children where the database has kept some of their parents out without an error.
func refuseOrphans(w *TableWrite, written WriteResult) error {
	if written.unwritten == 0 || !w.HasChildren() {
		return nil
	}
	return tool.Errorf("%sthe database left out %d of the rows, because of a trigger, a rule or ON CONFLICT IGNORE, and does not say which: "+
		"their children would have no parent, so nothing was written. Filter such rows out first, for example with where on the step", w.DescribeAction(), written.unwritten)
}

// writeBelow writes the rows below parents that are written.
func (c *childTable) writeBelow(ctx context.Context, tx StagingTx, w, parents *TableWrite) error {
	links, err := c.findLinks(ctx, tx, w, parents.Rows)
	if err != nil {
		return err
	}
	write, err := c.rowsOf(w, parents, links)
	if err == nil && write.nests {
		err = refuseListColumns(ctx, tx, write)
	}
	if err == nil {
		err = c.writeChildren(ctx, tx, w, write, c.givenBelow(parents.Rows, links))
	}
	return asChildError(write, err)
}

func asChildError(write *TableWrite, err error) error {
	if _, is := errors.AsType[*ChildError](err); is || write == nil || err == nil {
		return err
	}
	return &ChildError{write, err}
}

// countRows is the write of the rows that parents have in the field, with the links of their parents.
func (c *childTable) rowsOf(w, parents *TableWrite, links []map[string]any) (*TableWrite, error) {
	write := *c.write
	write.finding, write.repeats = w.finding, w.repeats
	write.types = maps.Clone(c.write.types)
	for column, field := range c.with {
		if typed := w.TypeOf(field); write.types[column] == "" && typed != "" {
			write.types[column] = typed
		}
	}
	for i := range parents.Rows {
		if err := c.addRows(&write, parents, i, links[i]); err != nil {
			return nil, err
		}
	}
	write.readColumns(nil)
	write.given = len(write.Rows)
	return &write, nil
}

// addRows adds the elements that a row has in the field.
func (c *childTable) addRows(write, parents *TableWrite, i int, links map[string]any) error {
	parent := parents.Rows[i]
	place := func() string { return parents.RowText(parents.OriginalNumber(i)) + ", " + c.field }
	elements, isList := parent[c.field].([]any)
	if element, isMap := parent[c.field].(map[string]any); isMap {
		elements = []any{element}
	} else if !isList && parent[c.field] != nil {
		return tool.Errorf("%s is a %s, but table %q needs a list of maps there%s", place(), expression.TypeName(parent[c.field]), write.Shown, c.listHint(parent[c.field]))
	}
	list := &listOrigin{field: c.field, number: parents.OriginalNumber(i)}
	if list.number <= len(parents.origins) {
		list.above = &parents.origins[list.number-1]
	}
	for at, element := range elements {
		fields, isMap := element.(map[string]any)
		if !isMap && c.values {
			fields, isMap = map[string]any{valueColumn: element}, true
		}
		if !isMap {
			return tool.Errorf("%s[%d] is a %s; a row of table %q must be a map of columns to values", place(), at, expression.TypeName(element), write.Shown)
		}
		row := make(map[string]any, len(fields)+len(c.with)+1)
		maps.Copy(row, fields)
		for _, column := range c.columns {
			value, has := parent[c.with[column]]
			if !has {
				return tool.Errorf("%s: the row has no %q, which table %q gets as %q", place(), c.with[column], write.Shown, column)
			}
			if link, is := links[column]; is {
				value = link
			}
			row[column] = base64Of(value)
			if err := c.refuseOther(fields, column, row[column], place, at); err != nil {
				return err
			}
		}
		if c.position != "" {
			row[c.position] = at
			if err := c.refuseOther(fields, c.position, at, place, at); err != nil {
				return err
			}
		}
		for _, key := range write.Key {
			if row[key] == nil && (write.upsert || write.replace || write.reports) {
				return tool.Errorf("%s[%d] has no %q, which is part of the key of table %q", place(), at, key, write.Shown)
			}
		}
		write.Rows, write.origins = append(write.Rows, row), append(write.origins, rowOrigin{list, at})
	}
	return nil
}

// listHint says how to make a list of a text that has one.
func (c *childTable) listHint(value any) string {
	if _, isText := value.(string); !isText {
		return ""
	}
	return fmt.Sprintf("; if it is JSON, parse it in the sink's fields: `fields: {%s: \"{{ fromJSON(row.%s) }}\"}`", c.field, c.field)
}

// writeChildren writes children: in mode upsert, children that a parent no longer has are deleted first.
func (c *childTable) writeChildren(ctx context.Context, tx StagingTx, w, write *TableWrite, below []map[string]any) error {
	settled, err := SettleWrite(ctx, tx, write)
	if err != nil {
		return err
	}
	if write.IsStaged() {
		return c.stageRows(ctx, tx, w, write, settled)
	}
	columns, err := tx.ReadColumns(ctx, settled)
	if err != nil {
		return err
	}
	var done WriteResult
	if w.upsert && len(columns) > 0 {
		if done.deleted, err = c.deleteBelow(ctx, tx, RowsBelow{By: c.linked, Given: below, Key: write.Key}, write.Rows); err != nil {
			return err
		}
		if _, err := tx.ReadColumns(ctx, settled); err != nil { // a transaction knows one table
			return err
		}
	}
	settled.tableColumns = columns
	written, err := WriteRows(ctx, tx, settled)
	if err != nil {
		return err
	}
	if err := recordNewer(ctx, tx, settled); err != nil {
		return err
	}
	w.below.addResult(settled, done.Plus(written))
	return nil
}

func keysOfRows(rows []map[string]any, key []string) []map[string]any {
	keys := make([]map[string]any, len(rows))
	for i, row := range rows {
		keys[i] = make(map[string]any, len(key))
		for _, column := range key {
			keys[i][column] = row[column]
		}
	}
	return keys
}

// deleteChildren deletes what is below rows that are deleted by their keys.
func deleteChildren(ctx context.Context, tx StagingTx, w, part *TableWrite) error {
	deletes := part.Deletes
	if w.sequence != "" && w.HasChildren() {
		keys, err := tx.StoredKeys(ctx, w, deletes, true)
		if err != nil {
			return err
		}
		deletes = nil
		for i, key := range keys {
			if key != nil {
				deletes = append(deletes, part.Deletes[i])
			}
		}
	}
	for _, child := range w.children {
		links, err := child.findLinks(ctx, tx, w, deletes)
		if err != nil {
			return err
		}
		if err := child.deleteUnder(ctx, tx, child.givenBelow(deletes, links)); err != nil {
			return err
		}
	}
	if w.HasChildren() {
		_, err := tx.ReadColumns(ctx, w) // a transaction knows one table
		return err
	}
	return nil
}

// deleteUnder deletes all rows below others, by the values of their links.
func (c *childTable) deleteUnder(ctx context.Context, tx StagingTx, given []map[string]any) error {
	deleted, err := c.deleteBelow(ctx, tx, RowsBelow{By: c.linked, Given: given}, nil)
	if err != nil {
		return asChildError(c.write, err)
	}
	c.write.below.addResult(c.write, WriteResult{deleted: deleted})
	return nil
}

// deleteBelow deletes rows of the table, after those below them; rows with the key of a staying one stay. New parents have none to delete, so it
// asks first, without the keys of what stays, which are most of the work.
func (c *childTable) deleteBelow(ctx context.Context, tx StagingTx, rows RowsBelow, staying []map[string]any) (int64, error) {
	write := *c.write
	columns, err := tx.ReadColumns(ctx, &write)
	if err != nil || len(columns) == 0 {
		return 0, err
	}
	write.tableColumns = columns
	rows.Given = write.asStored(tx.Dialect(), rows.By, rows.Given)
	if len(rows.Given) == 0 {
		return 0, nil
	}
	for _, column := range slices.Concat(rows.By, rows.Key) {
		if columnNamed(columns, column).Type == "" && !slices.ContainsFunc(columns, func(one Column) bool { return one.Name == column }) {
			return 0, write.lacksColumn(columns, column, "")
		}
	}
	if has, err := tx.HasBelow(ctx, &write, rows); !has || err != nil {
		return 0, err
	}
	rows.Except = write.asStored(tx.Dialect(), rows.Key, keysOfRows(staying, rows.Key))
	if err := deleteGrandchildren(ctx, tx, &write, rows); err != nil {
		return 0, err
	}
	deleted, err := tx.DeleteBelow(ctx, &write, rows)
	if deleted == 0 || err != nil {
		return 0, err
	}
	readers, err := otherNewerTables(ctx, tx, &write)
	for _, reader := range readers {
		if err := recordUnknown(ctx, tx, reader, "another load has deleted rows of it"); err != nil {
			return 0, err
		}
	}
	return deleted, err
}

// deleteGrandchildren deletes what is below rows that are about to be deleted.
func deleteGrandchildren(ctx context.Context, tx StagingTx, w *TableWrite, rows RowsBelow) error {
	if !w.HasChildren() {
		return nil
	}
	keys, err := tx.KeysBelow(ctx, w, rows)
	if len(keys) == 0 || err != nil {
		return err
	}
	for _, grandchild := range w.children {
		if err := grandchild.deleteUnder(ctx, tx, grandchild.linksOf(keys)); err != nil {
			return err
		}
	}
	_, err = tx.ReadColumns(ctx, w) // a transaction knows one table
	return err
}

// RowsBelow are the rows of a table whose columns By have given values, except those whose columns Key have the
// values of a row of Except.
type RowsBelow struct {
	By, Key       []string
	Given, Except []map[string]any
}

// asStored returns rows of some columns in the form in which the database returns them. A row that does not fit
// cannot be in the table.
func (w *TableWrite) asStored(d *Dialect, columns []string, rows []map[string]any) []map[string]any {
	readers := w.columnReaders(d, columns)
	fit := make([]map[string]any, 0, len(rows))
	for _, row := range rows {
		own := maps.Clone(row)
		if fitRow(own, readers) {
			fit = append(fit, own)
		}
	}
	stored := *w
	stored.Columns, stored.Rows, stored.uniform = columns, fit, true
	stored.readBytes(w.tableColumns)
	return stored.Rows
}

// addResult adds what was done to a table.
func (f *childFigures) addResult(w *TableWrite, done WriteResult) {
	if f.done == nil {
		f.done = map[string]WriteResult{}
	}
	f.done[w.Shown] = f.done[w.Shown].Plus(done)
	f.rows = f.rows.Plus(figuresOf(w, done))
	f.leftOut = *f.leftOut.Plus(&w.leftOut)
	f.leftOut.UnwrittenRows += int(done.unwritten)
	f.leftOut.UndeletedRows += int(done.undeleted)
	for _, note := range w.notes {
		f.notes = appendNew(f.notes, note)
	}
}
