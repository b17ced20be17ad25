package sqltool

import (
	"context"
	"maps"
	"slices"

	"reprise/activities/tool"
	"reprise/interpreter"
	"reprise/interpreter/expression"
)

// fromRows replaces, in a planned statement, a column type that depends on rows which are not known yet.
const fromRows = "…"

// PlanWrite predicts what a write would do to its table in its present form. It uses the code of SettleWrite and changes
// nothing. Without in.Args and in.Result the rows are unknown. The error is the one that the write would
// return.
func PlanWrite(ctx context.Context, tx StagingTx, in interpreter.ToolInput) (plan interpreter.TablePlan, err error) {
	if in.Staging == nil && in.Place != "" {
		in.Staging = &interpreter.Staging{} // a run names the call or loop whose rows are published together
	}
	w, err := planWrite(in)
	if err != nil {
		return plan, err
	}
	sampled := in.Args != nil || in.Result != nil
	if w, err = FindNested(ctx, tx, w); err != nil {
		return plan, err
	}
	plan, err = planTable(ctx, tx, w, sampled)
	if w.table != nil {
		plan.Rejected = w.table.Shown
	}
	if err != nil {
		return plan, err
	}
	plan.Children, err = planChildren(ctx, tx, w, sampled)
	return plan, err
}

// planChildren predicts what a write would do to its tables of children.
func planChildren(ctx context.Context, tx StagingTx, w *TableWrite, sampled bool) (plans []interpreter.TablePlan, err error) {
	for _, child := range w.children {
		var parents []int
		for i, row := range w.Rows {
			if _, has := row[child.field]; has {
				parents = append(parents, i)
			}
		}
		write, err := child.rowsOf(w, w.pickRows(parents), make([]map[string]any, len(parents)))
		if err != nil {
			return plans, err
		}
		if write.made && len(write.Rows) == 0 && sampled {
			continue // it is made once it has rows
		}
		if len(write.Rows) == 0 {
			for _, column := range slices.Concat(child.columns, child.positionColumns()) {
				write.Columns = appendNew(write.Columns, column)
				if write.types[column] == "" {
					write.types[column] = fromRows
				}
			}
		}
		plan, err := planTable(ctx, tx, write, sampled && len(write.Rows) > 0)
		if err == nil {
			plan.Children, err = planChildren(ctx, tx, write, sampled)
		}
		if plans = append(plans, plan); err != nil {
			return plans, err
		}
	}
	return plans, nil
}

// planTable predicts what a write would do to one table.
func planTable(ctx context.Context, tx StagingTx, w *TableWrite, sampled bool) (plan interpreter.TablePlan, err error) {
	plan = interpreter.TablePlan{Name: w.Shown, Mode: w.name, Key: w.Key}
	plan.ReplaceWhere, plan.MaxDelete = w.planEnd()
	if err := w.checkNames(tx.Dialect()); err != nil {
		return plan, err
	}
	table, err := tx.ReadColumns(ctx, w)
	if err != nil {
		return plan, err
	}
	there, err := tx.LookUp(ctx, w)
	if err != nil {
		return plan, err
	}
	plan.Exists, plan.Qualified, plan.Empty = len(table) > 0, there.Name, there.Exists && !there.HasRow
	if plan.Exists && w.IsStaged() {
		inspected := *w
		if w.contract.columns == evolve {
			inspected.where = nil // rows may have its column
		}
		if _, err := (&stage{tx: tx, write: &inspected}).inspectTarget(ctx); err != nil {
			return plan, err
		}
	}
	evolves := plan.Exists && (w.contract.columns == evolve || w.contract.dataType == evolve && tx.Dialect().Widen != "")
	plan.FromRows = evolves || !plan.Exists && w.contract.tables == evolve
	if !sampled {
		plan.DDL, err = w.changesWithoutRows(ctx, tx, table)
		return plan, err
	}
	rows := len(w.Rows)
	plan.Rows = &rows
	if rows == 0 {
		return plan, nil
	}
	settled, columns, err := w.settleColumns(ctx, tx)
	if settled == nil || err != nil {
		return plan, err
	}
	plan.DDL = settled.changes
	err = settled.discardMisfits(ctx, tx, columns)
	if left := settled.leftOut; left != (interpreter.RowCounts{}) {
		plan.LeftOut = &left
	}
	return plan, err
}

// planEnd returns what will be replaced, or deleted, at the end.
func (s *staging) planEnd() (replaced *interpreter.ReplacedRows, mostDeleted *float64) {
	if where := s.where; where != nil {
		replaced = &interpreter.ReplacedRows{Column: where.column}
		if where.from != nil {
			replaced.From = expression.Text(where.from)
		}
		if where.to != nil {
			replaced.To = expression.Text(where.to)
		}
	}
	if s.deleteMissing {
		mostDeleted = &s.maxDelete
	}
	return replaced, mostDeleted
}

// CheckUnique refuses a write that finds existing rows by a key that no index of the table makes unique; indexes are
// the columns of its unique indexes.
func CheckUnique(plan interpreter.TablePlan, indexes [][]string) error {
	finds := plan.Mode == ModeUpsert || plan.Mode == modeInsertOrIgnore && len(plan.Key) > 0
	if !finds || !plan.Exists {
		return nil
	}
	key := slices.Sorted(slices.Values(plan.Key))
	for _, columns := range indexes {
		if slices.Equal(key, slices.Sorted(slices.Values(columns))) {
			return nil
		}
	}
	return tool.Errorf("writing to table %q: %s", plan.Name, neededIndex(plan.Mode, plan.Key))
}

// NeededIndex says which index the table of a write needs for its ON CONFLICT clause.
func NeededIndex(w *TableWrite) string { return neededIndex(w.name, w.Key) }

func neededIndex(mode string, key []string) string {
	return "mode " + mode + " needs a primary key or unique index on exactly (" + QuoteNames(key) + ")"
}

// changesWithoutRows predicts the schema changes before there are rows: for a new table, the key's
// columns and those with declared types.
func (w *TableWrite) changesWithoutRows(ctx context.Context, tx SchemaTx, table []Column) ([]interpreter.DDL, error) {
	known := *w
	known.planned, known.types = true, maps.Clone(w.types)
	for _, column := range w.Key {
		if known.types[column] == "" {
			known.types[column] = fromRows
		}
	}
	if len(table) == 0 && w.contract.tables == evolve && len(known.types) == 0 {
		return nil, nil
	}
	known.Columns = slices.Clone(w.Columns)
	if err := known.conformToContract(tx.Dialect(), table); err != nil {
		return known.changes, err
	}
	err := known.makeSchema(ctx, tx, table)
	return known.changes, err
}

// RowsOfTable are the rows that a write has for one of its tables.
type RowsOfTable struct {
	Table string // as messages name it
	Key   []string
	Rows  []any
}

// RowsOfTables returns the rows of a write for its table, without the lists that become tables of their own, and then those for each of
// these. It knows no database: a row of a list has the key of its parent as the parent gives it. The error is the one that the write would return.
func RowsOfTables(in interpreter.ToolInput) ([]RowsOfTable, error) {
	w, err := planWrite(in)
	if err != nil {
		return nil, err
	}
	return addRowsOfTables(w, nil)
}

// addRowsOfTables adds the rows of a write and of those below it.
func addRowsOfTables(w *TableWrite, all []RowsOfTable) ([]RowsOfTable, error) {
	own := RowsOfTable{Table: w.Shown, Key: w.Key, Rows: make([]any, len(w.Rows))}
	for i, row := range w.Rows {
		plain := maps.Clone(row)
		for _, child := range w.children {
			delete(plain, child.field)
		}
		own.Rows[i] = plain
	}
	all = append(all, own)
	for _, child := range w.children {
		write, err := child.rowsOf(w, w, child.linksOf(w.Rows))
		if err == nil {
			all, err = addRowsOfTables(write, all)
		}
		if err != nil {
			return all, err
		}
	}
	return all, nil
}
