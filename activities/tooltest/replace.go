package tooltest

import (
	"fmt"
	"maps"
	"strings"

	"github.com/stretchr/testify/require"

	"reprise/interpreter"
	"reprise/interpreter/expression"
)

var replaceCases = tableCases{
	"replace by key":                replaceByKey,
	"replace with triggers":         replaceWithTriggers,
	"replace images":                replaceImages,
	"replace respelt keys":          replaceRespeltKeys,
	"replace bounds of new columns": replaceBoundsOfNewColumns,
	"replaced rows are noted":       replacedRowsAreNoted,
	"replace all":                   replaceAll,
	"replace nothing":               replaceNothing,
	"replace deletes no others":     replaceDeletesNoOthers,
	"replace rounds":                replaceRounds,
	"replace lost":                  replaceLost,
	"replace left over":             replaceLeftOver,
	"replace twice":                 replaceTwice,
	"replace bounded":               replaceBounded,
	"bounded by value":              boundedByValue,
	"replace bounded by times":      replaceBoundedByTimes,
	"replace checks":                replaceChecks,
	"replace evolves":               replaceEvolves,
	"replace tables":                replaceTables,
	"delete missing":                deleteMissing,
	"delete missing of other keys":  deleteMissingOfOtherKeys,
	"words of replace":              wordsOfReplace,
}

// load is a call or loop whose rows are published together.
type load struct {
	*TableTest
	id     string
	fields map[string]any
	part   *int
	round  int
}

// beginReplace returns a call in mode replace.
func (s *TableTest) beginReplace(fields map[string]any) *load {
	all := row{"mode": "replace"}
	maps.Copy(all, fields)
	return s.stagingLoad(all)
}

func (s *TableTest) stagingLoad(fields map[string]any) *load {
	s.keys++
	return &load{TableTest: s, fields: fields, id: fmt.Sprintf("%s%04d", expression.ShortDigest(s.Table)[:16], s.keys)}
}

// iterationLoad returns the load in one of its iterations.
func (l *load) iterationLoad(part, round int) *load {
	own := *l
	own.part, own.round = &part, round
	return &own
}

// stagingInput is a write of rows, or what else is done.
func (l *load) stagingInput(do interpreter.StagingStep, rows ...any) interpreter.ToolInput {
	in := l.WriteInput(l.fields, rows...)
	if do != "" {
		in.Result, in.Fingerprint = nil, ""
	}
	in.Staging = &interpreter.Staging{ID: l.id, Part: l.part, Round: l.round, Do: do}
	return in
}

// callTwice makes a call that must succeed, twice, and gives what it says.
func (l *load) callTwice(do interpreter.StagingStep, rows ...any) any {
	l.Helper()
	in := l.stagingInput(do, rows...)
	result, err := l.db.MakeAttempt(l.t, in)
	require.NoError(l, err)
	again, err := l.db.MakeAttempt(l.t, in)
	require.NoError(l, err, "delivered twice")
	require.Equal(l, result.Data, again.Data, "delivered twice")
	return result.Data.Data
}

// stagePage stages rows.
func (l *load) stagePage(rows ...any) {
	l.Helper()
	require.Equal(l, AffectedResult(len(rows)), l.callTwice("", rows...))
}

// publishRows publishes, and gives what that says.
func (l *load) publishRows() any {
	l.Helper()
	return l.callTwice(interpreter.StagingPublish)
}

// refuseCall makes a call that must fail, and gives its error.
func (l *load) refuseCall(do interpreter.StagingStep, rows ...any) interpreter.ErrorObject {
	l.Helper()
	object := l.db.FailingCall(l.t, l.stagingInput(do, rows...))
	require.Equal(l, interpreter.ClassFinal, object.Class)
	return object
}

// stagingTable returns the name of the table beside the target.
func (l *load) stagingTable() string { return "reprise_staging_" + l.id }

// hasStagingTable reports whether there is a table beside.
func (l *load) hasStagingTable() bool {
	l.Helper()
	query := "SELECT count(*) AS n FROM sqlite_master WHERE name = {{ name }}"
	if l.db.Name == "postgres" {
		query = "SELECT count(*) AS n FROM pg_class WHERE relname = {{ name }}"
	}
	return l.Query(query, row{"name": l.stagingTable()}).([]any)[0].(row)["n"] == 1
}

// replaceContent has the table have other rows.
func (s *TableTest) replaceContent(rows ...any) {
	s.Helper()
	s.Query("DELETE FROM "+s.Table, nil)
	s.Write(nil, rows...)
}

func publishedResult(affected, deleted int) any {
	return row{"rows_affected": affected, "rows_deleted": deleted}
}

// replaceByKey: only what differs is changed, and nothing before it is published.
func replaceByKey(s *TableTest) {
	s.Create("id bigint, region text, n numeric, word text, kept text DEFAULT 'new'")
	s.Write(nil, row{"id": 1, "region": "a", "n": 1, "word": "x", "kept": "k1"}, row{"id": 2, "region": "a", "n": 2, "word": "y", "kept": "k2"},
		row{"id": 2, "region": "b", "n": 3, "word": nil, "kept": "k3"}, row{"id": 9, "region": "a", "n": 9}, row{"id": nil, "region": "a", "n": 9},
		row{"id": 7, "region": "a", "n": 7, "kept": "one of two"}, row{"id": 7, "region": "a", "n": 7, "kept": "the other"})
	before := s.ContentLines("id, region, n, word, kept")
	load := s.beginReplace(row{"key": []any{"id", "region"}})
	load.stagePage(row{"id": 1, "region": "a", "n": 1, "word": "x"}, row{"id": 2, "region": "a", "n": 5, "word": "y"})
	load.stagePage(row{"id": 4, "region": "a", "n": 4, "word": "z"}, row{"id": 5, "region": "a", "n": 1}, row{"id": 7, "region": "a", "n": 7})
	load.stagePage(row{"id": 2, "region": "b", "n": 3}, row{"id": 5, "region": "a", "n": 6})
	require.Equal(s, before, s.ContentLines("id, region, n, word, kept"))
	require.True(s, load.hasStagingTable())
	require.Equal(s, publishedResult(4, 4), load.publishRows(), "changed: 2a; new: 4, 5 as it was written last, 7, which was there twice; gone: 9, nil, both of 7")
	require.Equal(s, []string{
		`{"id":1,"kept":"k1","n":1,"region":"a","word":"x"}`, `{"id":2,"kept":"k2","n":5,"region":"a","word":"y"}`, `{"id":2,"kept":"k3","n":3,"region":"b","word":null}`,
		`{"id":4,"kept":"new","n":4,"region":"a","word":"z"}`, `{"id":5,"kept":"new","n":6,"region":"a","word":null}`, `{"id":7,"kept":"new","n":7,"region":"a","word":null}`,
	}, s.ContentLines("id, region, n, word, kept"))
	require.False(s, load.hasStagingTable())
	require.Equal(s, "overtaken", load.refuseCall("", row{"id": 8, "region": "a"}).Type, "of a worker that was frozen")
	again := s.beginReplace(row{"key": []any{"id", "region"}})
	again.stagePage(row{"id": 1, "region": "a"}, row{"id": 2, "region": "a"})
	require.Equal(s, publishedResult(0, 4), again.publishRows(), "columns that no row has stay")
	require.Contains(s, again.beginReplace(row{"key": "id"}).refuseCall("", row{"id": nil, "n": 1}).Message, `has no "id", which is the key`)
}

// replaceWithTriggers: rows that a trigger keeps from being written, changed or deleted are counted.
func replaceWithTriggers(s *TableTest) {
	s.Create("id bigint PRIMARY KEY, n numeric")
	rows := []any{row{"id": 1, "n": 1}, row{"id": 2, "n": 1}, row{"id": 3, "n": 1}}
	s.Write(nil, rows...)
	of := func(load *load) *interpreter.RowCounts {
		result, err := load.db.MakeAttempt(load.t, load.stagingInput(interpreter.StagingPublish))
		require.NoError(load, err)
		return result.Meta.LeftOut
	}
	byKey := func(key any, rows ...any) *interpreter.RowCounts {
		load := s.beginReplace(row{"key": key})
		load.stagePage(rows...)
		return of(load)
	}
	require.Nil(s, byKey("id", rows[:2]...))
	s.protectRow("DELETE", "OLD")
	require.Equal(s, &interpreter.RowCounts{UndeletedRows: 1}, byKey("id", row{"id": 5, "n": 1}), "2 stays, and 1 is gone")
	require.Equal(s, []string{`{"id":2,"n":1}`, `{"id":5,"n":1}`}, s.ContentLines("id, n"))
	require.Equal(s, &interpreter.RowCounts{UndeletedRows: 1}, byKey(nil, row{"id": 6, "n": 1}))
	require.Equal(s, []string{`{"id":2,"n":1}`, `{"id":6,"n":1}`}, s.ContentLines("id, n"))
	missing := s.stagingLoad(row{"mode": "upsert", "key": "id", "delete_missing": true, "max_delete": 1})
	missing.stagePage(row{"id": 6, "n": 1})
	require.Equal(s, &interpreter.RowCounts{UndeletedRows: 1}, of(missing))
	s.protectRow("UPDATE", "NEW")
	require.Equal(s, &interpreter.RowCounts{UnwrittenRows: 1}, byKey("id", row{"id": 2, "n": 7}, row{"id": 6, "n": 7}))
	require.Equal(s, []string{`{"id":2,"n":1}`, `{"id":6,"n":7}`}, s.ContentLines("id, n"))
	s.Query("DROP TRIGGER "+s.dropName("DELETE"), nil)
	require.Nil(s, byKey("id", row{"id": 6, "n": 7}))
	s.protectRow("INSERT", "NEW")
	require.Equal(s, &interpreter.RowCounts{UnwrittenRows: 1}, byKey("id", row{"id": 2, "n": 7}, row{"id": 8, "n": 7}))
	require.Equal(s, &interpreter.RowCounts{UnwrittenRows: 1}, byKey(nil, row{"id": 2, "n": 7}, row{"id": 8, "n": 7}))
	require.Equal(s, []string{`{"id":8,"n":7}`}, s.ContentLines("id, n"))
}

// protectRow makes a trigger that keeps the row of number 2 from an event.
func (s *TableTest) protectRow(on, old string) {
	if s.db.Name == "sqlite" {
		s.Query("CREATE TRIGGER "+s.Table+on+" BEFORE "+on+" ON "+s.Table+" WHEN "+old+".id = 2 BEGIN SELECT RAISE(IGNORE); END", nil)
		return
	}
	s.Query("CREATE FUNCTION "+s.Table+on+"() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN IF "+old+".id = 2 THEN RETURN NULL; END IF; RETURN coalesce(NEW, OLD); END$$", nil)
	s.Query("CREATE TRIGGER "+on+"s BEFORE "+on+" ON "+s.Table+" FOR EACH ROW EXECUTE FUNCTION "+s.Table+on+"()", nil)
}

// dropName names the trigger of an event of the table as DROP TRIGGER needs it.
func (s *TableTest) dropName(event string) string {
	if s.db.Name == "sqlite" {
		return s.Table + event
	}
	return event + "s ON " + s.Table
}

// replaceImages: what differs only in how it is written is changed too.
func replaceImages(s *TableTest) {
	if s.db.Name == "sqlite" {
		s.Create("id bigint PRIMARY KEY, word text COLLATE NOCASE")
		s.Write(nil, row{"id": 1, "word": "a"})
		load := s.beginReplace(row{"key": "id"})
		load.stagePage(row{"id": 1, "word": "A"})
		require.Equal(s, publishedResult(1, 0), load.publishRows())
		return
	}
	s.Create("id bigint PRIMARY KEY, n numeric, doc json, docs jsonb, at timestamptz, list text[], place point")
	one := row{"id": 1, "n": "1.0", "doc": row{"a": 1}, "docs": row{"a": 1}, "at": "2024-01-01T00:00:00Z", "list": []any{"a"}, "place": "(1,2)"}
	s.Write(nil, one)
	for _, test := range []struct {
		column  string
		value   any
		changed int
	}{
		{"n", "1.0", 0},
		{"n", "1.00", 1},
		{"doc", row{"a": 2}, 1},
		{"docs", row{"a": 2}, 1},
		{"at", "2024-01-01T01:00:00+01:00", 0},
		{"list", []any{"b"}, 1},
		{"place", "(1,3)", 1},
		{"place", nil, 1},
	} {
		one[test.column] = test.value
		load := s.beginReplace(row{"key": "id"})
		load.stagePage(one)
		require.Equal(s, publishedResult(test.changed, 0), load.publishRows(), "%v", test)
	}
}

// replaceRespeltKeys: a key that equals that of the table in other letters takes its place.
func replaceRespeltKeys(s *TableTest) {
	typed := "text COLLATE NOCASE"
	if s.db.Name == "postgres" {
		s.Query("CREATE COLLATION "+s.Table+"_ci (provider = icu, locale = 'und-u-ks-level2', deterministic = false)", nil)
		typed = "text COLLATE " + s.Table + "_ci"
	}
	s.Create("k " + typed + " PRIMARY KEY, n bigint")
	s.Write(nil, row{"k": "a", "n": 1}, row{"k": "b", "n": 2})
	load := s.beginReplace(row{"key": "k"})
	load.stagePage(row{"k": "A", "n": 1}, row{"k": "b", "n": 2})
	require.Equal(s, publishedResult(1, 0), load.publishRows())
	require.Equal(s, []string{`{"k":"A","n":1}`, `{"k":"b","n":2}`}, s.ContentLines("k, n"))
}

// replacedRowsAreNoted: rows of different pages or iterations that replace each other are a warning, unless they are equal.
func replacedRowsAreNoted(s *TableTest) {
	s.Create("id bigint PRIMARY KEY, shop text")
	s.Query("CREATE TABLE "+s.itemsTable()+" (line bigint PRIMARY KEY, order_id bigint, n bigint)", nil)
	item := func(line int) row { return row{"line": line, "n": line} }
	for _, test := range []struct {
		fields row
		pages  []row
		note   string
	}{
		{row{"key": "id"}, []row{{"id": 1, "shop": "a"}, {"id": 1, "shop": "b"}, {"id": 2, "shop": "b"}}, `table "%s": 1 of 3 rows have the key (id) of a later row, some with other values`},
		{row{"key": "id"}, []row{{"id": 1, "shop": "a"}, {"id": 1, "shop": "a"}}, ""},
		{
			s.ofItems(row{"key": "id"}, row{"key": "line"}),
			[]row{{"id": 1, "items": []any{item(1), item(2)}}, {"id": 2, "items": []any{item(1)}}},
			`table "%s_items": 1 of 3 rows have the key (line) of a later row`,
		},
	} {
		load := s.beginReplace(test.fields)
		for _, page := range test.pages {
			load.stagePage(page)
		}
		result, err := load.db.MakeAttempt(s.t, load.stagingInput(interpreter.StagingPublish))
		require.NoError(s, err)
		if test.note == "" {
			require.Empty(s, result.Meta.Notes)
			continue
		}
		require.Len(s, result.Meta.Notes, 1)
		require.Contains(s, result.Meta.Notes[0], fmt.Sprintf(test.note, s.Table))
	}
}

// replaceAll: without a key all rows go, and all come.
func replaceAll(s *TableTest) {
	s.Create("id bigint, word text")
	s.Write(nil, row{"id": 1, "word": "a"}, row{"id": 2, "word": "b"})
	load := s.beginReplace(nil)
	load.stagePage(row{"id": 2, "word": "b"}, row{"id": 3})
	load.stagePage(row{"id": 2, "word": "b"})
	load.callTwice("")
	require.Len(s, s.ContentLines("id"), 2)
	require.Equal(s, publishedResult(3, 2), load.publishRows())
	require.Equal(s, []string{`{"id":2,"word":"b"}`, `{"id":2,"word":"b"}`, `{"id":3,"word":null}`}, s.ContentLines("id, word"))
	other := load.stagingInput("", row{"id": 3})
	other.OperationKey, other.Fingerprint = s.WriteInput(nil).OperationKey, "one"
	second := s.beginReplace(nil)
	other.Staging = second.stagingInput("").Staging
	_, err := s.db.MakeAttempt(s.t, other)
	require.NoError(s, err)
	other.Fingerprint = "another"
	require.Equal(s, "written_before", s.db.FailingCall(s.t, other).Type)
	require.Equal(s, publishedResult(1, 3), second.publishRows())
}

// replaceDeletesNoOthers: a table that is declared to delete rows that are in the way of new ones keeps them, those outside of
// replace_where too, and the call fails.
func replaceDeletesNoOthers(s *TableTest) {
	if s.db.Name != "sqlite" {
		return
	}
	s.Create("id integer PRIMARY KEY, n integer UNIQUE ON CONFLICT REPLACE")
	for _, test := range []struct {
		fields row
		rows   []any
	}{
		{row{}, []any{row{"id": 7, "n": 7}, row{"id": 8, "n": 7}}},
		{row{"key": "id"}, []any{row{"id": 7, "n": 7}, row{"id": 8, "n": 7}}},
		{row{"key": "id"}, []any{row{"id": 1, "n": 2}, row{"id": 2, "n": 1}}},
		{row{"replace_where": replaceWhere("id", 2, nil)}, []any{row{"id": 7, "n": 1}}},
		{row{"key": "id", "replace_where": replaceWhere("id", 2, nil)}, []any{row{"id": 2, "n": 1}}},
	} {
		s.replaceContent(row{"id": 1, "n": 1}, row{"id": 2, "n": 2})
		load := s.beginReplace(test.fields)
		load.stagePage(test.rows...)
		require.Contains(s, load.refuseCall(interpreter.StagingPublish).Message, "UNIQUE constraint failed", "%v", test.fields)
		require.Equal(s, []string{`{"id":1,"n":1}`, `{"id":2,"n":2}`}, s.ContentLines("id, n"), "%v", test.fields)
	}
	load := s.beginReplace(row{"key": "id"})
	load.stagePage(row{"id": 2, "n": 3}, row{"id": 4, "n": 1})
	require.Equal(s, publishedResult(2, 1), load.publishRows(), "what is replaced is not in the way")
}

// replaceNothing: no rows are an error, unless the author says else.
func replaceNothing(s *TableTest) {
	s.Create("id bigint, word text")
	for _, fields := range []row{{}, {"key": "id"}, {"mode": "upsert", "key": "id", "delete_missing": true, "max_delete": 1}} {
		s.replaceContent(row{"id": 1}, row{"id": 2})
		if fields["mode"] != nil {
			s.Query("CREATE UNIQUE INDEX "+s.Table+"_id ON "+s.Table+" (id)", nil)
		}
		for _, writes := range []bool{false, true} {
			load := s.beginReplace(fields)
			if writes {
				load.callTwice("")
			}
			refused := load.refuseCall(interpreter.StagingPublish)
			require.Equal(s, "empty_replace", refused.Type)
			require.Equal(s, fields["mode"] == nil, strings.Contains(refused.Message, "or all were rejected or discarded"), refused.Message)
			require.Len(s, s.ContentLines("id"), 2)
		}
		for i, writes := range []bool{false, true} {
			allowed := row{"allow_empty": true}
			maps.Copy(allowed, fields)
			load := s.beginReplace(allowed)
			if writes {
				load.callTwice("")
			}
			require.Equal(s, publishedResult(0, []int{2, 0}[i]), load.publishRows())
			require.Empty(s, s.ContentLines("id"))
		}
	}
	none := *s
	none.Table += "_none"
	require.Equal(s, publishedResult(0, 0), none.beginReplace(row{"allow_empty": true}).publishRows(), "there is no table")
}

// replaceRounds: a part that begins anew drops what it has staged, and nothing older comes in later.
func replaceRounds(s *TableTest) {
	s.Create("id bigint, word text")
	load := s.beginReplace(nil)
	load.iterationLoad(0, 0).stagePage(row{"id": 1})
	load.iterationLoad(1, 0).stagePage(row{"id": 2, "word": "first"}, row{"id": 3})
	load.iterationLoad(2, 0).stagePage(row{"id": 4})
	load.iterationLoad(3, 2).callTwice(interpreter.StagingSettle)
	late := load.iterationLoad(1, 0).stagingInput("", row{"id": 9})
	load.iterationLoad(1, 1).stagePage(row{"id": 5})
	load.iterationLoad(1, 1).stagePage(row{"id": 6})
	require.Equal(s, "overtaken", s.db.FailingCall(s.t, late).Type)
	load.iterationLoad(2, 1).callTwice(interpreter.StagingSettle)
	require.Equal(s, "overtaken", load.iterationLoad(2, 0).refuseCall("", row{"id": 9}).Type)
	require.Equal(s, "overtaken", load.iterationLoad(3, 1).refuseCall("", row{"id": 9}).Type, "of a part that had nothing")
	require.Equal(s, "overtaken", load.iterationLoad(2, 0).refuseCall(interpreter.StagingSettle).Type)
	require.Equal(s, publishedResult(3, 0), load.publishRows())
	require.Equal(s, []string{`{"id":1}`, `{"id":5}`, `{"id":6}`}, s.ContentLines("id"))
	for i, key := range []any{nil, "id"} {
		single := s.beginReplace(row{"allow_empty": true, "key": key})
		single.stagePage(row{"id": 1}, row{"id": 2})
		single.round = 1
		require.Equal(s, publishedResult(0, []int{3, 0}[i]), single.publishRows(), "a call without a loop settles its round")
	}
}

// replaceLost: rows that are not there any more are noticed.
func replaceLost(s *TableTest) {
	s.Create("id bigint, word text")
	s.Write(nil, row{"id": 1})
	for i, statement := range []string{"DELETE FROM %s WHERE id = 3", "DROP TABLE %s"} {
		for _, fields := range []row{{}, {"key": "id"}} {
			load := s.beginReplace(fields)
			load.stagePage(row{"id": 2}, row{"id": 3})
			s.Query(fmt.Sprintf(statement, load.stagingTable()), nil)
			object := load.refuseCall(interpreter.StagingPublish)
			require.Equal(s, "staging_lost", object.Type)
			require.Contains(s, object.Message, fmt.Sprintf("2 rows were staged for table %q, but %d were found", s.Table, 1-i))
			require.Equal(s, []string{`{"id":1}`}, s.ContentLines("id"))
		}
	}
}

// replaceLeftOver: what nobody publishes is dropped by those who come later, who know it from what is still written.
func replaceLeftOver(s *TableTest) {
	s.Create("id bigint, word text")
	left, busy, other := s.beginReplace(nil), s.beginReplace(nil), s.beginReplace(nil)
	elsewhere := *s
	elsewhere.Table += "_other"
	elsewhere.Create("id bigint")
	other.TableTest = &elsewhere
	for _, load := range []*load{left, busy, other} {
		load.stagePage(row{"id": 1})
	}
	age := func(load *load, seconds int) {
		ago := fmt.Sprintf("strftime('%%Y-%%m-%%dT%%H:%%M:%%fZ', 'now', '-%d seconds')", seconds)
		if s.db.Name == "postgres" {
			ago = fmt.Sprintf("now() - interval '%d seconds'", seconds)
		}
		for table, column := range map[string]string{"reprise_staging": "started_at", "reprise_staged": "written_at"} {
			s.Query("UPDATE "+table+" SET "+column+" = "+ago+" WHERE id = {{ id }}", row{"id": load.id})
		}
	}
	age(left, 3700)
	age(busy, 3700)
	age(other, 3700)
	busy.stagePage(row{"id": 2})
	second := s.beginReplace(nil)
	second.stagePage(row{"id": 5})
	require.False(s, left.hasStagingTable())
	require.True(s, busy.hasStagingTable())
	require.True(s, other.hasStagingTable(), "of another table")
	for _, object := range []interpreter.ErrorObject{left.refuseCall("", row{"id": 3}), left.refuseCall(interpreter.StagingPublish)} {
		require.Equal(s, "staging_lost", object.Type)
		require.Contains(s, object.Message, "none was added for more than an hour")
	}
	require.Equal(s, publishedResult(2, 0), busy.publishRows())
	age(second, 8*24*3600)
	age(other, 8*24*3600)
	s.beginReplace(nil).stagePage(row{"id": 6})
	require.False(s, second.hasStagingTable())
	require.False(s, other.hasStagingTable())
	require.Len(s, s.ContentLines("id"), 2)
}

// replaceTwice: two replaces of one table have rows of their own, and the later one wins whole.
func replaceTwice(s *TableTest) {
	s.Create("id bigint, word text")
	one, two := s.beginReplace(nil), s.beginReplace(row{"key": "id"})
	one.callTwice(interpreter.StagingBegin)
	two.callTwice(interpreter.StagingBegin)
	one.stagePage(row{"id": 1, "word": "one"})
	two.stagePage(row{"id": 1, "word": "two"}, row{"id": 2, "word": "two"})
	one.stagePage(row{"id": 3, "word": "one"})
	require.Equal(s, publishedResult(2, 0), one.publishRows())
	object := two.refuseCall(interpreter.StagingPublish)
	require.Equal(s, "table_changed", object.Type, "it may have read what is older")
	require.Contains(s, object.Message, "another load has replaced or deleted rows of it. Nothing was published")
	require.Equal(s, []string{`{"id":1,"word":"one"}`, `{"id":3,"word":"one"}`}, s.ContentLines("id, word"))
}

// replaceWhere returns a replace_where; nil is left out.
func replaceWhere(column string, from, to any) row {
	bounds := row{"column": column, "from": from, "to": to}
	maps.DeleteFunc(bounds, func(_ string, value any) bool { return value == nil })
	return bounds
}

// replaceBoundsOfNewColumns: a load may add the column of its bounds, or the table, after it has begun to read; which rows are newer is then
// unknown.
func replaceBoundsOfNewColumns(s *TableTest) {
	fields := row{"schema_contract": "evolve", "replace_where": replaceWhere("day", "2024-01-02T00:00:00Z", "2024-01-03T00:00:00Z")}
	for _, columns := range []string{"", "id bigint"} {
		s.Query("DROP TABLE IF EXISTS "+s.Table, nil)
		if columns != "" {
			s.Create(columns)
		}
		loads := []*load{s.beginReplace(fields), s.beginReplace(fields)}
		for i, load := range loads {
			load.callTwice(interpreter.StagingBegin)
			load.stagePage(row{"id": i, "day": "2024-01-02T10:00:00Z"})
		}
		require.Equal(s, publishedResult(1, 0), loads[0].publishRows())
		require.Contains(s, loads[1].refuseCall(interpreter.StagingPublish).Message, "another load has")
		require.Equal(s, []string{`{"id":0}`}, s.ContentLines("id"))
	}
}

// replaceBounded: only rows between the bounds are replaced, and others are refused where they are written.
func replaceBounded(s *TableTest) {
	s.Create("id bigint, day date, n bigint")
	for _, key := range []any{nil, "id"} {
		s.replaceContent(row{"id": 1, "day": "2024-01-01"}, row{"id": 2, "day": "2024-01-02"}, row{"id": 3, "day": "2024-01-03"}, row{"id": 4, "day": nil}, row{"id": 5, "day": "2024-01-02"})
		fields := row{"key": key, "replace_where": replaceWhere("day", "2024-01-02", "2024-01-03")}
		load := s.beginReplace(fields)
		load.stagePage(row{"id": 2, "day": "2024-01-02", "n": 1}, row{"id": 9, "day": "2024-01-02", "n": 1})
		for day, says := range map[any]string{"2024-01-03": `"2024-01-03"`, "2024-01-01": `"2024-01-01"`, nil: "nil"} {
			object := load.refuseCall("", row{"id": 6, "day": "2024-01-02"}, row{"id": 7, "day": day})
			require.Contains(s, object.Message, `row 2: column "day" is `+says+", and replace_where is limited to rows from 2024-01-02 up to but without 2024-01-03")
			require.Equal(s, "outside_replace_where", object.Type)
		}
		require.Contains(s, load.refuseCall("", row{"id": 7}).Message, `row 1: column "day" is nil`)
		rejecting := s.beginReplace(row{"replace_where": fields["replace_where"], "rejected": row{"table": s.Table + "_aside"}})
		require.Equal(s, "outside_replace_where", rejecting.refuseCall("", row{"id": 7, "day": "2024-01-09"}).Type, "and not set aside")
		other := *load
		other.fields = row{"mode": "replace", "key": key, "replace_where": replaceWhere("day", "2024-01-01", "2024-01-03")}
		require.Contains(s, other.refuseCall(interpreter.StagingPublish).Message, "must not depend on the element")
		require.Equal(s, publishedResult(2, map[any]int{nil: 2, "id": 1}[key]), load.publishRows())
		require.Equal(s, []string{`{"id":1}`, `{"id":2}`, `{"id":3}`, `{"id":4}`, `{"id":9}`}, s.ContentLines("id"))
		empty := s.beginReplace(row{"key": key, "replace_where": replaceWhere("day", "2024-01-03", nil), "allow_empty": true})
		require.Equal(s, publishedResult(0, 1), empty.publishRows())
	}
	s.replaceContent(row{"id": 9, "n": 1}, row{"id": 10, "n": 2}, row{"id": 11, "n": nil})
	numbers := s.beginReplace(row{"replace_where": replaceWhere("id", "10", nil)})
	numbers.stagePage(row{"id": 100})
	require.Contains(s, numbers.refuseCall("", row{"id": 9}).Message, "rows from 10", "as numbers, not as text")
	require.Equal(s, publishedResult(1, 2), numbers.publishRows())
	quoted := s.beginReplace(row{"replace_where": replaceWhere("n", 0, "2 OR true"), "allow_empty": true})
	require.Contains(s, quoted.refuseCall(interpreter.StagingPublish).Message, `up to but without "2 OR true", which is not a plain number`)
	require.Contains(s, s.beginReplace(row{"replace_where": replaceWhere("dday", 1, nil)}).refuseCall("", row{"id": 9}).Message, `replace_where: table "`+s.Table+`" has no column "dday": did you mean "day"?`)
}

// replaceBoundedByTimes: bounds that are times are instants, whatever their zones and forms. What has no zone, such as a
// date, is of the zone of the bound.
func replaceBoundedByTimes(s *TableTest) {
	s.Create("id bigint, at timestamp with time zone, day date")
	s.replaceContent(row{"id": 1, "at": "2024-03-30T23:00:00Z"}, row{"id": 2, "at": "2024-03-30T22:59:59.999999Z"}, row{"id": 3, "at": "2024-03-31T23:59:59.999999+02:00"},
		row{"id": 4, "at": "2024-04-01T00:00:00+02:00"}, row{"id": 5, "at": "2024-03-31 00:00:00.5+01:00"}, row{"id": 6, "at": nil}, row{"id": 7, "at": "2024-03-31T13:00:00-09:00"})
	load := s.beginReplace(row{"replace_where": replaceWhere("at", "2024-03-31T00:00:00+01:00", "2024-04-01T00:00:00+02:00")})
	for _, outside := range []string{"2024-03-30T22:59:59.999999Z", "2024-03-31T22:00:00Z", "2024-03-31T13:00:00-09:00"} {
		require.Equal(s, "outside_replace_where", load.refuseCall("", row{"id": 8, "at": outside}).Type)
	}
	load.stagePage(row{"id": 8, "at": "2024-03-30T18:00:00-05:00"}, row{"id": 9, "at": "2024-03-31T21:59:59.999999Z"})
	require.Equal(s, publishedResult(2, 3), load.publishRows())
	require.Equal(s, []string{`{"id":2}`, `{"id":4}`, `{"id":6}`, `{"id":7}`, `{"id":8}`, `{"id":9}`}, s.ContentLines("id"))
	s.replaceContent(row{"id": 1, "day": "2024-03-09"}, row{"id": 2, "day": "2024-03-10"}, row{"id": 3, "day": "2024-03-11"})
	days := s.beginReplace(row{"key": "id", "replace_where": replaceWhere("day", "2024-03-10T00:00:00-05:00", "2024-03-11T00:00:00-04:00")})
	require.Equal(s, "outside_replace_where", days.refuseCall("", row{"id": 4, "day": "2024-03-11"}).Type)
	require.Contains(s, s.beginReplace(row{"replace_where": replaceWhere("dday", "2024-03-10", nil)}).refuseCall("", row{"id": 9}).Message, `has no column "dday": did you mean "day"?`)
	days.stagePage(row{"id": 5, "day": "2024-03-10"})
	require.Equal(s, publishedResult(1, 1), days.publishRows())
	require.Equal(s, []string{`{"id":1}`, `{"id":3}`, `{"id":5}`}, s.ContentLines("id"))
	open := s.beginReplace(row{"replace_where": replaceWhere("day", nil, "2024-03-10"), "allow_empty": true})
	require.Equal(s, publishedResult(0, 1), open.publishRows())
}

// replaceChecks: a row is refused where it is written, as far as it is refused by itself; rejected works there.
func replaceChecks(s *TableTest) {
	s.Create("id bigint NOT NULL, n integer CONSTRAINT small CHECK (n < 100), word text NOT NULL DEFAULT 'none', CHECK (id > 0 OR 'a)''' = ')') -- CHECK (no)\n")
	s.Write(nil, row{"id": 1, "n": 1})
	load := s.beginReplace(nil)
	for says, bad := range map[string]row{"small": {"id": 2, "n": 500}, "null": {"n": 1, "id": nil}, "check": {"id": -1, "n": 1}} {
		object := load.refuseCall("", row{"id": 2, "n": 2}, bad)
		require.Contains(s, strings.ToLower(object.Message), says)
		require.Contains(s, object.Message, "row 2")
		require.NotContains(s, object.Message, "reprise_staging")
	}
	aside := s.beginReplace(row{"key": "id", "rejected": row{"table": s.Table + "_aside", "max": 2}})
	in := aside.stagingInput("", row{"id": 2, "n": 2}, row{"id": 3, "n": 300}, row{"id": 4, "n": 4, "word": "w"})
	result, err := s.db.MakeAttempt(s.t, in)
	require.NoError(s, err)
	require.Equal(s, AffectedResult(2), result.Data.Data)
	require.Equal(s, &interpreter.RowCounts{RejectedRows: 1}, result.Meta.LeftOut)
	require.Equal(s, []any{row{"row": 2, "value": `{"id":3,"n":300}`}}, s.Query(`SELECT "row", value FROM `+s.Table+"_aside", nil))
	require.Equal(s, publishedResult(2, 1), aside.publishRows())
	require.Equal(s, []string{`{"id":2,"n":2,"word":"none"}`, `{"id":4,"n":4,"word":"w"}`}, s.ContentLines("id, n, word"), "a column that must not be NULL has its default")
	same := s.beginReplace(row{"key": "id"})
	same.stagePage(row{"id": 2, "n": 2}, row{"id": 4, "n": 4, "word": "w"})
	require.Equal(s, publishedResult(0, 0), same.publishRows(), "which it had")
}

// replaceEvolves: the table beside follows what the contract changes.
func replaceEvolves(s *TableTest) {
	load := s.beginReplace(row{"schema_contract": "evolve", "key": "id"})
	load.stagePage(row{"id": 1, "n": 1})
	load.stagePage(row{"id": 2, "n": 1.5, "more": "x"}, row{"id": 3, "n": nil, "more": row{"a": 1}})
	require.Equal(s, publishedResult(3, 0), load.publishRows())
	require.Equal(s, []string{"id", "n", "more"}, s.columnNames())
	if s.db.Name == "postgres" {
		require.Equal(s, "numeric", s.typeOf("n"))
	}
	s.Query("ALTER TABLE "+s.Table+" ADD COLUMN later text DEFAULT 'd'", nil)
	values := s.beginReplace(row{"key": "id", "schema_contract": row{"columns": "discard_value"}})
	result, err := s.db.MakeAttempt(s.t, values.stagingInput("", row{"id": 1, "n": 2, "none": 1}))
	require.NoError(s, err)
	require.Equal(s, &interpreter.RowCounts{DiscardedValues: 1}, result.Meta.LeftOut)
	s.Query("ALTER TABLE "+s.Table+" ADD COLUMN latest text", nil)
	values.stagePage(row{"id": 4, "latest": "l"})
	if s.db.Name == "postgres" {
		s.Query("ALTER TABLE "+s.Table+" ALTER COLUMN n TYPE double precision", nil)
	}
	require.Equal(s, publishedResult(2, 2), values.publishRows())
	require.Equal(s, []string{`{"id":1,"later":"d","latest":null,"n":2}`, `{"id":4,"later":"d","latest":"l","n":null}`}, s.ContentLines("id, n, later, latest"))
	require.Contains(s, s.beginReplace(row{"table": s.Table + "_none"}).refuseCall("", row{"id": 1}).Message, "does not exist")
	require.Contains(s, s.beginReplace(nil).refuseCall("", row{"id": 1, "nope": 1}).Message, `has no column "nope"`)
}

// replaceTables: what a table may be, and what it may not.
func replaceTables(s *TableTest) {
	s.Create("id bigint PRIMARY KEY, twice bigint GENERATED ALWAYS AS (id * 2) STORED, n bigint")
	s.Write(nil, row{"id": 1})
	s.Query("CREATE VIEW "+s.Table+"_view AS SELECT id FROM "+s.Table, nil)
	require.Contains(s, s.beginReplace(row{"table": s.Table + "_view"}).refuseCall("", row{"id": 1}).Message, "it is a view; write to the table behind it")
	require.Contains(s, s.beginReplace(row{"table": s.Table + "_view", "allow_empty": true}).refuseCall(interpreter.StagingPublish).Message, "it is a view")
	require.Contains(s, s.beginReplace(nil).refuseCall("", row{"id": 1, "twice": 2}).Message, "the database generates its values")
	plain := s.beginReplace(nil)
	plain.stagePage(row{"id": 4})
	require.Equal(s, publishedResult(1, 1), plain.publishRows())
	require.Equal(s, []string{`{"id":4,"twice":8}`}, s.ContentLines("id, twice"))
	s.Query("CREATE TABLE "+s.Table+"_child (id bigint REFERENCES "+s.Table+" (id))", nil)
	s.Query("INSERT INTO "+s.Table+"_child VALUES (4)", nil)
	require.Contains(s, s.beginReplace(nil).refuseCall("", row{"id": 1}).Message, "foreign keys of "+s.Table+"_child reference table")
	keyed := s.beginReplace(row{"key": "id"})
	keyed.stagePage(row{"id": 4, "n": 1}, row{"id": 5, "n": 1})
	require.Equal(s, publishedResult(2, 0), keyed.publishRows())
	if s.db.Name == "sqlite" {
		for i, create := range []string{"(id INTEGER PRIMARY KEY, w TEXT CHECK (w <> 'bad')) STRICT", "(id TEXT PRIMARY KEY, w any) WITHOUT ROWID"} {
			table := fmt.Sprint(s.Table, "_of_", i)
			s.Query("CREATE TABLE "+table+" "+create, nil)
			strict := s.beginReplace(row{"table": table, "key": "id"})
			strict.stagePage(row{"id": 1, "w": "a"}, row{"id": 2})
			require.Equal(s, publishedResult(2, 0), strict.publishRows())
			require.Contains(s, s.beginReplace(row{"table": table}).refuseCall("", row{"id": 1}, row{"id": []any{"bad", nil}[i], "w": "a"}).Message, "row 2")
		}
	}
	odd := *s
	odd.Table = `"odd.name $1 ""x"" ` + s.Table + `"`
	s.Query("CREATE TABLE "+odd.Table+` (id bigint PRIMARY KEY, parent bigint REFERENCES `+odd.Table+` (id), "a.b" text)`, nil)
	s.Query("INSERT INTO "+odd.Table+" VALUES (1, NULL, 'x'), (2, 1, 'y')", nil)
	load := odd.beginReplace(row{"key": "id"})
	load.stagePage(row{"id": 3, "parent": nil, "a.b": "$2"}, row{"id": 2, "parent": 3, "a.b": "y"})
	require.Equal(s, publishedResult(2, 1), load.publishRows(), "rows that point at each other")
}

// deleteMissing: what was not read is deleted, unless that is too much.
func deleteMissing(s *TableTest) {
	s.Create("id bigint PRIMARY KEY, at bigint, n integer CHECK (n < 100)")
	upsert := row{"mode": "upsert", "key": "id", "delete_missing": true, "sequence_by": "at", "hard_delete": "gone", "rejected": row{"table": s.Table + "_aside"}}
	rows := make([]any, 11)
	for i := range rows {
		rows[i] = row{"id": i, "at": 5, "n": i}
	}
	s.Write(nil, rows...)
	load := s.stagingLoad(upsert)
	in := load.iterationLoad(0, 0).stagingInput("", row{"id": 0, "at": 4, "n": 0}, row{"id": 1, "at": 6, "n": 500}, row{"id": 2, "at": 6, "gone": true}, row{"id": 3, "at": 5},
		row{"id": 5, "at": 4, "gone": true})
	if s.db.Name == "postgres" {
		in.Result = Value(append(in.Result.Data.([]any), row{"id": "x"})) // which is no key of any row
	}
	for range 2 {
		result, err := s.db.MakeAttempt(s.t, in)
		require.NoError(s, err)
		require.Positive(s, result.Meta.LeftOut.RejectedRows)
	}
	load.iterationLoad(1, 0).callTwice("", row{"id": 4, "at": 5, "n": 4})
	load.iterationLoad(1, 1).callTwice("", row{"id": 6, "at": 6, "n": 7}, row{"id": 11, "at": 6, "n": 7})
	require.Len(s, s.ContentLines("id"), 11, "2 is gone, 11 is new")
	load.fields["max_delete"] = 0.4
	object := load.refuseCall(interpreter.StagingPublish)
	require.Equal(s, "max_delete", object.Type)
	require.Contains(s, object.Message, "5 of the 11 rows", "4, 7, 8, 9 and 10")
	require.Len(s, s.ContentLines("id"), 11)
	delete(load.fields, "max_delete")
	require.Equal(s, publishedResult(0, 5), load.publishRows())
	require.Equal(s, []string{`{"id":0,"n":0}`, `{"id":1,"n":1}`, `{"id":3,"n":3}`, `{"id":5,"n":5}`, `{"id":6,"n":7}`, `{"id":11,"n":7}`}, s.ContentLines("id, n"))
	require.False(s, load.hasStagingTable())
}

// deleteMissingOfOtherKeys: the share of max_delete is that of the rows that were there, and not of those that the load
// has added.
func deleteMissingOfOtherKeys(s *TableTest) {
	s.Create("id bigint PRIMARY KEY, n integer")
	s.Write(nil, row{"id": 0, "n": 1}, row{"id": 1, "n": 1}, row{"id": 2, "n": 1}, row{"id": 3, "n": 1})
	load := s.stagingLoad(row{"mode": "upsert", "key": "id", "delete_missing": true})
	load.stagePage(row{"id": 0, "n": 1}, row{"id": 10, "n": 1}, row{"id": 11, "n": 1}, row{"id": 12, "n": 1})
	object := load.refuseCall(interpreter.StagingPublish)
	require.Equal(s, "max_delete", object.Type)
	require.Contains(s, object.Message, "3 of the 4 rows of table")
	require.Len(s, s.ContentLines("id"), 7)
}

// boundedByValue: rows of one tenant are replaced, or deleted where they were not read, and those of others stay.
func boundedByValue(s *TableTest) {
	s.Create("id bigint PRIMARY KEY, tenant text, n bigint")
	before := []any{row{"id": 1, "tenant": "a", "n": 1}, row{"id": 2, "tenant": "a", "n": 1}, row{"id": 3, "tenant": "b", "n": 1}, row{"id": 4, "tenant": nil, "n": 1}}
	bounds := row{"column": "tenant", "equals": "a"}
	for name, load := range map[string]*load{
		"replace": s.beginReplace(row{"replace_where": bounds}), "replace by key": s.beginReplace(row{"key": "id", "replace_where": bounds}),
		"delete": s.stagingLoad(row{"mode": "upsert", "key": "id", "delete_missing": true, "replace_where": bounds}),
	} {
		s.replaceContent(before...)
		object := load.refuseCall("", row{"id": 1, "tenant": "a", "n": 2}, row{"id": 3, "tenant": "b", "n": 2})
		require.Equal(s, "outside_replace_where", object.Type, name)
		require.Contains(s, object.Message, `row 2: column "tenant" is "b", and replace_where is limited to rows that are a`, name)
		require.Equal(s, "outside_replace_where", load.refuseCall("", row{"id": 5, "n": 2}).Type, name)
		load.stagePage(row{"id": 1, "tenant": "a", "n": 2}, row{"id": 6, "tenant": "a", "n": 2})
		load.publishRows()
		require.Equal(s, []string{
			`{"id":1,"n":2,"tenant":"a"}`, `{"id":3,"n":1,"tenant":"b"}`, `{"id":4,"n":1,"tenant":null}`, `{"id":6,"n":2,"tenant":"a"}`,
		}, s.ContentLines("id, tenant, n"), name)
	}
	s.replaceContent(before...)
	one := s.stagingLoad(row{"mode": "upsert", "key": "id", "delete_missing": true, "max_delete": 0.4, "replace_where": bounds})
	one.stagePage(row{"id": 1, "tenant": "a", "n": 2})
	require.Contains(s, one.refuseCall(interpreter.StagingPublish).Message, "1 of the 2 rows of table \""+s.Table+"\" of those of replace_where", "a share of the tenant's rows")
	numbers := s.stagingLoad(row{"mode": "upsert", "key": "id", "delete_missing": true, "replace_where": row{"column": "n", "equals": "1"}})
	numbers.stagePage(row{"id": 3, "n": 1, "tenant": "b"}, row{"id": 4, "n": 1})
	require.Equal(s, publishedResult(0, 1), numbers.publishRows(), "compared as numbers; row 1 has n 2")
	require.Equal(s, []string{`{"id":1}`, `{"id":3}`, `{"id":4}`}, s.ContentLines("id"))
	ranged := s.stagingLoad(row{"mode": "upsert", "key": "id", "delete_missing": true, "max_delete": 1, "allow_empty": true, "replace_where": replaceWhere("id", 2, 4)})
	require.Equal(s, publishedResult(0, 1), ranged.publishRows())
	require.Equal(s, []string{`{"id":1}`, `{"id":4}`}, s.ContentLines("id"))
}

// wordsOfReplace: what does not go together is refused.
func wordsOfReplace(s *TableTest) {
	s.Create("id bigint PRIMARY KEY, at bigint")
	for says, fields := range map[string]row{
		"mode replace works only in a sink":      {"mode": "replace"},
		"delete_missing works only in a sink":    {"mode": "upsert", "key": "id", "delete_missing": true},
		"delete_missing needs mode upsert":       {"delete_missing": true},
		"replace_where needs mode replace":       {"mode": "upsert", "key": "id", "replace_where": replaceWhere("at", 1, nil)},
		"to of replace_where is nil":             {"mode": "replace", "replace_where": row{"column": "at", "from": 1, "to": nil}},
		"equals of replace_where is nil":         {"mode": "replace", "replace_where": row{"column": "at", "equals": nil}},
		"has equals together with from or to":    {"mode": "replace", "replace_where": row{"column": "at", "equals": 1, "to": 4}},
		"max_delete needs delete_missing":        {"mode": "upsert", "key": "id", "max_delete": 0.1},
		"allow_empty needs mode replace or":      {"allow_empty": true},
		"replace_where needs equals, from or":    {"mode": "replace", "replace_where": row{"column": "at"}},
		"replace_where needs column":             {"mode": "replace", "replace_where": row{"from": 1}},
		"from of replace_where must be a single": {"mode": "replace", "replace_where": row{"column": "at", "from": []any{1}}},
		"it must be a share of the table":        {"mode": "upsert", "key": "id", "delete_missing": true, "max_delete": 50},
		"allow_empty must be true or false":      {"mode": "replace", "allow_empty": "perhaps"},
	} {
		object := s.Refuse(fields, row{"id": 1, "at": 1})
		require.Contains(s, object.Message, says)
		require.Equal(s, interpreter.ClassFinal, object.Class)
		require.True(s, object.Final)
	}
}
