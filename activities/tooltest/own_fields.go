package tooltest

import (
	"fmt"
	"slices"

	"github.com/stretchr/testify/require"
)

var ownFieldCases = tableCases{
	"own fields":                  rowsHaveOwnFields,
	"own fields of a sequence":    rowsOfASequenceHaveOwnFields,
	"own fields of staged rows":   stagedRowsHaveOwnFields,
	"new defaults of staged rows": stagedRowsMeetNewDefaults,
	"defaults beside the table":   stagedDefaultsLeaveTheTableFree,
	"keys of the database":        keysOfTheDatabase,
	"refused rows are not there":  refusedRowsAreNotThere,
}

// rowsHaveOwnFields: what a row lacks does not depend on the rows beside it, however they travel.
func rowsHaveOwnFields(s *TableTest) {
	const columns = "id bigint PRIMARY KEY, name text, phone text, kind text DEFAULT 'new', qty integer NOT NULL DEFAULT 7, must text NOT NULL"
	rows := []any{
		row{"id": 1, "must": "m1", "name": "uno"},
		row{"id": 2, "must": "m2", "name": "two", "phone": "22"},
		row{"id": 3, "must": "m3", "phone": nil, "kind": nil},
		row{"id": 4, "must": "m4", "qty": 4},
		row{"id": 5, "must": "m5", "kind": "five", "qty": 5},
		row{"id": 6, "must": "m6"},
	}
	partial := []any{row{"id": 1, "phone": "111"}, row{"id": 2, "name": nil}, row{"id": 2, "kind": "late"}}
	for _, more := range []struct {
		columns string
		rows    int
	}{{"", 0}, {"", 1500}, {", only_json oddly", 0}, {", only_json oddly", 1500}} {
		if more.columns != "" && s.db.Name != "postgres" {
			continue
		}
		if more.columns != "" && more.rows == 0 {
			s.Query("CREATE TYPE oddly AS (x integer)", nil)
		}
		for _, mode := range []string{"insert", "insert_or_ignore", "upsert"} {
			var seen [2][]string
			for at, together := range []bool{true, false} {
				of := *s
				of.Table = fmt.Sprintf("%s_%s_%d_%d_%d", s.Table, mode, len(more.columns), more.rows, at)
				of.Create(columns + more.columns)
				of.Query("INSERT INTO "+of.Table+" (id, name, phone, kind, qty, must) VALUES (2, 'zwei', '2', 'old', 2, 'there'), (3, 'drei', '3', 'old', 3, 'there')", nil)
				if mode == "insert" {
					of.Query("DELETE FROM "+of.Table, nil)
				}
				fields := row{"mode": mode, "key": "id"}
				all := rows
				if mode == "upsert" {
					all = append(all[:len(all):len(all)], partial...)
				}
				if more.columns != "" {
					all = append(all[:len(all):len(all)], row{"id": 7, "must": "m7", "only_json": row{"x": 1}})
				}
				for i := range more.rows {
					all = append(all[:len(all):len(all)], row{"id": 100 + i, "must": "many"})
				}
				if together {
					of.Write(fields, all...)
				} else {
					for _, one := range all[:len(all)-more.rows] {
						of.Write(fields, one)
					}
				}
				seen[at] = of.SelectLines("id < 100", "id, name, phone, kind, qty, must")
			}
			require.Equal(s, seen[1], seen[0], "mode %s, %d more rows, %s", mode, more.rows, more.columns)
			fieldsByMode(s, mode, seen[0])
		}
	}
	s.Create(columns)
	require.Contains(s, s.Refuse(row{"mode": "upsert", "key": "id"}, row{"id": 1, "name": "new"}).Message, "must", "a new row needs it")
}

// fieldsByMode: what a row lacks keeps its value in a row that is there, and gets the default of the column in a new one.
func fieldsByMode(s *TableTest, mode string, found []string) {
	require.Contains(s, found, map[string]string{
		"insert":           `{"id":3,"kind":null,"must":"m3","name":null,"phone":null,"qty":7}`,
		"insert_or_ignore": `{"id":3,"kind":"old","must":"there","name":"drei","phone":"3","qty":3}`,
		"upsert":           `{"id":3,"kind":null,"must":"m3","name":"drei","phone":null,"qty":3}`,
	}[mode])
	require.Contains(s, found, map[string]string{
		"insert":           `{"id":1,"kind":"new","must":"m1","name":"uno","phone":null,"qty":7}`,
		"insert_or_ignore": `{"id":1,"kind":"new","must":"m1","name":"uno","phone":null,"qty":7}`,
		"upsert":           `{"id":1,"kind":"new","must":"m1","name":"uno","phone":"111","qty":7}`,
	}[mode])
}

// rowsOfASequenceHaveOwnFields: a row without the value of sequence_by is older than any that has one, whatever the default.
func rowsOfASequenceHaveOwnFields(s *TableTest) {
	s.Create("id bigint PRIMARY KEY, at bigint DEFAULT 100, a text, b text")
	fields := row{"mode": "upsert", "key": "id", "sequence_by": "at"}
	s.Write(fields, row{"id": 1, "at": 5, "a": "a5"}, row{"id": 2, "at": 5, "a": "a5", "b": "b5"}, row{"id": 3, "at": nil, "a": "a"})
	s.Write(fields, row{"id": 1, "a": "without"}, row{"id": 2, "at": 6, "b": "b6"}, row{"id": 3, "a": "without"})
	s.Write(fields, row{"id": 2, "a": "without"}, row{"id": 3, "b": "b"})
	s.Write(fields, row{"id": 1, "at": 7, "a": "a7"}, row{"id": 1, "at": 6, "b": "too old"}, row{"id": 1, "at": 8, "b": "b8"})
	require.Equal(s, []string{
		`{"a":"a7","at":8,"b":"b8","id":1}`, `{"a":"a5","at":6,"b":"b6","id":2}`, `{"a":"without","at":null,"b":"b","id":3}`,
	}, s.ContentLines("id, at, a, b"))
}

// stagedRowsHaveOwnFields: with mode replace a row without a field has the default of its column, whatever its neighbours and other pages have,
// as if it was inserted by itself.
func stagedRowsHaveOwnFields(s *TableTest) {
	const columns = "id bigint PRIMARY KEY, name text, kind text DEFAULT 'new', qty integer NOT NULL DEFAULT 7, small numeric DEFAULT (1 + 1.5), must text NOT NULL"
	rows := []any{
		row{"id": 1, "must": "m1", "name": "uno"},
		row{"id": 2, "must": "m2", "name": "two", "kind": "two", "qty": 2, "small": 2},
		row{"id": 3, "must": "m3", "name": nil, "kind": nil, "small": nil},
		row{"id": 4, "must": "m4", "qty": 4},
		row{"id": 5, "must": "m5"},
		row{"id": 6, "must": "m6", "small": 6},
	}
	for at, fields := range []row{{}, {"key": "id"}, {"rejected": row{"table": s.Table + "_aside"}}, {"schema_contract": "evolve"}} {
		want := *s
		want.Table = fmt.Sprint(s.Table, "_inserted_", at)
		want.Create(columns)
		for _, one := range rows {
			want.Write(nil, one)
		}
		for _, size := range []int{1, 2, 3, len(rows)} {
			of := *s
			of.Table = fmt.Sprint(s.Table, "_", at, "_", size)
			of.Create(columns)
			of.Query("INSERT INTO "+of.Table+" (id, name, kind, qty, small, must) VALUES (4, 'old', 'old', 1, 1, 'old'), (5, 'old', 'old', 1, 1, 'old'), (9, 'old', 'old', 1, 1, 'old')", nil)
			load := of.beginReplace(fields)
			for page := range slices.Chunk(rows, size) {
				load.stagePage(page...)
			}
			load.publishRows()
			require.Equal(s, want.ContentLines("id, name, kind, qty, small, must"), of.ContentLines("id, name, kind, qty, small, must"), "%v, pages of %d", fields, size)
		}
	}
	s.Create(columns)
	object := s.beginReplace(nil).refuseCall("", row{"id": 1, "must": "m", "qty": 1}, row{"id": 2, "must": "m", "qty": nil})
	require.Contains(s, object.Message, "row 2")
	require.Contains(s, object.Message, "qty", "nil is no value of its column, and no default")
}

// stagedRowsMeetNewDefaults: a column that the table gets while rows are staged has its default in those that were staged before.
func stagedRowsMeetNewDefaults(s *TableTest) {
	s.Create("id bigint PRIMARY KEY, name text")
	load := s.beginReplace(row{"key": "id"})
	load.stagePage(row{"id": 1, "name": "a"})
	s.Query("ALTER TABLE "+s.Table+" ADD COLUMN kind text DEFAULT 'new'", nil)
	s.Query("ALTER TABLE "+s.Table+" ADD COLUMN qty integer NOT NULL DEFAULT 7", nil)
	load.stagePage(row{"id": 2, "kind": "k", "qty": 2}, row{"id": 3, "kind": nil})
	load.publishRows()
	require.Equal(s, []string{
		`{"id":1,"kind":"new","name":"a","qty":7}`, `{"id":2,"kind":"k","name":null,"qty":2}`, `{"id":3,"kind":null,"name":null,"qty":7}`,
	}, s.ContentLines("id, kind, name, qty"))
}

// stagedDefaultsLeaveTheTableFree: what is staged is in nobody's way who drops the table, and numbers come from the sequence of the table.
func stagedDefaultsLeaveTheTableFree(s *TableTest) {
	if s.db.Name != "postgres" {
		return
	}
	s.Query("CREATE SEQUENCE "+s.Table+"_own", nil)
	s.Create("id bigserial, other bigint GENERATED BY DEFAULT AS IDENTITY, word text, label text DEFAULT 'n' || nextval('" + s.Table + "_own'::regclass)")
	s.Query("ALTER SEQUENCE "+s.Table+"_own OWNED BY "+s.Table+".label", nil)
	load := s.beginReplace(nil)
	load.stagePage(row{"id": 90, "other": 90, "word": "a", "label": "given"}, row{"word": "b"})
	load.stagePage(row{"word": "c"})
	load.publishRows()
	require.Equal(s, []string{`{"id":1,"label":"n1","other":1,"word":"b"}`, `{"id":2,"label":"n2","other":2,"word":"c"}`, `{"id":90,"label":"given","other":90,"word":"a"}`},
		s.ContentLines("id, label, other, word"))
	left := s.beginReplace(nil)
	left.stagePage(row{"word": "d"})
	s.Query("DROP TABLE "+s.Table, nil)
	require.True(s, left.hasStagingTable())
}

// equalKey are values that a column has for one key.
type equalKey struct {
	column string
	equal  []any
	other  any
}

func (s *TableTest) equalKeys() []equalKey {
	if s.db.Name != "postgres" {
		return []equalKey{
			{"text COLLATE NOCASE", []any{"abc", "ABC", "aBc"}, "äbc"},
			{"text COLLATE RTRIM", []any{"a", "a  ", "a "}, " a"},
			{"integer", []any{7, "7", 7}, 8},
			{"numeric", []any{1.5, "1.5", 1.5}, 2.5},
			{"varchar(9) COLLATE NOCASE", []any{"x", "X", "x"}, "y"},
		}
	}
	if len(s.Query("SELECT 1 AS n FROM pg_collation WHERE collname = 'anyhow'", nil).([]any)) == 0 {
		s.Query(`CREATE COLLATION anyhow (provider = icu, locale = 'und-u-ks-level2', deterministic = false)`, nil)
		s.Query("CREATE DOMAIN odd_key AS numeric(6, 1)", nil)
	}
	return []equalKey{
		{"char(5)", []any{"ab", "ab  ", "ab "}, "abc"},
		{"date", []any{"2024-01-02", "20240102", "January 2, 2024"}, "2024-01-03"},
		{"bytea", []any{"YWI=", "YWI=", "YWI="}, "YWJj"},
		{"numeric", []any{"1.0", "1.00", "1"}, "1.01"},
		{"numeric(6, 1)", []any{"1.01", "1.04", 1}, "1.06"},
		{"odd_key", []any{"1.01", "1.04", 1}, "1.06"},
		{"timestamptz", []any{"2024-01-01T00:00:00Z", "2024-01-01T02:00:00+02:00", "2024-01-01 00:00:00"}, "2024-01-01T00:00:01Z"},
		{"timestamp(0)", []any{"2024-01-01 00:00:00", "2024-01-01 00:00:00.3", "20240101"}, "2024-01-01 00:00:01"},
		{"jsonb", []any{row{"a": 1, "b": 2}, row{"b": 2, "a": 1}, row{"a": 1, "b": 2}}, row{"a": 2}},
		{"interval", []any{"1 day", "24 hours", "1440 minutes"}, "1 hour"},
		{`text COLLATE anyhow`, []any{"abc", "ABC", "aBc"}, "abd"},
		{"boolean", []any{true, "t", "true"}, false},
		{"inet", []any{"10.0.0.1", "10.0.0.1/32", "10.0.0.1"}, "10.0.0.2"},
		{"double precision", []any{"0.5", "0.50", 0.5}, 1.5},
		{"integer[]", []any{[]any{1, 2}, "{1,2}", "{ 1, 2 }"}, []any{1}},
		{"uuid", []any{
			"A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11", "{a0eebc999c0b4ef8bb6d6bb9bd380a11}", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
		}, "b0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"},
	}
}

// keysOfTheDatabase: rows are of one key where the database says so, in every mode and beside every word, as one column of the key and as one of
// two.
func keysOfTheDatabase(s *TableTest) {
	for at, test := range s.equalKeys() {
		for _, parts := range []int{1, 2} {
			of := *s
			of.Table = fmt.Sprintf("%s_%d_%d", s.Table, at, parts)
			key, columns := []any{"k"}, "k "+test.column+", part bigint DEFAULT 1, n bigint, at bigint, more text, PRIMARY KEY (k)"
			if parts == 2 {
				key, columns = []any{"part", "k"}, "k "+test.column+", part bigint DEFAULT 1, n bigint, at bigint, more text, PRIMARY KEY (part, k)"
			}
			of.Create(columns)
			of.ofEqualKeys(test, key)
		}
	}
}

func (s *TableTest) ofEqualKeys(test equalKey, key []any) {
	s.Helper()
	a, b, c, other := test.equal[0], test.equal[1], test.equal[2], test.other
	is := func(k any, n int, more row) row {
		one := row{"k": k, "part": 1, "n": n}
		for name, value := range more {
			one[name] = value
		}
		return one
	}
	numbers := func(want ...string) {
		s.Helper()
		require.Equal(s, want, s.ContentLines("n"), test.column)
	}
	upsert := row{"mode": "upsert", "key": key}
	s.Write(upsert, is(a, 1, nil), is(other, 9, nil), is(b, 2, nil))
	numbers(`{"n":2}`, `{"n":9}`)
	s.Write(upsert, is(a, 3, row{"at": 1}), is(b, 4, nil), is(c, 5, row{"more": "m"}))
	require.Equal(s, []string{`{"at":1,"more":"m","n":5}`, `{"at":null,"more":null,"n":9}`}, s.ContentLines("n, at, more"), test.column)
	newest := row{"mode": "upsert", "key": key, "sequence_by": "at"}
	s.Write(newest, is(a, 6, row{"at": 3}), is(b, 7, row{"at": 2}))
	numbers(`{"n":6}`, `{"n":9}`)
	deletes := row{"mode": "upsert", "key": key, "hard_delete": "gone"}
	s.Write(deletes, is(a, 7, nil), is(b, 0, row{"gone": true}))
	numbers(`{"n":9}`)
	s.Write(deletes, is(a, 0, row{"gone": true}), is(b, 8, nil))
	numbers(`{"n":8}`, `{"n":9}`)
	s.Write(row{"mode": "insert_or_ignore", "key": key}, is(a, 1, nil), is(c, 2, nil))
	numbers(`{"n":8}`, `{"n":9}`)
	s.Query("DELETE FROM "+s.Table, nil)
	s.Write(row{"mode": "insert_or_ignore", "key": key}, is(b, 1, nil), is(a, 2, nil))
	numbers(`{"n":1}`)
	load := s.beginReplace(row{"key": key})
	load.stagePage(is(a, 1, nil), is(other, 2, nil))
	load.stagePage(is(b, 3, nil), is(c, 4, nil))
	load.publishRows()
	numbers(`{"n":2}`, `{"n":4}`)
	missing := s.stagingLoad(row{"mode": "upsert", "key": key, "delete_missing": true})
	missing.callTwice("", is(b, 5, nil))
	missing.publishRows()
	numbers(`{"n":5}`)
}

// refusedRowsAreNotThere: of two rows of one key the refused one does not count, whether it is rejected or discarded.
func refusedRowsAreNotThere(s *TableTest) {
	s.Create("id bigint PRIMARY KEY, n integer CHECK (n < 100), word text")
	for at, test := range []struct {
		rows     []any
		rejected int
		left     string
	}{
		{[]any{row{"id": 1, "n": 1}, row{"id": 1, "n": 500}}, 1, `{"id":1,"n":1}`},
		{[]any{row{"id": 1, "n": 500}, row{"id": 1, "n": 2}}, 1, `{"id":1,"n":2}`},
		{[]any{row{"id": 1, "n": 1}, row{"id": 1, "n": 2}, row{"id": 1, "n": 500}, row{"id": 1, "n": 600}}, 2, `{"id":1,"n":2}`},
		{[]any{row{"id": 1, "n": 500}, row{"id": 1, "n": 3}, row{"id": 1, "n": 600}, row{"id": 1, "n": 4, "word": "w"}}, 2, `{"id":1,"n":4}`},
	} {
		s.Query("DELETE FROM "+s.Table, nil)
		in := s.WriteInput(row{"mode": "upsert", "key": "id", "rejected": row{"table": s.Table + "_aside"}}, append(test.rows, row{"id": 2, "n": 2})...)
		in.RunID = fmt.Sprint("run ", at)
		result, err := s.db.MakeAttempt(s.t, in)
		require.NoError(s, err)
		require.Equal(s, test.rejected, result.Meta.LeftOut.RejectedRows, "%v", test.rows)
		require.Equal(s, []string{test.left, `{"id":2,"n":2}`}, s.ContentLines("id, n"), "%v", test.rows)
		require.Equal(s, []any{row{"n": test.rejected}}, s.Query("SELECT count(*) AS n FROM "+s.Table+"_aside WHERE run = {{ run }}", row{"run": in.RunID}))
	}
	s.Query("DELETE FROM "+s.Table, nil)
	s.Write(row{"mode": "upsert", "key": "id", "schema_contract": row{"columns": "discard_row"}}, row{"id": 1, "n": 1}, row{"id": 1, "n": 2, "unknown": 1})
	require.Equal(s, []string{`{"id":1,"n":1}`}, s.ContentLines("id, n"))
	s.Write(row{"mode": "upsert", "key": "id", "schema_contract": row{"data_type": "discard_row"}}, row{"id": 1, "n": 3}, row{"id": 1, "n": "no number"})
	require.Equal(s, []string{`{"id":1,"n":3}`}, s.ContentLines("id, n"))
}
