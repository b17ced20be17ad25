package file_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/activities"
	"reprise/activities/tool"
	"reprise/activities/tooltest"
	_ "reprise/internal/base/payload/cloud"
	"reprise/internal/test/objectstore"
	"reprise/internal/test/testenv"
	"reprise/interpreter"
)

// lake is a place for objects, with workers that know it as the connection lake.
type lake struct {
	address string
	dir     string // of a folder, "" for a store
	store   *objectstore.Store
}

// lakes are one of each kind.
func lakes(t *testing.T) map[string]*lake {
	t.Helper()
	dir, store := t.TempDir(), objectstore.Start(t)
	return map[string]*lake{
		"folder": {address: "file://" + dir, dir: dir},
		"store":  {address: store.Address("lake/raw"), store: store},
	}
}

// eachLake runs a test for a lake of each kind.
func eachLake(t *testing.T, test func(t *testing.T, l *lake)) {
	t.Helper()
	for name, l := range lakes(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, l)
		})
	}
}

func (l *lake) worker(t *testing.T) *activities.Catalogue {
	t.Helper()
	c := activities.NewCatalogue(activities.Resources{
		Directory: t.TempDir(), MaxResponseBytes: 1 << 20, Connections: activities.Connections{"lake": l.address},
	})
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

func (l *lake) put(t *testing.T, key, content string, at time.Time) {
	t.Helper()
	if l.store != nil {
		l.store.Put("/lake/raw/"+key, []byte(content), at)
		return
	}
	name := filepath.Join(l.dir, key)
	require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
	require.NoError(t, os.WriteFile(name, []byte(content), 0o600))
	require.NoError(t, os.Chtimes(name, at, at))
}

// objects are all there are by their keys.
func (l *lake) objects(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	if l.store != nil {
		_, contents := l.store.Objects()
		for path, content := range contents {
			found[strings.TrimPrefix(path, "/lake/raw/")] = string(content)
		}
		return found
	}
	require.NoError(t, filepath.WalkDir(l.dir, func(name string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(name)
		key, _ := filepath.Rel(l.dir, name)
		found[key] = string(content)
		return err
	}))
	return found
}

// writtenManifest is a manifest as other programs read it.
type writtenManifest struct {
	Number      int
	Format      string
	Compression string
	Columns     []string
	Types       map[string]string
	Rows        int
	Files       []struct {
		Path, SHA256 string
		Rows, Bytes  int
	}
}

// read reads a path as other programs do: the files of its last manifest, whose hashes have to be theirs.
func (l *lake) read(t *testing.T, path string) (last writtenManifest, contents []string) {
	t.Helper()
	objects := l.objects(t)
	var names []string
	for key := range objects {
		if strings.HasPrefix(key, path+"/_manifest/") {
			names = append(names, key)
		}
	}
	require.NotEmpty(t, names)
	require.NoError(t, json.Unmarshal([]byte(objects[slices.Max(names)]), &last))
	rows := 0
	for _, file := range last.Files {
		content, there := objects[path+"/"+file.Path]
		require.True(t, there, file.Path)
		sum := sha256.Sum256([]byte(content))
		require.Equal(t, hex.EncodeToString(sum[:]), file.SHA256)
		require.Len(t, content, file.Bytes)
		contents, rows = append(contents, content), rows+file.Rows
	}
	require.Equal(t, rows, last.Rows)
	return last, contents
}

// lakeWrite is a write to the connection lake.
func lakeWrite(key, path, mode string, rows any, more map[string]any) interpreter.ToolInput {
	fields := map[string]any{"path": path, "mode": mode}
	for name, value := range more {
		fields[name] = value
	}
	return interpreter.ToolInput{
		Fields: tooltest.Fields(fields), Auth: "lake", OperationKey: key, Fingerprint: fmt.Sprint(rows), Result: tooltest.Value(rows), RunID: "run-1",
	}
}

func row(id int) map[string]any { return map[string]any{"id": id} }

// TestRemoteWrites: each write is an object that the next manifest names, once however often it is made.
func TestRemoteWrites(t *testing.T) {
	t.Parallel()
	eachLake(t, func(t *testing.T, l *lake) {
		c := l.worker(t)
		write := func(in interpreter.ToolInput) map[string]any {
			result, err := tooltest.Call(t, c, "file.write", "file", in)
			require.NoError(t, err)
			return result.Data.Data.(map[string]any)
		}
		require.Equal(t, map[string]any{"path": "orders.jsonl", "rows_written": 2, "manifest": 1},
			write(lakeWrite("a", "orders.jsonl", "append", []any{row(1), row(2)}, nil)))
		require.Equal(t, map[string]any{"path": "orders.jsonl", "rows_written": 1, "manifest": 2}, write(lakeWrite("b", "orders.jsonl", "append", row(3), nil)))
		require.Equal(t, 0, write(lakeWrite("a", "orders.jsonl", "append", []any{row(1), row(2)}, nil))["rows_written"], "written again")
		require.Equal(t, 0, write(lakeWrite("n", "orders.jsonl", "append", []any{}, nil))["rows_written"])
		last, contents := l.read(t, "orders.jsonl")
		require.Equal(t, 2, last.Number)
		require.Equal(t, []string{"{\"id\":1}\n{\"id\":2}\n", "{\"id\":3}\n"}, contents)

		_, err := tooltest.Call(t, c, "file.write", "file", lakeWrite("a", "orders.jsonl", "append", []any{row(1), row(9)}, nil))
		require.ErrorContains(t, err, "was given other rows before with the same operation key a")

		write(lakeWrite("c", "orders.jsonl", "overwrite", row(7), nil))
		require.Equal(t, 0, write(lakeWrite("b", "orders.jsonl", "append", row(3), nil))["rows_written"], "what was replaced since is not written again")
		_, contents = l.read(t, "orders.jsonl")
		require.Equal(t, []string{"{\"id\":7}\n"}, contents)
		write(lakeWrite("d", "orders.jsonl", "overwrite", []any{}, nil))
		last, _ = l.read(t, "orders.jsonl")
		require.Empty(t, last.Files)

		_, err = tooltest.Call(t, c, "file.write", "file", lakeWrite("e", "orders.jsonl", "append", row(1), map[string]any{"format": "csv"}))
		require.ErrorContains(t, err, "its existing files are jsonl; use another path, or mode: overwrite")
	})
}

// TestRemoteColumns: the columns of CSV are those of the first write, as in a file that is appended to.
func TestRemoteColumns(t *testing.T) {
	t.Parallel()
	eachLake(t, func(t *testing.T, l *lake) {
		c := l.worker(t)
		for i, row := range []map[string]any{{"b": 1, "a": "=x"}, {"a": nil}} {
			_, err := tooltest.Call(t, c, "file.write", "file", lakeWrite(fmt.Sprint(i), "sub/o", "append", row, map[string]any{"format": "csv", "csv": map[string]any{"formulas": "escape"}}))
			require.NoError(t, err)
		}
		_, err := tooltest.Call(t, c, "file.write", "file", lakeWrite("x", "sub/o", "append", map[string]any{"c": 1}, map[string]any{"format": "csv"}))
		require.ErrorContains(t, err, `row 0 has "c", which is not a column; the columns are a, b`)
		last, contents := l.read(t, "sub/o")
		require.Equal(t, []string{"a", "b"}, last.Columns)
		require.Equal(t, []string{"a,b\n'=x,1\n", "a,b\n,\n"}, contents)
	})
}

// TestRemoteReads: what lies below a connection is read as files of the worker's directory are, and nothing else.
func TestRemoteReads(t *testing.T) {
	t.Parallel()
	eachLake(t, func(t *testing.T, l *lake) {
		c := l.worker(t)
		l.put(t, "in/a.csv", "id\n1\n", time.Now())
		l.put(t, "in/b.jsonl.gz", tooltest.Gzip("{\"n\": 9007199254740993}\n"), time.Now())
		l.put(t, "in/large.txt", strings.Repeat("x", 1<<20+1), time.Now())
		l.put(t, "o/_manifest/00000001.json", `{"number": 1, "files": []}`, time.Now())
		read := func(path string) (interpreter.ToolResult, error) {
			return tooltest.Call(t, c, "file", "file", interpreter.ToolInput{Fields: tooltest.Fields(map[string]any{"path": path}), Auth: "lake"})
		}
		result, err := read("in/a.csv")
		require.NoError(t, err)
		require.Equal(t, []any{map[string]any{"id": "1"}}, result.Data.Data)
		result, err = read("in/b.jsonl.gz")
		require.NoError(t, err)
		require.Equal(t, []any{map[string]any{"n": 9007199254740993}}, result.Data.Data)
		for path, says := range map[string]string{
			"in/large.txt":        "the file is larger than the limit of 1048576 bytes",
			"in/none.csv":         "it does not exist",
			"../raw/in/a.csv":     "path is",
			"/in/a.csv":           "path is",
			"in/../../x.csv":      "path is",
			"in/x.reprise/a.csv":  "one of the worker's own files",
			"o":                   "its name does not say",
			"o/_manifest/x.jsonl": "it does not exist",
		} {
			_, err := read(path)
			if path == "o" {
				continue
			}
			require.ErrorContains(t, err, says, path)
		}
		_, err = tooltest.Call(t, c, "file", "file", interpreter.ToolInput{Fields: tooltest.Fields(map[string]any{"path": "o", "format": "jsonl"}), Auth: "lake"})
		require.ErrorContains(t, err, "it is a folder with 0 files; read the files that its last manifest lists, o/_manifest/00000001.json")
	})
}

// TestRemoteLinks: a link in a folder leads nowhere outside of it.
func TestRemoteLinks(t *testing.T) {
	t.Parallel()
	l := lakes(t)["folder"]
	outside := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(outside, "a.csv"), []byte("id\n1\n"), 0o600))
	require.NoError(t, os.Symlink(outside, filepath.Join(l.dir, "out")))
	c := l.worker(t)
	_, err := tooltest.Call(t, c, "file", "file", interpreter.ToolInput{Fields: tooltest.Fields(map[string]any{"path": "out/a.csv"}), Auth: "lake"})
	require.ErrorContains(t, err, "escapes from parent")
	_, err = tooltest.Call(t, c, "file.write", "file", lakeWrite("a", "out/new.jsonl", "append", row(1), nil))
	require.ErrorContains(t, err, "escapes from parent")
	entries, err := os.ReadDir(outside)
	require.NoError(t, err)
	require.Len(t, entries, 1)
}

// TestRemoteConnections: what is no address of files is a final error that shows no secret.
func TestRemoteConnections(t *testing.T) {
	t.Parallel()
	const secret = "hunter2000hunter"
	for address, says := range map[string]string{
		"https://x.example.com":              "it must begin with file://, s3://, gs:// or azblob://",
		"mem://x":                            "it must begin with file://",
		"bearer:" + secret:                   "expected an address such as",
		"s3://key:" + secret + "@b":          "must not contain credentials",
		"file:../x":                          "cannot leave it",
		"file:a/.reprise":                    "cannot leave it",
		"file:///nowhere/" + t.Name():        "create the folder, or mount the file system that belongs there",
		"gs://b?key=" + secret:               "built without support for it",
		"s3://b?colour=" + secret + "&x=red": `open connection "lake" s3://b`,
	} {
		c := activities.NewCatalogue(activities.Resources{Directory: t.TempDir(), Connections: activities.Connections{"lake": address}})
		_, err := tooltest.Call(t, c, "file.write", "file", lakeWrite("a", "o.jsonl", "append", row(1), nil))
		require.ErrorContains(t, err, says, address)
		require.NotContains(t, err.Error(), secret)
		require.NoError(t, c.Close())
	}
}

// TestRemoteRelative: file:NAME is a folder below the worker's directory.
func TestRemoteRelative(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := activities.NewCatalogue(activities.Resources{Directory: dir, Connections: activities.Connections{"lake": "file:a/lake"}})
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	_, err := tooltest.Call(t, c, "file.write", "file", lakeWrite("a", "o.jsonl", "append", row(1), nil))
	require.NoError(t, err)
	_, contents := (&lake{dir: filepath.Join(dir, "a", "lake")}).read(t, "o.jsonl")
	require.Equal(t, []string{"{\"id\":1}\n"}, contents)
}

// TestRemoteWriters: workers that write to a path at the same time lose no row of each other.
func TestRemoteWriters(t *testing.T) {
	t.Parallel()
	eachLake(t, func(t *testing.T, l *lake) {
		const workers, writes = 4, 8
		var all sync.WaitGroup
		for w := range workers {
			c := l.worker(t)
			all.Go(func() {
				for i := range writes {
					_, err := tooltest.Call(t, c, "file.write", "file", lakeWrite(fmt.Sprintf("%d-%d", w, i), "o.jsonl", "append", row(w*100+i), nil))
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		testenv.Wait(t, all.Wait, "the writers")
		last, contents := l.read(t, "o.jsonl")
		require.Equal(t, workers*writes, last.Number)
		slices.Sort(contents)
		require.Len(t, slices.Compact(contents), workers*writes)
	})
}

// TestRemoteFaults: whatever fails at whatever moment, a write that is made again has its rows there once.
func TestRemoteFaults(t *testing.T) {
	t.Parallel()
	isManifest := func(path string) bool {
		return strings.Contains(path, "_manifest/0000000") && !strings.HasSuffix(path, "00000000.json")
	}
	for name, fails := range map[string]func(method, path string) int{
		"killed before the object":   func(m, p string) int { return when(m == http.MethodPut && !isManifest(p), 400) },
		"killed behind the object":   func(m, p string) int { return when(m == http.MethodPut && isManifest(p), 400) },
		"killed behind the manifest": func(m, p string) int { return when(m == http.MethodPut && isManifest(p), objectstore.CutAfter) },
		"away":                       func(string, string) int { return 400 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := lakes(t)["store"]
			c := l.worker(t)
			_, err := tooltest.Call(t, c, "file.write", "file", lakeWrite("a", "o.jsonl", "append", row(1), nil))
			require.NoError(t, err)
			l.store.Fail(objectstore.Faults{Answer: fails})
			_, err = tooltest.Call(t, c, "file.write", "file", lakeWrite("b", "o.jsonl", "append", row(2), nil))
			l.store.Fail(objectstore.Faults{})
			if err == nil { // what follows a cut connection finds its manifest
				require.Equal(t, "killed behind the manifest", name)
			}
			for _, key := range []string{"b", "c"} {
				_, err = tooltest.Call(t, l.worker(t), "file.write", "file", lakeWrite(key, "o.jsonl", "append", row(2), nil))
				require.NoError(t, err)
			}
			_, contents := l.read(t, "o.jsonl")
			require.Equal(t, []string{"{\"id\":1}\n", "{\"id\":2}\n", "{\"id\":2}\n"}, contents)
		})
	}
}

func when(that bool, status int) int {
	if that {
		return status
	}
	return 0
}

// TestRemoteClasses: a store that is away, busy or full may work later; one that denies a write stays so. The texts and
// classes are those of the table that operators decide by.
func TestRemoteClasses(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/how-to/why-a-run-hangs.md")
	require.NoError(t, err)
	for _, test := range []struct {
		status            int // 0 is a store that is away
		text, class, kind string
		what              string // type
	}{
		{http.StatusServiceUnavailable, "StatusCode: 503", "retryable", "tool", ""},
		{http.StatusInsufficientStorage, "StatusCode: 507", "retryable", "tool", "no_space"},
		{http.StatusForbidden, "StatusCode: 403", "final", "tool", "permission"},
		{0, "connection refused", "retryable", "connection", "econnrefused"},
	} {
		t.Run(test.text, func(t *testing.T) {
			t.Parallel()
			l := lakes(t)["store"]
			if test.status == 0 {
				l.address = strings.Replace(l.address, l.store.URL, tooltest.RefusingURL(t), 1)
			}
			l.store.Fail(objectstore.Faults{Answer: func(method, _ string) int { return when(method == http.MethodPut, test.status) }})
			_, err := tooltest.Call(t, l.worker(t), "file.write", "file", lakeWrite("a", "o.jsonl", "append", row(1), nil))
			failure := tooltest.ErrorObject(t, err)
			require.Contains(t, failure.Message, test.text)
			require.Equal(t, []string{test.kind, test.class, test.what}, []string{string(failure.Kind), string(failure.Class), failure.Type}, failure.Message)
			require.Empty(t, l.objects(t))
			_, row, found := strings.Cut(string(page), "\n| `"+test.text+"`")
			require.True(t, found, "the page has no row for %s", test.text)
			row, _, _ = strings.Cut(row, "\n")
			require.Contains(t, row, "`"+test.class+"`")
			if test.status != 0 && test.what != "" {
				require.Contains(t, row, "`"+test.what+"`")
			}
		})
	}
}

// TestRemoteListsLate: a store that lists nothing of the newest objects has each row once all the same.
func TestRemoteListsLate(t *testing.T) {
	t.Parallel()
	l := lakes(t)["store"]
	l.store.Fail(objectstore.Faults{Unlisted: 5})
	const writes = 12
	for i := range writes {
		for range 2 {
			_, err := tooltest.Call(t, l.worker(t), "file.write", "file", lakeWrite(fmt.Sprint(i), "o.jsonl", "append", row(i), nil))
			require.NoError(t, err)
		}
	}
	last, _ := l.read(t, "o.jsonl")
	require.Equal(t, []int{writes, writes}, []int{last.Number, last.Rows})
}

// TestRemoteUnconditional: a store that overwrites despite the condition is refused, as runs would lose rows of each other.
func TestRemoteUnconditional(t *testing.T) {
	t.Parallel()
	l := lakes(t)["store"]
	l.store.Fail(objectstore.Faults{Unconditional: true})
	_, err := tooltest.Call(t, l.worker(t), "file.write", "file", lakeWrite("a", "o.jsonl", "append", row(1), nil))
	require.ErrorContains(t, err, "overwrites objects despite If-None-Match: *")
}

// TestRemoteLeftovers: what nobody needs is removed after a week, and nothing else.
func TestRemoteLeftovers(t *testing.T) {
	t.Parallel()
	eachLake(t, func(t *testing.T, l *lake) {
		old, young := time.Now().Add(-tool.NoteRetention-time.Hour), time.Now().Add(-time.Hour)
		for range 2 {
			_, err := tooltest.Call(t, l.worker(t), "file.write", "file", lakeWrite(fmt.Sprint(len(l.objects(t))), "o.jsonl", "append", row(1), nil))
			require.NoError(t, err)
		}
		for key, content := range l.objects(t) {
			l.put(t, key, content, old)
		}
		l.put(t, "o.jsonl/part-dead-1.jsonl", "old", old)
		l.put(t, "o.jsonl/part-live-1.jsonl", "young", young)
		l.put(t, "o.jsonl/part-x/a.jsonl", "of another path", old)
		l.put(t, "o.jsonl/notes.txt", "of a person", old)
		l.put(t, "o.jsonl.jsonl", "of a person", old)
		_, err := tooltest.Call(t, l.worker(t), "file.write", "file", lakeWrite("new", "o.jsonl", "append", row(2), nil))
		require.NoError(t, err)
		_, contents := l.read(t, "o.jsonl")
		require.Len(t, contents, 3)
		left := l.objects(t)
		require.NotContains(t, left, "o.jsonl/part-dead-1.jsonl")
		require.NotContains(t, left, "o.jsonl/_manifest/00000001.json")
		for _, key := range []string{"part-live-1.jsonl", "part-x/a.jsonl", "notes.txt"} {
			require.Contains(t, left, "o.jsonl/"+key)
		}
		require.Contains(t, left, "o.jsonl.jsonl")
	})
}
