package file_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/activities"
	"reprise/activities/tooltest"
	"reprise/internal/test/parquetfile"
	"reprise/interpreter"
)

// tableRows are the rows of a path of Parquet, read as other programs do and with another reader than the tool's, and the types of its columns in each file.
func (l *lake) tableRows(t *testing.T, path string) (rows []map[string]any, types []map[string]string) {
	t.Helper()
	last, contents := l.read(t, path)
	require.Equal(t, "parquet", last.Format)
	for i, content := range contents {
		file, err := parquetfile.Read([]byte(content))
		require.NoError(t, err)
		require.Len(t, file.Rows, last.Files[i].Rows)
		of := map[string]string{}
		for _, column := range file.Columns {
			of[column.Name] = column.Type
		}
		rows, types = append(rows, file.Rows...), append(types, of)
	}
	return rows, types
}

// TestParquetWrites: each write is an object of its own that the next manifest names, once however often it is made, below a connection and in the
// worker's directory. Types stay those of the first write.
func TestParquetWrites(t *testing.T) {
	t.Parallel()
	all := lakes(t)
	all["directory"] = &lake{dir: t.TempDir()}
	for name, l := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := l.worker(t)
			if name == "directory" {
				c = activities.NewCatalogue(activities.Resources{Directory: l.dir, MaxResponseBytes: 1 << 20})
			}
			write := func(key, mode string, columns any, rows ...any) error {
				in := lakeWrite(key, "raw/o.parquet", mode, rows, map[string]any{"columns": columns})
				if name == "directory" {
					in.Auth = ""
				}
				_, err := tooltest.Call(t, c, "file.write", "file", in)
				return err
			}
			for range 2 {
				require.NoError(t, write("a", "append", nil, map[string]any{"id": 1, "total": 1, "gone": nil}, map[string]any{"id": 2, "total": 2.5, "tags": []any{"x"}}))
			}
			if name == "directory" {
				parts, err := filepath.Glob(filepath.Join(l.dir, "raw/o.parquet/part-*.parquet"))
				require.NoError(t, err)
				path, err := filepath.Rel(l.dir, parts[0])
				require.NoError(t, err)
				read, err := tooltest.Call(t, c, "file", "file", interpreter.ToolInput{Fields: tooltest.Fields(map[string]any{"path": path})})
				require.NoError(t, err)
				require.Equal(t, []any{map[string]any{"id": 1, "total": 1, "tags": nil}, map[string]any{"id": 2, "total": 2.5, "tags": `["x"]`}}, read.Data.Data)
			}
			first := []map[string]any{{"id": 1, "total": 1.0, "tags": nil}, {"id": 2, "total": 2.5, "tags": `["x"]`}}
			rows, types := l.tableRows(t, "raw/o.parquet")
			require.Equal(t, first, rows)
			require.Equal(t, []map[string]string{{"id": "bigint", "total": "double precision", "tags": "text"}}, types)
			for says, values := range map[string]map[string]any{
				`row 0, column "id": "1.5" has a fraction, and its column is of type bigint`:                   {"id": 1.5},
				`row 0, column "total": "x" is not a plain number, and its column is of type double precision`: {"total": "x"},
				`row 0, column "gone": it is not one of the columns, which are id, tags, total`:                {"gone": 1},
			} {
				require.ErrorContains(t, write("b", "append", nil, values), "write raw/o.parquet as parquet: "+says)
			}
			require.ErrorContains(t, write("b", "append", map[string]any{"id": "text"}, map[string]any{"id": 3}), `columns has text for "id", which is bigint in the existing files`)
			require.ErrorContains(t, write("b", "append", map[string]any{"id": "bigant"}, map[string]any{"id": 3}), "did you mean bigint?")
			require.NoError(t, write("b", "append", map[string]any{"gone": "date"}, map[string]any{"id": 3, "gone": "2026-03-01"}))
			require.NoError(t, write("c", "append", nil))
			rows, types = l.tableRows(t, "raw/o.parquet")
			require.Equal(t, append(first, map[string]any{"id": 3, "gone": "2026-03-01", "total": nil, "tags": nil}), rows)
			require.Equal(t, map[string]string{"id": "bigint", "total": "double precision", "tags": "text", "gone": "date"}, types[1])
			require.NoError(t, write("d", "overwrite", []any{"name", "id"}, map[string]any{"id": "x", "name": true}))
			rows, types = l.tableRows(t, "raw/o.parquet")
			require.Equal(t, []map[string]any{{"id": "x", "name": true}}, rows)
			require.Equal(t, []map[string]string{{"id": "text", "name": "boolean"}}, types)
			last, _ := l.read(t, "raw/o.parquet")
			require.Equal(t, []string{"name", "id"}, last.Columns)
			require.ErrorContains(t, write("e", "append", nil, map[string]any{"id": "y", "more": 1}), `column "more": it is not one of the columns`)
			require.ErrorContains(t, write("f", "overwrite", nil, map[string]any{"id": nil}), "no column has a value or a type")
		})
	}
}

// TestParquetIsBytewiseTheSame: the same rows are the same object, so that a write which is made again after its worker died names no other.
func TestParquetIsBytewiseTheSame(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for range 3 {
		l := lakes(t)["folder"]
		rows := []any{}
		for i := range 200 {
			rows = append(rows, map[string]any{"id": i, "name": fmt.Sprint("n", i%7), "at": nil, "more": map[string]any{"b": 1, "a": i}})
		}
		_, err := tooltest.Call(t, l.worker(t), "file.write", "file", lakeWrite("a", "o.parquet", "append", rows, nil))
		require.NoError(t, err)
		last, _ := l.read(t, "o.parquet")
		names[last.Files[0].Path] = true
	}
	require.Len(t, names, 1)
}

// TestParquetIsStaged: pages become files of about the target size; types follow from the first row group, and a later row that does not fit is an error
// with its place, after which the rows before are there.
func TestParquetIsStaged(t *testing.T) {
	t.Parallel()
	l := lakes(t)["folder"]
	load := stagedLoad{t: t, c: l.worker(t), id: "x", mode: "append", more: map[string]any{"format": "parquet"}}
	for page := range 6 {
		rows := []any{}
		for i := range 10_000 {
			values := map[string]any{"id": 10_000*page + i}
			if page == 5 {
				values["late"] = true
			}
			rows = append(rows, values)
		}
		require.NoError(t, load.stage(fmt.Sprint(page), rows))
	}
	_, err := load.publish()
	require.NoError(t, err)
	rows, types := l.tableRows(t, "o.jsonl")
	require.Len(t, types, 1)
	require.Equal(t, map[string]string{"id": "bigint", "late": "boolean"}, types[0])
	for i, row := range rows {
		if row["id"] != i || (row["late"] == true) != (i >= 50_000) {
			require.Fail(t, "another row", "%d: %v", i, row)
		}
	}
	load = stagedLoad{t: t, c: load.c, id: "y", mode: "overwrite", more: load.more}
	many := make([]any, 50_000)
	for i := range many {
		many[i] = row(i)
	}
	require.NoError(t, load.stage("1", many))
	require.NoError(t, load.stage("2", []any{row(1), map[string]any{"id": 1.5}}))
	_, err = load.publish()
	require.ErrorContains(t, err, `write o.jsonl as parquet: page 1: row 1, column "id": "1.5" has a fraction, and its column is of type bigint`)
	require.ErrorContains(t, err, "retryable: false")
	again, _ := l.tableRows(t, "o.jsonl")
	require.Len(t, again, 60_000)
	load = stagedLoad{t: t, c: load.c, id: "z", mode: "overwrite", more: map[string]any{"format": "parquet", "columns": map[string]any{"id": "integer"}}}
	require.ErrorContains(t, load.stage("1", row(1<<40)), "is out of range") // before anything is staged
}

// TestParquetTargetSize: files are ended where a row group makes them large enough.
func TestParquetTargetSize(t *testing.T) {
	t.Parallel()
	l := lakes(t)["folder"]
	load := stagedLoad{t: t, c: l.worker(t), id: "x", mode: "append", more: map[string]any{"format": "parquet", "target_size": "1KiB"}}
	for page := range 3 {
		rows := []any{}
		for i := range 50_000 {
			rows = append(rows, row(i))
		}
		require.NoError(t, load.stage(fmt.Sprint(page), rows))
	}
	_, err := load.publish()
	require.NoError(t, err)
	_, types := l.tableRows(t, "o.jsonl")
	require.Len(t, types, 3)
}

// TestParquetInTheDirectory: what is written there is fenced as files are: no link leads out of it, and no name into what is the worker's own.
func TestParquetInTheDirectory(t *testing.T) {
	t.Parallel()
	dir, other := t.TempDir(), t.TempDir()
	require.NoError(t, os.Symlink(other, filepath.Join(dir, "link")))
	c := activities.NewCatalogue(activities.Resources{Directory: dir, MaxResponseBytes: 1 << 20})
	for path, says := range map[string]string{"link/o.parquet": "escapes from parent", "../o.parquet": "must be a file under the worker's directory", ".reprise/o.parquet": "worker's own"} {
		in := lakeWrite("a", path, "append", []any{row(1)}, nil)
		in.Auth = ""
		_, err := tooltest.Call(t, c, "file.write", "file", in)
		require.ErrorContains(t, err, says, path)
	}
	left, err := os.ReadDir(other)
	require.NoError(t, err)
	require.Empty(t, left)
}
