package postgres_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/activities"
	"reprise/activities/tooltest"
	"reprise/internal/test/testenv"
	"reprise/interpreter"
)

// TestRejectedAreCountedOnce: a write counts the rows that were rejected before once, however many it rejects.
func TestRejectedAreCountedOnce(t *testing.T) {
	t.Parallel()
	db := testenv.Postgres(t)
	cutter := newCutter(t, db.URL)
	catalogue := activities.NewCatalogue(activities.Resources{Connections: activities.Connections{"main": cutter.url}})
	t.Cleanup(func() { require.NoError(t, catalogue.Close()) })
	pg := tooltest.SQL{Catalogue: catalogue, Name: "postgres", Auth: "main"}
	db.Exec(t, "CREATE TABLE target (id int PRIMARY KEY CHECK (id % 2 = 0))")
	write := func(key string, most int, ids ...int) (interpreter.ToolResult, error) {
		rows := make([]any, len(ids))
		for i, id := range ids {
			rows[i] = map[string]any{"id": id}
		}
		in := pg.TableInput(map[string]any{"table": "target", "key": "id", "mode": "upsert", "rejected": map[string]any{"table": "aside", "max": most}}, rows)
		in.OperationKey, in.Fingerprint, in.ControlID, in.Step = key, key, "run", "load"
		cutter.statements()
		return pg.MakeAttempt(t, in)
	}
	counted := func() (n int) {
		for _, statement := range cutter.statements() {
			if strings.Contains(statement, "count(*)") && strings.Contains(statement, `FROM "aside"`) {
				n++
			}
		}
		return n
	}
	result, err := write("a", 50, 1, 2, 3, 4, 5, 6, 7, 9, 11, 13)
	require.NoError(t, err)
	require.Equal(t, 7, result.Meta.LeftOut.RejectedRows)
	require.Equal(t, 1, counted())
	_, err = write("a", 7, 1, 2, 3, 4, 5, 6, 7, 9, 11, 13)
	require.NoError(t, err, "the same rows are not counted again")
	_, err = write("b", 9, 15, 17, 2)
	require.NoError(t, err)
	_, err = write("c", 9, 2, 19)
	require.Equal(t, "rejected", tooltest.ErrorObject(t, err).Type)
}

// TestErrorsNameRows: an error says which row it is about, whatever its kind, its moment, and the way of the rows.
func TestErrorsNameRows(t *testing.T) {
	t.Parallel()
	pg, db := pgTool(t)
	db.Exec(t, `CREATE TABLE parent (a int, b text, PRIMARY KEY (a, b)); INSERT INTO parent VALUES (1, 'x');
		CREATE TABLE target (id int PRIMARY KEY, word varchar(5) CHECK (word <> 'bad'), "of it" int UNIQUE DEFERRABLE INITIALLY DEFERRED, a int, b text,
			FOREIGN KEY (a, b) REFERENCES parent DEFERRABLE INITIALLY DEFERRED);
		INSERT INTO target VALUES (0, 'there', 77);
		CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NEW.word = 'odd' THEN RAISE EXCEPTION 'oddly'; END IF; RETURN NEW; END $$;
		CREATE TRIGGER refuse BEFORE INSERT ON target FOR EACH ROW EXECUTE FUNCTION refuse()`)
	type row = map[string]any
	for _, size := range []int{20, 1200} {
		for _, mode := range []string{"insert", "upsert", "replace"} {
			for name, refused := range map[string]row{
				"too long": {"word": "too long"}, "check": {"word": "bad"}, "type": {"id": "x"}, "range": {"id": 1 << 40}, "trigger": {"word": "odd"},
				"deferred": {"a": 1, "b": "y"}, "deferred unique": {"of it": 77},
			} {
				atEnd := name == "trigger" || strings.HasPrefix(name, "deferred")
				if mode == "replace" && atEnd {
					continue
				}
				rows := make([]any, size)
				for i := range rows {
					rows[i] = row{"id": i + 5, "word": "ok", "of it": nil, "a": nil, "b": nil}
				}
				rows[1] = rows[0] // of which an upsert leaves one out
				if mode == "insert" {
					rows[1] = row{"id": 6}
				}
				for column, value := range refused {
					rows[size-7].(row)[column] = value
				}
				fields := row{"table": "target", "mode": mode, "key": "id"}
				var in interpreter.ToolInput
				if mode == "replace" {
					in = stagedInput(pg, fmt.Sprint(name, size), fields, "", rows...)
				} else {
					in = pg.TableInput(fields, rows)
					in.OperationKey = fmt.Sprint(name, size, mode)
				}
				for range 2 { // the second one by a session that knows the table
					require.Contains(t, pg.FailingCall(t, in).Message, fmt.Sprintf("row %d", size-6), "%s of %d rows: %s", mode, size, name)
				}
			}
		}
	}
	require.Len(t, db.Query(t, "SELECT id FROM target"), 1)
}
