package tooltest

import (
	"fmt"
	"maps"
	"strings"

	"github.com/stretchr/testify/require"

	"reprise/interpreter"
	"reprise/interpreter/incremental"
)

var valueReadingCases = tableCases{
	"texts are no numbers":       textsAreNoNumbers,
	"texts are rejected":         textsAreRejected,
	"texts in many rows":         textsInManyRows,
	"texts as booleans":          textsAsBooleans,
	"booleans in texts":          booleansInTexts,
	"sequence of texts":          sequenceOfTexts,
	"sequence is noted":          sequenceIsNoted,
	"misspelt columns are noted": misspeltColumnsAreNoted,
	"documents are noted":        documentsAreNoted,
	"empty texts are noted":      emptyTextsAreNoted,
	"other spellings are noted":  otherSpellingsAreNoted,
	"older rows are counted":     olderRowsAreCounted,
	"sequence of cursors":        sequenceOfCursors,
	"cursors have types":         cursorsHaveTypes,
}

// notPlain are texts that databases make numbers of, or refuse, and that are not the plain form of one.
var notPlain = []string{
	"01234", "007", " 12 ", "12 ", "\t12", "1e3", "1E3", "+5", "0x10", "1_000", ".5", "5.", "-.5", "５", "NaN", "Infinity", "-0", "-0.0", "00", "--1", "1,5", "n/a", "", "-",
}

// textsAreNoNumbers: a text goes into a column of numbers where it is the plain form of one; of others the contract decides, in every mode.
func textsAreNoNumbers(s *TableTest) {
	s.Create("id bigint PRIMARY KEY, n bigint, d numeric, f double precision")
	upsert := row{"mode": "upsert", "key": "id"}
	with := func(contract any) row { return row{"mode": "upsert", "key": "id", "schema_contract": contract} }
	s.Write(upsert, row{"id": 7, "n": 7})
	for _, text := range notPlain {
		for _, column := range []string{"n", "d", "f"} {
			for _, contract := range []string{"freeze", "evolve"} {
				object := s.Refuse(with(contract), row{"id": 1, column: "12"}, row{"id": 2, column: text})
				require.Contains(s, object.Message, fmt.Sprintf("row 2, column %q: %q is not a plain number", column, text))
				require.Contains(s, object.Message, "`columns: {"+column+": text}`")
				require.Contains(s, object.Message, "discard_value")
				require.Equal(s, interpreter.ClassFinal, object.Class)
			}
			require.Equal(s, AffectedResult(1), s.Write(with(row{"data_type": "discard_value"}), row{"id": 2, column: text}))
			require.Equal(s, AffectedResult(0), s.Write(with(row{"data_type": "discard_row"}), row{"id": 3, column: text}))
		}
		require.Contains(s, s.Refuse(upsert, row{"id": text, "n": 1}).Message, "is not a plain number", "a key too")
		require.Equal(s, AffectedResult(0), s.Write(with(row{"data_type": "discard_value"}), row{"id": text, "n": 1}), "a row cannot be without its key")
		require.Contains(s, s.Refuse(row{"mode": "upsert", "key": "id", "hard_delete": "gone"}, row{"id": text, "gone": true}).Message, "is not a plain number")
		require.Contains(s, s.beginReplace(row{"key": "id"}).refuseCall("", row{"id": text, "n": 1}).Message, "is not a plain number")
		require.Contains(s, s.beginReplace(row{"replace_where": row{"column": "n", "from": text}}).refuseCall("", row{"id": 1, "n": 1}).Message, "is not a plain number")
	}
	require.Equal(s, []string{`{"d":null,"f":null,"id":2,"n":null}`, `{"d":null,"f":null,"id":7,"n":7}`}, s.ContentLines("id, n, d, f"))
	s.Write(upsert, row{"id": "1", "n": "-3", "d": "12.25", "f": "0.5"}, row{"id": "2", "n": "0", "d": "9007199254740993", "f": "-12"})
	require.Equal(s, []string{
		`{"d":12.25,"f":0.5,"id":1,"n":-3}`, `{"d":9007199254740993,"f":-12,"id":2,"n":0}`, `{"d":null,"f":null,"id":7,"n":7}`,
	}, s.ContentLines("id, n, d, f"), "plain forms")
	missing := s.stagingLoad(row{"mode": "upsert", "key": "id", "delete_missing": true, "max_delete": 1, "schema_contract": row{"data_type": "discard_row"}})
	in := missing.stagingInput("", row{"id": "007", "n": 1}, row{"id": "1", "n": 5})
	_, err := s.db.MakeAttempt(s.t, in)
	require.NoError(s, err)
	require.Equal(s, publishedResult(0, 2), missing.publishRows(), "007 is not the key 7")
	require.Equal(s, []string{`{"id":1,"n":5}`}, s.ContentLines("id, n"))
}

// textsAreRejected: the table of rows that are refused gets what would become another value, as it was, and the row before it counts.
func textsAreRejected(s *TableTest) {
	s.Create("id bigint PRIMARY KEY, n bigint, word text")
	fields := row{"mode": "upsert", "key": "id", "rejected": row{"table": s.Table + "_aside"}, "schema_contract": "evolve", "hard_delete": "gone"}
	s.Write(row{"mode": "upsert", "key": "id"}, row{"id": 7, "n": 7})
	in := s.WriteInput(fields, row{"id": 1, "n": 1}, row{"id": 1, "n": "01", "word": "later"}, row{"id": "007", "gone": true}, row{"id": 2, "n": "2"})
	for range 2 {
		result, err := s.db.MakeAttempt(s.t, in)
		require.NoError(s, err)
		require.Equal(s, 2, result.Data.Data.(row)["rows_affected"])
		require.Equal(s, &interpreter.RowCounts{RejectedRows: 2}, result.Meta.LeftOut)
	}
	require.Equal(s, []string{`{"id":1,"n":1}`, `{"id":2,"n":2}`, `{"id":7,"n":7}`}, s.ContentLines("id, n"))
	refused := s.Query(`SELECT "row", "column", sqlstate, reason, value FROM `+s.Table+`_aside ORDER BY "row"`, nil).([]any)
	code := map[string]string{"postgres": "22P02", "sqlite": "SQLITE_MISMATCH"}[s.db.Name]
	require.Equal(s, []any{
		row{"row": 2, "column": "n", "sqlstate": code, "value": `{"id":1,"n":"01","word":"later"}`, "reason": `"01" is not a plain number, and its column is of type bigint`},
		row{"row": 3, "column": "id", "sqlstate": code, "value": `{"gone":true,"id":"007"}`, "reason": `"007" is not a plain number, and its column is of type bigint`},
	}, refused)
	load := s.beginReplace(row{"key": "id", "rejected": row{"table": s.Table + "_aside"}})
	result, err := s.db.MakeAttempt(s.t, load.stagingInput("", row{"id": 5, "n": "5"}, row{"id": 6, "n": " 6"}))
	require.NoError(s, err)
	require.Equal(s, &interpreter.RowCounts{RejectedRows: 1}, result.Meta.LeftOut)
	require.Equal(s, publishedResult(1, 3), load.publishRows())
	require.Equal(s, []string{`{"id":5,"n":5}`}, s.ContentLines("id, n"))
}

// textsInManyRows: a text is also found among so many rows that they are sent in another way, and in a table that the write
// creates.
func textsInManyRows(s *TableTest) {
	const many = 1200
	for _, mode := range []string{"insert", "upsert"} {
		own := *s
		own.Table += "_" + mode
		own.Create("id bigint PRIMARY KEY, n bigint")
		rows := make([]any, many)
		for i := range rows {
			rows[i] = row{"id": i, "n": fmt.Sprint(i)}
		}
		own.Write(row{"mode": mode, "key": "id"}, rows...)
		rows[many-1] = row{"id": 1, "n": "0" + fmt.Sprint(many)}
		require.Contains(s, own.Refuse(row{"mode": mode, "key": "id"}, rows...).Message, fmt.Sprintf(`row %d, column "n"`, many))
		own.Table += "_made"
		object := own.Refuse(row{"mode": mode, "key": "id", "schema_contract": "evolve", "columns": row{"n": map[string]string{"postgres": "INT8", "sqlite": "bigint"}[s.db.Name]}}, rows...)
		require.Contains(s, object.Message, `column "n"`)
	}
}

// textsAsBooleans: a column of booleans reads what databases write for them.
func textsAsBooleans(s *TableTest) {
	s.Create("id bigint PRIMARY KEY, ok boolean")
	fields := row{"mode": "upsert", "key": "id"}
	s.Write(fields, row{"id": 1, "ok": "true"}, row{"id": 2, "ok": "f"}, row{"id": 3, "ok": "1"}, row{"id": 4, "ok": false}, row{"id": 5, "ok": nil})
	yes, no := map[string]any{"postgres": true, "sqlite": 1}[s.db.Name], map[string]any{"postgres": false, "sqlite": 0}[s.db.Name]
	require.Equal(s, []any{row{"ok": yes}, row{"ok": no}, row{"ok": yes}, row{"ok": no}, row{"ok": nil}}, s.Query("SELECT ok FROM "+s.Table+" ORDER BY id", nil))
	for _, text := range []string{"yes", "on", "T", " true", "y", "2", ""} {
		require.Contains(s, s.Refuse(fields, row{"id": 9, "ok": text}).Message, "is not one of the booleans")
	}
}

// booleansInTexts: a boolean is not the number 1 in a column of texts, and a decimal keeps its digits in one of numbers or is refused.
func booleansInTexts(s *TableTest) {
	s.Create("id bigint PRIMARY KEY, word text, d numeric")
	fields := row{"mode": "upsert", "key": "id"}
	s.Write(fields, row{"id": 1, "word": true, "d": "123456.7890123"}, row{"id": 2, "word": 1, "d": "2251799813685248.5"}, row{"id": 3, "word": false, "d": "-1234567890.125"})
	require.Equal(s, []string{`{"word":"1"}`, `{"word":"false"}`, `{"word":"true"}`}, s.ContentLines("word"))
	for _, long := range []string{"0.123456789012345678", "123456789012345.6789", "12345678901234567890.5", "-9007199254740993.0625"} {
		if s.db.Name == "postgres" {
			s.Write(fields, row{"id": 4, "d": long})
			require.Equal(s, []any{row{"d": long}}, s.Query("SELECT d::text AS d FROM "+s.Table+" WHERE id = 4", nil))
			continue
		}
		require.Contains(s, s.Refuse(fields, row{"id": 4, "d": long}).Message, "would round the number "+long)
	}
}

// timesOfSequence are two versions of a row, the later first: sequence_by compares as cursors are compared, whatever the form.
var timesOfSequence = []struct{ later, earlier any }{
	{"2024-01-01T10:00:00.500Z", "2024-01-01T10:00:00Z"},
	{"2024-01-01T10:00:00.5Z", "2024-01-01T10:00:00.49Z"},
	{"2024-01-01T10:00:00.000000002Z", "2024-01-01T10:00:00.000000001Z"},
	{"2024-01-01T09:00:00-02:00", "2024-01-01T10:00:00Z"},
	{"2024-01-01T10:00:01Z", "2024-01-01T12:00:00+02:00"},
	{"2024-01-01 10:00:01+00", "2024-01-01T10:00:00Z"},
	{"2024-01-01T10:30Z", "2024-01-01T10:00:00Z"},
	{"20240101T110000Z", "2024-01-01T10:00:00Z"},
	{"2024-01-01T10:00:01", "2024-01-01T10:00:00Z"},
	{"2024-01-02", "2024-01-01T23:59:59Z"},
	{"Mon, 01 Jan 2024 11:00:00 GMT", "2024-01-01T10:00:00Z"},
	{"Mon, 01 Jan 2024 11:00:00 GMT", "Thu, 30 Nov 2023 11:00:00 GMT"},
	{"2024-03-01T00:00:00Z", "2024-02-29T23:59:59.999Z"},
	{"b", "a"},
	{"a", "B"},
	{"9", "10"},
	{10, 9},
	{10.5, 9},
}

// sequenceOfTexts: a column of texts, as evolve makes it, is compared as the step compares its cursors: by rows that come one by one, in one write,
// and by those that are deleted.
func sequenceOfTexts(s *TableTest) {
	kinds := []string{"text", "varchar(60)"}
	if s.db.Name == "postgres" {
		kinds = append(kinds, "char(60)")
	}
	for _, kind := range kinds {
		own := *s
		own.Table += "_" + kind[:4]
		own.Create("id bigint PRIMARY KEY, at " + kind + ", n bigint")
		fields := row{"mode": "upsert", "key": "id", "sequence_by": "at", "hard_delete": "gone"}
		for i, of := range timesOfSequence {
			first, second, third, deleted, both, stale := 10*i, 10*i+1, 10*i+2, 10*i+3, 10*i+4, 10*i+5
			later := func(id int) row { return row{"id": id, "at": of.later, "n": 2} }
			earlier := func(id int) row { return row{"id": id, "at": of.earlier, "n": 1} }
			gone := func(of row) row { return row{"id": of["id"], "at": of["at"], "gone": true} }
			own.Write(fields, earlier(first), later(second), earlier(deleted), later(stale))
			own.Write(fields, later(first), gone(later(deleted)), gone(earlier(stale)))
			own.Write(fields, earlier(second))
			own.Write(fields, later(third), earlier(third), earlier(both), later(both))
			require.Equal(s, []any{row{"id": first, "n": 2}, row{"id": second, "n": 2}, row{"id": third, "n": 2}, row{"id": both, "n": 2}, row{"id": stale, "n": 2}},
				own.Query("SELECT id, n FROM "+own.Table+" WHERE id >= {{ a }} AND id < {{ b }} ORDER BY id", row{"a": first, "b": first + 10}), "%s: %v", kind, of)
		}
	}
}

// sequenceIsNoted: texts that look like numbers which are ordered otherwise, or will be, are noted with an example.
func sequenceIsNoted(s *TableTest) {
	s.Create("id bigint PRIMARY KEY, v text, n bigint")
	notes := func(values ...any) []string {
		rows := make([]any, len(values))
		for i, value := range values {
			rows[i] = row{"id": i, "v": value}
		}
		in := s.WriteInput(row{"mode": "upsert", "key": "id", "sequence_by": "v"}, rows...)
		result, err := s.db.MakeAttempt(s.t, in)
		require.NoError(s, err)
		return result.Meta.Notes
	}
	for example, values := range map[string][]any{
		`so "9" comes after "10"`:       {"9", "10"},
		`so "9999" comes after "10000"`: {"9999", nil, "10000"},
		`so "99" comes after "100"`:     {"17"},
	} {
		noted := notes(values...)
		require.Len(s, noted, 1, example)
		require.Contains(s, noted[0], example)
		require.Contains(s, noted[0], `fields: {v: "{{ int(row.v) }}"}`)
	}
	for _, values := range [][]any{{"1704067200", "1704067300"}, {"2024-01-01", "9999"}, {"007", "010"}, {"a1", "a10"}, {nil, nil}, {9, 10}} {
		require.Empty(s, notes(values...), "%v", values)
	}
}

// olderRowsAreCounted: a page with older rows than an earlier one has a count of those that took the place of newer ones with their keys.
func olderRowsAreCounted(s *TableTest) {
	s.Create("id bigint PRIMARY KEY, at text, day date, n bigint")
	s.Write(row{"mode": "upsert", "key": "id"}, row{"id": 1, "at": "2024-01-09T00:00:00Z", "day": "2024-01-09"}, row{"id": 2, "at": "2024-01-05T00:00:00Z", "day": "2024-01-05"}, row{"id": 3})
	for column, value := range map[string]string{"at": "2024-01-07T01:00:00+01:00", "day": "2024-01-07"} {
		write := func(behind bool, fields row) *interpreter.RowCounts {
			fields["mode"], fields["key"] = "upsert", "id"
			rows := []any{row{"id": 1, column: value, "n": 7}, row{"id": 2, column: value}, row{"id": 3, column: value}, row{"id": 4, column: value}, row{"id": 1, "n": 8}}
			in := s.WriteInput(fields, rows...)
			in.Cursor = &incremental.CursorField{Path: column, Type: incremental.Time, Behind: behind}
			result, err := s.db.MakeAttempt(s.t, in)
			require.NoError(s, err)
			return result.Meta.LeftOut
		}
		require.Nil(s, write(true, row{"sequence_by": column}), column)
		require.Equal(s, &interpreter.RowCounts{OlderRows: 1}, write(true, row{}), column)
		require.Nil(s, write(true, row{}), "it is the same by now")
		require.Nil(s, write(false, row{}), column)
		s.Write(row{"mode": "upsert", "key": "id"}, row{"id": 1, column: "2024-01-09"})
		require.Nil(s, write(false, row{}), "its page is not behind")
	}
}

// sequenceOfCursors: where the column is the step's cursor, its type says how it is compared.
func sequenceOfCursors(s *TableTest) {
	s.Create("id bigint PRIMARY KEY, at text, n bigint")
	write := func(as incremental.CursorType, id int, at string, n int) {
		in := s.WriteInput(row{"mode": "upsert", "key": "id", "sequence_by": "at"}, row{"id": id, "at": at, "n": n})
		in.Cursor = &incremental.CursorField{Path: "at", Type: as}
		_, err := s.db.MakeAttempt(s.t, in)
		require.NoError(s, err)
	}
	for i, of := range []struct {
		as            incremental.CursorType
		first, second string
		n             int
	}{
		{incremental.Integer, "9", "10", 2},
		{incremental.Integer, "10", "9", 1},
		{incremental.Text, "9", "10", 1},
		{incremental.Text, "2024-01-01T10:00:00Z", "2024-01-01T10:00:00.500Z", 1},
		{incremental.Time, "2024-01-01T10:00:00Z", "2024-01-01T10:00:00.500Z", 2},
		{incremental.Date, "2024-01-02", "2024-01-01", 1},
	} {
		write(of.as, i, of.first, 1)
		write(of.as, i, of.second, 2)
		require.Equal(s, []any{row{"n": of.n}}, s.Query("SELECT n FROM "+s.Table+" WHERE id = {{ id }}", row{"id": i}), "%v", of)
	}
}

// cursorsHaveTypes: evolve makes the column of the step's cursor by its type, where the database has it and all values are such.
func cursorsHaveTypes(s *TableTest) {
	for i, of := range []struct {
		as    incremental.CursorType
		value any
		typed string
	}{
		{incremental.Time, "2024-01-01T10:00:00.5+01:00", "timestamp with time zone"},
		{incremental.Time, "20240101T1000Z", "timestamp with time zone"},
		{incremental.Time, "Mon, 01 Jan 2024 11:00:00 GMT", "timestamp with time zone"},
		{incremental.Time, "2024-01-01T10:00:00.0000005Z", "text"},
		{incremental.Date, "2024-01-01", "date"},
		{incremental.Integer, 5, "bigint"},
		{incremental.Text, "2024-01-01", "text"},
	} {
		own := *s
		own.Table = fmt.Sprint(s.Table, "_", i)
		fields := row{"mode": "upsert", "key": "id", "sequence_by": "at", "schema_contract": "evolve"}
		in := own.WriteInput(fields, row{"id": 1, "at": of.value, "note": "2024-01-01"}, row{"id": 2, "at": nil})
		in.Cursor = &incremental.CursorField{Path: "at", Type: of.as}
		made := own.planAndApply(in)
		_, err := s.db.MakeAttempt(s.t, in)
		require.NoError(s, err)
		made(err)
		if s.db.Name == "postgres" {
			require.Equal(s, of.typed, own.typeOf("at"), "%v", of)
			require.Equal(s, "text", own.typeOf("note"))
			continue
		}
		require.Equal(s, []any{row{"at": of.value}}, own.Query("SELECT at FROM "+own.Table+" WHERE id = 1", nil), "text, as it was")
	}
}

// misspeltColumnsAreNoted: a column that the sink names and no row has is a note where the rows have one that is certainly meant.
func misspeltColumnsAreNoted(s *TableTest) {
	items := row{"table": s.Table + "_items", "key": []any{"order_id", "line"}, "with": row{"order_id": "id"}}
	given := row{"id": 1, "deleted": false, "amount": 2, "items": []any{row{"line": 1}}}
	for _, test := range []struct {
		fields row
		note   string
	}{
		{row{"hard_delete": "delted"}, `hard_delete: no row for table "` + s.Table + `" has "delted"; did you mean "deleted"?`},
		{row{"children": row{"itmes": items}}, `children: no row for table "` + s.Table + `" has "itmes"; did you mean "items"?`},
		{row{"columns": row{"amuont": "numeric"}}, `columns: no row for table "` + s.Table + `" has "amuont"; did you mean "amount"?`},
		{row{"columns": row{"amount2": "numeric", "note": "text"}}, ""},
		{row{"columns": row{"amounts": "numeric", "amount": "numeric"}}, ""},
		{row{"hard_delete": "deleted", "children": row{"items": items}, "columns": row{"amount": "numeric"}}, ""},
		{row{"hard_delete": "gone", "children": row{"parts": items}}, ""},
	} {
		fields := row{"mode": "upsert", "key": "id", "schema_contract": "evolve"}
		maps.Copy(fields, test.fields)
		result, err := s.db.MakeAttempt(s.t, s.WriteInput(fields, given))
		require.NoError(s, err, "%v", test.fields)
		require.Equal(s, test.note, strings.Join(result.Meta.Notes, "\n"), "%v", test.fields)
	}
}

// documentsAreNoted: a text that is a list or map in JSON is a JSON string in a column of JSON, whose members nobody finds there, so the
// write notes it. Other texts, and columns of text, are certainly meant.
func documentsAreNoted(s *TableTest) {
	typed, says := "text", ""
	if s.db.Name == "postgres" {
		typed, says = "jsonb", `column "j" of type jsonb: texts that are JSON are written as JSON strings; write their values with fields: {j: "{{ fromJSON(row.j) }}"}`
	}
	for value, noted := range map[any]bool{`{"a": 1}`: true, "\n[1]": true, "{a}": false, "[": false, "5": false, "null": false, "": false, 5: false} {
		for _, parent := range []bool{true, false} {
			types := row{"j": typed, "t": "text"}
			fields, given := row{"mode": "upsert", "key": "id", "schema_contract": "evolve", "columns": types}, row{"id": 1, "j": value, "t": value}
			if !parent {
				items := row{"table": s.itemsTable(), "key": []any{"order_id", "line"}, "with": row{"order_id": "id"}, "columns": types}
				fields, given = row{"mode": "upsert", "key": "id", "schema_contract": "evolve", "children": row{"items": items}}, row{"id": 1, "items": []any{row{"line": 1, "j": value, "t": value}}}
			}
			for range 2 { // the table is made, and is there
				result, err := s.db.MakeAttempt(s.t, s.WriteInput(fields, given))
				require.NoError(s, err)
				if notes := strings.Join(result.Meta.Notes, "\n"); noted {
					require.Contains(s, notes, says, "%v", value)
				} else {
					require.Empty(s, notes, "%v", value)
				}
			}
		}
	}
}

// emptyTextsAreNoted: an empty text from a row whose numbers are texts, as in CSV, may be a null, which it is not in a column of bytes or JSON.
func emptyTextsAreNoted(s *TableTest) {
	binary, document := "bytea", "jsonb"
	if s.db.Name == "sqlite" {
		binary, document = "BLOB", "TEXT"
	}
	s.Create("id bigint PRIMARY KEY, n numeric, t text, b " + binary + ", must " + binary + " NOT NULL, j " + document)
	note := func(column, typed, as string) string {
		return fmt.Sprintf("column %q of type %s: empty texts are written as %s; if they are nulls, as CSV has them, write fields: {%s: \"{{ row.%s or nil }}\"}", column, typed, as, column, column)
	}
	bytes, documents := note("b", binary, "empty bytes"), note("j", document, "empty JSON strings")
	if s.db.Name == "sqlite" {
		documents = ""
	}
	for _, test := range []struct {
		given row
		says  string
	}{
		{row{"id": "1", "b": "", "must": ""}, bytes},
		{row{"id": 2, "n": "1.5", "b": "", "must": ""}, bytes},
		{row{"id": "3", "j": "", "must": ""}, documents},
		{row{"id": 4, "b": "", "j": "", "must": ""}, ""},
		{row{"id": "5", "b": nil, "must": ""}, ""},
		{row{"id": "6", "b": "3q2+7w==", "t": "", "must": ""}, ""},
		{row{"id": 7, "t": "x", "b": "", "must": ""}, ""},
	} {
		for _, mode := range []string{"upsert", "insert"} {
			fields := row{"mode": mode, "key": "id"}
			if mode == "insert" {
				s.Query("DELETE FROM "+s.Table, nil)
				delete(fields, "key")
			}
			result, err := s.db.MakeAttempt(s.t, s.WriteInput(fields, test.given))
			require.NoError(s, err, "%v", test.given)
			if notes := strings.Join(result.Meta.Notes, "\n"); test.says == "" {
				require.Empty(s, notes, "%v, %s", test.given, mode)
			} else {
				require.Contains(s, notes, test.says, "%v, %s", test.given, mode)
				require.Len(s, result.Meta.Notes, 1, "%v", test.given)
			}
		}
	}
}

// otherSpellingsAreNoted: a column that evolve adds beside one of another spelling is noted if no row has that one.
func otherSpellingsAreNoted(s *TableTest) {
	for _, test := range []struct {
		column string
		noted  bool
	}{{"Note", s.db.Name == "postgres"}, {" note ", true}, {"notes", false}} {
		of, column, noted := *s, test.column, test.noted
		of.Table = fmt.Sprintf("%s_%x", s.Table, column)
		of.Create("id bigint PRIMARY KEY, note text")
		fields := row{"mode": "upsert", "key": "id", "schema_contract": "evolve"}
		write := func(given ...any) string {
			result, err := s.db.MakeAttempt(s.t, of.WriteInput(fields, given...))
			if s.db.Name == "sqlite" && column == "Note" {
				require.ErrorContains(s, err, "cannot distinguish")
				return ""
			}
			require.NoError(s, err, column)
			return strings.Join(result.Meta.Notes, "\n")
		}
		says := fmt.Sprintf("table %q: column %q is added beside \"note\", which no row has", of.Table, column)
		if notes := write(row{"id": 1, column: "x"}); noted {
			require.Contains(s, notes, says)
		} else {
			require.Empty(s, notes)
		}
		require.Empty(s, write(row{"id": 2, column: "y"}), "it is there")
		other := " " + column
		require.Empty(s, write(row{"id": 3, "note": "z", column: "y", other: 1}), "a row has both")
	}
}
