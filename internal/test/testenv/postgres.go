package testenv

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Database is an empty PostgreSQL database of a test, dropped when the test ends.
type Database struct {
	URL  string // postgres://user:password@host:port/name?…
	Name string

	own *pgServer // the server, if it belongs to this test alone
}

// queryTimeout bounds every statement of a test.
const queryTimeout = 30 * time.Second

// Postgres returns a new database on the PostgreSQL server of the process, which it starts if necessary. The test
// fails if there is no server to use or to start.
func Postgres(t testing.TB) *Database {
	t.Helper()
	database, err := sharedPostgres()
	if err != nil {
		t.Fatal(err)
	}
	return newDatabase(t, database, nil)
}

// PostgresServer returns a new database on a new server that only this test uses, so it may stop, kill and restart
// it. It takes a second or two to start.
func PostgresServer(t testing.TB) *Database {
	t.Helper()
	server, err := newPGServer(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.removeServer(); err != nil {
			t.Errorf("remove PostgreSQL server: %v", err)
		}
	})
	return newDatabase(t, server.databaseURL, server)
}

// LocalDatabase is a PostgreSQL server of a program that is not a test.
type LocalDatabase struct {
	URL  string
	PID  int // of the server, whose sessions are its children
	Stop func()
}

// LocalPostgres starts a server for such a program, which has to stop it. Settings, such as autovacuum=on, replace those
// of servers for tests.
func LocalPostgres(ctx context.Context, settings ...string) (*LocalDatabase, error) {
	server, err := newPGServer(ctx, true, settings...)
	if err != nil {
		return nil, err
	}
	return &LocalDatabase{URL: server.databaseURL("postgres"), PID: server.process.Cmd.Process.Pid, Stop: func() { _ = server.removeServer() }}, nil
}

// sharedPostgres returns a function that returns the URL of a database on the process's server.
var sharedPostgres = sync.OnceValues(func() (func(name string) string, error) {
	if text := os.Getenv("TEST_POSTGRES_URL"); text != "" {
		return externalPostgres(text)
	}
	server, err := newPGServer(context.Background(), false)
	if err != nil {
		return nil, err
	}
	atExit(func() { _ = server.removeServer() })
	return server.databaseURL, nil
})

// externalPostgres uses an existing server. The name "" stands for the database in the URL.
func externalPostgres(text string) (func(name string) string, error) {
	base, err := url.Parse(text)
	if err != nil || (base.Scheme != "postgres" && base.Scheme != "postgresql") {
		// The text may contain a password, so the error does not repeat it.
		return nil, fmt.Errorf("TEST_POSTGRES_URL is not a URL, expected postgres://user:password@host:port/database")
	}
	return func(name string) string {
		u := *base
		u.Path = "/" + name
		if name == "postgres" { // for CREATE DATABASE; the given one is sure to exist
			u.Path = base.Path
		}
		return u.String()
	}, nil
}

// newDatabase creates a database, named after the test, and drops it when the test ends.
func newDatabase(t testing.TB, urlOf func(string) string, own *pgServer) *Database {
	t.Helper()
	name := databaseName(t.Name())
	admin := &Database{URL: urlOf("postgres"), Name: "postgres"}
	admin.Exec(t, "CREATE DATABASE "+pgx.Identifier{name}.Sanitize())
	if own == nil {
		t.Cleanup(func() {
			// Connections of the code under test may still be open, hence FORCE.
			admin.Exec(t, "DROP DATABASE "+pgx.Identifier{name}.Sanitize()+" WITH (FORCE)")
		})
	}
	return &Database{URL: urlOf(name), Name: name, own: own}
}

// databaseName returns a unique name of up to 63 bytes, PostgreSQL's limit.
func databaseName(test string) string {
	clean := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, strings.ToLower(test))
	return fmt.Sprintf("%.50s_%s", clean, strings.ToLower(rand.Text()[:10]))
}

// Query returns the rows of a statement as maps, with pgx's Go types: int32 or int64, float64, string, bool,
// time.Time, pgtype.Numeric, and the decoded value for json. The test fails on an error.
func (d *Database) Query(t testing.TB, sql string, args ...any) []map[string]any {
	t.Helper()
	var found []map[string]any
	err := d.withConnection(func(ctx context.Context, connection *pgx.Conn) error {
		rows, err := connection.Query(ctx, sql, args...)
		if err != nil {
			return err
		}
		found, err = pgx.CollectRows(rows, pgx.RowToMap)
		return err
	})
	if err != nil {
		t.Fatalf("query %q on database %s: %v", sql, d.Name, err)
	}
	return found
}

// Exec executes a statement, or several without arguments. The test fails on an error.
func (d *Database) Exec(t testing.TB, sql string, args ...any) {
	t.Helper()
	err := d.withConnection(func(ctx context.Context, connection *pgx.Conn) error {
		_, err := connection.Exec(ctx, sql, args...)
		return err
	})
	if err != nil {
		t.Fatalf("execute %q on database %s: %v", sql, d.Name, err)
	}
}

// LockTable locks a table, so that writers wait until unlock is called.
func (d *Database) LockTable(t testing.TB, table string) (unlock func()) {
	t.Helper()
	connection, err := pgx.Connect(t.Context(), d.URL)
	if err == nil {
		_, err = connection.Exec(t.Context(), "BEGIN; LOCK TABLE "+pgx.Identifier{table}.Sanitize()+" IN EXCLUSIVE MODE")
	}
	if err != nil {
		t.Fatalf("lock table %s of database %s: %v", table, d.Name, err)
	}
	return func() { _ = connection.Close(context.WithoutCancel(t.Context())) }
}

// CountWaiting counts the sessions that wait for a lock on a table.
func (d *Database) CountWaiting(t testing.TB, table string) int {
	t.Helper()
	rows := d.Query(t, "SELECT count(*) AS n FROM pg_locks WHERE relation = $1::text::regclass AND NOT granted",
		pgx.Identifier{table}.Sanitize())
	return int(rows[0]["n"].(int64))
}

// EndWaiting ends the sessions that wait for a lock on a table: what a killed process has sent is not written.
func (d *Database) EndWaiting(t testing.TB, table string) {
	t.Helper()
	d.Query(t, "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE relation = $1::text::regclass AND NOT granted",
		pgx.Identifier{table}.Sanitize())
}

// withConnection calls f with a new connection. It does not use the test's context, which has ended when cleanups run.
func (d *Database) withConnection(f func(context.Context, *pgx.Conn) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), Within(queryTimeout))
	defer cancel()
	connection, err := pgx.Connect(ctx, d.URL)
	if err != nil {
		return err
	}
	defer func() { _ = connection.Close(ctx) }()
	return f(ctx, connection)
}

// Stop shuts the server down and ends its sessions. Only a test with its own server (PostgresServer) may call it.
func (d *Database) Stop(t testing.TB) {
	t.Helper()
	d.mustOwn(t, "stop")
	if err := d.own.stopServer(); err != nil {
		t.Fatal(err)
	}
}

// Kill ends the server with SIGKILL. Only a test with its own server (PostgresServer) may call it.
func (d *Database) Kill(t testing.TB) {
	t.Helper()
	d.mustOwn(t, "kill")
	if err := d.own.killServer(); err != nil {
		t.Fatal(err)
	}
}

// Start starts the server again after Stop or Kill, with the same URL and data, and returns once it accepts
// connections.
func (d *Database) Start(t testing.TB) {
	t.Helper()
	d.mustOwn(t, "start")
	if err := d.own.startServer(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func (d *Database) mustOwn(t testing.TB, verb string) {
	t.Helper()
	if d.own == nil {
		t.Fatalf("%s PostgreSQL: other tests share this server, use testenv.PostgresServer", verb)
	}
}
