// Package postgres is the tool that runs statements and writes rows on PostgreSQL.
package postgres

import (
	"context"
	"fmt"
	"math"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/pgxpool"

	"reprise/activities/sqltool"
	"reprise/activities/tool"
	"reprise/internal/base/egress"
	"reprise/interpreter"
	"reprise/interpreter/playbook"
	"reprise/interpreter/statement"
)

// maxConns bounds the connections of one worker to one database, unless the connection's URL
// says pool_max_conns. Without it a wide loop takes all of the server's max_connections, 100 by
// default, from its other users.
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
	_ tool.StateStore = (*Tool)(nil)
	_ tool.Preparer   = (*Tool)(nil)
	_ tool.Beginner   = (*Tool)(nil)
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
		Doc: `The result of a statement that returns rows, such as SELECT or INSERT … RETURNING, is a
list of maps, one per row; that of any other is {rows_affected: n}. auth names the
connection, whose URL is postgres://user:password@host:5432/database.

Templates in statement become bind parameters and are never part of the SQL text. A
template can replace any value, by itself or inside a literal such as '%{{ q }}%'. A
list becomes an array if the server expects one (id = ANY({{ ids }})); other lists and
all maps become JSON. In the result, integers and numeric keep their digits, json is
parsed, timestamptz is RFC 3339 in UTC, bytea is base64, arrays are lists, and every
other type is text, including NaN, Infinity and -Infinity. JSON that would lose data,
for example because two members have the same name, is an error that names row and
column. So is a text that is not UTF-8, which databases with the encoding SQL_ASCII can
contain.

Each statement has its own session: SET, temporary tables and locks do not affect the
next one. Only plain statements of one run, and the rows that it writes, may share a
session. A statement is plain if it reads or writes rows and calls no functions except
well-known ones, such as count or lower, by their bare names. A trigger, view, default,
type or function in the database that changes the session itself, for example with
set_config, may then affect the run's next plain statement, but no other run.

` + sqltool.TableDoc + `

Foreign tables, such as those of postgres_fdw, and tables with a foreign partition are
refused: another server commits their rows separately from the ledger, so rows could be
written twice. The same risk exists with statement and with views; make those writes
repeatable yourself.

An error of the server has kind tool, its SQLSTATE as type, and a body with detail and
hint. If the server cannot be reached, the error has kind connection and type
econnrefused, econnreset, dns, tls or eof.`,
		Fields: append([]playbook.Field{
			{Name: "statement", Kind: playbook.KindStatement, Doc: "One SQL statement, which runs in its own transaction."},
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
	if sql == nil || sql.Parsed.IsPlain() {
		run = sessionRun(in)
	}
	err = t.inSession(ctx, in, run, func(conn *pgx.Conn) error {
		if err := tool.BeginAttempt(ctx); err != nil {
			return err
		}
		result, err = t.runOn(ctx, conn, in, sql, write)
		return err
	})
	return result, err
}

// runOn runs the statement, or writes the rows if there is none.
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
	if err == nil && write.Note != nil && t.sweeper.IsDue(in.Auth) {
		sqltool.LogSweep(ctx, t.res.Logger, in, sweepLedger(ctx, conn))
	}
	return result, err
}

// Prepare reads the rows of a write.
func (t *Tool) Prepare(in interpreter.ToolInput) any {
	return sqltool.PrepareRows(in, statement.Postgres)
}

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

// pool returns the pool of the step's connection, made when it is first needed.
func (t *Tool) pool(ctx context.Context, in interpreter.ToolInput) (*sessionPool, error) {
	if in.Auth == "" {
		return nil, tool.ConfigErrorf("step %q: postgres needs auth, the name of a connection", in.Step)
	}
	if t.res.Confine != nil {
		if err := t.res.Confine(in); err != nil {
			return nil, err
		}
	}
	url, err := t.res.URLConnection(ctx, in.Auth, "postgres", false)
	if err != nil {
		return nil, err
	}
	return t.poolOf(ctx, in, url)
}

// renewedPool returns a new pool for a connection whose login was refused, if the connection has another password
// now, else nil.
func (t *Tool) renewedPool(ctx context.Context, in interpreter.ToolInput, refused *sessionPool) (*sessionPool, error) {
	url, err := t.res.URLConnection(ctx, in.Auth, "postgres", true)
	if err != nil || url == refused.url {
		return nil, err
	}
	return t.poolOf(ctx, in, url)
}

// poolOf returns the pool of a URL, which in names a connection for. After a password was replaced, the old pool is
// closed once it has been unused for a while.
func (t *Tool) poolOf(ctx context.Context, in interpreter.ToolInput, url string) (*sessionPool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if pool, ok := t.pools[url]; ok {
		pool.used = time.Now()
		return pool, nil
	}
	t.closeUnused()
	config, err := poolConfig(url, maxMessageBytes(t.res))
	if err != nil {
		// The parser's own message may repeat parts of the URL.
		return nil, tool.ConfigErrorf("connection %q is not a PostgreSQL URL, such as postgres://user:password@host:5432/database", in.Auth)
	}
	if err := guardPool(config, t.res.Egress); err != nil {
		return nil, tool.UnreachableError(fmt.Sprintf("connection %q: could not connect to PostgreSQL: %s", in.Auth, err), err)
	}
	known := t.res.Secrets.AddConnection(url)
	t.res.Secrets.AddLogin(known, config.ConnConfig.User, config.ConnConfig.Password)
	tool.SecretsOf(ctx).AddSent(known)
	pool, err := openPool(ctx, config)
	if err != nil {
		return nil, tool.ConfigErrorf("connection %q cannot be used: its settings are invalid", in.Auth)
	}
	pool.url, pool.used = url, time.Now()
	t.pools[url] = pool
	return pool, nil
}

// poolUnused is how long an unused pool stays open, longer than an attempt waits for one of its connections.
const poolUnused = time.Hour

// closeUnused closes pools that nobody uses, with t.mu.
func (t *Tool) closeUnused() {
	for url, pool := range t.pools {
		if time.Since(pool.used) > poolUnused && pool.pool.Stat().AcquiredConns() == 0 {
			delete(t.pools, url)
			go pool.pool.Close()
		}
	}
}

// guardPool has the sessions of a pool connect to the addresses that the rules of the operator allow. Its connection names all of
// them, so only deny and link-local addresses are left to refuse.
func guardPool(config *pgxpool.Config, rules *egress.Policy) error {
	conn := config.ConnConfig
	hosts := []string{net.JoinHostPort(conn.Host, strconv.Itoa(int(conn.Port)))}
	for _, other := range conn.Fallbacks {
		hosts = append(hosts, net.JoinHostPort(other.Host, strconv.Itoa(int(other.Port))))
	}
	for _, host := range hosts {
		if err := rules.CheckNamed(host); err != nil {
			return err
		}
	}
	if resolver := rules.DNSResolver(); resolver != nil {
		conn.LookupFunc = resolver.LookupHost
	}
	conn.DialFunc = rules.Dial(&net.Dialer{Timeout: conn.ConnectTimeout, KeepAlive: 5 * time.Minute}, egress.OwnConnection)
	return nil
}

// maxMessageBytes returns the most that one message of a server may have, in bytes.
func maxMessageBytes(res tool.Resources) int {
	return int(min(sqltool.LargestValue(res), math.MaxInt32))
}

// poolConfig returns the settings of a pool; message bounds one message of the server, in
// bytes.
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
