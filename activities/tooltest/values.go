package tooltest

import (
	"encoding/json"
	"strings"

	"github.com/stretchr/testify/require"

	"reprise/interpreter"
)

var valueCases = tableCases{
	"decimals": decimalsStay,
	"bytes":    bytesStay,
}

// decimalsStay: a number has the digits that it came with, as far as its column has a place for them.
func decimalsStay(s *TableTest) {
	isSQLite := s.db.Name == "sqlite"
	s.Create("id bigint PRIMARY KEY, word text, exact numeric")
	long, zeros, short := json.Number("123456789012345678.5"), json.Number("19.90"), 0.30000000000000004
	for i, mode := range []string{"insert", "upsert", "insert_or_ignore"} {
		fields := row{"mode": mode, "key": "id"}
		if mode == "insert" {
			delete(fields, "key")
		}
		s.Write(fields, row{"id": i, "word": long, "exact": zeros}, row{"id": 10 + i, "word": zeros, "exact": short}, row{"id": 20 + i, "word": short, "exact": "1.5"})
		exact := any(zeros)
		if isSQLite {
			exact = 19.9
		}
		require.Equal(s, []any{row{"word": long.String(), "exact": exact}}, s.Query("SELECT word, exact FROM "+s.Table+" WHERE id = {{ i }}", row{"i": i}), mode)
		require.Equal(s, []any{row{"word": "19.90", "exact": short}}, s.Query("SELECT word, exact FROM "+s.Table+" WHERE id = {{ i }}", row{"i": 10 + i}), mode)
		require.Equal(s, []any{row{"word": "0.30000000000000004"}}, s.Query("SELECT word FROM "+s.Table+" WHERE id = {{ i }}", row{"i": 20 + i}), mode)
	}
	if !isSQLite {
		s.Write(nil, row{"id": 99, "exact": long})
		require.Equal(s, []any{row{"exact": long}}, s.Query("SELECT exact FROM "+s.Table+" WHERE id = 99", nil))
		return
	}
	require.Contains(s, s.Refuse(nil, row{"id": 98, "exact": 1}, row{"id": 99, "exact": long}).Message,
		`row 2, column "exact": SQLite would round the number 123456789012345678.5 in a column of type numeric; declare it as text`)
	s.Query("CREATE TABLE "+s.Table+"_real (id bigint, n double)", nil)
	require.Contains(s, s.Refuse(row{"table": s.Table + "_real"}, row{"id": 1, "n": 9007199254740993}).Message, "SQLite would round the number 9007199254740993")
	s.Write(row{"table": s.Table + "_made", "schema_contract": "evolve"}, row{"id": 1, "a": long, "b": zeros}, row{"id": 2, "a": 7, "b": 1.5})
	require.Equal(s, []any{row{"a": long.String(), "b": 19.9}, row{"a": "7", "b": 1.5}}, s.Query("SELECT a, b FROM "+s.Table+"_made ORDER BY id", nil))
}

// bytesStay: bytes are base64 text outside of columns of bytes.
func bytesStay(s *TableTest) {
	typed, code := "bytea", "22P02"
	if s.db.Name == "sqlite" {
		typed, code = "BLOB", "SQLITE_MISMATCH"
	}
	s.Create("id bigint PRIMARY KEY, b " + typed)
	const beef, empty, zero = "3q2+7w==", "", "AA=="
	want := []any{row{"b": beef}, row{"b": empty}, row{"b": zero}, row{"b": nil}}
	rows := []any{row{"id": 1, "b": beef}, row{"id": 2, "b": empty}, row{"id": 3, "b": `\x00`}, row{"id": 4, "b": nil}}
	for _, mode := range []string{"insert", "upsert", "insert_or_ignore"} {
		s.Query("DELETE FROM "+s.Table, nil)
		fields := row{"mode": mode, "key": "id"}
		if mode == "insert" {
			delete(fields, "key")
		}
		s.Write(fields, rows...)
		require.Equal(s, want, s.Query("SELECT b FROM "+s.Table+" ORDER BY id", nil), mode)
	}
	require.Contains(s, s.Refuse(nil, row{"id": 5, "b": beef}, row{"id": 6, "b": "not base64"}).Message,
		`row 2 for table "`+s.Table+`", column "b" of type `+typed+`: the text "not base64" is not base64`)
	for contract, left := range map[string]interpreter.RowCounts{
		"discard_value": {DiscardedValues: 1}, "discard_row": {DiscardedRows: 1}, "freeze": {RejectedRows: 1},
	} {
		s.Query("DELETE FROM "+s.Table, nil)
		result, err := s.db.MakeAttempt(s.t, s.WriteInput(row{"schema_contract": contract, "rejected": row{"table": s.Table + "_aside"}},
			row{"id": 7, "b": beef}, row{"id": 8, "b": "not base64"}))
		require.NoError(s, err)
		require.Equal(s, &left, result.Meta.LeftOut, contract)
		require.Equal(s, []any{row{"b": beef}}, s.Query("SELECT b FROM "+s.Table+" WHERE b IS NOT NULL", nil))
	}
	require.Equal(s, []any{row{"row": 2, "column": "b", "value": `{"b":"not base64","id":8}`, "sqlstate": code}},
		s.Query(`SELECT "row", "column", value, sqlstate FROM `+s.Table+"_aside", nil))
	bytesAreKeys(s, typed)
}

// bytesAreKeys: bytes distinguish rows, and refused with their base64.
func bytesAreKeys(s *TableTest, typed string) {
	keyed := s.Table + "_keyed"
	s.Write(row{"table": keyed, "schema_contract": "evolve", "mode": "upsert", "key": "k", "columns": row{"k": typed}}, row{"k": "3q2+7w==", "n": 1}, row{"k": "AA==", "n": 2})
	s.Write(row{"table": keyed, "mode": "upsert", "key": "k", "hard_delete": "gone"}, row{"k": "3q2+7w==", "n": 3}, row{"k": "AA==", "gone": true}, row{"k": "AP8=", "n": 4})
	require.Equal(s, []any{row{"k": "AP8=", "n": 4}, row{"k": "3q2+7w==", "n": 3}}, s.Query("SELECT k, n FROM "+keyed+" ORDER BY k", nil))
	s.Write(row{"table": keyed, "rejected": row{"table": keyed + "_aside"}}, row{"k": "AP8=", "n": 5}, row{"k": "/w==", "n": 6})
	require.Equal(s, []any{row{"value": `{"k":"AP8=","n":5}`}}, s.Query("SELECT value FROM "+keyed+"_aside", nil))
	require.Equal(s, 3, len(s.Query("SELECT k FROM "+keyed, nil).([]any)))
	large := strings.Repeat("AAAA", 500)
	s.Write(row{"table": keyed}, row{"k": "AQ==", "n": 1}, row{"k": large, "n": 7})
	require.Equal(s, []any{row{"k": large}}, s.Query("SELECT k FROM "+keyed+" WHERE n = 7", nil))
}
