package file_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"

	"reprise/activities"
	"reprise/activities/attempt"
	"reprise/activities/tooltest"
	"reprise/internal/test/parquetfile"
	"reprise/interpreter"
	"reprise/interpreter/expression"
)

// batchReader reads files in batches, as the source of a loop does.
type batchReader struct {
	workers []*activities.Catalogue // which take turns
	pages   [][]any
	// between is called behind each page; may be nil.
	between func(pages int)
}

// readBatches reads a file to its end, in a step whose rows are at a path, nil for the whole.
func (r *batchReader) readBatches(t *testing.T, in interpreter.ToolInput, path ...string) error {
	t.Helper()
	in.Batch = &interpreter.RowBatch{Path: path}
	r.pages = nil
	for page := 0; ; page++ {
		result, err := tooltest.Call(t, r.workers[page%len(r.workers)], "file", "file", in)
		if err != nil {
			return err
		}
		rows := result.Data.Data
		for _, name := range path {
			rows = rows.(map[string]any)[name]
		}
		r.pages = append(r.pages, rows.([]any))
		if r.between != nil {
			r.between(len(r.pages))
		}
		if result.Meta.Next == nil {
			return nil
		}
		require.Less(t, page, 10_000)
		var next interpreter.SourcePlace // as it is in a history
		encoded, err := json.Marshal(result.Meta.Next)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(encoded, &next))
		in.Batch = &interpreter.RowBatch{After: &next, Path: path}
	}
}

// rows are all that were read.
func (r *batchReader) rows() []any {
	all := []any{}
	for _, page := range r.pages {
		all = append(all, page...)
	}
	return all
}

// batchCase is a file with its rows as another reader than the tool's gives them.
type batchCase struct {
	name, content string
	path          []string
	fields        map[string]any
	rows          []any
}

const (
	csvRows = "id,note\r\n1,\"a, \"\"b\"\"\r\nsecond line\"\r\n2,\"\"\r\n\r\n3,é\r\n4,\"sep=;\"\r\nsep=;,5\r\n6,\"x\ny\nz\"\r\n7,last"
	// oddLines has rows and empty lines, without a line break at its end.
	oddLines = "{\"id\": 1, \"s\": \"\\u00e9\\n\"}\r\n\n[2, 2.50]\n  \n\"three\"\n4\nnull\n{\"id\": 9007199254740993}"
)

// rowsOfCSV are the rows of CSV as the standard library reads them.
func rowsOfCSV(t *testing.T, text string, comma rune) (rows []any) {
	t.Helper()
	reader := csv.NewReader(strings.NewReader(text))
	reader.Comma = comma
	records, err := reader.ReadAll()
	require.NoError(t, err)
	for _, record := range records[1:] {
		row := map[string]any{}
		for i, value := range record {
			row[records[0][i]] = value
		}
		rows = append(rows, row)
	}
	return rows
}

// rowsOfJSON are the values of JSON, one after the other, as the standard library reads them.
func rowsOfJSON(t *testing.T, text string) (rows []any) {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	for {
		var value any
		err := decoder.Decode(&value)
		if err == io.EOF {
			return rows
		}
		require.NoError(t, err)
		rows = append(rows, value)
	}
}

func zstdFrames(t *testing.T, parts ...string) string {
	t.Helper()
	var packed bytes.Buffer
	for _, part := range parts {
		writer, err := zstd.NewWriter(&packed)
		require.NoError(t, err)
		_, err = writer.Write([]byte(part))
		require.NoError(t, err)
		require.NoError(t, writer.Close())
	}
	return packed.String()
}

// groupedParquet is Parquet of so many rows, with a few of them in each row group.
func groupedParquet(t *testing.T, rows, ofGroup int) []byte {
	t.Helper()
	type row struct {
		ID   int64  `parquet:"id,plain"`
		Name string `parquet:"name,plain"`
	}
	var content bytes.Buffer
	writer := parquet.NewGenericWriter[row](&content, parquet.MaxRowsPerRowGroup(int64(ofGroup)), parquet.DataPageVersion(1))
	for i := range rows {
		_, err := writer.Write([]row{{ID: int64(i), Name: fmt.Sprint("n", i)}})
		require.NoError(t, err)
	}
	require.NoError(t, writer.Close())
	return content.Bytes()
}

// batchCases are files of each kind.
func batchCases(t *testing.T) []batchCase {
	t.Helper()
	ofCSV := rowsOfCSV(t, strings.ReplaceAll(csvRows, "\r\nsecond", "\nsecond"), ',')
	ofCSV[0].(map[string]any)["note"] = "a, \"b\"\r\nsecond line" // line breaks in quotes are kept
	ofLines := rowsOfJSON(t, oddLines)
	plain := groupedParquet(t, 8, 3)
	table, err := parquetfile.Read(plain)
	require.NoError(t, err)
	require.Len(t, table.Groups, 3)
	var ofTable []any
	for _, row := range table.Rows {
		ofTable = append(ofTable, row)
	}
	half := len(csvRows) / 2
	list := `{"at": [1, {"items": 2}], "data": {"before": "x", "items": [{"id": 1}, "a, ]", [2, [3]], 4 , null,5], "more": {}}, "z": 1}`
	return []batchCase{
		{name: "a.csv", content: csvRows, rows: ofCSV},
		{name: "mark.csv", content: "\uFEFF" + csvRows, rows: ofCSV},
		{name: "sep.csv", content: "sep=;\na;b\n1;2\nsep=,;3\n4;\"5;\n6\"", rows: rowsOfCSV(t, "a;b\n1;2\nsep=,;3\n4;\"5;\n6\"", ';')},
		{name: "old.csv", content: "a,b\r1,2\r3,\"4\r5\"\r", rows: []any{map[string]any{"a": "1", "b": "2"}, map[string]any{"a": "3", "b": "4\r5"}}},
		{name: "none.csv", content: "a,b\n"},
		{name: "nothing.csv"},
		{name: "one.csv", content: "a\n1\n\n3\n", rows: []any{map[string]any{"a": "1"}, map[string]any{"a": ""}, map[string]any{"a": "3"}}},
		{name: "bare.csv", content: "1,2\n3,4\n", fields: map[string]any{"csv": map[string]any{"header": false}}, rows: []any{map[string]any{"column1": "1", "column2": "2"}, map[string]any{"column1": "3", "column2": "4"}}},
		{name: "named.csv", content: "1,2\n3,-\n", fields: map[string]any{"csv": map[string]any{"header": []any{"x", "y"}, "null": "-"}}, rows: []any{map[string]any{"x": "1", "y": "2"}, map[string]any{"x": "3", "y": nil}}},
		{name: "charset.csv", content: "a\ncaf\xe9\nth\xe9\n", fields: map[string]any{"encoding": "windows-1252"}, rows: []any{map[string]any{"a": "café"}, map[string]any{"a": "thé"}}},
		{name: "said.csv", content: "a\ncafé\nthé\n", fields: map[string]any{"encoding": "windows-1252"}, rows: []any{map[string]any{"a": "café"}, map[string]any{"a": "thé"}}},
		{name: "two.csv.gz", content: tooltest.Gzip(csvRows[:half]) + tooltest.Gzip(csvRows[half:]), rows: ofCSV},
		{name: "a.csv.zst", content: zstdFrames(t, csvRows[:half], csvRows[half:]), rows: ofCSV},
		{name: "a.jsonl", content: oddLines, rows: ofLines},
		{name: "a.jsonl.gz", content: tooltest.Gzip(oddLines), rows: ofLines},
		{name: "a.json", content: list, path: []string{"data", "items"}, rows: rowsOfJSON(t, `{"id": 1} "a, ]" [2, [3]] 4 null 5`)},
		{name: "bare.json", content: " [1 ,\n2, 3\n] ", rows: rowsOfJSON(t, "1 2 3")},
		{name: "none.json", content: "[]"},
		{name: "a.xml", content: "<a><h>1</h><b id='1'>x</b>\n<b>y</b><c/><b>z</b></a>", path: []string{"a", "b"}, rows: []any{map[string]any{"@id": "1", "#text": "x"}, "y", "z"}},
		{name: "a.parquet", content: string(plain), rows: ofTable},
	}
}

// TestBatches: whatever the format, and however many rows a batch has, the pages have all rows once and in order, read by one worker or by two of which each
// has to find the place of the other.
func TestBatches(t *testing.T) {
	t.Parallel()
	all := lakes(t)
	all["directory"] = &lake{dir: t.TempDir()}
	for name, l := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			newWorker := func() *activities.Catalogue {
				if name != "directory" {
					return l.worker(t)
				}
				c := activities.NewCatalogue(activities.Resources{Directory: l.dir, MaxResponseBytes: 1 << 20})
				t.Cleanup(func() { require.NoError(t, c.Close()) })
				return c
			}
			one := []*activities.Catalogue{newWorker()}
			two := []*activities.Catalogue{newWorker(), newWorker()}
			for _, file := range batchCases(t) {
				l.put(t, file.name, file.content, time.Now())
				in := fileInput(map[string]any{"path": file.name})(t)
				for field, value := range file.fields {
					in.Fields[field] = expression.Of(value)
				}
				if name != "directory" {
					in.Auth = "lake"
				}
				for _, workers := range [][]*activities.Catalogue{one, two} {
					for _, most := range []int{1, 2, 7, len(file.rows), 1000} {
						most = max(most, 1)
						in.Fields["batch"] = expression.Of(most)
						r := &batchReader{workers: workers}
						require.NoError(t, r.readBatches(t, in, file.path...), "%s, %d", file.name, most)
						want, err := expression.Canonical(append([]any{}, file.rows...))
						require.NoError(t, err)
						require.Equal(t, want, r.rows(), "%s, %d", file.name, most)
						require.Len(t, r.pages, max(1, (len(file.rows)+most-1)/most), "%s, %d", file.name, most)
					}
				}
			}
		})
	}
}

// TestBatchesOfAnotherFile: a file that is another one is not read on, whichever worker read it before.
func TestBatchesOfAnotherFile(t *testing.T) {
	t.Parallel()
	for name, content := range map[string]func(rows int) string{
		"a.csv":     func(rows int) string { return "id\n" + strings.Repeat("1\n", rows) },
		"a.csv.gz":  func(rows int) string { return tooltest.Gzip("id\n" + strings.Repeat("1\n", rows)) },
		"a.parquet": func(rows int) string { return string(groupedParquet(t, rows, 2)) },
	} {
		eachLake(t, func(t *testing.T, l *lake) {
			t.Helper()
			began := time.Now()
			for _, change := range []struct {
				rows int
				at   time.Time
			}{{500, began}, {5, began.Add(time.Second)}, {5, began}} {
				l.put(t, name, content(5), began)
				in := fileInput(map[string]any{"path": name, "batch": 2})(t)
				in.Auth = "lake"
				r := &batchReader{workers: []*activities.Catalogue{l.worker(t)}}
				r.between = func(pages int) {
					if pages == 2 {
						l.put(t, name, content(change.rows), change.at)
					}
				}
				err := r.readBatches(t, in)
				if change.rows == 5 && change.at.Equal(began) { // it is the same again
					require.NoError(t, err)
					require.Len(t, r.rows(), 5)
					continue
				}
				failure := tooltest.ErrorObject(t, err)
				require.Equal(t, []any{interpreter.KindTool, interpreter.ClassFinal, "source_changed"}, []any{failure.Kind, failure.Class, failure.Type})
				require.Contains(t, failure.Message, name+" has changed since 4 of its rows were read")
				require.Len(t, r.rows(), 4)
			}
		})
	}
}

// TestErrorsOfBatches: an error has the line of the file, and is the error of the batch that it is in. The batches before are whole.
func TestErrorsOfBatches(t *testing.T) {
	t.Parallel()
	l := &lake{dir: t.TempDir()}
	c := activities.NewCatalogue(activities.Resources{Directory: l.dir, MaxResponseBytes: 1000})
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	long := strings.Repeat("x", 1001)
	for name, test := range map[string]struct {
		content string
		fields  map[string]any
		path    []string
		says    string
		rows    int
	}{
		"short.csv":     {content: "id,n\n1,\"a\nb\"\n2,b\n\n3\n", says: "short.csv cannot be read as csv: line 6: 1 value, and there are 2 columns", rows: 2},
		"behind.csv":    {content: "id,n\n1,a\n2,b\n3,c\n4\n", says: "line 5: 1 value", rows: 2},
		"short.csv.gz":  {content: tooltest.Gzip("id,n\n1,\"a\nb\"\n2,b\n\n3\n"), says: "line 6: 1 value", rows: 2},
		"bare.csv":      {content: "id\n1\n2\n3\n4\n\n5\"\n", says: "line 7: there is a quote within a value", rows: 4},
		"charset.csv":   {content: "id\r\n1\r\n2\r\n\xe9\r\n", says: "byte 0xE9 at offset 10 (line 4) is not utf-8", rows: 2},
		"bad.jsonl":     {content: "1\n2\n\n{\n", says: "bad.jsonl cannot be read as jsonl: line 4", rows: 2},
		"bad.json":      {content: "[1, 2, 3, {]", fields: map[string]any{"batch": 2}, says: "bad.json cannot be read as json", rows: 2},
		"comma.json":    {content: "[1, 2,]", fields: map[string]any{"batch": 2}, says: "comma.json cannot be read as json", rows: 2},
		"behind.json":   {content: `{"a": [1, 2, 3], "a": []}`, path: []string{"a"}, fields: map[string]any{"batch": 2}, says: "it has a twice", rows: 2},
		"twice.json":    {content: `[1, 2, 3, {"a": 1, "a": 2}]`, fields: map[string]any{"batch": 2}, says: "element 4", rows: 2},
		"long.csv":      {content: "id\n1\n2\n" + long + "\n", says: "a row of long.csv is larger than the limit of 1000 bytes", rows: 2},
		"large.txt":     {content: long, says: "read large.txt: the file is larger than the limit of 1000 bytes; to read it in batches, set format to csv, json, jsonl, xml or parquet"},
		"batched.txt":   {content: "1", fields: map[string]any{"batch": 2}, says: "batched.txt is not read row by row, as its format is text"},
		"many.csv":      {content: "id\n", fields: map[string]any{"batch": 0}, says: "batch is 0; it must be a whole number of at least 1"},
		"named.csv":     {content: "id\n1\n", path: []string{"a"}, says: "the format of named.csv is csv; remove rows"},
		"large.json":    {content: `{"a": ["` + long + `"]}`, says: "it is a map, and only a list is read row by row"},
		"pathless.xml":  {content: "<a>" + strings.Repeat("<b/>", 1000) + "</a>", says: "rows must name its first element and the elements that are rows"},
		"nothing.jsonl": {content: "1\n2\n3\n", says: "", rows: 3},
	} {
		l.put(t, name, test.content, time.Now())
		fields := map[string]any{"path": name}
		for field, value := range test.fields {
			fields[field] = value
		}
		if lines := strings.HasSuffix(name, ".csv") || strings.HasSuffix(name, ".csv.gz") || strings.HasSuffix(name, ".jsonl"); lines && fields["batch"] == nil {
			fields["batch"] = 2
		}
		r := &batchReader{workers: []*activities.Catalogue{c}}
		err := r.readBatches(t, fileInput(fields)(t), test.path...)
		require.Len(t, r.rows(), test.rows, name)
		if test.says == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, test.says, name)
	}
	plain := fileInput(map[string]any{"path": "large.txt"})(t)
	_, err := tooltest.Call(t, c, "file", "file", plain)
	require.ErrorContains(t, err, "move its rows with tool: transfer, or loop over them with loop.source")
	plain.Step = "visit.source"
	_, err = tooltest.Call(t, c, "file", "file", plain)
	require.ErrorContains(t, err, "set batch, with which the rows of a source are read in batches")
}

// TestRepeatedHeadersAreNoted: a file that is read at once, or in batches, has a note for a header among its rows.
func TestRepeatedHeadersAreNoted(t *testing.T) {
	t.Parallel()
	l := &lake{dir: t.TempDir()}
	c := activities.NewCatalogue(activities.Resources{Directory: l.dir, MaxResponseBytes: 1 << 20})
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	l.put(t, "joined.csv", "id,n\n1,a\nid,n\n2,b\n", time.Now())
	in := fileInput(map[string]any{"path": "joined.csv", "batch": 1})(t)
	in.Batch = &interpreter.RowBatch{}
	for _, notes := range []int{0, 1, 0} {
		page, err := tooltest.Call(t, c, "file", "file", in)
		require.NoError(t, err)
		require.Len(t, page.Meta.Notes, notes)
		in.Batch = &interpreter.RowBatch{After: page.Meta.Next}
	}
	whole, err := tooltest.Call(t, c, "file", "file", fileInput(map[string]any{"path": "joined.csv"})(t))
	require.NoError(t, err)
	require.Contains(t, whole.Meta.Notes[0], "row 2 of joined.csv")
}

// TestLargeBatches: a batch is bounded by its bytes too, and JSON is read at once only where it fits.
func TestLargeBatches(t *testing.T) {
	t.Parallel()
	l := &lake{dir: t.TempDir()}
	c := activities.NewCatalogue(activities.Resources{Directory: l.dir, MaxResponseBytes: 1 << 20})
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	const rows, bytes = 40, 60 << 10
	element := strings.Repeat("x", bytes)
	for name, content := range map[string]string{
		"a.csv":    "id,text\n" + strings.Repeat("1,"+element+"\n", rows),
		"a.csv.gz": tooltest.Gzip("id,text\n" + strings.Repeat("1,"+element+"\n", rows)),
		"a.json":   `{"n": 1, "of": [` + strings.Repeat(`"`+element+`",`, rows-1) + `1]}`,
	} {
		l.put(t, name, content, time.Now())
		var path []string
		if strings.HasSuffix(name, ".json") {
			path = []string{"of"}
		}
		r := &batchReader{workers: []*activities.Catalogue{c}}
		require.NoError(t, r.readBatches(t, fileInput(map[string]any{"path": name})(t), path...))
		require.Len(t, r.rows(), rows, name)
		require.Len(t, r.pages[0], 4, name)
	}
	l.put(t, "row.csv", "id,text\n1,a\n\n2,"+element+"\n", time.Now())
	narrow := activities.NewCatalogue(activities.Resources{Directory: l.dir, MaxResponseBytes: 1 << 20, Payloads: attempt.Payloads{MaxBytes: bytes}})
	t.Cleanup(func() { require.NoError(t, narrow.Close()) })
	r := &batchReader{workers: []*activities.Catalogue{narrow}}
	require.ErrorContains(t, r.readBatches(t, fileInput(map[string]any{"path": "row.csv", "batch": 1})(t)), "row 2 (line 4) of row.csv is larger than the limit of 61440 bytes as JSON")
	require.Len(t, r.rows(), 1)
	l.put(t, "small.json", `{"n": 1, "of": [2]}`, time.Now())
	in := fileInput(map[string]any{"path": "small.json"})(t)
	in.Batch = &interpreter.RowBatch{Path: []string{"of"}}
	whole, err := tooltest.Call(t, c, "file", "file", in)
	require.NoError(t, err)
	require.Equal(t, map[string]any{"n": 1, "of": []any{2}}, whole.Data.Data)
}

// TestMostStreams passes mostStreams: files that cannot be read from their place stay open only so many, and the others are read again.
func TestMostStreams(t *testing.T) {
	t.Parallel()
	l := &lake{dir: t.TempDir()}
	c := activities.NewCatalogue(activities.Resources{Directory: l.dir, MaxResponseBytes: 1 << 20})
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	const files = 6
	inputs := make([]interpreter.ToolInput, files)
	for i := range inputs {
		name := fmt.Sprintf("%d.jsonl.gz", i)
		l.put(t, name, tooltest.Gzip(fmt.Sprintf("%d\n%d\n%d\n", i, i+1, i+2)), time.Now())
		inputs[i] = fileInput(map[string]any{"path": name, "batch": 1})(t)
		inputs[i].Batch = &interpreter.RowBatch{}
	}
	for page := range 3 {
		for i := range inputs {
			result, err := tooltest.Call(t, c, "file", "file", inputs[i])
			require.NoError(t, err)
			require.Equal(t, []any{i + page}, result.Data.Data)
			require.Equal(t, page < 2, result.Meta.Next != nil)
			inputs[i].Batch = &interpreter.RowBatch{After: result.Meta.Next}
		}
	}
}

// openUnnamed returns how many files below a folder this process has open that have no name.
func openUnnamed(t *testing.T, dir string) (count int) {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	for _, one := range all {
		to, _ := os.Readlink("/proc/self/fd/" + one.Name()) // one that was closed meanwhile
		if strings.HasPrefix(to, dir) && strings.HasSuffix(to, " (deleted)") {
			count++
		}
	}
	return count
}

// TestPackedParquet: Parquet that was packed as a whole is read whatever its size, from a file without a name, of which nothing is left.
func TestPackedParquet(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("open files are those of /proc")
	}
	const rows, limit = 3000, 2000
	plain := string(groupedParquet(t, rows, 700))
	require.Greater(t, len(plain), 20*limit)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	l := &lake{dir: dir}
	newWorker := func() *activities.Catalogue {
		return activities.NewCatalogue(activities.Resources{Directory: l.dir, MaxResponseBytes: limit})
	}
	for name, content := range map[string]string{
		"a.parquet.gz":  tooltest.Gzip(plain),
		"a.parquet.zst": zstdFrames(t, plain[:100], plain[100:]),
		"a.parquet.zip": tooltest.Zip(t, [2]string{"other.txt", "x"}, [2]string{"a.parquet", plain}),
	} {
		l.put(t, name, content, time.Now())
		fields := map[string]any{"path": name, "batch": 1000}
		if strings.HasSuffix(name, ".zip") {
			fields["member"], fields["format"] = "*.parquet", "parquet"
		}
		workers := []*activities.Catalogue{newWorker(), newWorker()}
		r := &batchReader{workers: workers}
		require.NoError(t, r.readBatches(t, fileInput(fields)(t)), name)
		require.Len(t, r.rows(), rows, name)
		for i, row := range r.rows() {
			require.Equal(t, map[string]any{"id": i, "name": fmt.Sprint("n", i)}, row, name)
		}
		require.Positive(t, openUnnamed(t, dir), "a file stays open between batches")
		for _, c := range workers {
			require.NoError(t, c.Close())
		}
		require.Zero(t, openUnnamed(t, dir), name)
	}
	left, err := os.ReadDir(filepath.Join(dir, ".reprise"))
	require.NoError(t, err)
	require.Empty(t, left)
	c := newWorker()
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	for name, test := range map[string]struct{ content, says string }{
		"bomb.parquet.gz":  {tooltest.Gzip("PAR1" + strings.Repeat("\x00", 50<<20)), "bomb.parquet.gz is larger than the limit of "},
		"zeros.parquet.gz": {tooltest.Gzip(strings.Repeat("\x00", 1<<20)), "it does not begin and end as Parquet does"},
		"cut.parquet.gz":   {tooltest.Gzip(plain)[:5000], "cut.parquet.gz ends too soon"},
		"empty.parquet.gz": {tooltest.Gzip(""), "it does not begin and end as Parquet does"},
	} {
		l.put(t, name, test.content, time.Now())
		r := &batchReader{workers: []*activities.Catalogue{c}}
		require.ErrorContains(t, r.readBatches(t, fileInput(map[string]any{"path": name})(t)), test.says, name)
		require.Zero(t, openUnnamed(t, dir), name)
	}
}
