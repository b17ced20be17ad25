package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgxpool"

	"reprise/activities/tool"
	"reprise/interpreter"
)

// sessionForgotten bounds how long a server may take to forget a session; a
// connection that takes longer is closed.
const sessionForgotten = 5 * time.Second

// sessionIdle is how long a connection waits for its next statement before it is closed,
// because locks that triggers left in its session block others. The interval of checks is added
// to it.
const (
	sessionIdle      = 10 * time.Second
	sessionIdleCheck = 3 * time.Second
)

// sessionPool holds the connections to one database. A session is reset before another run uses
// it. Between the statements of one run it is kept if all of them are plain: these leave
// nothing behind themselves, though triggers may.
type sessionPool struct {
	pool *pgxpool.Pool
	url  string    // with the password that its connections have
	used time.Time // when it was last given out; with the lock of the tool
}

// session is what is known about a connection's session. Only the holder of the connection may
// use it.
type session struct {
	// fresh says that nothing was done in the session yet.
	fresh bool
	// run is the only run that has used the session, for plain statements only; "" if unknown.
	run string
	// settings are the initial values of the settings that the server reports by itself.
	settings reportedSettings
	// tables caches descriptions of tables for later writes, by their quoted names.
	tables map[string]tableDescription
	// overlapping lists states with known rows below the position that their calls have
	// reached.
	overlapping map[string]bool
	assembled   statementCache
	// owners is until when the owners of the ledger's tables are known to be trusted.
	owners time.Time
	// prepared are the statements of its writes.
	prepared preparedStatements
}

type sessionRunKey struct{}

// openPool makes a pool, and no connection yet. The pool outlives ctx.
func openPool(ctx context.Context, config *pgxpool.Config) (*sessionPool, error) {
	config.PrepareConn = prepareSession
	pool, err := pgxpool.NewWithConfig(context.WithoutCancel(ctx), config)
	if err != nil {
		return nil, err
	}
	return &sessionPool{pool: pool}, nil
}

// acquireConn waits for a connection. run names the run whose session may be reused, "" for a
// new one.
func (p *sessionPool) acquireConn(ctx context.Context, run string) (*pgxpool.Conn, error) {
	conn, err := p.pool.Acquire(context.WithValue(ctx, sessionRunKey{}, run))
	if err != nil {
		return nil, err
	}
	session := sessionOf(conn.Conn())
	session.fresh, session.run = false, ""
	return conn, nil
}

// releaseConn returns a connection to the pool, in the background. Its session is kept for run;
// "" resets it.
func (*sessionPool) releaseConn(conn *pgxpool.Conn, run string) {
	session := sessionOf(conn.Conn())
	if run != "" && !conn.Conn().IsClosed() && session.isUnchanged(conn.Conn()) {
		session.run = run
		conn.Release()
		return
	}
	go func() {
		session.fresh = conn.Conn().IsClosed() || forgetSession(context.Background(), conn.Conn())
		if !session.fresh {
			_ = conn.Conn().Close(context.Background())
		}
		conn.Release()
	}()
}

// prepareSession reports whether a connection may be used; if not, it is dropped and another
// one acquired.
func prepareSession(ctx context.Context, conn *pgx.Conn) (bool, error) {
	session := sessionOf(conn)
	run, _ := ctx.Value(sessionRunKey{}).(string)
	if !session.fresh && (run == "" || session.run != run) {
		session.run = ""
		session.fresh = forgetSession(ctx, conn)
		return session.fresh, nil
	}
	return true, nil
}

// sessionOf returns the session data of a connection. The first call must come when the
// connection is new.
func sessionOf(conn *pgx.Conn) *session {
	const key = "reprise session"
	data := conn.PgConn().CustomData()
	found, known := data[key].(*session)
	if !known {
		found = &session{fresh: true, settings: readReported(conn)}
		data[key] = found
	}
	return found
}

// mostOverlapping bounds how many states a session remembers. A session lives as long as its
// worker, and states are as many as playbooks and their keys.
const mostOverlapping = 100

// rememberState remembers a state.
func (s *session) rememberState(state string) {
	if s.overlapping == nil || len(s.overlapping) >= mostOverlapping {
		s.overlapping = map[string]bool{}
	}
	s.overlapping[state] = true
}

// isUnchanged reports whether the server has reported no other settings, and reads
// literals as package statement does.
func (s *session) isUnchanged(conn *pgx.Conn) bool {
	return s.settings == readReported(conn) && conn.PgConn().ParameterStatus(plainLiterals) == "on"
}

// plainLiterals is the setting that makes a backslash in a literal an ordinary character.
const plainLiterals = "standard_conforming_strings"

// reportedNames are settings whose changes the server reports, some of them in later versions
// only. They cost no request.
var reportedNames = [...]string{
	plainLiterals, "client_encoding", "DateStyle", "IntervalStyle", "TimeZone",
	"session_authorization", "is_superuser", "search_path", "application_name", "default_transaction_read_only",
}

// reportedSettings are their values, "" where the server does not report one.
type reportedSettings [len(reportedNames)]string

func readReported(conn *pgx.Conn) (reported reportedSettings) {
	for i, name := range reportedNames {
		reported[i] = conn.PgConn().ParameterStatus(name)
	}
	return reported
}

// sessionRun names the run for which the session of an attempt may be kept. No two runs share a
// name. It is "" if the attempt names none.
func sessionRun(in interpreter.ToolInput) string {
	if in.RunID == "" {
		return ""
	}
	return in.RunID + " " + in.ControlID
}

// forgetSession resets a connection to the state of a new one: settings, temporary tables,
// advisory locks, prepared statements, cursors and channels are gone. It reports whether the
// connection may be used again.
//
// DISCARD ALL restores the settings with which the connection was opened, except for the role:
// RESET ROLE restores that of the connection's URL, or of ALTER ROLE … SET. Both are sent in
// one message; DISCARD ALL cannot run in a transaction. pgx has to drop its record of prepared
// statements too.
func forgetSession(ctx context.Context, conn *pgx.Conn) bool {
	ctx, cancel := context.WithTimeout(ctx, sessionForgotten)
	defer cancel()
	if sessionOf(conn).prepared.forgetAll(ctx, conn) != nil {
		return false
	}
	pipeline := conn.PgConn().StartPipeline(ctx)
	for _, statement := range []string{"DISCARD ALL", "RESET ROLE"} {
		pipeline.SendQueryParams(statement, nil, nil, nil, nil)
		pipeline.SendPipelineSync()
	}
	return errors.Join(pipeline.Flush(), pipeline.Close()) == nil && conn.PgConn().TxStatus() == idleTransaction
}

// idleTransaction is the status that a server reports if no transaction is open.
const idleTransaction = 'I'

// tooLarge returns the author's message if the server's message was too large to read; the
// connection is lost then. Other errors are unchanged.
func (q *query) tooLarge(err error) error {
	var exceeded *pgproto3.ExceededMaxBodyLenErr
	if !errors.As(err, &exceeded) {
		return err
	}
	return tool.TooLargeErrorf("step %q: the server sent %d bytes in one row or message, but a result may have at most %d; "+
		"select fewer or shorter columns, for example with left(), or read it in parts", q.sql.Step, exceeded.ActualBodyLen, q.limit)
}

// aloneError returns the error of a statement that leaves a transaction open. Nobody would
// end it, and what it has done is undone with the connection.
func (q *query) aloneError(ctx context.Context) error {
	if q.conn.IsClosed() || q.conn.TxStatus() == idleTransaction {
		return nil
	}
	_ = q.conn.Close(ctx)
	return &tool.Error{
		Kind: interpreter.KindTool, Class: interpreter.ClassFinal,
		Message: "step \"" + q.sql.Step + "\": the statement left a transaction open, which was rolled back: each statement runs in its own transaction",
	}
}
