package postgres_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"reprise/activities/tooltest"
	"reprise/internal/test/testenv"
	"reprise/interpreter"
	"reprise/interpreter/expression"
)

// rowsOf has rows for a test, of every other key, from the last to the first.
func rowsOf(rows int, row func(id int) fields) (list []any) {
	for i := range rows {
		list = append(list, row(2*(rows-1-i)))
	}
	return list
}

// TestPostgresRowsAreLockedInTheOrderOfTheirKeys: whatever the way in which rows travel and whatever is done with them, a write locks those that
// it shares with other writes in the order of their keys, as its table has it.
func TestPostgresRowsAreLockedInTheOrderOfTheirKeys(t *testing.T) {
	t.Parallel()

	pg, db := pgTool(t)
	db.Exec(t, "CREATE TABLE touched (n bigint GENERATED ALWAYS AS IDENTITY, of text, id text)")
	db.Exec(t, `CREATE FUNCTION touch() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		IF TG_OP = 'DELETE' THEN INSERT INTO touched (of, id) VALUES (TG_TABLE_NAME, OLD.id); RETURN OLD; END IF;
		INSERT INTO touched (of, id) VALUES (TG_TABLE_NAME, NEW.id); RETURN NEW; END $$`)
	const few, many = 40, 2400 // rows that are parameters of a statement, and rows that are copied
	word := func(id int) fields { return fields{"id": fmt.Sprintf("k%05d", id), "word": "new"} }
	partial := func(id int) fields {
		row := word(id)
		if id%3 == 0 {
			delete(row, "word")
		}
		return row
	}
	for name, test := range map[string]struct {
		of  fields
		row func(id int) fields
	}{
		"upsert":                 {of: fields{"mode": "upsert", "key": "id"}, row: word},
		"rows of several shapes": {of: fields{"mode": "upsert", "key": "id"}, row: partial},
		"nested":                 {of: fields{"mode": "upsert", "key": "id"}, row: func(id int) fields { return fields{"id": fmt.Sprintf("k%05d", id), "list": []any{[]any{}}} }},
		"newer":                  {of: fields{"mode": "upsert", "key": "id", "sequence_by": "word"}, row: word},
		"insert or ignore":       {of: fields{"mode": "insert_or_ignore"}, row: word},
		"insert or ignore, key":  {of: fields{"mode": "insert_or_ignore", "key": "id"}, row: word},
	} {
		for _, rows := range []int{few, many} {
			t.Run(fmt.Sprintf("%s, %d rows", name, rows), func(t *testing.T) {
				table, of := "t"+expression.ShortDigest(name, rows), maps.Clone(test.of)
				db.Exec(t, "CREATE TABLE "+table+" (id text COLLATE \"C\" PRIMARY KEY, word text NOT NULL DEFAULT 'none', list jsonb[])")
				db.Exec(t, "INSERT INTO "+table+" SELECT 'k' || lpad(i::text, 5, '0') FROM generate_series(0, "+fmt.Sprint(2*rows)+", 3) i") // some are there
				db.Exec(t, "CREATE TRIGGER touch BEFORE INSERT OR UPDATE OR DELETE ON "+table+" FOR EACH ROW EXECUTE FUNCTION touch()")
				of["table"] = table
				in := pg.TableInput(of, rowsOf(rows, test.row))
				in.OperationKey = table
				_, err := pg.MakeAttempt(t, in)
				require.NoError(t, err)
				var ids []string
				for _, row := range db.Query(t, "SELECT id FROM touched WHERE of = '"+table+"' ORDER BY n") {
					ids = append(ids, fmt.Sprint(row["id"]))
				}
				require.GreaterOrEqual(t, len(ids), rows)
				require.True(t, slices.IsSorted(ids), "%v", ids[:min(len(ids), few)])
			})
		}
	}
}

// collisions are what the server undoes, by how a trigger of the table meets another transaction. For the row of the second id it passes a gate,
// advisory lock 7, which the test holds, so that the other transaction waits first.
var collisions = map[string]string{
	// Each holds a row of others that the other one wants.
	"40P01": "PERFORM pg_advisory_xact_lock_shared(7); UPDATE others SET n = n + 1 WHERE id = 1",
	// As servers do that do not wait: the row is another one's.
	"40001": "IF NOT pg_try_advisory_xact_lock_shared(7) THEN RAISE 'try again' USING ERRCODE = '40001'; END IF; UPDATE others SET n = n + 1 WHERE id = 1",
}

// TestPostgresWritesThatAreUndoneAreMadeAgain: what the server undoes because of another transaction is made again, whole and once.
func TestPostgresWritesThatAreUndoneAreMadeAgain(t *testing.T) {
	t.Parallel()

	for state := range collisions {
		for mode, of := range map[string]fields{
			"insert": {"table": "shared"}, "upsert": {"table": "shared", "mode": "upsert", "key": "id"},
			"deletes": {"table": "shared", "mode": "upsert", "key": "id", "hard_delete": "gone"},
		} {
			t.Run(state+" "+mode, func(t *testing.T) {
				t.Parallel()

				c := collide(t, state, of)
				c.release()
				require.NoError(t, testenv.Receive(t, c.written, "the write that was undone"))
				require.GreaterOrEqual(t, c.tries(), int64(2))
				require.Equal(t, []map[string]any{{"id": int64(1), "word": "one"}, {"id": int64(2), "word": "two"}}, c.db.Query(t, "SELECT id, word FROM shared ORDER BY id"))
				require.Equal(t, []map[string]any{{"id": int64(1), "n": int64(11)}, {"id": int64(2), "n": int64(11)}}, c.db.Query(t, "SELECT id, n FROM others ORDER BY id"))
			})
		}
	}
}

// TestPostgresWritesThatAreAlwaysUndone: policies decide about a write that another transaction is in the way of for longer.
func TestPostgresWritesThatAreAlwaysUndone(t *testing.T) {
	t.Parallel()

	c := collide(t, "40001", fields{"table": "shared", "mode": "upsert", "key": "id"})
	object := tooltest.ErrorObject(t, testenv.Receive(t, c.written, "the write that is always undone"))
	require.Equal(t, "40001", object.Type)
	require.Equal(t, interpreter.ClassRetryable, object.Class)
	require.Equal(t, int64(6), c.tries())
	require.Empty(t, c.db.Query(t, "SELECT FROM shared"))
}

// collision is a write and another transaction that are in each other's way.
type collision struct {
	db      *testenv.Database
	written chan error
	tries   func() int64 // how often the write came to the second row
	release func()       // has the other transaction go on, and end
}

// collide has a write come to its second row while another transaction is in the way.
func collide(t *testing.T, state string, of fields) collision {
	t.Helper()
	pg, db := pgTool(t)
	db.Exec(t, "ALTER DATABASE "+pgx.Identifier{db.Name}.Sanitize()+" SET deadlock_timeout = '50ms'")
	db.Exec(t, "CREATE TABLE shared (id bigint PRIMARY KEY, word text, gone boolean)")
	db.Exec(t, "CREATE TABLE others (id bigint PRIMARY KEY, n bigint); INSERT INTO others VALUES (1, 0), (2, 0); CREATE SEQUENCE tries")
	db.Exec(t, `CREATE FUNCTION meet() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		IF NEW.id = 1 THEN UPDATE others SET n = n + 1 WHERE id = 2; RETURN NEW; END IF;
		PERFORM nextval('tries'); `+collisions[state]+`; RETURN NEW; END $$`)
	db.Exec(t, "CREATE TRIGGER meet BEFORE INSERT ON shared FOR EACH ROW EXECUTE FUNCTION meet()")
	warm := fields{"table": "others", "mode": "upsert", "key": "id"}
	_, err := pg.MakeAttempt(t, pg.TableInput(warm, []any{fields{"id": 1, "n": 0}}))
	require.NoError(t, err)

	gate, other := connected(t, db), connected(t, db)
	run := func(connection *pgx.Conn, statement string) error {
		_, err := connection.Exec(context.WithoutCancel(t.Context()), statement)
		return err
	}
	require.NoError(t, run(gate, "SELECT pg_advisory_lock(7)"))
	require.NoError(t, run(other, "SET deadlock_timeout = '10min'; BEGIN; UPDATE others SET n = n + 10 WHERE id = 1"))
	rows := []any{fields{"id": 2, "word": "two"}, fields{"id": 1, "word": "one"}}
	if of["mode"] == nil {
		slices.Reverse(rows) // they are written as they come
	}
	if of["hard_delete"] != nil {
		rows = append(rows, fields{"id": 3, "gone": true})
	}
	in := pg.TableInput(of, rows)
	c := collision{db: db, written: make(chan error, 1)}
	c.tries = func() int64 {
		return db.Query(t, "SELECT CASE WHEN is_called THEN last_value ELSE 0 END AS n FROM tries")[0]["n"].(int64)
	}
	go func() {
		_, err := pg.MakeAttempt(t, in)
		c.written <- err
	}()
	require.Eventually(t, func() bool { return c.tries() > 0 }, testenv.Within(20*time.Second), 10*time.Millisecond, "the write comes to its second row")
	c.release = func() {
		got := make(chan error, 1)
		go func() { got <- run(other, "UPDATE others SET n = n + 10 WHERE id = 2") }()
		if state == "40P01" {
			require.Eventually(t, func() bool {
				return len(db.Query(t, "SELECT FROM pg_locks WHERE pid = $1::bigint::int AND NOT granted", int64(other.PgConn().PID()))) > 0
			}, testenv.Within(20*time.Second), 10*time.Millisecond, "the other transaction waits for the write")
		}
		require.NoError(t, run(gate, "SELECT pg_advisory_unlock(7)"))
		require.NoError(t, testenv.Receive(t, got, "the other transaction"))
		require.NoError(t, run(other, "COMMIT"))
	}
	return c
}

// connected is a connection of a test to its database.
func connected(t *testing.T, db *testenv.Database) *pgx.Conn {
	t.Helper()
	connection, err := pgx.Connect(t.Context(), db.URL)
	require.NoError(t, err)
	t.Cleanup(func() { _ = connection.Close(context.WithoutCancel(t.Context())) })
	return connection
}
