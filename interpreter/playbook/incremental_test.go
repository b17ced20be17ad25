package playbook_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/interpreter/incremental"
	"reprise/interpreter/playbook"
)

// incrementalStep is a playbook whose only step has this incremental section, in flow style.
func incrementalStep(section string) string {
	return head + `workflow:
  - step: orders
    tool: http
    url: http://x
    incremental: ` + section + "\n"
}

// TestIncrementalTypes: the type of a cursor is that of initial_value unless it is written, and
// lag is in its unit.
func TestIncrementalTypes(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		section string
		as      incremental.CursorType
		initial any
		lag     incremental.Lag
	}{
		{`{initial_value: "2024-01-01T00:00:00Z"}`, incremental.Time, "2024-01-01T00:00:00Z", 0},
		{`{initial_value: 2024-01-01T00:00:00Z, lag: 10m}`, incremental.Time, "2024-01-01T00:00:00Z", incremental.Lag(10 * time.Minute)},
		{`{initial_value: "2024-01-01 00:00:00", lag: 90}`, incremental.Time, "2024-01-01 00:00:00", incremental.Lag(90 * time.Second)},
		{`{initial_value: "Mon, 01 Jan 2024 00:00:00 GMT"}`, incremental.Time, "Mon, 01 Jan 2024 00:00:00 GMT", 0},
		{`{initial_value: 2024-01-01, type: time, lag: 1h}`, incremental.Time, "2024-01-01", incremental.Lag(time.Hour)},
		{`{initial_value: 2024-01-01, lag: 3}`, incremental.Date, "2024-01-01", 3},
		{`{initial_value: "2024-01-01", lag: 3d}`, incremental.Date, "2024-01-01", 3},
		{`{initial_value: "2024-01-01", lag: 2 weeks}`, incremental.Date, "2024-01-01", 14},
		{`{initial_value: "2024-01-01", lag: 48h}`, incremental.Date, "2024-01-01", 2},
		{`{initial_value: 0, lag: 100}`, incremental.Integer, 0, 100},
		{`{initial_value: -7}`, incremental.Integer, -7, 0},
		{`{initial_value: "12", type: integer}`, incremental.Integer, "12", 0},
		{`{initial_value: "A1"}`, incremental.Text, "A1", 0},
		{`{initial_value: ""}`, incremental.Text, "", 0},
		{`{initial_value: "2024-01-01", type: text}`, incremental.Text, "2024-01-01", 0},
	} {
		pb, found := decode(t, incrementalStep(strings.Replace(row.section, "{", "{cursor_path: c, ", 1)))
		require.Empty(t, found, row.section)
		got := pb.Steps[0].Incremental
		require.Equal(t, row.as, got.Type, row.section)
		require.Equal(t, row.initial, got.InitialValue, row.section)
		require.Equal(t, row.lag, got.Lag, row.section)
	}
}

// TestIncrementalWords reads every word, and what counts where they are left out.
func TestIncrementalWords(t *testing.T) {
	t.Parallel()
	pb, found := decode(t, strings.Replace(incrementalStep(`{cursor_path: meta.updated_at, initial_value: 0, range_start: open, row_order: asc,
      on_missing: exclude, key: [id, line], state: "orders/{{ tenant }}", on_conflict: fail}
    retry: [{when: "{{ error is defined }}", then: {restart: full}}]`), "workflow:", "state: shop\nworkflow:", 1))
	require.Empty(t, found)
	step := pb.Steps[0]
	got := *step.Incremental
	require.Equal(t, "orders/{{ tenant }}", got.State.Raw)
	require.NotNil(t, got.State.Template)
	require.Equal(t, []string{"id", "line"}, got.Key)
	require.Equal(t, playbook.ConflictFail, got.OnConflict)
	require.Equal(t, playbook.MissingExclude, got.OnMissing)
	require.True(t, got.OpenStart)
	require.True(t, got.Ascending)
	require.Equal(t, "meta.updated_at", got.CursorPath)
	require.Equal(t, "shop", pb.State)
	require.Equal(t, "shop/orders", pb.StateGroup(step))
	require.True(t, step.Retry[0].Then.Restart)
	require.True(t, step.Retry[0].Then.RestartFull)
	require.True(t, step.Retry[0].Then.Repeats)

	pb, found = decode(t, incrementalStep(`{token: "{{ response.next }}", key: id}`))
	require.Empty(t, found)
	got = *pb.Steps[0].Incremental
	require.Equal(t, incremental.Token, got.Type)
	require.Nil(t, got.InitialValue)
	require.Equal(t, []string{"id"}, got.Key)
	require.Equal(t, playbook.ConflictQueue, got.OnConflict)
	require.Equal(t, playbook.MissingFail, got.OnMissing)
	require.False(t, got.OpenStart || got.Ascending)
	require.Equal(t, "example/orders", pb.StateName(pb.Steps[0]))
}

// TestStateHome: the state stands beside the rows of the last sink, if that is a table whose place
// no answer decides.
func TestStateHome(t *testing.T) {
	t.Parallel()
	const paged = `retry:
      - {when: "{{ response.next is defined }}", then: {next_call: {params: {a: 1}}, per_iteration: {sink: {tool: sqlite, path: p.db, table: t}}}}`
	for _, row := range []struct{ name, step, home string }{
		{"no sink", "", ""},
		{"a table", "sink: {tool: postgres, auth: pg, table: t}", "orders.sink"},
		{"by workload", `sink: {tool: sqlite, path: "{{ workload.db }}", table: t}`, "orders.sink"},
		{"a statement", `sink: {tool: postgres, auth: pg, statement: "INSERT INTO t VALUES ({{ result.a }})"}`, ""},
		{"a file", "sink: {tool: file, path: a.jsonl}", ""},
		{"by the answer", `sink: {tool: sqlite, path: "{{ result.db }}", table: t}`, ""},
		{"by the value", `sink: {tool: sqlite, path: "{{ incremental.value }}.db", table: t}`, ""},
		{"tool from the workload", `sink: {tool: "{{ workload.tool }}", path: a, table: t}`, ""},
		{"pages", paged, "orders.retry[1].then.per_iteration.sink"},
		{"pages and a file", paged + "\n    sink: {tool: file, path: a.jsonl}", ""},
		{"pages and a table", paged + "\n    sink: {tool: sqlite, path: b.db, table: t}", "orders.sink"},
		{"a policy", `retry: [{when: "{{ error is not defined }}", then: {sink: {tool: sqlite, path: a.db, table: t}}}]`, "orders.retry[1].then.sink"},
		{"a policy for failures", `retry: [{when: "{{ error is defined }}", then: {sink: {tool: sqlite, path: a.db, table: t}}}]`, ""},
		{"a loop's step sink", "sink: {tool: sqlite, path: a.db, table: t}\n    loop: {collection: [1], element: e}", ""},
		{"a loop's sink", `loop: {collection: [1], element: e, sink: {tool: sqlite, path: "{{ e }}.db", table: t}}`, "orders.loop.sink"},
		{"the workbook", "sink: {tool: workbook, name: w}", "orders.sink"},
	} {
		text := strings.Replace(incrementalStep("{cursor_path: c, initial_value: 0}"), "workflow:", "workbook: [{name: w, tool: sqlite, path: w.db, table: t}]\nworkflow:", 1)
		pb, found := decode(t, text+"    "+row.step+"\n")
		require.Empty(t, found, row.name)
		place := ""
		if home := pb.StateHome(pb.Steps[0]); home != nil {
			place = home.Place
		}
		require.Equal(t, row.home, place, row.name)
	}
}

// TestOtherTables: a step accumulates rows in the tables of all its sinks. One that is replaced has only those of the last call.
func TestOtherTables(t *testing.T) {
	t.Parallel()
	const pages = `retry:
      - {when: "{{ response.next is defined }}", then: {next_call: {params: {a: 1}}, per_iteration: {sink: {tool: postgres, auth: "{{ pg }}", table: shop.orders}}}}`
	for _, row := range []struct {
		name, step string
		tables     []string
	}{
		{"one sink", pages, []string{}},
		{"beside the last", pages + "\n    sink: {tool: sqlite, path: b.db, table: t}", []string{"shop.orders of postgres {{ pg }}"}},
		{"beside what is no table", pages + "\n    sink: {tool: http, url: http://x, method: POST}", []string{"shop.orders of postgres {{ pg }}"}},
		{
			"the workbook", pages + "\n      - {when: \"{{ error is not defined }}\", then: {sink: {tool: workbook, name: w}}}\n    sink: {tool: file, path: a}",
			[]string{"shop.orders of postgres {{ pg }}", "t of sqlite w.db"},
		},
		{"replaced", strings.Replace(pages, "table: shop.orders", "table: t, mode: replace", 1) + "\n    sink: {tool: file, path: a}", []string{}},
		{"failures", "retry: [{when: \"{{ error is defined }}\", then: {sink: {tool: sqlite, path: a.db, table: t}}}]", []string{}},
		{
			"a loop's sinks", "loop: {collection: [1], element: e, sink: {tool: sqlite, path: \"{{ e }}.db\", table: t}}\n    sink: {tool: sqlite, path: a.db, table: t}",
			[]string{"t of sqlite a.db"},
		},
		{
			"tables of children", "sink: {tool: sqlite, path: a.db, table: t, mode: upsert, key: id, children: {items: {table: lines, key: [id, n], with: {id: id}, " +
				"children: {taxes: {table: taxes, key: [id, n, c], with: {id: id, n: n}}}}, tags: {table: tags, key: [id, name], with: {id: id}}}}",
			[]string{"lines of sqlite a.db", "tags of sqlite a.db", "taxes of sqlite a.db"},
		},
	} {
		text := strings.Replace(incrementalStep("{cursor_path: c, initial_value: 0}"), "workflow:", "workload: {pg: pg}\nworkbook: [{name: w, tool: sqlite, path: w.db, table: t}]\nworkflow:", 1)
		pb, found := decode(t, text+"    "+row.step+"\n")
		require.Empty(t, found, row.name)
		require.Equal(t, row.tables, pb.OtherTables(pb.Steps[0]), row.name)
	}
}

// TestStatesWithin: the states of a playbook that stands within another one are named after that,
// or after what it says.
func TestStatesWithin(t *testing.T) {
	t.Parallel()
	text := head + `workflow:
  - step: load
    tool: playbook
    workflow:
      - step: orders
        tool: http
        url: "http://x/{{ incremental.value }}"
        incremental: {cursor_path: id, initial_value: 0}
  - step: other
    tool: playbook
    workflow: [{step: a, tool: http, url: http://x}]
`
	for state, want := range map[string]string{"": "example.load/orders", "state: shop\n": "shop.load/orders"} {
		pb, found := decode(t, strings.Replace(text, "workflow:", state+"workflow:", 1))
		require.Empty(t, found)
		states := pb.KeptStates()
		require.Len(t, states, 1)
		require.Equal(t, want, states[0].Name)
		require.Equal(t, "load/orders", states[0].Step)
		inner, found := decode(t, pb.Steps[0].Action.Inline.SourceText())
		require.Empty(t, found)
		require.Equal(t, want, inner.KeptStates()[0].Name, "as it is run")
		require.NotContains(t, pb.Steps[1].Action.Inline.SourceText(), "state:")
	}
}
