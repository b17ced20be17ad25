package postgres_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"reprise/activities/postgres"
	"reprise/activities/sqltool"
	"reprise/activities/tooltest"
	"reprise/internal/test/testenv"
	"reprise/interpreter"
	"reprise/interpreter/incremental"
)

// TestTimesLoseNoOffset: a time with an offset is converted to UTC for a column without one, by whatever way it travels.
func TestTimesLoseNoOffset(t *testing.T) {
	t.Parallel()
	pg, db := pgTool(t)
	db.Exec(t, `CREATE DOMAIN moment AS timestamp; CREATE DOMAIN of_moment AS moment;
		CREATE TABLE times (id int PRIMARY KEY, at timestamp, day date, clock time, many timestamp[], near timestamp(0), dom of_moment, zoned timestamptz);
		CREATE VIEW seen AS SELECT * FROM times`)
	const at, clock = "2024-01-01T23:30:00-05:00", "23:30:00-05:00"
	one := map[string]any{"id": 1, "at": at, "day": at, "clock": clock, "many": []any{at, nil, "2024-01-01 10:00"}, "near": at, "dom": at, "zoned": at}
	want := []map[string]any{{
		"at": "2024-01-02 04:30:00", "day": "2024-01-02", "clock": "04:30:00", "many": `{"2024-01-02 04:30:00",NULL,"2024-01-01 10:00:00"}`,
		"near": "2024-01-02 04:30:00", "dom": "2024-01-02 04:30:00", "zoned": "2024-01-02 04:30:00+00",
	}}
	for _, table := range []string{"times", "seen"} {
		for _, mode := range []string{"insert", "upsert"} {
			for _, many := range []int{1, 1, manyRows} {
				if table == "seen" && mode == "upsert" {
					continue
				}
				db.Exec(t, "TRUNCATE times")
				rows := []any{one}
				for i := 1; i < many; i++ {
					rows = append(rows, map[string]any{"id": 1 + i, "at": at})
				}
				in := pg.TableInput(map[string]any{"table": table, "mode": mode, "key": "id"}, rows)
				in.OperationKey = fmt.Sprint(table, mode, many, rand.Int())
				_, err := pg.MakeAttempt(t, in)
				require.NoError(t, err)
				require.Equal(t, want, db.Query(t, `SELECT at::text, day::text, clock::text, many::text, near::text, dom::text,
					(zoned AT TIME ZONE 'UTC')::text || '+00' AS zoned FROM times WHERE id = 1`), "%s of %d into %s", mode, many, table)
				require.Equal(t, at, one["at"], "the rows are as they were")
			}
		}
	}
	for _, text := range []string{
		"2024-01-01 10:00:00 Europe/Berlin", "2024-01-01 10:00 EST", "Jan 1 10:00:00 2024 PST", "now", "today", "tomorrow ",
	} {
		require.Contains(t, pg.FailingCall(t, pg.TableInput(map[string]any{"table": "times"}, map[string]any{"id": 2, "at": text})).Message, `row 1, column "at": "`+text+`" `, text)
	}
	require.Contains(t, pg.FailingCall(t, pg.TableInput(map[string]any{"table": "times"}, map[string]any{"id": 2, "zoned": "now"})).Message, "the clock of the database")
	for _, text := range []string{"n/a", "2024-02-30T10:00:00Z", "2024-01-01T25:00:00Z"} {
		require.Contains(t, pg.FailingCall(t, pg.TableInput(map[string]any{"table": "times"}, map[string]any{"id": 2, "at": text})).Message, text, "the database says why")
	}
	for text, read := range map[string]string{
		"2024-01-01T10:00:00.123456+01:00": "2024-01-01 09:00:00.123456", "2024-01-01 10:00:00 UTC": "2024-01-01 10:00:00", "20240101T100000+0200": "2024-01-01 08:00:00",
		"Mon, 01 Jan 2024 10:00:00 GMT": "2024-01-01 10:00:00", "2024-01-01T24:00:00Z": "2024-01-02 00:00:00", "2024-01-01 10:00": "2024-01-01 10:00:00",
		"infinity": "infinity", "2024-06-30T23:59:60Z": "2024-07-01 00:00:00", "2024-01-01 10:00:00+005328": "2024-01-01 09:06:32", "Jan 1 2024 10:00": "2024-01-01 10:00:00",
		" 2024-01-01T10:00:00z ": "2024-01-01 10:00:00",
	} {
		in := pg.TableInput(map[string]any{"table": "times", "mode": "upsert", "key": "id"}, map[string]any{"id": 3, "at": text})
		_, err := pg.MakeAttempt(t, in)
		require.NoError(t, err, text)
		require.Equal(t, []map[string]any{{"at": read}}, db.Query(t, "SELECT at::text FROM times WHERE id = 3"), text)
	}
}

// TestTimesAreComparedWithTheirOffsets: versions, deletions and bounds of columns without an offset.
func TestTimesAreComparedWithTheirOffsets(t *testing.T) {
	t.Parallel()
	pg, db := pgTool(t)
	db.Exec(t, "CREATE TABLE versions (id int PRIMARY KEY, at timestamp, n int, word text)")
	fields := map[string]any{"table": "versions", "mode": "upsert", "key": "id", "sequence_by": "at", "hard_delete": "gone", "rejected": map[string]any{"table": "aside"}}
	write := func(rows ...any) {
		t.Helper()
		_, err := pg.MakeAttempt(t, pg.TableInput(fields, rows))
		require.NoError(t, err)
	}
	const early, late = "2024-01-01T11:00:00+02:00", "2024-01-01T10:00:00Z"
	write(map[string]any{"id": 1, "at": late, "n": 2}, map[string]any{"id": 2, "at": early, "n": 1}, map[string]any{"id": 3, "at": early}, map[string]any{"id": 4, "at": late})
	write(map[string]any{"id": 1, "at": early, "n": 1}, map[string]any{"id": 2, "at": late, "n": 2},
		map[string]any{"id": 3, "at": late, "gone": true}, map[string]any{"id": 4, "at": early, "gone": true})
	write(map[string]any{"id": 5, "at": late, "n": 2}, map[string]any{"id": 5, "at": early, "n": 1}, map[string]any{"id": 6, "at": early, "n": "01"})
	require.Equal(t, []map[string]any{{"id": int32(1), "n": int32(2)}, {"id": int32(2), "n": int32(2)}, {"id": int32(4), "n": nil}, {"id": int32(5), "n": int32(2)}},
		db.Query(t, "SELECT id, n FROM versions ORDER BY id"))
	require.Equal(t, []map[string]any{{"value": `{"at":"` + early + `","id":6,"n":"01"}`}}, db.Query(t, "SELECT value FROM aside"), "as it was")

	db.Exec(t, `TRUNCATE versions; INSERT INTO versions VALUES (1, '2023-12-31 23:00'), (2, '2024-01-01 22:59:59'), (3, '2024-01-01 23:00'), (4, '2023-12-31 22:59')`)
	load := pg.TableInput(map[string]any{"table": "versions", "mode": "replace", "replace_where": map[string]any{
		"column": "at", "from": "2024-01-01T00:00:00+01:00", "to": "2024-01-02T00:00:00+01:00",
	}}, []any{map[string]any{"id": 9, "at": "2024-01-01T23:59:59+01:00"}})
	load.Place, load.OperationKey, load.Staging = "sink", "load", &interpreter.Staging{ID: "0123456789abcdef0001"}
	_, err := pg.MakeAttempt(t, load)
	require.NoError(t, err)
	outside := load
	outside.OperationKey, outside.Args = "outside", tooltest.Value([]any{map[string]any{"id": 9, "at": "2024-01-02T00:00:00+01:00"}})
	require.Equal(t, "outside_replace_where", pg.FailingCall(t, outside).Type)
	publish := load
	publish.Args, publish.Staging = nil, &interpreter.Staging{ID: load.Staging.ID, Do: interpreter.StagingPublish}
	_, err = pg.MakeAttempt(t, publish)
	require.NoError(t, err)
	require.Equal(t, []map[string]any{{"id": int32(3)}, {"id": int32(4)}, {"id": int32(9)}}, db.Query(t, "SELECT id FROM versions ORDER BY id"))

	for source, n := range map[string]int{
		"SELECT count(*) AS n FROM versions WHERE at >= {{ at }}":                                              2,
		"SELECT count(*) AS n FROM versions WHERE at >= '{{ at }}'":                                            2,
		"SELECT count(*) AS n FROM versions WHERE at = TIMESTAMP '{{ at }}'":                                   1,
		"SELECT count(*) AS n FROM versions WHERE at = ANY ({{ [at] }}::timestamp[])":                          1,
		"INSERT INTO versions (id, at) VALUES (20, {{ at }}) RETURNING (at = '2024-01-01 22:59:59')::int AS n": 1,
	} {
		require.Equal(t, []any{map[string]any{"n": n}}, pg.RunStatement(t, source, map[string]any{"at": "2024-01-01T23:59:59+01:00"}), source)
		db.Exec(t, "DELETE FROM versions WHERE id = 20")
	}
	refused := pg.FailingCall(t, pg.StatementInput(t, "SELECT count(*) FROM versions WHERE at > {{ at }}", map[string]any{"at": "2024-01-01 10:00 CET"}))
	require.Contains(t, refused.Message, `"2024-01-01 10:00 CET" has an unknown zone`)
}

// TestTextsAreOrderedAsCursors: the server orders texts as CompareCursors does.
func TestTextsAreOrderedAsCursors(t *testing.T) {
	t.Parallel()
	_, db := pgTool(t)
	conn, err := pgx.Connect(t.Context(), db.URL)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	layouts := []string{
		time.RFC3339, time.RFC3339Nano, "2006-01-02 15:04:05.999999-07", "2006-01-02T15:04Z07:00", "2006-01-02 15:04:05", time.DateOnly, "20060102T150405Z0700", "20060102T1504", http1123,
		"2006-01-02 15:04:05,000 -0700", "2006-01-02 15:04:05 UTC", "2006-01-02T15:04:05-07:00:00", "Mon, 02 Jan 2006 15:04:05 -0700", "2006-01-02x15:04:05", "02.01.2006",
	}
	random := func() string {
		at := time.Date(2024, time.February, 27, 20, 0, 0, 0, time.UTC).Add(time.Duration(rand.IntN(5*24*3600)) * time.Second)
		at = at.Add(time.Duration([]int{0, 500_000_000, 1000, 1, 999_999_999}[rand.IntN(5)]))
		zone := []int{0, 3600, -5 * 3600, 5*3600 + 1800, -1800}[rand.IntN(5)]
		text := at.In(time.FixedZone("", zone)).Format(layouts[rand.IntN(len(layouts))])
		if rand.IntN(20) == 0 {
			text = strings.Replace(text, "2024", "20240", 1)
		}
		return text
	}
	const pairs = 400
	given, there, want := make([]string, pairs), make([]string, pairs), make([]bool, pairs)
	for _, as := range []incremental.CursorType{"", incremental.Time, incremental.Text, incremental.Integer} {
		for i := range pairs {
			given[i], there[i] = random(), random()
			if as == incremental.Integer {
				given[i], there[i] = fmt.Sprint(rand.IntN(200)-50), fmt.Sprint(rand.IntN(200)-50, []string{"", ".5", "x"}[rand.IntN(3)])
				there[i] = strings.ReplaceAll(there[i], " ", "")
			}
			want[i] = sqltool.CompareCursors(as, given[i], there[i]) >= 0
		}
		rows, err := conn.Query(t.Context(), "SELECT "+postgres.NotOlder("g", "t", as)+" FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS pairs (g, t, n) ORDER BY n", given, there)
		require.NoError(t, err)
		got, err := pgx.CollectRows(rows, pgx.RowTo[bool])
		require.NoError(t, err)
		for i := range pairs {
			require.Equal(t, want[i], got[i], "%s: %q, %q", as, given[i], there[i])
		}
	}
}

const http1123 = "Mon, 02 Jan 2006 15:04:05 GMT"

// TestEvolveMakesTheSchema: of the table and of the one for rows that are refused, by many at once, and says who may not.
func TestEvolveMakesTheSchema(t *testing.T) {
	t.Parallel()
	pg, db := pgTool(t)
	fields := func(table string) map[string]any {
		return map[string]any{
			"table": table, "mode": "upsert", "key": "id", "schema_contract": "evolve", "columns": map[string]any{"n": "bigint"},
			"rejected": map[string]any{"table": "aside.refused"},
		}
	}
	rows := []any{map[string]any{"id": 1, "n": 1}, map[string]any{"id": 2, "n": "n/a"}}
	const together = 4
	group := errgroup.Group{}
	for i := range together {
		group.Go(func() error {
			in := pg.TableInput(fields(fmt.Sprintf(`"New".t%d`, i)), rows)
			in.OperationKey = fmt.Sprint("schema ", i)
			_, err := pg.MakeAttempt(t, in)
			return err
		})
	}
	require.NoError(t, testenv.WaitResult(t, group.Wait, "the writes"))
	require.Equal(t, []map[string]any{{"n": int64(together)}}, db.Query(t, `SELECT count(*) AS n FROM pg_tables WHERE schemaname = 'New'`))
	require.Equal(t, []map[string]any{{"n": int64(together)}}, db.Query(t, `SELECT count(*) AS n FROM aside.refused`))
	frozen := fields("other.t")
	frozen["schema_contract"] = "freeze"
	require.Contains(t, pg.FailingCall(t, pg.TableInput(frozen, rows)).Message, "does not exist")
	user, name := asUser(t, db)
	refused := user.FailingCall(t, user.TableInput(fields("other.t"), rows))
	require.Contains(t, refused.Message, `changing table "other.t" by CREATE SCHEMA IF NOT EXISTS "other"`)
	require.Contains(t, refused.Message, "the user needs CREATE on the database to create the schema")
	db.Exec(t, fmt.Sprintf("CREATE SCHEMA other; GRANT ALL ON SCHEMA other TO %s", name))
	in := user.TableInput(map[string]any{"table": "other.t", "mode": "upsert", "key": "id", "schema_contract": "evolve"}, rows[:1])
	_, err := user.MakeAttempt(t, in)
	require.NoError(t, err, "a schema that is there needs no right to make one")
}
