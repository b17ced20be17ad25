package transfer_test

import (
	"context"
	"io"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/activities/attempt"
	"reprise/activities/format"
	"reprise/activities/tool"
	"reprise/activities/tooltest"
	"reprise/activities/transfer"
	"reprise/interpreter"
	"reprise/interpreter/expression"
)

// TestErrorsHaveLines: what is wrong with a row says where it is, and what is before it stays. It passes mostRows.
func TestErrorsHaveLines(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, test := range map[string]struct {
		file, content string
		to, more      map[string]any
		says          string
		rows          int
	}{
		"too few fields":     {"a.csv", "id,name,note\n1,a,\n2,b\n", nil, nil, "line 3: 2 values, and there are 3 columns", 0},
		"too many fields":    {"a.csv", "id,name\n1,a\n\"2\",\"b\nb\"\n3,c,d\n", nil, map[string]any{"batch": 1}, "line 5: 3 values, and there are 2 columns", 1},
		"an open quote":      {"a.csv", "id,name\n1,\"a\n", nil, nil, "line 2: a quoted value does not end", 0},
		"no JSON":            {"a.jsonl", "{\"id\":1}\n\n{\n", nil, nil, "line 3:", 0},
		"no list":            {"a.json", `{"id": 1}`, nil, nil, "it is a map, and only a list is read row by row", 0},
		"a list that ends":   {"a.json", `[{"id": 1}, `, nil, nil, "ends too soon", 0},
		"behind the list":    {"a.json", `[{"id": 1}] x`, nil, nil, "something follows the list", 0},
		"a row that is none": {"a.json", `[{"id": 1}, 2]`, nil, nil, "row 2 for table \"orders\" is a number", 0},
		"text":               {"a.txt", "x", nil, nil, "is not read row by row, as its format is text", 0},
		"another charset":    {"a.csv", "id,name\n1,\xe9\n", nil, nil, "byte 0xE9 at offset 10 (line 2) is not utf-8", 0},
		"no such column":     {"a.csv", "id,nam\n1,a\n", nil, nil, "nam", 0},
		"a refused row":      {"a.csv", "id,name\n1,a\n2,b\n2,c\n", nil, nil, "row", 0},
		"a batch of none":    {"a.csv", "id,name\n", nil, map[string]any{"batch": 0}, "batch is 0; it must be a whole number from 1", 0},
		"a batch too large":  {"a.csv", "id,name\n", nil, map[string]any{"batch": 1_000_001}, "it must be a whole number from 1 to 1000000", 0},
		"out of the folder":  {"a.csv", "", nil, map[string]any{"from": map[string]any{"tool": "file", "path": "../a.csv"}}, "under the worker's directory", 0},
		"a private file":     {"a.csv", "", nil, map[string]any{"from": map[string]any{"tool": "file", "path": ".reprise/a.csv"}}, "one of the worker's own files", 0},
		"another's table":    {"a.csv", "id\n1\n", map[string]any{"path": "../a.db"}, nil, "is not in the worker's directory", 0},
		"no such file":       {"a.csv", "", nil, map[string]any{"from": map[string]any{"tool": "file", "path": "b.csv"}}, "no such file", 0},
		"empty":              {"a.csv", "", map[string]any{"mode": "replace"}, nil, "allow_empty: true", 0},
	} {
		t.Run(name, func(t *testing.T) {
			w.put(test.file, []byte(test.content))
			fields := with(map[string]any{"from": map[string]any{"tool": "file", "path": test.file}, "to": with(w.table("sqlite"), test.to)}, test.more)
			_, err := w.move(name, "sqlite", fields)
			require.ErrorContains(t, err, test.says)
			require.NotContains(t, err.Error(), w.dir)
			require.Len(t, w.rows("sqlite"), test.rows)
		})
	}
}

// TestRowsInShape: fields, exclude and args change each row, rejected rows are counted, and other charsets are read.
func TestRowsInShape(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("a.csv", []byte("id;name;x\n1;M\xfcller;1\n2;b;2\n2;c;3\n"))
	fields := map[string]any{
		"from": map[string]any{"tool": "file", "path": "a.csv", "csv": map[string]any{"delimiter": ";", "encoding": "windows-1252"}},
		"to":   with(w.table("sqlite"), map[string]any{"rejected": map[string]any{"table": "refused"}}), "batch": 2,
	}
	moves := transfer.New(w.res, transfer.Options{Land: w.web.DownloadRows, Open: w.files.OpenRows, Targets: w.sql, Reshape: attempt.ReshapeRows})
	result, err := moves.Run(t.Context(), interpreter.ToolInput{
		Tool: "transfer", Step: "load", Visit: 1, RunID: "run", OperationKey: "k", Fields: tooltest.Fields(fields),
		Shape: &interpreter.RowWork{Only: true, Fields: []interpreter.RowField{
			{Name: "id", Template: "{{ int(row.id) }}"}, {Name: "name", Template: "{{ upper(row.name) }}"}, {Name: "note", Value: expression.Of("n")},
		}},
	})
	require.NoError(t, err)
	require.Equal(t, map[string]any{"rows": 3, "bytes": len("id;name;x\n1;M\xfcller;1\n2;b;2\n2;c;3\n"), "batches": 2, "rejected": 1}, result.Data.Data)
	require.Equal(t, [][3]string{{"1", "MÜLLER", "n"}, {"2", "B", "n"}}, w.rows("sqlite"))
	require.Equal(t, 1, result.Meta.LeftOut.RejectedRows)
}

// TestReadOnly: what must change nothing moves nothing.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	moves := transfer.New(w.res, transfer.Options{})
	_, err := moves.Run(tool.ReadOnly(t.Context()), interpreter.ToolInput{Step: "load"})
	require.ErrorContains(t, err, "may only read")
}

// endless is CSV of a size, which is made as it is read.
type endless struct{ size int64 }

const endlessLine = "123456789,a name that is forty characters long,2026-01-01T00:00:00Z,12.50\n"

func (e endless) ReadAt(p []byte, at int64) (n int, err error) {
	head := "id,name,at,amount\n"
	for n < len(p) && at < e.size {
		from := head[min(at, int64(len(head))):]
		if from == "" {
			from = endlessLine[(at-int64(len(head)))%int64(len(endlessLine)):]
		}
		copied := copy(p[n:min(len(p), n+int(e.size-at))], from)
		n, at = n+copied, at+int64(copied)
	}
	if n < len(p) {
		err = io.EOF
	}
	return n, err
}

func (endless) Close() error { return nil }

// counter is a database that counts the rows it is given, and how large the worker is then.
type counter struct {
	tool.Ledger

	rows int
	heap uint64
}

func (c *counter) RecallNotes(context.Context, interpreter.ToolInput) ([]interpreter.LedgerEntry, error) {
	return nil, nil
}

func (c *counter) Write(_ context.Context, in interpreter.ToolInput) (interpreter.ToolResult, error) {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	c.heap = max(c.heap, stats.HeapInuse)
	c.rows += len(in.SinkRows())
	return interpreter.ToolResult{}, nil
}

// TestMemoryIsBounded: a source of 200 MB takes the memory of its batches.
func TestMemoryIsBounded(t *testing.T) {
	w := newWorld(t)
	lines := int64(200<<20) / int64(len(endlessLine))
	source := endless{int64(len("id,name,at,amount\n")) + lines*int64(len(endlessLine))}
	counts := &counter{Ledger: w.sql["sqlite"]}
	moves := transfer.New(w.res, transfer.Options{
		Open: func(context.Context, interpreter.ToolInput) (*format.RowSource, error) {
			return &format.RowSource{Content: source, Size: source.size, What: "endless", Format: format.CSV}, nil
		},
		Targets: map[string]tool.Ledger{"sqlite": counts},
	})
	runtime.GC()
	result, err := moves.Run(t.Context(), interpreter.ToolInput{Step: "load", OperationKey: "k", Fields: tooltest.Fields(map[string]any{
		"from": map[string]any{"tool": "file", "path": "a.csv"}, "to": map[string]any{"tool": "sqlite", "path": "a.db", "table": "orders"},
	})})
	require.NoError(t, err)
	require.EqualValues(t, lines, counts.rows)
	require.Equal(t, int(lines), result.Data.Data.(map[string]any)["rows"])
	require.Less(t, counts.heap, uint64(120<<20), "bytes of heap, of a source of 200 MB")
}
