package activities

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"

	"reprise/interpreter"
)

// sessionForgotten bounds how long a server may take to forget a session; a
// connection that takes longer is closed.
const sessionForgotten = 5 * time.Second

// forgetSession makes a connection that was used like a new one: settings,
// temporary tables, advisory locks, prepared statements, cursors and channels
// are no other run's. It tells whether the connection may be used again.
//
// DISCARD ALL goes back to the settings the connection was opened with, but for
// the role, of which it knows nothing: RESET ROLE goes to the role of the
// connection's URL, or of ALTER ROLE … SET. Both are sent at once; a
// transaction could not hold the first. pgx keeps no prepared statements here
// that could be missed (QueryExecModeExec). The attempt does not wait: its
// connection is not in the pool yet.
func forgetSession(conn *pgx.Conn) bool {
	ctx, cancel := context.WithTimeout(context.Background(), sessionForgotten)
	defer cancel()
	pipeline := conn.PgConn().StartPipeline(ctx)
	for _, statement := range []string{"DISCARD ALL", "RESET ROLE"} {
		pipeline.SendQueryParams(statement, nil, nil, nil, nil)
		pipeline.SendPipelineSync()
	}
	return errors.Join(pipeline.Flush(), pipeline.Close()) == nil && conn.PgConn().TxStatus() == idleTransaction
}

// idleTransaction is what a server tells where no transaction is open.
const idleTransaction = 'I'

// tooLarge is what the author reads where a message of the server was not read
// because of its size; the connection is lost by then. Other errors stay.
func (q *postgresQuery) tooLarge(err error) error {
	var exceeded *pgproto3.ExceededMaxBodyLenErr
	if !errors.As(err, &exceeded) {
		return err
	}
	return tooLargef("step %q: the server sent %d bytes at once, in a row or a message; all of a result takes at most %d: "+
		"select fewer or shorter columns, such as with left(), or read it in parts", q.sql.step, exceeded.ActualBodyLen, q.limit)
}

// alone is the error of a statement that leaves a transaction open. Nobody would
// end it, and what it has done is undone with the connection.
func (q *postgresQuery) alone(ctx context.Context) error {
	if q.conn.IsClosed() || q.conn.TxStatus() == idleTransaction {
		return nil
	}
	_ = q.conn.Close(ctx)
	return &Error{
		Kind: interpreter.KindTool, Class: interpreter.ClassFinal,
		Message: "step \"" + q.sql.step + "\": the statement left a transaction open, which was undone: each statement is a transaction of its own",
	}
}
