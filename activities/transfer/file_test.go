package transfer_test

import (
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"reprise/activities"
	"reprise/activities/file"
	"reprise/internal/test/parquetfile"
	"reprise/interpreter"
)

// fileRows are those of a file, as another reader finds them.
func (w *world) fileRows(name string) (rows [][3]string) {
	w.Helper()
	content, err := os.ReadFile(filepath.Join(w.dir, name))
	require.NoError(w, err)
	switch filepath.Ext(name) {
	case ".gz":
		reader, err := gzip.NewReader(bytes.NewReader(content))
		require.NoError(w, err)
		content, err = io.ReadAll(reader)
		require.NoError(w, err)
	case ".zst":
		reader, err := zstd.NewReader(bytes.NewReader(content))
		require.NoError(w, err)
		defer reader.Close()
		content, err = io.ReadAll(reader)
		require.NoError(w, err)
	}
	if strings.Contains(filepath.Base(name), ".csv") {
		records, err := csv.NewReader(bytes.NewReader(content)).ReadAll()
		require.NoError(w, err)
		require.Equal(w, []string{"id", "name", "note"}, records[0])
		for _, record := range records[1:] {
			rows = append(rows, [3]string(record))
		}
		return rows
	}
	for line := range bytes.Lines(content) {
		row := struct{ ID, Name, Note string }{}
		require.NoError(w, json.Unmarshal(line, &row))
		rows = append(rows, [3]string{row.ID, row.Name, row.Note})
	}
	return rows
}

// cut leaves a file without its last bytes, as a worker that dies while it appends.
func (w *world) cut(name string, bytes int64) {
	w.Helper()
	info, err := os.Stat(filepath.Join(w.dir, name))
	require.NoError(w, err)
	require.NoError(w, os.Truncate(filepath.Join(w.dir, name), max(0, info.Size()-bytes)))
}

// TestRepeatedHeadersAreNoted: where files with headers were joined, a header is a row, and the run says so.
func TestRepeatedHeadersAreNoted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for content, notes := range map[string]int{"id,name,note\n1,a,\nid,name,note\n2,b,\n": 1, "id,name,note\n1,name,note\n": 0} {
		w.put("joined.csv", []byte(content))
		to := w.table("sqlite")
		to["schema_contract"] = map[string]any{"data_type": "discard_row"}
		result, err := w.move(fmt.Sprint("joined", notes), "sqlite", map[string]any{"from": map[string]any{"tool": "file", "path": "joined.csv"}, "to": to, "batch": 1})
		require.NoError(t, err)
		require.Len(t, result.Meta.Notes, notes)
		if notes > 0 {
			require.Contains(t, result.Meta.Notes[0], "row 2 of joined.csv has the names of the columns as its values")
		}
	}
}

// TestFilesHaveRowsOnce: whichever append a worker dies at, another one continues, and the file has what another reader of CSV finds in
// the source, behind what was there before.
func TestFilesHaveRowsOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	content := orders(1, 25, "a")
	want := parsed(t, content)
	w.put("orders.csv", content)
	_, err := w.move("fill", "sqlite", map[string]any{"from": map[string]any{"tool": "file", "path": "orders.csv"}, "to": w.table("sqlite")})
	require.NoError(t, err)
	for _, ext := range []string{"csv", "jsonl", "csv.gz", "jsonl.zst"} {
		for source, from := range map[string]map[string]any{
			"file":  {"tool": "file", "path": "orders.csv"},
			"query": {"tool": "sqlite", "path": "orders.db", "statement": "SELECT printf('%02d', id) AS id, name, note FROM orders", "order_by": "id"},
		} {
			for at := range 5 {
				for _, before := range []bool{true, false} {
					key := fmt.Sprint(ext, source, at, before)
					name := key + "." + ext
					fields := map[string]any{"from": from, "to": map[string]any{"tool": "file", "path": name}, "batch": 10}
					result := w.moveKilled(t, key, fields, at, before)
					require.Len(t, result.Meta.Rows.Tables, 1, key)
					found := w.fileRows(name)
					require.Len(t, found, 25, key)
					for i, row := range found {
						require.Equal(t, want[i][1:], row[1:], key)
					}
				}
			}
		}
	}
}

// moveKilled moves 25 rows to a file with a worker that dies before or after it notes a batch, and then with another one.
func (w *world) moveKilled(t *testing.T, key string, fields map[string]any, at int, before bool) interpreter.ToolResult {
	t.Helper()
	w.sql["file"] = file.New(w.res)
	_, err := w.attempt(key, &mortal{Ledger: w.sql["file"], at: at, before: before}, "file", fields)
	if at > 0 && at < 4 {
		require.ErrorIs(t, err, errDied, key)
	}
	w.sql["file"] = file.New(w.res) // of another process
	result, err := w.move(key, "file", fields)
	require.NoError(t, err, key)
	require.Equal(t, 25, result.Data.Data.(map[string]any)["rows"], key)
	require.EqualValues(t, 25, result.Meta.Rows.Written, key)
	return result
}

// TestObjectsHaveRowsOnce: the same below a connection, where each batch is an object of its own; the source is one, too.
func TestObjectsHaveRowsOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.res.Connections = activities.Connections{"lake": "file:lake"}
	content := orders(1, 25, "a")
	require.NoError(t, os.Mkdir(filepath.Join(w.dir, "lake"), 0o755))
	w.put("lake/orders.csv", content)
	for at := range 7 {
		for n, mode := range []string{"append", "overwrite", "append", "overwrite"} {
			before := n > 1
			key := fmt.Sprint(at, n)
			fields := map[string]any{
				"from":  map[string]any{"tool": "file", "auth": "lake", "path": "orders.csv"},
				"to":    map[string]any{"tool": "file", "auth": "lake", "path": key + ".csv", "mode": mode},
				"batch": 10,
			}
			w.files = file.New(w.res)
			w.moveKilled(t, key, fields, at, before)
			manifests, err := filepath.Glob(filepath.Join(w.dir, "lake", key+".csv", "_manifest", "*.json"))
			require.NoError(t, err)
			last, err := os.ReadFile(manifests[len(manifests)-1])
			require.NoError(t, err)
			var names struct{ Files []struct{ Path string } }
			require.NoError(t, json.Unmarshal(last, &names))
			require.Len(t, names.Files, 1, "batches are merged")
			var found [][3]string
			for _, object := range names.Files {
				found = append(found, w.fileRows(filepath.Join("lake", key+".csv", object.Path))...)
			}
			require.Equal(t, parsed(t, content), found, key)
		}
	}
}

// TestPathsHaveRowsOnce: the same where each row says its path, whatever batch it is in.
func TestPathsHaveRowsOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.res.Connections = activities.Connections{"lake": "file:lake"}
	content := orders(1, 25, "a")
	w.put("orders.csv", content)
	w.shape = &interpreter.RowWork{Path: &interpreter.RowField{Name: "path", Template: "last={{ row.id[-1:] }}"}}
	for at := range 7 {
		for n, mode := range []string{"append", "overwrite"} {
			key := fmt.Sprint(at, n)
			w.moveKilled(t, key, map[string]any{
				"from":  map[string]any{"tool": "file", "path": "orders.csv"},
				"to":    map[string]any{"tool": "file", "auth": "lake", "path": key, "format": "csv", "mode": mode},
				"batch": 10,
			}, at, n > 0)
			parts, err := filepath.Glob(filepath.Join(w.dir, "lake", key, "last=*", "part-*.csv"))
			require.NoError(t, err)
			require.Len(t, parts, 10, "a file for each path")
			var found [][3]string
			for _, part := range parts {
				name, err := filepath.Rel(w.dir, part)
				require.NoError(t, err)
				found = append(found, w.fileRows(name)...)
			}
			require.ElementsMatch(t, parsed(t, content), found, key)
		}
	}
}

// TestParquetHasRowsOnce: the same as Parquet, in the worker's directory too, with types for the texts of CSV. A value that its column does not hold
// has its line, and publishes nothing.
func TestParquetHasRowsOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	content := orders(1, 25, "a")
	w.put("orders.csv", content)
	manifests := func(key string) []string {
		found, err := filepath.Glob(filepath.Join(w.dir, key, "_manifest", "0000000[1-9].json"))
		require.NoError(t, err)
		return found
	}
	fields := func(path string, columns map[string]any) map[string]any {
		return map[string]any{
			"from": map[string]any{"tool": "file", "path": "orders.csv"}, "batch": 10,
			"to": map[string]any{"tool": "file", "path": path, "format": "parquet", "mode": "overwrite", "columns": columns},
		}
	}
	for at := range 7 {
		for _, before := range []bool{true, false} {
			key := fmt.Sprint(at, before)
			w.moveKilled(t, key, fields(key, map[string]any{"id": "integer not null"}), at, before)
			parts, err := filepath.Glob(filepath.Join(w.dir, key, "part-*.parquet"))
			require.NoError(t, err)
			require.Len(t, parts, 1, key)
			part, err := os.ReadFile(parts[0])
			require.NoError(t, err)
			found, err := parquetfile.Read(part)
			require.NoError(t, err)
			want := parsed(t, content)
			require.Len(t, found.Rows, len(want))
			for i, row := range found.Rows {
				id, err := strconv.Atoi(want[i][0])
				require.NoError(t, err)
				require.Equal(t, map[string]any{"id": id, "name": want[i][1], "note": want[i][2]}, row)
			}
		}
	}
	w.files = file.New(w.res)
	parts, err := filepath.Glob(filepath.Join(w.dir, fmt.Sprint(0, true), "part-*.parquet"))
	require.NoError(t, err)
	part, err := filepath.Rel(w.dir, parts[0])
	require.NoError(t, err)
	_, err = w.move("back", "file", map[string]any{"from": map[string]any{"tool": "file", "path": part}, "to": map[string]any{"tool": "file", "path": "back.csv", "columns": []any{"id", "name", "note"}}, "batch": 10})
	require.NoError(t, err)
	for i, row := range w.fileRows("back.csv") {
		require.Equal(t, parsed(t, content)[i][1:], row[1:])
	}
	_, err = w.move("bad", "file", fields("bad", map[string]any{"name": "varchar(1)"}))
	require.ErrorContains(t, err, `row 1 (line 2) of orders.csv: write bad as parquet: row 0, column "name": `)
	require.Empty(t, manifests("bad"))
}

// TestRejectedOfFiles: rows that the columns of the files cannot hold are in the folder of rejected, once, and the others in the files, whichever write a worker
// dies at. One more than max publishes nothing.
func TestRejectedOfFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	content := strings.NewReplacer("\n7,", "\nx7,", "\n21,", "\ny21,").Replace(string(orders(1, 25, "a")))
	require.NotEqual(t, string(orders(1, 25, "a")), content)
	w.put("orders.csv", []byte(content))
	for at := range 7 {
		for n, to := range []map[string]any{
			{"format": "parquet", "columns": map[string]any{"id": "integer not null", "name": "text", "note": "text"}},
			{"format": "parquet", "mode": "overwrite", "columns": map[string]any{"id": "integer not null", "name": "text", "note": "text"}},
		} {
			for _, before := range []bool{true, false} {
				key := fmt.Sprint("r", at, n, before)
				fields := map[string]any{
					"from": map[string]any{"tool": "file", "path": "orders.csv"}, "batch": 10,
					"to": with(to, map[string]any{"tool": "file", "path": key, "rejected": map[string]any{"path": key + "_rejected", "max": 2}}),
				}
				w.sql["file"] = file.New(w.res)
				_, err := w.attempt(key, &mortal{Ledger: w.sql["file"], at: at, before: before}, "file", fields)
				if at > 0 && at < 6 {
					require.ErrorIs(t, err, errDied, key)
				}
				w.sql["file"] = file.New(w.res) // of another process
				result, err := w.move(key, "file", fields)
				require.NoError(t, err, key)
				require.Equal(t, []any{25, 2}, []any{result.Data.Data.(map[string]any)["rows"], result.Data.Data.(map[string]any)["rejected"]}, key)
				require.Equal(t, []int64{23, 2}, []int64{result.Meta.Rows.Written, result.Meta.Rows.Rejected}, key)
				require.Equal(t, 2, result.Meta.LeftOut.RejectedRows, key)
				parts, err := filepath.Glob(filepath.Join(w.dir, key+"_rejected", "*.jsonl"))
				require.NoError(t, err)
				require.Len(t, parts, 1, key)
				rejected, err := os.ReadFile(parts[0])
				require.NoError(t, err)
				require.Equal(t, 2, bytes.Count(rejected, []byte("\n")), key)
				require.Contains(t, string(rejected), `"x7"`)
				require.Contains(t, string(rejected), `"y21"`)
				manifest := filepath.Join(w.dir, key+"_rejected", "_manifest", "00000001.json")
				require.NoError(t, os.Remove(manifest), key) // as if the worker had died right before it
				result, err = w.move(key, "file", fields)
				require.NoError(t, err, key)
				require.Equal(t, 2, result.Meta.LeftOut.RejectedRows, key)
				require.FileExists(t, manifest, key)
			}
		}
	}
	_, err := w.move("many", "file", map[string]any{
		"from": map[string]any{"tool": "file", "path": "orders.csv"}, "batch": 10,
		"to": map[string]any{"tool": "file", "path": "many", "format": "parquet", "columns": map[string]any{"id": "integer not null"}, "rejected": map[string]any{"path": "more", "max": 1}},
	})
	require.ErrorContains(t, err, `more than 1 rows do not fit (rejected.max), so nothing is published; page 3, row 1, column "id"`)
	require.NoFileExists(t, filepath.Join(w.dir, "many", "_manifest", "00000001.json"))
}

// TestHalfAppends: what a worker has appended in part is cut off before the batch is written again.
func TestHalfAppends(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("orders.csv", orders(1, 25, "a"))
	w.put("out.csv", []byte("id,name,note\n0,before,x\n"))
	w.sql["file"] = file.New(w.res)
	fields := map[string]any{"from": map[string]any{"tool": "file", "path": "orders.csv"}, "to": map[string]any{"tool": "file", "path": "out.csv"}, "batch": 10}
	_, err := w.attempt("k", &mortal{Ledger: w.sql["file"], at: 2}, "file", fields)
	require.ErrorIs(t, err, errDied)
	journal, err := os.ReadFile(filepath.Join(w.dir, "out.csv.reprise"))
	require.NoError(t, err)
	end := bytes.LastIndex(journal, []byte("\ndone "))
	require.NoError(t, os.WriteFile(filepath.Join(w.dir, "out.csv.reprise"), journal[:end+1], 0o600))
	w.cut("out.csv", 7)
	w.sql["file"] = file.New(w.res)
	_, err = w.move("k", "file", fields)
	require.NoError(t, err)
	require.Equal(t, append([][3]string{{"0", "before", "x"}}, parsed(t, orders(1, 25, "a"))...), w.fileRows("out.csv"))
}

// TestFilesThatCannotBeWritten: what a file does not take is an error that says where, and rows before it stay.
func TestFilesThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.sql["file"] = file.New(w.res)
	w.put("a.jsonl", []byte("{\"id\":1}\n{\"id\":2}\n{\"id\":3,\"more\":1}\n"))
	from := map[string]any{"tool": "file", "path": "a.jsonl"}
	for says, to := range map[string]map[string]any{
		`(lines 3 to 3) of a.jsonl: write out.csv as csv: row 0 has "more", which is not a column; the columns are id`: {"path": "out.csv"},
		"mode of to cannot be overwrite": {"path": "b.csv", "mode": "overwrite"},
		"target_size applies to fil":     {"path": "b.csv", "target_size": "1MiB"},
		"under the worker's":             {"path": "../b.csv"},
		"does not say its format":        {"path": "b"},
		"must be jsonl, csv or pa":       {"path": "b.json", "format": "json"},
		"one of the worker's own":        {"path": ".reprise/b.csv"},
		"applies only when reading":      {"path": "b.csv", "encoding": "utf-16"},
		"changed while it was being":     {"path": "a.jsonl"},
	} {
		_, err := w.move(says, "file", map[string]any{"from": from, "to": with(to, map[string]any{"tool": "file"}), "batch": 1})
		require.ErrorContains(t, err, says)
	}
	content, err := os.ReadFile(filepath.Join(w.dir, "out.csv"))
	require.NoError(t, err)
	require.Equal(t, "id\n1\n2\n", string(content))
}
