package tooltest

import (
	"github.com/stretchr/testify/require"

	"reprise/interpreter"
)

var rejectedCases = tableCases{
	"rejected":              rowsAreRejected,
	"rejected at once":      rejectedAtOnce,
	"rejected by a trigger": rejectedByTrigger,
	"rejected by many":      manyAreRejected,
}

// rowsAreRejected: rows that the database refuses go to a table of their own, once, and the others are written.
func rowsAreRejected(s *TableTest) {
	s.Create("id bigint PRIMARY KEY, n integer NOT NULL CHECK (n < 100), word text")
	aside := s.Table + "_rejected"
	for _, mode := range []string{"insert", "upsert", "insert_or_ignore"} {
		s.Query("DELETE FROM "+s.Table, nil)
		in := s.WriteInput(row{"mode": mode, "key": "id", "rejected": row{"table": aside, "max": 3}},
			row{"id": 1, "n": 1, "word": "a"}, row{"id": 2, "n": 500, "word": "b\x00"}, row{"id": 3, "n": nil}, row{"id": 4, "n": 4})
		index := 7
		in.Index, in.Page, in.ControlID, in.Step, in.Visit = &index, 2, "run "+mode, "load", 1
		for range 2 {
			result, err := s.db.MakeAttempt(s.t, in)
			require.NoError(s, err)
			require.Equal(s, AffectedResult(2), result.Data.Data)
			if mode == "upsert" { // others are not made again
				require.Equal(s, &interpreter.RowCounts{RejectedRows: 2}, result.Meta.LeftOut)
			}
		}
		require.Equal(s, []string{`{"id":1,"n":1}`, `{"id":4,"n":4}`}, s.ContentLines("id, n"))
		found := s.Query(`SELECT operation_key, "row", run, step, visit, "index", page, "column", sqlstate, reason, at, value FROM `+aside+
			` WHERE run = {{ run }} ORDER BY "row"`, row{"run": in.ControlID}).([]any)
		require.Len(s, found, 2)
		for i, one := range found {
			one := one.(row)
			require.NotEmpty(s, one["at"])
			require.NotEmpty(s, one["reason"])
			require.NotEmpty(s, one["sqlstate"])
			for name, want := range map[string]any{"operation_key": in.OperationKey, "row": i + 2, "step": "load", "visit": 1, "index": 7, "page": 2} {
				require.Equal(s, want, one[name], name)
			}
		}
		require.Equal(s, `{"id":2,"n":500,"word":"b\u0000"}`, found[0].(row)["value"])
		if s.db.Name == "postgres" {
			require.Equal(s, "n", found[1].(row)["column"])
			require.Equal(s, "23502", found[1].(row)["sqlstate"])
		}
		more := in
		more.OperationKey += " page 3"
		more.Fingerprint, more.Page = "page 3", 3
		more.Result = Value([]any{row{"id": 5, "n": 5}, row{"id": 6, "n": 600}, row{"id": 7, "n": 700}})
		object := s.db.FailingCall(s.t, more)
		require.Contains(s, object.Message, "more than 3 rows of the call")
		require.Equal(s, interpreter.ClassFinal, object.Class)
		require.Equal(s, "rejected", object.Type)
		require.Len(s, s.ContentLines("id"), 2, "nothing of that write is kept")
	}
	require.Contains(s, s.Refuse(row{"rejected": row{"max": 1}}, row{"id": 9, "n": 1}).Message, "rejected needs table")
	require.Contains(s, s.Refuse(row{"rejected": row{"table": s.Table}}, row{"id": 9, "n": 500}).Message, `of rejected has no column "operation_key", so it was not made for rejected rows`)
	require.Contains(s, s.Refuse(row{"rejected": row{"table": aside}, "table": "nosuch"}, row{"id": 9}).Message, "does not exist", "what is no row's fault is an error")
}

// manyAreRejected: some of many rows, however they travel.
func manyAreRejected(s *TableTest) {
	s.Create("id bigint PRIMARY KEY, n integer CHECK (n <> 13)")
	const many = 5000
	for at, mode := range []string{"insert", "upsert", "insert_or_ignore"} {
		rows := make([]any, many)
		for i := range rows {
			rows[i] = row{"id": at*many + i, "n": max(13, i+9)} // the first five, so that large parts go in one after the other
		}
		result, err := s.db.MakeAttempt(s.t, s.WriteInput(row{"mode": mode, "key": "id", "rejected": row{"table": s.Table + "_aside"}}, rows...))
		require.NoError(s, err)
		require.Equal(s, AffectedResult(many-5), result.Data.Data)
		require.Equal(s, &interpreter.RowCounts{RejectedRows: 5}, result.Meta.LeftOut)
	}
	require.Equal(s, []any{row{"n": 15}}, s.Query("SELECT count(*) AS n FROM "+s.Table+"_aside", nil))
}

// rejectedAtOnce: constraints that are checked at the end of a transaction are checked with each row, and a constraint
// that would undo the whole transaction undoes nothing but the write.
func rejectedAtOnce(s *TableTest) {
	aside := row{"table": s.Table + "_aside"}
	if s.db.Name == "sqlite" {
		s.Create("id INTEGER PRIMARY KEY ON CONFLICT ROLLBACK, n integer")
		s.Write(nil, row{"id": 2})
		require.Contains(s, s.Refuse(row{"rejected": aside}, row{"id": 1}, row{"id": 2}, row{"id": 3}).Message, "UNIQUE constraint failed")
		require.Equal(s, []string{`{"id":2}`}, s.ContentLines("id"))
		return
	}
	s.Query("CREATE TABLE "+s.Table+"_parent (id bigint PRIMARY KEY)", nil)
	s.Query("INSERT INTO "+s.Table+"_parent VALUES (1)", nil)
	s.Create("id bigint PRIMARY KEY, parent bigint REFERENCES " + s.Table + "_parent (id) DEFERRABLE INITIALLY DEFERRED, n bigint UNIQUE DEFERRABLE INITIALLY DEFERRED")
	for _, mode := range []string{"insert", "upsert"} {
		s.Query("DELETE FROM "+s.Table, nil)
		in := s.WriteInput(row{"mode": mode, "key": "id", "rejected": aside},
			row{"id": 1, "parent": 1, "n": 1}, row{"id": 2, "parent": 9, "n": 2}, row{"id": 3, "parent": 1, "n": 1}, row{"id": 4, "parent": nil, "n": 4})
		in.Step = mode
		result, err := s.db.MakeAttempt(s.t, in)
		require.NoError(s, err)
		require.Equal(s, &interpreter.RowCounts{RejectedRows: 2}, result.Meta.LeftOut)
		require.Equal(s, []string{`{"id":1}`, `{"id":4}`}, s.ContentLines("id"))
		require.Equal(s, []any{row{"row": 2, "sqlstate": "23503"}, row{"row": 3, "sqlstate": "23505"}},
			s.Query(`SELECT "row", sqlstate FROM `+s.Table+`_aside WHERE step = {{ mode }} ORDER BY "row"`, row{"mode": mode}))
	}
}

// rejectedByTrigger: an error that a trigger raises refuses a row as a constraint does.
func rejectedByTrigger(s *TableTest) {
	s.Create("id bigint PRIMARY KEY")
	for _, statement := range map[string][]string{
		"postgres": {
			"CREATE FUNCTION " + s.Table + "_two() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN IF NEW.id = 2 THEN RAISE EXCEPTION ''not two''; END IF; RETURN NEW; END'",
			"CREATE TRIGGER two BEFORE INSERT ON " + s.Table + " FOR EACH ROW EXECUTE FUNCTION " + s.Table + "_two()",
		},
		"sqlite": {"CREATE TRIGGER " + s.Table + "_two BEFORE INSERT ON " + s.Table + " WHEN NEW.id = 2 BEGIN SELECT RAISE(ABORT, 'not two'); END"},
	}[s.db.Name] {
		s.Query(statement, nil)
	}
	aside := s.Table + "_aside"
	result, err := s.db.MakeAttempt(s.t, s.WriteInput(row{"rejected": row{"table": aside}}, row{"id": 1}, row{"id": 2}, row{"id": 3}))
	require.NoError(s, err)
	require.Equal(s, &interpreter.RowCounts{RejectedRows: 1}, result.Meta.LeftOut)
	found := s.Query("SELECT reason FROM "+aside, nil).([]any)
	require.Contains(s, found[0].(row)["reason"], "not two")
	require.Equal(s, "rejected", s.Refuse(row{"rejected": row{"table": aside, "max": 0}}, row{"id": 4}, row{"id": 2}).Type)
	require.Equal(s, []string{`{"id":1}`, `{"id":3}`}, s.ContentLines("id"))
}
