// Package differential loads random typed tables by every way there is, and has the databases say whether what arrived is
// what was there.
package differential

import (
	"database/sql"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"reprise/activities"
	"reprise/activities/tooltest"
	"reprise/internal/test/testenv"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
)

var (
	seedFlag   = flag.Uint64("differential.seed", 20261128, "seed of the first round; 0 draws one")
	roundsFlag = flag.Int("differential.rounds", 2, "random tables")
)

func TestMain(m *testing.M) { testenv.Main(m) }

// kind is a type of columns in both databases, with a random value of it as a literal of PostgreSQL.
type kind struct {
	pg, lite string
	value    func(*rand.Rand) string
}

func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

// letters are of texts that somebody has lost before: quotes, escapes of COPY and of CSV, line ends, spaces, signs beyond the BMP,
// combining marks, directions, and what looks like a number, a date or NULL.
var letters = []string{
	"a", "Z", "0", "7", ".", "-", "e", " ", "\t", "\n", "\r", "\r\n", `"`, "'", `\`, `\N`, `\.`, ",", ";", "|", "{", "}", "[", "]", "$1", "?", "%", "é", "é",
	"ß", "漢", "😀", "👩‍👩‍👧", "\u200b", "\u202e", "\ufeff", "\u0085", "\u2028", "\x01", "\x7f", "\U0010ffff", "NULL", "null", "true", "007", "1e3", "{{ x }}", "=1+1",
}

func textOf(r *rand.Rand) string {
	var b strings.Builder
	for range r.IntN(8) {
		b.WriteString(letters[r.IntN(len(letters))])
	}
	return b.String()
}

func digits(r *rand.Rand, most int) string {
	var b strings.Builder
	b.WriteByte(byte('1' + r.IntN(9)))
	for range r.IntN(most + 1) {
		b.WriteByte(byte('0' + r.IntN(10)))
	}
	return b.String()
}

func sign(r *rand.Rand) string { return []string{"", "-"}[r.IntN(2)] }

func timeOf(r *rand.Rand) string {
	at := time.Date(1+r.IntN(9998), time.Month(1+r.IntN(12)), 1+r.IntN(28), r.IntN(24), r.IntN(60), r.IntN(60), r.IntN(1000)*1_000_000, time.UTC)
	layouts := []string{"2006-01-02 15:04:05", "2006-01-02 15:04:05.000", "2006-01-02 15:04:05.000001"}
	return at.Format(layouts[r.IntN(len(layouts))])
}

func jsonOf(r *rand.Rand, depth int) any {
	switch n := r.IntN(8); {
	case n == 0 && depth > 0:
		return nil
	case n == 1:
		return r.IntN(2) == 0
	case n == 2:
		return json.Number(sign(r) + digits(r, 25))
	case n == 3:
		return json.Number(sign(r) + digits(r, 10) + "." + digits(r, 10))
	case n < 6 && depth < 3 || depth == 0:
		members := map[string]any{}
		for range r.IntN(4) {
			members[textOf(r)] = jsonOf(r, depth+1)
		}
		if n%2 == 0 {
			return members
		}
		return lists.Map(slices.Sorted(maps.Keys(members)), func(name string) any { return members[name] })
	}
	return textOf(r)
}

func jsonText(r *rand.Rand) string {
	encoded, err := json.Marshal(jsonOf(r, 0))
	if err != nil {
		panic(err)
	}
	return quoted(string(encoded))
}

var kinds = []kind{
	{"smallint", "INTEGER", func(r *rand.Rand) string { return fmt.Sprint(r.IntN(1<<16) - 1<<15) }},
	{"integer", "INTEGER", func(r *rand.Rand) string { return fmt.Sprint(int32(r.Uint32())) }},
	{"bigint", "INTEGER", func(r *rand.Rand) string { return quoted(fmt.Sprint(int64(r.Uint64()))) }},
	{"numeric", "TEXT", func(r *rand.Rand) string { return quoted(sign(r) + digits(r, 30) + "." + digits(r, 30)) }},
	{"numeric(20,4)", "TEXT", func(r *rand.Rand) string { return quoted(sign(r) + digits(r, 12) + "." + digits(r, 3)) }},
	{"double precision", "REAL", func(r *rand.Rand) string {
		return quoted(fmt.Sprintf("%s%s.%se%d", sign(r), digits(r, 0), digits(r, 16), r.IntN(600)-300))
	}},
	{"real", "REAL", func(r *rand.Rand) string {
		return quoted(fmt.Sprintf("%s%s.%se%d", sign(r), digits(r, 0), digits(r, 6), r.IntN(70)-35))
	}},
	{"text", "TEXT", func(r *rand.Rand) string { return quoted(textOf(r)) }},
	{"varchar(200)", "VARCHAR(200)", func(r *rand.Rand) string { return quoted(textOf(r)) }},
	{"boolean", "BOOLEAN", func(r *rand.Rand) string { return []string{"true", "false"}[r.IntN(2)] }},
	{"timestamp", "TEXT", func(r *rand.Rand) string { return quoted(timeOf(r)) }},
	{"timestamptz", "TEXT", func(r *rand.Rand) string {
		return quoted(timeOf(r) + []string{"+00", "+05:30", "-11", "+14"}[r.IntN(4)])
	}},
	{"date", "TEXT", func(r *rand.Rand) string { return quoted(timeOf(r)[:10]) }},
	{"time", "TEXT", func(r *rand.Rand) string { return quoted(timeOf(r)[11:]) }},
	{"bytea", "BLOB", func(r *rand.Rand) string {
		some := make([]byte, r.IntN(40))
		for i := range some {
			some[i] = byte(r.Uint32())
		}
		return fmt.Sprintf(`'\x%x'`, some)
	}},
	{"jsonb", "TEXT", jsonText},
	{"json", "TEXT", jsonText},
	{"uuid", "TEXT", func(r *rand.Rand) string {
		return quoted(fmt.Sprintf("%08x-%04x-4%03x-8%03x-%012x", r.Uint32(), r.IntN(1<<16), r.IntN(1<<12), r.IntN(1<<12), r.Uint64N(1<<48)))
	}},
}

// table is a random table, in words of PostgreSQL.
type table struct {
	columns []kind
	rows    [][]string
}

func newTable(r *rand.Rand) *table {
	t := &table{columns: []kind{{"bigint", "INTEGER", nil}}}
	for range 2 + r.IntN(8) {
		t.columns = append(t.columns, kinds[r.IntN(len(kinds))])
	}
	for i := range []int{1, 7, 60, 300}[r.IntN(4)] {
		row := []string{fmt.Sprint(i)}
		for _, column := range t.columns[1:] {
			if r.IntN(5) == 0 {
				row = append(row, "NULL")
				continue
			}
			row = append(row, column.value(r))
		}
		t.rows = append(t.rows, row)
	}
	return t
}

func (t *table) ddl(name string, typed func(kind) string) string {
	columns := make([]string, len(t.columns))
	for i, column := range t.columns {
		columns[i] = fmt.Sprintf("c%d %s", i, typed(column))
	}
	return "CREATE TABLE " + name + " (" + strings.Join(columns, ", ") + ", PRIMARY KEY (c0))"
}

// texts are the columns as texts, of which equal ones are equal values, with their names. Without json they are those whose values are
// known by their columns where they come from: a text of SQLite or CSV is none of JSON, whatever it holds.
func (t *table) texts(withJSON bool) string {
	var texts []string
	for i, column := range t.columns {
		switch isJSON := strings.HasPrefix(column.pg, "json"); {
		case isJSON && withJSON:
			texts = append(texts, fmt.Sprintf("c%d::jsonb::text AS c%d", i, i))
		case !isJSON:
			texts = append(texts, fmt.Sprintf("c%d::text AS c%d", i, i))
		}
	}
	return strings.Join(texts, ", ")
}

// round is a table and the tools that load it.
type round struct {
	*testing.T

	random   *rand.Rand
	table    *table
	db       *testenv.Database
	dir      string
	pg, lite tooltest.SQL
	file     func(name string, fields map[string]any, rows any) (interpreter.ToolResult, error)
	loads    int
}

func newRound(t *testing.T, seed uint64) *round {
	t.Helper()
	r := &round{T: t, random: rand.New(rand.NewPCG(seed, 1)), db: testenv.Postgres(t), dir: t.TempDir()}
	catalogue := activities.NewCatalogue(activities.Resources{
		Connections: activities.Connections{"pg": r.db.URL, "lite": "sqlite:" + filepath.Join(r.dir, "rows.db")}, Directory: r.dir,
	})
	t.Cleanup(func() { require.NoError(t, catalogue.Close()) })
	r.pg = tooltest.SQL{Catalogue: catalogue, Name: "postgres", Auth: "pg"}
	r.lite = tooltest.SQL{Catalogue: catalogue, Name: "sqlite", Auth: "lite"}
	r.file = func(name string, fields map[string]any, rows any) (interpreter.ToolResult, error) {
		in := interpreter.ToolInput{Fields: tooltest.Fields(fields), OperationKey: fmt.Sprint("op ", r.loads)}
		if rows != nil {
			in.Args = tooltest.Value(rows)
		}
		return tooltest.Call(t, catalogue, name, "file", in)
	}
	r.table = newTable(r.random)
	r.db.Exec(t, r.table.ddl("source", func(k kind) string { return k.pg }))
	values := lists.Map(r.table.rows, func(row []string) string { return "(" + strings.Join(row, ", ") + ")" })
	r.db.Exec(t, "INSERT INTO source VALUES "+strings.Join(values, ", "))
	return r
}

// read are the rows of a table as a step gets them, by way of a history.
func (r *round) read(db tooltest.SQL, table string) []any {
	r.Helper()
	result, err := db.MakeAttempt(r.T, db.StatementInput(r.T, "SELECT * FROM "+table+" ORDER BY c0", nil))
	require.NoError(r, err)
	return r.travelled(result)
}

func (r *round) travelled(result interpreter.ToolResult) []any {
	r.Helper()
	encoded, err := json.Marshal(result.Data)
	require.NoError(r, err)
	var value expression.Value
	require.NoError(r, json.Unmarshal(encoded, &value))
	rows, isList := value.Data.([]any)
	require.True(r, isList, "%.200s", encoded)
	return rows
}

// load writes rows to a table in a mode, in writes of some rows, of which some come again.
func (r *round) load(db tooltest.SQL, table, mode string, rows []any) {
	r.Helper()
	r.loads++
	fields := map[string]any{"table": table, "mode": mode}
	if mode != "insert" {
		fields["key"] = "c0"
	}
	size := []int{1, 13, 100, 1000}[r.random.IntN(4)]
	id := fmt.Sprintf("%020d", r.loads)
	write := func(n int, do interpreter.StagingStep, rows any) {
		in := db.TableInput(fields, rows)
		in.OperationKey = fmt.Sprintf("load %d write %d %s", r.loads, n, do)
		in.Fingerprint = in.OperationKey
		if mode == "replace" {
			in.Staging = &interpreter.Staging{ID: id, Do: do}
		}
		if do != "" {
			in.Args, in.Fingerprint = nil, ""
		} else if r.random.IntN(2) == 0 {
			r.reshape(&in)
		}
		for range 1 + r.random.IntN(2) {
			_, err := db.MakeAttempt(r.T, in)
			require.NoError(r, err, "%s into %s", mode, db.Name)
		}
	}
	n := 0
	for some := range slices.Chunk(rows, size) {
		n++
		write(n, "", some)
	}
	if mode == "replace" {
		write(n+1, interpreter.StagingPublish, nil)
	}
}

// reshape has the rows of a write come with other names for some columns, and the write give them theirs back.
func (r *round) reshape(in *interpreter.ToolInput) {
	in.Shape, in.Place = &interpreter.RowWork{}, "sink"
	rows := lists.Map(in.SinkRows(), func(row any) any { return maps.Clone(row.(map[string]any)) })
	for i := range r.table.columns {
		column := fmt.Sprintf("c%d", i)
		if r.random.IntN(3) > 0 {
			continue
		}
		for _, row := range rows {
			fields := row.(map[string]any)
			fields["was_"+column] = fields[column]
			delete(fields, column)
		}
		in.Shape.Fields = append(in.Shape.Fields, interpreter.RowField{Name: column, Template: "{{ row.was_" + column + " }}"})
		in.Shape.Exclude = append(in.Shape.Exclude, "was_"+column)
	}
	in.Args = tooltest.Value(rows)
}

// same has PostgreSQL say which rows of the source did not arrive, and which arrived that are not there.
func (r *round) same(table, way string, withJSON bool) {
	r.Helper()
	query := "(SELECT 'lost' AS what, x.* FROM (SELECT %[1]s FROM source EXCEPT ALL SELECT %[1]s FROM %[2]s) AS x) UNION ALL " +
		"(SELECT 'came' AS what, x.* FROM (SELECT %[1]s FROM %[2]s EXCEPT ALL SELECT %[1]s FROM source) AS x)"
	different := r.db.Query(r, fmt.Sprintf("SELECT * FROM ("+query+") AS all_of ORDER BY c0, what DESC LIMIT 6", r.table.texts(withJSON), table))
	require.Empty(r, different, "%s: %s", way, r.table.ddl("source", func(k kind) string { return k.pg }))
}

var modes = []string{"insert", "upsert", "insert_or_ignore", "replace"}

func (r *round) target() string {
	name := fmt.Sprintf("arrived_%d", r.loads)
	r.db.Exec(r, r.table.ddl(name, func(k kind) string { return k.pg }))
	return name
}

func (r *round) betweenDatabases() {
	rows := r.read(r.pg, "source")
	for _, mode := range modes {
		to := r.target()
		r.load(r.pg, to, mode, rows)
		r.same(to, "postgres to postgres by "+mode, true)
	}
	lite, err := sql.Open("sqlite", filepath.Join(r.dir, "rows.db"))
	require.NoError(r, err)
	defer func() { require.NoError(r, lite.Close()) }()
	for _, mode := range modes {
		between := fmt.Sprintf("between_%d", r.loads)
		_, err := lite.Exec(r.table.ddl(between, func(k kind) string { return k.lite }))
		require.NoError(r, err)
		r.load(r.lite, between, mode, rows)
		to := r.target()
		r.load(r.pg, to, modes[r.random.IntN(len(modes))], r.read(r.lite, between))
		r.same(to, "postgres to sqlite by "+mode+" and back", false)

		again := between + "_again" // SQLite says whether a copy in it is the same
		_, err = lite.Exec(r.table.ddl(again, func(k kind) string { return k.lite }))
		require.NoError(r, err)
		r.load(r.lite, again, mode, r.read(r.lite, between))
		columns := make([]string, 0, 2*len(r.table.columns))
		for i := range r.table.columns {
			columns = append(columns, fmt.Sprintf("c%d", i), fmt.Sprintf("typeof(c%d)", i))
		}
		listed := strings.Join(columns, ", ")
		for _, pair := range [][2]string{{between, again}, {again, between}} {
			var n int
			require.NoError(r, lite.QueryRow("SELECT count(*) FROM (SELECT "+listed+" FROM "+pair[0]+" EXCEPT SELECT "+listed+" FROM "+pair[1]+")").Scan(&n))
			require.Zero(r, n, "sqlite to sqlite by %s", mode)
		}
	}
}

func (r *round) throughFiles() {
	rows := r.read(r.pg, "source")
	for format, fields := range map[string]struct{ write, read map[string]any }{
		"jsonl": {},
		"csv":   {write: map[string]any{}, read: map[string]any{}},
	} {
		if format == "csv" && slices.ContainsFunc(r.table.columns, func(k kind) bool { return k.lite == "REAL" }) {
			continue // 1e+49 is no plain form of a number, so that a column of numbers refuses it as a text
		}
		path := fmt.Sprintf("rows_%d.%s", r.loads, format)
		write := map[string]any{"path": path}
		maps.Copy(write, fields.write)
		for n, some := range slices.Collect(slices.Chunk(rows, []int{1, 50, 1000}[r.random.IntN(3)])) {
			r.loads++
			_, err := r.file("file.write", write, some)
			require.NoError(r, err, "write %d of %s", n, format)
		}
		read := map[string]any{"path": path}
		maps.Copy(read, fields.read)
		result, err := r.file("file", read, nil)
		require.NoError(r, err)
		read1 := r.travelled(result)
		if format == "csv" {
			read1 = r.withNULLs(read1)
		}
		to := r.target()
		r.load(r.pg, to, modes[r.random.IntN(len(modes))], read1)
		r.same(to, "postgres to "+format+" and back", format == "jsonl")
	}
}

// withNULLs makes NULL of the empty cells that were NULL: CSV does not tell them apart.
func (r *round) withNULLs(rows []any) []any {
	for i, one := range rows {
		row, isMap := one.(map[string]any)
		require.True(r, isMap)
		for c, literal := range r.table.rows[i] {
			if name := fmt.Sprintf("c%d", c); literal == "NULL" {
				require.Contains(r, []any{"", nil}, row[name], "row %d", i)
				row[name] = nil
			}
		}
	}
	return rows
}

// TestTablesArrive: what a table has arrives as it was, whatever way it goes.
func TestTablesArrive(t *testing.T) {
	t.Parallel()
	seed := *seedFlag
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	for n := range *roundsFlag {
		t.Run(fmt.Sprintf("seed %d", seed+uint64(n)), func(t *testing.T) {
			t.Parallel()
			r := newRound(t, seed+uint64(n))
			r.betweenDatabases()
			r.throughFiles()
		})
	}
}
