package file_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/activities"
	"reprise/activities/tooltest"
	"reprise/interpreter"
	"reprise/interpreter/expression"
)

// TestFileAppendsBehindALine: rows stay apart from what others have written, and are an error where they could not be.
func TestFileAppendsBehindALine(t *testing.T) {
	t.Parallel()

	const mostOfLine = 1 << 20
	row := map[string]any{"id": 2, "a": "y"}

	for name, test := range map[string]struct{ file, there, want, says string }{
		"CSV":                       {"a.csv", "id,a\n1,x", "id,a\n1,x\n2,y\n", ""},
		"CSV, a header alone":       {"a.csv", "id,a", "id,a\n2,y\n", ""},
		"CSV in quotes":             {"a.csv", "id,a\n1,\"x\"", "id,a\n1,\"x\"\n2,y\n", ""},
		"CSV with its line break":   {"a.csv", "id,a\n1,x\n", "id,a\n1,x\n2,y\n", ""},
		"CSV of Windows":            {"a.csv", "id,a\r\n1,x\r\n", "id,a\r\n1,x\r\n2,y\n", ""},
		"CSV of CR":                 {"a.csv", "id,a\r1,x\r", "id,a\r1,x\r2,y\n", ""},
		"CSV of CR, not ended":      {"a.csv", "id,a\r1,x", "id,a\r1,x\n2,y\n", ""},
		"CSV with a mark":           {"a.csv", "\ufeffid,a\n1,x", "\ufeffid,a\n1,x\n2,y\n", ""},
		"a mark alone":              {"a.csv", "\ufeff", "\ufeffa,id\ny,2\n", ""},
		"empty lines":               {"a.csv", "\n", "\na,id\ny,2\n", ""},
		"no bytes":                  {"a.csv", "", "a,id\ny,2\n", ""},
		"CSV within quotes":         {"a.csv", "id,a\n1,\"x\n", "", "ends within a quoted value"},
		"CSV with sep=;":            {"a.csv", "sep=;\nid;a\n1;x\n", "", `its first line says that ";" separates values, and rows are written with commas`},
		"sep=; alone":               {"a.csv", "sep=;\n", "", `says that ";" separates values`},
		"CSV with sep=,":            {"a.csv", "sep=,\nid,a\n", "sep=,\nid,a\n2,y\n", ""},
		"a header within quotes":    {"a.csv", `id,"a`, "", "ends within a quoted value"},
		"CSV that is not UTF-8":     {"a.csv", "id,a\n1,\xe9\n", "", "is not UTF-8; use"},
		"CSV in UTF-16":             {"a.csv", "\xff\xfei\x00d\x00,\x00a\x00\n\x00", "", "is not UTF-8"},
		"JSON Lines":                {"a.jsonl", `{"id":1}`, "{\"id\":1}\n{\"a\":\"y\",\"id\":2}\n", ""},
		"JSON Lines that end":       {"a.jsonl", "{\"id\":1}\n", "{\"id\":1}\n{\"a\":\"y\",\"id\":2}\n", ""},
		"JSON Lines with a mark":    {"a.jsonl", "\ufeff{\"id\":1}", "\ufeff{\"id\":1}\n{\"a\":\"y\",\"id\":2}\n", ""},
		"JSON Lines that are cut":   {"a.jsonl", "{\"id\":1}\n{\"id\":0,\"cut", "", "ends with an incomplete line of JSON"},
		"a long line":               {"a.jsonl", "{\"id\":1}\n" + strings.Repeat("1", mostOfLine+1), "{\"id\":1}\n" + strings.Repeat("1", mostOfLine+1) + "\n{\"a\":\"y\",\"id\":2}\n", ""},
		"JSON Lines in UTF-16":      {"a.jsonl", "\xff\xfe1\x00\n\x00", "", "is not UTF-8"},
		"JSON Lines with bad bytes": {"a.jsonl", "\"\xe9\"\n", "", "is not UTF-8"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			c, dir := fileWorker(t)
			put(t, dir, test.file, test.there)
			_, err := writeFile(t, c, "k", []any{row}, map[string]any{"path": test.file})
			if test.says != "" {
				require.ErrorContains(t, err, test.says)
				require.Equal(t, interpreter.ClassFinal, tooltest.ErrorObject(t, err).Class)
				require.Equal(t, test.there, get(t, dir, test.file))
				return
			}
			require.NoError(t, err)
			require.Equal(t, test.want, get(t, dir, test.file))

			_, err = writeFile(t, c, "k", []any{row}, map[string]any{"path": test.file})
			require.NoError(t, err)
			require.Equal(t, test.want, get(t, dir, test.file), "the write is noted with its line break")
		})
	}
}

// TestFileAppendsToItsOwnFile: also after somebody added a line by hand.
func TestFileAppendsToItsOwnFile(t *testing.T) {
	t.Parallel()

	c, dir := fileWorker(t)
	add := func(key string, id int, a string) error {
		_, err := writeFile(t, c, key, []any{map[string]any{"id": id, "a": a}}, map[string]any{"path": "own.csv"})
		return err
	}
	require.NoError(t, add("a", 1, "x"))
	put(t, dir, "own.csv", get(t, dir, "own.csv")+"by hand,9")
	require.NoError(t, add("b", 2, "y"))
	require.Equal(t, "a,id\nx,1\nby hand,9\ny,2\n", get(t, dir, "own.csv"))
	put(t, dir, "own.csv", get(t, dir, "own.csv")+`"by hand,`)
	require.ErrorContains(t, add("c", 3, "z"), "ends within a quoted value")
}

// TestFileCSVComesBack: what the sink writes is what a step reads, value by value.
func TestFileCSVComesBack(t *testing.T) {
	t.Parallel()

	texts := []string{
		"", " ", "x", `"`, `""`, `a"b`, ",", "a,b", "\n", "\r", "\r\n", "\r\r\n", "a\nb", "a\r\nb\r", " x ", "\tx\t", "007", "1e3", "null", "sep=;", "SEP=,", "\ufeffx",
		"é", "日本", "😀", "a\u2028b", "\\", `\"`, "'", ";", "#x", "=1+1", "a\x00b", "\ufffd",
	}
	c := activities.NewCatalogue(activities.Resources{Directory: t.TempDir()})
	back := func(t *testing.T, name string, rows []any) any {
		t.Helper()
		_, err := writeFile(t, c, "k", rows, map[string]any{"path": name})
		require.NoError(t, err)
		result, err := tooltest.Call(t, c, "file", "file", fileInput(map[string]any{"path": name})(t))
		require.NoError(t, err)
		return result.Data.Data
	}
	var one, two []any
	for _, text := range texts {
		one = append(one, map[string]any{"a": text})
		two = append(two, map[string]any{"a": text, "b": text})
	}
	require.Equal(t, one, back(t, "one.csv", one))
	require.Equal(t, two, back(t, "two.csv", two))
	for i, text := range texts[1:] {
		named := []any{map[string]any{text: "v"}}
		require.Equal(t, named, back(t, fmt.Sprintf("named%d.csv", i), named), "%q", text)
	}
	require.Equal(t, []any{map[string]any{"a": ""}, map[string]any{"a": ""}}, back(t, "nil.csv", []any{map[string]any{"a": nil}, map[string]any{"a": ""}}))
	require.Equal(t, []any{}, back(t, "empty.csv", []any{}))
}

// TestFilePrivate: what the worker keeps for itself is out of reach, by whatever name.
func TestFilePrivate(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	c := activities.NewCatalogue(activities.Resources{Directory: dir, Private: []string{filepath.Join(dir, "conns.jsonl"), filepath.Join(dir, "new.jsonl")}})
	require.NoError(t, os.MkdirAll(filepath.Join(dir, ".reprise", "sub"), 0o755))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "out"), 0o755))
	put(t, dir, ".reprise/dev.json", `{"secret": 1}`)
	put(t, dir, ".reprise/sub/a.jsonl", `{"secret": 1}`)
	put(t, dir, "conns.jsonl", `{"secret": 1}`)
	put(t, dir, "rows.jsonl.reprise", "done a - 1\n")
	put(t, dir, "out/rows.jsonl", "1\n")
	for link, target := range map[string]string{
		"folder": ".reprise", "deep": ".reprise/sub", "file.json": ".reprise/dev.json", "out/up": "../.reprise", "out/c.jsonl": "../conns.jsonl",
		"around": "out/up/sub", "loop.jsonl": "loop.jsonl", "fine.jsonl": "out/rows.jsonl", "abs.jsonl": filepath.Join(dir, "out/rows.jsonl"), "journal.jsonl": "rows.jsonl.reprise",
		"outside": "..",
	} {
		require.NoError(t, os.Symlink(target, filepath.Join(dir, link)))
	}
	require.NoError(t, os.Link(filepath.Join(dir, "conns.jsonl"), filepath.Join(dir, "hard.jsonl")))
	require.NoError(t, os.Link(filepath.Join(dir, ".reprise/dev.json"), filepath.Join(dir, "dev.jsonl")))

	const private = "one of the worker's own files"
	for path, says := range map[string]string{
		".reprise/dev.json": private, ".Reprise/dev.json": private, "./.reprise/./x.jsonl": private, "out/.reprise/x.jsonl": private,
		"rows.jsonl.reprise": private, "rows.jsonl.reprise.new": private, "folder/dev.json": private, "deep/a.jsonl": private, "file.json": private,
		"out/up/dev.json": private, "around/a.jsonl": private, "journal.jsonl": private, "conns.jsonl": private, "hard.jsonl": private, "dev.jsonl": private, "t.secret-key": private, "out/c.jsonl": private, "new.jsonl": private,
		"out/../rows.jsonl": ".. is not allowed", "../x.jsonl": "under the worker's directory", filepath.Join(dir, ".reprise/dev.json"): "under the worker's directory",
		// maxLinks
		"loop.jsonl": "too many levels of symbolic links", "abs.jsonl": "escapes from parent", "outside/x.jsonl": "escapes from parent",
	} {
		for _, do := range []string{"file", "file.write"} {
			in := fileInput(map[string]any{"path": path, "format": "jsonl"})(t)
			in.OperationKey, in.Result = "k", tooltest.Value([]any{1})
			_, err := tooltest.Call(t, c, do, "file", in)
			require.ErrorContains(t, err, says, "%s %s", do, path)
			require.Equal(t, interpreter.ClassFinal, tooltest.ErrorObject(t, err).Class)
		}
	}
	_, err := writeFile(t, c, "k", []any{2}, map[string]any{"path": "fine.jsonl"})
	require.NoError(t, err, "a link to what is no secret")
	require.Equal(t, "1\n2\n", get(t, dir, "out/rows.jsonl"))
	require.FileExists(t, filepath.Join(dir, "out/rows.jsonl.reprise"))
	require.NoFileExists(t, filepath.Join(dir, "new.jsonl"))
	require.NoFileExists(t, filepath.Join(dir, "new.jsonl.reprise"))
	require.Equal(t, `{"secret": 1}`, get(t, dir, "conns.jsonl"))
	_, err = writeFile(t, c, "k", []any{2}, map[string]any{"path": "made/on/the/way.jsonl", "mode": "overwrite"})
	require.NoError(t, err)
	require.Equal(t, "2\n", get(t, dir, "made/on/the/way.jsonl"))
}

// TestFileBytes: the place of a byte that is no text is in the error, in every format.
func TestFileBytes(t *testing.T) {
	t.Parallel()

	c, dir := fileWorker(t)
	for name, content := range map[string]string{"a.csv": "a\nJ\xfcrgen\n", "a.json": "[\n\"\xfc\"]", "a.jsonl": "1\n\"\xfc\"\n", "a.txt": "a\n\xfc", "a.csv.gz": tooltest.Gzip("a\n\xfc\n")} {
		put(t, dir, name, content)
		_, err := tooltest.Call(t, c, "file", "file", fileInput(map[string]any{"path": name})(t))
		object := tooltest.ErrorObject(t, err)
		require.Equal(t, "charset", object.Type)
		require.Contains(t, object.Message, "(line 2) is not utf-8; set encoding", name)
		result, err := tooltest.Call(t, c, "file", "file", fileInput(map[string]any{"path": name, "encoding": "latin1"})(t))
		require.NoError(t, err)
		require.Contains(t, strings.ReplaceAll(expression.Text(result.Data.Data), `\u00fc`, "ü"), "ü")
	}
	in := fileInput(map[string]any{"path": "b.csv", "encoding": "latin1"})(t)
	in.Result = tooltest.Value([]any{})
	_, err := tooltest.Call(t, c, "file.write", "file", in)
	require.ErrorContains(t, err, "encoding applies only when reading, and this is a sink")
}
