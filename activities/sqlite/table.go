package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	sqlite "modernc.org/sqlite"
	codes "modernc.org/sqlite/lib"

	"reprise/activities/sqltool"
	"reprise/activities/tool"
	"reprise/interpreter"
	"reprise/interpreter/lists"
)

// writeTable writes all rows in one transaction, and repeats it if others have locked the file.
func (f *database) writeTable(ctx context.Context, w *sqltool.TableWrite) (interpreter.ToolResult, error) {
	if len(w.Rows) == 0 && w.Note == nil && w.State == nil && !w.IsStaged() {
		return sqltool.RowsAffected(0), nil
	}
	return sqltool.RetryCollisions(ctx, func() (interpreter.ToolResult, error) { return f.writeOnce(ctx, w) }, isLocked)
}

// isLocked reports whether others have locked the file.
func isLocked(err error) bool {
	var locked *sqlite.Error
	if !errors.As(err, &locked) {
		return false
	}
	code := primaryCode(locked.Code())
	return code == codes.SQLITE_BUSY || code == codes.SQLITE_LOCKED
}

func (f *database) writeOnce(ctx context.Context, w *sqltool.TableWrite) (result interpreter.ToolResult, err error) {
	err = f.useConnection(ctx, true, func(conn *guardedConn) error {
		return conn.runTransaction(ctx, beginWriting, func() (commit bool, err error) {
			if err := tool.BeginAttempt(ctx); err != nil {
				return false, err
			}
			if result, err = writeTable(ctx, conn, w); err != nil {
				return false, writeError(w, err)
			}
			return result.Noted == nil, nil // what was noted before was written before
		})
	})
	if err != nil {
		return interpreter.ToolResult{}, err
	}
	return result, nil
}

func writeTable(ctx context.Context, conn *guardedConn, w *sqltool.TableWrite) (interpreter.ToolResult, error) {
	table, planned := &tableTx{stateTx: stateTx{conn}, known: conn.tables}, w
	w, err := sqltool.FindNested(ctx, table, w)
	if err == nil {
		w, err = sqltool.SettleWrite(ctx, table, w)
	}
	if err != nil {
		return interpreter.ToolResult{}, err
	}
	ledger := &ledger{conn: conn}
	if w.IsNeeded() {
		result, done, err := ledger.enterWrite(ctx, w)
		if done || err != nil {
			return result, err
		}
	}
	if w.State != nil {
		err := ledger.moveState(ctx, w)
		if err != nil {
			return interpreter.ToolResult{}, err
		}
		if w, err = ledger.newRows(ctx, w); err != nil {
			return interpreter.ToolResult{}, err
		}
	}
	if w.IsStaged() {
		if err := createTables(ctx, conn, dialect.StagingTables()...); err != nil {
			return interpreter.ToolResult{}, err
		}
	}
	written, w, err := sqltool.StoreRows(ctx, table, planned, w)
	if err != nil {
		return interpreter.ToolResult{}, err
	}
	return w.ToolResult(written), nil
}

// tableTx is a transaction for the rows of a table.
type tableTx struct {
	stateTx
	// known are the columns that earlier transactions have read, for the first question of this one; nil
	// afterwards, as the transaction may change the table.
	known *knownColumns
}

// DeleteRows deletes rows by their keys.
func (t tableTx) DeleteRows(ctx context.Context, w *sqltool.TableWrite) (deleted int64, err error) {
	columns := w.DeleteColumns()
	marks := strings.TrimSuffix(strings.Repeat("?, ", len(columns)), ", ")
	statement := "WITH " + givenName + " (" + sqltool.QuoteNames(columns) + ") AS (VALUES (" + marks + ")) DELETE FROM " +
		w.QuotedTable() + " AS " + thereName + " WHERE (" + sqltool.QuoteNames(w.Key) + ") = (SELECT " + sqltool.QuoteNames(w.Key) + " FROM " + givenName +
		") AND EXISTS (SELECT 1 FROM " + givenName + " WHERE " + w.NotOlder(givenName, thereName) + ")"
	for _, row := range w.Deletes {
		values := lists.Map(columns, func(column string) any { return columnValue(row[column], w.TypeOf(column)) })
		n, err := t.Exec(ctx, statement, values...)
		if err != nil {
			return 0, err
		}
		deleted += n
	}
	return deleted, nil
}

// LacksSchema gives false: the schemas of SQLite are files.
func (tableTx) LacksSchema(context.Context, *sqltool.TableWrite) (bool, error) { return false, nil }

// SplitPasses splits a write further: a statement writes rows with the same columns.
func (tableTx) SplitPasses(_ context.Context, w *sqltool.TableWrite) (passes []*sqltool.TableWrite, _ error) {
	if !w.UpdatesRows() || !w.MayRepeatKeys() {
		return w.SplitRuns(), nil
	}
	for _, pass := range w.PassesOf(w.KeyNumbers()) {
		passes = append(passes, pass.SplitRuns()...)
	}
	return passes, nil
}

// ChangeSchema changes the table. The transaction has the file to itself.
func (tableTx) ChangeSchema(_ context.Context, _ *sqltool.TableWrite, change func() error) error {
	return change()
}

// FindMisfits decides by the declared type of the column.
func (t tableTx) FindMisfits(_ context.Context, _ *sqltool.TableWrite, column sqltool.Column, values []any) (misfits []int, _ error) {
	kind := t.Dialect().KindOf(column.Type)
	for i, value := range values {
		if !kind.HoldsDeclared(value) || sqltool.RoundsDeclared(column.Type, value) {
			misfits = append(misfits, i)
		}
	}
	return misfits, nil
}

// TryPart makes a part of the transaction.
func (t tableTx) TryPart(ctx context.Context, part func() error) error {
	const name = "reprise_part"
	if _, err := t.Exec(ctx, "SAVEPOINT "+name); err != nil {
		return err
	}
	err := part()
	if err != nil {
		if _, undone := t.Exec(ctx, "ROLLBACK TO "+name); undone != nil { // ON CONFLICT ROLLBACK has ended the transaction
			return tool.Errorf("%v; it has undone the whole transaction: %v", err, undone)
		}
	}
	_, released := t.Exec(ctx, "RELEASE "+name)
	return errors.Join(err, released)
}

// CheckConstraintsNow does nothing: SQLite checks its constraints with each statement.
func (tableTx) CheckConstraintsNow(context.Context) error { return nil }

// RefusalOf is why SQLite refuses rows.
func (tableTx) RefusalOf(_ *sqltool.TableWrite, err error) *sqltool.RowRefusal {
	var (
		refused *sqlite.Error
		rounded *roundedError
		noBytes *sqltool.NoBytesError
	)
	if errors.As(err, &noBytes) {
		return &sqltool.RowRefusal{Code: "SQLITE_MISMATCH", Column: noBytes.Column, Reason: noBytes.Error()}
	}
	if errors.As(err, &rounded) {
		return &sqltool.RowRefusal{Code: "SQLITE_MISMATCH", Column: rounded.column, Reason: rounded.Error()}
	}
	if !errors.As(err, &refused) {
		return nil
	}
	switch primaryCode(refused.Code()) {
	case codes.SQLITE_CONSTRAINT, codes.SQLITE_MISMATCH, codes.SQLITE_TOOBIG:
		_, constraint, _ := strings.Cut(refused.Error(), "CHECK constraint failed: ")
		constraint, _, _ = strings.Cut(constraint, " ")
		return &sqltool.RowRefusal{Code: kindOfCode(refused.Code()).name, Reason: refused.Error(), Constraint: constraint}
	}
	return nil
}

// ReadColumns returns the table's columns in order, none if the table does not exist.
func (t *tableTx) ReadColumns(ctx context.Context, w *sqltool.TableWrite) ([]sqltool.Column, error) {
	if known := t.known; known != nil {
		t.known = nil
		return known.columnsOf(ctx, t, w)
	}
	return readColumns(ctx, t, w)
}

func readColumns(ctx context.Context, tx sqltool.StateTx, w *sqltool.TableWrite) (columns []sqltool.Column, err error) {
	const describe = `SELECT name, type, hidden IN (2, 3), "notnull" AND dflt_value IS NULL AND hidden = 0,
		(SELECT sql FROM sqlite_schema AS s WHERE s.type = 'table' AND lower(s.name) = lower(?1))
		FROM pragma_table_xinfo(%s) WHERE hidden <> 1` // 2 and 3 are generated
	query, args := fmt.Sprintf(describe, "?1"), []any{w.Table[len(w.Table)-1]}
	if len(w.Table) > 1 {
		query, args = fmt.Sprintf(describe, "?1, ?2"), append(args, w.Table[0])
	}
	err = tx.Query(ctx, query, args, func(scan func(...any) error) error {
		var (
			column sqltool.Column
			create sql.NullString
		)
		err := scan(&column.Name, &column.Type, &column.ReadOnly, &column.Required, &create)
		column.Bytes = sqltool.BytesOfDeclared(column.Type)
		column.DeletesOthers = conflictReplaces.MatchString(create.String)
		columns = append(columns, column)
		return err
	})
	if err != nil {
		return nil, err
	}
	if compared := sqltool.ComparedColumns(w); len(compared) > 0 && len(columns) > 0 {
		there := lists.Filter(compared, func(name string) bool {
			return slices.ContainsFunc(columns, func(c sqltool.Column) bool { return c.Name == name })
		})
		collations, err := collationsOf(ctx, tx, w.QuotedTable(), there)
		for i := range columns {
			columns[i].Collation = collations[columns[i].Name]
		}
		return columns, err
	}
	return columns, nil
}

// conflictReplaces matches a unique constraint that deletes the rows that a new one conflicts with.
var conflictReplaces = regexp.MustCompile(`(?i)(unique|primary\s+key)\s*(\([^)]*\))?\s*(asc|desc)?\s*on\s+conflict\s+replace`)

// collationsOf returns the collations of columns other than BINARY. SQLite does not report them, but compares the
// rows of a UNION by the collation of its first column.
func collationsOf(ctx context.Context, tx sqltool.StateTx, table string, columns []string) (map[string]string, error) {
	probes := []struct{ collation, equal string }{{sqltool.NoCase, "A"}, {sqltool.RTrim, "a "}}
	collations := map[string]string{}
	var terms []string
	for _, column := range columns {
		for _, probe := range probes {
			terms = append(terms, "SELECT '"+probe.collation+"', "+sqltool.QuoteLiteral(column)+", count(*) FROM (SELECT "+sqltool.QuoteNames([]string{column})+" FROM "+table+
				" WHERE false UNION SELECT 'a' UNION SELECT '"+probe.equal+"')")
		}
	}
	for some := range slices.Chunk(terms, mostTerms) {
		err := tx.Query(ctx, strings.Join(some, " UNION ALL "), nil, func(scan func(...any) error) error {
			var (
				collation, column string
				different         int
			)
			err := scan(&collation, &column, &different)
			if different == 1 {
				collations[column] = collation
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return collations, nil
}

// mostTerms bounds the SELECTs of one compound statement: SQLite refuses more than 500.
const mostTerms = 400

// writeError adds the table, column and row to SQLite's error.
func writeError(w *sqltool.TableWrite, err error) error {
	var (
		own    *tool.Error
		sqlite *sqlite.Error
	)
	if errors.As(err, &own) || !errors.As(err, &sqlite) {
		return err
	}
	w = sqltool.FailedWrite(w, err)
	hint := ""
	if strings.Contains(err.Error(), "ON CONFLICT clause does not match") {
		hint = "; " + sqltool.NeededIndex(w)
	}
	text := w.DescribeAction() + err.Error() + hint
	if w.IsStaged() {
		text = w.InWordsOfTarget(text)
	}
	return &rewordedError{err, text}
}

// rewordedError is an error in other words.
type rewordedError struct {
	err  error
	text string
}

func (e *rewordedError) Error() string { return e.text }

func (e *rewordedError) Unwrap() error { return e.err }

// classifyError turns an error of SQLite into one for the playbook.
func classifyError(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var (
		own *tool.Error
		db  *sqlite.Error
	)
	switch {
	case errors.As(err, &own), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case !errors.As(err, &db):
		return &tool.Error{Kind: interpreter.KindTool, Class: interpreter.ClassFinal, Message: "SQLite: " + err.Error(), Err: err}
	}
	of := kindOfCode(db.Code())
	return &tool.Error{Kind: of.kind, Class: of.class, Type: of.name, Message: err.Error(), Err: err}
}

// codeKind classifies a result code for playbooks.
type codeKind struct {
	kind  interpreter.Kind
	class interpreter.Class
	name  string
}

// kindsOfCodes are the result codes with their own kind (sqlite.org/rescode.html). What other users of the
// file, or the disk, may change is retryable, like SQLSTATE classes 53 and 57.
var kindsOfCodes = map[int]codeKind{
	codes.SQLITE_BUSY:       {interpreter.KindTool, interpreter.ClassRetryable, "SQLITE_BUSY"},
	codes.SQLITE_TOOBIG:     {interpreter.KindPayloadTooLarge, interpreter.ClassFinal, "SQLITE_TOOBIG"},
	codes.SQLITE_AUTH:       {interpreter.KindTool, interpreter.ClassFinal, "SQLITE_AUTH"},
	codes.SQLITE_LOCKED:     {interpreter.KindTool, interpreter.ClassRetryable, "SQLITE_LOCKED"},
	codes.SQLITE_FULL:       {interpreter.KindTool, interpreter.ClassRetryable, "SQLITE_FULL"},
	codes.SQLITE_NOMEM:      {interpreter.KindTool, interpreter.ClassRetryable, "SQLITE_NOMEM"},
	codes.SQLITE_IOERR:      {interpreter.KindTool, interpreter.ClassRetryable, "SQLITE_IOERR"},
	codes.SQLITE_CANTOPEN:   {interpreter.KindConnection, interpreter.ClassRetryable, "SQLITE_CANTOPEN"},
	codes.SQLITE_CONSTRAINT: {interpreter.KindTool, interpreter.ClassFinal, "SQLITE_CONSTRAINT"},
	codes.SQLITE_READONLY:   {interpreter.KindTool, interpreter.ClassFinal, "SQLITE_READONLY"},
	codes.SQLITE_NOTADB:     {interpreter.KindTool, interpreter.ClassFinal, "SQLITE_NOTADB"},
	codes.SQLITE_CORRUPT:    {interpreter.KindTool, interpreter.ClassFinal, "SQLITE_CORRUPT"},
}

// primaryCode returns the primary code of an extended one, which holds it in its low byte.
func primaryCode(code int) int { return code & 0xff }

func kindOfCode(code int) codeKind {
	if known, found := kindsOfCodes[primaryCode(code)]; found {
		return known
	}
	return codeKind{interpreter.KindTool, interpreter.ClassFinal, "SQLITE_ERROR"}
}
