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

// FailedWrite is the write that an error of a write is about: that one, or one to a table of children.
func FailedWrite(w *TableWrite, err error) *TableWrite {
	if child, is := errors.AsType[*ChildError](err); is {
		return child.Write
	}
	return w
}

// childRows are the rows of a table of children by some columns, of which those stay whose key is among others.
type childRows struct {
	by    []string
	given []map[string]any // by the columns of by
	key   []string
	kept  []map[string]any // by the columns of key
}

// writeChildren writes what the rows of a turn have in their fields of children. A row that the database has refused has none, and one
// without the field leaves the rows below it as they are.
func writeChildren(ctx context.Context, tx StagingTx, w, turn *TableWrite) error {
	for _, child := range w.children {
		var parents []int
		for i, row := range turn.Rows {
			if _, has := row[child.field]; has && !slices.Contains(w.refused, turn.Number(i)) {
				parents = append(parents, i)
			}
		}
		if len(parents) == 0 {
			continue
		}
		write, err := child.rowsOf(w, turn, parents)
		if err == nil {
			err = child.put(ctx, tx, w, write, pickFrom(turn.Rows, parents))
		}
		if err != nil {
			return asChildError(write, err)
		}
	}
	if w.HasChildren() {
		_, err := tx.Columns(ctx, w) // a transaction knows one table
		return err
	}
	return nil
}

func asChildError(write *TableWrite, err error) error {
	if _, is := errors.AsType[*ChildError](err); is || write == nil {
		return err
	}
	return &ChildError{write, err}
}

// rowsOf is the write of the rows that some rows of a turn have in the field.
func (c *childTable) rowsOf(w, turn *TableWrite, parents []int) (*TableWrite, error) {
	write := *c.write
	write.finding, write.repeats = w.finding, w.repeats
	write.types = maps.Clone(c.write.types)
	for column, field := range c.with {
		if typed := w.TypeOf(field); write.types[column] == "" && typed != "" {
			write.types[column] = typed
		}
	}
	for _, i := range parents {
		if err := c.addRows(&write, turn, i); err != nil {
			return nil, err
		}
	}
	write.readColumns()
	write.given = len(write.Rows)
	return &write, nil
}

// addRows adds the elements that a row has in the field.
func (c *childTable) addRows(write, turn *TableWrite, i int) error {
	parent := turn.Rows[i]
	place := turn.RowText(turn.Number(i)) + ", " + c.field
	elements, isList := parent[c.field].([]any)
	if !isList && parent[c.field] != nil {
		elements = []any{parent[c.field]}
	}
	for at, element := range elements {
		fields, isMap := element.(map[string]any)
		if !isMap {
			return tool.Errorf("%s[%d] is a %s; rows of table %q are made of maps of columns to values", place, at, expression.TypeName(element), write.Shown)
		}
		row := make(map[string]any, len(fields)+len(c.with)+1)
		maps.Copy(row, fields)
		for _, column := range c.columns {
			value, has := parent[c.with[column]]
			if !has {
				return tool.Errorf("%s: the row has no %q, which table %q gets as %q", place, c.with[column], write.Shown, column)
			}
			row[column] = base64Of(value)
		}
		if c.position != "" {
			row[c.position] = at
		}
		for _, key := range write.Key {
			if row[key] == nil && write.upsert {
				return tool.Errorf("%s[%d] has no %q, which is in the key of table %q", place, at, key, write.Shown)
			}
		}
		origin := rowOrigin{row: turn.Number(i), path: fmt.Sprintf("%s[%d]", c.field, at)}
		if origin.row <= len(turn.origins) {
			above := turn.origins[origin.row-1]
			origin = rowOrigin{row: above.row, path: above.path + "." + origin.path}
		}
		write.Rows, write.origins = append(write.Rows, row), append(write.origins, origin)
	}
	return nil
}

// put writes rows of children: in mode upsert those of their parents that are gone are deleted first.
func (c *childTable) put(ctx context.Context, tx StagingTx, w, write *TableWrite, parents []map[string]any) error {
	settled, err := Settle(ctx, tx, write)
	if err != nil {
		return err
	}
	columns, err := tx.Columns(ctx, settled)
	if err != nil {
		return err
	}
	var done WriteResult
	if w.upsert && len(columns) > 0 {
		all := &childRows{by: c.linked, given: c.links(parents), key: write.Key, kept: keysOfRows(write.Rows, write.Key)}
		if done.deleted, err = c.deleteBelow(ctx, tx, all); err != nil {
			return err
		}
		if _, err := tx.Columns(ctx, settled); err != nil { // a transaction knows one table
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
	w.below.add(settled, done.Plus(written))
	return nil
}

// links are the keys of parents as the columns of their children have them.
func (c *childTable) links(parents []map[string]any) []map[string]any {
	links := make([]map[string]any, len(parents))
	for i, parent := range parents {
		links[i] = make(map[string]any, len(c.linked))
		for _, column := range c.linked {
			links[i][column] = base64Of(parent[c.with[column]])
		}
	}
	return links
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
func deleteChildren(ctx context.Context, tx StagingTx, w, turn *TableWrite) error {
	if len(turn.Deletes) == 0 {
		return nil
	}
	for _, child := range w.children {
		deleted, err := child.deleteBelow(ctx, tx, &childRows{by: child.linked, given: child.links(turn.Deletes)})
		if err != nil {
			return asChildError(child.write, err)
		}
		w.below.add(child.write, WriteResult{deleted: deleted})
	}
	if w.HasChildren() {
		_, err := tx.Columns(ctx, w) // a transaction knows one table
		return err
	}
	return nil
}

// deleteBelow deletes rows of the table but for those that are kept, after those below them.
func (c *childTable) deleteBelow(ctx context.Context, tx StagingTx, all *childRows) (int64, error) {
	for _, grandchild := range c.write.children {
		deleted, err := grandchild.deleteBelow(ctx, tx, grandchild.under(all))
		if err != nil {
			return 0, asChildError(grandchild.write, err)
		}
		c.write.below.add(grandchild.write, WriteResult{deleted: deleted})
	}
	write := *c.write
	columns, err := tx.Columns(ctx, &write)
	if err != nil || len(columns) == 0 {
		return 0, err
	}
	write.tableColumns = columns
	given, kept := write.asStored(tx.Dialect(), all.by, all.given), write.asStored(tx.Dialect(), all.key, all.kept)
	if len(given) == 0 {
		return 0, nil
	}
	for _, column := range slices.Concat(all.by, all.key) {
		if columnNamed(columns, column).Type == "" && !slices.ContainsFunc(columns, func(one Column) bool { return one.Name == column }) {
			return 0, write.lacksColumn(columns, column, "")
		}
	}
	deleted, err := tx.DeleteBelow(ctx, &write, RowsBelow{By: all.by, Given: given, Key: all.key, Kept: kept})
	if deleted == 0 || err != nil {
		return 0, err
	}
	readers, err := others(ctx, tx, &write)
	for _, reader := range readers {
		if err := recordUnknown(ctx, tx, reader, "another load has deleted rows of it"); err != nil {
			return 0, err
		}
	}
	return deleted, err
}

// RowsBelow are the rows of a table that have the values of a given row in the columns By, but for those that have the values of a kept
// one in the columns Key.
type RowsBelow struct {
	By, Key     []string
	Given, Kept []map[string]any
}

// under are the rows of the table that are below rows of the table of their parents.
func (c *childTable) under(parents *childRows) *childRows {
	own := &childRows{}
	own.by, own.given = c.renamed(parents.by, parents.given)
	own.key, own.kept = c.renamed(parents.key, parents.kept)
	return own
}

// renamed are rows of parents by the columns that their children have for theirs.
func (c *childTable) renamed(columns []string, rows []map[string]any) (names []string, renamed []map[string]any) {
	of := map[string]string{}
	for _, column := range slices.Backward(c.columns) {
		of[c.with[column]] = column
	}
	for _, column := range columns {
		names = append(names, of[column])
	}
	for _, row := range rows {
		own := make(map[string]any, len(columns))
		for _, column := range columns {
			own[of[column]] = row[column]
		}
		renamed = append(renamed, own)
	}
	return names, renamed
}

// asStored are rows of some columns in the forms in which these return them. A row that does not fit is of no row of the table.
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

// add adds what was done to a table.
func (f *childFigures) add(w *TableWrite, done WriteResult) {
	f.rows = f.rows.Plus(figuresOf(w, done))
	f.leftOut = *f.leftOut.Plus(&w.leftOut)
}
