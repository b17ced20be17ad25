package sqlite

import (
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"os"
	"strconv"
	"strings"
	"time"

	"reprise/activities/sqltool"
	"reprise/interpreter"
	"reprise/interpreter/incremental"
)

var dialect = &sqltool.Dialect{
	Name: "text", Bytes: "BLOB", Time: "text", Serial: "INTEGER", Options: " WITHOUT ROWID", Now: "strftime('%Y-%m-%dT%H:%M:%fZ', 'now')",
	Least: "min", Greatest: "max",
	BytesList: "(SELECT unhex(value) AS n FROM json_each($1)) AS given", ListOf: func(list [][]byte) any { return hexList(list) },
	TimeText: func(column string) string { return column },
	KindOf:   sqltool.KindOfDeclared, ReaderOf: sqltool.ReaderOfDeclared, IsTextual: func(string) bool { return true }, Mismatch: "SQLITE_MISMATCH",
	NotOlder: func(given, there string, as incremental.CursorType) string {
		return notOlderFunction + "(" + given + ", " + there + ", '" + string(as) + "')"
	},
	Types: sqltool.SQLiteTypes, LongNumbers: sqltool.LongText, NameProblem: sqltool.SQLiteName, OneCase: foldCase, SearchesByIndex: true,
	Ago: func(seconds int) string {
		return "strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-" + strconv.Itoa(seconds) + " seconds')"
	},
	QuoteLiteral: "SELECT quote($1)", Literal: func(value any) any { return columnValue(value, "") },
	InstantOf: func(text string, offset int) string {
		return instantFunction + "(" + text + ", " + strconv.Itoa(offset) + ")"
	},
	InstantLiteral: func(at time.Time) string { return "'" + sqltool.InstantText(at) + "'" },
	Differ: func(there, given []string) string {
		pairs := make([]string, len(there))
		for i, column := range there {
			pairs[i] = column + " IS NOT " + given[i] + " COLLATE BINARY"
		}
		return "(" + strings.Join(pairs, " OR ") + ")"
	},
}

// stateTx is a transaction for states.
type stateTx struct{ conn *guardedConn }

// Dialect is SQLite's.
func (stateTx) Dialect() *sqltool.Dialect { return dialect }

// numberParams has the parameters of a statement as SQLite numbers them.
func numberParams(statement string) string {
	var quote rune
	return strings.Map(func(r rune) rune {
		switch {
		case quote != 0 && r == quote:
			quote = 0 // two of them are one within, and begin again
		case quote == 0 && (r == '\'' || r == '"'):
			quote = r
		case quote == 0 && r == '$':
			return '?'
		}
		return r
	}, statement)
}

// Exec runs a statement.
func (s stateTx) Exec(ctx context.Context, statement string, args ...any) (int64, error) {
	return s.conn.execStatement(ctx, statement, args...)
}

// Query runs a statement that gives rows.
func (s stateTx) Query(ctx context.Context, statement string, args []any, read func(scan func(...any) error) error) error {
	return s.conn.queryRows(ctx, statement, args, read)
}

// createTables makes tables that are not there.
func createTables(ctx context.Context, conn *guardedConn, tables ...sqltool.NewTable) error {
	for _, table := range tables {
		for _, statement := range table.Create {
			if _, err := conn.execStatement(ctx, statement); err != nil {
				return err
			}
		}
	}
	return nil
}

// changeStates runs do in a transaction. It creates a missing file and missing tables; without create it skips do
// then.
func (t *Tool) changeStates(ctx context.Context, in interpreter.ToolInput, create bool, do func(sqltool.StateTx) error) error {
	path, err := t.filePath(ctx, in)
	if err != nil || !create && !fileExists(path) {
		return err
	}
	err = t.databaseAt(path).inTransaction(ctx, func(conn *guardedConn) error {
		err := do(stateTx{conn})
		if !create || !lacksTable(err) {
			return err
		}
		if err := createTables(ctx, conn, dialect.StateTables()...); err != nil {
			return err
		}
		return do(stateTx{conn})
	})
	if !create && lacksTable(err) {
		return nil
	}
	return classifyError(ctx, err)
}

// readStates runs do in a read-only transaction. A missing file or table contains nothing.
func (t *Tool) readStates(ctx context.Context, in interpreter.ToolInput, do func(sqltool.StateTx) error) error {
	path, err := t.filePath(ctx, in)
	if err != nil || !fileExists(path) {
		return err
	}
	err = t.readOnly(ctx, path, func(conn *guardedConn) error { return do(stateTx{conn}) })
	if lacksTable(err) {
		return nil
	}
	return classifyError(ctx, err)
}

// fileExists reports whether a file is there.
func fileExists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, os.ErrNotExist)
}

// lacksTable reports whether an error says that a table does not exist.
func lacksTable(err error) bool { return err != nil && strings.Contains(err.Error(), "no such table") }

// inTransaction runs do in a transaction of its own.
func (f *database) inTransaction(ctx context.Context, do func(*guardedConn) error) error {
	return f.useConnection(ctx, true, func(conn *guardedConn) error {
		return conn.runTransaction(ctx, beginWriting, func() (bool, error) { return true, do(conn) })
	})
}

// LookUp finds out which table a name is, and whether it has rows.
func (s stateTx) LookUp(ctx context.Context, w *sqltool.TableWrite) (table incremental.Table, err error) {
	table.Name, table.Shown = foldCase(w.Table[len(w.Table)-1]), w.Shown
	columns, err := readColumns(ctx, s, w)
	if err != nil || len(columns) == 0 {
		return table, err
	}
	table.Exists = true
	err = s.Query(ctx, "SELECT EXISTS (SELECT 1 FROM "+w.QuotedTable()+")", nil, func(scan func(...any) error) error { return scan(&table.HasRow) })
	return table, err
}

// foldCase maps names that are equal to SQLite, which ignores the case of ASCII letters, to one text.
func foldCase(name string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r - 'A' + 'a'
		}
		return r
	}, name)
}

// moveState moves the state of a write.
func (l *ledger) moveState(ctx context.Context, w *sqltool.TableWrite) error {
	err := sqltool.MoveState(ctx, stateTx{l.conn}, w)
	if !lacksTable(err) {
		return err
	}
	if err := createTables(ctx, l.conn, dialect.StateTables()...); err != nil {
		return err
	}
	return sqltool.NotHeldError(ctx, stateTx{l.conn}, w.State)
}

// newRows returns the write without rows that were written before, and records those that may
// be read again.
func (l *ledger) newRows(ctx context.Context, w *sqltool.TableWrite) (*sqltool.TableWrite, error) {
	w, err := w.CountRows(ctx, stateTx{l.conn})
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	chunks := w.LookupChunks()
	for i := range chunks {
		err := l.lookUpSeen(ctx, &chunks[i], known)
		if lacksTable(err) { // the tables of states are older than blocks
			if err = createTables(ctx, l.conn, dialect.StateTables()...); err == nil {
				err = l.lookUpSeen(ctx, &chunks[i], known)
			}
		}
		if err != nil {
			return nil, err
		}
	}
	if counts := w.AddedCounts(); len(counts) > 0 {
		if err := l.readKnown(ctx, map[string]bool{}, insertKnown, hexList(counts)); err != nil {
			return nil, err
		}
	}
	if len(known) == 0 {
		return w, nil
	}
	rest := w.WithoutKnown(known)
	return rest, rest.RecountRows(ctx, stateTx{l.conn}, len(rest.Rows))
}

// insertKnown records rows as known, and returns those that were new.
const insertKnown = "INSERT INTO " + sqltool.SeenTable + " SELECT unhex(n.value) FROM json_each($1) AS n WHERE true " +
	"ON CONFLICT DO NOTHING RETURNING known"

// lookUpSeen records rows that may be read again, and looks the others up. Rows are sent as a list in
// hexadecimal.
func (l *ledger) lookUpSeen(ctx context.Context, seen *sqltool.RowLookup, known map[string]bool) error {
	const lookUp = "SELECT known FROM json_each($1) AS n CROSS JOIN " + sqltool.SeenTable + " WHERE known = unhex(n.value)"
	single, err := l.lookUpBlocks(ctx, seen, known)
	if err != nil {
		return err
	}
	if len(single) > 0 {
		added := make(map[string]bool, len(single))
		if err := l.readKnown(ctx, added, insertKnown, hexList(single)); err != nil {
			return err
		}
		for _, row := range single {
			if !added[string(row)] {
				known[string(row)] = true
			}
		}
	}
	if len(seen.Below) > 0 {
		if err := l.readKnown(ctx, known, lookUp, hexList(seen.Below)); err != nil {
			return err
		}
	}
	if !seen.Sweep {
		return nil
	}
	for _, sweep := range sqltool.SweepStatements() {
		if _, err := (stateTx{l.conn}).Exec(ctx, sweep, seen.State, seen.Floor); err != nil {
			return err
		}
	}
	return nil
}

// lookUpBlocks adds the block of a chunk, or finds its rows in existing blocks. single are the rows that are recorded
// individually.
func (l *ledger) lookUpBlocks(ctx context.Context, seen *sqltool.RowLookup, known map[string]bool) (single [][]byte, err error) {
	tx := stateTx{l.conn}
	if seen.Block != nil {
		statement, args := seen.AddBlock(dialect)
		n, err := tx.Exec(ctx, statement, args...)
		switch {
		case err != nil:
			return nil, err
		case n > 0 && len(seen.Tied) > 0:
			return seen.Rest, l.readBlocks(ctx, seen, seen.From, known)
		case n > 0:
			return seen.Rest, nil
		}
	}
	if seen.From == nil {
		return seen.Recurring, nil
	}
	return seen.Recurring, l.readBlocks(ctx, seen, seen.To, known)
}

// readBlocks finds which rows of a chunk, up to a position, are in blocks of known rows, and records them.
func (l *ledger) readBlocks(ctx context.Context, seen *sqltool.RowLookup, to []byte, known map[string]bool) error {
	return stateTx{l.conn}.Query(ctx, sqltool.BlocksStatement, []any{seen.From, to}, func(scan func(...any) error) error {
		var hashes []byte
		err := scan(&hashes)
		seen.InBlocks(hashes, known)
		return err
	})
}

// readKnown adds the rows that a statement gives.
func (l *ledger) readKnown(ctx context.Context, to map[string]bool, statement string, args ...any) error {
	return stateTx{l.conn}.Query(ctx, statement, args, func(scan func(...any) error) error {
		var row sql.RawBytes
		err := scan(&row)
		to[string(row)] = true
		return err
	})
}

func hexList(rows [][]byte) string {
	list := []byte{'['}
	for i, row := range rows {
		if i > 0 {
			list = append(list, ',')
		}
		list = append(list, '"')
		list = hex.AppendEncode(list, row)
		list = append(list, '"')
	}
	return string(append(list, ']'))
}
