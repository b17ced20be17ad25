package transfer_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/interpreter"
	"reprise/interpreter/expression"
)

// ofQuery are the fields of from that read a statement of a database.
func ofQuery(database, statement, order string) map[string]any {
	fields := map[string]any{"tool": database, "auth": "pg", "statement": statement}
	if database == "sqlite" {
		fields = map[string]any{"tool": database, "path": "orders.db", "statement": statement}
	}
	if order != "" {
		fields["order_by"] = order
	}
	return fields
}

// into are the fields of to for a table.
func into(database, table string) map[string]any {
	if database == "sqlite" {
		return map[string]any{"tool": database, "path": "orders.db", "table": table}
	}
	return map[string]any{"tool": database, "auth": "pg", "table": table}
}

// keyTypes are types of keys by their databases, with the expression of the key of row n, from 1 to 25.
var keyTypes = map[string]map[string]string{
	"postgres": {
		"smallint": "n - 12", "bigint": "9007199254740990 + n", "numeric": "(n - 12) * 123456789012345678901234567890.000000001",
		"numeric(40,2)": "CASE n WHEN 1 THEN 'NaN'::numeric ELSE n * 0.01 END", "double precision": "CASE n WHEN 1 THEN 'NaN'::float8 WHEN 2 THEN '-Infinity' ELSE n / 3.0 END",
		"text":               "CASE n % 3 WHEN 0 THEN 'é' WHEN 1 THEN 'E ' ELSE 'e''\"\\' END || n",
		`text COLLATE "C"`:   "CASE n % 2 WHEN 0 THEN 'ä' ELSE 'Z' END || n",
		"varchar(30)":        "repeat('x', n)",
		"char(9)":            "'c' || n",
		"uuid":               "md5(n::text)::uuid",
		"bytea":              "decode(md5(n::text), 'hex')",
		"date":               "CASE n WHEN 1 THEN 'infinity'::date WHEN 2 THEN '0044-03-15 BC' ELSE '2026-01-01'::date + n END",
		"timestamp":          "'2026-01-01'::timestamp + n * interval '1 microsecond'",
		"timestamptz":        "CASE n WHEN 1 THEN '-infinity'::timestamptz ELSE '2026-10-25 00:59:59.999990+00'::timestamptz + n * interval '1 microsecond' END",
		"interval":           "n * interval '1 hour'",
		"inet":               "'10.0.0.0'::inet + n",
		"integer[]":          "ARRAY[n % 5, n]",
		"shade":              "(enum_range(NULL::shade))[n]",
		"positive":           "n",
		"text COLLATE blind": "'K' || n",
	},
	"sqlite": {
		"INTEGER": "9007199254740990 + n", "REAL": "n / 3.0", "TEXT": "CASE n % 2 WHEN 0 THEN 'é''\"' ELSE '' END || n", "TEXT COLLATE NOCASE": "CASE n % 2 WHEN 0 THEN 'a' ELSE 'B' END || n",
		"BLOB": "CASE n WHEN 1 THEN x'' ELSE CAST('b' || n AS BLOB) END", "": "CASE n % 4 WHEN 0 THEN n WHEN 1 THEN n + 0.5 WHEN 2 THEN 't' || n ELSE CAST('b' || n AS BLOB) END",
		"DATE": "date('2026-01-01', n || ' days')", "DATETIME": "strftime('%Y-%m-%d %H:%M:%f', '2026-01-01', (n / 1000.0) || ' seconds')", "NUMERIC": "n * 1.5",
	},
}

// makeKeys makes the tables source and target with keys of a type, and 25 rows in the source.
func (w *world) makeKeys(database, typed, key string) {
	w.Helper()
	numbers := "(WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < 25) SELECT n FROM s) AS s"
	for _, table := range []string{"source", "target"} {
		w.query(database, "DROP TABLE IF EXISTS "+table)
		w.query(database, "CREATE TABLE "+table+" (k "+typed+", v integer)")
	}
	w.query(database, "INSERT INTO source SELECT "+key+", n FROM "+numbers+" WHERE n <= 25 ORDER BY 26 - n")
}

// differences are the rows of the source that the target does not have as often, and the other way round. Only their numbers are
// compared where keys are not alike.
func (w *world) differences(database string, alike bool) any {
	rows := "SELECT k, v, count(*) FROM %s GROUP BY k, v"
	if !alike {
		rows = "SELECT v, count(*) FROM %s GROUP BY v"
	}
	source, target := fmt.Sprintf(rows, "source"), fmt.Sprintf(rows, "target")
	left := w.query(database, source+" EXCEPT "+target).([]any)
	return append(left, w.query(database, target+" EXCEPT "+source).([]any)...)
}

// TestQueryArrivesOnce: whatever the type of its order is, and whichever write a worker dies at, each row of a query arrives once.
func TestQueryArrivesOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t).withPostgres()
	labels := make([]string, 25)
	for i := range labels {
		labels[i] = fmt.Sprintf("'s%d'", 100-i)
	}
	w.query("postgres", "CREATE TYPE shade AS ENUM ("+strings.Join(labels, ",")+")")
	w.query("postgres", "CREATE DOMAIN positive AS bigint CHECK (VALUE > 0)")
	types := maps.Clone(keyTypes["postgres"])
	if w.query("postgres", "SELECT count(*) AS n FROM pg_collation WHERE collname = 'und-x-icu'").([]any)[0].(map[string]any)["n"] == 0 {
		delete(types, "text COLLATE blind")
	} else {
		w.query("postgres", "CREATE COLLATION blind (provider = icu, locale = 'und-u-ks-level2', deterministic = false)")
	}
	for database, types := range map[string]map[string]string{"postgres": types, "sqlite": keyTypes["sqlite"]} {
		for typed, key := range types {
			for at := range 4 {
				for _, before := range []bool{true, false} {
					if at == 0 && before {
						continue
					}
					name := fmt.Sprint(database, typed, at, before)
					w.makeKeys(database, typed, key)
					alike := typed != "" && typed != "DATETIME" && !strings.Contains(key, "NaN")
					if !alike { // the target would not take what is no number, and bytes and times are written in another form
						w.query(database, "DROP TABLE target")
						w.query(database, "CREATE TABLE target (k text, v integer)")
					}
					fields := map[string]any{"from": ofQuery(database, "SELECT * FROM source -- all", "k"), "to": into(database, "target"), "batch": 10}
					_, err := w.attempt(name, &mortal{Ledger: w.sql[database], at: at, before: before}, database, fields)
					if at > 0 {
						require.ErrorIs(t, err, errDied, name)
					} else {
						require.NoError(t, err, name)
					}
					result, err := w.move(name, database, fields)
					require.NoError(t, err, name)
					require.Empty(t, w.differences(database, alike), name)
					require.Equal(t, 25, result.Data.Data.(map[string]any)["rows"], name)
					require.Equal(t, 3, result.Data.Data.(map[string]any)["batches"], name)
				}
			}
		}
	}
}

// TestBatchesThatFit: the last batch of a query may be full, and a query may have no rows.
func TestBatchesThatFit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for rows, batches := range map[int]int{0: 0, 1: 1, 5: 1, 10: 2, 25: 5} {
		w.makeKeys("sqlite", "INTEGER", "n")
		from := ofQuery("sqlite", fmt.Sprint("SELECT * FROM source WHERE v <= ", rows), "k")
		result, err := w.move(fmt.Sprint(rows), "sqlite", map[string]any{"from": from, "to": into("sqlite", "target"), "batch": 5})
		require.NoError(t, err)
		found := result.Data.Data.(map[string]any)
		require.Equal(t, []any{rows, batches, 0}, []any{found["rows"], found["batches"], found["rejected"]})
		require.Equal(t, rows == 0, found["bytes"] == 0)
	}
}

// TestKeysThatAreNone: a null key, and two rows with one key, whether in a batch or at its edge, are errors that name the key, and no
// row is lost in silence.
func TestKeysThatAreNone(t *testing.T) {
	t.Parallel()
	w := newWorld(t).withPostgres()
	for name, test := range map[string]struct {
		database, typed, key, kind, says string
	}{
		"null":                  {"postgres", "integer", "nullif(n, 13)", "null_key", `"k" is null`},
		"null in sqlite":        {"sqlite", "INTEGER", "nullif(n, 13)", "null_key", `"k" is null`},
		"within a batch":        {"postgres", "integer", "CASE n WHEN 4 THEN 5 ELSE n END", "not_unique", `two rows have the "k" "5"`},
		"at an edge":            {"postgres", "integer", "CASE n WHEN 11 THEN 10 ELSE n END", "not_unique", `two rows have the "k" "10"`},
		"at an edge of sqlite":  {"sqlite", "INTEGER", "CASE n WHEN 11 THEN 10 ELSE n END", "not_unique", `two rows have the "k" "10"`},
		"three at an edge":      {"postgres", "text", "CASE WHEN n BETWEEN 10 AND 12 THEN 'm' WHEN n < 10 THEN 'a' || n ELSE 'n' || n END", "not_unique", `two rows have the "k" "m"`},
		"equal in another way":  {"postgres", "numeric", "CASE n WHEN 10 THEN 10.0 WHEN 11 THEN 10.00 ELSE n END", "not_unique", `two rows have the "k" "10.0`},
		"equal without case":    {"sqlite", "TEXT COLLATE NOCASE", "CASE n WHEN 10 THEN 'b' WHEN 11 THEN 'B' ELSE CASE WHEN n < 10 THEN 'a' ELSE 'c' END || n END", "not_unique", `two rows have the "k"`},
		"the same NaN":          {"postgres", "double precision", "CASE WHEN n > 10 THEN 'NaN'::float8 ELSE n END", "not_unique", `two rows have the "k" "NaN"`},
		"a column that is none": {"postgres", "integer", "n", "42703", "no_such"},
	} {
		t.Run(name, func(t *testing.T) {
			w.makeKeys(test.database, test.typed, test.key)
			order := "k"
			if strings.HasPrefix(test.says, "no_") {
				order = test.says
			}
			_, err := w.move(name, test.database, map[string]any{
				"from": ofQuery(test.database, "SELECT * FROM source", order), "to": into(test.database, "target"), "batch": 10,
			})
			failure := w.fails(err)
			require.Equal(t, test.kind, failure.Type)
			require.Equal(t, interpreter.ClassFinal, failure.Class)
			require.Contains(t, failure.Error(), test.says)
		})
	}
}

// TestValuesOfQueries: what a query reads arrives as it is in a column of the same type, and by the rules of writes in others.
func TestValuesOfQueries(t *testing.T) {
	t.Parallel()
	w := newWorld(t).withPostgres()
	columns := "k integer, a bigint, b numeric, c numeric(30,10), d double precision, e real, f boolean, g jsonb, h bytea, i integer[], j text[], k2 timestamptz, l timestamp, m date, o interval, p inet, q uuid, r bytea[], s jsonb[], u time"
	for _, table := range []string{"source", "target"} {
		w.query("postgres", "CREATE TABLE "+table+" ("+columns+")")
	}
	w.query("postgres", `INSERT INTO source VALUES
		(1, 9223372036854775807, 12345678901234567890123456789.0123456789, 1.5, 1.0, 3.4e38, true, '{"a": [1.10, 12345678901234567890, null], "b": "é"}', '\x00ff', '{1,NULL,-3}', '{"a,b","",NULL,"\"x\\"}', 'infinity', '-infinity', 'infinity', '1 day 02:03:04.000005', '10.0.0.0/8', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '{"\\x00","\\xff"}', '{"{\"a\":1}",NULL}', '23:59:59.999999'),
		(2, -9223372036854775808, -1.10, -0.0000000001, -5e-324, 1e-30, false, '"text"', '', '{}', '{}', '2026-10-25 00:59:59.123456+00', '2026-10-25 02:30:00.000001', '0044-03-15 BC', '-1 mon', '::1', NULL, NULL, NULL, NULL),
		(3, NULL, 1e100, NULL, 1.7976931348623157e308, NULL, NULL, 'false', NULL, NULL, NULL, '1000-01-01 00:00:00+00', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)`)
	_, err := w.move("values", "postgres", map[string]any{"from": ofQuery("postgres", "SELECT * FROM source", "k"), "to": into("postgres", "target")})
	require.NoError(t, err)
	require.Empty(t, w.query("postgres", "(SELECT * FROM source EXCEPT SELECT * FROM target) UNION ALL (SELECT * FROM target EXCEPT SELECT * FROM source)"))
	for _, special := range []string{"'NaN'::numeric", "'Infinity'::numeric", "'NaN'::float8", "'-Infinity'::float8"} {
		from := ofQuery("postgres", "SELECT 1 AS k, "+special+" AS b", "k")
		_, err = w.move(special, "postgres", map[string]any{"from": from, "to": into("postgres", "target")})
		require.ErrorContains(t, err, `of the query of from: writing 1 rows to table "target": row 1, column "b": "`, special)
	}
	w.query("sqlite", "CREATE TABLE target (k INTEGER, a INTEGER, b TEXT, d REAL, g TEXT, h BLOB, k2 TEXT)")
	_, err = w.move("to sqlite", "sqlite", map[string]any{"from": ofQuery("postgres", "SELECT k, a, b, d, g, h, k2 FROM source WHERE k < 3", "k"), "to": into("sqlite", "target")})
	require.NoError(t, err)
	require.Equal(t, []any{
		map[string]any{"k": 1, "a": 9223372036854775807, "b": "12345678901234567890123456789.0123456789", "d": 1, "g": `{"a":[1.10,12345678901234567890,null],"b":"é"}`, "h": "00FF", "k2": "infinity"},
		map[string]any{"k": 2, "a": -9223372036854775808, "b": "-1.10", "d": -5e-324, "g": "text", "h": "", "k2": "2026-10-25T00:59:59.123456Z"},
	}, w.query("sqlite", "SELECT k, a, b, d, g, hex(h) AS h, k2 FROM target ORDER BY k"))
}

// TestJSONNullIsNoted: null of a document is read as NULL, with a remark in both ways of reading.
func TestJSONNullIsNoted(t *testing.T) {
	t.Parallel()
	w := newWorld(t).withPostgres()
	w.query("postgres", "CREATE TABLE target (k integer PRIMARY KEY, g jsonb)")
	for order, mode := range map[string]string{"k": "insert", "": "upsert"} {
		to := into("postgres", "target")
		to["mode"], to["key"] = mode, "k"
		w.query("postgres", "DELETE FROM target")
		for value, notes := range map[string]int{"'null'::jsonb": 1, "NULL::jsonb": 0} {
			from := ofQuery("postgres", "SELECT 1 AS k, '{}'::jsonb AS g UNION ALL SELECT 2, "+value+"", order)
			w.query("postgres", "DELETE FROM target")
			result, err := w.move(order+value, "postgres", map[string]any{"from": from, "to": to})
			require.NoError(t, err)
			require.Len(t, result.Meta.Notes, notes, "%s %s", order, value)
			if notes > 0 {
				require.Contains(t, result.Meta.Notes[0], `column "g" has the JSON value null, which is read as NULL, and would be written back as NULL`)
			}
		}
	}
}

// TestQueriesWithoutOrder: their rows are read again by another worker, as they are by then, in the modes that allow it.
func TestQueriesWithoutOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t).withPostgres()
	for _, database := range []string{"sqlite", "postgres"} {
		for name, words := range map[string]map[string]any{
			"upsert": {"mode": "upsert", "key": "v"}, "replace": {"mode": "replace"}, "delete_missing": {"mode": "upsert", "key": "v", "delete_missing": true, "max_delete": 1},
		} {
			for at := 1; at < 5; at++ {
				key := fmt.Sprint(database, name, at)
				w.makeKeys(database, "integer", "n")
				w.query(database, "DELETE FROM target")
				if name != "replace" {
					w.query(database, "DROP TABLE target")
					w.query(database, "CREATE TABLE target (k integer, v integer PRIMARY KEY)")
				}
				fields := map[string]any{"from": ofQuery(database, "SELECT * FROM source WHERE v < 21", ""), "to": with(into(database, "target"), words), "batch": 10}
				_, err := w.attempt(key, &mortal{Ledger: w.sql[database], at: at, before: true}, database, fields)
				if err != nil {
					require.ErrorIs(t, err, errDied)
					w.query(database, "UPDATE source SET k = 100 WHERE v > 15")
				}
				_, err = w.move(key, database, fields)
				require.NoError(t, err, key)
				require.Empty(t, w.query(database, "SELECT * FROM source WHERE v < 21 EXCEPT SELECT * FROM target"), key)
				require.Len(t, w.query(database, "SELECT * FROM target"), 20, key)
			}
		}
		_, err := w.move("insert", database, map[string]any{"from": ofQuery(database, "SELECT * FROM source", ""), "to": into(database, "target")})
		require.ErrorContains(t, err, "needs order_by")
	}
}

// TestQueriesOnlyRead: a statement of a source cannot write, whatever it begins with, and a file that is not there is not made.
func TestQueriesOnlyRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t).withPostgres()
	w.makeKeys("sqlite", "INTEGER", "n")
	w.makeKeys("postgres", "integer", "n")
	w.query("postgres", "CREATE FUNCTION forget() RETURNS integer LANGUAGE sql AS 'DELETE FROM source RETURNING 1'")
	for database, statements := range map[string][]string{
		"sqlite":   {"WITH a AS (SELECT 1) DELETE FROM source", "DELETE FROM source"},
		"postgres": {"WITH a AS (SELECT 1) DELETE FROM source", "WITH a AS (DELETE FROM source RETURNING k) SELECT k FROM a", "SELECT forget() AS k", "DELETE FROM source"},
	} {
		for _, statement := range statements {
			for _, order := range []string{"", "k"} {
				fields := map[string]any{"from": ofQuery(database, statement, order), "to": with(into(database, "target"), map[string]any{"mode": "replace"})}
				_, err := w.move(statement+order, database, fields)
				require.Error(t, err, statement)
				require.Len(t, w.query(database, "SELECT * FROM source"), 25, statement)
			}
		}
	}
	_, err := w.move("none", "sqlite", map[string]any{"from": map[string]any{"tool": "sqlite", "path": "none.db", "statement": "SELECT 1 AS k", "order_by": "k"}, "to": into("sqlite", "target")})
	require.Equal(t, "not_found", w.fails(err).Type)
	require.NoFileExists(t, w.dir+"/none.db")
}

// TestQueryWithValues: templates of a statement are parameters, of which another attempt has the same; a statement with others is
// another source.
func TestQueryWithValues(t *testing.T) {
	t.Parallel()
	w := newWorld(t).withPostgres()
	for _, database := range []string{"sqlite", "postgres"} {
		w.makeKeys(database, "text", "'k''; DROP TABLE source; --' || n")
		fields := map[string]any{"from": ofQuery(database, "SELECT k, v FROM source WHERE v > {{ a }} AND k LIKE '{{ b }}%' AND v < {{ a }} + 100", "k"), "to": into(database, "target"), "batch": 4}
		params := []expression.Value{expression.Of(5), expression.Of("k'; DROP TABLE source; --%"), expression.Of(5)}
		_, err := w.attemptWith(database, &mortal{Ledger: w.sql[database], at: 2}, database, fields, params)
		require.ErrorIs(t, err, errDied)
		params[0] = expression.Of(6)
		_, err = w.attemptWith(database, &mortal{Ledger: w.sql[database]}, database, fields, params)
		require.Equal(t, "source_changed", w.fails(err).Type)
		params[0] = expression.Of(5)
		_, err = w.attemptWith(database, &mortal{Ledger: w.sql[database]}, database, fields, params)
		require.NoError(t, err)
		require.Len(t, w.query(database, "SELECT DISTINCT v FROM target WHERE v > 5"), 20)
	}
}

// TestWideRows: batches of rows that are large have fewer of them.
func TestWideRows(t *testing.T) {
	t.Parallel()
	w := newWorld(t).withPostgres()
	for database, wide := range map[string]string{"sqlite": "printf('%.*c', 900000, 'x')", "postgres": "repeat('x', 900000)"} {
		w.makeKeys(database, "integer", "n")
		w.query(database, "CREATE TABLE wide (k integer, v text)")
		w.query(database, "INSERT INTO wide SELECT a.k * 100 + b.k, "+wide+" FROM source a, source b WHERE a.k <= 3")
		w.query(database, "DROP TABLE target")
		w.query(database, "CREATE TABLE target (k integer, v text)")
		result, err := w.move(database, database, map[string]any{"from": ofQuery(database, "SELECT * FROM wide", "k"), "to": into(database, "target")})
		require.NoError(t, err)
		require.Equal(t, 75, result.Data.Data.(map[string]any)["rows"])
		require.GreaterOrEqual(t, result.Data.Data.(map[string]any)["batches"], 3)
		require.Equal(t, []any{map[string]any{"n": 75, "m": 75}}, w.query(database, "SELECT count(*) AS n, count(DISTINCT k) AS m FROM target"))
		_, err = w.move("too wide"+database, database, map[string]any{"from": ofQuery(database, "SELECT k, v, v AS w FROM wide", "k"), "to": into(database, "target")})
		require.Equal(t, interpreter.KindPayloadTooLarge, w.fails(err).Kind)
	}
}
