package e2e_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// listedPages are pages whose rows have two lines each, and two marks, whose table is not described.
var listedPages = strings.NewReplacer("sink: {SINK}", `sink:
              tool: postgres
              auth: pg
              table: orders
              MODE
              fields: {lines: "{{ [{'line': 1, 'version': row.version}, {'line': 2, 'version': row.version}] }}", marks: "{{ [row.version, 7] }}"}
              nested: tables
              children: {lines: {table: lines, key: [order_id, line], with: {order_id: id}}}`).Replace(movingPages)

// TestKilledWithChildren: a worker that dies between pages, while the source moves, leaves each parent with its children, once, and a
// later run of mode upsert adds none.
func TestKilledWithChildren(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"mode: insert\n              key: id", "mode: upsert\n              key: id"} {
		t.Run(mode[:12], func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			db := w.database()
			db.Exec(t, createOrders)
			db.Exec(t, "CREATE TABLE lines (order_id bigint REFERENCES orders (id), line bigint, version bigint, PRIMARY KEY (order_id, line))")
			db.Exec(t, "CREATE TABLE orders_marks (orders_id bigint REFERENCES orders (id), orders_marks_line bigint, value bigint, PRIMARY KEY (orders_id, orders_marks_line))")
			steps := strings.Replace(listedPages, "MODE", mode, 1)
			steps = w.kept(book(strings.Replace(steps, "{limit: 3}\n    retry:", "{limit: 3, since: \"{{ incremental.value }}\"}\n    incremental: {cursor_path: version, initial_value: 0, type: integer, key: id}\n    retry:", 1) + "\noutput: \"{{ fetch }}\"\n"))
			w.completesAfterAKill(steps, http.MethodGet, 2)
			written := func() {
				rows := w.rows(db, "SELECT o.id, count(l.line) AS lines, (SELECT count(*) FROM orders_marks m WHERE m.orders_id = o.id) AS marks FROM orders o LEFT JOIN lines l ON l.order_id = o.id GROUP BY o.id ORDER BY o.id")
				require.GreaterOrEqual(t, len(rows), 11)
				for _, row := range rows {
					require.EqualValues(t, 2, row.(map[string]any)["lines"], "%v", row)
					require.EqualValues(t, 2, row.(map[string]any)["marks"], "%v", row)
				}
			}
			written()
			if strings.Contains(mode, "upsert") { // the source answers all rows again
				w.completes(steps, nil)
				written()
			}
		})
	}
}

// TestChildrenDroppedBetweenRuns: a table of children that is gone while the state has moved is not made anew without the older rows.
func TestChildrenDroppedBetweenRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	db := w.database()
	db.Exec(t, createOrders)
	steps := strings.Replace(listedPages, "MODE", "mode: upsert\n              key: id\n              schema_contract: evolve", 1)
	steps = w.kept(book(strings.Replace(steps, "{limit: 3}\n    retry:", "{limit: 3, since: \"{{ incremental.value }}\"}\n    incremental: {cursor_path: version, initial_value: 0, type: integer, key: id}\n    retry:", 1) + "\noutput: \"{{ fetch }}\"\n"))
	w.spawn()
	w.completes(steps, nil)
	for _, table := range []string{"lines", "orders_marks"} {
		db.Exec(t, "ALTER TABLE "+table+" RENAME TO before")
		result, err := w.outcome(w.start(steps, nil))
		require.NoError(t, err)
		require.EqualValues(t, "failed", result.Status)
		require.Equal(t, "state_without_table", result.Error.Type)
		require.Contains(t, result.Error.Message, `table "`+table+`" does not exist`)
		require.Empty(t, w.rows(db, "SELECT 1 FROM pg_class WHERE relname = '"+table+"'"), "it is not made anew")
		db.Exec(t, "ALTER TABLE before RENAME TO "+table)
	}
	w.completes(steps, nil)
}

// TestMirrorsWithChildren: a sink of a call that mirrors its source deletes what was not read with its children, once all is read.
func TestMirrorsWithChildren(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"mode: upsert, delete_missing: true, max_delete: 0.7", "mode: replace"} {
		t.Run(mode[:12], func(t *testing.T) {
			t.Parallel()
			r := newRefreshed(t)
			r.db.Exec(t, "CREATE TABLE parts (thing bigint REFERENCES things (id), part bigint, PRIMARY KEY (thing, part))")
			mirrors := "tool: postgres, auth: pg, table: things, key: id, " + mode + ", " +
				"fields: {parts: \"{{ [{'part': 1}, {'part': row.id}] }}\"}, children: {parts: {table: parts, key: [thing, part], with: {thing: id}}}"
			workload := map[string]any{"shelf": r.URL}
			parts := func() any {
				return r.world.rows(r.db, "SELECT array_to_string(array_agg(thing || '/' || part ORDER BY thing, part), ' ') AS all FROM parts")[0].(map[string]any)["all"]
			}
			r.setRows("a", map[int]string{2: "two", 3: "three", 4: "four"})
			r.ends("completed", refreshing("", mirrors), workload)
			require.Equal(t, "2/1 2/2 3/1 3/3 4/1 4/4", parts())
			r.setRows("a", map[int]string{3: "drei"})
			result := r.ends("completed", refreshing("", mirrors), workload)
			require.Equal(t, map[int]string{3: "drei"}, r.table())
			require.Equal(t, "3/1 3/3", parts())
			deleted := map[string]int64{}
			for _, table := range result.Rows.Tables {
				deleted[table.Table] = table.Deleted
			}
			require.Equal(t, map[string]int64{"things": 2, "parts": 4}, deleted)
		})
	}
}
