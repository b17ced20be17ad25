package activities_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/activities"
	"reprise/activities/tooltest"
	"reprise/internal/test/testenv"
)

// TestTablesNameRowAndColumn: a write that fails says which row and column, as far
// as the database tells.
func TestTablesNameRowAndColumn(t *testing.T) {
	t.Parallel()

	const create = "CREATE TABLE people (id integer PRIMARY KEY, name text NOT NULL, age integer CHECK (age < 200))"

	db := testenv.Postgres(t)
	db.Exec(t, create)

	catalogue := activities.NewCatalogue(activities.Resources{
		Connections: activities.Connections{"main": db.URL}, Directory: t.TempDir(),
	})
	t.Cleanup(func() { require.NoError(t, catalogue.Close()) })
	pg := tooltest.SQL{Catalogue: catalogue, Name: "postgres", Auth: "main"}
	lite := tooltest.SQL{Catalogue: catalogue, Name: "sqlite", Auth: "sqlite:people.db"}
	lite.RunStatement(t, create, nil)

	good := map[string]any{"id": 1, "name": "a", "age": 10}
	for name, test := range map[string]struct {
		row      map[string]any
		pg, lite string
	}{
		"null":      {map[string]any{"id": 2, "name": nil, "age": 1}, `row 2, column "name": null value`, "row 2: constraint failed: NOT NULL constraint failed: people.name"},
		"a word":    {map[string]any{"id": 2, "name": "b", "age": "old"}, `row 2, column "age": "old" is not a plain number`, `row 2, column "age": "old" is not a plain number`},
		"too large": {map[string]any{"id": 2, "name": "b", "age": 99999999999}, `row 2, column "age": value "99999999999" is out of range`, "row 2: "},
		"twice":     {map[string]any{"id": 1, "name": "b", "age": 1}, "Key (id)=(1) already exists.", "row 2: constraint failed: UNIQUE constraint failed: people.id"},
		"check":     {map[string]any{"id": 2, "name": "b", "age": 300}, "Failing row contains (2, b, 300).", "row 2: constraint failed: CHECK constraint failed"},
	} {
		rows := []any{good, test.row}
		object := pg.FailingCall(t, pg.TableInput(map[string]any{"table": "people"}, rows))
		require.Contains(t, object.Message, `writing 2 rows to table "people": `, name)
		require.Contains(t, object.Message, test.pg, name)

		if test.lite != "" {
			object = lite.FailingCall(t, lite.TableInput(map[string]any{"table": "people"}, rows))
			require.Contains(t, object.Message, `writing 2 rows to table "people": `+test.lite, name)
		}
	}
}
