package file_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"reprise/activities"
	"reprise/activities/tooltest"
	"reprise/internal/test/parquetfile"
	"reprise/interpreter"
)

// unpacked is what another reader finds in a file, to its end.
func unpacked(t *testing.T, name, content string) string {
	t.Helper()
	switch {
	case strings.HasSuffix(name, ".gz"):
		reader, err := gzip.NewReader(strings.NewReader(content))
		require.NoError(t, err)
		text, err := io.ReadAll(reader)
		require.NoError(t, err)
		return string(text)
	case strings.HasSuffix(name, ".zst"):
		reader, err := zstd.NewReader(strings.NewReader(content))
		require.NoError(t, err)
		defer reader.Close()
		text, err := io.ReadAll(reader)
		require.NoError(t, err)
		return string(text)
	}
	return content
}

// packed is text as somebody else compresses it.
func packed(t *testing.T, name, text string) string {
	t.Helper()
	if strings.HasSuffix(name, ".gz") {
		return tooltest.Gzip(text)
	}
	var content bytes.Buffer
	writer, err := zstd.NewWriter(&content)
	require.NoError(t, err)
	_, err = io.WriteString(writer, text)
	require.NoError(t, err)
	require.NoError(t, writer.Close())
	return content.String()
}

// TestFilePacked: each write is a member of its own, whose rows are found behind those of the writes before; the same writes are the same bytes,
// and one that is made again adds none.
func TestFilePacked(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"a.jsonl.gz":  "{\"id\":1}\n{\"id\":2}\n{\"id\":3}\n",
		"a.jsonl.zst": "{\"id\":1}\n{\"id\":2}\n{\"id\":3}\n",
		"a.csv.gz":    "id\n1\n2\n3\n",
		"A.CSV.ZSTD":  "id\n1\n2\n3\n",
	} {
		var first string
		for range 2 {
			c, dir := fileWorker(t)
			for _, id := range []int{1, 2, 3, 2} {
				_, err := writeFile(t, c, fmt.Sprint(id), row(id), map[string]any{"path": name})
				require.NoError(t, err)
			}
			content := get(t, dir, name)
			require.Equal(t, want, unpacked(t, strings.ToLower(strings.TrimSuffix(name, "D")), content), name)
			if first == "" {
				first = content
			}
			require.Equal(t, first, content, "the same bytes, whenever they are written")
			result, err := tooltest.Call(t, c, "file", "file", fileInput(map[string]any{"path": name})(t))
			require.NoError(t, err)
			require.Len(t, result.Data.Data, 3)
			_, err = writeFile(t, c, "e", []any{}, map[string]any{"path": name})
			require.NoError(t, err)
			require.Equal(t, content, get(t, dir, name))
			_, err = writeFile(t, c, "o", []any{}, map[string]any{"path": name, "mode": "overwrite", "compression": compressionByName(name)})
			require.NoError(t, err)
			require.Empty(t, unpacked(t, strings.ToLower(strings.TrimSuffix(name, "D")), get(t, dir, name)), "and it is a whole file of that compression")
		}
	}
	members := 0
	c, dir := fileWorker(t)
	for i := range 3 {
		_, err := writeFile(t, c, fmt.Sprint(i), row(i), map[string]any{"path": "m.jsonl.gz"})
		require.NoError(t, err)
	}
	rest := bytes.NewReader([]byte(get(t, dir, "m.jsonl.gz")))
	for rest.Len() > 0 {
		reader, err := gzip.NewReader(rest)
		require.NoError(t, err)
		reader.Multistream(false)
		require.True(t, reader.ModTime.IsZero())
		_, err = io.Copy(io.Discard, reader)
		require.NoError(t, err)
		members++
	}
	require.Equal(t, 3, members)
}

// compressionByName is the compression that a name says.
func compressionByName(name string) string {
	if strings.HasSuffix(name, "gz") {
		return "gzip"
	}
	return "zstd"
}

// TestFilePackedBehindOthers: rows are added to what others have compressed if a reader finds them behind it, else that is an error and nothing is written.
func TestFilePackedBehindOthers(t *testing.T) {
	t.Parallel()
	for _, ending := range []string{".gz", ".zst"} {
		pack := func(text string) string { return packed(t, ending, text) }
		whole := pack("id,a\n1,x\n")
		for name, test := range map[string]struct{ file, there, want, says string }{
			"with its line break":      {"a.csv", whole, "id,a\n1,x\n2,y\n", ""},
			"without it":               {"a.csv", pack("id,a\n1,x"), "id,a\n1,x\n2,y\n", ""},
			"of several members":       {"a.csv", pack("id,") + pack("a\n") + pack("1,x"), "id,a\n1,x\n2,y\n", ""},
			"with a mark":              {"a.csv", pack("\ufeffid,a"), "\ufeffid,a\n2,y\n", ""},
			"a mark alone":             {"a.csv", pack("\ufeff"), "\ufeffa,id\ny,2\n", ""},
			"with a line that is none": {"a.csv", pack("id,a\n1,2,3\n4,x"), "id,a\n1,2,3\n4,x\n2,y\n", ""},
			"nothing in it":            {"a.csv", pack(""), "a,id\ny,2\n", ""},
			"no bytes":                 {"a.csv", "", "a,id\ny,2\n", ""},
			"JSON Lines":               {"a.jsonl", pack(`{"id":1}`), "{\"id\":1}\n{\"a\":\"y\",\"id\":2}\n", ""},
			"within quotes":            {"a.csv", pack("id,a\n1,\"x\n"), "", "ends within a quoted value"},
			"not UTF-8":                {"a.csv", pack("id,a\n1,\xe9\n"), "", "is not UTF-8"},
			"not UTF-8 in the end":     {"a.jsonl", pack("1\n") + pack("\"\xe9\"\n"), "", "is not UTF-8"},
			"cut":                      {"a.csv", whole[:len(whole)-3], "", "cannot be unpacked to its end, so new rows would not be read"},
			"cut in a later member":    {"a.csv", whole + whole[:len(whole)-9], "", "cannot be unpacked to its end"},
			"rubbish behind it":        {"a.csv", whole + "rubbish", "", "cannot be unpacked to its end"},
			"not compressed":           {"a.csv", "id,a\n1,x\n", "", "the existing file is not compressed; use another path"},
		} {
			t.Run(ending+" "+name, func(t *testing.T) {
				t.Parallel()
				c, dir := fileWorker(t)
				put(t, dir, test.file+ending, test.there)
				for range 2 {
					_, err := writeFile(t, c, "k", []any{map[string]any{"id": 2, "a": "y"}}, map[string]any{"path": test.file + ending})
					if test.says != "" {
						require.ErrorContains(t, err, test.says)
						require.Equal(t, interpreter.ClassFinal, tooltest.ErrorObject(t, err).Class)
						require.Equal(t, test.there, get(t, dir, test.file+ending))
						continue
					}
					require.NoError(t, err)
					require.Equal(t, test.want, unpacked(t, ending, get(t, dir, test.file+ending)))
				}
			})
		}
	}
	c, dir := fileWorker(t)
	put(t, dir, "a.jsonl", tooltest.Gzip("1\n"))
	_, err := writeFile(t, c, "k", row(1), map[string]any{"path": "a.jsonl"})
	require.ErrorContains(t, err, "the existing file is compressed with gzip")
}

// TestFilePackedCutShort: a member that a worker has written in part is cut off before the next write; one whose end somebody has cut since is an error.
func TestFilePackedCutShort(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a.jsonl.gz", "a.csv.zst"} {
		c, dir := fileWorker(t)
		_, err := writeFile(t, c, "1", row(1), map[string]any{"path": name})
		require.NoError(t, err)
		before := get(t, dir, name)
		_, err = writeFile(t, c, "2", row(2), map[string]any{"path": name})
		require.NoError(t, err)
		whole, journal := get(t, dir, name), get(t, dir, name+".reprise")
		for cut := len(before); cut < len(whole); cut++ {
			put(t, dir, name, whole[:cut])
			put(t, dir, name+".reprise", journal[:strings.LastIndex(journal, "done")])
			other := activities.NewCatalogue(activities.Resources{Directory: dir, MaxResponseBytes: 1000})
			_, err = writeFile(t, other, "2", row(2), map[string]any{"path": name})
			require.NoError(t, err)
			require.Equal(t, whole, get(t, dir, name), cut)
			require.NoError(t, other.Close())
		}
		put(t, dir, name, whole[:len(whole)-1])
		_, err = writeFile(t, c, "3", row(3), map[string]any{"path": name})
		require.ErrorContains(t, err, "cannot be unpacked to its end")
		require.Equal(t, whole[:len(whole)-1], get(t, dir, name))
	}
}

// TestLakePacked: files of single writes and of pages are compressed, and the manifest says how; other compressions do not meet in one path.
func TestLakePacked(t *testing.T) {
	t.Parallel()
	eachLake(t, func(t *testing.T, l *lake) {
		for compression, ending := range map[string]string{"gzip": ".gz", "zstd": ".zst"} {
			for format, want := range map[string]string{"jsonl": "{\"id\":1}\n{\"id\":2}\n{\"id\":3}\n", "csv": "id\n1\nid\n2\n3\n"} {
				more := map[string]any{"format": format, "compression": compression}
				path := compression + format
				write := func(key, mode string, fields map[string]any, rows any) error {
					_, err := tooltest.Call(t, l.worker(t), "file.write", "file", lakeWrite(key, path, mode, rows, fields))
					return err
				}
				for range 2 {
					require.NoError(t, write("1", "append", more, row(1)))
				}
				load := stagedLoad{t: t, c: l.worker(t), id: path, mode: "append", more: map[string]any{"format": format, "compression": compression, "path": path}}
				require.NoError(t, load.stage("2", row(2)))
				require.NoError(t, load.stage("3", row(3)))
				_, err := load.publish()
				require.NoError(t, err)
				check := func(want string) {
					last, contents := l.read(t, path)
					text := ""
					for i, content := range contents {
						require.True(t, strings.HasSuffix(last.Files[i].Path, "."+format+ending), last.Files[i].Path)
						text += unpacked(t, ending, content)
					}
					require.Equal(t, want, text)
					require.Equal(t, compression, last.Compression)
				}
				check(want)
				require.ErrorContains(t, write("4", "append", map[string]any{"format": format}, row(4)), "with compression none: its existing files have "+compression)
				load = stagedLoad{t: t, c: load.c, id: "other", mode: "append", more: map[string]any{"format": format, "path": path}}
				require.ErrorContains(t, load.stage("4", row(4)), "its existing files have "+compression) // before any is staged
				check(want)
				require.NoError(t, write("5", "overwrite", map[string]any{"format": format, "compression": "none"}, row(5)))
				last, _ := l.read(t, path)
				require.Empty(t, last.Compression)
				require.True(t, strings.HasSuffix(last.Files[0].Path, "."+format))
				require.NoError(t, write("6", "overwrite", more, row(6)))
				check(map[string]string{"jsonl": "{\"id\":6}\n", "csv": "id\n6\n"}[format])
			}
		}
	})
}

// TestLakePackedAtOnce: of two loads that stage rows for a new path with different compressions, the second to publish fails, and the first keeps its rows.
func TestLakePackedAtOnce(t *testing.T) {
	t.Parallel()
	eachLake(t, func(t *testing.T, l *lake) {
		loads := []stagedLoad{}
		for i, compression := range []string{"gzip", "none", "zstd"} {
			loads = append(loads, stagedLoad{t: t, c: l.worker(t), id: compression, mode: "append", more: map[string]any{"compression": compression}})
			require.NoError(t, loads[i].stage(compression, row(i)))
		}
		_, err := loads[0].publish()
		require.NoError(t, err)
		for _, load := range loads[1:] {
			_, err = load.publish()
			require.ErrorContains(t, err, "its existing files have gzip; use another path, or mode: overwrite")
			require.Equal(t, interpreter.ClassFinal, tooltest.ErrorObject(t, err).Class)
		}
		last, contents := l.read(t, "o.jsonl")
		require.Equal(t, 1, last.Number)
		require.Equal(t, "{\"id\":0}\n", unpacked(t, ".gz", contents[0]))
	})
}

// TestLakePackedSize: files have about the target size of compressed bytes.
func TestLakePackedSize(t *testing.T) {
	t.Parallel()
	l := lakes(t)["folder"]
	load := stagedLoad{t: t, c: l.worker(t), id: "x", mode: "append", more: map[string]any{"target_size": "64KiB", "compression": "gzip"}}
	var want strings.Builder
	for page := range 12 {
		rows := []any{}
		for i := range 1000 {
			rows = append(rows, map[string]any{"id": page*1000 + i, "text": fmt.Sprintf("%x", page*7_919_777+i*104_729)})
		}
		for _, row := range rows {
			line, err := json.Marshal(row)
			require.NoError(t, err)
			want.Write(append(line, '\n'))
		}
		require.NoError(t, load.stage(fmt.Sprint(page), rows))
	}
	_, err := load.publish()
	require.NoError(t, err)
	last, contents := l.read(t, "o.jsonl")
	text := ""
	for i, content := range contents {
		text += unpacked(t, ".gz", content)
		if i < len(contents)-1 {
			require.Greater(t, last.Files[i].Bytes, 64<<10)
		}
		require.Less(t, last.Files[i].Bytes, 192<<10)
	}
	require.Greater(t, len(contents), 1)
	require.Equal(t, want.String(), text)
}

// TestParquetPacked: compression is that of the pages, files of several are read alike, and the same rows are the same bytes.
func TestParquetPacked(t *testing.T) {
	t.Parallel()
	l := lakes(t)["folder"]
	sizes := map[string]int{}
	for _, compression := range []string{"", "none", "gzip", "zstd", "zstd"} {
		fields := map[string]any{"format": "parquet"}
		if compression != "" {
			fields["compression"] = compression
		}
		rows := []any{}
		for i := range 500 {
			rows = append(rows, map[string]any{"id": i, "text": fmt.Sprintf("%d of many texts", i)})
		}
		_, err := tooltest.Call(t, l.worker(t), "file.write", "file", lakeWrite(fmt.Sprint(len(sizes), compression == "zstd" && sizes[compression] > 0), "p", "append", rows, fields))
		require.NoError(t, err)
		last, contents := l.read(t, "p")
		require.Empty(t, last.Compression)
		file, err := parquetfile.Read([]byte(contents[len(contents)-1]))
		require.NoError(t, err)
		require.Len(t, file.Rows, 500)
		for i, row := range file.Rows {
			require.Equal(t, map[string]any{"id": i, "text": fmt.Sprintf("%d of many texts", i)}, row)
		}
		if before := sizes[compression]; before > 0 {
			require.Equal(t, contents[len(contents)-2], contents[len(contents)-1])
		}
		sizes[compression] = len(contents[len(contents)-1])
	}
	require.Less(t, sizes["zstd"], sizes[""])
	require.Less(t, sizes["gzip"], sizes[""])
	require.Less(t, sizes[""], sizes["none"])
}

// TestFilePackedRefused: what would write a file that readers do not take for what it is.
func TestFilePackedRefused(t *testing.T) {
	t.Parallel()
	c, dir := fileWorker(t)
	for says, fields := range map[string]map[string]any{
		`name it "a.csv.gz"`:                         {"path": "a.csv", "compression": "gzip"},
		"says gzip, and compression is zstd":         {"path": "a.csv.gz", "compression": "zstd"},
		"says gzip, and compression is none":         {"path": "a.csv.gz", "compression": "none"},
		"zip is only read":                           {"path": "a.csv.zip"},
		"it must be gzip, zstd or none":              {"path": "a.csv", "compression": "zip"},
		"Parquet is compressed inside":               {"path": "a.parquet.gz"},
		"does not say its format":                    {"path": "a", "csv": map[string]any{"formulas": "escape"}},
		`csv does not apply to format jsonl; remove`: {"path": "a.jsonl.gz", "csv": map[string]any{"formulas": "escape"}},
	} {
		_, err := writeFile(t, c, "k", row(1), fields)
		require.ErrorContains(t, err, says)
	}
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
}
