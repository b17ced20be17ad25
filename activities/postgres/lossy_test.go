package postgres_test

import (
	"crypto/rand"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/activities"
	"reprise/activities/tooltest"
	"reprise/internal/test/testenv"
	"reprise/interpreter"
)

// TestPostgresRefusesJSONThatItWouldChange: columns of type json keep their text, which may say more than a value does.
func TestPostgresRefusesJSONThatItWouldChange(t *testing.T) {
	t.Parallel()

	pg, _ := pgTool(t)
	for value, says := range map[string]string{
		`'{"v":1,"v":2}'::json`:                           `row 1 of the result, column "j": the key "v" occurs twice in the object that ends at byte 13`,
		`'[{"a":{"v":1,"w":2,"v":null}}]'::json`:          `the key "v" occurs twice`,
		`'"\ud83d"'::json`:                                `half of a surrogate pair`,
		`ARRAY['{"v":1}', NULL, '{"v":1,"v":1}']::json[]`: `the key "v" occurs twice`,
		`('{"n":' || repeat('7', 1001) || '}')::jsonb`:    `1001 digits`,
	} {
		object := pg.FailingCall(t, pg.StatementInput(t, "SELECT 1 AS one, "+value+" AS j", nil))
		require.Equal(t, interpreter.ClassFinal, object.Class, value)
		require.Contains(t, object.Message, says, value)
		require.Contains(t, object.Message, `"j"::text`, value)
	}
	require.Equal(t, []any{map[string]any{"j": `{"v":1,"v":2}`}}, pg.RunStatement(t, `SELECT '{"v":1,"v":2}'::json::text AS j`, nil))
}

// TestPostgresNumbersThatAreNone: what is NaN or infinite arrives as text where it may, else it is an error with its place.
func TestPostgresNumbersThatAreNone(t *testing.T) {
	t.Parallel()

	pg, db := pgTool(t)
	db.Exec(t, "CREATE TABLE kept (id int PRIMARY KEY, d float8, r real, n numeric, t text)")
	for column, of := range map[string]string{"d": "float8", "r": "real", "n": "numeric"} {
		for _, number := range []string{"NaN", "Infinity", "-Infinity"} {
			rows := pg.RunStatement(t, "SELECT 1 AS id, '"+number+"'::"+of+" AS "+column, nil)
			object := pg.FailingCall(t, pg.TableInput(fields{"table": "kept", "mode": "upsert", "key": "id"}, rows))
			require.Contains(t, object.Message, `row 1, column "`+column+`": "`+number+`" is not a plain number`)
			require.Equal(t, []any{map[string]any{"id": 1, "x": nil}}, pg.RunStatement(t, "SELECT 1 AS id, nullif('"+number+"'::"+of+", '"+number+"') AS x", nil))
		}
	}
	rows := pg.RunStatement(t, "SELECT 1 AS id, 'NaN'::float8 AS t", nil)
	_, err := pg.MakeAttempt(t, pg.TableInput(fields{"table": "kept", "mode": "upsert", "key": "id"}, rows))
	require.NoError(t, err)
	require.Equal(t, "NaN", db.Query(t, "SELECT t FROM kept")[0]["t"])
}

// TestPostgresRefusesTextsThatAreNotUTF8: a database without an encoding keeps any bytes as text, and those of Latin-1 would become U+FFFD.
func TestPostgresRefusesTextsThatAreNotUTF8(t *testing.T) {
	t.Parallel()

	db := testenv.Postgres(t)
	name := "ascii_" + strings.ToLower(rand.Text()[:10])
	db.Exec(t, "CREATE DATABASE "+name+" ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0")
	catalogue := activities.NewCatalogue(activities.Resources{
		Connections:      activities.Connections{"main": strings.Replace(db.URL, db.Name, name, 1)},
		MaxResponseBytes: 1 << 20,
	})
	t.Cleanup(func() {
		require.NoError(t, catalogue.Close())
		db.Exec(t, "DROP DATABASE "+name)
	})
	pg := tooltest.SQL{Catalogue: catalogue, Name: "postgres", Auth: "main"}
	for column, value := range map[string]string{"t": `E'\xc3\xa9\xe9a'`, "l": `ARRAY['a', E'\xc3\xa9\xe9a']`, "j": `to_json(E'\xc3\xe9a'::text)`} {
		object := pg.FailingCall(t, pg.StatementInput(t, "SELECT 'good' AS g, "+value+" AS "+column, nil))
		require.Equal(t, interpreter.ClassFinal, object.Class)
		require.Contains(t, object.Message, `row 1 of the result, column "`+column+`": byte 0x`)
		require.Contains(t, object.Message, ` is not UTF-8; select its bytes, as in convert_to("`+column+`", 'SQL_ASCII')`)
	}
	require.Equal(t, []any{map[string]any{"t": "6WE="}}, pg.RunStatement(t, `SELECT convert_to(E'\xe9a', 'SQL_ASCII') AS t`, nil))
}
