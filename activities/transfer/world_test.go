package transfer_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/activities"
	"reprise/activities/attempt"
	"reprise/activities/file"
	"reprise/activities/http"
	"reprise/activities/postgres"
	"reprise/activities/sqlite"
	"reprise/activities/sqltool"
	"reprise/activities/tool"
	"reprise/activities/tooltest"
	"reprise/activities/transfer"
	"reprise/internal/base/secrets"
	"reprise/internal/test/testenv"
	"reprise/interpreter"
	"reprise/interpreter/expression"
)

// world is a worker's directory and two databases, with a table orders in each.
type world struct {
	shape *interpreter.RowWork // of the rows of each transfer
	*testing.T

	dir   string
	res   tool.Resources
	db    *testenv.Database
	web   *http.Tool
	files *file.Tool
	sql   map[string]tool.Ledger
}

const createOrders = "CREATE TABLE orders (id integer PRIMARY KEY, name text, note text)"

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, dir: t.TempDir()}
	w.res = tool.Resources{Directory: w.dir, MaxResponseBytes: 1 << 20, MaxPayload: 1 << 20, MemoryBytes: 64 << 20, Connections: activities.Connections{}, Secrets: &secrets.Masker{}, Logger: slog.New(slog.DiscardHandler)}
	w.web, w.files = http.New(w.res, nil), file.New(w.res)
	w.sql = map[string]tool.Ledger{"sqlite": sqlite.New(w.res)}
	return w
}

// withPostgres adds a server.
func (w *world) withPostgres() *world {
	w.db = testenv.Postgres(w.T)
	w.res.Connections = activities.Connections{"pg": w.db.URL}
	pg := postgres.New(w.res)
	w.Cleanup(func() { _ = pg.Close() })
	w.sql["postgres"] = pg
	return w
}

// table makes a table in a database and gives the fields of to that name it.
func (w *world) table(database string) map[string]any {
	w.query(database, "DROP TABLE IF EXISTS orders")
	w.query(database, createOrders)
	if database == "postgres" {
		return map[string]any{"tool": "postgres", "auth": "pg", "table": "orders"}
	}
	return map[string]any{"tool": "sqlite", "path": "orders.db", "table": "orders"}
}

// query runs a statement on a database.
func (w *world) query(database, statement string) any {
	w.Helper()
	in := interpreter.ToolInput{Tool: database, Step: "query", Fields: tooltest.Fields(map[string]any{"statement": statement})}
	if in.Auth = "pg"; database == "sqlite" {
		in.Auth, in.Fields["path"] = "", expression.Of("orders.db")
	}
	result, err := w.sql[database].Run(w.Context(), in)
	require.NoError(w, err, statement)
	return result.Data.Data
}

// rows are those of the table.
func (w *world) rows(database string) [][3]string {
	w.Helper()
	var all [][3]string
	for _, row := range w.query(database, "SELECT id, name, note FROM orders ORDER BY id").([]any) {
		of := row.(map[string]any)
		all = append(all, [3]string{expression.Text(of["id"]), expression.Text(of["name"]), expression.Text(of["note"])})
	}
	return all
}

// put writes a file of the worker's directory.
func (w *world) put(name string, content []byte) {
	w.Helper()
	require.NoError(w, os.WriteFile(filepath.Join(w.dir, name), content, 0o600))
}

// errDied is the end of a worker.
var errDied = errors.New("the worker has died")

// mortal is a database whose worker dies at a write, counted from 1: before it, or once it is made, or not at all where at is 0.
type mortal struct {
	tool.Ledger

	at     int
	before bool
	writes int
}

func (m *mortal) Write(ctx context.Context, in interpreter.ToolInput) (interpreter.ToolResult, error) {
	m.writes++
	if m.writes == m.at && m.before {
		return interpreter.ToolResult{}, errDied
	}
	result, err := m.Ledger.Write(ctx, in)
	if m.writes == m.at && err == nil {
		return interpreter.ToolResult{}, errDied
	}
	return result, err
}

// attempt makes one attempt of a transfer, whose worker dies as database says.
func (w *world) attempt(key string, database *mortal, name string, fields map[string]any) (interpreter.ToolResult, error) {
	return w.attemptWith(key, database, name, fields, nil)
}

// attemptWith is attempt with the parameters of the source's statement.
func (w *world) attemptWith(key string, database *mortal, name string, fields map[string]any, params []expression.Value) (interpreter.ToolResult, error) {
	return w.attemptIn(w.Context(), key, database, name, fields, params)
}

// attemptIn is attemptWith for as long as a context lasts.
func (w *world) attemptIn(ctx context.Context, key string, database *mortal, name string, fields map[string]any, params []expression.Value) (interpreter.ToolResult, error) {
	moves := transfer.New(w.res, transfer.Options{
		Land: w.web.DownloadRows, Open: w.files.OpenRows, Targets: map[string]tool.Ledger{name: database}, Queries: w.queries(), Reshape: attempt.ReshapeRows,
	})
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return moves.Run(ctx, interpreter.ToolInput{
		Tool: "transfer", Step: "load", Visit: 1, RunID: "run", OperationKey: key, Fields: tooltest.Fields(fields), Params: params, Shape: w.shape,
	})
}

// move makes an attempt that no worker dies of.
func (w *world) move(key, name string, fields map[string]any) (interpreter.ToolResult, error) {
	w.Helper()
	return w.attempt(key, &mortal{Ledger: w.sql[name]}, name, fields)
}

// queries are the databases that rows are read from.
func (w *world) queries() map[string]sqltool.RowReader {
	all := map[string]sqltool.RowReader{}
	for name, database := range w.sql {
		if reader, reads := database.(sqltool.RowReader); reads {
			all[name] = reader
		}
	}
	return all
}

// fails is the error of an attempt.
func (w *world) fails(err error) *tool.Error {
	w.Helper()
	var failure *tool.Error
	require.ErrorAs(w, err, &failure)
	return failure
}

// with are fields with others.
func with(fields, more map[string]any) map[string]any {
	all := maps.Clone(fields)
	maps.Copy(all, more)
	return all
}

// orders is CSV with rows from one id to another. The version changes what is in them.
func orders(from, to int, version string) []byte {
	var text bytes.Buffer
	w := csv.NewWriter(&text)
	_ = w.Write([]string{"id", "name", "note"})
	for id := from; id <= to; id++ {
		_ = w.Write([]string{fmt.Sprint(id), fmt.Sprintf("näme %d %s", id, version), strings.Repeat("a \"quoted\" line\n", id%3)})
	}
	w.Flush()
	return text.Bytes()
}

// parsed is what another reader of CSV finds in it.
func parsed(t *testing.T, content []byte) [][3]string {
	t.Helper()
	records, err := csv.NewReader(bytes.NewReader(content)).ReadAll()
	require.NoError(t, err)
	var rows [][3]string
	for _, record := range records[1:] {
		rows = append(rows, [3]string{record[0], record[1], record[2]})
	}
	return rows
}

// zipped are the members of gzip, one behind the other.
func zipped(parts ...[]byte) []byte {
	var all bytes.Buffer
	for _, part := range parts {
		w := gzip.NewWriter(&all)
		_, _ = w.Write(part)
		_ = w.Close()
	}
	return all.Bytes()
}
