package attempt_test

import (
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/activities"
	"reprise/activities/tooltest"
	"reprise/internal/test/testenv"
	"reprise/interpreter"
	"reprise/interpreter/expression"
)

var shapedRows = flag.Int("shape.rows", 100_000, "how many rows BenchmarkShapedRows writes in a round")

// BenchmarkShapedRows writes rows of 12 columns with and without two fields that are added to each, in turns, and reports the median
// of the rounds with them as a multiple of that without.
func BenchmarkShapedRows(b *testing.B) {
	const size = 10_000
	columns := "id bigint, name text, email text, amount numeric, created text, updated text, active boolean, score double precision, tags text, region text, quantity integer, day text, total double precision, source text"
	sinks := map[string]func(b *testing.B) (*activities.Catalogue, string, interpreter.ToolInput){
		"file": func(b *testing.B) (*activities.Catalogue, string, interpreter.ToolInput) {
			c := activities.NewCatalogue(activities.Resources{Directory: b.TempDir()})
			return c, "file.write", interpreter.ToolInput{Tool: "file", Fields: tooltest.Fields(map[string]any{"path": "rows.jsonl"})}
		},
		"sqlite": func(b *testing.B) (*activities.Catalogue, string, interpreter.ToolInput) {
			c := activities.NewCatalogue(activities.Resources{Directory: b.TempDir()})
			in := interpreter.ToolInput{Tool: "sqlite", Fields: tooltest.Fields(map[string]any{"path": "rows.db", "table": "written"})}
			make := in
			make.Fields = tooltest.Fields(map[string]any{"path": "rows.db", "statement": "CREATE TABLE written (" + columns + ")"})
			_, err := tooltest.Call(b, c, "sqlite", "sqlite", make)
			require.NoError(b, err)
			return c, "sqlite.write", in
		},
		"postgres": func(b *testing.B) (*activities.Catalogue, string, interpreter.ToolInput) {
			db := testenv.Postgres(b)
			db.Exec(b, "CREATE TABLE written ("+columns+")")
			c := activities.NewCatalogue(activities.Resources{Connections: activities.Connections{"pg": db.URL}})
			return c, "postgres.write", interpreter.ToolInput{Tool: "postgres", Auth: "pg", Fields: tooltest.Fields(map[string]any{"table": "written"})}
		},
	}
	shape := &interpreter.RowWork{Fields: []interpreter.RowField{
		{Name: "total", Template: "{{ row.score * row.quantity }}"}, {Name: "source", Template: "{{ src }}-{{ row.region }}"},
	}, Scope: expression.Of(map[string]any{"src": "crm"})}
	for name, open := range sinks {
		b.Run(name, func(b *testing.B) {
			c, write, in := open(b)
			b.Cleanup(func() { require.NoError(b, c.Close()) })
			in.Place, in.RunID, in.Step = "sink", "run", "load"
			times, key := [2][]time.Duration{}, 0
			for round := 0; b.Loop(); round++ {
				for at := range 2 {
					with := (at + round) % 2
					took := time.Duration(0)
					for first := 0; first < *shapedRows; first += size {
						key++
						in.OperationKey, in.Fingerprint, in.Result, in.Shape = fmt.Sprint(key), "f", tooltest.Value(shapeRows(first, size)), nil
						if with == 1 {
							in.Shape = shape
						}
						began := time.Now()
						_, err := tooltest.Call(b, c, write, in.Tool, in)
						took += time.Since(began)
						require.NoError(b, err)
					}
					times[with] = append(times[with], took)
				}
			}
			median := func(all []time.Duration) float64 {
				slices.Sort(all)
				return all[len(all)/2].Seconds()
			}
			b.ReportMetric(float64(*shapedRows)/median(times[1]), "rows/s")
			b.ReportMetric(median(times[1])/median(times[0]), "times-without")
		})
	}
}

func shapeRows(first, size int) []any {
	rows := make([]any, size)
	for i := range rows {
		id := first + i
		rows[i] = map[string]any{
			"id": id, "name": fmt.Sprint("customer ", id), "email": fmt.Sprint("customer", id, "@example.com"), "amount": 123.45,
			"created": "2024-05-01T10:00:00Z", "updated": "2024-05-02T11:30:15.250Z", "active": id%2 == 0, "score": float64(id) / 7,
			"tags": "a,b", "region": "north", "quantity": id % 100, "day": "2024-05-01",
		}
	}
	return rows
}
