package sqltool

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"reprise/activities/tool"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// defaultRejected is how many rows a call may reject without max.
const defaultRejected = 100

// rejection is where the rows of a write go that the database refuses.
type rejection struct {
	table *TableWrite // nil where such a row fails the write
	max   int
	in    interpreter.ToolInput
}

// RowRefusal is why a database refuses a row.
type RowRefusal struct{ Code, Column, Reason, Constraint string }

// RejectingTx is a transaction whose writes can be undone in part.
type RejectingTx interface {
	TableTx
	// TryPart runs a part of the transaction, which is undone if it fails.
	TryPart(ctx context.Context, part func() error) error
	// RefusalOf is why the database refuses rows of a write, nil for an error of another kind.
	RefusalOf(w *TableWrite, err error) *RowRefusal
	// CheckConstraintsNow has constraints checked at once that may be checked at the end.
	CheckConstraintsNow(ctx context.Context) error
}

func rejectedKeys() []playbook.Field {
	return []playbook.Field{
		{Name: "table", Kind: playbook.KindLiteral, Unquoted: true, Doc: "The table for rejected rows, created when it is first needed."},
		{Name: "max", Kind: playbook.KindNumber, Default: fmt.Sprint(defaultRejected), Doc: "The most rows of a call that may be rejected; with one more the sink fails."},
	}
}

// readRejected reads rejected.
func (r *rejection) readRejected(in interpreter.ToolInput) (err error) {
	fields, err := tool.MapField(in, "rejected")
	if err != nil || fields == nil {
		return err
	}
	if r.table, err = rejectedTarget(in, fields); err != nil {
		return err
	}
	r.max = defaultRejected
	if most := fields["max"]; most != nil {
		number, isNumber := most.(int)
		if !isNumber || number < 0 {
			return tool.ConfigErrorf("step %q: max of rejected must be a whole number, not %s", in.Step, expression.Text(most))
		}
		r.max = number
	}
	r.in = in
	return nil
}

// rejectedTarget returns the table of rejected rows by the fields of rejected.
func rejectedTarget(in interpreter.ToolInput, fields map[string]any) (*TableWrite, error) {
	inner := in
	inner.Fields = make(map[string]expression.Value, len(fields))
	for name, value := range fields {
		inner.Fields[name] = expression.Of(value)
	}
	table, err := ParseTarget(inner)
	if err != nil {
		return nil, tool.ConfigErrorf("step %q: rejected needs table, the name of the table for rows that the database rejects", in.Step)
	}
	return table, nil
}

// TargetTables returns the tables that a call in table mode names: the table of its rows, and the table of rejected
// rows.
func TargetTables(in interpreter.ToolInput) ([]*TableWrite, error) {
	target, err := ParseTarget(in)
	if err != nil {
		return nil, err
	}
	all, err := withTables(target, in)
	if err != nil {
		return nil, err
	}
	fields, err := tool.MapField(in, "rejected")
	if err != nil || fields == nil {
		return all, err
	}
	rejected, err := rejectedTarget(in, fields)
	return append(all, rejected), err
}

// newInserter writes the rows that the database accepts, and rejects the others into their table if there is one. fit
// are the rows that are acceptable without asking the database.
func newInserter(ctx context.Context, tx RejectingTx, w *TableWrite) (insert func(context.Context, *TableWrite) (WriteResult, error), fit *TableWrite, err error) {
	if w.table == nil && !w.lenient && !w.finding && w.where == nil {
		return tx.InsertRows, w, nil
	}
	if w.table != nil {
		if err := tx.CheckConstraintsNow(ctx); err != nil {
			return nil, nil, err
		}
	}
	r := &rejecting{tx: tx, write: w}
	fit, err = r.rejectUnfit(ctx, w)
	return r.insertRows, fit, err
}

// rejecting writes rows of which the database may refuse some.
type rejecting struct {
	tx    RejectingTx
	write *TableWrite
	made  bool
	// inTable is how many rows of the call are in the table of rejected rows, once that was created.
	inTable int64
}

// HasRejectTable reports whether rows that the database refuses have a table of their own.
func (r *rejection) HasRejectTable() bool { return r.table != nil }

// ForFindingRefusals returns the write with rows in parts where the database refuses them together, so that its error is a RefusedRowError.
func (w *TableWrite) ForFindingRefusals() *TableWrite {
	finding := *w
	finding.finding = true
	return &finding
}

// RefusedRowError is the error of a row that the database refuses by itself.
type RefusedRowError struct {
	Row int // of the call, from 1
	err error
}

func (e *RefusedRowError) Error() string { return e.err.Error() }

func (e *RefusedRowError) Unwrap() error { return e.err }

// insertRows writes rows together, and if the database refuses that, each half of them.
func (r *rejecting) insertRows(ctx context.Context, w *TableWrite) (written WriteResult, err error) {
	if len(w.Rows) == 0 {
		return written, nil
	}
	err = r.tx.TryPart(ctx, func() (err error) {
		written, err = r.tx.InsertRows(ctx, w)
		return err
	})
	refusal := r.tx.RefusalOf(w, err)
	switch {
	case err == nil:
		return written, nil
	case refusal == nil, w.table == nil && !w.lenient && !w.finding && refusal.Constraint != whereCheck:
		return WriteResult{}, err
	case len(w.Rows) == 1 && w.finding && !w.lenient && refusal.Constraint != whereCheck:
		return WriteResult{}, &RefusedRowError{w.OriginalNumber(0), err}
	case len(w.Rows) == 1:
		return WriteResult{}, r.refuseRow(ctx, w, refusal)
	}
	half := len(w.Rows) / 2
	written, err = r.insertRows(ctx, w.partOfRows(0, half))
	if err != nil {
		return WriteResult{}, err
	}
	more, err := r.insertRows(ctx, w.partOfRows(half, len(w.Rows)))
	return written.Plus(more), err
}

// refuseRow deals with a row that the database refuses.
func (r *rejecting) refuseRow(ctx context.Context, w *TableWrite, why *RowRefusal) error {
	switch {
	case why.Constraint == whereCheck:
		return w.outsideError(0)
	case w.lenient:
		return nil
	}
	return r.rejectRow(ctx, w, why)
}

// partOfRows are some of the rows.
func (w *TableWrite) partOfRows(from, to int) *TableWrite {
	rows := make([]int, 0, to-from)
	for i := from; i < to; i++ {
		rows = append(rows, i)
	}
	return w.pickRows(rows)
}

// rejectedColumns are the columns of the table, the key first.
var rejectedColumns = []string{"operation_key", "row", "run", "step", "visit", "index", "page", "column", "sqlstate", "reason", "value", "at"}

// rejectRow writes a row to the table of rejected rows, once.
func (r *rejecting) rejectRow(ctx context.Context, w *TableWrite, why *RowRefusal) error {
	if err := r.makeTable(ctx, w); err != nil {
		return err
	}
	served := w.served[w.OriginalNumber(0)]
	if served == nil {
		served = inBase64(withoutOwn(w.Rows[0]))
	}
	row, err := expression.Encode(served)
	if err != nil {
		return err
	}
	in, table := w.in, w.table.QuotedTable()
	operation, number, path := w.rowIdentity(w.OriginalNumber(0))
	reason := strings.ReplaceAll(why.Reason, "\x00", `\u0000`)
	if path != "" {
		reason = path + ": " + reason
	}
	var index any
	if in.Index != nil {
		index = indexOf(in)
	}
	added, err := r.tx.Exec(ctx, "INSERT INTO "+table+" ("+QuoteNames(rejectedColumns)+") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, "+
		r.tx.Dialect().Now+") ON CONFLICT DO NOTHING", operation, int64(number), runOf(in), in.Step, int64(in.Visit), index, int64(in.Page),
		why.Column, why.Code, reason, string(row))
	if err != nil {
		return err
	}
	r.write.leftOut.RejectedRows++
	r.write.refused = append(r.write.refused, w.OriginalNumber(0))
	if r.inTable += added; r.inTable <= int64(w.max) {
		return nil
	}
	return &tool.Error{
		Kind: interpreter.KindTool, Class: interpreter.ClassFinal, Type: "rejected",
		Message: fmt.Sprintf("the database rejected more than %d rows of the call (rejected.max), so this write was rolled back; %s: %s",
			w.max, w.RowText(w.OriginalNumber(0)), why.Reason),
	}
}

// makeTable makes the table, once, and counts the rows that it has of the call.
func (r *rejecting) makeTable(ctx context.Context, w *TableWrite) error {
	if r.made {
		return nil
	}
	r.made = true
	table := w.table
	columns, err := r.tx.ReadColumns(ctx, table)
	if err != nil {
		return err
	}
	if len(columns) == 0 {
		definitions := "operation_key text NOT NULL, " + quoteName("row") + " bigint NOT NULL, run text NOT NULL, " +
			"step text NOT NULL, visit bigint NOT NULL, " + quoteName("index") + " bigint, page bigint NOT NULL, " + quoteName("column") +
			" text, sqlstate text, reason text NOT NULL, value text NOT NULL, at " + r.tx.Dialect().Time + " NOT NULL, PRIMARY KEY (operation_key, " + quoteName("row") + ")"
		table.changes = []interpreter.DDL{table.createTable(definitions)}
		if err := table.makeSchema(ctx, r.tx, nil); err != nil {
			return err
		}
		if err := r.tx.ChangeSchema(ctx, table, func() error { return table.runStatements(ctx, r.tx, table.changes) }); err != nil {
			return err
		}
	}
	for _, column := range rejectedColumns {
		if len(columns) > 0 && !slices.ContainsFunc(columns, func(c Column) bool { return c.Name == column }) {
			return tool.Errorf("table %q of rejected has no column %q, so it was not made for rejected rows; use a name that does not exist yet, and the sink creates the table", table.Shown, column)
		}
	}
	if _, err = r.tx.ReadColumns(ctx, w); err != nil { // a transaction knows one table
		return err
	}
	in := w.in
	return r.tx.Query(ctx, "SELECT count(*) FROM "+table.QuotedTable()+" WHERE run = $1 AND step = $2 AND visit = $3 AND coalesce("+quoteName("index")+", -1) = $4",
		[]any{runOf(in), in.Step, int64(in.Visit), indexOf(in)}, func(scan func(...any) error) error { return scan(&r.inTable) })
}

func runOf(in interpreter.ToolInput) string {
	if in.ControlID != "" {
		return in.ControlID
	}
	return in.RunID
}

func indexOf(in interpreter.ToolInput) int64 {
	if in.Index == nil {
		return -1
	}
	return int64(*in.Index)
}
