package file_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/activities"
	"reprise/activities/tooltest"
	"reprise/internal/test/testenv"
	"reprise/interpreter"
	"reprise/interpreter/expression"
)

// fileWorker is a catalogue with a directory of its own.
func fileWorker(t *testing.T) (*activities.Catalogue, string) {
	t.Helper()

	dir := t.TempDir()
	return activities.NewCatalogue(activities.Resources{Directory: dir, MaxResponseBytes: 1000}), dir
}

func fileInput(fields map[string]any) func(*testing.T) interpreter.ToolInput {
	return tooltest.Input(fields)
}

func put(t *testing.T, dir, name, content string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
}

func get(t *testing.T, dir, name string) string {
	t.Helper()

	content, err := os.ReadFile(filepath.Join(dir, name))
	require.NoError(t, err)
	return string(content)
}

func writeFile(t *testing.T, c *activities.Catalogue, key string, rows any, fields map[string]any) (interpreter.ToolResult, error) {
	t.Helper()

	in := fileInput(fields)(t)
	in.OperationKey, in.Result = key, tooltest.Value(rows)
	return tooltest.Call(t, c, "file.write", "file", in)
}

func TestFileConforms(t *testing.T) {
	t.Parallel()

	c, dir := fileWorker(t)
	put(t, dir, "rows.jsonl", "{\"n\": 9007199254740993}\n\n[1, 2.5]\n")
	put(t, dir, "bad.jsonl", "{}\n{\n")
	put(t, dir, "large.txt", strings.Repeat("x", 1001))
	put(t, dir, "twice.csv", "a,a\n1,2\n")
	put(t, dir, "bomb.json.gz", tooltest.Gzip(strings.Repeat(" ", 2000)))
	put(t, dir, "book.txt", strings.Repeat("x", 300<<10))
	roomy := activities.NewCatalogue(activities.Resources{Directory: dir, MaxResponseBytes: 1 << 20})
	t.Cleanup(func() { require.NoError(t, roomy.Close()) })
	put(t, dir, "torn.json.gz", tooltest.Gzip("[1, 2, 3]")[:15])
	require.NoError(t, os.Mkdir(filepath.Join(dir, "folder.json"), 0o755))
	require.NoError(t, os.Symlink("/etc/passwd", filepath.Join(dir, "link.txt")))
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "pipe.txt"), 0o600))

	fails := func(name, path, typ, says string) tooltest.FailureCase {
		return tooltest.FailureCase{
			Name: name, Input: fileInput(map[string]any{"path": path}), Kind: "tool", Class: "final", Type: typ, Says: says,
		}
	}
	sinkFails := func(name, path string, rows any, says string) tooltest.FailureCase {
		return tooltest.FailureCase{
			Name: name, AsSink: true, Kind: "tool", Class: "final", Says: says,
			Input: func(t *testing.T) interpreter.ToolInput {
				in := fileInput(map[string]any{"path": path})(t)
				in.Args = tooltest.Value(rows)
				return in
			},
		}
	}

	var places atomic.Int32 // that were written to
	tooltest.Run(t, tooltest.Suite{
		Catalogue: c, Tool: "file", TakesAuth: true,
		Good:  fileInput(map[string]any{"path": "rows.jsonl"}),
		Large: fileInput(map[string]any{"path": "book.txt"}), LargeIn: roomy,
		// Somebody holds the lock and does not give it back.
		SlowAsSink: true,
		Slow: func(t *testing.T) interpreter.ToolInput {
			t.Helper()

			name := strings.ReplaceAll(t.Name(), "/", "_") + ".jsonl"
			journal, err := os.Create(filepath.Join(dir, name+".reprise"))
			require.NoError(t, err)
			t.Cleanup(func() { _ = journal.Close() })
			require.NoError(t, syscall.Flock(int(journal.Fd()), syscall.LOCK_EX))
			return fileInput(map[string]any{"path": name})(t)
		},
		Failures: []tooltest.FailureCase{
			fails("missing", "no.json", "not_found", "read no.json: no such file"),
			fails("outside", "../x.json", "", `path is "../x.json"; it must be a file under the worker's directory`),
			fails("absolute", "/etc/passwd", "", "under the worker's directory"),
			fails("link to the outside", "link.txt", "permission", "read link.txt: path escapes"),
			fails("folder", "folder.json", "", "read folder.json: it is not a file"),
			fails("pipe", "pipe.txt", "", "read pipe.txt: it is not a file"),
			fails("no format", "rows.bin", "", "set format to json, jsonl, csv, xml, parquet or text"),
			fails("bad line", "bad.jsonl", "", "read bad.jsonl as jsonl: line 2"),
			fails("column twice", "twice.csv", "", `the column "a" occurs twice`),
			fails("torn", "torn.json.gz", "", "read torn.json.gz: it cannot be unpacked: unexpected EOF"),
			{
				Name: "not packed", Kind: "tool", Class: "final", Says: "it cannot be unpacked: the bytes are not zstd",
				Input: fileInput(map[string]any{"path": "rows.jsonl", "compression": "zstd"}),
			},
			{
				Name: "a bomb", Input: fileInput(map[string]any{"path": "bomb.json.gz"}),
				Kind: "payload_too_large", Class: "final", Says: "larger than the limit of 1000 bytes",
			},
			sinkFails("write packed", "x.gz", 1, "set format to jsonl, csv or parquet"),
			{
				Name: "write as CSV is read", AsSink: true, Kind: "tool", Class: "final", Says: "csv.delimiter applies only when reading; a sink has only csv.formulas",
				Input: fileInput(map[string]any{"path": "x.csv", "csv": map[string]any{"delimiter": ";"}}),
			},
			{
				Name: "too large", Input: fileInput(map[string]any{"path": "large.txt"}),
				Kind: "payload_too_large", Class: "final", Says: "larger than the limit of 1000 bytes",
			},
			sinkFails("write outside", "../x.jsonl", 1, "under the worker's directory"),
			sinkFails("write text", "x.txt", 1, "set format to jsonl, csv or parquet"),
			sinkFails("row that is no map", "x.csv", []any{1}, "row 0 is a"),
			sinkFails("write to a folder", "folder.json", []any{}, "set format to jsonl, csv or parquet"),
		},
		Write: &tooltest.WriteCase{
			Input: func(t *testing.T) interpreter.ToolInput {
				in := fileInput(map[string]any{"path": fmt.Sprintf("written-%d.jsonl", places.Add(1))})(t)
				in.Args = tooltest.Value([]any{map[string]any{"id": 1}, map[string]any{"id": 2}})
				return in
			},
			Effect: func(_ *testing.T, in interpreter.ToolInput) any {
				content, _ := os.ReadFile(filepath.Join(dir, expression.Text(in.Fields["path"].Data)))
				return string(content)
			},
		},
		Ledgers: []tooltest.LedgerCase{
			{
				Name: "append", Input: fileRow("noted.jsonl", 1), Other: fileRow("noted.jsonl", 2),
				Effect: fileText(filepath.Join(dir, "noted.jsonl")),
			},
			{
				Name: "csv", Input: fileRow("noted.csv", 1), Other: fileRow("noted.csv", 2),
				Effect: fileText(filepath.Join(dir, "noted.csv")),
			},
		},
	})
}

// TestFormulasAreEscaped: with csv.formulas no spreadsheet runs what data say; without it they are as they are.
func TestFormulasAreEscaped(t *testing.T) {
	t.Parallel()

	c, dir := fileWorker(t)
	keys := 0
	write := func(path string, rows []any, csv any) error {
		fields := map[string]any{"path": path}
		if csv != nil {
			fields["csv"] = csv
		}
		keys++
		_, err := writeFile(t, c, fmt.Sprint("key", keys), rows, fields)
		return err
	}
	rows := []any{
		map[string]any{"@name": "=cmd|' /C calc'!A0", "n": -5, "note": "-5"},
		map[string]any{"@name": "+49 170", "n": 1.5, "note": "a=b"},
		map[string]any{"@name": "-1+2", "n": nil, "note": "\t=1"},
		map[string]any{"@name": "＝1", "n": 0, "note": ""},
	}
	escape := map[string]any{"formulas": "escape"}
	require.NoError(t, write("rows.csv", rows[:1], escape))
	require.NoError(t, write("rows.csv", rows[1:], escape))
	text, err := os.ReadFile(filepath.Join(dir, "rows.csv"))
	require.NoError(t, err)
	require.Equal(t, "'@name,n,note\n'=cmd|' /C calc'!A0,-5,-5\n'+49 170,1.5,a=b\n'-1+2,,'\t=1\n'＝1,0,\"\"\n", string(text))

	require.NoError(t, write("plain.csv", []any{map[string]any{"a": "=1"}}, nil))
	text, err = os.ReadFile(filepath.Join(dir, "plain.csv"))
	require.NoError(t, err)
	require.Equal(t, "a\n=1\n", string(text))

	require.NoError(t, write("numbers.csv", []any{map[string]any{"n": 2.3e49}, map[string]any{"n": -1.5e-9}, map[string]any{"n": "1e3"}}, nil))
	text, err = os.ReadFile(filepath.Join(dir, "numbers.csv"))
	require.NoError(t, err)
	require.Equal(t, "n\n23000000000000000000000000000000000000000000000000\n-0.0000000015\n1e3\n", string(text), "columns of numbers read no exponents")

	require.ErrorContains(t, write("x.csv", rows, map[string]any{"formulas": "yes"}), "it must be keep or escape")
	require.ErrorContains(t, write("x.jsonl", rows, escape), "csv does not apply to format jsonl")
}

// TestFileReadsAsItIsTold: what the author says counts more than the name.
func TestFileReadsAsItIsTold(t *testing.T) {
	t.Parallel()

	c, dir := fileWorker(t)
	put(t, dir, "export.txt", "id;name;note\n1;caf\xe9;-\n")

	result, err := tooltest.Call(t, c, "file", "file", fileInput(map[string]any{
		"path": "export.txt", "csv": map[string]any{"delimiter": ";", "encoding": "windows-1252", "null": "-"},
	})(t))
	require.NoError(t, err)
	require.Equal(t, []any{map[string]any{"id": "1", "name": "café", "note": nil}}, result.Data.Data)
}

func TestFileReads(t *testing.T) {
	t.Parallel()

	c, dir := fileWorker(t)
	put(t, dir, "v.json", `{"n": 12345678901234567890, "x": [1.5, null]}`)
	put(t, dir, "rows.csv", "\uFEFFid,name\n1,\"Ana, Ben\"\n2,\"two\nlines\"\n")
	put(t, dir, "empty.csv", "")
	put(t, dir, "note.txt", "hello\n")
	put(t, dir, "rows.jsonl.gz", tooltest.Gzip("{\"id\": 1}\n{\"id\": 2}\n"))
	put(t, dir, "export.gz", tooltest.Gzip(`{"id": 1}`))
	put(t, dir, "export.zip", tooltest.Zip(t, [2]string{"day/rows.csv", "id\n1\n"}))
	put(t, dir, "rows.xml", "<?xml version='1.0' encoding='iso-8859-1'?>\n<rows><row id='1'>\xe9</row></rows>")
	put(t, dir, "utf16.csv", "\xff\xfei\x00d\x00\n\x00\xe9\x00")

	for path, want := range map[string]string{
		"v.json":    `{"n":12345678901234567890,"x":[1.5,null]}`,
		"rows.csv":  `[{"id":"1","name":"Ana, Ben"},{"id":"2","name":"two\nlines"}]`,
		"empty.csv": `[]`,
		"note.txt":  `"hello\n"`,

		"rows.jsonl.gz": `[{"id":1},{"id":2}]`,
		"export.gz":     `{"id":1}`,
		"export.zip":    `[{"id":"1"}]`,
		"rows.xml":      `{"rows":{"row":{"#text":"é","@id":"1"}}}`,
		"utf16.csv":     `[{"id":"é"}]`,
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()

			result, err := tooltest.Call(t, c, "file", "file", fileInput(map[string]any{"path": path})(t))
			require.NoError(t, err)

			encoded, err := expression.Encode(result.Data.Data)
			require.NoError(t, err)
			require.Equal(t, want, string(encoded))
		})
	}
}

func TestFileWritesCSV(t *testing.T) {
	t.Parallel()

	c, dir := fileWorker(t)
	fields := map[string]any{"path": "out/rows.csv"}

	_, err := writeFile(t, c, "k1", []any{
		map[string]any{"id": 1, "tags": []any{"a"}, "name": nil},
		map[string]any{"id": 2, "name": "x,y"},
	}, fields)
	require.NoError(t, err)

	_, err = writeFile(t, c, "k2", map[string]any{"name": "third", "id": 3}, fields)
	require.NoError(t, err)
	require.Equal(t, "id,name,tags\n1,,\"[\"\"a\"\"]\"\n2,\"x,y\",\n3,third,\n", get(t, dir, "out/rows.csv"))

	_, err = writeFile(t, c, "k3", map[string]any{"id": 4, "dose": 5}, fields)
	require.Contains(t, tooltest.ErrorObject(t, err).Message, `row 0 has "dose", which is not a column; the columns are id, name, tags`)
}

func TestFileColumnsGiveTheOrder(t *testing.T) {
	t.Parallel()

	c, dir := fileWorker(t)
	_, err := writeFile(t, c, "k1", map[string]any{"a": 1, "b": 2},
		map[string]any{"path": "rows.csv", "columns": []any{"b", "a"}, "mode": "overwrite"})

	require.NoError(t, err)
	require.Equal(t, "b,a\n2,1\n", get(t, dir, "rows.csv"))
}

func TestFileOverwrites(t *testing.T) {
	t.Parallel()

	c, dir := fileWorker(t)
	fields := map[string]any{"path": "rows.jsonl", "mode": "overwrite"}

	for i, key := range []string{"k1", "k2", "k1"} {
		_, err := writeFile(t, c, key, []any{i}, fields)
		require.NoError(t, err)
	}

	require.Equal(t, "1\n", get(t, dir, "rows.jsonl"), "k1 came again after k2 and must not undo it")
}

// The journal says what a worker that died in the middle of a write has left.
func TestFileUndoesAWriteThatWasCutShort(t *testing.T) {
	t.Parallel()

	c, dir := fileWorker(t)
	put(t, dir, "rows.jsonl", "1\n{\"half\":")
	put(t, dir, "rows.jsonl.reprise", "begin 0 2 k1\ndone k1\nbegin 2 20 k2\ndone k") // from before there were sums

	_, err := writeFile(t, c, "k2", []any{map[string]any{"half": true}}, map[string]any{"path": "rows.jsonl"})
	require.NoError(t, err)
	require.Equal(t, "1\n{\"half\":true}\n", get(t, dir, "rows.jsonl"))
	require.Equal(t, "begin 0 2 k1\ndone k1\nbegin 2 20 k2\nbegin 2 14 k2 310e5ce7db0b0144\ndone k2 - 1\n", get(t, dir, "rows.jsonl.reprise"))
}

func TestFileLeavesWhatOthersWroteSince(t *testing.T) {
	t.Parallel()

	c, dir := fileWorker(t)
	put(t, dir, "rows.jsonl", "1\n2\n\"edited by hand since\"\n")
	put(t, dir, "rows.jsonl.reprise", "begin 2 3 k2\n")

	_, err := writeFile(t, c, "k2", []any{3}, map[string]any{"path": "rows.jsonl"})
	require.NoError(t, err)
	require.Equal(t, "1\n2\n\"edited by hand since\"\n3\n", get(t, dir, "rows.jsonl"))
}

// Two workers on one machine write to one file.
func TestFileManyWriters(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	workers := []*activities.Catalogue{
		activities.NewCatalogue(activities.Resources{Directory: dir}),
		activities.NewCatalogue(activities.Resources{Directory: dir}),
	}
	done := make(chan error)

	const writes = 20

	for i := range writes {
		for _, c := range workers { // each write is delivered twice
			go func() {
				_, err := writeFile(t, c, fmt.Sprintf("k%d", i), []any{map[string]any{"i": i}, map[string]any{"i": i}},
					map[string]any{"path": "rows.jsonl"})
				done <- err
			}()
		}
	}

	for range writes * len(workers) {
		require.NoError(t, testenv.Receive(t, done, "the end of a write"))
	}

	lines := strings.Split(strings.TrimSuffix(get(t, dir, "rows.jsonl"), "\n"), "\n")
	require.Len(t, lines, 2*writes)

	for i := 0; i < len(lines); i += 2 {
		require.Equal(t, lines[i], lines[i+1], "the rows of one write stay together")
	}
}

// fileRow makes a write of one row.
func fileRow(path string, id int) func(*testing.T) interpreter.ToolInput {
	return func(t *testing.T) interpreter.ToolInput {
		t.Helper()

		in := fileInput(map[string]any{"path": path})(t)
		in.Args = tooltest.Value([]any{map[string]any{"id": id}})
		return in
	}
}

func fileText(path string) func(*testing.T) any {
	return func(*testing.T) any {
		content, _ := os.ReadFile(path)
		return string(content)
	}
}
