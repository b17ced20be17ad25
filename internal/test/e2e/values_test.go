package e2e_test

import (
	"bytes"
	"database/sql"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/test/testenv"
)

// servedValue is a line of testdata/values.txt, which says what its columns are.
type servedValue struct {
	source, served       string
	json, csv            string
	pgType, pg, pgMade   string
	liteType, lite, made string
}

func servedValues(t *testing.T) map[string][]servedValue {
	t.Helper()
	const columns = 10
	text, err := os.ReadFile("testdata/values.txt")
	require.NoError(t, err)
	values := map[string][]servedValue{}
	count := 0
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		cells := strings.Split(line, " | ")
		require.Len(t, cells, columns, line)
		v := servedValue{cells[0], cells[1], cells[2], cells[3], cells[4], cells[5], cells[6], cells[7], cells[8], cells[9]}
		v.fill(t)
		values[v.source] = append(values[v.source], v)
		count++
	}
	require.GreaterOrEqual(t, count, 80)
	return values
}

// fill puts the text of JSON in the place of =.
func (v *servedValue) fill(t *testing.T) {
	t.Helper()
	plain := v.json
	if strings.HasPrefix(plain, `"`) {
		require.NoError(t, json.Unmarshal([]byte(v.json), &plain))
	}
	quoted := "'" + strings.ReplaceAll(plain, "'", "''") + "'"
	for _, cell := range []*string{&v.csv, &v.pg, &v.pgMade, &v.lite, &v.made} {
		switch kind, rest, _ := strings.Cut(*cell, " "); {
		case *cell == "=":
			*cell = plain
		case *cell == "='":
			*cell = quoted
		case rest == "=":
			*cell = kind + " " + plain
		}
	}
	if v.csv == "-" {
		v.csv = ""
	}
}

// valueSinks are the sinks of a source, by name. %s is the source.
var valueSinks = map[string]string{
	"pg_insert":   "tool: postgres, auth: pg, table: %s_pg_insert",
	"pg_upsert":   "tool: postgres, auth: pg, table: %s_pg_upsert, mode: upsert, key: id",
	"pg_replace":  "tool: postgres, auth: pg, table: %s_pg_replace, mode: replace",
	"pg_by_key":   "tool: postgres, auth: pg, table: %s_pg_by_key, mode: replace, key: id",
	"pg_ignore":   "tool: postgres, auth: pg, table: %s_pg_ignore, mode: insert_or_ignore",
	"pg_made":     "tool: postgres, auth: pg, table: %s_pg_made, mode: upsert, key: id, schema_contract: evolve",
	"lite_insert": "tool: sqlite, path: %s.db, table: lite_insert",
	"lite_upsert": "tool: sqlite, path: %s.db, table: lite_upsert, mode: upsert, key: id",
	"lite_by_key": "tool: sqlite, path: %s.db, table: lite_by_key, mode: replace, key: id",
	"lite_ignore": "tool: sqlite, path: %s.db, table: lite_ignore, mode: insert_or_ignore",
	"lite_made":   "tool: sqlite, path: %s.db, table: lite_made, mode: upsert, key: id, schema_contract: evolve",
	"jsonl":       "tool: file, path: %s.jsonl",
	"csv":         "tool: file, path: %s.csv",
	"http":        `tool: http, timeout: 10m, method: POST, url: "{{ served }}/%s", body: "{{ result }}"`,
}

// TestValuesArrive loads each value of testdata/values.txt from its source into every sink.
func TestValuesArrive(t *testing.T) {
	t.Parallel()
	values := servedValues(t)
	row := jsonRow(values["json"])
	sources := map[string]struct{ kind, tool string }{
		"http":    {"json", `tool: http, timeout: 10m, url: "{{ served }}/rows"`},
		"jsonl":   {"json", "tool: file, path: in.jsonl"},
		"file":    {"json", "tool: file, path: in.json"},
		"python":  {"json", `tool: python, args: {rows: "{{ rows }}"}, code: "def main(rows): return [dict(r) for r in rows]"`},
		"cells":   {"csv", "tool: file, path: in.csv"},
		"pages":   {"csv", `tool: http, timeout: 10m, url: "{{ served }}/cells"`},
		"tables":  {"pg", "tool: postgres, auth: pg, statement: SELECT * FROM source"},
		"sqlites": {"sqlite", "tool: sqlite, path: source.db, statement: SELECT * FROM source"},
	}
	w := newWorld(t)
	db := w.database()
	w.work()
	w.replays = 1
	for name, source := range sources {
		v := &valueLoad{world: w, t: t, db: db, source: name, values: values[source.kind]}
		v.serve(row, csvRow(values["csv"]))
		v.prepare(source.kind, row, csvRow(values["csv"]))
		var given any
		if name == "python" {
			decoder := json.NewDecoder(strings.NewReader(row))
			decoder.UseNumber()
			require.NoError(t, decoder.Decode(&given))
		}
		w.completes(book(v.steps(source.tool)), map[string]any{"served": v.url, "rows": given})
		v.check()
	}
}

// valueLoad is what one source is loaded into.
type valueLoad struct {
	*world
	t      *testing.T
	db     *testenv.Database
	source string
	values []servedValue
	url    string

	mu     sync.Mutex
	posted []byte
}

func (v *valueLoad) serve(row, cells string) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodPost:
			body, _ := io.ReadAll(r.Body)
			v.mu.Lock()
			v.posted = body
			v.mu.Unlock()
		case r.URL.Path == "/cells":
			w.Header().Set("Content-Type", "text/csv")
			_, _ = io.WriteString(w, cells)
		default:
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, row)
		}
	}))
	v.t.Cleanup(server.Close)
	v.url = server.URL
}

func (v *valueLoad) steps(tool string) string {
	names := make([]string, 0, len(valueSinks))
	for name := range valueSinks {
		names = append(names, "to_"+name)
	}
	slices.Sort(names)
	steps := "  - {step: start, next: [" + strings.Join(names, ", ") + "]}\n"
	for _, name := range names {
		steps += fmt.Sprintf("  - {step: %s, %s, sink: {%s}}\n", name, tool, fmt.Sprintf(valueSinks[strings.TrimPrefix(name, "to_")], v.source))
	}
	return steps
}

// prepare writes the sources, and makes the declared tables.
func (v *valueLoad) prepare(kind, row, cells string) {
	write := func(name, text string) {
		require.NoError(v.t, os.WriteFile(filepath.Join(v.dir, name), []byte(text), 0o600))
	}
	write("in.json", row)
	write("in.jsonl", strings.TrimSuffix(strings.TrimPrefix(row, "["), "]")+"\n")
	write("in.csv", cells)
	pg, lite, served := "id int PRIMARY KEY", "id integer PRIMARY KEY", "1 AS id"
	for i, value := range v.values {
		name := columnName(i)
		pg += ", " + name + " " + value.pgType
		lite += ", " + name + " " + value.liteType
		served += ", " + value.served + " AS " + name
	}
	for sink := range valueSinks {
		switch {
		case strings.HasSuffix(sink, "_made"):
		case strings.HasPrefix(sink, "pg_"):
			v.db.Exec(v.t, "CREATE TABLE "+v.source+"_"+sink+" ("+pg+")")
		case strings.HasPrefix(sink, "lite_"):
			v.exec(v.source+".db", "CREATE TABLE "+sink+" ("+lite+")")
		}
	}
	switch kind {
	case "pg":
		v.db.Exec(v.t, "CREATE TABLE source AS SELECT "+served)
	case "sqlite":
		v.exec("source.db", "CREATE TABLE source AS SELECT "+served)
	}
}

func columnName(i int) string { return "v" + strconv.Itoa(i) }

func jsonRow(values []servedValue) string {
	row := `[{"id":1`
	for i, value := range values {
		row += `,"` + columnName(i) + `":` + value.served
	}
	return row + "}]"
}

func csvRow(values []servedValue) string {
	names, cells := "id", "1"
	for i, value := range values {
		names, cells = names+","+columnName(i), cells+","+value.served
	}
	return names + "\n" + cells + "\n"
}

// open is a database of SQLite in the worker's folder.
func (v *valueLoad) open(name string, use func(*sql.DB)) {
	db, err := sql.Open("sqlite", filepath.Join(v.dir, name))
	require.NoError(v.t, err)
	defer func() { require.NoError(v.t, db.Close()) }()
	use(db)
}

func (v *valueLoad) exec(name, statement string) {
	v.open(name, func(db *sql.DB) {
		_, err := db.ExecContext(v.t.Context(), statement)
		require.NoError(v.t, err)
	})
}

// check compares what every sink has.
func (v *valueLoad) check() {
	for sink := range valueSinks {
		var got map[string]string
		expect := func(value servedValue) string { return value.json }
		switch {
		case sink == "pg_made":
			got, expect = v.ofPostgres(sink, true), func(value servedValue) string { return value.pgMade }
		case strings.HasPrefix(sink, "pg_"):
			got, expect = v.ofPostgres(sink, false), func(value servedValue) string { return value.pg }
		case sink == "lite_made":
			got, expect = v.ofSQLite(sink), func(value servedValue) string { return value.made }
		case strings.HasPrefix(sink, "lite_"):
			got, expect = v.ofSQLite(sink), func(value servedValue) string { return value.lite }
		case sink == "csv":
			got, expect = v.ofCSV(), func(value servedValue) string { return value.csv }
		case sink == "http":
			v.mu.Lock()
			got = v.ofJSON(v.posted)
			v.mu.Unlock()
		default:
			written, err := os.ReadFile(filepath.Join(v.dir, v.source+"."+sink))
			require.NoError(v.t, err)
			got = v.ofJSON(written)
		}
		for i, value := range v.values {
			came, is := got[columnName(i)]
			if !is {
				came = "-"
			}
			if want := expect(value); want != came {
				v.t.Errorf("%s into %s: %s (for %s, %s) came as %s, not %s", v.source, sink, value.served, value.pgType, value.liteType, came, want)
			}
		}
	}
}

func (v *valueLoad) ofPostgres(sink string, typed bool) map[string]string {
	got := map[string]string{}
	table := v.source + "_" + sink
	columns := v.db.Query(v.t, "SELECT attname::text AS name, format_type(atttypid, atttypmod) AS type FROM pg_attribute WHERE attrelid = $1::regclass AND attnum > 0", table)
	var texts []string
	for _, column := range columns {
		name := column["name"].(string)
		texts = append(texts, "coalesce("+name+"::text, 'NULL') AS "+name)
	}
	rows := v.db.Query(v.t, "SELECT "+strings.Join(texts, ", ")+" FROM "+table) // one query: a connection each takes a minute
	require.Len(v.t, rows, 1, table)
	for _, column := range columns {
		name := column["name"].(string)
		got[name] = rows[0][name].(string)
		if typed {
			got[name] = column["type"].(string) + " " + got[name]
		}
	}
	return got
}

func (v *valueLoad) ofSQLite(sink string) map[string]string {
	got := map[string]string{}
	v.open(v.source+".db", func(db *sql.DB) {
		for i := range v.values {
			var value any
			name := columnName(i)
			if err := db.QueryRowContext(v.t.Context(), "SELECT +"+name+" FROM "+sink).Scan(&value); err == nil { // + leaves out the declared type
				got[name] = literal(value)
			} else {
				require.ErrorContains(v.t, err, "no such column")
			}
		}
	})
	return got
}

// literal is a value of SQLite in SQL.
func literal(value any) string {
	switch v := value.(type) {
	case nil:
		return "NULL"
	case string:
		return "'" + strings.ReplaceAll(v, "'", "''") + "'"
	case []byte:
		return fmt.Sprintf("X'%X'", v)
	case float64:
		text := strconv.FormatFloat(v, 'g', -1, 64)
		if v == math.Trunc(v) && !strings.Contains(text, "e") {
			text += ".0"
		}
		return text
	}
	return fmt.Sprint(value)
}

func (v *valueLoad) ofJSON(text []byte) map[string]string {
	text = bytes.TrimSpace(text)
	if bytes.HasPrefix(text, []byte("[")) {
		text = text[1 : len(text)-1]
	}
	var row map[string]json.RawMessage
	require.NoError(v.t, json.Unmarshal(text, &row), "%s", text)
	got := map[string]string{}
	for name, value := range row {
		got[name] = string(value)
	}
	return got
}

func (v *valueLoad) ofCSV() map[string]string {
	file, err := os.Open(filepath.Join(v.dir, v.source+".csv"))
	require.NoError(v.t, err)
	defer func() { _ = file.Close() }()
	rows, err := csv.NewReader(file).ReadAll()
	require.NoError(v.t, err)
	require.Len(v.t, rows, 2)
	got := map[string]string{}
	for i, name := range rows[0] {
		got[name] = rows[1][i]
	}
	return got
}
