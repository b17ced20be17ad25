package postgres

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// Parsing and planning a statement takes the server longer than running it for a page, so a session prepares
// statements of usual writes that it sends again. They are dropped with the session. With a pooler between worker
// and server, prepared statements may be lost: then the session stops preparing any.

// Bounds of what a session prepares.
const (
	preparedAfter = 3 // how often a statement is sent before
	// mostPrepared bounds the statements that a session has prepared. The server keeps their
	// plans until the session ends, some hundred kilobytes for a wide table.
	mostPrepared     = 100
	longestPrepared  = 64 << 10 // of a statement, in bytes
	plansAge         = time.Minute
	forgetPlans      = "DISCARD PLANS"
	missingStatement = "26000"
	changedPlan      = "0A000" // the result of a prepared statement has other types
)

// preparedStatements records the statements that a session sends repeatedly.
type preparedStatements struct {
	sent  map[string]*int // how often, by their texts
	count int             // of those that are prepared
	until time.Time       // a table may have grown that was empty when their plans were made
	none  bool            // not prepared at all
}

// prepareBatch prepares the statements of a batch that were sent before. Those that cannot be prepared are sent
// unprepared.
func (p *preparedStatements) prepareBatch(ctx context.Context, conn *pgx.Conn, batch *pgx.Batch) {
	if p.none {
		return
	}
	if p.count > 0 && time.Now().After(p.until) {
		_, err := conn.Exec(ctx, forgetPlans)
		p.none, p.until = err != nil, time.Now().Add(plansAge)
	}
	for _, query := range batch.QueuedQueries {
		if !p.isDue(query) {
			continue
		}
		if _, err := conn.Prepare(ctx, query.SQL, query.SQL); err != nil {
			p.none = true
			return
		}
		if p.count++; p.count == 1 {
			p.until = time.Now().Add(plansAge)
		}
	}
}

// errUnprepared rolls a write back because a statement cannot be prepared, which ends its transaction.
var errUnprepared = errors.New("a statement cannot be prepared")

// sendBatch sends statements within the transaction.
func (t *tableTx) sendBatch(ctx context.Context, batch *pgx.Batch) error {
	if t.session != nil && !t.session.prepared.none {
		t.session.prepared.prepareBatch(ctx, t.tx.Conn(), batch)
		if t.session.prepared.none {
			return errUnprepared
		}
	}
	return t.tx.SendBatch(ctx, batch).Close()
}

// isDue reports whether a statement is to be prepared now.
func (p *preparedStatements) isDue(query *pgx.QueuedQuery) bool {
	if len(query.Arguments) == 0 || len(query.SQL) > longestPrepared {
		return false
	}
	sent, known := p.sent[query.SQL]
	if !known {
		if len(p.sent) >= mostPrepared {
			return false
		}
		if p.sent == nil {
			p.sent = map[string]*int{}
		}
		sent = new(int)
		p.sent[strings.Clone(query.SQL)] = sent
	}
	*sent++
	return *sent == preparedAfter+1
}

// forgetLost drops all prepared statements after an error that says that one is missing or has changed. The session
// prepares no more.
func (p *preparedStatements) forgetLost(ctx context.Context, conn *pgx.Conn, err error) bool {
	if p.count == 0 || !isSQLState(err, missingStatement, changedPlan) {
		return false
	}
	p.none = true
	return p.forgetAll(ctx, conn) == nil
}

// forgetAll forgets what was prepared.
func (p *preparedStatements) forgetAll(ctx context.Context, conn *pgx.Conn) error {
	if p.count == 0 {
		return nil
	}
	*p = preparedStatements{none: p.none}
	return conn.DeallocateAll(ctx)
}
