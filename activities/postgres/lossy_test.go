package postgres_test

import (
	"testing"

	"github.com/stretchr/testify/require"

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
			require.Contains(t, object.Message, `row 1, column "`+column+`": "`+number+`" is not the plain form of a number`)
			require.Equal(t, []any{map[string]any{"id": 1, "x": nil}}, pg.RunStatement(t, "SELECT 1 AS id, nullif('"+number+"'::"+of+", '"+number+"') AS x", nil))
		}
	}
	rows := pg.RunStatement(t, "SELECT 1 AS id, 'NaN'::float8 AS t", nil)
	_, err := pg.MakeAttempt(t, pg.TableInput(fields{"table": "kept", "mode": "upsert", "key": "id"}, rows))
	require.NoError(t, err)
	require.Equal(t, "NaN", db.Query(t, "SELECT t FROM kept")[0]["t"])
}
