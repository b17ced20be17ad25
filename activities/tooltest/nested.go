package tooltest

import (
	"fmt"
	"maps"
	"strings"

	"github.com/stretchr/testify/require"

	"reprise/interpreter"
)

var nestedCases = tableCases{
	"lists become tables":       listsBecomeTables,
	"lists of other modes":      listsOfOtherModes,
	"lists beside descriptions": listsBesideDescriptions,
	"lists that are refused":    listsThatAreRefused,
}

// nestedInto are the fields of a write whose lists become tables.
func nestedInto(more row) row {
	fields := row{"nested": "tables", "key": "id", "schema_contract": "evolve"}
	maps.Copy(fields, more)
	return fields
}

// nestedLines are all rows of the table for the lists of a path, as values joined by slashes.
func (s *TableTest) nestedLines(path, columns string) (lines []string) {
	s.Helper()
	table := s.Table + "_" + path
	columns = strings.ReplaceAll(columns, "T_", s.Table+"_")
	lines = []string{}
	for _, one := range s.Query("SELECT "+columns+" FROM "+table+" ORDER BY "+columns, nil).([]any) {
		values := []string{}
		for _, column := range strings.Split(columns, ", ") {
			values = append(values, fmt.Sprint(one.(row)[column]))
		}
		lines = append(lines, strings.Join(values, "/"))
	}
	return lines
}

// listsBecomeTables: each list of a row has a table of its own, with the key of the row and the place in the list, at any depth.
func listsBecomeTables(s *TableTest) {
	for range 2 {
		s.Write(nestedInto(row{"mode": "upsert"}), row{"id": 1, "note": "a", "tags": []any{"x", "y"}, "items": []any{
			row{"sku": "A", "taxes": []any{row{"rate": 7}, row{"rate": 19}}}, row{"sku": "B", "place": row{"city": "Bonn"}},
		}}, row{"id": 2, "tags": nil, "items": []any{}}, row{"id": 3, "items": []any{row{"sku": "C", "taxes": []any{row{"rate": 7}}}}})
		require.Equal(s, []string{`{"id":1,"note":"a"}`, `{"id":2,"note":null}`, `{"id":3,"note":null}`}, s.ContentLines("id, note"))
		require.Equal(s, []string{"id", "note"}, s.columnNames(), "lists have no column")
		require.Equal(s, []string{"1/0/x", "1/1/y"}, s.nestedLines("tags", "T_id, T_tags_line, value"))
		require.Equal(s, []string{"1/0/A", "1/1/B", "3/0/C"}, s.nestedLines("items", "T_id, T_items_line, sku"))
		require.Equal(s, []string{"1/0/0/7", "1/0/1/19", "3/0/0/7"}, s.nestedLines("items_taxes", "T_id, T_items_line, T_items_taxes_line, rate"))
	}
	s.Write(nestedInto(row{"mode": "upsert"}), row{"id": 1, "items": []any{row{"sku": "B", "taxes": []any{}}}}, row{"id": 3, "note": "c"})
	require.Equal(s, []string{"1/0/B", "3/0/C"}, s.nestedLines("items", "T_id, T_items_line, sku"), "a row without the field keeps its list")
	require.Equal(s, []string{"3/0/0/7"}, s.nestedLines("items_taxes", "T_id, T_items_line, T_items_taxes_line, rate"))
	require.Equal(s, []string{"1/0/x", "1/1/y"}, s.nestedLines("tags", "T_id, T_tags_line, value"))
	s.Write(nestedInto(row{"mode": "upsert"}), row{"id": 1, "tags": nil}, row{"id": 3, "items": nil})
	require.Empty(s, s.nestedLines("tags", "T_id, T_tags_line, value"), "no row has a list, and the table is known")
	require.Equal(s, []string{"1/0/B"}, s.nestedLines("items", "T_id, T_items_line, sku"))
	require.Empty(s, s.nestedLines("items_taxes", "T_id, T_items_line, rate"))
	s.Write(nestedInto(row{"mode": "upsert", "hard_delete": "gone"}), row{"id": 1, "gone": true})
	require.Empty(s, s.nestedLines("items", "T_id, T_items_line, sku"))
	s.Write(nestedInto(row{"mode": "upsert"}), row{"id": 4, "items": row{"sku": "one"}})
	require.Equal(s, []string{"4/0/one"}, s.nestedLines("items", "T_id, T_items_line, sku"), "where the table is known, a map is a list of one")
	require.Equal(s, []string{"id", "note"}, s.columnNames())
}

// listsOfOtherModes: each mode does with lists what it does with described tables.
func listsOfOtherModes(s *TableTest) {
	items := func(id int, skus ...any) row {
		list := []any{}
		for _, sku := range skus {
			list = append(list, row{"sku": sku, "parts": []any{row{"part": sku}}})
		}
		return row{"id": id, "items": list}
	}
	skus := func() []string { return s.nestedLines("items", "T_id, T_items_line, sku") }
	parts := func() []string { return s.nestedLines("items_parts", "T_id, T_items_line, part") }
	in := s.WriteInput(nestedInto(nil), items(1, "a", "b"), items(2, "c"))
	for range 2 {
		_, err := s.db.MakeAttempt(s.t, in)
		require.NoError(s, err)
	}
	s.Write(nestedInto(row{"mode": "insert_or_ignore"}), items(2, "x", "y"), items(3, "d"))
	require.Equal(s, []string{"1/0/a", "1/1/b", "2/0/c", "3/0/d"}, skus())
	require.Equal(s, []string{"1/0/a", "1/1/b", "2/0/c", "3/0/d"}, parts())
	missing := s.stagingLoad(nestedInto(row{"mode": "upsert", "delete_missing": true}))
	missing.callTwice(interpreter.StagingBegin)
	missing.callTwice("", items(1, "b"), row{"id": 3})
	missing.publishRows()
	require.Equal(s, []string{"1/0/b", "3/0/d"}, skus(), "what was not read goes with its lists")
	require.Equal(s, []string{"1/0/b", "3/0/d"}, parts())
	load := s.beginReplace(nestedInto(nil))
	load.callTwice(interpreter.StagingBegin)
	load.stagePage(items(3, "d", "e"), row{"id": 5, "tags": []any{"t"}})
	load.stagePage(items(6, "f"), items(3, "g"))
	require.Equal(s, []string{"1/0/b", "3/0/d"}, skus(), "nothing before it is published")
	load.publishRows()
	require.Equal(s, []string{"3/0/g", "6/0/f"}, skus())
	require.Equal(s, []string{"3/0/g", "6/0/f"}, parts())
	require.Equal(s, []string{"5/0/t"}, s.nestedLines("tags", "T_id, T_tags_line, value"))
	without := s.beginReplace(nestedInto(nil))
	without.stagePage(items(3, "h"))
	require.Contains(s, without.refuseCall(interpreter.StagingPublish).Message, `had the field "tags", so nothing was deleted`)
	require.Equal(s, []string{"3/0/g", "6/0/f"}, skus())
}

// listsBesideDescriptions: tables that children describes are as they say, and lists in their elements become tables too.
func listsBesideDescriptions(s *TableTest) {
	fields := nestedInto(row{"mode": "upsert", "children": row{"items": row{"table": s.itemsTable(), "key": []any{"order_id", "n"}, "with": row{"order_id": "id"}}}, "columns": row{"raw": "text"}})
	if s.db.Name == "postgres" {
		fields["columns"] = row{"raw": "jsonb"}
	}
	fields["children"].(row)["items"].(row)["table"] = s.Table + "lines"
	s.Write(fields, row{"id": 1, "raw": []any{1}, "tags": []any{[]any{1, 2}, 3}, "items": []any{row{"n": 1, "codes": []any{"p", "q"}}}})
	require.Equal(s, []string{"id", "raw"}, s.columnNames(), "a list whose column has a declared type stays")
	require.Len(s, s.nestedLines("tags", "T_id, T_tags_line, value"), 2)
	got := s.Query("SELECT value FROM "+s.Table+"lines_codes WHERE "+s.Table+"lines_order_id = 1 AND "+s.Table+"lines_n = 1 ORDER BY "+s.Table+"lines_codes_line", nil)
	require.Equal(s, []any{row{"value": "p"}, row{"value": "q"}}, got)
}

// listsThatAreRefused: what would be guessed is an error with its place, and nothing of such a write is kept.
func listsThatAreRefused(s *TableTest) {
	fields := nestedInto(row{"mode": "upsert"})
	s.Write(fields, row{"id": 1, "items": []any{row{"n": 1}}, "object": row{"a": 1}, "tags": []any{"x"}})
	s.Query("CREATE TABLE "+s.Table+"_other (note text)", nil)
	for _, test := range []struct {
		says string
		row  row
	}{
		{"row 2, items is a string", row{"id": 2, "items": "text"}},
		{"row 2, items[0] is a map and row 2, items[1] is not", row{"id": 2, "items": []any{row{"n": 1}, "x"}}},
		{"row 2, items[0] is not a map, but table \"" + s.Table + "_items\" has columns for maps", row{"id": 2, "items": []any{"x"}}},
		{"row 2, items[0], deep[0] is a map and row 2, items[0], deep[1] is not", row{"id": 2, "items": []any{row{"n": 1, "deep": []any{row{"n": 1}, 7}}}}},
		{"row 2, object has a list for the table \"" + s.Table + "_object\", but table \"" + s.Table + "\" has a column of that name", row{"id": 2, "object": []any{row{"a": 1}}}},
		{"table \"" + s.Table + "_other\" has no column \"" + s.Table + "_id\", so it was not made for the lists of other", row{"id": 2, "other": []any{row{"note": "n"}}}},
		{"row 2, items[0] has the field \"" + s.Table + "_id\" with 7", row{"id": 2, "items": []any{row{"n": 1, s.Table + "_id": 7}}}},
		{"row 2, items[1] has the field \"" + s.Table + "_items_line\" with 7", row{"id": 2, "items": []any{row{"n": 1}, row{s.Table + "_items_line": 7}}}},
		{"two fields have lists that would be written to the same table", row{"id": 2, "items_deep": []any{row{"n": 1}}, "items": []any{row{"n": 1, "deep": []any{row{"n": 1}}}}}},
		{"row 2, id is a list, but the column is part of the key", row{"id": []any{2}}},
	} {
		object := s.Refuse(nestedInto(row{"mode": "upsert", "schema_contract": nil}), row{"id": 9}, test.row)
		require.Contains(s, object.Message, test.says)
		require.Equal(s, interpreter.ClassFinal, object.Class, test.says)
	}
	require.Equal(s, []string{`{"id":1}`}, s.ContentLines("id"))
	s.Write(fields, row{"id": 2, "items": []any{row{"n": 1, s.Table + "_id": 2, s.Table + "_items_line": 0}}})
	require.Equal(s, []string{"1/0/1", "2/0/1"}, s.nestedLines("items", "T_id, T_items_line, n"), "the same value is no contradiction")
	require.Contains(s, s.Refuse(row{"nested": "tables"}, row{"id": 1}).Message, "nested: tables needs key")
	require.Contains(s, s.Refuse(row{"nested": "lists", "key": "id"}, row{"id": 1}).Message, "nested")
	frozen := s.Refuse(nestedInto(row{"mode": "upsert", "schema_contract": "freeze"}), row{"id": 1, "more": []any{row{"a": 1}}})
	require.Contains(s, frozen.Message, s.Table+"_more")
	rejecting := nestedInto(row{"mode": "upsert", "rejected": row{"table": s.Table + "aside"}})
	s.Query("CREATE UNIQUE INDEX "+s.Table+"_once ON "+s.Table+"_tags (value)", nil)
	result, err := s.db.MakeAttempt(s.t, s.WriteInput(rejecting, row{"id": 3, "tags": []any{"z", "x"}}))
	require.NoError(s, err)
	require.Equal(s, 1, result.Meta.LeftOut.RejectedRows)
	require.Equal(s, []string{"1/0/x", "3/0/z"}, s.nestedLines("tags", "T_id, T_tags_line, value"))
	require.Contains(s, s.Query("SELECT reason FROM "+s.Table+"aside", nil).([]any)[0].(row)["reason"], "tags[1]: ")
}
