package postgres_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/interpreter"
)

// TestPostgresGuessesNoDates: what the settings of a server or the digits of a number decide about a date is an error, by whatever way it travels.
func TestPostgresGuessesNoDates(t *testing.T) {
	t.Parallel()
	pg, db := pgTool(t)
	db.Exec(t, `CREATE DOMAIN of_day AS date; CREATE TABLE dates (id int PRIMARY KEY, day date, at timestamp, near timestamp(0), zoned timestamptz,
		clock time, zoned_clock timetz, days date[], dom of_day)`)
	refuses := func(column string, value any, says string) {
		t.Helper()
		for _, mode := range []string{"insert", "upsert"} {
			rows := []any{map[string]any{"id": 1, column: value}}
			object := pg.FailingCall(t, pg.TableInput(fields{"table": "dates", "mode": mode, "key": "id"}, rows))
			require.Equal(t, interpreter.ClassFinal, object.Class)
			require.Contains(t, object.Message, `row 1, column "`+column+`": `, "%s %v", column, value)
			require.Contains(t, object.Message, says, "%s %v", column, value)
		}
	}
	for _, text := range []string{"02/03/2024", "2-3-2024", "02.03.2024 10:00", "02/03/24", "24-02-03", "240203", " 02/03/2024 10:00:00+02:00", "31/12/24"} {
		for _, column := range []string{"day", "at", "near", "zoned", "dom"} {
			refuses(column, text, "may start with the day or with the month")
		}
		refuses("days", []any{"2024-02-03", text}, "may start with the day or with the month")
	}
	for _, column := range []string{"day", "at", "near", "zoned", "clock", "zoned_clock", "dom"} {
		refuses(column, []any{"2024-01-01T23:30:00-05:00"}, "is not a time")
		refuses(column, map[string]any{"at": "2024-01-01"}, "is not a time")
		for _, number := range []any{101112, 20240203, json.Number("123456.789"), 10.5} {
			refuses(column, number, "is a number")
		}
	}
	for text, read := range map[string]string{
		"2024-02-03": "2024-02-03", "20240203": "2024-02-03", "2024/02/03": "2024-02-03", "12/31/2024": "2024-12-31", "03/03/2024": "2024-03-03",
		"3 Feb 2024": "2024-02-03", "Sat, 03 Feb 2024 10:00:00 GMT": "2024-02-03", "2024-034": "2024-02-03", "20240203T101112Z": "2024-02-03",
	} {
		_, err := pg.MakeAttempt(t, pg.TableInput(fields{"table": "dates", "mode": "upsert", "key": "id"}, map[string]any{"id": 2, "day": text, "at": text, "zoned": text}))
		require.NoError(t, err, text)
		require.Equal(t, read, db.Query(t, "SELECT day::text FROM dates WHERE id = 2 AND at::date = day AND (zoned AT TIME ZONE 'UTC')::date = day")[0]["day"], text)
	}
	for text, read := range map[string]string{"101112": "10:11:12", "10:11": "10:11:00"} {
		_, err := pg.MakeAttempt(t, pg.TableInput(fields{"table": "dates", "mode": "upsert", "key": "id"}, map[string]any{"id": 3, "clock": text}))
		require.NoError(t, err, text)
		require.Equal(t, read, db.Query(t, "SELECT clock::text FROM dates WHERE id = 3")[0]["clock"], text)
	}
}

// TestPostgresCountsRoundedNumbers: a column that keeps fewer digits behind the point than a number has rounds it, which the result says.
func TestPostgresCountsRoundedNumbers(t *testing.T) {
	t.Parallel()
	pg, db := pgTool(t)
	db.Exec(t, `CREATE DOMAIN price AS numeric(8, 2); CREATE TABLE amounts (id int PRIMARY KEY, any_scale numeric, two numeric(8, 2), whole numeric(8), hundreds numeric(3, -2),
		many numeric(4, 1)[], dom price, pay money)`)
	for _, c := range []struct {
		column string
		value  any
		read   string
		count  int
	}{
		{"any_scale", json.Number("1.005"), "1.005", 0},
		{"two", json.Number("1.005"), "1.01", 1},
		{"two", "1.005", "1.01", 1},
		{"two", 1.25, "1.25", 0},
		{"two", json.Number("1.250000"), "1.25", 0},
		{"two", json.Number("125e-2"), "1.25", 0},
		{"two", json.Number("1255e-3"), "1.26", 1},
		{"two", json.Number("1.2e1"), "12.00", 0},
		{"two", 12, "12.00", 0},
		{"two", "-0.001", "0.00", 1},
		{"whole", json.Number("0.5"), "1", 1},
		{"whole", json.Number("7.0"), "7", 0},
		{"hundreds", 1250, "1300", 1},
		{"hundreds", 1200, "1200", 0},
		{"hundreds", 0, "0", 0},
		{"many", []any{json.Number("1.25"), 2, nil, json.Number("0.05")}, "{1.3,2.0,NULL,0.1}", 2},
		{"dom", json.Number("19.999"), "20.00", 1},
		{"pay", json.Number("19.999"), "$20.00", 1},
		{"pay", json.Number("19.99"), "$19.99", 0},
	} {
		result, err := pg.MakeAttempt(t, pg.TableInput(fields{"table": "amounts", "mode": "upsert", "key": "id"}, map[string]any{"id": 1, c.column: c.value}))
		require.NoError(t, err, "%+v", c)
		require.Equal(t, c.read, db.Query(t, "SELECT "+c.column+"::text AS v FROM amounts WHERE id = 1")[0]["v"], "%+v", c)
		rounded := 0
		if result.Meta.LeftOut != nil {
			rounded = result.Meta.LeftOut.RoundedValues
		}
		require.Equal(t, c.count, rounded, "%+v", c)
	}
	for _, text := range []string{"1,5", "$1.50", "(2)", ""} {
		require.Contains(t, pg.FailingCall(t, pg.TableInput(fields{"table": "amounts"}, map[string]any{"id": 2, "pay": text})).Message, "is not a plain number", text)
	}
	rows := make([]any, manyRows)
	for i := range rows {
		rows[i] = map[string]any{"id": 10 + i, "two": json.Number("0.125")}
	}
	result, err := pg.MakeAttempt(t, pg.TableInput(fields{"table": "amounts"}, rows))
	require.NoError(t, err)
	require.Equal(t, &interpreter.RowCounts{RoundedValues: manyRows}, result.Meta.LeftOut)
}
