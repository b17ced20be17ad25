package file_test

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/activities"
	"reprise/activities/tooltest"
)

// duckdb is the folder where the npm package of DuckDB is installed (make lake-readers).
var duckdb = flag.String("duckdb", "", "the folder with DuckDB's npm package, to read what sinks write; without it, tests of DuckDB are skipped")

// foreignAnswer is what DuckDB found: types by column, and values as texts.
type foreignAnswer struct {
	Types map[string]string
	Rows  []map[string]any
	Error string
}

// foreignQuery is a query, after a statement that it needs.
type foreignQuery struct {
	Name  string `json:"name"`
	Setup string `json:"setup"`
	SQL   string `json:"sql"`
}

// askDuckDB answers queries by name.
func askDuckDB(t *testing.T, queries ...foreignQuery) map[string]foreignAnswer {
	t.Helper()
	if *duckdb == "" {
		t.Skip("run make lake-readers, which installs DuckDB from npm")
	}
	for i := range queries {
		queries[i].Setup = cmp.Or(queries[i].Setup, "SELECT 1")
	}
	text, err := json.Marshal(queries)
	require.NoError(t, err)
	script, err := filepath.Abs("testdata/duckdb/read.mjs")
	require.NoError(t, err)
	command := exec.CommandContext(t.Context(), "node", script)
	command.Dir, command.Stdin, command.Stderr = *duckdb, bytes.NewReader(text), os.Stderr
	answer, err := command.Output()
	require.NoError(t, err)
	found := map[string]foreignAnswer{}
	require.NoError(t, json.Unmarshal(answer, &found))
	return found
}

// typedColumns are columns of each type that Parquet is written with, with the type that DuckDB has to find.
var typedColumns = map[string][2]string{
	"big":    {"bigint not null", "BIGINT"},
	"int":    {"integer", "INTEGER"},
	"small":  {"smallint", "SMALLINT"},
	"double": {"double precision", "DOUBLE"},
	"dec9":   {"numeric(9, 2)", "DECIMAL(9,2)"},
	"dec18":  {"numeric(18, 6)", "DECIMAL(18,6)"},
	"dec38":  {"numeric(38, 10)", "DECIMAL(38,10)"},
	"bool":   {"boolean", "BOOLEAN"},
	"text":   {"text", "VARCHAR"},
	"short":  {"varchar(5)", "VARCHAR"},
	"json":   {"json", "VARCHAR"},
	"at":     {"timestamptz", "TIMESTAMP WITH TIME ZONE"},
	"local":  {"timestamp", "TIMESTAMP"},
	"day":    {"date", "DATE"},
	"bytes":  {"bytea", "BLOB"},
}

// typedRows are rows as they are written, and as DuckDB has to show them.
var typedRows = []struct{ written, want map[string]any }{
	{
		map[string]any{
			"big": 9223372036854775807, "int": 2147483647, "small": 32767, "double": 0.1, "dec9": "1234567.89", "dec18": "-123456789012.345678",
			"dec38": "1234567890123456789012345678.0123456789", "bool": true, "text": "Ünï\n\"🙂\"", "short": "ab", "json": map[string]any{"a": []any{1, nil}},
			"at": "2026-03-01T12:00:00.123456+02:00", "local": "2026-03-01T12:00:00.5", "day": "2026-03-01", "bytes": "AP8=",
		},
		map[string]any{
			"big": "9223372036854775807", "int": "2147483647", "small": "32767", "double": "0.1", "dec9": "1234567.89", "dec18": "-123456789012.345678",
			"dec38": "1234567890123456789012345678.0123456789", "bool": "true", "text": "Ünï\n\"🙂\"", "short": "ab", "json": `{"a":[1,null]}`,
			"at": "2026-03-01 10:00:00.123456+00", "local": "2026-03-01 12:00:00.5", "day": "2026-03-01", "bytes": `\x00\xFF`,
		},
	},
	{
		map[string]any{
			"big": -9223372036854775807, "int": -2147483648, "small": -32768, "double": -1e300, "dec9": "-0.01", "dec18": "0", "dec38": "-0.0000000001",
			"bool": false, "text": "", "short": "", "json": "x", "at": "0001-01-01T00:00:00Z", "local": "9999-12-31T23:59:59.999999", "day": "0001-01-01", "bytes": "",
		},
		map[string]any{
			"big": "-9223372036854775807", "int": "-2147483648", "small": "-32768", "double": "-1e+300", "dec9": "-0.01", "dec18": "0.000000", "dec38": "-0.0000000001",
			"bool": "false", "text": "", "short": "", "json": `"x"`, "at": "0001-01-01 00:00:00+00", "local": "9999-12-31 23:59:59.999999", "day": "0001-01-01", "bytes": "",
		},
	},
	{map[string]any{"big": 0}, map[string]any{
		"big": "0", "int": nil, "small": nil, "double": nil, "dec9": nil, "dec18": nil, "dec38": nil, "bool": nil, "text": nil, "short": nil, "json": nil, "at": nil,
		"local": nil, "day": nil, "bytes": nil,
	}},
}

// filesOfManifest sets the variable files to those of a path's last manifest, as docs/how-to/data-lake.md says.
const filesOfManifest = `SET VARIABLE files = (
	SELECT list('%[1]s/' || file.path) FROM (
		SELECT unnest(files) AS file FROM (SELECT * FROM read_json('%[1]s/_manifest/*.json', union_by_name = true) ORDER BY number DESC LIMIT 1)))`

// TestDuckDBReadsParquet: DuckDB finds the types and values that were written, whatever the pages are compressed with.
func TestDuckDBReadsParquet(t *testing.T) {
	t.Parallel()
	l := lakes(t)["folder"]
	c := l.worker(t)
	columns, types, rows, want := map[string]any{}, map[string]string{}, []any{}, []map[string]any{}
	for name, typed := range typedColumns {
		columns[name], types[name] = typed[0], typed[1]
	}
	for _, row := range typedRows {
		rows, want = append(rows, row.written), append(want, row.want)
	}
	queries := []foreignQuery{}
	for _, compression := range []string{"none", "gzip", "zstd", "snappy"} {
		fields := map[string]any{"format": "parquet", "columns": columns, "compression": compression}
		if compression == "snappy" {
			delete(fields, "compression")
		}
		_, err := tooltest.Call(t, c, "file.write", "file", lakeWrite("k", compression, "append", rows, fields))
		require.NoError(t, err)
		queries = append(queries, foreignQuery{Name: compression, SQL: fmt.Sprintf("SELECT * FROM read_parquet('%s/%s/*.parquet')", l.dir, compression)})
	}
	for name, found := range askDuckDB(t, queries...) {
		require.Empty(t, found.Error, name)
		require.Equal(t, types, found.Types, name)
		require.Equal(t, want, found.Rows, name)
	}
}

// TestDuckDBReadsManifests: by the last manifest DuckDB finds the rows of all pages, of files that have more columns than those before too, and not those that were replaced.
func TestDuckDBReadsManifests(t *testing.T) {
	t.Parallel()
	l := lakes(t)["folder"]
	queries, want := []foreignQuery{}, map[string]int{}
	readers := map[string]string{
		"parquet": "SELECT count(*) AS n, count(DISTINCT id) AS ids, sum(id) AS sum, count(more) AS more FROM read_parquet(getvariable('files'), union_by_name = true)",
		"csv":     "SELECT count(*) AS n, count(DISTINCT id) AS ids, sum(id) AS sum, 0 AS more FROM read_csv(getvariable('files'))",
		"jsonl":   "SELECT count(*) AS n, count(DISTINCT id) AS ids, sum(id) AS sum, count(more) AS more FROM read_json(getvariable('files'), format = 'newline_delimited', union_by_name = true)",
	}
	for format, read := range readers {
		for _, compression := range []string{"none", "gzip", "zstd"} {
			path := format + compression
			fields := map[string]any{"format": format, "compression": compression, "target_size": "16KiB", "path": path}
			for n, mode := range []string{"append", "overwrite", "append"} {
				load := stagedLoad{t: t, c: l.worker(t), id: fmt.Sprint(path, n), mode: mode, more: fields}
				if format == "parquet" && n == 2 {
					fields["columns"] = map[string]any{"more": "boolean"}
				}
				for page := range 4 {
					rows := []any{}
					for i := range 1000 {
						values := map[string]any{"id": 10_000*n + 1000*page + i, "text": fmt.Sprintf("%x", i*7_919_777)}
						if n == 2 && format != "csv" {
							values["more"] = i%2 == 0
						}
						rows = append(rows, values)
					}
					require.NoError(t, load.stage(fmt.Sprint(n, page), rows))
				}
				_, err := load.publish()
				require.NoError(t, err)
			}
			queries = append(queries, foreignQuery{Name: path, Setup: fmt.Sprintf(filesOfManifest, filepath.Join(l.dir, path)), SQL: read})
			want[path] = map[bool]int{true: 0, false: 4000}[format == "csv"]
		}
	}
	for name, found := range askDuckDB(t, queries...) {
		require.Empty(t, found.Error, name)
		sum := 4000*10_000 + 4000*3999/2 + 4000*20_000 + 4000*3999/2
		require.Equal(t, []map[string]any{{"n": "8000", "ids": "8000", "sum": fmt.Sprint(sum), "more": fmt.Sprint(want[name])}}, found.Rows, name)
	}
}

// download reads a path of a store by plain requests of S3, as a client that is not the writer's: the last manifest that is listed, and the
// objects that it names. It returns the folder that these are in.
func (l *lake) download(t *testing.T, path string) string {
	t.Helper()
	get := func(address string) []byte {
		response, err := http.Get(address)
		require.NoError(t, err)
		defer func() { require.NoError(t, response.Body.Close()) }()
		content, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, response.StatusCode, address)
		return content
	}
	var numbers []string
	for token, more := "", true; more; {
		var listed struct {
			IsTruncated           bool
			NextContinuationToken string
			Contents              []struct{ Key string }
		}
		query := url.Values{"list-type": {"2"}, "prefix": {"raw/" + path + "/_manifest/"}, "continuation-token": {token}}
		require.NoError(t, xml.Unmarshal(get(l.store.URL+"/lake?"+query.Encode()), &listed))
		for _, object := range listed.Contents {
			numbers = append(numbers, filepath.Base(object.Key))
		}
		token, more = listed.NextContinuationToken, listed.IsTruncated
	}
	require.NotEmpty(t, numbers)
	folder, last := filepath.Join(t.TempDir(), path), writtenManifest{}
	save := func(name string) []byte {
		content := get(l.store.URL + "/lake/raw/" + path + "/" + name)
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(folder, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), content, 0o600))
		return content
	}
	require.NoError(t, json.Unmarshal(save("_manifest/"+slices.Max(numbers)), &last))
	for _, file := range last.Files {
		sum := sha256.Sum256(save(file.Path))
		require.Equal(t, file.SHA256, hex.EncodeToString(sum[:]))
	}
	return folder
}

// TestDuckDBReadsStore: from the objects of a store DuckDB reads the types and values that were written, in each format and compression, also those
// of an object that was written in several parts.
func TestDuckDBReadsStore(t *testing.T) {
	t.Parallel()
	if *duckdb == "" {
		t.Skip("run make lake-readers, which installs DuckDB from npm")
	}
	l := lakes(t)["store"]
	columns, types, typed, typedWant := map[string]any{}, map[string]string{}, []any{}, []map[string]any{}
	for name, one := range typedColumns {
		columns[name], types[name] = one[0], one[1]
	}
	for _, row := range typedRows {
		typed, typedWant = append(typed, row.written), append(typedWant, row.want)
	}
	queries := []foreignQuery{}
	readers := map[string]string{
		"parquet": "SELECT * FROM read_parquet(getvariable('files'))",
		"csv":     "SELECT id, big, text, code, ok, seen, total FROM read_csv(getvariable('files'), all_varchar = true, allow_quoted_nulls = false)",
		"jsonl": "SELECT id, big, text, code, ok, seen, total FROM read_json(getvariable('files'), format = 'newline_delimited', " +
			"columns = {id: 'BIGINT', big: 'BIGINT', text: 'VARCHAR', code: 'VARCHAR', ok: 'BOOLEAN', seen: 'VARCHAR', total: 'VARCHAR'})",
	}
	write := func(path, mode string, fields map[string]any, rows ...any) {
		fields["path"] = path
		load := stagedLoad{t: t, c: l.worker(t), id: path + mode, mode: mode, more: fields}
		for i, row := range rows {
			require.NoError(t, load.stage(fmt.Sprint(path, mode, i), row))
		}
		_, err := load.publish()
		require.NoError(t, err)
	}
	for format, read := range readers {
		for _, compression := range []string{"none", "gzip", "zstd"} {
			path, fields, rows := format+"-"+compression, map[string]any{"format": format, "compression": compression}, textRows
			if format == "parquet" {
				fields["columns"], rows = columns, typed
			}
			write(path, "append", fields, rows[0]) // which is replaced
			write(path, "overwrite", fields, rows...)
			queries = append(queries, foreignQuery{Name: path, Setup: fmt.Sprintf(filesOfManifest, l.download(t, path)), SQL: read})
		}
	}
	const large, pages, size = "large", 20, 1 << 20
	long := []any{}
	for page := range pages {
		long = append(long, map[string]any{"id": page, "text": strings.Repeat("x", size)})
	}
	write(large, "append", map[string]any{"format": "jsonl"}, long...)
	require.True(t, slices.ContainsFunc(l.store.Requests(), func(request string) bool { return strings.HasPrefix(request, "POST /lake/raw/large/part-") }), "an upload in parts")
	queries = append(queries, foreignQuery{
		Name: large, Setup: fmt.Sprintf(filesOfManifest, l.download(t, large)),
		SQL: "SELECT sum(id) AS ids, sum(length(text)) AS size FROM read_json(getvariable('files'), format = 'newline_delimited')",
	})
	for name, found := range askDuckDB(t, queries...) {
		require.Empty(t, found.Error, name)
		switch {
		case name == large:
			require.Equal(t, []map[string]any{{"ids": fmt.Sprint(pages * (pages - 1) / 2), "size": fmt.Sprint(pages * size)}}, found.Rows)
		case strings.HasPrefix(name, "parquet"):
			require.Equal(t, types, found.Types, name)
			require.Equal(t, typedWant, found.Rows, name)
		default:
			require.Equal(t, foreignText(textRows), found.Rows, name)
		}
	}
}

// textRows are values that CSV and JSON have to keep apart.
var textRows = []any{
	map[string]any{"id": 1, "big": 9007199254740993, "text": "a, \"b\"\nc", "code": "007", "ok": true, "seen": "2026-03-01T12:00:00Z", "total": "12.50"},
	map[string]any{"id": 2, "big": -9007199254740993, "text": "", "code": " x ", "ok": false, "seen": "2025-12-31T23:59:59Z", "total": "-0.05"},
	map[string]any{"id": 3, "big": nil, "text": nil, "code": "Ünï🙂", "ok": nil, "seen": nil, "total": nil},
}

// TestDuckDBReadsText: CSV and JSON Lines have the values that were written, in files of one member and of several.
func TestDuckDBReadsText(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := activities.NewCatalogue(activities.Resources{Directory: dir, MaxResponseBytes: 1 << 20})
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	readers := map[string]string{
		"csv exact":     "read_csv('%s', all_varchar = true, allow_quoted_nulls = false)",
		"csv sniffed":   "read_csv('%s')",
		"jsonl exact":   "read_json('%s', format = 'newline_delimited', columns = {id: 'BIGINT', big: 'BIGINT', text: 'VARCHAR', code: 'VARCHAR', ok: 'BOOLEAN', seen: 'VARCHAR', total: 'VARCHAR'})",
		"jsonl sniffed": "read_json('%s', format = 'newline_delimited')",
	}
	queries := []foreignQuery{}
	for _, ending := range []string{"", ".gz", ".zst"} {
		for reader, read := range readers {
			format, _, _ := strings.Cut(reader, " ")
			name := "rows." + format + ending
			for i, row := range textRows {
				_, err := writeFile(t, c, fmt.Sprint(i), []any{row}, map[string]any{"path": name})
				require.NoError(t, err)
			}
			queries = append(queries, foreignQuery{Name: reader + ending, SQL: "SELECT id, big, text, code, ok, seen, total FROM " + fmt.Sprintf(read, filepath.Join(dir, name))})
		}
	}
	for name, found := range askDuckDB(t, queries...) {
		require.Empty(t, found.Error, name)
		want := foreignText(textRows)
		if strings.Contains(name, "exact") {
			require.Equal(t, want, found.Rows, name)
		} else {
			require.Equal(t, sniffedTypes[strings.Fields(name)[0]], found.Types, name)
		}
	}
}

// sniffedTypes are what DuckDB guesses, which docs/how-to/data-lake.md warns of: decimals lose digits, an empty text of CSV becomes NULL, and times in JSON their zone.
var sniffedTypes = map[string]map[string]string{
	"csv": {
		"id": "BIGINT", "big": "BIGINT", "text": "VARCHAR", "code": "VARCHAR", "ok": "BOOLEAN", "seen": "TIMESTAMP WITH TIME ZONE", "total": "DOUBLE",
	},
	"jsonl": {
		"id": "BIGINT", "big": "HUGEINT", "text": "VARCHAR", "code": "VARCHAR", "ok": "BOOLEAN", "seen": "TIMESTAMP", "total": "VARCHAR",
	},
}

// foreignText are rows as DuckDB shows them where it takes each value for a text.
func foreignText(rows []any) (shown []map[string]any) {
	for _, row := range rows {
		texts := map[string]any{}
		for name, value := range row.(map[string]any) {
			if texts[name] = nil; value != nil {
				texts[name] = fmt.Sprint(value)
			}
		}
		shown = append(shown, texts)
	}
	return shown
}

// filesOfPaths sets the variable files to those of the last manifest of each path of rows, as docs/how-to/load-into-a-warehouse.md says.
const filesOfPaths = `SET VARIABLE files = (
	SELECT list(folder || '/' || file.path) FROM (
		SELECT folder, unnest(files) AS file FROM (
			SELECT *, regexp_extract(filename, '^(.*)/_manifest/', 1) AS folder FROM read_json('%s/*/_manifest/*.json', union_by_name = true, filename = true)
			QUALIFY row_number() OVER (PARTITION BY regexp_extract(filename, '^(.*)/_manifest/', 1) ORDER BY number DESC) = 1)))`

// TestDuckDBReadsPaths: where each row has a path, DuckDB finds the rows of the last manifest of each, with the column that the path has from the file.
func TestDuckDBReadsPaths(t *testing.T) {
	t.Parallel()
	l := lakes(t)["folder"]
	for i, mode := range []string{"append", "append", "overwrite"} {
		load := pathLoad{stagedLoad{t: t, c: l.worker(t), id: fmt.Sprint(i), mode: mode, more: map[string]any{"format": "parquet"}}, byDay}
		require.NoError(t, load.stage("1", dated(10*i+1, "a b/c"), dated(10*i+2, "tue")))
		if mode == "append" {
			require.NoError(t, load.stage("2", dated(10*i+3, "2026-03-01")))
		}
		_, err := load.publish()
		require.NoError(t, err)
	}
	found := askDuckDB(t, foreignQuery{
		Name: "all", Setup: fmt.Sprintf(filesOfPaths, l.dir+"/o"),
		SQL: "SELECT string_agg(id || ' ' || day, ', ' ORDER BY id) AS rows FROM read_parquet(getvariable('files'), union_by_name = true, hive_partitioning = false)",
	})["all"]
	require.Empty(t, found.Error)
	require.Equal(t, []map[string]any{{"rows": "3 2026-03-01, 13 2026-03-01, 21 a b/c, 22 tue"}}, found.Rows)
}
