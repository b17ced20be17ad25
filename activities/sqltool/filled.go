package sqltool

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"reprise/interpreter/expression"
)

// A state is about the rows of its table, and about those of the tables of children. A table of children may have no rows because no row had
// a list, so the state keeps which of them have had some: one that has none when the state is claimed was dropped, renamed or emptied by
// others, and rows up to the watermark would be missing there.

// stateNotes are the column other_tables of a state. It also has the time of the claim, because roles that write to the tables of
// states may not add a column to them.
type stateNotes struct {
	Tables    []string  `json:"tables"` // digests of those that the last claim names; nil where they are not known
	Filled    []string  `json:"filled"`
	ClaimedAt time.Time `json:"claimed_at,omitzero"`
}

// markOf is what a state keeps of a table of children that has had rows.
func markOf(w *TableWrite) string {
	if w.made { // nothing else has its name
		return madeMark + w.Shown
	}
	return expression.Digest(w.Shown)
}

// madeMark begins what a state keeps of a table that no description names.
const madeMark = "nested:"

// madeTables are the tables without a description that have had rows.
func madeTables(filled []string) (tables []*TableWrite) {
	for _, mark := range filled {
		shown, is := strings.CutPrefix(mark, madeMark)
		if name, err := NameOf(shown); is && err == nil {
			tables = append(tables, &TableWrite{TableName: name, nestedLists: nestedLists{made: true}})
		}
	}
	return tables
}

// columnText returns the column of a state.
func (n stateNotes) columnText() string {
	text, _ := json.Marshal(n) //nolint:errchkjson // texts and a time
	return string(text)
}

// readNotes parses the column other_tables of a state. Older builds stored only a list of tables there.
func readNotes(text string) (n stateNotes, err error) {
	if strings.HasPrefix(text, "[") {
		err = json.Unmarshal([]byte(text), &n.Tables)
		return n, err
	}
	err = json.Unmarshal([]byte(text), &n)
	return n, err
}

// recordFilled records which tables of children have rows once a write has written to them.
func recordFilled(ctx context.Context, tx StateTx, w *TableWrite) error {
	if w.State == nil || w.below == nil || len(w.below.done) == 0 {
		return nil
	}
	var text *string
	name := w.State.Name
	err := tx.Query(ctx, "SELECT other_tables FROM "+StateTable+" WHERE name = $1", []any{name}, func(scan func(...any) error) error { return scan(&text) })
	if err != nil {
		return err
	}
	var notes stateNotes
	if text != nil {
		if notes, err = readNotes(*text); err != nil {
			return err
		}
	}
	next := slices.Clone(notes.Filled)
	for _, table := range w.childTables() {
		mark, done := markOf(table), w.below.done[table.Shown]
		has := done.affected > 0
		switch {
		case done.deleted > 0:
			there, err := tx.LookUp(ctx, table)
			if err != nil {
				return err
			}
			has = there.HasRow
		case !has: // nothing has changed
			continue
		}
		if next = slices.DeleteFunc(next, func(one string) bool { return one == mark }); has {
			next = append(next, mark)
		}
	}
	slices.Sort(next)
	if slices.Equal(next, notes.Filled) {
		return nil
	}
	notes.Filled = next
	_, err = tx.Exec(ctx, "UPDATE "+StateTable+" SET other_tables = $2 WHERE name = $1", name, notes.columnText())
	return err
}
