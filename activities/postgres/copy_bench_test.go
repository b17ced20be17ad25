package postgres_test

import (
	"context"
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"reprise/activities/tooltest"
	"reprise/internal/test/testenv"
	"reprise/interpreter"
	"reprise/interpreter/expression"
)

var loadRows = flag.Int("load.rows", 100_000, "how many rows a way of BenchmarkLoads writes in a round")

// BenchmarkLoads writes rows of 12 columns by several ways, which take turns: as the tool does, as JSON in chunks of
// 1,000 rows with the ledger in the same transaction, which is what the tool did before, and by \copy of psql from a file.
// Upserts are of new rows, and of rows that are there (update). Each iteration is a round; it reports medians of the rounds as ratios of speed. What is measured is the write: rows
// are made before.
func BenchmarkLoads(b *testing.B) {
	for _, size := range []int{100, 10_000} {
		b.Run(fmt.Sprint("insert/", size), func(b *testing.B) { newLoads(b, size).inserts(b) })
		b.Run(fmt.Sprint("upsert/", size), func(b *testing.B) {
			l := newLoads(b, size)
			l.upserts(b, func() { l.db.Exec(b, "TRUNCATE written, as_json") })
		})
		b.Run(fmt.Sprint("update/", size), func(b *testing.B) {
			l := newLoads(b, size)
			l.byTool("insert")(b)
			l.db.Exec(b, "INSERT INTO as_json SELECT * FROM written")
			l.upserts(b, func() { l.db.Exec(b, "VACUUM written, as_json") })
		})
	}
}

// loads writes rows to tables of one kind.
type loads struct {
	pg   tooltest.SQL
	db   *testenv.Database
	conn *pgx.Conn
	size int // rows of a write
	run  int
}

func newLoads(b *testing.B, size int) *loads {
	pg, db := pgTool(b)
	for _, table := range []string{"written", "as_json", "copied"} {
		db.Exec(b, "CREATE TABLE "+table+" (id bigint, name text, email text, amount numeric, created timestamptz, updated timestamptz, "+
			"active boolean, score double precision, tags jsonb, region text, quantity integer, day date, PRIMARY KEY (id))")
	}
	config, err := pgx.ParseConfig(db.URL)
	require.NoError(b, err)
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	conn, err := pgx.ConnectConfig(b.Context(), config)
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, conn.Close(context.Background())) })
	return &loads{pg: pg, db: db, conn: conn, size: size}
}

// way writes all rows of a round, and says how long that took.
type way func(b *testing.B) time.Duration

func (l *loads) inserts(b *testing.B) {
	psql, withoutPsql := l.psql(b)
	ways := map[string]way{"tool": l.byTool("insert"), "json": l.asJSON("")}
	if withoutPsql == "" {
		ways["psql"] = psql
	} else {
		b.Log(withoutPsql)
	}
	l.measure(b, ways, func() { l.db.Exec(b, "TRUNCATE written, as_json, copied") })
}

func (l *loads) upserts(b *testing.B, prepare func()) {
	var sets []string
	for column := range benchmarkRow(0) {
		sets = append(sets, column+" = excluded."+column)
	}
	conflict := " ON CONFLICT (id) DO UPDATE SET " + strings.Join(sets, ", ")
	l.measure(b, map[string]way{"tool": l.byTool("upsert"), "json": l.asJSON(conflict)}, prepare)
}

// measure runs rounds of all ways.
func (l *loads) measure(b *testing.B, ways map[string]way, prepare func()) {
	names, times := make([]string, 0, len(ways)), map[string][]float64{}
	for name := range ways {
		names = append(names, name)
	}
	slices.Sort(names)
	for round := 0; b.Loop(); round++ {
		prepare()
		for i := range names {
			name := names[(i+round)%len(names)]
			times[name] = append(times[name], ways[name](b).Seconds())
		}
	}
	own := medianOf(times["tool"])
	b.ReportMetric(float64(*loadRows)/own, "rows/s")
	for _, name := range names {
		if name != "tool" {
			b.ReportMetric(medianOf(times[name])/own, "times-"+name)
		}
	}
}

func medianOf(seconds []float64) float64 {
	slices.Sort(seconds)
	return seconds[len(seconds)/2]
}

// byTool writes as a sink does.
func (l *loads) byTool(mode string) way {
	return func(b *testing.B) time.Duration {
		return l.write(b, map[string]any{"table": "written", "mode": mode, "key": "id"}, benchmarkRow, l.size, *loadRows)
	}
}

// write writes rows as a sink with some fields does, in writes of a size, and says how long that took.
func (l *loads) write(b *testing.B, fields map[string]any, row func(id int) map[string]any, size, rows int) (took time.Duration) {
	l.run++
	attempt := func(part any, do interpreter.StagingStep, some []any) {
		in := l.pg.TableInput(fields, some)
		in.OperationKey, in.Fingerprint, in.RunID = fmt.Sprint(l.run, " ", part), expression.ShortDigest("rows"), "run"
		if fields["mode"] == "replace" {
			in.Staging = &interpreter.Staging{ID: fmt.Sprintf("%020d", l.run), Do: do}
		}
		began := time.Now()
		_, err := l.pg.MakeAttempt(b, in)
		took += time.Since(began)
		require.NoError(b, err)
	}
	if fields["mode"] == "replace" {
		attempt("begin", interpreter.StagingBegin, nil)
		defer func() { attempt("publish", interpreter.StagingPublish, nil) }()
	}
	for first := 0; first < rows; first += size {
		some := make([]any, size)
		for i := range some {
			some[i] = row(first + i)
		}
		attempt(first, "", some)
	}
	return took
}

// asJSON writes as JSON.
func (l *loads) asJSON(conflict string) way {
	const chunk = 1000
	return func(b *testing.B) (took time.Duration) {
		l.run++
		l.db.Exec(b, "CREATE TABLE IF NOT EXISTS json_writes (operation_key text PRIMARY KEY, written_at timestamptz NOT NULL DEFAULT now(), fingerprint text, rows_written bigint)")
		var columns []string
		for column := range benchmarkRow(0) {
			columns = append(columns, column)
		}
		list := strings.Join(columns, ", ")
		insert := "INSERT INTO as_json (" + list + ") SELECT " + list + " FROM json_populate_recordset(NULL::as_json, $1::text::json)" + conflict
		for first := 0; first < *loadRows; first += l.size {
			rows := benchmarkRows(first, l.size)
			began := time.Now()
			err := pgx.BeginFunc(b.Context(), l.conn, func(tx pgx.Tx) error {
				if _, err := tx.Exec(b.Context(), "SELECT attname::text FROM pg_attribute WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped", "as_json"); err != nil {
					return err
				}
				if conflict == "" {
					if _, err := tx.Exec(b.Context(), "INSERT INTO json_writes (operation_key, fingerprint, rows_written) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
						fmt.Sprint(l.run, " ", first), expression.ShortDigest("rows"), int64(l.size)); err != nil {
						return err
					}
				}
				for some := range slices.Chunk(rows, chunk) {
					encoded, err := expression.Encode(some)
					if err != nil {
						return err
					}
					if _, err := tx.Exec(b.Context(), insert, string(encoded)); err != nil {
						return err
					}
				}
				return nil
			})
			took += time.Since(began)
			require.NoError(b, err)
		}
		return took
	}
}

// psql loads a file by \copy, in one transaction. without says why it cannot.
func (l *loads) psql(b *testing.B) (load way, without string) {
	program, err := exec.LookPath("psql")
	if err != nil {
		return nil, `not compared with \copy: there is no psql on PATH`
	}
	path := filepath.Join(b.TempDir(), "rows")
	file, err := os.Create(path)
	require.NoError(b, err)
	for first := 0; first < *loadRows; first += l.size {
		_, err := file.WriteString(copyText(first, l.size))
		require.NoError(b, err)
	}
	require.NoError(b, file.Close())
	address, err := url.Parse(l.db.URL)
	require.NoError(b, err)
	password, _ := address.User.Password()
	address.User = url.User(address.User.Username())
	list := "id, name, email, amount, created, updated, active, score, tags, region, quantity, day"
	return func(b *testing.B) time.Duration {
		command := exec.CommandContext(b.Context(), program, "-X", "-q", "-v", "ON_ERROR_STOP=1", "-c", fmt.Sprintf(`\copy copied (%s) FROM '%s'`, list, path), address.String())
		command.Env = append(os.Environ(), "PGPASSWORD="+password)
		began := time.Now()
		out, err := command.CombinedOutput()
		took := time.Since(began)
		require.NoError(b, err, "%s", out)
		return took
	}, ""
}

func benchmarkRow(id int) map[string]any {
	return map[string]any{
		"id": id, "name": fmt.Sprint("customer ", id), "email": fmt.Sprint("customer", id, "@example.com"), "amount": "123.45",
		"created": "2024-05-01T10:00:00Z", "updated": "2024-05-02T11:30:15.250Z", "active": id%2 == 0, "score": float64(id) / 7,
		"tags": []any{"a", "b"}, "region": "north", "quantity": id % 100, "day": "2024-05-01",
	}
}

func benchmarkRows(first, size int) []any {
	rows := make([]any, size)
	for i := range rows {
		rows[i] = benchmarkRow(first + i)
	}
	return rows
}

func copyText(first, size int) string {
	var text strings.Builder
	for i := range size {
		id := first + i
		fmt.Fprintf(&text, "%d\tcustomer %d\tcustomer%d@example.com\t123.45\t2024-05-01T10:00:00Z\t2024-05-02T11:30:15.250Z\t%t\t%v\t[\"a\",\"b\"]\tnorth\t%d\t2024-05-01\n",
			id, id, id, id%2 == 0, float64(id)/7, id%100)
	}
	return text.String()
}
