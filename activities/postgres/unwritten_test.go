package postgres_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/interpreter"
)

// TestPostgresReportsUnwrittenRows: rows that a trigger or a rule keeps out of a table are counted, whichever way they travel.
func TestPostgresReportsUnwrittenRows(t *testing.T) {
	t.Parallel()
	pg, db := pgTool(t)
	db.Exec(t, `CREATE FUNCTION keep_odd() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN IF NEW.id % 2 = 0 THEN RETURN NULL; END IF; RETURN NEW; END$$;
		CREATE TABLE odd (id int PRIMARY KEY, v text); CREATE TRIGGER odd BEFORE INSERT OR UPDATE ON odd FOR EACH ROW EXECUTE FUNCTION keep_odd();
		CREATE TABLE ruled (id int PRIMARY KEY, v text); CREATE RULE none AS ON INSERT TO ruled WHERE NEW.id > 5 DO INSTEAD NOTHING;
		CREATE TABLE plain (id int PRIMARY KEY, v text)`)
	load := func(table, mode string, from, rows int) interpreter.ToolMeta {
		list := make([]any, rows)
		for i := range list {
			list[i] = map[string]any{"id": from + i, "v": "x"}
		}
		write := pg.TableInput(fields{"table": table, "mode": mode, "key": "id"}, list)
		write.OperationKey = fmt.Sprint(table, mode, from, rows)
		result, err := pg.MakeAttempt(t, write)
		require.NoError(t, err)
		return result.Meta
	}
	for _, rows := range []int{10, manyRows} {
		for _, mode := range []string{"insert", "upsert"} {
			meta := load("odd", mode, 1, rows)
			require.Equal(t, &interpreter.RowCounts{UnwrittenRows: rows / 2}, meta.LeftOut, "%s %d", mode, rows)
			require.EqualValues(t, rows-rows/2, meta.Rows.Written)
			require.EqualValues(t, rows-rows/2, db.Query(t, "SELECT count(*) AS n FROM odd")[0]["n"])
			if mode == "upsert" {
				require.Equal(t, &interpreter.RowCounts{UnwrittenRows: rows / 2}, load("odd", mode, 1, rows).LeftOut, "again")
			}
			db.Exec(t, "TRUNCATE odd")
		}
		require.Equal(t, &interpreter.RowCounts{UnwrittenRows: rows - 5}, load("ruled", "insert", 1, rows).LeftOut)
		db.Exec(t, "TRUNCATE ruled")
	}
	load("plain", "insert", 1, 3)
	require.Nil(t, load("plain", "insert_or_ignore", 2, 3).LeftOut, "rows that are there are not kept out")
	require.Nil(t, load("plain", "upsert", 1, 5).LeftOut)
}

// TestPostgresCountsWhatColumnsCut: a column that keeps a part of a value says so, by every type that cuts silently.
func TestPostgresCountsWhatColumnsCut(t *testing.T) {
	t.Parallel()
	pg, db := pgTool(t)
	db.Exec(t, `CREATE DOMAIN small AS real; CREATE TABLE cut (id int PRIMARY KEY, r real, d double precision, dom small, rs real[], at timestamp, sec timestamp(0), tz timestamptz(3),
		day date, days date[], clock time, near time(0), zclock timetz, vc varchar(3), ch char(3), n name, one "char", span interval, short interval(1))`)
	for _, c := range []struct {
		column string
		value  any
		read   string
		count  int
	}{
		{"r", 0.1, "0.1", 0},
		{"r", 16777216, "1.6777216e+07", 0},
		{"r", 16777217, "1.6777216e+07", 1},
		{"r", json.Number("123456789.123"), "1.2345679e+08", 1},
		{"r", "0.30000001192", "0.3", 1},
		{"dom", 16777217, "1.6777216e+07", 1},
		{"rs", []any{0.5, 16777217, "16777219"}, "{0.5,1.6777216e+07,1.677722e+07}", 2},
		{"d", 9007199254740993, "9.007199254740992e+15", 1},
		{"d", 9007199254740992, "9.007199254740992e+15", 0},
		{"d", json.Number("0.12345678901234567890"), "0.12345678901234568", 1},
		{"d", "12345678901234567890", "1.2345678901234567e+19", 1},
		{"d", 1.1, "1.1", 0},
		{"at", "2024-01-01T10:00:00.123456Z", "2024-01-01 10:00:00.123456", 0},
		{"at", "2024-01-01T10:00:00.1234560Z", "2024-01-01 10:00:00.123456", 0},
		{"at", "2024-01-01T10:00:00.1234567Z", "2024-01-01 10:00:00.123457", 1},
		{"at", "2024-01-01 10:00:00.1234567", "2024-01-01 10:00:00.123457", 1},
		{"sec", "2024-01-01T23:59:59.6Z", "2024-01-02 00:00:00", 1},
		{"sec", "2024-01-01T23:59:59.0Z", "2024-01-01 23:59:59", 0},
		{"tz", "2024-01-01T23:59:59.1234+00:00", "2024-01-01 23:59:59.123+00", 1},
		{"day", "2024-01-01", "2024-01-01", 0},
		{"day", "2024-01-01T00:00:00Z", "2024-01-01", 0},
		{"day", "2024-01-01 00:00:00", "2024-01-01", 0},
		{"day", "2024-01-01T23:30:00-05:00", "2024-01-02", 1},
		{"day", "2024-01-01T00:00:00+02:00", "2023-12-31", 1},
		{"day", "2024-01-02T02:00:00+02:00", "2024-01-02", 0},
		{"day", "2024-01-01 10:00", "2024-01-01", 1},
		{"day", "Sat, 03 Feb 2024 10:00:00 GMT", "2024-02-03", 1},
		{"days", []any{"2024-01-01", "2024-01-01T10:00:00Z"}, "{2024-01-01,2024-01-01}", 1},
		{"clock", "10:00", "10:00:00", 0},
		{"clock", "10:00:00.1234567", "10:00:00.123457", 1},
		{"clock", "2024-01-01T10:00:00Z", "10:00:00", 1},
		{"near", "10:00:00.5", "10:00:01", 1},
		{"zclock", "10:00:00+02", "10:00:00+02", 0},
		{"vc", "abc", "abc", 0},
		{"vc", "äöü", "äöü", 0},
		{"vc", "abc  ", "abc", 1},
		{"vc", "a ", "a ", 0},
		{"n", "a name", "a name", 0},
		{"n", "a2345678901234567890123456789012345678901234567890123456789012345", "a23456789012345678901234567890123456789012345678901234567890123", 1},
		{"one", "x", "x", 0},
		{"one", "xy", "x", 1},
		{"span", "5 minutes", "00:05:00", 0},
		{"span", "PT5M", "00:05:00", 0},
		{"span", "00:00:00.1234567", "00:00:00.123457", 1},
		{"short", "1 day 00:00:00.5", "1 day 00:00:00.5", 0},
		{"short", "00:00:00.66", "00:00:00.7", 1},
	} {
		result, err := pg.MakeAttempt(t, pg.TableInput(fields{"table": "cut", "mode": "upsert", "key": "id"}, map[string]any{"id": 1, c.column: c.value}))
		require.NoError(t, err, "%+v", c)
		require.Equal(t, c.read, db.Query(t, "SELECT "+c.column+"::text AS v FROM cut WHERE id = 1")[0]["v"], "%+v", c)
		cut := 0
		if result.Meta.LeftOut != nil {
			cut = result.Meta.LeftOut.RoundedValues
		}
		require.Equal(t, c.count, cut, "%+v", c)
	}
	for _, value := range []any{5, 1.5, "90", " 90 ", "007"} {
		require.Contains(t, pg.FailingCall(t, pg.TableInput(fields{"table": "cut"}, map[string]any{"id": 2, "span": value})).Message, "has no unit", "%v", value)
	}
}
