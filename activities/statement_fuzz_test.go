package activities_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"

	"reprise/internal/test/testenv"
	"reprise/interpreter/expression"
	"reprise/interpreter/statement"
)

// FuzzStatementInDatabases compares what we read in a statement with what the
// parsers of SQLite and PostgreSQL read in what becomes of it: one statement,
// with as many parameters, in which no value is part of the text. Nothing is
// run.
func FuzzStatementInDatabases(f *testing.F) {
	for _, seed := range []string{
		"SELECT {{ a }}", "SELECT 'x {{ a }} ''y''' WHERE 1 = $$ {{ c }} $$;", "SELECT 1 /* {{ b */ -- {{ c }}\n, {{ a }}",
		"SELECT INTERVAL '{{ n }}' day, timestamp(3) with time zone '{{ n }}'", "SELECT E'\\'; SELECT 2; --', '{{ a }}'", `SELECT '\'; SELECT 2; --'`,
		"\ufeffSELECT {{ a }}", "SELECT\ufeff{{ a }}", "SELECT 1\ufeff;\ufeffSELECT 2", "SELECT 1;\v\f\u00a0", "SELECT 1; /* ", "SELECT 1 -- \r; SELECT 2",
		"CREATE TRIGGER a AFTER INSERT ON t BEGIN SELECT 1; END; SELECT 2", "CREATE FUNCTION trigger() RETURNS int BEGIN ATOMIC SELECT 1; END; SELECT 2",
		"CREATE TABLE trigger (a); SELECT case; SELECT 2", "SELECT [a;]]; SELECT 2", "SELECT `a;```, \"b;\"\"\", {{ a }}", "SELECT U&'\\0041;', {{ a }}",
		"SELECT $é$;$é$, {{ a }}", "SELECT $a$1$b$;$a$", "SELECT 1e5{{ a }}", "SELECT x'00', b'1', n';', {{ a }}", "SELECT /* /* */ ; */ {{ a }}",
		"SELECT ?1, ?", "SELECT :a, @b, $c", "SELECT '\x00'; SELECT 2", "SELECT 1 \\; SELECT 2", "EXPLAIN SELECT {{ a }}", "VALUES ({{ a }}), ({{ b }})",
	} {
		f.Add(seed)
	}

	postgres, err := pgx.Connect(f.Context(), testenv.Postgres(f).URL)
	require.NoError(f, err)

	lite := openLite(f)

	f.Fuzz(func(t *testing.T, source string) {
		for _, dialect := range []statement.Dialect{statement.Postgres, statement.SQLite} {
			numbered, own, ok := numberedOf(source, dialect)
			if !ok {
				continue
			}

			require.True(t, !strings.Contains(numbered.Text, fuzzValue) || strings.Contains(source, fuzzValue), "%q became %q", source, numbered.Text)

			count := lite.count
			if dialect == statement.Postgres {
				count = func(t *testing.T, text string) (int, int, bool) { return countPostgres(t, postgres.PgConn(), text) }
			}

			statements, params, parsed := count(t, numbered.Text)
			require.LessOrEqual(t, statements, 1, "%s: %q became %q", dialect, source, numbered.Text)

			if parsed && !own {
				require.Equal(t, len(numbered.Order), params, "%s: %q became %q", dialect, source, numbered.Text)
			}
		}
	})
}

// numberedOf is what a database is sent for a source that passes the door, and
// whether its placeholders are the author's own.
func numberedOf(source string, dialect statement.Dialect) (numbered statement.NumberedStatement, own, ok bool) {
	parsed, problems := statement.Parse(source, dialect)
	for _, problem := range problems {
		if !problem.Warning {
			return numbered, false, false
		}
	}

	values, err := parsed.Render(anything{}, expression.NewBudget(expression.DecisionLimits, time.Unix(0, 0)))
	if err != nil {
		return numbered, false, false
	}

	numbered = parsed.NumberParams(values, false, false)
	return numbered, parsed.Params() == 0, true
}

// fuzzValue is a value that must be in no text of a statement.
const fuzzValue = "zz'); DROP TABLE t; --"

// anything is a scope in which every name is fuzzValue.
type anything struct{}

func (anything) Lookup(string) (any, bool) { return fuzzValue, true }

// countPostgres has the server prepare a text, of which it refuses two
// statements.
func countPostgres(t *testing.T, conn *pgconn.PgConn, text string) (statements, params int, parsed bool) {
	t.Helper()

	prepared, err := conn.Prepare(t.Context(), "", text, nil)

	var server *pgconn.PgError
	if errors.As(err, &server) {
		if strings.Contains(server.Message, "multiple commands") {
			return 2, 0, false
		}
		return 1, 0, false
	}

	require.NoError(t, err, "%q breaks the protocol", text)
	return 1, len(prepared.ParamOIDs), true
}

// liteParser is SQLite's own parser.
type liteParser struct {
	tls *libc.TLS
	db  uintptr
}

func openLite(f *testing.F) *liteParser {
	f.Helper()

	p := &liteParser{tls: libc.NewTLS()}

	name, err := libc.CString(":memory:")
	require.NoError(f, err)

	handle := libc.Xmalloc(p.tls, 8)
	require.Equal(f, int32(sqlite3.SQLITE_OK), sqlite3.Xsqlite3_open(p.tls, name, handle))
	p.db = libc.AtomicLoadPUintptr(handle)
	return p
}

// count prepares one statement after the other; one that SQLite cannot read
// ends the text.
func (p *liteParser) count(t *testing.T, text string) (statements, params int, parsed bool) {
	t.Helper()

	sql, err := libc.CString(text)
	require.NoError(t, err)

	defer libc.Xfree(p.tls, sql)

	handles := libc.Xmalloc(p.tls, 16)
	defer libc.Xfree(p.tls, handles)

	for at := sql; ; {
		code := sqlite3.Xsqlite3_prepare_v2(p.tls, p.db, at, -1, handles, handles+8)
		prepared, rest := libc.AtomicLoadPUintptr(handles), libc.AtomicLoadPUintptr(handles+8)

		if code != sqlite3.SQLITE_OK || prepared == 0 {
			return statements, params, parsed && code == sqlite3.SQLITE_OK
		}

		statements, parsed = statements+1, true
		params += int(sqlite3.Xsqlite3_bind_parameter_count(p.tls, prepared))
		sqlite3.Xsqlite3_finalize(p.tls, prepared)

		at = rest
	}
}
