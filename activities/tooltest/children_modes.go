package tooltest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/stretchr/testify/require"

	"reprise/interpreter"
)

var childrenModeCases = tableCases{
	"children are ignored":   childrenAreIgnored,
	"children of a sequence": childrenOfASequence,
	"children of missing":    childrenOfMissing,
}

// childrenAreIgnored: a parent that the table has keeps its children, and one that is new gets them, whatever else has its key in the write.
func childrenAreIgnored(s *TableTest) {
	s.Create("id bigint PRIMARY KEY, mail text UNIQUE, note text, n bigint CHECK (n < 100)")
	s.Query("CREATE TABLE "+s.itemsTable()+" (order_id bigint, line bigint, n bigint, PRIMARY KEY (order_id, line))", nil)
	s.Query("CREATE TABLE "+s.partsTable()+" (order_id bigint, line bigint, part bigint)", nil)
	fields := s.ofItems(row{"mode": "insert_or_ignore", "key": "id"}, row{"key": []any{"order_id", "line"}, "children": row{
		"parts": row{"table": s.partsTable(), "with": row{"order_id": "order_id", "line": "line"}},
	}})
	with := func(one, more row) row { maps.Copy(one, more); return one }
	s.Write(fields, orderWithLines(1, 1, 2), with(orderWithLines(2, 1), row{"mail": "a"}))
	require.Contains(s, s.Refuse(fields, orderWithLines(1, 3), with(orderWithLines(4, 1), row{"mail": "a"})).Message, "row 2", "it is not one that the table has")
	require.Equal(s, AffectedResult(3), s.Write(fields, orderWithLines(1, 3), orderWithLines(3, 1), orderWithLines(3, 2), with(orderWithLines(4, 2), row{"mail": "b"}),
		orderWithLines(5, 1), row{"id": 5, "items": []any{row{"line": 7}}}))
	require.Equal(s, []string{"1/1", "1/2", "2/1", "3/1", "4/2", "5/1"}, s.itemLines(), "the first of two that can be written")
	s.Query("INSERT INTO "+s.itemsTable()+" VALUES (6, 1, 1)", nil)
	parts := func(part int) any { return []any{row{"part": part}} }
	s.Write(fields, row{"id": 6, "items": []any{row{"line": 1, "n": 9, "parts": parts(1)}, row{"line": 2, "n": 2, "parts": parts(2)}}})
	require.Equal(s, []string{"6/1", "6/2"}, s.itemLines()[6:], "an element that the table has is ignored too")
	require.Equal(s, []string{`{"line":2,"order_id":6,"part":2}`}, s.rowsOf(s.partsTable(), "order_id, line, part"), "with what is below it")
	rejecting := maps.Clone(fields)
	rejecting["rejected"] = row{"table": s.Table + "_aside"}
	s.Write(rejecting, orderWithLines(1, 9), with(orderWithLines(7, 1), row{"n": 500}), orderWithLines(8, 1), orderWithLines(8, 2))
	require.Equal(s, []string{"8/1"}, s.itemLines()[8:])
	many := []any{}
	for id := range 2500 {
		many = append(many, orderWithLines(1000+id%2000, id/2000+1))
	}
	s.Write(fields, many...)
	require.Equal(s, []any{row{"n": 2000, "last": 1}}, s.Query("SELECT count(*) AS n, max(line) AS last FROM "+s.itemsTable()+" WHERE order_id >= 1000", nil), "in a large write too")
}

// childrenOfASequence: a row that is older than the one that is there is written neither by itself nor with children, and deletes none.
func childrenOfASequence(s *TableTest) {
	type parent struct {
		at    int
		items []string
	}
	s.Create("id bigint PRIMARY KEY, at bigint, note text")
	s.Query("CREATE TABLE "+s.itemsTable()+" (order_id bigint, line bigint, n bigint, PRIMARY KEY (order_id, line))", nil)
	fields, random, model := s.upsertFields(row{"sequence_by": "at", "hard_delete": "gone"}), rand.New(rand.NewPCG(46, 2)), map[int]parent{} //nolint:gosec // the same each time
	for round := range 80 {
		rows := make([]any, 1+random.IntN(6))
		for i := range rows {
			id, at, lines := 1+random.IntN(3), random.IntN(20), random.Perm(4)[:random.IntN(4)]
			one, kind := orderWithLines(id, lines...), random.IntN(6)
			one["at"] = at
			before, is := model[id]
			switch isOlder := is && at < before.at; kind {
			case 0:
				if one["gone"] = true; !isOlder {
					delete(model, id)
				}
			case 1:
				if delete(one, "items"); !isOlder {
					model[id] = parent{at, before.items}
				}
			default:
				if !isOlder {
					items := []string{}
					for _, line := range slices.Sorted(slices.Values(lines)) {
						items = append(items, fmt.Sprint(id, "/", line))
					}
					model[id] = parent{at, items}
				}
			}
			rows[i] = one
		}
		s.Write(fields, rows...)
		var want []string
		for _, id := range slices.Sorted(maps.Keys(model)) {
			want = append(want, model[id].items...)
		}
		require.Equal(s, want, s.itemLines(), "round %d: %v", round, rows)
	}
}

// childrenOfMissing: what was not read is deleted with its children, and what was read keeps those of its list.
func childrenOfMissing(s *TableTest) {
	s.Create("id bigint PRIMARY KEY, note text, tenant text")
	s.Query("CREATE TABLE "+s.itemsTable()+" (order_id bigint REFERENCES "+s.Table+" (id), line bigint, n bigint, PRIMARY KEY (order_id, line))", nil)
	s.Query("CREATE TABLE "+s.partsTable()+" (order_id bigint, line bigint, part bigint, PRIMARY KEY (order_id, line, part))", nil)
	fields := s.upsertFields(row{"delete_missing": true, "max_delete": 0.6})
	fields["children"].(row)["items"].(row)["children"] = row{"parts": row{
		"table": s.partsTable(), "key": []any{"order_id", "line", "part"}, "with": row{"order_id": "order_id", "line": "line"},
	}}
	whole := func(id int, tenant string) row {
		one := orderWithLines(id, 1, 2)
		one["tenant"], one["items"].([]any)[0].(row)["parts"] = tenant, []any{row{"part": id}}
		return one
	}
	before := s.stagingLoad(fields)
	before.stagePage(whole(1, "a"), whole(2, "a"), whole(3, "a"), whole(4, "b"), whole(5, "b"))
	before.publishRows()
	require.Len(s, s.itemLines(), 10)
	load := s.stagingLoad(fields)
	load.callTwice(interpreter.StagingBegin)
	s.Write(s.upsertFields(nil), orderWithLines(6, 1))
	load.callTwice("", orderWithLines(1, 2), row{"id": 2, "note": "no list"}, orderWithLines(6, 9))
	require.Len(s, s.itemLines(), 10, "nothing that was not read is deleted yet")
	load.publishRows()
	require.Equal(s, []string{"1/2", "2/1", "2/2", "6/1"}, s.itemLines(), "what another load has written since is newer")
	require.Equal(s, []string{`{"order_id":2,"part":2}`}, s.rowsOf(s.partsTable(), "order_id, part"))
	bounded := maps.Clone(fields)
	bounded["replace_where"] = row{"column": "tenant", "equals": "b"}
	fill := s.stagingLoad(bounded)
	fill.stagePage(whole(7, "b"), whole(8, "b"))
	fill.publishRows()
	rest := s.stagingLoad(bounded)
	rest.stagePage(whole(8, "b"))
	rest.publishRows()
	require.Equal(s, []string{"1/2", "2/1", "2/2", "6/1", "8/1", "8/2"}, s.itemLines(), "those of other tenants stay")
	refused := s.stagingLoad(bounded)
	refused.fields = maps.Clone(bounded)
	refused.fields["max_delete"] = 0
	refused.stagePage(whole(9, "b"))
	require.Equal(s, "max_delete", refused.refuseCall(interpreter.StagingPublish).Type)
	require.Contains(s, s.itemLines(), "8/1")
}
