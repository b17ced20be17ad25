package tooltest

import (
	"fmt"
	"strings"

	"github.com/stretchr/testify/require"
)

var childrenKeyCases = tableCases{
	"children of equal keys":   childrenOfEqualKeys,
	"children of coarser keys": childrenOfCoarserKeys,
	"lists of parents":         listsOfParents,
}

// childrenOfEqualKeys: a parent whose key the database holds for equal to that of a row takes its place, and its children take that of the
// children of the row, whatever the types of both tables.
func childrenOfEqualKeys(s *TableTest) {
	const lines = "line bigint, n bigint"
	for at, test := range s.equalKeys() {
		for n, typed := range []string{test.column, "text", ""} {
			of := *s
			of.Table = fmt.Sprintf("%s_%d_%d", s.Table, at, n)
			of.Create("k " + test.column + " PRIMARY KEY, note text")
			fields := row{"mode": "upsert", "key": "k", "hard_delete": "gone", "schema_contract": "evolve"}
			if typed != "" {
				delete(fields, "schema_contract")
				of.Query("CREATE TABLE "+of.itemsTable()+" (parent "+typed+", "+lines+", PRIMARY KEY (parent, line))", nil)
			}
			fields["children"] = row{"items": row{"table": of.itemsTable(), "key": []any{"parent", "line"}, "with": row{"parent": "k"}}}
			of.ofEqualParents(test, fields, typed)
		}
	}
}

// ofEqualParents writes parents of one key in its forms, and one of another key.
func (s *TableTest) ofEqualParents(test equalKey, fields row, typed string) {
	s.Helper()
	a, b, c, other := test.equal[0], test.equal[1], test.equal[2], test.other
	parent := func(k any, lines ...int) row {
		one := orderWithLines(0, lines...)
		delete(one, "id")
		one["k"] = k
		return one
	}
	want := func(says string, lines ...string) {
		s.Helper()
		require.Equal(s, lines, s.rowsOf(s.itemsTable(), "line"), "%s, children of type %q: %s", test.column, typed, says)
	}
	write := func(rows ...any) {
		s.Helper()
		_, err := s.db.MakeAttempt(s.t, s.WriteInput(fields, rows...))
		require.NoError(s, err, "%s, children of type %q", test.column, typed)
	}
	line := func(n int) string { return fmt.Sprintf(`{"line":%d}`, n) }
	write(parent(a, 1, 2), parent(other, 9))
	want("first", line(1), line(2), line(9))
	write(parent(b, 2, 3))
	want("in another form", line(2), line(3), line(9))
	write(row{"k": c, "note": "no list"})
	want("without a list", line(2), line(3), line(9))
	write(parent(a, 4), parent(b, 5), parent(c, 6))
	want("in one write", line(6), line(9))
	require.Len(s, s.ContentLines("note"), 2, test.column)
	write(row{"k": b, "gone": true})
	want("deleted", line(9))
	write(parent(c, 7))
	write(row{"k": a, "items": nil})
	want("emptied", line(9))
}

// listsOfParents: what is in the field of a list is written, or refused with its place, and never left out in silence.
func listsOfParents(s *TableTest) {
	s.withItems()
	write := func(items any) { s.Helper(); s.Write(s.upsertFields(nil), row{"id": 1, "items": items}) }
	write([]any{row{"line": 1, "n": 1}, row{"line": 2, "n": 2}})
	write(row{"line": 2, "n": 2})
	require.Equal(s, []string{"1/2"}, s.itemLines(), "one element instead of a list")
	for says, items := range map[string]any{
		"row 1, items is a string": `[{"line": 7, "n": 7}]`, "row 1, items is a number": 5, "row 1, items[1] is a nil": []any{row{"line": 3, "n": 3}, nil},
		"row 1, items[0] is a list": []any{[]any{row{"line": 3, "n": 3}}},
	} {
		for _, fields := range []row{s.upsertFields(nil), s.ofItems(nil, nil)} {
			require.Contains(s, s.Refuse(fields, row{"id": 2, "items": items}).Message, says)
		}
		require.Equal(s, []string{"1/2"}, s.itemLines(), "nothing of it is written")
	}
	require.Contains(s, s.Refuse(s.upsertFields(nil), row{"id": 1, "items": `[{"line": 7}]`}).Message, "fromJSON(row.items)")
	write([]any{row{"line": 4, "n": 4}, row{"line": 4.0, "n": 5}, row{"line": "4", "n": 6}})
	require.Equal(s, []string{"1/4=6"}, s.itemLines(), "of two children of one key the later counts")
}

// childrenOfCoarserKeys: a column of children that holds for equal what the key of their parents distinguishes is refused, as children of
// others would be deleted.
func childrenOfCoarserKeys(s *TableTest) {
	types := map[string][]string{
		"postgres": {"timestamptz date", "timestamp date", "text numeric", "varchar(9) double precision"},
		"sqlite":   {"text text COLLATE NOCASE", "text text COLLATE RTRIM", "text numeric"},
	}[s.db.Name]
	values := map[string]any{"timestamptz": "2024-01-01T10:00:00Z", "timestamp": "2024-01-01T10:00:00", "text": "7", "varchar(9)": "7"}
	require.NotEmpty(s, types)
	for at, pair := range types {
		parent, child, _ := strings.Cut(pair, " ")
		of := *s
		of.Table = fmt.Sprintf("%s_%d", s.Table, at)
		of.Create("k " + parent + " PRIMARY KEY, note text")
		of.Query("CREATE TABLE "+of.itemsTable()+" (parent "+child+", line bigint)", nil)
		fields := row{"mode": "upsert", "key": "k", "children": row{"items": row{"table": of.itemsTable(), "key": []any{"parent", "line"}, "with": row{"parent": "k"}}}}
		refused := of.Refuse(fields, row{"k": values[parent], "items": []any{row{"line": 1}}})
		require.Contains(s, refused.Message, "keeps apart, so writing one row could delete the children of another; give both columns the same type", pair)
		require.Empty(s, of.ContentLines("note"), pair)
	}
}
