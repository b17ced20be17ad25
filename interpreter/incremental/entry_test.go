package incremental_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/interpreter/incremental"
)

// destination is what the place of a claim answers, and how often it was asked for its table.
type destination struct {
	table  incremental.Table
	key    []string
	knows  bool
	filled []incremental.Table
	lookUp error
	asked  int
}

func (d *destination) FindTable() (incremental.Table, error) {
	d.asked++
	return d.table, d.lookUp
}

func (d *destination) FilledChildTables() ([]incremental.Table, error) { return d.filled, d.lookUp }

func (d *destination) Key() (key []string, inserted bool, err error) { return d.key, d.key != nil, nil }

func (d *destination) KnowsRows() (bool, error) { return d.knows, nil }

// TestClaimOfADestination: a claim depends on the table that a database keeps the state for, on its rows, and on the key of those that
// the state knows.
func TestClaimOfADestination(t *testing.T) {
	t.Parallel()
	here := incremental.Table{Name: "orders", Shown: "Orders", Exists: true, HasRow: true}
	empty, other := here, here
	empty.HasRow, other.Name = false, "archive"
	entry := incremental.StateEntry{
		State: incremental.State{Name: "s", Watermark: cursor(t, 10), Table: "orders", Run: "before"}, Found: cursor(t, 7), Holder: "a", Last: 3,
	}
	full, inserts := incremental.Claim{Full: true}, incremental.Claim{Inserts: true, Key: []string{"id"}}
	for name, row := range map[string]struct {
		claim   incremental.Claim
		target  destination
		refused string
		note    string // of a state that begins anew
	}{
		"the table":                     {incremental.Claim{}, destination{table: here}, "", ""},
		"everything, for the table":     {full, destination{table: here}, "", ""},
		"an empty table":                {incremental.Claim{}, destination{table: empty}, incremental.TypeWithoutTable, ""},
		"everything, for an empty one":  {full, destination{table: empty}, "", "--full-refresh: the table has no rows"},
		"children":                      {incremental.Claim{}, destination{table: here, filled: []incremental.Table{here}}, "", ""},
		"no children any more":          {incremental.Claim{}, destination{table: here, filled: []incremental.Table{here, empty}}, incremental.TypeWithoutTable, ""},
		"everything, for no children":   {full, destination{table: here, filled: []incremental.Table{empty}}, "", "--full-refresh: the table has no rows"},
		"another table":                 {incremental.Claim{}, destination{table: other}, incremental.TypeOfAnother, ""},
		"everything, for another table": {full, destination{table: other}, "", "--full-refresh: the sink writes to archive"},
		"the key":                       {inserts, destination{table: here, key: []string{"id"}, knows: true}, "", ""},
		"another key":                   {inserts, destination{table: here, key: []string{"at"}, knows: true}, incremental.TypeOfAnother, ""},
		"another key, of no rows":       {inserts, destination{table: here, key: []string{"at"}}, "", ""},
		"no key that matters":           {incremental.Claim{}, destination{table: here, key: []string{"at"}, knows: true}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			claim := row.claim
			claim.Name, claim.Holder, claim.Run = "s", "b", "now"
			decision, err := entry.DecideClaim(claim, &row.target, noon)
			require.NoError(t, err)
			if row.refused != "" {
				require.NotNil(t, decision.Refused)
				require.Equal(t, row.refused, decision.Refused.Type)
				require.Equal(t, entry, decision.Entry, "a claim that is refused changes nothing")
				require.Empty(t, decision.Changes)
				return
			}
			require.Nil(t, decision.Refused)
			want := []incremental.StateChange{{Name: "s", By: "before", From: cursor(t, 7), To: cursor(t, 10)}}
			if row.note != "" {
				want = append(want, incremental.StateChange{Name: "s", At: noon, By: "now", From: cursor(t, 10), Note: row.note})
			}
			require.Equal(t, want, decision.Changes)
			require.Equal(t, row.note != "", decision.Anew)
			require.Equal(t, decision.Anew, decision.Entry.Watermark.IsZero())
			require.Equal(t, decision.Entry.Watermark, decision.Entry.Found)
			require.Equal(t, "b", decision.Entry.Holder)
			require.Zero(t, decision.Entry.Last)
		})
	}
	target := &destination{lookUp: errors.New("away")}
	decision, err := entry.DecideClaim(incremental.Claim{Name: "s", Holder: "a"}, target, noon)
	require.NoError(t, err)
	require.True(t, decision.Repeated)
	require.Zero(t, target.asked, "who holds the state already depends on no table")
	_, err = entry.DecideClaim(incremental.Claim{Name: "s", Holder: "b"}, target, noon)
	require.EqualError(t, err, "away")
}

// TestPasses: a watermark only moves forward, and one without an order to whatever differs.
func TestPasses(t *testing.T) {
	t.Parallel()
	token := func(text string) incremental.Cursor {
		c, err := incremental.Parse(incremental.Token, text)
		require.NoError(t, err)
		return c
	}
	for name, row := range map[string]struct {
		to, there incremental.Cursor
		passes    bool
	}{
		"the first":     {cursor(t, 1), incremental.Cursor{}, true},
		"forward":       {cursor(t, 2), cursor(t, 1), true},
		"back":          {cursor(t, 1), cursor(t, 2), false},
		"the same":      {cursor(t, 1), cursor(t, 1), false},
		"another token": {token("a"), token("b"), true},
		"the token":     {token("a"), token("a"), false},
	} {
		require.Equal(t, row.passes, row.to.MovesTo(row.there), name)
	}
}
