package tooltest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/stretchr/testify/require"

	"reprise/interpreter"
)

var newerCases = tableCases{
	"newer kept":         newerUnchanged,
	"newer unknown":      newerUnknown,
	"newer in bounds":    newerInBounds,
	"newer never undone": newerNeverUndone,
}

// writeElsewhere writes and deletes rows as another load does.
func (s *TableTest) writeElsewhere(rows ...any) {
	s.Helper()
	s.Write(row{"mode": "upsert", "key": "id", "hard_delete": "gone"}, rows...)
}

// tableWords returns the rows of the table, as their ids and words.
func (s *TableTest) tableWords() (all []string) {
	s.Helper()
	for _, one := range s.Query("SELECT id, word FROM "+s.Table+" ORDER BY id", nil).([]any) {
		all = append(all, fmt.Sprint(one.(row)["id"], " ", one.(row)["word"]))
	}
	return all
}

// countNewerTables counts the tables beside others.
func (s *TableTest) countNewerTables() any {
	s.Helper()
	query := "SELECT count(*) AS n FROM sqlite_master WHERE name LIKE 'reprise_newer_%'"
	if s.db.Name == "postgres" {
		query = "SELECT count(*) AS n FROM pg_class WHERE relname LIKE 'reprise_newer_%' AND relnamespace = current_schema()::regnamespace"
	}
	return s.Query(query, nil).([]any)[0].(row)["n"]
}

// newerUnchanged: what other loads write and delete since a load began to read is neither replaced nor deleted nor written again.
func newerUnchanged(s *TableTest) {
	bounds := row{"column": "tenant", "equals": "a"}
	for name, fields := range map[string]row{
		"replace": {"mode": "replace", "key": "id"}, "delete": {"mode": "upsert", "key": "id", "delete_missing": true, "max_delete": 1},
		"replace of one": {"mode": "replace", "key": "id", "replace_where": bounds},
		"delete of one":  {"mode": "upsert", "key": "id", "delete_missing": true, "max_delete": 1, "replace_where": bounds},
	} {
		s.Query("DROP TABLE IF EXISTS "+s.Table, nil)
		s.Create("id bigint PRIMARY KEY, tenant text, word text CHECK (word <> 'bad')")
		a := func(id int, word string) row { return row{"id": id, "tenant": "a", "word": word} }
		s.Write(nil, a(1, "old"), a(2, "old"), a(3, "old"), a(4, "old"), a(5, "old"), a(6, "old"), a(11, "old"))
		before, load := s.countNewerTables(), s.stagingLoad(fields)
		s.writeElsewhere(a(4, "earlier"), a(5, "earlier"))
		load.callTwice(interpreter.StagingBegin)
		s.writeElsewhere(a(1, "newer"), row{"id": 2, "gone": true}, a(7, "newer"), row{"id": 9, "gone": true})
		load.callTwice("", a(1, "read"), a(2, "read"), a(3, "read"), a(11, "read"))
		s.writeElsewhere(a(3, "newer"), a(8, "newer"), row{"id": 10, "tenant": "a", "word": "newer"})
		s.writeElsewhere(row{"id": 10, "gone": true})
		load.callTwice("", a(4, "read"), a(9, "read"), a(10, "read"))
		s.writeElsewhere(row{"id": 6, "tenant": "b", "word": "moved"})
		s.Write(row{"mode": "upsert", "key": "id", "rejected": row{"table": s.Table + "_aside"}}, a(11, "bad"))
		s.Write(row{"mode": "insert_or_ignore"}, a(4, "ignored"))
		load.publishRows()
		require.Equal(s, []string{"1 newer", "3 newer", "4 read", "6 moved", "7 newer", "8 newer", "11 read"}, s.tableWords(), name)
		require.Equal(s, before, s.countNewerTables(), name)
		again := s.stagingLoad(fields)
		again.callTwice(interpreter.StagingBegin)
		again.callTwice("", a(3, "again"))
		again.publishRows()
		require.Equal(s, "3 again", s.tableWords()[0], "what was written before it began is not newer")
	}
}

// newerUnknown: where it is not known which rows are newer, nothing is published.
func newerUnknown(s *TableTest) {
	s.Create("id bigint PRIMARY KEY, word text UNIQUE")
	s.Write(nil, row{"id": 1, "word": "old"})
	for says, load := range map[string]*load{
		"another load has written rows of it. Nothing was published, because that would undo the change; with key": s.beginReplace(nil),
		"another load has written rows of it whose word is not known":                                              s.beginReplace(row{"key": "word"}),
	} {
		load.callTwice(interpreter.StagingBegin)
		load.callTwice("", row{"id": 1, "word": "read"})
		s.writeElsewhere(row{"id": 2})
		object := load.refuseCall(interpreter.StagingPublish)
		require.Equal(s, "table_changed", object.Type)
		require.Contains(s, object.Message, says)
		require.Equal(s, []string{"1 old", "2 <nil>"}, s.tableWords())
	}
	s.Query("DROP TABLE "+s.Table, nil)
	load := s.beginReplace(row{"key": "id", "schema_contract": "evolve"})
	load.callTwice(interpreter.StagingBegin)
	s.Write(row{"mode": "upsert", "key": "id", "schema_contract": "evolve"}, row{"id": 1, "word": "newer"})
	load.callTwice("", row{"id": 1, "word": "read"})
	require.Equal(s, "table_changed", load.refuseCall(interpreter.StagingPublish).Type, "the table was not there when it began")
	require.Equal(s, []string{"1 newer"}, s.tableWords())
}

// newerInBounds: loads of ranges that have no row in common are not about each other.
func newerInBounds(s *TableTest) {
	s.Create("id bigint, day date")
	for _, test := range []struct {
		one, two row
		meet     bool
	}{
		{replaceWhere("day", "2024-01-01", "2024-01-02"), replaceWhere("day", "2024-01-02", "2024-01-03"), false},
		{replaceWhere("day", "2024-01-02", "2024-01-03"), replaceWhere("day", "2024-01-01", "2024-01-02"), false},
		{replaceWhere("day", "2024-01-01", "2024-01-03"), replaceWhere("day", "2024-01-02", "2024-01-04"), true},
		{replaceWhere("day", nil, "2024-01-02"), replaceWhere("day", "2024-01-02", nil), false},
		{replaceWhere("day", nil, "2024-01-02"), replaceWhere("day", nil, "2024-01-01"), true},
		{row{"column": "day", "equals": "2024-01-01"}, replaceWhere("day", "2024-01-02", nil), false},
		{row{"column": "day", "equals": "2024-01-02"}, replaceWhere("day", "2024-01-02", nil), true},
		{row{"column": "day", "equals": "2024-01-02"}, row{"column": "day", "equals": "2024-01-03"}, false},
		{row{"column": "id", "equals": 9}, replaceWhere("id", 10, 20), false},
		{row{"column": "id", "equals": 9}, replaceWhere("day", "2024-01-02", nil), true},
		{nil, replaceWhere("day", "2024-01-02", nil), true},
	} {
		s.Query("DELETE FROM "+s.Table, nil)
		loads := []*load{}
		for _, bounds := range []row{test.one, test.two} {
			fields := row{"allow_empty": true}
			if bounds != nil {
				fields["replace_where"] = bounds
			}
			load := s.beginReplace(fields)
			load.callTwice(interpreter.StagingBegin)
			loads = append(loads, load)
		}
		s.Query("INSERT INTO "+s.Table+" VALUES (9, '2024-01-01'), (9, '2024-01-02'), (15, '2024-01-02'), (9, '2024-01-03')", nil) // of no load
		require.NotEqual(s, publishedResult(0, 0), loads[0].publishRows(), test)
		if test.meet {
			require.Equal(s, "table_changed", loads[1].refuseCall(interpreter.StagingPublish).Type, test)
		} else {
			loads[1].publishRows()
		}
	}
	s.replaceContent(row{"id": 1, "day": "2024-01-01"}, row{"id": 2, "day": "2024-01-02"})
	load := s.beginReplace(row{"replace_where": replaceWhere("day", "2024-01-02", "2024-01-03")})
	load.callTwice(interpreter.StagingBegin)
	load.stagePage(row{"id": 3, "day": "2024-01-02"})
	s.Write(nil, row{"id": 4, "day": "2024-01-03"})
	require.Equal(s, publishedResult(1, 1), load.publishRows(), "a row outside of the bounds")
	load = s.beginReplace(row{"replace_where": replaceWhere("day", "2024-01-02", "2024-01-03")})
	load.callTwice(interpreter.StagingBegin)
	load.stagePage(row{"id": 3, "day": "2024-01-02"})
	s.Write(nil, row{"id": 4, "day": "2024-01-02"})
	require.Equal(s, "table_changed", load.refuseCall(interpreter.StagingPublish).Type)
}

// movingSource has rows with versions, and says which have changed.
type movingSource struct {
	mu      sync.Mutex
	rows    map[int]int // versions; negative ones of rows that were deleted
	version int
}

func (m *movingSource) changeRow(id int, gone bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.version++; gone {
		m.rows[id] = -m.version
	} else {
		m.rows[id] = m.version
	}
}

// changedSince returns the rows that have changed behind a version, and the version now. A full read gets none that were deleted.
func (m *movingSource) changedSince(version int, ids func(int) bool, full bool) (rows []any, now int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, at := range m.rows {
		if !ids(id) || max(at, -at) <= version || full && at < 0 {
			continue
		}
		one := row{"id": id, "word": fmt.Sprint(at)}
		if at < 0 {
			one["gone"] = true
		}
		rows = append(rows, one)
	}
	slices.SortFunc(rows, func(a, b any) int { return a.(row)["id"].(int) - b.(row)["id"].(int) })
	return rows, m.version
}

// newerNeverUndone: however full loads and incremental ones of a table meet, it has what its source has once the incremental
// one has read it to its end.
func newerNeverUndone(s *TableTest) {
	const ids, rounds = 30, 8
	for name, fields := range map[string]row{
		"replace": {"mode": "replace", "key": "id", "allow_empty": true},
		"delete":  {"mode": "upsert", "key": "id", "delete_missing": true, "max_delete": 1, "allow_empty": true},
	} {
		s.Query("DROP TABLE IF EXISTS "+s.Table, nil)
		s.Create("id bigint PRIMARY KEY, word text")
		var (
			source     = &movingSource{rows: map[int]int{}}
			done, stop = make(chan struct{}), make(chan struct{})
			read       = 0
			all        = func(int) bool { return true }
		)
		upsert := func() {
			rows, now := source.changedSince(read, all, false)
			if len(rows) > 0 {
				_, err := s.db.MakeAttempt(s.t, s.WriteInput(row{"mode": "upsert", "key": "id", "hard_delete": "gone"}, rows...))
				require.NoError(s, err)
			}
			read = now
		}
		go func() {
			defer close(done)
			for {
				select {
				case <-stop:
					return
				default:
				}
				source.changeRow(rand.IntN(ids), rand.IntN(3) == 0) //nolint:gosec // any will do
				source.changeRow(rand.IntN(ids), false)             //nolint:gosec // any will do
				upsert()
			}
		}()
		for range rounds {
			load := s.stagingLoad(maps.Clone(fields))
			call := func(in interpreter.ToolInput) {
				_, err := s.db.MakeAttempt(s.t, in)
				require.NoError(s, err)
			}
			call(load.stagingInput(interpreter.StagingBegin))
			for page := range 5 {
				rows, _ := source.changedSince(0, func(id int) bool { return id%5 == page }, true)
				call(load.stagingInput("", rows...))
			}
			call(load.stagingInput(interpreter.StagingPublish))
		}
		close(stop)
		<-done
		upsert()
		var expected []string
		for id := range ids {
			if version := source.rows[id]; version > 0 {
				expected = append(expected, fmt.Sprint(id, " ", version))
			}
		}
		require.Equal(s, expected, s.tableWords(), name)
	}
}
