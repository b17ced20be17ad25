package file

import (
	"bytes"
	"maps"
	"slices"

	"reprise/activities/format"
	"reprise/activities/tool"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
)

// fieldColumns names the columns of what a sink writes.
const fieldColumns = "columns"

// readColumns reads the columns that the author gives: their names, or for Parquet their types by names.
func readColumns(in interpreter.ToolInput, as string) (named []string, typed []format.ParquetColumn, err error) {
	types, isMap := in.Fields[fieldColumns].Data.(map[string]any)
	if !isMap {
		named, err = tool.TextList(in, fieldColumns)
		return named, nil, err
	}
	if as != format.Parquet {
		return nil, nil, tool.ConfigErrorf("step %q: columns is a map of types, which only Parquet has; list the names instead, or set format: parquet", in.Step)
	}
	for _, name := range slices.Sorted(maps.Keys(types)) {
		column, err := format.NewParquetColumn(name, expression.Text(types[name]))
		if err != nil {
			return nil, nil, tool.ConfigErrorf("step %q: the type of column %q: %w", in.Step, name, err)
		}
		typed = append(typed, column)
	}
	return nil, typed, nil
}

// columnTypes returns the types of the columns of Parquet, as manifests have them.
func (w *objectWrite) columnTypes() map[string]string {
	if w.table == nil {
		return nil
	}
	types := make(map[string]string, len(w.table))
	for _, column := range w.table {
		types[column.Name] = column.Type()
	}
	return types
}

// makeParquet makes the bytes of the rows.
func (w *objectWrite) makeParquet(last manifest) error {
	before := w.table
	kinds := []map[string]format.CellKind{}
	for part := range slices.Chunk(w.alike(), format.RowsOfGroup) {
		kinds = append(kinds, format.KindsOf(part))
	}
	if err := w.settleTable(last, kinds, func(int) bool { return true }); err != nil {
		return err
	}
	if w.content != nil && slices.Equal(before, w.table) {
		return nil
	}
	if w.dropMisfits(); len(w.rows) == 0 {
		return nil
	}
	var content bytes.Buffer
	table, err := format.NewParquetWriter(&content, w.table, w.Compression)
	if err == nil {
		err = table.WriteRows(w.rows)
	}
	if err == nil {
		err = table.Close()
	}
	w.content = content.Bytes()
	return err
}

// settleTable decides which columns of which types the files have: those of the manifest before, those that the author gives, and where neither
// has any, those of the rows. Their types follow from the first rows, up to the part for which isEnough; a column that is nil in all of them is as the rows
// behind them say, and one that is nil in all rows is left out.
func (w *objectWrite) settleTable(last manifest, kinds []map[string]format.CellKind, isEnough func(part int) bool) error {
	table, err := w.tableBefore(last)
	if err != nil {
		return err
	}
	given := len(table) > 0
	for _, column := range w.typed {
		table, err = addColumn(table, column)
		if err != nil {
			return err
		}
	}
	found, settled := map[string]format.CellKind{}, map[string]bool{}
	for i, part := range kinds {
		for name, kind := range part {
			if !settled[name] {
				found[name] = found[name].MergeWith(kind)
			}
		}
		if isEnough(i) {
			for name := range found {
				settled[name] = true
			}
		}
	}
	names := w.named
	if names == nil && !given {
		names = slices.Sorted(maps.Keys(found))
	}
	for _, name := range names {
		has := slices.ContainsFunc(table, func(column format.ParquetColumn) bool { return column.Name == name })
		if column, ok := found[name].ParquetColumn(name); ok && !has {
			table = append(table, column)
		}
	}
	w.table, w.columns = table, lists.Map(table, func(column format.ParquetColumn) string { return column.Name })
	return nil
}

// tableBefore returns the columns of the files that stay.
func (w *objectWrite) tableBefore(last manifest) (table []format.ParquetColumn, err error) {
	if w.overwrite {
		return nil, nil
	}
	for _, name := range last.Columns {
		column, err := format.NewParquetColumn(name, last.Types[name])
		if err != nil {
			return nil, tool.Errorf("its manifest %s has a column %q of an unknown type: %w", w.manifestKey(last.Number), name, err)
		}
		table = append(table, column)
	}
	return table, nil
}

// addColumn adds a column that the author gives, unless it is there.
func addColumn(table []format.ParquetColumn, column format.ParquetColumn) ([]format.ParquetColumn, error) {
	for _, before := range table {
		if before.Name != column.Name {
			continue
		}
		if before != column {
			return nil, tool.Errorf("columns has %s for %q, which is %s in the existing files; use another path, or mode: overwrite", column.Type(), column.Name, before.Type())
		}
		return table, nil
	}
	return append(slices.Clip(table), column), nil
}

// checkTyped finds rows that the columns of the author have no place for. Of the other columns only publishing knows the types.
func (w *objectWrite) checkTyped() error {
	return format.CheckRows(w.rows, w.typed)
}
