package testenv_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"reprise/internal/test/testenv"
)

func TestEachTestHasItsOwnDatabase(t *testing.T) {
	t.Parallel()
	one, two := testenv.Postgres(t), testenv.Postgres(t)
	require.NotEqual(t, one.Name, two.Name)
	require.True(t, strings.HasPrefix(one.Name, "testeachtesthasitsowndatabase_"), one.Name)
	one.Exec(t, "CREATE TABLE person (id bigint PRIMARY KEY, name text, tags jsonb); INSERT INTO person VALUES (1, 'Ada', '[1]')")
	one.Exec(t, "INSERT INTO person VALUES ($1, $2, $3)", 2, "Bob", map[string]any{"a": true})
	require.Equal(t, []map[string]any{
		{"id": int64(1), "name": "Ada", "tags": []any{1.0}},
		{"id": int64(2), "name": "Bob", "tags": map[string]any{"a": true}},
	}, one.Query(t, "SELECT * FROM person ORDER BY id"))
	require.Empty(t, two.Query(t, "SELECT * FROM pg_tables WHERE tablename = 'person'"))
}

func TestDatabaseIsDroppedWithTheTestEvenIfInUse(t *testing.T) {
	t.Parallel()
	var name string
	t.Run("user", func(t *testing.T) {
		database := testenv.Postgres(t)
		name = database.Name
		leaked, err := pgx.Connect(t.Context(), database.URL)
		require.NoError(t, err)
		require.NoError(t, leaked.Ping(t.Context()))
	})
	require.Empty(t, testenv.Postgres(t).Query(t, "SELECT 1 FROM pg_database WHERE datname = $1", name))
}

func TestStopAndStart(t *testing.T) {
	t.Parallel()
	database := testenv.PostgresServer(t)
	database.Exec(t, "CREATE TABLE kept (id int)")
	session, err := pgx.Connect(t.Context(), database.URL)
	require.NoError(t, err)

	database.Stop(t)
	require.Error(t, session.Ping(t.Context()), "open sessions end")
	_, err = pgx.Connect(t.Context(), database.URL)
	require.Error(t, err)

	database.Start(t)
	require.Len(t, database.Query(t, "SELECT 1 FROM pg_tables WHERE tablename = 'kept'"), 1)
	require.Equal(t, "127.0.0.1/32", fmt.Sprint(database.Query(t, "SELECT inet_server_addr()::text AS a")[0]["a"]))
}

// TestKill: a server that is killed comes back with what it has committed, and nothing else.
func TestKill(t *testing.T) {
	t.Parallel()
	database := testenv.PostgresServer(t)
	database.Exec(t, "CREATE TABLE kept (id int)")
	session, err := pgx.Connect(t.Context(), database.URL)
	require.NoError(t, err)
	for n := range 5 {
		database.Exec(t, "INSERT INTO kept VALUES ($1)", n)
		_, _ = session.Exec(t.Context(), "BEGIN; INSERT INTO kept VALUES (1000)")
		database.Kill(t)
		require.Error(t, session.Ping(t.Context()))
		database.Start(t)
		require.Equal(t, []map[string]any{{"n": int64(n + 1), "most": int32(n)}}, database.Query(t, "SELECT count(*) AS n, max(id) AS most FROM kept"))
		session, err = pgx.Connect(t.Context(), database.URL)
		require.NoError(t, err)
	}
}

func TestLockHoldsWriters(t *testing.T) {
	t.Parallel()
	database := testenv.Postgres(t)
	database.Exec(t, `CREATE TABLE "Kept" (id int)`)
	unlock := database.LockTable(t, "Kept")
	written := make(chan struct{})
	go func() {
		defer close(written)
		database.Exec(t, `INSERT INTO "Kept" VALUES (1)`)
	}()
	require.Eventually(t, func() bool { return database.CountWaiting(t, "Kept") == 1 }, testenv.Within(20*time.Second), 20*time.Millisecond)
	require.Empty(t, database.Query(t, `SELECT * FROM "Kept"`), "readers go on")
	unlock()
	testenv.Receive(t, written, "the end of the write")
	require.Len(t, database.Query(t, `SELECT * FROM "Kept"`), 1)
}

func TestSessionsThatWaitAreEnded(t *testing.T) {
	t.Parallel()
	database := testenv.Postgres(t)
	database.Exec(t, `CREATE TABLE "Kept" (id int)`)
	unlock := database.LockTable(t, "Kept")
	ended := make(chan error)
	go func() {
		connection, err := pgx.Connect(context.WithoutCancel(t.Context()), database.URL)
		if err == nil {
			_, err = connection.Exec(context.WithoutCancel(t.Context()), `INSERT INTO "Kept" VALUES (1)`)
		}
		ended <- err
	}()
	require.Eventually(t, func() bool { return database.CountWaiting(t, "Kept") == 1 }, testenv.Within(20*time.Second), 20*time.Millisecond)
	database.EndWaiting(t, "Kept")
	require.ErrorContains(t, testenv.Receive(t, ended, "the end of the session"), "terminating connection")
	unlock()
	require.Empty(t, database.Query(t, `SELECT * FROM "Kept"`))
}

func TestPasswordIsNeeded(t *testing.T) {
	t.Parallel()
	config, err := pgx.ParseConfig(testenv.PostgresServer(t).URL)
	require.NoError(t, err)
	config.Password = "wrong"
	_, err = pgx.ConnectConfig(context.Background(), config)
	require.ErrorContains(t, err, "password authentication failed")
}

func TestMistakesFailTheTest(t *testing.T) {
	t.Parallel()
	database := testenv.Postgres(t)
	for message, mistake := range map[string]func(testing.TB){
		`query "SELECT x" on database`:                                                func(t testing.TB) { database.Query(t, "SELECT x") },
		`execute "NONSENSE" on database`:                                              func(t testing.TB) { database.Exec(t, "NONSENSE") },
		"stop PostgreSQL: other tests share this server, use testenv.PostgresServer":  database.Stop,
		"kill PostgreSQL: other tests share this server, use testenv.PostgresServer":  database.Kill,
		"start PostgreSQL: other tests share this server, use testenv.PostgresServer": database.Start,
	} {
		require.Contains(t, failure(t, mistake), message)
	}
}
