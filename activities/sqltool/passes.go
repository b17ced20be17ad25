package sqltool

import (
	"cmp"
	"slices"

	"reprise/interpreter/lists"
)

// Rows with one key in a write have the effect of separate writes: the later replaces the earlier, unless it is older
// by sequence_by, and columns that it lacks keep their values. A refused or discarded row has no effect. One
// statement cannot change a row of the table twice, so such rows are written in several passes.

// isOlder reports whether a row is older than another one with its key.
func (r *mergeKey) isOlder(row, than map[string]any) bool {
	return r.sequence != "" && r.order.compareValues(row[r.sequence], than[r.sequence]) < 0
}

// coversRow reports whether a row has all that another one has. One that lacks sequence_by is as one with nil.
func (w *TableWrite) coversRow(row, other map[string]any) bool {
	return w.hasLists(row, other) && (w.uniform || !slices.ContainsFunc(w.Columns, func(column string) bool {
		value, had := other[column]
		_, has := row[column]
		return had && !has && (column != w.sequence || value != nil)
	}))
}

// withoutReplaced removes rows that a later row of the write replaces completely, as far as that is known without the
// database. They stay if a row may be refused, because then the one before it counts, and if rows are deleted,
// because then the order matters.
func (w *TableWrite) withoutReplaced(keys writtenKeys) *TableWrite {
	if !w.upsert || len(w.Deletes) > 0 || !keys.repeat {
		return w
	}
	last, lost := make(map[string]int, len(w.Rows)), make([]bool, len(w.Rows))
	repeats := false
	for i, row := range w.Rows {
		if w.isUnfit(i) { // as if it were not there
			continue
		}
		key := keys.texts[i]
		before, known := last[key]
		switch {
		case !known:
		case w.HasRejectTable():
			repeats = true
		case w.isOlder(row, w.Rows[before]):
			lost[i] = true
			continue
		case w.coversRow(row, w.Rows[before]):
			lost[before] = true
		default:
			repeats = true
		}
		last[key] = i
	}
	rest := w.withoutRows(lost)
	rest.repeats = w.repeats || repeats
	return rest
}

// MayRepeatKeys reports whether several rows may have one key, or rows are both written and deleted.
func (w *TableWrite) MayRepeatKeys() bool {
	return w.repeats || len(w.Deletes) > 0 && len(w.Rows) > 0
}

// WithRepeatedKeys returns the write where the database has found that several rows have one key.
func (w *TableWrite) WithRepeatedKeys() *TableWrite {
	repeating := *w
	repeating.repeats = true
	return &repeating
}

// change is what a write does to the row with a key.
type change struct {
	row     int // of Rows, or of Deletes
	number  int // of the call
	deletes bool
}

func (w *TableWrite) rowOf(c change) map[string]any {
	if c.deletes {
		return w.Deletes[c.row]
	}
	return w.Rows[c.row]
}

// PassesOf splits the write into passes, in each of which a key occurs once. keys has a number for the key of each row,
// then of each delete: equal keys have equal numbers, and the numbers are in the order of the keys.
func (w *TableWrite) PassesOf(keys []int) []*TableWrite {
	changes := make([][]change, len(keys)) // by the numbers of keys
	for _, one := range w.changesInOrder() {
		at := one.row
		if one.deletes {
			at += len(w.Rows)
		}
		w.applyChange(&changes[keys[at]], one)
	}
	var passes []*TableWrite
	for n := 0; ; n++ {
		var rows, deletes []int
		for _, of := range changes {
			if len(of) > 0 && of[0].deletes {
				if n == 0 {
					deletes = append(deletes, of[0].row)
				}
				of = of[1:]
			}
			if n < len(of) {
				rows = append(rows, of[n].row)
			}
		}
		if len(rows) == 0 && len(deletes) == 0 {
			return passes
		}
		pass := w.pickRows(rows)
		pass.counted = n > 0 && w.upsert && w.sequence == "" && !w.HasRejectTable()
		pass.Deletes = lists.Map(deletes, func(i int) map[string]any { return w.Deletes[i] })
		passes = append(passes, pass)
	}
}

// changesInOrder returns the changes in the order of the call.
func (w *TableWrite) changesInOrder() []change {
	changes := make([]change, 0, len(w.Rows)+len(w.Deletes))
	for i := range w.Rows {
		changes = append(changes, change{row: i, number: w.OriginalNumber(i)})
	}
	for i := range w.Deletes {
		changes = append(changes, change{row: i, number: w.deletesFrom[i], deletes: true})
	}
	slices.SortFunc(changes, func(a, b change) int { return cmp.Compare(a.number, b.number) })
	return changes
}

// applyChange adds a change to those of its key. A row that is deleted needs not be written before.
func (w *TableWrite) applyChange(before *[]change, one change) {
	if n := len(*before); n > 0 {
		last := (*before)[n-1]
		switch {
		case (one.deletes || last.deletes || !w.HasRejectTable()) && w.isOlder(w.rowOf(one), w.rowOf(last)):
			return
		case one.deletes:
			*before = (*before)[:0]
		case w.upsert && !last.deletes && !w.HasRejectTable() && w.coversRow(w.rowOf(one), w.rowOf(last)):
			*before = (*before)[:n-1]
		}
	}
	*before = append(*before, one)
}

// KeyNumbers numbers the keys of rows, then of deletes, by what is known without the database about which are
// equal.
func (w *TableWrite) KeyNumbers() []int {
	numbers, known := make([]int, 0, len(w.Rows)+len(w.Deletes)), map[string]int{}
	for _, row := range slices.Concat(w.Rows, w.Deletes) {
		key := w.keyOf(row)
		if _, is := known[key]; !is {
			known[key] = len(known)
		}
		numbers = append(numbers, known[key])
	}
	return numbers
}

// SplitRuns splits the rows into runs of consecutive rows with the same columns.
func (w *TableWrite) SplitRuns() []*TableWrite {
	if w.uniform || len(w.Rows) == 0 {
		return []*TableWrite{w}
	}
	var runs []*TableWrite
	for from := 0; from < len(w.Rows); {
		end := from + 1
		for end < len(w.Rows) && w.sameColumns(from, end) {
			end++
		}
		run := w.partOfRows(from, end)
		run.uniform = true
		run.Columns = lists.Filter(w.Columns, func(column string) bool {
			_, has := run.Rows[0][column]
			return has
		})
		if from > 0 {
			run.Deletes = nil
		}
		runs, from = append(runs, run), end
	}
	return runs
}

// sameColumns reports whether two rows have the same columns.
func (s *rowSet) sameColumns(a, b int) bool {
	return !slices.ContainsFunc(s.Columns, func(column string) bool {
		_, has := s.Rows[a][column]
		_, had := s.Rows[b][column]
		return has != had
	})
}

// MissingColumns returns the columns that some of the rows lack.
func (s *rowSet) MissingColumns() (columns []string) {
	if s.uniform {
		return nil
	}
	for _, column := range s.Columns {
		if slices.ContainsFunc(s.Rows, func(row map[string]any) bool {
			_, has := row[column]
			return !has
		}) {
			columns = append(columns, column)
		}
	}
	return columns
}

// NeedsValue reports whether a new row needs a value for a column.
func (c tableColumns) NeedsValue(column string) bool {
	return slices.ContainsFunc(c, func(one Column) bool { return one.Required && one.Name == column })
}

// DeletesOthers reports whether the table is declared to delete rows that a new one conflicts with.
func (c tableColumns) DeletesOthers() bool {
	return slices.ContainsFunc(c, func(one Column) bool { return one.DeletesOthers })
}

// OrAbort returns what makes a conflict an error in a statement where the table is declared to delete other rows.
func (c tableColumns) OrAbort() string {
	if c.DeletesOthers() {
		return "OR ABORT "
	}
	return ""
}

// AbsentColumns returns the columns that no row has and a new one needs. A row that is there has them.
func (w *TableWrite) AbsentColumns() (columns []string) {
	if !w.upsert {
		return nil
	}
	for _, column := range w.tableColumns {
		if column.Required && !slices.Contains(w.Columns, column.Name) {
			columns = append(columns, column.Name)
		}
	}
	return columns
}
