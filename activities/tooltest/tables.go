package tooltest

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
)

// Tables are the cases of writes to a table, on a database of their own.
type Tables struct{ SQL }

// tableCases are cases of writes to a table, by their names. Each file has its own, which Run lists.
type tableCases map[string]func(*TableTest)

var keyCases = tableCases{
	"insert or ignore":          rowsAreIgnored,
	"ignored is noted":          ignoredIsNoted,
	"sequence":                  sequenceIsFollowed,
	"sequence within a write":   sequenceWithinAWrite,
	"sequence of kinds":         sequenceOfKinds,
	"keys within a write":       keysWithinAWrite,
	"repeated keys are noted":   repeatedKeysAreNoted,
	"hard delete":               rowsAreDeleted,
	"hard delete by sequence":   rowsAreDeletedBySequence,
	"hard delete with triggers": deletesWithTriggers,
	"words of upsert":           wordsOfUpsert,
}

// Run runs the cases of all files.
func (s Tables) Run(t *testing.T) {
	t.Helper()
	known := tableCases{}
	for _, cases := range []tableCases{
		keyCases, childrenCases, childrenDriftCases, childrenKeyCases, childrenModeCases, childrenReplaceCases, driftCases, nestedCases, newerCases, ownFieldCases, planCases, valueReadingCases, rejectedCases, replaceCases, figureCases, shapeCases, valueCases,
	} {
		for name, run := range cases {
			require.NotContains(t, known, name, "two cases have this name")
			known[name] = run
			t.Run(name, func(t *testing.T) { run(s.Test(t)) })
		}
	}
}

// TableTest is a case with a table of its own.
type TableTest struct {
	testing.TB
	t     *testing.T
	db    SQL
	Table string
	keys  int
}

// Test names a table that there is not.
func (s Tables) Test(t *testing.T) *TableTest {
	t.Helper()
	return &TableTest{TB: t, t: t, db: s.SQL, Table: "t" + expression.ShortDigest(t.Name())}
}

// Create makes the table with columns.
func (s *TableTest) Create(columns string) *TableTest {
	s.Helper()
	s.Query("CREATE TABLE "+s.Table+" ("+columns+")", nil)
	return s
}

// Query runs a statement.
func (s *TableTest) Query(statement string, scope map[string]any) any {
	s.Helper()
	return s.db.RunStatement(s.t, statement, scope)
}

// WriteInput returns a write of rows, with an operation key of its own.
func (s *TableTest) WriteInput(fields map[string]any, rows ...any) interpreter.ToolInput {
	all := map[string]any{"table": s.Table}
	maps.Copy(all, fields)
	in := s.db.TableInput(all, nil)
	s.keys++
	in.Args, in.Result, in.Place = nil, Value(rows), "sink"
	in.OperationKey = fmt.Sprintf("%s %d", s.Table, s.keys)
	in.Fingerprint = expression.Digest(rows)
	in.RunID = "run" // which keeps its session
	return in
}

// Write writes rows that must be written, and gives what the write says of them.
func (s *TableTest) Write(fields map[string]any, rows ...any) any {
	s.Helper()
	in := s.WriteInput(fields, rows...)
	made := func(error) {}
	if fields["schema_contract"] != nil {
		made = s.planAndApply(in)
	}
	result, err := s.db.MakeAttempt(s.t, in)
	require.NoError(s, err)
	made(err)
	return result.Data.Data
}

// Refuse makes a write that must fail, and gives its error.
func (s *TableTest) Refuse(fields map[string]any, rows ...any) interpreter.ErrorObject {
	s.Helper()
	in := s.WriteInput(fields, rows...)
	made := func(error) {}
	if fields["schema_contract"] != nil {
		made = s.planAndApply(in)
	}
	_, err := s.db.MakeAttempt(s.t, in)
	require.Error(s, err)
	made(err)
	return ErrorObject(s.t, err)
}

// ContentLines returns the rows of the table, in the order of columns, each as a line.
func (s *TableTest) ContentLines(columns string) (lines []string) {
	return s.SelectLines("true", columns)
}

// SelectLines is some columns of those rows that a condition holds for.
func (s *TableTest) SelectLines(condition, columns string) (lines []string) {
	s.Helper()
	for _, row := range s.Query("SELECT "+columns+" FROM "+s.Table+" WHERE "+condition+" ORDER BY "+columns, nil).([]any) {
		line, err := expression.Encode(row)
		require.NoError(s, err)
		lines = append(lines, string(line))
	}
	return lines
}

type row = map[string]any

func rowsAreIgnored(s *TableTest) {
	s.Create("id bigint PRIMARY KEY, mail text UNIQUE, n bigint NOT NULL")
	ignore := row{"mode": "insert_or_ignore"}
	require.Equal(s, AffectedResult(2), s.Write(ignore, row{"id": 1, "mail": "a", "n": 1}, row{"id": 2, "mail": "b", "n": 1}))
	require.Equal(s, AffectedResult(1), s.Write(ignore, row{"id": 1, "mail": "c", "n": 2}, row{"id": 3, "mail": "b", "n": 2}, row{"id": 4, "mail": "d", "n": 2},
		row{"id": 4, "mail": "e", "n": 3}), "the first of two stays too")
	require.Equal(s, []string{`{"id":1,"mail":"a","n":1}`, `{"id":2,"mail":"b","n":1}`, `{"id":4,"mail":"d","n":2}`}, s.ContentLines("id, mail, n"))
	require.Contains(s, s.Refuse(ignore, row{"id": 5, "mail": "f", "n": nil}).Message, "row 1", "what breaks another rule is an error")
	keyed := row{"mode": "insert_or_ignore", "key": "id"}
	require.Equal(s, AffectedResult(0), s.Write(keyed, row{"id": 2, "mail": "g", "n": 9}))
	require.Equal(s, AffectedResult(1), s.Write(keyed, row{"id": 2, "mail": "h", "n": 9}, row{"id": 6, "mail": "g", "n": 9}))
	require.Contains(s, s.Refuse(keyed, row{"id": 7, "mail": "h", "n": 9}, row{"id": 8, "mail": "a", "n": 9}).Message, "row 2",
		"the key decides which rows the table has: a row of another key is not left out in silence")
	require.Contains(s, s.Refuse(row{"mode": "insert_or_ignore", "key": "n"}, row{"id": 9, "mail": "i", "n": 10}).Message,
		`mode insert_or_ignore needs a primary key or unique index on exactly ("n")`)
}

// ignoredIsNoted: a write that is delivered twice is written once, also where nothing is unique.
func ignoredIsNoted(s *TableTest) {
	s.Create("id bigint")
	in := s.WriteInput(row{"mode": "insert_or_ignore"}, row{"id": 1})
	for range 2 {
		result, err := s.db.MakeAttempt(s.t, in)
		require.NoError(s, err)
		require.Equal(s, AffectedResult(1), result.Data.Data)
	}
	require.Len(s, s.ContentLines("id"), 1)
	in.Fingerprint = "another"
	require.Equal(s, "written_before", s.db.FailingCall(s.t, in).Type)
}

func sequenceIsFollowed(s *TableTest) {
	s.Create("id bigint PRIMARY KEY, at bigint, n bigint")
	newest := row{"mode": "upsert", "key": "id", "sequence_by": "at"}
	write := func(at any, n int) int {
		return s.Write(newest, row{"id": 1, "at": at, "n": n}).(map[string]any)["rows_affected"].(int)
	}
	for i, step := range []struct {
		at    any
		taken int
	}{{nil, 1}, {nil, 1}, {5, 1}, {4, 0}, {nil, 0}, {5, 1}, {6, 1}, {-7, 0}} {
		require.Equal(s, step.taken, write(step.at, i), "step %d", i)
	}
	require.Equal(s, []string{`{"at":6,"id":1,"n":6}`}, s.ContentLines("id, at, n"))
	require.Equal(s, AffectedResult(1), s.Write(newest, row{"id": 1, "at": 7}), "only its key and its value")
	without := s.Write(row{"mode": "upsert", "key": "id"}, row{"id": 1, "at": 1, "n": 0})
	require.Equal(s, AffectedResult(1), without, "without the word the last write counts")
}

func sequenceWithinAWrite(s *TableTest) {
	s.Create("id bigint PRIMARY KEY, at bigint, n bigint")
	newest := row{"mode": "upsert", "key": "id", "sequence_by": "at"}
	require.Equal(s, AffectedResult(4), s.Write(newest,
		row{"id": 1, "at": 9, "n": 1}, row{"id": 1, "at": 10, "n": 2}, row{"id": "1", "at": 8, "n": 3},
		row{"id": 2, "at": 5, "n": 4}, row{"id": 2, "at": 5, "n": 5}, row{"id": 2, "at": nil, "n": 6},
		row{"id": 3, "at": nil, "n": 7}, row{"id": 3, "n": 8},
		row{"id": 4, "at": "9", "n": 9}, row{"id": 4, "at": "10", "n": 10}, row{"id": 4, "at": 2, "n": 11},
	))
	require.Equal(s, []string{
		`{"at":10,"id":1,"n":2}`, `{"at":5,"id":2,"n":5}`, `{"at":null,"id":3,"n":8}`, `{"at":10,"id":4,"n":10}`,
	}, s.ContentLines("id, at, n"))
}

// keysWithinAWrite: values that a column has as one are one key, in whatever form they come.
func keysWithinAWrite(s *TableTest) {
	s.Create("id bigint PRIMARY KEY, n bigint")
	fields := row{"mode": "upsert", "key": "id", "hard_delete": "gone"}
	require.Equal(s, row{"rows_affected": 3, "rows_deleted": 0}, s.Write(fields,
		row{"id": 1, "n": 1}, row{"id": "1", "n": 2}, row{"id": "9007199254740993", "n": 3}, row{"id": "9007199254740992", "n": 4}, row{"id": 9007199254740993, "n": 5},
	))
	require.Equal(s, []string{`{"id":1,"n":2}`, `{"id":9007199254740992,"n":4}`, `{"id":9007199254740993,"n":5}`}, s.ContentLines("id, n"))
	s.Write(fields, row{"id": "1", "n": 3}, row{"id": 1, "gone": true})
	require.Equal(s, []string{`{"id":9007199254740992,"n":4}`, `{"id":9007199254740993,"n":5}`}, s.ContentLines("id, n"), "the later of two counts")
	if s.db.Name != "postgres" {
		return // a column of times has texts there
	}
	for kind, values := range map[string][]any{
		"numeric":     {1, "1.00", "1.0", "1", "-2.5", "-2.50", "-2.500", -2.5},
		"timestamptz": {"2024-01-01T00:00:00Z", "2024-01-01T01:00:00+01:00", "2024-01-01 00:00:00", "2024-01-02T00:00:00Z", "2024-01-02T00:00:00.000+00:00"},
		"uuid":        {"A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "b0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"},
	} {
		of := *s
		of.Table += "_" + kind
		of.Create("k " + kind + " PRIMARY KEY, n bigint")
		var rows []any
		for i, value := range values {
			rows = append(rows, row{"k": value, "n": i})
		}
		require.Equal(s, AffectedResult(2), of.Write(row{"mode": "upsert", "key": "k"}, rows...), kind)
		require.Len(s, of.ContentLines("n"), 2, kind)
	}
}

// repeatedKeysAreNoted: rows of one write that replace each other are a warning, unless they are equal or the sink orders their versions.
func repeatedKeysAreNoted(s *TableTest) {
	s.Create("id bigint PRIMARY KEY, n bigint, note text")
	s.Query("CREATE TABLE "+s.itemsTable()+" (order_id bigint, line bigint PRIMARY KEY, n bigint)", nil)
	notes := func(fields row, rows ...any) string {
		s.Helper()
		in := s.WriteInput(fields, rows...)
		if fields["mode"] == "replace" {
			in = s.beginReplace(fields).stagingInput("", rows...)
		}
		result, err := s.db.MakeAttempt(s.t, in)
		require.NoError(s, err)
		return strings.Join(result.Meta.Notes, "\n")
	}
	const lost = `%s have the same key (%s) and different values, so only the last one stays`
	for _, mode := range []string{"upsert", "replace"} {
		byID := row{"mode": mode, "key": "id"}
		require.Contains(s, notes(byID, row{"id": 1, "n": 1}, row{"id": 2, "n": 1}, row{"id": "1", "n": 2}), fmt.Sprintf(lost, "rows of one write", "id"), mode)
		require.Empty(s, notes(byID, row{"id": 1, "n": 1}, row{"id": 1, "n": 1}), mode)
		require.Empty(s, notes(byID, row{"id": 1, "n": 1}, row{"id": 1, "note": "the rest"}), mode)
		byLine := s.ofItems(byID, row{"key": "line"})
		items := func(id int, n ...int) row {
			return row{"id": id, "n": id, "items": lists.Map(n, func(n int) any { return row{"line": 1, "n": n} })}
		}
		require.Contains(s, notes(byLine, items(1, 1), items(2, 2)), fmt.Sprintf(lost, "elements of different parents", "line"), mode)
		require.Contains(s, notes(byLine, items(1, 1, 2)), fmt.Sprintf(lost, "elements of one list", "line"), mode)
		require.NotContains(s, notes(byLine, items(1, 1), items(1, 2)), "elements", mode)
	}
	require.Empty(s, notes(row{"mode": "upsert", "key": "id", "sequence_by": "n"}, row{"id": 1, "n": 1}, row{"id": 1, "n": 2}))
	require.Empty(s, notes(row{"mode": "upsert", "key": "id", "hard_delete": "gone"}, row{"id": 1, "n": 1}, row{"id": 1, "gone": true}))
}

// sequenceOfKinds: within a write rows are compared as the column compares them.
func sequenceOfKinds(s *TableTest) {
	collation := map[string]string{"postgres": `"und-x-icu"`, "sqlite": "NOCASE"}[s.db.Name] // neither goes by code points
	s.Create("id bigint PRIMARY KEY, number numeric, word text COLLATE " + collation + ", at timestamp with time zone, n bigint")
	for i, test := range []struct {
		column, small, large string
		numbers              bool
	}{
		{column: "number", small: "9.5", large: "10.25"},
		{column: "word", small: "10", large: "9"},
		{column: "word", small: "Z", large: "a"},
		{column: "word", small: "2024-01-01T02:00:00Z", large: "2024-01-01T03:00:00Z"},
		{column: "word", small: "z", large: "ä"},
		{column: "at", small: "2024-01-01T02:00:00+02:00", large: "2024-01-01T01:00:00Z"},
		{column: "at", small: "2024-01-01T01:00:00Z", large: "2024-01-01T01:00:00.5Z"},
	} {
		fields := row{"mode": "upsert", "key": "id", "sequence_by": test.column}
		small, large := row{"id": 2 * i, test.column: test.small, "n": 1}, row{"id": 2 * i, test.column: test.large, "n": 2}
		s.Write(fields, large, small)
		require.Equal(s, []any{row{"n": 2}}, s.Query("SELECT n FROM "+s.Table+" WHERE id = {{ id }}", row{"id": 2 * i}), "%v", test)
		small["id"], large["id"] = 2*i+1, 2*i+1
		s.Write(fields, large)
		s.Write(fields, small)
		require.Equal(s, []any{row{"n": 2}}, s.Query("SELECT n FROM "+s.Table+" WHERE id = {{ id }}", row{"id": 2*i + 1}), "%v", test)
	}
}

func rowsAreDeleted(s *TableTest) {
	s.Create("id bigint, region text, n bigint NOT NULL, PRIMARY KEY (id, region)")
	fields := row{"mode": "upsert", "key": []any{"id", "region"}, "hard_delete": "gone"}
	key := func(id int, more row) any {
		all := row{"id": id, "region": "a"}
		maps.Copy(all, more)
		return all
	}
	done := func(affected, deleted int) any { return row{"rows_affected": affected, "rows_deleted": deleted} }
	require.Equal(s, done(3, 0), s.Write(fields, key(1, row{"n": 1}), key(2, row{"n": 1, "gone": false}), key(3, row{"n": 1, "gone": nil})))
	require.Equal(s, done(1, 2), s.Write(fields, key(1, row{"gone": "2024-01-01"}), key(2, row{"gone": true}), key(3, row{"n": 2, "gone": ""}), key(9, row{"gone": 1})))
	require.Equal(s, []string{`{"id":3,"n":2}`}, s.ContentLines("id, n"), "what else a deleted row lacks is not asked of it")
	require.Equal(s, done(1, 1), s.Write(fields, key(3, row{"n": 3}), key(3, row{"gone": 1}), key(4, row{"gone": 1}), key(4, row{"n": 4})))
	require.Equal(s, []string{`{"id":4,"n":4}`}, s.ContentLines("id, n"), "of two rows of one write the later counts")
	require.Equal(s, done(0, 1), s.Write(fields, key(4, row{"gone": 1, "no such column": 1})))
	require.Contains(s, s.Refuse(fields, row{"id": 4, "gone": 1}).Message, `has no "region", which is the key`)
	for _, no := range []string{"false", "FALSE", "0", "f", "no", "N", "off", "null", " "} {
		object := s.Refuse(fields, key(4, row{"n": 4}), key(5, row{"n": 5, "gone": no}))
		require.Contains(s, object.Message, fmt.Sprintf("row 2 for table %q: gone is the text %q, which is truthy", s.Table, no))
		require.Equal(s, interpreter.ClassFinal, object.Class)
	}
	s.Query("ALTER TABLE "+s.Table+" ADD COLUMN gone text", nil)
	require.Equal(s, done(1, 0), s.Write(fields, key(5, row{"n": 5, "gone": ""})))
	require.Equal(s, []string{`{"gone":"","id":5}`}, s.ContentLines("id, gone"), "a column that there is, is written")
}

// deletesWithTriggers: rows that a trigger keeps from hard_delete are counted, and rows that the table lacks are not.
func deletesWithTriggers(s *TableTest) {
	s.Create("id bigint PRIMARY KEY, at bigint, n bigint")
	s.protectRow("DELETE", "OLD")
	deletes := func(more row, rows ...any) (any, *interpreter.RowCounts) {
		fields := row{"mode": "upsert", "key": "id", "hard_delete": "gone"}
		maps.Copy(fields, more)
		result, err := s.db.MakeAttempt(s.t, s.WriteInput(fields, rows...))
		require.NoError(s, err)
		return result.Data.Data, result.Meta.LeftOut
	}
	data, leftOut := deletes(nil, row{"id": 1, "at": 1}, row{"id": 2, "at": 5}, row{"id": 9, "gone": true})
	require.Equal(s, row{"rows_affected": 2, "rows_deleted": 0}, data)
	require.Nil(s, leftOut)
	data, leftOut = deletes(nil, row{"id": 1, "gone": true}, row{"id": 2, "gone": true}, row{"id": 8, "gone": true}, row{"id": 3, "at": 1})
	require.Equal(s, row{"rows_affected": 1, "rows_deleted": 1}, data)
	require.Equal(s, &interpreter.RowCounts{UndeletedRows: 1}, leftOut)
	require.Equal(s, []string{`{"id":2}`, `{"id":3}`}, s.ContentLines("id"))
	_, leftOut = deletes(row{"sequence_by": "at"}, row{"id": 2, "at": 4, "gone": true}, row{"id": 3, "at": 4, "gone": true})
	require.Nil(s, leftOut, "a newer row stays without a trigger")
}

func rowsAreDeletedBySequence(s *TableTest) {
	s.Create("id bigint PRIMARY KEY, at bigint, n bigint")
	fields := row{"mode": "upsert", "key": "id", "sequence_by": "at", "hard_delete": "gone"}
	for i, test := range []struct{ there, given, left any }{{5, 6, nil}, {5, 5, nil}, {5, 4, 1}, {5, nil, 1}, {nil, nil, nil}, {nil, 1, nil}} {
		s.Write(fields, row{"id": i, "at": test.there, "n": 1})
		s.Write(fields, row{"id": i, "at": test.given, "gone": true})
		left := s.Query("SELECT n FROM "+s.Table+" WHERE id = {{ id }}", row{"id": i}).([]any)
		require.Equal(s, test.left != nil, len(left) == 1, "%v", test)
	}
	s.Write(fields, row{"id": 10, "at": 9, "gone": true}, row{"id": 10, "at": 8, "n": 1})
	s.Write(fields, row{"id": 11, "at": 8, "gone": true}, row{"id": 11, "at": 9, "n": 1})
	require.Equal(s, []any{row{"id": 11}}, s.Query("SELECT id FROM "+s.Table+" WHERE id >= 10", nil))
}

func wordsOfUpsert(s *TableTest) {
	s.Create("id bigint PRIMARY KEY, at bigint")
	for says, fields := range map[string]row{
		"sequence_by needs mode upsert": {"sequence_by": "at"}, "hard_delete needs mode upsert": {"hard_delete": "at", "mode": "insert_or_ignore"},
		`has no column "att": did you mean "at"?`:                                 {"mode": "upsert", "key": "id", "sequence_by": "att"},
		`mode is "merge"; it must be insert, upsert, insert_or_ignore or replace`: {"mode": "merge"},
	} {
		object := s.Refuse(fields, row{"id": 1, "at": 1})
		require.Contains(s, object.Message, says)
		require.Equal(s, interpreter.ClassFinal, object.Class)
	}
}
