package postgres

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"reprise/activities/sqltool"
	"reprise/interpreter"
)

// Most writes meet the usual conditions: the table is as the session remembers it, the ledger does not have them, and
// the call holds its state. They are sent in one message, with begin and commit, whose statements fail if a condition
// does not hold. Then nothing was written, and the write is made step by step.

// atOnceBytes bounds the rows of a write that is sent at once.
const atOnceBytes = 1 << 20

// errNotAtOnce says that nothing was sent, because the write has to be made step by step.
var errNotAtOnce = errors.New("made step by step")

// plannedTable pretends to be a table within a transaction, but knows only the columns that the session remembers: a
// write that needs the server is not done at once. It embeds no interface, so that each new method of SchemaTx needs
// a decision here.
type plannedTable struct{ table *tableTx }

func (plannedTable) Dialect() *sqltool.Dialect { return dialect }

func (plannedTable) Exec(context.Context, string, ...any) (int64, error) { return 0, errNotAtOnce }

func (p plannedTable) ReadColumns(_ context.Context, w *sqltool.TableWrite) ([]sqltool.Column, error) {
	if columns, is := p.table.rememberedColumns(w); is {
		return columns, nil
	}
	return nil, errNotAtOnce
}

func (plannedTable) ChangeSchema(context.Context, *sqltool.TableWrite, func() error) error {
	return errNotAtOnce
}

func (plannedTable) LacksSchema(context.Context, *sqltool.TableWrite) (bool, error) {
	return false, errNotAtOnce
}

func (plannedTable) FindMisfits(context.Context, *sqltool.TableWrite, sqltool.Column, []any) ([]int, error) {
	return nil, errNotAtOnce
}

// writeAtOnce makes a simple write in one round trip. Its statements form one transaction, because one Sync follows
// all of them. After errNotAtOnce, which byStep handles, nothing was written.
func writeAtOnce(ctx context.Context, conn *pgx.Conn, w *sqltool.TableWrite) (result interpreter.ToolResult, err error) {
	session := sessionOf(conn)
	if w.IsStaged() || w.HasChildren() || w.MakesTables() || len(w.Rows) == 0 || len(w.Rows) > chunkRows {
		return result, errNotAtOnce
	}
	table := &tableTx{session: session}
	settled, err := sqltool.SettleWrite(ctx, plannedTable{table}, w)
	if err != nil || !settled.IsPlain() || settled.MayRepeatKeys() || sqltool.MayReplaceNewer(settled) || cmp.Or(refuseNUL(settled), settled.RefuseNoBytes()) != nil || !table.target.plain && len(settled.MissingColumns()) > 0 {
		return result, errNotAtOnce
	}
	insertion := table.insertionOf(settled, table.textForms(settled))
	statement, encode := insertion.parameterStatement()
	rows, err := encode(settled.Rows)
	if err != nil || rows.rows < len(settled.Rows) || rows.bytes > atOnceBytes {
		return result, errNotAtOnce
	}
	batch := &pgx.Batch{}
	queueShare(batch, w)
	first := &together{}
	first.requireCondition("("+tableVersion+") = $2", w.QuotedTable(), table.unchecked)
	begin, behind := w.NewerNames(dialect)
	first.requireCondition(noReaders, w.QuotedTable(), begin, behind)
	follows, err := queueLedger(batch, first, settled, session)
	if err != nil {
		return result, err
	}
	insertion.queueStatement(batch, statement, rows.parameters, func(written sqltool.WriteResult) { result = settled.ToolResult(written.OfRows(settled)) })
	session.prepared.prepareBatch(ctx, conn, batch)
	if err := conn.SendBatch(ctx, batch).Close(); err != nil {
		if session.prepared.forgetLost(ctx, conn, err) {
			return interpreter.ToolResult{}, errNotAtOnce
		}
		if follows && byStep(ctx, conn, err) {
			session.rememberState(settled.State.Name)
			return writeAtOnce(ctx, conn, w)
		}
		return interpreter.ToolResult{}, placeInRow(settled, err)
	}
	return result, nil
}

// together is a list of statements that are sent as one, because each alone would cost time. They do not see each
// other's effects.
type together struct {
	clauses []clause
	args    []any
}

// clause is a statement of together, by its name among them, or a condition. Its parameters are numbered by itself.
type clause struct {
	name, text string
	required   bool // of a statement: it has to change a row
	args       int
}

// addChange adds a statement that must change a row; each needs its own name. Statements run in the given order,
// which is the order of writes made step by step: otherwise two writers could deadlock.
func (t *together) addChange(name, statement string, args ...any) {
	t.appendClause(clause{name: name, text: statement, required: true}, args)
}

// requireCondition makes the whole statement fail unless the condition holds.
func (t *together) requireCondition(condition string, args ...any) {
	t.appendClause(clause{text: condition}, args)
}

// addOptional adds a statement that may change none.
func (t *together) addOptional(name, statement string, args ...any) {
	t.appendClause(clause{name: name, text: statement}, args)
}

func (t *together) appendClause(c clause, args []any) {
	c.args = len(args)
	t.clauses, t.args = append(t.clauses, c), append(t.args, args...)
}

// statementText returns the statement. Sessions send few that differ, and many times each.
func (t *together) statementText(sent *statementCache) string {
	for _, one := range sent.statements {
		if slices.Equal(one.clauses, t.clauses) {
			return one.text
		}
	}
	text := t.assembleText()
	if len(sent.statements) >= mostAssembled {
		sent.statements = nil
	}
	sent.statements = append(sent.statements, assembledStatement{t.clauses, text})
	return text
}

func (t *together) assembleText() string {
	var with, conditions []string
	before := 0
	for _, c := range t.clauses {
		text := numberedFrom(before, c.text)
		before += c.args
		switch {
		case c.name == "":
			conditions = append(conditions, text)
		case c.required:
			with = append(with, c.name+" AS ("+text+" RETURNING 1)")
			conditions = append(conditions, "EXISTS (SELECT FROM "+c.name+")")
		default:
			with = append(with, c.name+" AS ("+text+")")
		}
	}
	statement := "SELECT 1"
	if len(conditions) > 0 {
		statement = "SELECT 1 / CASE WHEN " + strings.Join(conditions, " AND ") + " THEN 1 ELSE 0 END"
	}
	if len(with) > 0 {
		statement = "WITH " + strings.Join(with, ", ") + " " + statement
	}
	return statement
}

// numberedFrom renumbers the parameters of a text that follow others.
func numberedFrom(before int, text string) string {
	return parameterNumber.ReplaceAllStringFunc(text, func(number string) string {
		n, _ := strconv.Atoi(number[1:])
		return "$" + strconv.Itoa(before+n)
	})
}

// statementCache are the texts of statements that a session has sent.
type statementCache struct{ statements []assembledStatement }

type assembledStatement struct {
	clauses []clause
	text    string
}

// mostAssembled bounds the statements whose texts a session caches. They depend on the columns
// of rows, and rows with ever new columns would fill the memory of the worker.
const mostAssembled = 16

// queueLedger adds to a batch what records the write in the ledger and moves its state. The statements fail, and with them the
// batch, if the write was made before, if its call does not hold the state, or if one of its rows is known. first has further
// conditions. follows reports that the statements also fail unless each row lies behind all known ones, which is quicker to check.
func queueLedger(batch *pgx.Batch, first *together, w *sqltool.TableWrite, session *session) (follows bool, err error) {
	if w.Note != nil {
		if w.Note.Forget > 0 {
			first.addOptional("forgotten", forgetNotes, w.Note.Call, w.Note.Forget)
		}
		first.addChange("noted", insertNote, w.Note.Call, int64(w.Note.Written), w.Note.Continuation)
	}
	if w.Operation != "" {
		first.addChange("keyed", insertKey, w.Operation, w.Fingerprint, int64(len(w.Rows)))
	}
	if w.State == nil {
		batch.Queue(first.statementText(&session.assembled), first.args...)
		return false, nil
	}
	move, args, err := sqltool.MoveStatement(dialect, w)
	if err != nil {
		return false, err
	}
	chunks := w.LookupChunks()
	if len(chunks) > 1 {
		return false, errNotAtOnce
	}
	if follows = len(chunks) == 1 && chunks[0].Follows && !session.overlapping[w.State.Name]; follows {
		first.addChange("moved", move+" AND known_to < $"+strconv.Itoa(len(args)+1), append(args, chunks[0].From)...)
		addKnown(first, &chunks[0])
	} else {
		first.addChange("moved", move+unchangedState, args...)
		for i := range chunks {
			requireUnknown(first, &chunks[i])
		}
	}
	if counts := w.AddedCounts(); len(counts) > 0 {
		first.addOptional("met", addSeen, byteaArray(counts))
	}
	batch.Queue(first.statementText(&session.assembled), first.args...)
	for i := range chunks {
		queueSweep(batch, &chunks[i])
	}
	return follows, nil
}

// addKnown records rows that sort after all known ones.
func addKnown(all *together, seen *sqltool.RowLookup) {
	single := seen.Recurring
	if seen.Block != nil {
		all.addOptional("block", sqltool.InsertBlock, seen.Block.First, seen.Block.Last, seen.Block.Hashes)
		single = seen.Rest
	}
	if len(single) > 0 {
		all.addOptional("kept", addSeen, byteaArray(single))
	}
}

// unchangedState has a state move, by the name $1, only where nobody has changed it since the statement began. What a statement that has
// waited for another write reads of known rows is from before that write.
const unchangedState = " AND xmin = (SELECT xmin FROM " + sqltool.StateTable + " WHERE name = $1)"

// noneTied is the condition that none of the hashes $1 is in the block that ends with position $2.
const noneTied = "coalesce((SELECT NOT EXISTS (SELECT FROM unnest($1::text::bytea[]) AS tied WHERE position(tied IN hashes) > 0) FROM " +
	sqltool.BlocksTable + " WHERE last_position = $2), true)"

// requireUnknown records rows as known, and fails all statements if one of them is known
// already.
func requireUnknown(all *together, seen *sqltool.RowLookup) {
	single := seen.Recurring
	switch {
	case seen.Block != nil:
		statement, args := seen.AddBlock(dialect)
		all.addChange("block", statement, args...)
		single = seen.Rest
	case seen.From != nil:
		condition, args := seen.OutsideBlocksCondition()
		all.requireCondition(condition, args...)
	}
	if len(seen.Tied) > 0 {
		all.requireCondition(noneTied, byteaArray(seen.Tied), seen.From)
	}
	if len(seen.Below) > 0 {
		all.requireCondition("NOT EXISTS ("+lookUp+")", byteaArray(seen.Below))
	}
	if len(single) > 0 {
		all.addOptional("kept", addSeen, byteaArray(single))
	}
}

// byStep reports whether a failed write at once must be repeated step by step, which gives a precise error.
func byStep(ctx context.Context, conn *pgx.Conn, err error) bool {
	var pg *pgconn.PgError
	if errors.Is(err, errNotAtOnce) {
		return true
	}
	if !errors.As(err, &pg) || ctx.Err() != nil || conn.IsClosed() || len(pg.Code) < 2 {
		return false
	}
	switch pg.Code[:2] {
	case "21", "22", "23", "42": // rows of one key, data exceptions, constraints, and what is not there or not allowed
		return conn.PgConn().TxStatus() == idleTransaction
	}
	return false
}
