package postgres_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/interpreter/expression"
)

// BenchmarkChildren writes orders of five lines each, the lines as rows of a table of their own, and, in turns, as many
// rows of one table. It reports how many times the time of a flat row a row of parents and children takes.
func BenchmarkChildren(b *testing.B) {
	for _, mode := range []string{"insert", "upsert"} {
		for _, size := range []int{100, 5_000} {
			b.Run(fmt.Sprint(mode, "/", size), func(b *testing.B) { newLoads(b, size).nests(b, mode) })
		}
	}
}

const linesOfOrder = 5

// nests compares orders with lines to flat rows.
func (l *loads) nests(b *testing.B, mode string) {
	const columns = "(id bigint, customer text, total numeric, at timestamptz"
	l.db.Exec(b, "CREATE TABLE orders "+columns+", PRIMARY KEY (id))")
	l.db.Exec(b, "CREATE TABLE flat "+columns+", PRIMARY KEY (id))")
	l.db.Exec(b, "CREATE TABLE lines (order_id bigint, line bigint, sku text, price numeric, PRIMARY KEY (order_id, line))")
	flat := func(id int) map[string]any {
		return map[string]any{"id": id, "customer": fmt.Sprint("customer ", id), "total": "123.45", "at": "2024-05-01T10:00:00Z"}
	}
	order := func(id int) map[string]any {
		one, lines := flat(id), make([]any, linesOfOrder)
		for i := range lines {
			lines[i] = map[string]any{"line": i, "sku": fmt.Sprint("sku ", i), "price": "12.50"}
		}
		one["lines"] = lines
		return one
	}
	children := map[string]any{"lines": map[string]any{"table": "lines", "key": []any{"order_id", "line"}, "with": map[string]any{"order_id": "id"}}}
	nested := map[string]any{"table": "orders", "mode": mode, "key": "id", "children": children}
	plain := map[string]any{"table": "flat", "mode": mode, "key": "id"}
	var rows, alone []float64
	for b.Loop() {
		l.db.Exec(b, "TRUNCATE orders, lines, flat")
		rows = append(rows, l.write(b, nested, order, l.size).Seconds())
		alone = append(alone, l.write(b, plain, flat, l.size*(1+linesOfOrder)).Seconds())
	}
	b.ReportMetric(medianOf(rows)/medianOf(alone), "times-flat")
}

// write writes rows in writes of a size, as many that both ways write as many rows, and says how long that took.
func (l *loads) write(b *testing.B, fields map[string]any, row func(id int) map[string]any, size int) (took time.Duration) {
	l.run++
	for first := 0; first < *loadRows/(1+linesOfOrder)*size/l.size; first += size {
		rows := make([]any, size)
		for i := range rows {
			rows[i] = row(first + i)
		}
		in := l.pg.TableInput(fields, rows)
		in.OperationKey, in.Fingerprint, in.RunID = fmt.Sprint(l.run, " ", first), expression.ShortDigest("rows"), "run"
		began := time.Now()
		_, err := l.pg.MakeAttempt(b, in)
		took += time.Since(began)
		require.NoError(b, err)
	}
	return took
}
