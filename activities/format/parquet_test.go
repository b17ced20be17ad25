package format_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/activities/format"
	"reprise/internal/test/parquetfile"
)

// parquetOf writes rows, and reads them without the library.
func parquetOf(t *testing.T, columns []format.ParquetColumn, rows []any) (parquetfile.File, error) {
	t.Helper()
	var content bytes.Buffer
	w, err := format.NewParquetWriter(&content, columns, "")
	if err == nil {
		err = w.WriteRows(rows)
	}
	if err != nil {
		return parquetfile.File{}, err
	}
	require.NoError(t, w.Close())
	file, err := parquetfile.Read(content.Bytes())
	require.NoError(t, err)
	return file, nil
}

// TestParquetTypes: values are kept exactly, or refused; none is rounded, cut or read as another one.
func TestParquetTypes(t *testing.T) {
	t.Parallel()
	type values map[any]any // as they are given, and as another reader finds them; an error is what the message says
	long := json.Number("12345678901234567890123456789012345678")
	says := func(text string) error { return fmt.Errorf("%s", text) }
	for typed, test := range map[string]values{
		"bigint": {
			7: 7, -9223372036854775808: -9223372036854775808, 9223372036854775807: 9223372036854775807, "42": 42, "-1": -1,
			1.5: says("has a fraction"), json.Number("9223372036854775808"): says("is out of range"), json.Number("5.00"): 5, "007": says("is not a plain number"),
			" 1": says("is not a plain number"), "1e3": says("is not a plain number"), "": says("is not a plain number"), true: says("is not a plain number"),
			"99999999999999999999": says("is out of range"), "NaN": says("is not a plain number"),
		},
		"integer":  {2147483647: 2147483647, -2147483648: -2147483648, 2147483648: says("is out of range"), -2147483649: says("is out of range")},
		"smallint": {32767: 32767, -32768: -32768, 32768: says("is out of range"), "32768": says("is out of range")},
		"double precision": {
			1.5: 1.5, 7: 7.0, "0.1": 0.1, json.Number("19.90"): 19.9, 9007199254740993: says("more digits"), long: says("more digits"), json.Number("0.12345678901234567890"): says("more digits"),
			"NaN": says("is not a plain number"), true: says("is not a plain number"), json.Number("1e400"): says("is not a plain number"),
		},
		"numeric(9, 2)": {
			7: "7.00", "19.90": "19.90", -0.5: "-0.50", json.Number("9999999.99"): "9999999.99", "-9999999.99": "-9999999.99", 10000000: says("more than 7 digits before the point"),
			0.125: says("more than 2 digits after the point"), "x": says("is not a plain number"),
		},
		"numeric(18, 6)": {json.Number("999999999999.999999"): "999999999999.999999", -1: "-1.000000"},
		"numeric(38, 0)": {long: string(long), json.Number("-" + string(long)): "-" + string(long), 0: "0", -1: "-1", json.Number("1" + string(long)): says("more than 38 digits")},
		"boolean":        {true: true, false: false, "t": true, "0": false, "true": true, 1: says("is not one of the booleans"), "yes": says("is not one of the booleans")},
		"text":           {"": "", "ä\x00\n": "ä\x00\n", 7: "7", true: "true", 1.5: "1.5", json.Number("1.50"): "1.50", "\xff": says("is not UTF-8")},
		"varchar(3)":     {"äöü": "äöü", "abcd": says("has 4 characters"), 1234: says("has 4 characters")},
		"json":           {"a": `"a"`, 7: "7", long: string(long)},
		"timestamptz": {
			"2026-03-01T12:00:00Z": "2026-03-01T12:00:00Z", "2026-03-01T12:00:00.123456+02:00": "2026-03-01T10:00:00.123456Z", "1901-01-01 00:00:00-05:00": "1901-01-01T05:00:00Z",
			"2026-03-01T12:00:00.1234567Z": says("more than microseconds"), "2026-03-01T12:00:00.1234560Z": "2026-03-01T12:00:00.123456Z",
			"2026-03-01T12:00:00": says("has no zone"), "2026-03-01": says("has no time of day"), "2026-02-30T12:00:00Z": says("is not a time"), "now": says("is not a time"), 1772366400: says("is not a time"),
		},
		"timestamp": {"2026-03-01T12:00:00.5": "2026-03-01T12:00:00.5", "2026-03-01T12:00:00Z": says("has a zone"), "2026-03-01T12:00:00+02:00": says("has a zone")},
		"date":      {"2026-03-01": "2026-03-01", "1960-02-29": "1960-02-29", "2026-03-01T00:00:00Z": says("has a time of day"), "01/03/2026": says("is not a time"), "2026-02-29": says("is not a time")},
		"bytea":     {"AP8=": "\x00\xff", "": "", "%": says("is not base64"), 7: says("is not base64")},
	} {
		column, err := format.NewParquetColumn("v", typed)
		require.NoError(t, err)
		require.Equal(t, typed, column.Type())
		for given, want := range test {
			file, err := parquetOf(t, []format.ParquetColumn{column}, []any{map[string]any{"v": nil}, map[string]any{"v": given}})
			if refused, is := want.(error); is {
				require.ErrorContains(t, err, "row 1, column \"v\": ", "%s %v", typed, given)
				require.ErrorContains(t, err, refused.Error(), "%s %v", typed, given)
				continue
			}
			require.NoError(t, err, "%s %v", typed, given)
			require.Equal(t, []map[string]any{{"v": nil}, {"v": want}}, file.Rows, "%s %v", typed, given)
			if typed != "json" && !strings.HasPrefix(typed, "varchar") { // which are text
				require.Equal(t, typed, file.Columns[0].Type)
			}
		}
	}
}

// TestParquetKinds: what the rows say of the types of columns, as for tables.
func TestParquetKinds(t *testing.T) {
	t.Parallel()
	big, long := 9007199254740993, json.Number("18446744073709551616")
	for _, test := range []struct {
		values []any
		want   string
	}{
		{[]any{1, nil, 2}, "bigint"},
		{[]any{1, 1.5}, "double precision"},
		{[]any{1.5, json.Number("19.90"), 1}, "double precision"},
		{[]any{1, big}, "bigint"},
		{[]any{1.5, big}, "text"},
		{[]any{big, 1, 1.5}, "text"},
		{[]any{1, long}, "text"},
		{[]any{true, false}, "boolean"},
		{[]any{true, 1}, "text"},
		{[]any{"a", 1}, "text"},
		{[]any{"2026-03-01T12:00:00Z"}, "text"},
		{[]any{[]any{1}, nil}, "json"},
		{[]any{map[string]any{}, "a", 1}, "json"},
	} {
		rows := []any{}
		for _, value := range test.values {
			rows = append(rows, map[string]any{"v": value, "none": nil})
		}
		kinds := format.KindsOf(rows)
		require.Len(t, kinds, 1)
		column, ok := kinds["v"].ParquetColumn("v")
		require.True(t, ok)
		require.Equal(t, test.want, column.Type(), "%v", test.values)
		_, err := parquetOf(t, []format.ParquetColumn{column}, rows)
		require.NoError(t, err, "%v", test.values)
		for i := range rows { // whichever are read first
			before, after := format.KindsOf(rows[:i]), format.KindsOf(rows[i:])
			require.Equal(t, kinds["v"], before["v"].MergeWith(after["v"]))
		}
	}
}

// TestParquetRows: rows that no column has a place for are errors that say where.
func TestParquetRows(t *testing.T) {
	t.Parallel()
	id, err := format.NewParquetColumn("id", "BIGINT  NOT NULL")
	require.NoError(t, err)
	require.Equal(t, "bigint not null", id.Type())
	note, err := format.NewParquetColumn("note", "text")
	require.NoError(t, err)
	for says, row := range map[string]any{
		`row 1, column "id": it is nil, and the column is bigint not null`:         map[string]any{"note": "a"},
		`row 1, column "more": it is not one of the columns, which are note, id`:   map[string]any{"id": 1, "more": 1, "much": 2},
		`row 1 is a list; a row of Parquet must be a map`:                          []any{1},
		`row 1, column "note": "[1]" is a list, which a column of type json takes`: map[string]any{"id": 1, "note": []any{1}},
	} {
		_, err := parquetOf(t, []format.ParquetColumn{note, id}, []any{map[string]any{"id": 1}, row})
		require.ErrorContains(t, err, says)
	}
	file, err := parquetOf(t, []format.ParquetColumn{note, id}, []any{map[string]any{"id": 1, "none": nil}})
	require.NoError(t, err)
	require.Equal(t, []map[string]any{{"id": 1, "note": nil}}, file.Rows)
	require.Equal(t, "note", file.Columns[0].Name)
	require.True(t, file.Columns[1].Required)
	for typed, says := range map[string]string{ // numeric(39, 2) has more than mostDigits
		"bigant": "did you mean bigint?", "numeric": "needs a precision", "numeric(39, 2)": "from 1 to 38", "numeric(2, 3)": "needs a precision", "varchar": "needs a length",
		"bigint(3)": "is not a type of Parquet columns", "": "is not a type", "text[]": "is not a type",
	} {
		_, err := format.NewParquetColumn("v", typed)
		require.ErrorContains(t, err, says, typed)
	}
	_, err = format.NewParquetWriter(&bytes.Buffer{}, nil, "")
	require.ErrorContains(t, err, "no column has a value or a type")
}

// TestParquetGroups: row groups are bounded by rows and by bytes, with texts that repeat and texts that do not.
func TestParquetGroups(t *testing.T) {
	t.Parallel()
	id, _ := format.NewParquetColumn("id", "bigint")
	text, _ := format.NewParquetColumn("text", "text")
	rows := []any{}
	for i := range format.RowsOfGroup + 10 { // bytesOfDictionary and bytesOfGroup are passed, too
		rows = append(rows, map[string]any{"id": i, "text": fmt.Sprint("a text of which no other row has the same, so that a dictionary is too large ", i-i%3)})
	}
	file, err := parquetOf(t, []format.ParquetColumn{id, text}, rows)
	require.NoError(t, err)
	require.Equal(t, []int{format.RowsOfGroup, 10}, file.Groups)
	for i, row := range file.Rows {
		if want := rows[i].(map[string]any); row["id"] != i || row["text"] != want["text"] {
			require.Equal(t, want, row)
		}
	}
	file, err = parquetOf(t, []format.ParquetColumn{text}, []any{
		map[string]any{"text": strings.Repeat("x", 20<<20)}, map[string]any{"text": strings.Repeat("y", 20<<20)}, map[string]any{"text": "z"},
	})
	require.NoError(t, err)
	require.Equal(t, []int{2, 1}, file.Groups)
	require.True(t, file.Rows[1]["text"] == strings.Repeat("y", 20<<20)) //nolint:testifylint // no message has room for it
}
