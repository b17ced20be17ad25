package postgres

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"reprise/activities/sqltool"
	"reprise/activities/tool"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
)

// copyRows is from how many rows on a temporary table is faster, if COPY cannot write to the table
// itself.
const copyRows = 1000

// writeTable writes all rows in one transaction. One that the server has undone because of others (serialization_failure,
// deadlock_detected) is made again.
func writeTable(ctx context.Context, conn *pgx.Conn, w *sqltool.TableWrite) (interpreter.ToolResult, error) {
	if w.IsNeeded() || w.State != nil || w.IsStaged() {
		if err := checkOwners(ctx, conn); err != nil {
			return interpreter.ToolResult{}, classifyError(ctx, err)
		}
	}
	result, err := sqltool.RetryCollisions(ctx, func() (interpreter.ToolResult, error) { return writeRows(ctx, conn, w) },
		func(err error) bool { return isSQLState(err, "40001", "40P01") })
	if err != nil {
		return interpreter.ToolResult{}, tableError(ctx, w, err)
	}
	return result, nil
}

// writeRows writes all rows in one transaction. It creates a missing ledger once.
func writeRows(ctx context.Context, conn *pgx.Conn, w *sqltool.TableWrite) (interpreter.ToolResult, error) {
	result, err := writeAtOnce(ctx, conn, w)
	if byStep(ctx, conn, err) {
		result, err = writeOnce(ctx, conn, w, !isKnownRowConflict(err))
	}
	if lacksLedger(err) && (w.IsNeeded() || w.State != nil || w.IsStaged()) {
		if err = createLedger(ctx, conn, w.State != nil, w.IsStaged()); err == nil {
			result, err = writeOnce(ctx, conn, w, true)
		}
	}
	if isSQLState(err, "21000") { // cardinality_violation: rows of one key, which their texts do not show
		w = w.WithRepeatedKeys()
		result, err = writeOnce(ctx, conn, w, true)
	}
	if isKnownRowConflict(err) {
		result, err = writeOnce(ctx, conn, w, false)
	}
	if errors.Is(err, errKeyed) {
		result, err = writeOnce(ctx, conn, w.WithoutState(), false)
	}
	if w.Note != nil && refusesNotes(err) {
		return interpreter.ToolResult{Unnotable: true}, nil
	}
	if lacksRow(w, err) {
		if found, second := writeOnce(ctx, conn, w.ForFindingRefusals(), false); second == nil || errors.As(second, new(*sqltool.RefusedRowError)) {
			result, err = found, second
		}
	}
	return result, err
}

// lacksRow reports whether rows were refused by an error that does not say which one it is about.
func lacksRow(w *sqltool.TableWrite, err error) bool {
	var pg *pgconn.PgError
	w = sqltool.FailedWrite(w, err)
	return errors.As(err, &pg) && len(w.Rows) > 1 && !w.HasRejectTable() && isRefusal(pg) && placeOf(w, err, pg).row == 0
}

// isRefusal reports whether an error is about rows.
func isRefusal(pg *pgconn.PgError) bool {
	return slices.ContainsFunc(refusedStates, func(state string) bool { return strings.HasPrefix(pg.Code, state) })
}

// writeOnce makes the write in a transaction, and in another one if the table is not as it was described before.
func writeOnce(ctx context.Context, conn *pgx.Conn, w *sqltool.TableWrite, allNew bool) (interpreter.ToolResult, error) {
	result, err := writeInTransaction(ctx, conn, w, allNew)
	session := sessionOf(conn)
	changed := errors.Is(err, errChanged)
	if changed {
		session.tables = nil
	}
	if changed || errors.Is(err, errUnprepared) || session.prepared.forgetLost(ctx, conn, err) {
		result, err = writeInTransaction(ctx, conn, w, allNew)
	}
	return result, err
}

// writeInTransaction makes the write. allNew assumes that no row is known.
func writeInTransaction(ctx context.Context, conn *pgx.Conn, w *sqltool.TableWrite, allNew bool) (interpreter.ToolResult, error) {
	if len(w.Rows) == 0 && w.Note == nil && w.State == nil && !w.IsStaged() {
		return sqltool.RowsAffected(0), nil
	}
	result, err := transactWrite(ctx, conn, w, allNew, w.NeedsExclusiveTable())
	if errors.Is(err, sqltool.ErrShared) {
		sessionOf(conn).tables = nil
		result, err = transactWrite(ctx, conn, w, allNew, true)
	}
	return result, err
}

// transactWrite makes the write in a transaction that shares the name of its table with other writes, or has it alone.
func transactWrite(ctx context.Context, conn *pgx.Conn, w *sqltool.TableWrite, allNew, alone bool) (result interpreter.ToolResult, err error) {
	err = pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{BeginQuery: beginOf(w, alone)}, func(tx pgx.Tx) error {
		table := &tableTx{stateTx: stateTx{tx}, session: sessionOf(conn), alone: alone}
		if err := table.lockAlone(ctx, w); err != nil {
			return err
		}
		if err := table.recallTables(ctx, w); err != nil {
			return err
		}
		found, err := sqltool.FindNested(ctx, table, w)
		var settled *sqltool.TableWrite
		if err == nil {
			settled, err = sqltool.SettleWrite(ctx, table, found)
		}
		switch {
		case err != nil && table.unchecked != "":
			return errChanged // maybe
		case err != nil:
			return err
		}
		rest := settled
		if w.IsNeeded() || w.State != nil {
			var done bool
			if result, rest, done, err = enterLedger(ctx, table, settled, allNew); done || err != nil {
				return err
			}
		} else if err := table.checkRemembered(ctx, w); err != nil {
			return err
		}
		if len(rest.Rows) < len(settled.Rows) {
			if err := rest.RecountRows(ctx, table, len(rest.Rows)); err != nil {
				return err
			}
		}
		written, rest, err := sqltool.StoreRows(ctx, table, w, rest)
		if err != nil {
			return err
		}
		result = rest.ToolResult(written)
		return nil
	})
	if errors.Is(err, errNoted) {
		err = nil
	}
	return result, err
}

// Statements that begin a transaction which changes something. PostgreSQL ends it once it has been idle for 10 s, so that a
// worker that freezes within one, or whose host is lost, does not keep its locks. In one message with begin, that needs no round
// trip of its own.
const (
	endIdle        = "; SET LOCAL idle_in_transaction_session_timeout = '10s'"
	beginWrite     = "begin" + endIdle
	beginCommitted = "begin isolation level read committed" + endIdle
)

var writeOptions = pgx.TxOptions{BeginQuery: beginWrite}

// tableTx is a transaction for the rows of a table.
type tableTx struct {
	stateTx
	// alone says that no other write uses the table.
	alone  bool
	target target // see ReadColumns
	// session remembers tables, nil for none. unchecked is the version of the one that was not described here.
	session   *session
	described bool
	unchecked string
	// tables are the descriptions of tables that the transaction has read; it drops them when it changes a table.
	// changing says that it is changing one now.
	tables   map[string]tableDescription
	changing bool
	// unread are tables that no other load reads, by their quoted names: until the transaction ends, none can begin to.
	unread map[string]bool
	// returned are the keys of the rows that an insertion has written, for writes that need to know them.
	returned []string
}

// DeleteRows deletes rows by their keys.
func (t *tableTx) DeleteRows(ctx context.Context, w *sqltool.TableWrite) (int64, error) {
	statement := "DELETE FROM " + w.QuotedTable() + " AS " + thereName + " USING " + givenKeys(w) +
		" WHERE " + sqltool.SameKey(w.Key, givenName, thereName) + " AND " + w.NotOlder(givenName, thereName)
	var deleted int64
	err := sendRows(onlyColumns(w.DeleteColumns(), w.Deletes), encodeChunk, func(parameters []any) error {
		tag, err := t.tx.Exec(ctx, statement, parameters...)
		deleted += tag.RowsAffected()
		return err
	})
	return deleted, err
}

// InsertRows writes rows by the fastest method for their number and their table. Every method writes the same values.
func (t *tableTx) InsertRows(ctx context.Context, w *sqltool.TableWrite) (sqltool.WriteResult, error) {
	t.returned = nil
	written, err := t.insertRows(ctx, w)
	if err == nil && w.ReportsRows() && len(w.Rows) > 0 {
		err = t.skipUnwritten(ctx, w)
	}
	if err != nil {
		return written, placeInRow(w, err)
	}
	return written.OfRows(w), nil
}

func (t *tableTx) insertRows(ctx context.Context, w *sqltool.TableWrite) (written sqltool.WriteResult, err error) {
	if len(w.Rows) == 0 {
		return written, nil
	}
	if err := w.RefuseNoBytes(); err != nil {
		return written, err
	}
	if !t.target.plain && len(w.MissingColumns()) > 0 { // it may have other defaults than those below it
		for _, part := range w.SplitRuns() {
			one, err := t.insertRows(ctx, part)
			if written = written.Plus(one); err != nil {
				return written, err
			}
		}
		return written, nil
	}
	insertion := t.insertionOf(w, t.textForms(w))
	switch {
	case insertion.forms != nil && insertion.isDirect() && t.target.copyable:
		copied, err := copyFrom(ctx, t.tx, w.QuotedTable(), insertion)
		return sqltool.AffectedResult(copied), err
	case insertion.forms != nil && t.target.tempAllowed && len(w.Rows) >= copyRows:
		return copyBeside(ctx, t.tx, insertion)
	}
	if err := refuseNUL(w); err != nil { // which COPY does row by row
		return written, err
	}
	statement, encode := insertion.parameterStatement()
	err = sendRows(w.Rows, encode, func(parameters []any) error {
		batch := &pgx.Batch{}
		insertion.queueStatement(batch, statement, parameters, func(one sqltool.WriteResult) { written = written.Plus(one) })
		return t.sendBatch(ctx, batch)
	})
	return written, err
}

// textForms returns the forms of the columns of a write, nil where its values cannot travel as text.
func (t *tableTx) textForms(w *sqltool.TableWrite) []columnForm {
	forms := t.target.formsOf(w.Columns)
	if forms != nil && !canCopyAsText(w, forms) {
		return nil
	}
	return forms
}

// copyBeside copies the rows to a temporary table, and inserts them from there.
func copyBeside(ctx context.Context, tx pgx.Tx, i *insertion) (written sqltool.WriteResult, err error) {
	const name = "reprise_rows"
	const beside = "pg_temp." + name
	columns := sqltool.QuoteNames(i.write.Columns)
	for at := range i.partial {
		columns += ", true AS " + hasColumn(at)
	}
	if _, err := tx.Exec(ctx, "CREATE TEMPORARY TABLE "+name+" AS SELECT "+columns+" FROM "+i.write.QuotedTable()+" WITH NO DATA"); err != nil {
		return written, err
	}
	if _, err := copyFrom(ctx, tx, beside, i); err != nil {
		return written, err
	}
	batch := &pgx.Batch{}
	i.queueStatement(batch, i.tableStatement(beside), nil, func(done sqltool.WriteResult) { written = done })
	batch.Queue("DROP TABLE " + beside) // a transaction may write in parts
	err = tx.SendBatch(ctx, batch).Close()
	return written, err
}

// changeLock is the common first half of the advisory locks under which tables are changed.
const changeLock = 0x72657072

// changeWait is how long a change waits for other transactions.
const changeWait = "5s"

// LacksSchema reports whether the schema is missing. CREATE SCHEMA IF NOT EXISTS needs the right to create one even
// if it exists, and fails if another transaction creates it at the same time.
func (t *tableTx) LacksSchema(ctx context.Context, w *sqltool.TableWrite) (lacks bool, err error) {
	const (
		find = "SELECT NOT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1)"
		lock = "SELECT pg_advisory_xact_lock($1, hashtext($2))"
	)
	schema := w.Table[len(w.Table)-2]
	if err = t.tx.QueryRow(ctx, find, schema).Scan(&lacks); err != nil || !lacks {
		return false, err
	}
	if _, err := t.Exec(ctx, lock, int32(changeLock), schema+"."); err != nil {
		return false, err
	}
	err = t.tx.QueryRow(ctx, find, schema).Scan(&lacks)
	return lacks, err
}

// RequireAlone returns an error of a write that shares its table with others: it is made again alone.
func (t *tableTx) RequireAlone() error {
	if t.alone {
		return nil
	}
	return sqltool.ErrShared
}

// ChangeSchema changes the schema of a table. Other transactions that change a table of that name
// wait until this one has ended.
func (t *tableTx) ChangeSchema(ctx context.Context, w *sqltool.TableWrite, change func() error) error {
	if err := t.RequireAlone(); err != nil {
		return err
	}
	t.tables, t.changing = nil, true
	defer func() { t.changing = false }()
	return t.waitShortly(ctx, func() error {
		if _, err := t.Exec(ctx, "SELECT pg_advisory_xact_lock($1, hashtext($2))", int32(changeLock), w.Table[len(w.Table)-1]); err != nil {
			return err
		}
		return change()
	})
}

// waitShortly runs a part of the transaction whose statements wait only so long for locks of other
// transactions.
func (t *tableTx) waitShortly(ctx context.Context, part func() error) error {
	var before string
	if err := t.tx.QueryRow(ctx, "SELECT current_setting('lock_timeout')").Scan(&before); err != nil {
		return err
	}
	const set = "SELECT set_config('lock_timeout', $1, true)"
	if _, err := t.Exec(ctx, set, changeWait); err != nil {
		return err
	}
	if err := part(); err != nil {
		return err
	}
	_, err := t.Exec(ctx, set, before)
	return err
}

// FindMisfits finds out by the database's own reading of values.
func (t *tableTx) FindMisfits(ctx context.Context, w *sqltool.TableWrite, column sqltool.Column, values []any) ([]int, error) {
	rows := lists.Map(values, func(value any) any { return map[string]any{column.Name: value} })
	encoded, err := expression.Encode(rows)
	if err != nil {
		return nil, tool.Errorf("column %q cannot be written as JSON: %w", column.Name, err)
	}
	err = pgx.BeginFunc(ctx, t.tx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "SELECT count("+sqltool.QuoteNames([]string{column.Name})+") FROM json_populate_recordset(NULL::"+w.QuotedTable()+
			", $1::text::json)", string(encoded))
		return err
	})
	switch {
	case err == nil:
		return nil, nil
	case !refusesValue(err):
		return nil, err
	case len(values) == 1:
		return []int{0}, nil
	}
	half := len(values) / 2
	first, err := t.FindMisfits(ctx, w, column, values[:half])
	if err != nil {
		return nil, err
	}
	second, err := t.FindMisfits(ctx, w, column, values[half:])
	for i := range second {
		second[i] += half
	}
	return append(first, second...), err
}

// refusesValue reports whether an error says that a value does not fit a type: data exceptions,
// and constraints of domains.
func refusesValue(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (strings.HasPrefix(pg.Code, "22") || strings.HasPrefix(pg.Code, "23"))
}

// TryPart makes a part of the transaction.
func (t *tableTx) TryPart(ctx context.Context, part func() error) error {
	err := pgx.BeginFunc(ctx, t.tx, func(pgx.Tx) error { return part() })
	if err != nil {
		t.tables = nil // it may have changed one
	}
	return err
}

// CheckConstraintsNow has deferred constraints checked with each statement.
func (t *tableTx) CheckConstraintsNow(ctx context.Context) error {
	_, err := t.Exec(ctx, "SET CONSTRAINTS ALL IMMEDIATE")
	return err
}

// refusedStates are the SQLSTATE classes of rows that are refused: data exceptions, constraints,
// views with a check, and errors that functions raise; and a row too large for an index.
var refusedStates = []string{"22", "23", "44", "P0001", "54000"}

// RefusalOf is why the server refuses rows, or why they cannot be sent to it.
func (t *tableTx) RefusalOf(w *sqltool.TableWrite, err error) *sqltool.RowRefusal {
	var (
		pg     *pgconn.PgError
		own    *tool.Error
		unsent *unsendableError
		no     *sqltool.NoBytesError
	)
	switch {
	case errors.As(err, &pg):
		if !isRefusal(pg) {
			return nil
		}
		reason := pg.Message
		if pg.Detail != "" {
			reason += "; " + pg.Detail
		}
		return &sqltool.RowRefusal{Code: pg.Code, Column: placeOfError(w, pg).column, Reason: reason, Constraint: pg.ConstraintName}
	case errors.As(err, &own) && own.Kind == interpreter.KindTool && own.Class == interpreter.ClassFinal && !own.Final:
		const untranslatable, invalidText = "22P05", "22P02" // texts that cannot be sent, or are no values of their types
		refusal := &sqltool.RowRefusal{Code: untranslatable, Reason: own.Message}
		if errors.As(err, &unsent) {
			refusal.Column = unsent.column
		}
		if errors.As(err, &no) {
			refusal.Code, refusal.Column = invalidText, no.Column
		}
		return refusal
	}
	return nil
}

// tableError adds the table, column and row to the server's error.
func tableError(ctx context.Context, w *sqltool.TableWrite, err error) error {
	converted := classifyError(ctx, err)
	w = sqltool.FailedWrite(w, err)
	var own *tool.Error
	if !errors.As(converted, &own) {
		return converted
	}
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		own.Message = w.DescribeAction() + placeOf(w, err, pg).placeText(w) + own.Message
		if pg.Detail != "" {
			own.Message += "; " + pg.Detail
		}
		if w.IsStaged() {
			own.Message = w.InWordsOfTarget(own.Message)
			if pg.Code == "42501" { // insufficient_privilege
				own.Message += "; rows are staged in a separate table before they are published: the user needs CREATE on its schema, and SELECT, INSERT, UPDATE and DELETE on the table"
			}
		}
		if pg.Code == "42501" && w.MakesSchema() {
			own.Message += "; the user needs CREATE on the database to create the schema: grant it, or create the schema first and grant the user CREATE and USAGE on it"
		}
		if pg.Code == "42P10" {
			own.Message += "; " + sqltool.NeededIndex(w)
		}
	}
	return own
}

// placedError is an error with the place in the rows of the call that it is about.
type placedError struct {
	error

	place errorPlace
}

func (e *placedError) Unwrap() error { return e.error }

// placeInRow adds the place to an error of the server.
func placeInRow(w *sqltool.TableWrite, err error) error {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return err
	}
	return &placedError{err, placeOfError(w, pg)}
}

// placeOf returns the place that an error of a write is about.
func placeOf(w *sqltool.TableWrite, err error, pg *pgconn.PgError) (place errorPlace) {
	var (
		at      *placedError
		refused *sqltool.RefusedRowError
	)
	if errors.As(err, &at) {
		place = at.place
	} else {
		place = placeOfError(w, pg) // of a constraint that is checked at the end
	}
	if errors.As(err, &refused) && place.row == 0 {
		place.row = refused.Row
	}
	return place
}

// copyPlace matches where COPY names the place of an error, in the language of the server.
var copyPlace = regexp.MustCompile(`(?m)^COPY .+?, \S+ (\d+)(?:, \S+ (.*)|:.*)?$`)

// errorPlace names the place of a server's error, if the server does.
type errorPlace struct {
	row    int    // of the call, from 1; 0 where it is not known
	column string // "" where it is not known
}

// placeText returns the place as the head of a message.
func (p errorPlace) placeText(w *sqltool.TableWrite) string {
	switch {
	case p.row > 0 && p.column != "":
		return fmt.Sprintf("%s, column %q: ", w.RowText(p.row), p.column)
	case p.row > 0:
		return w.RowText(p.row) + ": "
	case p.column != "":
		return fmt.Sprintf("column %q: ", p.column)
	}
	return ""
}

// placeOfError finds the row and the column that the server's error is about: by the line of
// COPY, by the column, by a value, or by both.
func placeOfError(w *sqltool.TableWrite, pg *pgconn.PgError) errorPlace {
	if place := copyPlace.FindStringSubmatch(pg.Where); place != nil {
		if line, err := strconv.Atoi(place[1]); err == nil && line > 0 && line <= len(w.Rows) {
			return errorPlace{row: w.OriginalNumber(line - 1), column: copiedColumn(w, pg, line-1, place[2])}
		}
	}
	if place := placeOfKey(w, pg); place.row > 0 {
		return place
	}
	for i := range w.Rows {
		if column := columnOfError(w, pg, i); column != "" {
			return errorPlace{row: w.OriginalNumber(i), column: column}
		}
	}
	return errorPlace{column: pg.ColumnName}
}

// keyOfDetail is the key that the detail of an error is about, in any language of the server: (a, b)=(1, x).
var keyOfDetail = regexp.MustCompile(`\((.+?)\)=\((.+)\)`)

// placeOfKey finds a row by the key that the error's detail has. The last of those with a key that should be unique is one
// too many.
func placeOfKey(w *sqltool.TableWrite, pg *pgconn.PgError) (place errorPlace) {
	const notPresent, separator = "23503", ", "
	key := keyOfDetail.FindStringSubmatch(pg.Detail)
	if key == nil || pg.TableName != w.Table[len(w.Table)-1] {
		return place
	}
	columns, values := []string{key[1]}, []string{key[2]}
	if strings.Contains(key[1], separator) {
		columns, values = strings.Split(key[1], separator), strings.Split(key[2], separator)
	}
	for i, row := range w.Rows {
		same := len(columns) == len(values)
		for at := 0; same && at < len(columns); at++ {
			value := row[strings.Trim(columns[at], `"`)]
			same = value != nil && expression.Text(value) == values[at]
		}
		if !same {
			continue
		}
		place.row = w.OriginalNumber(i)
		if len(columns) == 1 {
			place.column = strings.Trim(columns[0], `"`)
		}
		if pg.Code == notPresent {
			break
		}
	}
	return place
}

// copiedColumn returns the column in which COPY has met an error. copied is the server's text about it: its
// name, and maybe the value.
func copiedColumn(w *sqltool.TableWrite, pg *pgconn.PgError, row int, copied string) string {
	column := columnOfError(w, pg, row)
	for _, name := range w.Columns {
		if copied == name || strings.HasPrefix(copied, name+": ") {
			column = name
		}
	}
	return column
}

// columnOfError returns the column of a row that an error fits, "" for none.
func columnOfError(w *sqltool.TableWrite, pg *pgconn.PgError, row int) string {
	const notNull = "23502"
	for _, column := range suspectColumns(w, pg) {
		value, given := w.Rows[row][column]
		if pg.Code == notNull && value == nil ||
			pg.Code != notNull && given && strings.Contains(pg.Message, `"`+expression.Text(value)+`"`) {
			return column
		}
	}
	return ""
}

// suspectColumns returns the columns that an error may be about: the one it names, else those of a type that its message
// names, else all. Other columns may contain the refused value too.
func suspectColumns(w *sqltool.TableWrite, pg *pgconn.PgError) []string {
	if pg.ColumnName != "" {
		return lists.Filter(w.Columns, func(column string) bool { return column == pg.ColumnName })
	}
	named := lists.Filter(w.Columns, func(column string) bool {
		name := limitsOfType.ReplaceAllString(w.TypeOf(column), "")
		return name != "" && (strings.HasSuffix(pg.Message, " "+name) || strings.Contains(pg.Message, " "+name+`: "`))
	})
	if len(named) > 0 {
		return named
	}
	return w.Columns
}

// limitsOfType are the limits in the name of a type, which messages leave out: numeric(8,2).
var limitsOfType = regexp.MustCompile(`\([^)]*\)`)
