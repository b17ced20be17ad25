package playtest_test

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/program/playtest"
	"reprise/internal/test/testenv"
)

// asRole is the URL of the database for a role of its own with some rights.
func asRole(t *testing.T, db *testenv.Database, rights string) string {
	t.Helper()
	name := fmt.Sprintf("tester_%s_%d", db.Name[len(db.Name)-10:], len(rights))
	db.Exec(t, fmt.Sprintf("CREATE ROLE %s LOGIN PASSWORD 'quiet' %s; GRANT ALL ON DATABASE %s TO %s; GRANT ALL ON SCHEMA public TO %s; ALTER TABLE victim OWNER TO %s",
		name, rights, db.Name, name, name, name))
	t.Cleanup(func() {
		db.Exec(t, fmt.Sprintf("REASSIGN OWNED BY %s TO CURRENT_USER; DROP OWNED BY %s; DROP ROLE %s", name, name, name))
	})
	there, err := url.Parse(db.URL)
	require.NoError(t, err)
	there.User = url.UserPassword(name, "quiet")
	return there.String()
}

// withVictim is a database with a table that no test may change.
func withVictim(t *testing.T) *testenv.Database {
	t.Helper()
	db := testenv.Postgres(t)
	db.Exec(t, "CREATE TABLE victim (id bigint PRIMARY KEY); INSERT INTO victim SELECT generate_series(1, 1000)")
	return db
}

// leavesNothing asserts that the table is as it was, and that the server has nothing left of tests: only one test at a time has databases.
func leavesNothing(t *testing.T, db *testenv.Database) {
	t.Helper()
	found := db.Query(t, `SELECT (SELECT count(*) FROM victim) AS rows,
		(SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'reprise%') AS schemas, (SELECT count(*) FROM pg_class WHERE relname LIKE 'reprise%') AS tables,
		(SELECT count(*) FROM pg_database WHERE datname LIKE 'reprise%') AS databases, (SELECT count(*) FROM pg_roles WHERE rolname LIKE 'reprise%') AS roles`)
	require.Equal(t, map[string]any{"rows": int64(1000), "schemas": int64(0), "tables": int64(0), "databases": int64(0), "roles": int64(0)}, found[0])
}

// TestPostgres runs tests on a real database: each has one of its own, which is gone afterwards.
func TestPostgres(t *testing.T) {
	db := withVictim(t)
	const left = "reprise_test_20260102_abcdefghijkl" // by a test that was killed then
	for _, made := range []string{"CREATE ROLE " + left, "CREATE DATABASE " + left + " OWNER " + left, "CREATE SCHEMA " + left} {
		db.Exec(t, made)
	}
	for rights, server := range map[string]string{"superuser": db.URL, "databases": asRole(t, db, "CREATEDB"), "databases and roles": asRole(t, db, "CREATEDB CREATEROLE")} {
		suite, err := playtest.Load("testdata/postgres/rows_test.yaml")
		require.NoError(t, err)
		for _, test := range suite.Tests.Tests {
			report := suite.Run(test, playtest.Options{Postgres: server})
			require.Empty(t, texts(report), "%s: %s", rights, test.Name)
		}
	}
	leavesNothing(t, db)

	suite, err := playtest.Load("testdata/postgres/rows_test.yaml")
	require.NoError(t, err)
	report := suite.Run(suite.Tests.Tests[0], playtest.Options{Postgres: "mysql://x"})
	require.Contains(t, strings.Join(texts(report), "\n"), "--postgres must be a URL such as postgres://user:password@localhost/test")
	report = suite.Run(suite.Tests.Tests[0], playtest.Options{Postgres: "postgres://u:s3cret-word@127.0.0.1:1/x?connect_timeout=1"})
	require.Contains(t, strings.Join(texts(report), "\n"), "cannot reach the database of --postgres")
	require.NotContains(t, strings.Join(texts(report), "\n"), "s3cret-word")
}

// TestPostgresIsNotWritten: whatever a playbook says, the database of --postgres stays as it is.
func TestPostgresIsNotWritten(t *testing.T) {
	db := withVictim(t)
	sink := func(fields string) string {
		return "  - step: fetch\n    tool: http\n    url: https://api.test/\n    sink: {tool: postgres, auth: shop, " + fields + "}\n"
	}
	step := func(statement string) string {
		return "  - step: fetch\n    tool: postgres\n    auth: shop\n    statement: " + statement + "\n"
	}
	const answers = "    answers: {fetch: [{body: [{id: 1}]}]}\n"
	const noTable, schemaOnly, ofServer = `"public.victim" does not exist`, "the test has only a schema", "changes databases, roles or the server"
	for name, one := range map[string]struct {
		steps, test string
		said        map[string]string // by the rights of the role
	}{
		"replace": {
			sink("table: public.victim, mode: replace"), answers,
			map[string]string{"": "table public.victim is in another one", "CREATEDB": noTable, "CREATEDB CREATEROLE": noTable, "SUPERUSER": noTable},
		},
		"rejected": {
			sink("table: mine, rejected: {table: public.victim}"), answers,
			map[string]string{"": "table public.victim is in another one"},
		},
		"unqualified": {sink("table: victim, mode: replace"), answers, map[string]string{"": `"victim" does not exist`, "SUPERUSER": `"victim" does not exist`}},
		"state": {
			strings.Replace(sink("table: public.victim, mode: upsert, key: id"), "    sink:", "    incremental: {cursor_path: id, initial_value: 0}\n    sink:", 1), answers,
			map[string]string{"": "table public.victim is in another one"},
		},
		"statement": {
			step("DELETE FROM public.victim"), "", map[string]string{"": schemaOnly, "CREATEDB": "does not exist", "SUPERUSER": "does not exist"},
		},
		"function": {step("SELECT lo_create(0)"), "", map[string]string{"": schemaOnly}},
		"database": {
			step("DROP DATABASE " + db.Name + " WITH (FORCE)"), "",
			map[string]string{"": schemaOnly, "CREATEDB": ofServer, "CREATEDB CREATEROLE": "must be owner of database", "SUPERUSER": "must be owner of database"},
		},
		"program": {step("COPY (SELECT 1) TO PROGRAM 'true'"), "", map[string]string{"SUPERUSER": "to or from an external program"}},
		"a connection of the test": {
			sink("table: public.victim, mode: replace"), answers + "    connections: {shop: \"" + db.URL + "\"}\n",
			map[string]string{"": "table public.victim is in another one", "SUPERUSER": noTable},
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(dir, "book.yaml"), []byte("apiVersion: reprise/v1\nkind: Playbook\nmetadata: {name: book}\nworkflow:\n"+one.steps), 0o600))
			path := filepath.Join(dir, "book_test.yaml")
			require.NoError(t, os.WriteFile(path, []byte("playbook: book.yaml\ntests:\n  - name: it\n"+one.test+"    expect: {status: completed}\n"), 0o600))
			suite, err := playtest.Load(path)
			require.NoError(t, err)
			for rights, said := range one.said {
				server := db.URL
				if rights != "SUPERUSER" {
					server = asRole(t, db, rights)
				}
				report := suite.Run(suite.Tests.Tests[0], playtest.Options{Postgres: server})
				require.Contains(t, strings.Join(texts(report), "\n"), said, "a role with %q", rights)
				leavesNothing(t, db)
			}
		})
	}
}
