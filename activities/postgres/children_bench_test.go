package postgres_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/test/testenv"
)

// TestChildrenAreFoundByIndex: a page of parents does not read a whole table of children, of which the server has no statistics yet.
func TestChildrenAreFoundByIndex(t *testing.T) {
	t.Parallel()
	pg, db := pgTool(t)
	const there = 20_000
	for _, statement := range []string{
		"CREATE TABLE orders (id bigint PRIMARY KEY)",
		"CREATE TABLE lines (order_id bigint, line bigint, PRIMARY KEY (order_id, line)) WITH (autovacuum_enabled = false)",
		fmt.Sprintf("INSERT INTO lines SELECT n / 5, n %% 5 FROM generate_series(1, %d) n", there),
		"CREATE FUNCTION flush() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_stat_force_next_flush(); RETURN NULL; END'",
		"CREATE TRIGGER flush AFTER INSERT ON lines EXECUTE FUNCTION flush()",
	} {
		db.Exec(t, statement)
	}
	const stats = "SELECT n_tup_ins AS rows, seq_tup_read AS read FROM pg_stat_user_tables WHERE relname = 'lines'"
	children := fields{"lines": fields{"table": "lines", "key": []any{"order_id", "line"}, "with": fields{"order_id": "id"}}}
	for page := range 3 {
		var orders []any
		for n := range 100 {
			orders = append(orders, fields{"id": there + page*100 + n, "lines": []any{fields{"line": 0}, fields{"line": 1}}})
		}
		in := pg.TableInput(fields{"table": "orders", "mode": "upsert", "key": "id", "children": children}, orders)
		in.OperationKey = fmt.Sprint(page)
		_, err := pg.MakeAttempt(t, in)
		require.NoError(t, err)
	}
	require.Eventually(t, func() bool { return db.Query(t, stats)[0]["rows"].(int64) >= 600 }, testenv.Within(10*time.Second), 20*time.Millisecond)
	require.Less(t, db.Query(t, stats)[0]["read"], int64(there))
}

// BenchmarkChildren writes orders of five lines each, the lines as rows of a table of their own, and, in turns, as many
// rows of one table. It reports how many times the time of a flat row a row of parents and children takes: of new rows, and for replace of rows
// that are there and equal after the first round. A write has size orders, or as many flat rows as these with their lines.
func BenchmarkChildren(b *testing.B) {
	for _, mode := range []string{"insert", "upsert", "replace"} {
		for _, size := range []int{100, 1_000, 10_000} {
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
	orders := *loadRows / (1 + linesOfOrder)
	var rows, alone []float64
	for b.Loop() {
		if mode != "replace" {
			l.db.Exec(b, "TRUNCATE orders, lines, flat")
		}
		rows = append(rows, l.write(b, nested, order, l.size, orders).Seconds())
		alone = append(alone, l.write(b, plain, flat, l.size*(1+linesOfOrder), orders*(1+linesOfOrder)).Seconds())
	}
	b.ReportMetric(medianOf(rows)/medianOf(alone), "times-flat")
}
