package tooltest

import (
	"fmt"
	"maps"
	"math/rand/v2"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"reprise/interpreter"
	"reprise/interpreter/expression"
)

var childrenCases = tableCases{
	"children are inserted":   childrenAreInserted,
	"children are upserted":   childrenAreUpserted,
	"children of one key":     childrenOfOneKey,
	"children move":           childrenMove,
	"children of children":    childrenOfChildren,
	"children evolve":         childrenEvolve,
	"children are rejected":   childrenAreRejected,
	"figures of children":     figuresOfChildren,
	"children by foreign key": childrenByForeignKey,
	"words of children":       wordsOfChildren,
	"children as if each":     childrenAsIfEach,
	"children together":       childrenTogether,
}

// itemsTable returns the name of the table of children of a case, and partsTable that of the table of their children.
func (s *TableTest) itemsTable() string { return s.Table + "_items" }
func (s *TableTest) partsTable() string { return s.Table + "_parts" }

// ofItems returns the fields of a write whose rows have items.
func (s *TableTest) ofItems(more, items row) row {
	own := row{"table": s.itemsTable(), "with": row{"order_id": "id"}}
	maps.Copy(own, items)
	fields := row{"children": row{"items": own}}
	maps.Copy(fields, more)
	return fields
}

// upsertFields returns the fields of an upsert whose rows have items with a key of their own.
func (s *TableTest) upsertFields(more row) row {
	fields := s.ofItems(row{"mode": "upsert", "key": "id"}, row{"key": []any{"order_id", "line"}})
	maps.Copy(fields, more)
	return fields
}

// rowsOf are rows of another table than that of the case.
func (s *TableTest) rowsOf(table, columns string) []string {
	s.Helper()
	other := *s
	other.Table = table
	return other.ContentLines(columns)
}

// orderWithLines returns a parent with lines, each with a quantity of its own number.
func orderWithLines(id int, lines ...int) row {
	items := []any{}
	for _, line := range lines {
		items = append(items, row{"line": line, "n": line})
	}
	return row{"id": id, "items": items}
}

// withItems makes the tables of orders and of their items.
func (s *TableTest) withItems() {
	s.Helper()
	s.Create("id bigint PRIMARY KEY, note text")
	s.Query("CREATE TABLE "+s.itemsTable()+" (order_id bigint NOT NULL, line bigint NOT NULL, n bigint CHECK (n < 100), kept text DEFAULT 'new', PRIMARY KEY (order_id, line))", nil)
}

// itemLines returns the items as order/line.
func (s *TableTest) itemLines() (all []string) {
	s.Helper()
	for _, one := range s.Query("SELECT order_id, line, n FROM "+s.itemsTable()+" ORDER BY order_id, line", nil).([]any) {
		line := fmt.Sprintf("%v/%v", one.(row)["order_id"], one.(row)["line"])
		if n := one.(row)["n"]; n != one.(row)["line"] {
			line += "=" + expression.Text(n)
		}
		all = append(all, line)
	}
	return all
}

// childrenAreInserted: each element is a row with what it gets of its parent, once, however often the write is delivered.
func childrenAreInserted(s *TableTest) {
	s.withItems()
	in := s.WriteInput(s.ofItems(nil, nil), orderWithLines(1, 1, 2), row{"id": 2, "note": "none"}, row{"id": 3, "items": nil}, orderWithLines(4), row{"id": 5, "items": row{"line": 7, "n": 7}})
	for range 2 {
		result, err := s.db.MakeAttempt(s.t, in)
		require.NoError(s, err)
		require.Equal(s, AffectedResult(5), result.Data.Data)
	}
	require.Equal(s, []string{"1/1", "1/2", "5/7"}, s.itemLines(), "a map is a list of one")
	require.Equal(s, []string{`{"id":1,"note":null}`, `{"id":2,"note":"none"}`, `{"id":3,"note":null}`, `{"id":4,"note":null}`, `{"id":5,"note":null}`}, s.ContentLines("id, note"))
	s.Write(s.ofItems(nil, row{"position": "line"}), row{"id": 6, "items": []any{row{"n": 0}, row{"n": 1}}})
	require.Equal(s, []string{"6/0", "6/1"}, s.itemLines()[3:])
	in.OperationKey += " again"
	require.Contains(s, s.db.FailingCall(s.t, in).Message, s.Table, "the key of a parent")
	require.Len(s, s.itemLines(), 5)
}

// childrenAreUpserted: the rows below a parent are those of its list, and those of other parents stay.
func childrenAreUpserted(s *TableTest) {
	s.withItems()
	write := func(want []string, rows ...any) {
		s.Helper()
		for range 2 {
			require.Equal(s, AffectedResult(len(rows)), s.Write(s.upsertFields(nil), rows...))
			require.Equal(s, want, s.itemLines())
		}
	}
	write([]string{"1/1", "1/2", "1/3", "2/1", "2/2"}, orderWithLines(1, 1, 2, 3), orderWithLines(2, 1, 2))
	s.Query("UPDATE "+s.itemsTable()+" SET kept = 'old'", nil)
	write([]string{"1/2", "1/4", "2/1", "2/2"}, orderWithLines(1, 4, 2))
	require.Equal(s, []string{`{"kept":"new","line":4}`, `{"kept":"old","line":1}`, `{"kept":"old","line":2}`, `{"kept":"old","line":2}`},
		s.rowsOf(s.itemsTable(), "kept, line"), "what a child lacks stays")
	write([]string{"1/2", "1/4", "2/1", "2/2"}, row{"id": 1, "note": "no list"}, row{"id": 2, "note": "no list"})
	write([]string{"2/1", "2/2"}, row{"id": 1, "items": []any{}})
	write([]string{"3/9"}, row{"id": 2, "items": nil}, orderWithLines(3, 9))
	require.Equal(s, []string{`{"id":1,"note":"no list"}`, `{"id":2,"note":"no list"}`, `{"id":3,"note":null}`}, s.ContentLines("id, note"))
}

// childrenOfOneKey: rows of one key mean what they would if each was written by itself, and so do children of one key.
func childrenOfOneKey(s *TableTest) {
	s.withItems()
	s.Write(s.upsertFields(nil), orderWithLines(1, 1, 2), orderWithLines(1, 3))
	require.Equal(s, []string{"1/3"}, s.itemLines())
	s.Write(s.upsertFields(nil), orderWithLines(1, 4), row{"id": "1", "note": "later"}, orderWithLines(2, 1))
	require.Equal(s, []string{"1/4", "2/1"}, s.itemLines(), "the later one has no list")
	require.Equal(s, []string{`{"id":1,"note":"later"}`, `{"id":2,"note":null}`}, s.ContentLines("id, note"))
	s.Write(s.upsertFields(nil), orderWithLines(1, 5), row{"id": 1, "note": "n"}, row{"id": 1, "items": []any{}})
	require.Equal(s, []string{"2/1"}, s.itemLines())
	s.Write(s.upsertFields(nil), row{"id": 1, "items": []any{row{"line": 1, "n": 1}, row{"line": "1", "n": 50}, row{"line": 2, "n": 2}}})
	require.Equal(s, []string{"1/1=50", "1/2", "2/1"}, s.itemLines(), "of two children the later counts")
	fields := s.upsertFields(row{"hard_delete": "gone"})
	s.Write(fields, orderWithLines(3, 1, 2), row{"id": 3, "gone": true}, row{"id": 1, "gone": true, "items": []any{row{"line": 8}}})
	require.Equal(s, []string{"2/1"}, s.itemLines(), "what is deleted has no children")
	s.Write(fields, row{"id": 2, "gone": true}, orderWithLines(2, 7))
	require.Equal(s, []string{"2/7"}, s.itemLines())
	s.Write(fields, row{"id": 2, "gone": true}, row{"id": 2, "note": "back"})
	require.Empty(s, s.itemLines(), "what came back has no list")
}

// childrenMove: a child with a key of its own moves to the parent that has it last.
func childrenMove(s *TableTest) {
	s.Create("id bigint PRIMARY KEY")
	s.Query("CREATE TABLE "+s.itemsTable()+" (item bigint PRIMARY KEY, order_id bigint, note text)", nil)
	fields := s.ofItems(row{"mode": "upsert", "key": "id"}, row{"key": "item"})
	of := func(id int, items ...int) row {
		list := []any{}
		for _, item := range items {
			list = append(list, row{"item": item})
		}
		return row{"id": id, "items": list}
	}
	lines := func() []string { return s.rowsOf(s.itemsTable(), "item, order_id, note") }
	s.Write(fields, of(1, 10, 11), of(2, 20))
	s.Query("UPDATE "+s.itemsTable()+" SET note = 'kept'", nil)
	s.Write(fields, of(1, 11), of(2, 20, 10))
	require.Equal(s, []string{`{"item":10,"note":"kept","order_id":2}`, `{"item":11,"note":"kept","order_id":1}`, `{"item":20,"note":"kept","order_id":2}`}, lines())
	s.Write(fields, of(1, 11, 20))
	s.Write(fields, of(2, 10))
	require.Equal(s, []string{`{"item":10,"note":"kept","order_id":2}`, `{"item":11,"note":"kept","order_id":1}`, `{"item":20,"note":"kept","order_id":1}`}, lines(), "in two writes")
	s.Write(fields, of(2))
	require.Equal(s, []string{`{"item":11,"note":"kept","order_id":1}`, `{"item":20,"note":"kept","order_id":1}`}, lines())
}

// childrenOfChildren: what is below rows that are gone is gone too.
func childrenOfChildren(s *TableTest) {
	s.withItems()
	s.Query("CREATE TABLE "+s.partsTable()+" (order_id bigint, line bigint, part text, n bigint, PRIMARY KEY (order_id, line, part))", nil)
	fields := s.ofItems(row{"mode": "upsert", "key": "id", "hard_delete": "gone"}, row{"key": []any{"order_id", "line"}, "children": row{
		"parts": row{"table": s.partsTable(), "key": []any{"order_id", "line", "part"}, "with": row{"order_id": "order_id", "line": "line"}},
	}})
	item := func(line int, parts ...string) row {
		list := []any{}
		for _, part := range parts {
			list = append(list, row{"part": part, "n": 1})
		}
		return row{"line": line, "n": line, "parts": list}
	}
	parts := func() (lines []string) {
		for _, one := range s.Query("SELECT order_id, line, part FROM "+s.partsTable()+" ORDER BY order_id, line, part", nil).([]any) {
			lines = append(lines, fmt.Sprintf("%v/%v/%v", one.(row)["order_id"], one.(row)["line"], one.(row)["part"]))
		}
		return lines
	}
	s.Write(fields, row{"id": 1, "items": []any{item(1, "a", "b"), item(2, "a")}}, row{"id": 2, "items": []any{item(1, "x", "y")}})
	require.Equal(s, []string{"1/1/a", "1/1/b", "1/2/a", "2/1/x", "2/1/y"}, parts())
	s.Write(fields, row{"id": 1, "items": []any{item(1, "b", "c"), row{"line": 3, "n": 3}}})
	require.Equal(s, []string{"1/1", "1/3", "2/1"}, s.itemLines())
	require.Equal(s, []string{"1/1/b", "1/1/c", "2/1/x", "2/1/y"}, parts())
	s.Write(fields, row{"id": 1, "items": []any{row{"line": 1, "n": 1}}}, row{"id": 2, "note": "no list"})
	require.Equal(s, []string{"1/1/b", "1/1/c", "2/1/x", "2/1/y"}, parts(), "a child without the field leaves what is below it")
	s.Write(fields, row{"id": 1, "gone": true})
	require.Equal(s, []string{"2/1/x", "2/1/y"}, parts())
	s.Write(fields, row{"id": 2, "items": nil})
	require.Empty(s, parts())
	object := s.Refuse(fields, row{"id": 1, "items": []any{item(1), row{"line": 2, "n": 2, "parts": []any{"a"}}}})
	require.Contains(s, object.Message, "row 1, items[1], parts[0] is a string")
}

// childrenEvolve: their table is made and changed as that of their parents is, and as the plan says.
func childrenEvolve(s *TableTest) {
	fields := s.upsertFields(row{"schema_contract": "evolve"})
	fields["children"].(row)["items"].(row)["columns"] = row{"price": "numeric"}
	s.Write(fields, row{"id": 1, "items": []any{row{"line": 1, "price": 2}}}, row{"id": 2})
	require.Equal(s, []string{`{"line":1,"order_id":1,"price":2}`}, s.rowsOf(s.itemsTable(), "line, order_id, price"))
	s.Write(fields, row{"id": 1, "items": []any{row{"line": 1, "price": 3, "unit": "kg", "tags": []any{"a"}}}})
	got := s.Query("SELECT line, price, unit FROM "+s.itemsTable(), nil)
	require.Equal(s, []any{row{"line": 1, "price": 3, "unit": "kg"}}, got)
	for contract, message := range map[string]string{"freeze": `table "` + s.itemsTable() + `" has no column "more"`, "": `row 2, items[1]`} {
		frozen := s.upsertFields(nil)
		if contract != "" {
			frozen["schema_contract"] = contract
		}
		object := s.Refuse(frozen, row{"id": 3}, row{"id": 4, "items": []any{row{"line": 1}, row{"line": 2, "more": 1}}})
		require.Contains(s, object.Message, message)
		require.NotContains(s, s.ContentLines("id"), `{"id":4}`, "nothing of that write is kept")
	}
	result, err := s.db.MakeAttempt(s.t, s.WriteInput(s.upsertFields(row{"schema_contract": "discard_row"}), row{"id": 5, "items": []any{row{"line": 1}, row{"line": 2, "more": 1}}}))
	require.NoError(s, err)
	require.Equal(s, &interpreter.RowCounts{DiscardedRows: 1}, result.Meta.LeftOut)
	require.Contains(s, s.ContentLines("id"), `{"id":5}`, "a child that is left out does not take its parent with it")
}

// childrenAreRejected: a parent that is refused takes its children with it, and a child that is refused stays alone.
func childrenAreRejected(s *TableTest) {
	s.Create("id bigint PRIMARY KEY, n bigint CHECK (n < 100)")
	s.Query("CREATE TABLE "+s.itemsTable()+" (order_id bigint NOT NULL, line bigint NOT NULL, n bigint CHECK (n < 100), PRIMARY KEY (order_id, line))", nil)
	aside := s.Table + "_aside"
	for _, mode := range []row{{"mode": "insert"}, {"mode": "upsert", "key": "id"}} {
		s.Query("DELETE FROM "+s.Table, nil)
		s.Query("DELETE FROM "+s.itemsTable(), nil)
		fields := s.ofItems(row{"rejected": row{"table": aside, "max": 20}}, row{"key": []any{"order_id", "line"}})
		maps.Copy(fields, mode)
		in := s.WriteInput(fields, orderWithLines(1, 1, 500, 2), row{"id": 2, "n": 500, "items": []any{row{"line": 1, "n": 1}}}, orderWithLines(3, 3), orderWithLines(4, 600))
		in.Step = mode["mode"].(string)
		for range 2 {
			result, err := s.db.MakeAttempt(s.t, in)
			require.NoError(s, err)
			if in.Step == "upsert" {
				require.Equal(s, &interpreter.RowCounts{RejectedRows: 3}, result.Meta.LeftOut)
			}
		}
		require.Equal(s, []string{`{"id":1}`, `{"id":3}`, `{"id":4}`}, s.ContentLines("id"))
		require.Equal(s, []string{"1/1", "1/2", "3/3"}, s.itemLines())
		found := s.Query(`SELECT "row", reason, value FROM `+aside+` WHERE step = {{ step }} ORDER BY "row"`, row{"step": in.Step}).([]any)
		require.Len(s, found, 3)
		require.Equal(s, 1, found[0].(row)["row"])
		require.Contains(s, found[0].(row)["reason"], "items[1]: ")
		require.Contains(s, found[1].(row)["value"], `"items":[{"line":1,"n":1}]`, "what was below it is kept there")
		require.Contains(s, found[2].(row)["reason"], "items[0]: ")
	}
	for _, fields := range []row{s.upsertFields(nil), s.ofItems(nil, nil)} {
		require.Contains(s, s.Refuse(fields, orderWithLines(8, 1), orderWithLines(9, 1, 2, 500)).Message, "row 2, items[2]")
	}
	require.Len(s, s.ContentLines("id"), 3, "nothing of such a write is kept")
}

// figuresOfChildren: each table has its own.
func figuresOfChildren(s *TableTest) {
	s.withItems()
	call := func(rows ...any) map[string]interpreter.RowTotals {
		s.Helper()
		result, err := s.db.MakeAttempt(s.t, s.WriteInput(s.upsertFields(nil), rows...))
		require.NoError(s, err)
		figures := map[string]interpreter.RowTotals{}
		for _, table := range result.Meta.Rows.Tables {
			figures[table.Table] = table.RowTotals
		}
		return figures
	}
	type totals = interpreter.RowTotals
	require.Equal(s, map[string]totals{s.Table: s.splitFigures(totals{Written: 2, Inserted: 2}), s.itemsTable(): s.splitFigures(totals{Written: 3, Inserted: 3})}, call(orderWithLines(1, 1, 2), orderWithLines(2, 1)))
	items := s.splitFigures(totals{Written: 2, Inserted: 1, Updated: 1})
	items.Deleted = 1
	require.Equal(s, map[string]totals{s.Table: s.splitFigures(totals{Written: 1, Updated: 1}), s.itemsTable(): items}, call(orderWithLines(1, 1, 3)))
	require.Equal(s, map[string]totals{s.Table: s.splitFigures(totals{Written: 1, Updated: 1}), s.itemsTable(): {Deleted: 2}}, call(orderWithLines(1)))
}

// childrenByForeignKey: where the database itself has children point at their parents, parents come first and go last.
func childrenByForeignKey(s *TableTest) {
	s.Create("id bigint PRIMARY KEY")
	s.Query("CREATE TABLE "+s.itemsTable()+" (order_id bigint NOT NULL REFERENCES "+s.Table+" (id), line bigint NOT NULL, n bigint, PRIMARY KEY (order_id, line))", nil)
	fields := s.upsertFields(row{"hard_delete": "gone"})
	s.Write(fields, orderWithLines(1, 1, 2), orderWithLines(2, 1))
	s.Write(fields, row{"id": 1, "gone": true}, orderWithLines(2, 2))
	require.Equal(s, []string{"2/2"}, s.itemLines())
	require.Equal(s, []string{`{"id":2}`}, s.ContentLines("id"))
}

// wordsOfChildren: what could lose rows is refused.
func wordsOfChildren(s *TableTest) {
	s.withItems()
	for says, fields := range map[string]row{
		"children.items needs key":                                       s.ofItems(row{"mode": "upsert", "key": "id"}, nil),
		`with of children.items must include "id"`:                       s.ofItems(row{"mode": "upsert", "key": "id"}, row{"key": "line", "with": row{"o": "note"}}),
		"children.items needs with":                                      s.ofItems(nil, row{"with": row{}}),
		"children.items needs table":                                     s.ofItems(nil, row{"table": nil}),
		"the sink writes other rows to the table":                        s.ofItems(nil, row{"table": s.Table}),
		"children cannot be used with mode insert_or_ignore without key": s.ofItems(row{"mode": "insert_or_ignore"}, nil),
		`row 1, items: the row has no "no"`:                              s.ofItems(nil, row{"with": row{"order_id": "no"}}),
		"does not exist":                                                 s.ofItems(nil, row{"table": "nosuch"}),
		`the key of children.items must include "order_id"`: s.ofItems(row{"mode": "upsert", "key": "id"}, row{"key": "line", "children": row{
			"parts": row{"table": s.partsTable(), "key": "part", "with": row{"line": "line"}},
		}}),
	} {
		object := s.Refuse(fields, orderWithLines(1, 1))
		require.Contains(s, object.Message, says)
		require.Equal(s, interpreter.ClassFinal, object.Class, says)
	}
	require.Contains(s, s.Refuse(s.upsertFields(nil), row{"id": 1, "items": []any{row{"n": 1}}}).Message, `row 1, items[0] has no "line", which is part of the key`)
	require.Contains(s, s.Refuse(s.ofItems(nil, nil), row{"id": 1, "items": "text"}).Message, "row 1, items is a string")
	require.Empty(s, s.ContentLines("id"))
}

// childrenAsIfEach: any write of rows of any keys leaves what the same rows leave that are written one by one.
func childrenAsIfEach(s *TableTest) {
	s.withItems()
	other := *s
	other.Table += "_other"
	other.withItems()
	random := rand.New(rand.NewPCG(46, 1)) //nolint:gosec // the same each time
	for round := range 60 {
		rows := make([]any, 1+random.IntN(7))
		for i := range rows {
			own := row{"id": 1 + random.IntN(3)}
			switch random.IntN(6) {
			case 0:
				own["gone"] = true
			case 1:
				own["note"] = fmt.Sprint(round)
			case 2:
				own["items"] = nil
			default:
				own["items"] = orderWithLines(0, random.Perm(4)[:random.IntN(4)]...)["items"]
				for _, item := range own["items"].([]any) {
					item.(row)["n"] = random.IntN(90)
				}
			}
			rows[i] = own
		}
		s.Write(s.upsertFields(row{"hard_delete": "gone"}), rows...)
		for _, one := range rows {
			other.Write(other.upsertFields(row{"hard_delete": "gone"}), one)
		}
		require.Equal(s, other.ContentLines("id, note"), s.ContentLines("id, note"), "round %d: %v", round, rows)
		require.Equal(s, other.rowsOf(other.itemsTable(), "order_id, line, n, kept"), s.rowsOf(s.itemsTable(), "order_id, line, n, kept"), "round %d: %v", round, rows)
	}
}

// childrenTogether: of two writes of one parent at the same time one comes after the other, whatever else they have.
func childrenTogether(s *TableTest) {
	s.withItems()
	s.Write(s.upsertFields(nil), orderWithLines(1))
	inputs := []interpreter.ToolInput{}
	for i := range 8 {
		rows := []any{orderWithLines(1, 10*i, 10*i+1), orderWithLines(100+i, i)}
		inputs = append(inputs, s.WriteInput(s.upsertFields(nil), rows...))
	}
	var group errgroup.Group
	for _, in := range inputs {
		group.Go(func() error {
			_, err := s.db.MakeAttempt(s.t, in)
			return err
		})
	}
	require.NoError(s, group.Wait())
	require.Len(s, s.Query("SELECT line FROM "+s.itemsTable()+" WHERE order_id > 1", nil), 8, "those of other parents")
	left := s.Query("SELECT min(line) AS first, count(*) AS n, max(line) - min(line) AS apart FROM "+s.itemsTable()+" WHERE order_id = 1", nil).([]any)[0].(row)
	require.Equal(s, row{"first": left["first"], "n": 2, "apart": 1}, left, "the list of one of them")
}
