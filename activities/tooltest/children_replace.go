package tooltest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/stretchr/testify/require"

	"reprise/interpreter"
)

var childrenReplaceCases = tableCases{
	"children are replaced":              childrenAreReplaced,
	"children are replaced without keys": childrenAreReplacedWithoutKeys,
	"children move in replace":           childrenMoveInReplace,
	"children of rounds":                 childrenOfRounds,
	"children within bounds":             childrenWithinBounds,
	"children that are newer":            childrenThatAreNewer,
	"children of replace are refused":    childrenOfReplaceAreRefused,
	"children replaced as if":            childrenReplacedAsIf,
	"words of replaced children":         wordsOfReplacedChildren,
}

// replacedItems returns the fields of a replace whose rows have items, with parts below them.
func (s *TableTest) replacedItems(more row, itemKey any) row {
	items := row{"key": itemKey, "children": row{"parts": row{
		"table": s.partsTable(), "key": []any{"order_id", "line", "part"}, "with": row{"order_id": "order_id", "line": "line"},
	}}}
	if itemKey == nil {
		items = nil
	}
	fields := s.ofItems(row{"mode": "replace", "key": "id"}, items)
	maps.Copy(fields, more)
	return fields
}

// withParts makes the tables of orders, items and parts.
func (s *TableTest) withParts(parentKey, references string) {
	s.Helper()
	s.Create("id bigint " + parentKey + ", note text, tenant text, kept text DEFAULT 'new'")
	s.Query("CREATE TABLE "+s.itemsTable()+" (order_id bigint "+references+", line bigint, n bigint CHECK (n < 100), kept text DEFAULT 'new')", nil)
	s.Query("CREATE TABLE "+s.partsTable()+" (order_id bigint, line bigint, part bigint)", nil)
}

// partLines returns the parts as order/line/part.
func (s *TableTest) partLines() (all []string) {
	s.Helper()
	for _, one := range s.Query("SELECT order_id, line, part FROM "+s.partsTable()+" ORDER BY order_id, line, part", nil).([]any) {
		all = append(all, fmt.Sprintf("%v/%v/%v", one.(row)["order_id"], one.(row)["line"], one.(row)["part"]))
	}
	return all
}

// orderWithParts returns an order of a tenant, whose lines have the parts 1 and so on.
func orderWithParts(id int, tenant string, lines ...int) row {
	one := orderWithLines(id, lines...)
	one["tenant"] = tenant
	for _, item := range one["items"].([]any) {
		item.(row)["parts"] = []any{row{"part": 1}, row{"part": 2}}
	}
	return one
}

// childrenAreReplaced: the rows below others are replaced with them, in one publication, and until then all old rows are there.
func childrenAreReplaced(s *TableTest) {
	s.withParts("PRIMARY KEY", "REFERENCES "+s.Table+" (id)")
	fields := s.replacedItems(nil, []any{"order_id", "line"})
	first := s.beginReplace(fields)
	first.stagePage(orderWithParts(1, "a", 1, 2), orderWithParts(2, "a", 1))
	first.stagePage(orderWithParts(3, "a"), orderWithParts(4, "a", 7))
	require.Empty(s, s.itemLines())
	require.Equal(s, publishedResult(4, 0), first.publishRows())
	require.Equal(s, []string{"1/1", "1/2", "2/1", "4/7"}, s.itemLines())
	require.Equal(s, []string{"1/1/1", "1/1/2", "1/2/1", "1/2/2", "2/1/1", "2/1/2", "4/7/1", "4/7/2"}, s.partLines())
	s.Query("UPDATE "+s.itemsTable()+" SET kept = 'old'", nil)
	second := s.beginReplace(fields)
	second.stagePage(orderWithParts(1, "a", 2, 3), orderWithParts(4, "a", 8), orderWithParts(5, "a", 1))
	second.stagePage(orderWithParts(4, "a", 9), row{"id": 6, "note": "no list"}, row{"id": 7, "items": nil})
	require.Equal(s, []string{"1/1", "1/2", "2/1", "4/7"}, s.itemLines(), "nothing before it is published")
	require.Equal(s, publishedResult(4+1-1-1+0, 2), second.publishRows(), "new: 5, 6, 7; 1 and 4 are the same; gone: 2, 3")
	require.Equal(s, []string{"1/2", "1/3", "4/9", "5/1"}, s.itemLines(), "of two rows of one key the last counts, with its children")
	require.Equal(s, []string{"1/2/1", "1/2/2", "1/3/1", "1/3/2", "4/9/1", "4/9/2", "5/1/1", "5/1/2"}, s.partLines())
	require.Equal(s, []string{`{"kept":"new","line":1}`, `{"kept":"new","line":3}`, `{"kept":"new","line":9}`, `{"kept":"old","line":2}`}, s.rowsOf(s.itemsTable(), "kept, line"), "what is the same is not changed")
	result, err := s.db.MakeAttempt(s.t, second.stagingInput(interpreter.StagingPublish))
	require.NoError(s, err)
	figures := map[string]int64{}
	for _, table := range result.Meta.Rows.Tables {
		figures[table.Table] = table.Written + 100*table.Deleted
	}
	require.Equal(s, map[string]int64{s.Table: 203, s.itemsTable(): 303, s.partsTable(): 606}, figures, "also where the publication is delivered twice")
	for _, load := range []*load{first, second} {
		require.False(s, load.hasStagingTable())
	}
	require.Equal(s, []any{row{"n": 0}}, s.Query("SELECT count(*) AS n FROM reprise_staging WHERE target LIKE {{ name }} AND published_at IS NULL", row{"name": "%" + s.Table + "%"}), "all of its tables are published")
}

// childrenAreReplacedWithoutKeys: all rows go, and all come.
func childrenAreReplacedWithoutKeys(s *TableTest) {
	s.withParts("", "")
	fields := s.ofItems(row{"mode": "replace"}, nil)
	for _, lines := range [][]int{{1, 2, 2}, {2}} {
		load := s.beginReplace(fields)
		load.stagePage(orderWithLines(1, lines...), orderWithLines(1, 5))
		load.stagePage(orderWithLines(2, 1))
		require.Len(s, load.publishRows(), 2)
		want := []string{}
		for _, line := range lines {
			want = append(want, fmt.Sprint("1/", line))
		}
		require.Equal(s, append(want, "1/5", "2/1"), s.itemLines())
	}
	keyed := s.beginReplace(s.ofItems(row{"mode": "replace", "key": "id"}, nil))
	keyed.stagePage(orderWithLines(1, 8), orderWithLines(1, 9, 9), orderWithLines(3))
	keyed.publishRows()
	require.Equal(s, []string{"1/9", "1/9"}, s.itemLines(), "children without a key of a parent with one")
}

// childrenMoveInReplace: a child with a key of its own may be below another parent than before.
func childrenMoveInReplace(s *TableTest) {
	s.Create("id bigint PRIMARY KEY")
	s.Query("CREATE TABLE "+s.itemsTable()+" (line bigint PRIMARY KEY, order_id bigint REFERENCES "+s.Table+" (id), n bigint)", nil)
	fields := s.ofItems(row{"mode": "replace", "key": "id"}, row{"key": "line"})
	for _, rows := range [][]any{{orderWithLines(1, 10, 11), orderWithLines(2, 20)}, {orderWithLines(2, 20, 10), orderWithLines(3, 11)}, {orderWithLines(3, 20, 11)}, {orderWithLines(4, 20, 11), orderWithLines(5, 10)}} {
		load := s.beginReplace(fields)
		load.stagePage(rows...)
		load.publishRows()
		var want []string
		for _, one := range rows {
			for _, item := range one.(row)["items"].([]any) {
				want = append(want, fmt.Sprintf("%v/%v", one.(row)["id"], item.(row)["line"]))
			}
		}
		require.ElementsMatch(s, want, s.itemLines())
	}
}

// childrenOfRounds: what an attempt has staged before its call started again is not published, and neither are its children.
func childrenOfRounds(s *TableTest) {
	s.withParts("PRIMARY KEY", "")
	load := s.beginReplace(s.replacedItems(nil, []any{"order_id", "line"}))
	load.iterationLoad(0, 0).stagePage(orderWithParts(1, "a", 1))
	load.iterationLoad(1, 0).stagePage(orderWithParts(2, "a", 1, 2), orderWithParts(3, "a", 1))
	load.iterationLoad(2, 0).stagePage(orderWithParts(4, "a", 1))
	late := load.iterationLoad(1, 0).stagingInput("", orderWithParts(9, "a", 9))
	load.iterationLoad(1, 1).stagePage(orderWithParts(2, "a", 3))
	require.Equal(s, "overtaken", s.db.FailingCall(s.t, late).Type)
	load.iterationLoad(2, 1).callTwice(interpreter.StagingSettle)
	load.publishRows()
	require.Equal(s, []string{"1/1", "2/3"}, s.itemLines())
	require.Equal(s, []string{"1/1/1", "1/1/2", "2/3/1", "2/3/2"}, s.partLines())
}

// childrenWithinBounds: only what is below the rows that are replaced is replaced.
func childrenWithinBounds(s *TableTest) {
	s.withParts("PRIMARY KEY", "")
	tenant := func(name string) *load {
		return s.beginReplace(s.replacedItems(row{"replace_where": row{"column": "tenant", "equals": name}}, []any{"order_id", "line"}))
	}
	one, two := tenant("a"), tenant("b")
	one.callTwice(interpreter.StagingBegin)
	two.callTwice(interpreter.StagingBegin)
	one.stagePage(orderWithParts(1, "a", 1, 2), orderWithParts(2, "a", 1))
	two.stagePage(orderWithParts(3, "b", 1))
	one.publishRows()
	two.publishRows() // a load of another tenant at the same time is none that has changed its rows
	again := tenant("a")
	again.stagePage(orderWithParts(2, "a", 2))
	again.publishRows()
	require.Equal(s, []string{"2/2", "3/1"}, s.itemLines())
	require.Equal(s, []string{"2/2/1", "2/2/2", "3/1/1", "3/1/2"}, s.partLines())
	first, second := tenant("a"), tenant("a")
	first.callTwice(interpreter.StagingBegin)
	second.callTwice(interpreter.StagingBegin)
	first.stagePage(orderWithParts(2, "a", 5))
	second.stagePage(orderWithParts(2, "a", 6))
	first.publishRows()
	require.Equal(s, "table_changed", second.refuseCall(interpreter.StagingPublish).Type)
	require.Equal(s, []string{"2/5", "3/1"}, s.itemLines())
}

// childrenThatAreNewer: what other loads have written since is neither replaced nor deleted, with what is below it.
func childrenThatAreNewer(s *TableTest) {
	s.withParts("PRIMARY KEY", "")
	s.Query("CREATE UNIQUE INDEX "+s.itemsTable()+"_key ON "+s.itemsTable()+" (order_id, line)", nil)
	fields := s.replacedItems(nil, []any{"order_id", "line"})
	before := s.beginReplace(fields)
	before.stagePage(orderWithParts(1, "a", 1), orderWithParts(2, "a", 1, 2), orderWithParts(3, "a", 1))
	before.publishRows()
	load := s.beginReplace(fields)
	load.callTwice(interpreter.StagingBegin)
	s.Write(s.upsertFields(nil), orderWithLines(6, 4))
	s.Write(row{"mode": "upsert", "key": "id"}, row{"id": 2, "note": "newer"})
	load.stagePage(orderWithParts(1, "a", 3), orderWithParts(2, "a", 9), orderWithParts(6, "a", 1), orderWithParts(7, "a", 1))
	load.publishRows()
	require.Equal(s, []string{"1/3", "2/1", "2/2", "6/4", "7/1"}, s.itemLines())
	require.Equal(s, []string{"1/3/1", "1/3/2", "2/1/1", "2/1/2", "2/2/1", "2/2/2", "7/1/1", "7/1/2"}, s.partLines())
	require.Equal(s, []string{`{"id":1,"note":null}`, `{"id":2,"note":"newer"}`, `{"id":6,"note":null}`, `{"id":7,"note":null}`}, s.ContentLines("id, note"))
	lost := s.beginReplace(fields)
	lost.callTwice(interpreter.StagingBegin)
	lost.stagePage(orderWithParts(1, "a", 3))
	s.Write(s.upsertFields(nil), orderWithLines(6))
	require.Equal(s, "table_changed", lost.refuseCall(interpreter.StagingPublish).Type, "it is not known which were deleted")
}

// childrenOfReplaceAreRefused: rows that do not fit take their children with them, and lists that never come empty no table.
func childrenOfReplaceAreRefused(s *TableTest) {
	s.withParts("PRIMARY KEY CHECK (id < 50)", "")
	aside := s.Table + "_aside"
	fields := s.replacedItems(row{"rejected": row{"table": aside, "max": 20}}, []any{"order_id", "line"})
	load := s.beginReplace(fields)
	in := load.stagingInput("", orderWithLines(1, 1, 500, 2), orderWithParts(90, "a", 1), orderWithParts(3, "a", 3))
	for range 2 {
		_, err := s.db.MakeAttempt(s.t, in)
		require.NoError(s, err)
	}
	load.publishRows()
	require.Equal(s, []string{"1/1", "1/2", "3/3"}, s.itemLines())
	require.Equal(s, []string{"3/3/1", "3/3/2"}, s.partLines())
	require.Len(s, s.Query("SELECT reason FROM "+aside, nil), 2)
	never := s.beginReplace(fields)
	never.stagePage(row{"id": 1}, row{"id": 4})
	object := never.refuseCall(interpreter.StagingPublish)
	require.Equal(s, "empty_replace", object.Type)
	require.Contains(s, object.Message, `no row for table "`+s.Table+`" had the field "items"`)
	require.Equal(s, []string{"1/1", "1/2", "3/3"}, s.itemLines(), "nothing was published")
	require.Equal(s, []string{`{"id":1}`, `{"id":3}`}, s.ContentLines("id"))
	never.fields = maps.Clone(fields)
	never.fields["allow_empty"] = true
	never.publishRows()
	require.Empty(s, s.itemLines())
	require.Empty(s, s.partLines())
	empty := s.beginReplace(fields)
	empty.stagePage(orderWithParts(1, "a", 1))
	empty.publishRows()
	none := s.beginReplace(fields)
	none.stagePage(row{"id": 1, "items": []any{}})
	none.publishRows()
	require.Empty(s, s.itemLines(), "empty lists are known")
	require.Empty(s, s.partLines())
	require.Contains(s, s.beginReplace(fields).refuseCall("", row{"id": 1, "items": []any{row{"n": 1}}}).Message, `row 1, items[0] has no "line", which is part of the key`)
	evolving := *s
	evolving.Table += "_new"
	made := evolving.beginReplace(evolving.replacedItems(row{"schema_contract": "evolve"}, []any{"order_id", "line"}))
	made.stagePage(orderWithParts(1, "a", 1), row{"id": 2})
	made.stagePage(orderWithLines(3, 1))
	made.publishRows()
	require.Equal(s, []string{"1/1", "3/1"}, evolving.itemLines())
	require.Equal(s, []string{"1/1/1", "1/1/2"}, evolving.partLines())
}

// childrenReplacedAsIf: pages of any rows in any rounds leave what the last row of each key of the last rounds says.
func childrenReplacedAsIf(s *TableTest) {
	s.withParts("PRIMARY KEY", "REFERENCES "+s.Table+" (id)")
	s.Query("CREATE UNIQUE INDEX "+s.itemsTable()+"_key ON "+s.itemsTable()+" (order_id, line)", nil)
	random := rand.New(rand.NewPCG(46, 3)) //nolint:gosec // the same each time
	for round := range 3 {
		load := s.beginReplace(s.replacedItems(row{"allow_empty": true}, []any{"order_id", "line"}))
		orders := map[int]row{}
		var staged []func()
		for part := range 2 {
			rounds := random.IntN(3)
			for at := range rounds + 1 {
				for range 1 + random.IntN(2) {
					var rows []any
					for range 1 + random.IntN(6) {
						one := orderWithParts(1+random.IntN(5)+10*part, "a", random.Perm(3)[:random.IntN(4)]...)
						if random.IntN(5) == 0 {
							delete(one, "items")
						}
						rows = append(rows, one)
						if at == rounds {
							orders[one["id"].(int)] = one
						}
					}
					staged = append(staged, func() {
						_, err := s.db.MakeAttempt(s.t, load.iterationLoad(part, at).stagingInput("", rows...))
						require.NoError(s, err)
					})
				}
			}
			staged = append(staged, func() { load.iterationLoad(part, rounds).callTwice(interpreter.StagingSettle) })
		}
		for _, stage := range staged {
			stage()
		}
		load.publishRows()
		var items, parts []string
		for _, id := range slices.Sorted(maps.Keys(orders)) {
			list, _ := orders[id]["items"].([]any)
			lines := []int{}
			for _, item := range list {
				lines = append(lines, item.(row)["line"].(int))
			}
			slices.Sort(lines)
			for _, line := range lines {
				items = append(items, fmt.Sprintf("%d/%d", id, line))
				parts = append(parts, fmt.Sprintf("%d/%d/1", id, line), fmt.Sprintf("%d/%d/2", id, line))
			}
		}
		require.Len(s, s.ContentLines("id"), len(orders), "round %d", round)
		require.Equal(s, items, s.itemLines(), "round %d", round)
		require.Equal(s, parts, s.partLines(), "round %d", round)
	}
}

// wordsOfReplacedChildren: what could lose rows is refused.
func wordsOfReplacedChildren(s *TableTest) {
	s.withParts("PRIMARY KEY", "")
	for says, fields := range map[string]row{
		"children cannot be used with replace_where without key": s.ofItems(row{"mode": "replace", "replace_where": row{"column": "tenant", "equals": "a"}}, nil),
		`with of children.items must include "id"`:               s.ofItems(row{"mode": "replace", "key": "id"}, row{"with": row{"order_id": "note"}}),
		"children.items needs key, by which mode replace finds":  s.ofItems(row{"mode": "replace"}, row{"children": row{"parts": row{"table": s.partsTable(), "with": row{"line": "line"}}}}),
	} {
		require.Contains(s, s.beginReplace(fields).refuseCall("", orderWithLines(1, 1)).Message, says)
	}
}
