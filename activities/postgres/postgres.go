// Package postgres is the tool that runs statements and writes rows on PostgreSQL.
package postgres

import (
	"context"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/pgxpool"

	"reprise/activities/sqltool"
	"reprise/activities/tool"
	"reprise/interpreter"
	"reprise/interpreter/playbook"
	"reprise/interpreter/statement"
)

// maxConns bounds the connections of one worker to one database, unless
// the connection's URL says pool_max_conns.
const maxConns = 10

// dialTimeout bounds one try to connect, so that a host that never answers is
// reported as such and not as a slow statement.
const dialTimeout = 10 * time.Second

// Tool runs statements and writes rows on PostgreSQL. It holds one pool
// per connection URL.
type Tool struct {
	sqltool.StateTool
	res     tool.Resources
	mu      sync.Mutex
	pools   map[string]*sessionPool
	sweeper sqltool.Sweeper
}

var (
	_ tool.StateKeeper = (*Tool)(nil)
	_ tool.Preparer    = (*Tool)(nil)
	_ tool.Beginner    = (*Tool)(nil)
)

// New makes the tool.
func New(res tool.Resources) *Tool {
	t := &Tool{res: res, pools: map[string]*sessionPool{}}
	t.StateTool = sqltool.StateTool{Change: t.changeStates, Read: t.readStates}
	return t
}

// Spec describes the tool.
func (t *Tool) Spec() playbook.ToolSpec {
	return playbook.ToolSpec{
		Name:    "postgres",
		Secrets: []string{"statement"},
		Summary: "Runs one SQL statement on PostgreSQL, or writes rows to a table.",
		Doc: `The result of a statement that returns rows is a list of maps, one per row, also
for INSERT … RETURNING; of any other {rows_affected: n}. auth names the
connection, whose URL is postgres://user:password@host:5432/database.

Templates in statement become bind parameters: their text is never part of the
SQL. A template may replace any value, bare or inside a literal such as
'%{{ q }}%'. A list is an array where the server expects one (id = ANY({{ ids }})),
else JSON, as is a map. In the result, integers and numeric keep their digits,
json is parsed, timestamptz is RFC 3339 in UTC, bytea is base64, arrays are
lists, and every other type is text. A statement has a session of its own: SET,
temporary tables and locks do not reach the next one. Only plain statements of
one run, and the rows that it writes, may share one. Plain is what reads or
writes rows and calls at most well-known functions such as count or lower, by
their bare names. A trigger, view, default, type or function that is defined in
the database and changes the session itself, such as with set_config, may then
reach the run's next plain statement, and no other run.

` + sqltool.TableDoc + `

A foreign table, such as one of postgres_fdw, is refused, and a table with such a partition: another server commits its rows apart
from the ledger, so they could be written twice. That holds for statement too, where they are yours to make repeatable, and for views.

Errors of the server have kind tool, its SQLSTATE as type, and a body with
detail and hint. Failing to reach the server has kind connection and type
econnrefused, econnreset, dns, tls or eof.`,
		Fields: append([]playbook.Field{
			{Name: "statement", Kind: playbook.KindStatement, Doc: "One SQL statement; it is a transaction of its own."},
		}, sqltool.TableFields()...),
		RequireOneOf: [][]string{{"auth"}, {"statement", "table"}},
		RequireIf:    []playbook.Requirement{{Field: "mode", Value: sqltool.ModeUpsert, Needs: "key"}},
		Writes:       true,
		Dialect:      string(statement.Postgres),
		Example: `step: find_overdue
tool: postgres
auth: pg_main
args: {day: "2024-05-01", regions: [north, west]}
statement: |
  SELECT id, name, due
  FROM invoices
  WHERE due < DATE '{{ args.day }}' AND region = ANY({{ args.regions }})
`,
	}
}

// Run runs the statement, or writes args to the table.
func (t *Tool) Run(ctx context.Context, in interpreter.ToolInput) (result interpreter.ToolResult, err error) {
	sql, write, err := sqltool.Read(in, statement.Postgres)
	if err != nil {
		return result, err
	}
	run := ""
	if sql == nil || sql.Parsed.Plain() {
		run = sessionRun(in)
	}
	err = t.inSession(ctx, in, run, func(conn *pgx.Conn) error {
		if err := tool.Begin(ctx); err != nil {
			return err
		}
		result, err = t.runOn(ctx, conn, in, sql, write)
		return err
	})
	return result, err
}

// runOn runs the statement, or writes the rows where there is none.
func (t *Tool) runOn(
	ctx context.Context, conn *pgx.Conn, in interpreter.ToolInput, sql *sqltool.BoundStatement, write *sqltool.TableWrite,
) (interpreter.ToolResult, error) {
	if sql != nil {
		q := &query{conn: conn.PgConn(), types: conn.TypeMap(), sql: sql, limit: t.res.MaxResponseBytes, usual: maxMessageBytes(t.res)}
		return q.runAlone(ctx)
	}
	if tool.IsReadOnly(ctx) {
		return interpreter.ToolResult{}, tool.ErrReadOnly(in.Step)
	}
	result, err := writeTable(ctx, conn, write)
	if err == nil && write.Note != nil && t.sweeper.Due(in.Auth) {
		sqltool.LogSweep(ctx, t.res.Logger, in, sweepLedger(ctx, conn))
	}
	return result, err
}

// Prepare reads the rows of a write.
func (t *Tool) Prepare(in interpreter.ToolInput) any { return sqltool.Prepare(in, statement.Postgres) }

// Write is Run: a sink's rows arrive as its result.
func (t *Tool) Write(ctx context.Context, in interpreter.ToolInput) (interpreter.ToolResult, error) {
	return t.Run(ctx, in)
}

// Close closes all pools and waits for the statements that run.
func (t *Tool) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for url, pool := range t.pools {
		pool.pool.Close()
		delete(t.pools, url)
	}
	return nil
}

// pool is the pool of the step's connection, made when it is first needed.
func (t *Tool) pool(ctx context.Context, in interpreter.ToolInput) (*sessionPool, error) {
	if in.Auth == "" {
		return nil, tool.ConfigErrorf("step %q: postgres needs auth, the name of a connection", in.Step)
	}
	url, err := t.res.URLConnection(ctx, in.Auth, "postgres")
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if pool, ok := t.pools[url]; ok {
		return pool, nil
	}
	config, err := poolConfig(url, maxMessageBytes(t.res))
	if err != nil {
		// The parser's own message may repeat parts of the URL.
		return nil, tool.ConfigErrorf("connection %q is no PostgreSQL URL: write postgres://user:password@host:5432/database", in.Auth)
	}
	known := t.res.Secrets.AddConnection(url)
	t.res.Secrets.Login(known, config.ConnConfig.User, config.ConnConfig.Password)
	tool.SecretsOf(ctx).AddSent(known)
	pool, err := openPool(ctx, config)
	if err != nil {
		return nil, tool.ConfigErrorf("connection %q cannot be used: its settings are not valid", in.Auth)
	}
	t.pools[url] = pool
	return pool, nil
}

// maxMessageBytes is how large a message of a server may be, in bytes.
func maxMessageBytes(res tool.Resources) int {
	return int(min(sqltool.LargestValue(res), math.MaxInt32))
}

// poolConfig is how a connection is used; message bounds what is read at
// once, in bytes.
func poolConfig(url string, message int) (*pgxpool.Config, error) {
	if !strings.HasPrefix(url, "postgres://") && !strings.HasPrefix(url, "postgresql://") {
		return nil, tool.Errorf("no PostgreSQL URL")
	}
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	if !strings.Contains(url, "pool_max_conns") {
		config.MaxConns = maxConns
	}
	if !strings.Contains(url, "pool_max_conn_idle_time") {
		config.MaxConnIdleTime = sessionIdle
	}
	if !strings.Contains(url, "pool_health_check_period") {
		config.HealthCheckPeriod = sessionIdleCheck
	}
	conn := config.ConnConfig
	conn.MaxProtocolMessageBodyLen = message
	if conn.ConnectTimeout <= 0 {
		conn.ConnectTimeout = dialTimeout
	}
	// Unnamed statements need no cache, which schema changes and poolers between
	// worker and server would invalidate.
	conn.DefaultQueryExecMode = pgx.QueryExecModeExec
	// Results are read as text, and these settings decide how dates look.
	conn.RuntimeParams["timezone"] = "UTC"
	conn.RuntimeParams["datestyle"] = "ISO"
	if conn.RuntimeParams["application_name"] == "" {
		conn.RuntimeParams["application_name"] = "reprise"
	}
	// An attempt that ends early stops its statement on the server too.
	conn.BuildContextWatcherHandler = func(c *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.CancelRequestContextWatcherHandler{Conn: c, DeadlineDelay: time.Second}
	}
	return config, nil
}
