package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgconn"

	"reprise/activities/sqltool"
	"reprise/activities/tool"
	"reprise/internal/base/egress"
	"reprise/interpreter"
)

// locatedError is a server's error with its place in the author's statement.
type locatedError struct {
	*pgconn.PgError
	place string
}

func (e *locatedError) Unwrap() error { return e.PgError }

// locateError finds the place of a server's error in the statement as it was
// written; the server counts in the numbered text.
func (q *query) locateError(err error) error {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) || pg.Position <= 0 {
		return err
	}
	before, _ := q.surroundingSQL()
	at := int(pg.Position) - 1 - utf8.RuneCountInString(before)
	if at < 0 || at >= utf8.RuneCountInString(q.numbered.Text) {
		return err
	}
	offset, inParam := q.numbered.SourceOffset(at)
	line, column := sqltool.LineColumn(q.sql.Source, offset)
	place := fmt.Sprintf(", at line %d, column %d of the statement", line, column)
	if inParam {
		place += ": " + q.sql.Parsed.ParamSource(offset)
	}
	return &locatedError{PgError: pg, place: place}
}

func (q *query) queryError(ctx context.Context, err error) error {
	return classifyError(ctx, q.tooLarge(err))
}

// classifyError turns an error of pgx into one for the playbook. Texts of pgx that may contain
// connection settings are dropped.
func classifyError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var (
		own     *tool.Error
		connect *pgconn.ConnectError
		server  *pgconn.PgError
		place   *locatedError
	)
	isServer := errors.As(err, &server)
	switch {
	case errors.As(err, &own):
		return own
	case errors.As(err, &connect):
		return connectError(connect, server)
	case isServer:
		message := fmt.Sprintf("%s (SQLSTATE %s)", server.Message, server.Code)
		if errors.As(err, &place) {
			message += place.place
		}
		return &tool.Error{
			Kind: interpreter.KindTool, Class: interpreter.ClassifySQLState(server.Code),
			Type: server.Code, Message: message, Body: serverBody(server), Err: err,
		}
	}
	return lostConnection(err)
}

// connectError returns an error before the first statement: the server was not
// reached, or it refused the session.
func connectError(err *pgconn.ConnectError, server *pgconn.PgError) *tool.Error {
	e := tool.UnreachableError("", err)
	if denied, ok := errors.AsType[*egress.DeniedError](err); ok {
		e.Message = fmt.Sprintf("could not connect to PostgreSQL: %s", denied)
		return e
	}
	if server != nil {
		e.Type, e.Class = server.Code, interpreter.ClassifySQLState(server.Code)
		e.Message = fmt.Sprintf("PostgreSQL refused the connection: %s (SQLSTATE %s)", server.Message, server.Code)
		return e
	}
	e.Message = fmt.Sprintf("could not connect to PostgreSQL at %s", hostOf(err.Config))
	if e.Type != "" {
		e.Message += ": " + tool.ConnectionText(e.Type)
	}
	return e
}

func hostOf(config *pgconn.Config) string {
	if config == nil {
		return "its address"
	}
	return net.JoinHostPort(config.Host, fmt.Sprint(config.Port))
}

// lostConnection returns the error of a connection lost in a session. Whether the statement took
// effect is unknown; operation keys exist for this case.
func lostConnection(err error) error {
	kind := tool.ConnectionType(err)
	var network net.Error
	if kind == "" && !errors.As(err, &network) && !errors.Is(err, net.ErrClosed) && !pgconn.SafeToRetry(err) {
		return &tool.Error{Kind: interpreter.KindTool, Class: interpreter.ClassRetryable, Message: "PostgreSQL: " + err.Error(), Err: err}
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		kind = "eof"
	}
	message := "the connection to PostgreSQL was lost"
	if kind != "" {
		message += ": " + tool.ConnectionText(kind)
	}
	return &tool.Error{Kind: interpreter.KindConnection, Class: interpreter.ClassRetryable, Type: kind, Message: message, Err: err}
}

// serverBody returns the fields of the server's error other than its message.
func serverBody(e *pgconn.PgError) map[string]any {
	body := map[string]any{"code": e.Code}
	for name, text := range map[string]string{
		"detail": e.Detail, "hint": e.Hint, "schema": e.SchemaName, "table": e.TableName,
		"column": e.ColumnName, "constraint": e.ConstraintName, "where": e.Where,
	} {
		if text != "" {
			body[name] = text
		}
	}
	return body
}
