package postgres_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"reprise/activities"
	"reprise/activities/tooltest"
)

// BenchmarkWaysToWrite inserts rows of 12 columns, 100 and 10,000 at once, as JSON (to a view, by a user who may not make
// temporary tables), by COPY, and by COPY alone from text that is ready, in turns. It reports medians as ratios of speed: COPY to JSON, COPY to COPY
// alone, and the same of upserts to JSON, of rows that are new and of rows that are there.
func BenchmarkWaysToWrite(b *testing.B) {
	for _, size := range []int{100, 10_000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) { benchmarkWays(b, size) })
	}
}

func benchmarkWays(b *testing.B, size int) {
	pg, db := pgTool(b)
	const columns = "id bigint, name text, email text, amount numeric, created timestamptz, updated timestamptz, active boolean, " +
		"score double precision, tags jsonb, region text, quantity integer, day date"
	for _, table := range []string{"copied", "under", "alone", "upserted", "upserted_json", "updated", "updated_json"} {
		db.Exec(b, "CREATE TABLE "+table+" ("+columns+", PRIMARY KEY (id))")
	}
	role := "untemporary_" + db.Name
	db.Exec(b, fmt.Sprintf(`CREATE VIEW viewed AS SELECT * FROM under; CREATE ROLE %[1]q; REVOKE TEMPORARY ON DATABASE %[2]q FROM PUBLIC;
		GRANT ALL ON SCHEMA public TO %[1]q; GRANT ALL ON ALL TABLES IN SCHEMA public TO %[1]q`, role, db.Name))
	b.Cleanup(func() { db.Exec(b, fmt.Sprintf("DROP OWNED BY %[1]q; DROP ROLE %[1]q", role)) })
	separator := "?"
	if strings.Contains(db.URL, "?") {
		separator = "&"
	}
	limited := activities.NewCatalogue(activities.Resources{
		Connections: activities.Connections{"main": db.URL + separator + "options=-c%20role%3D" + role},
	})
	b.Cleanup(func() { require.NoError(b, limited.Close()) })
	asJSON := tooltest.SQL{Catalogue: limited, Name: pg.Name, Auth: pg.Auth}
	conn, err := pgx.Connect(b.Context(), db.URL)
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, conn.Close(b.Context())) })
	write := func(pg tooltest.SQL, table, mode string) func(page int) {
		return func(page int) {
			in := pg.Rows(map[string]any{"table": table, "mode": mode, "key": "id"}, benchmarkRows(page, size))
			in.OperationKey, in.RunID = fmt.Sprint(table, page), "run"
			_, err := pg.Call(b, in)
			require.NoError(b, err)
		}
	}
	alone := func(page int) {
		_, err := conn.PgConn().CopyFrom(b.Context(), strings.NewReader(copyText(page, size)), "COPY alone FROM STDIN")
		require.NoError(b, err)
	}
	again := func(write func(int)) func(int) {
		write(0)
		return func(int) { write(0) }
	}
	ways := []func(int){
		write(asJSON, "viewed", "insert"), write(pg, "copied", "insert"), alone,
		write(asJSON, "upserted_json", "upsert"), write(pg, "upserted", "upsert"),
		again(write(asJSON, "updated_json", "upsert")), again(write(pg, "updated", "upsert")),
	}
	times := make([][]time.Duration, len(ways))
	for page := 0; b.Loop(); page++ {
		for i := range ways {
			way := (i + page) % len(ways)
			begun := time.Now()
			ways[way](page)
			times[way] = append(times[way], time.Since(begun))
		}
	}
	medians := make([]float64, len(ways))
	for i, of := range times {
		slices.Sort(of)
		medians[i] = of[len(of)/2].Seconds()
	}
	b.ReportMetric(medians[0]/medians[1], "insert/json")
	b.ReportMetric(medians[2]/medians[1], "insert/copy-alone")
	b.ReportMetric(medians[3]/medians[4], "upsert/json")
	b.ReportMetric(medians[5]/medians[6], "update/json")
	b.ReportMetric(float64(size)/medians[1], "rows/s")
	b.ReportMetric(float64(size)/medians[4], "upserts/s")
}

func benchmarkRows(page, size int) []any {
	rows := make([]any, size)
	for i := range rows {
		id := page*size + i
		rows[i] = map[string]any{
			"id": id, "name": fmt.Sprint("customer ", id), "email": fmt.Sprint("customer", id, "@example.com"), "amount": "123.45",
			"created": "2024-05-01T10:00:00Z", "updated": "2024-05-02T11:30:15.250Z", "active": id%2 == 0, "score": float64(id) / 7,
			"tags": []any{"a", "b"}, "region": "north", "quantity": id % 100, "day": "2024-05-01",
		}
	}
	return rows
}

func copyText(page, size int) string {
	var text strings.Builder
	for i := range size {
		id := page*size + i
		fmt.Fprintf(&text, "%d\tcustomer %d\tcustomer%d@example.com\t123.45\t2024-05-01T10:00:00Z\t2024-05-02T11:30:15.250Z\t%t\t%v\t[\"a\",\"b\"]\tnorth\t%d\t2024-05-01\n",
			id, id, id, id%2 == 0, float64(id)/7, id%100)
	}
	return text.String()
}
