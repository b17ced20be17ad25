package interpreter_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/test/tables"

	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// everything is the data of a run in which each part can be told apart.
func everything(t testing.TB) interpreter.Data {
	return interpreter.Data{
		Workload: expression.Of(tables.Value(t, `{"api": "http://x", "secret": "no", "q": "o'b", "deep": {"a": {"b": 1, "c": 2}, "d": 3},
			"list": [{"x": 1, "y": 2}, {"x": 3}], "before": "hidden", "patients": ["p1", "p2"]}`)),
		Vars: expression.Of(tables.Value(t, `{"n": 1, "other": {"a": 1}}`)),
		Steps: expression.Of(tables.Value(t, `{"before": {"status": "success", "data": {"token": "t", "rows": [1, 2]}, "meta": {"pages": 3}},
			"third": {"status": "success", "data": [7], "meta": {"pages": 1}}}`)),
	}
}

// TestCapture shows what a child gets: what its step's expressions name.
func TestCapture(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, step, want string }{
		{"nothing", `url: http://x`, `{}`},
		{"a workload key", `url: "{{ api }}/x"`, `{"workload":{"api":"http://x"}}`},
		{"by its long name", `url: "{{ workload.api }}"`, `{"workload":{"api":"http://x"}}`},
		{"a member", `url: http://x
    params: {v: "{{ deep.a.b }}", w: "{{ workload.deep['d'] }}"}`, `{"workload":{"deep":{"a":{"b":1},"d":3}}}`},
		{"the whole where a part and the whole are named", `url: http://x
    params: {v: "{{ deep.a.b }}", w: "{{ deep.a | length }}"}`, `{"workload":{"deep":{"a":{"b":1,"c":2}}}}`},
		{"lists whole", `url: "{{ list[1].x }}"`, `{"workload":{"list":[{"x":1,"y":2},{"x":3}]}}`},
		{"all of the workload", `url: "{{ keys(workload) | join(',') }}"`, ``},
		{"a key that is worked out", `url: "{{ deep[vars.n] }}"`, `{"vars":{"n":1},"workload":{"deep":{"a":{"b":1,"c":2},"d":3}}}`},
		{"a step, not the workload key it hides", `url: "{{ before.token }}"`, `{"steps":{"before":{"data":{"token":"t"}}}}`},
		{"an envelope", `url: "{{ steps.before.meta.pages }}"`, `{"steps":{"before":{"meta":{"pages":3}}}}`},
		{"what is not there", `url: "x{{ workload.nothing.at.all }}{{ vars.none }}{{ steps.absent.data }}"`, `{"steps":{},"vars":{},"workload":{}}`},
		{"statements", `auth: c
    statement: "SELECT '%{{ q }}%', {{ before.rows }} -- {{ secret }}"`, `{"steps":{"before":{"data":{"rows":[1,2]}}},"workload":{"q":"o'b"}}`},
		{"args, auth and tool", `args: {a: "{{ api }}"}
    auth: "{{ q }}"`, `{"workload":{"api":"http://x","q":"o'b"}}`},
		{
			"policies and their sinks", `url: http://x
    retry:
      - when: "{{ response.x == vars.n }}"
        stop_when: "{{ deep.d }}"
        then: {next_call: {params: {q: "{{ q }}"}}, per_page: {sink: {tool: file, path: "{{ api }}"}}, sink: {tool: http, url: "{{ third[0] }}", retry: [{when: "{{ error.status == deep.a.c }}", then: {max_attempts: 2}}]}}`,
			`{"steps":{"third":{"data":[7]}},"vars":{"n":1},"workload":{"api":"http://x","deep":{"a":{"c":2},"d":3},"q":"o'b"}}`,
		},
		{"the sink of a loop, not that of the step, vars or next", `url: "{{ item }}"
    loop: {collection: "{{ patients }}", sink: {tool: file, path: "{{ api }}/{{ item }}"}}
    sink: {tool: file, path: "{{ secret }}"}
    vars: {v: "{{ secret }}"}
    next: [{when: "{{ secret }}", step: third}]`, `{"workload":{"api":"http://x"}}`},
		{"a call of the workbook", `args: {b: "{{ q }}"}
    name: shared`, `{"vars":{"n":1},"workload":{"api":"http://x","q":"o'b"}}`},
	} {
		tool := "http"
		if strings.Contains(row.step, "name: shared") {
			tool = "workbook"
		} else if strings.Contains(row.step, "statement") {
			tool = "postgres"
		}
		book := tables.DecodeBody(t, `workbook: [{name: shared, tool: http, url: "{{ api }}", args: {n: "{{ vars.n }}"}}]
workflow:
  - step: a
    tool: `+tool+"\n    "+row.step+`
  - {step: before, tool: http, url: http://x}
  - {step: third, tool: http, url: http://x}
`)
		captured := interpreter.CaptureData(book, everything(t), book.CallNodes(book.Steps[0]))
		if row.want == "" {
			require.Equal(t, everything(t).Workload, captured.Workload, row.name)
			continue
		}
		got := map[string]any{}
		for name, part := range map[string]expression.Value{"workload": captured.Workload, "vars": captured.Vars, "steps": captured.Steps} {
			if part.Data != nil {
				got[name] = part.Data
			}
		}
		require.Equal(t, row.want, tables.Encode(t, got), row.name)
	}
}

// randomValue is a tree with few names, so that paths often exist.
func randomValue(rng *rand.Rand, depth int) any {
	switch kind := rng.IntN(6); {
	case kind < 3 && depth > 0:
		m := map[string]any{}
		for _, key := range []string{"a", "b", "c"} {
			if rng.IntN(4) > 0 {
				m[key] = randomValue(rng, depth-1)
			}
		}
		return m
	case kind == 3 && depth > 0:
		list := []any{}
		for range rng.IntN(3) {
			list = append(list, randomValue(rng, depth-1))
		}
		return list
	case kind == 4:
		return nil
	}
	return rng.IntN(3)
}

// randomExpression names something in the data, in one of many ways.
func randomExpression(rng *rand.Rand) string {
	root := []string{"workload", "vars", "steps", "a", "b", "c", "fetch", "steps.fetch", "steps.fetch.data", "vars.a"}[rng.IntN(10)]
	for range rng.IntN(4) {
		key := string("abc"[rng.IntN(3)])
		root += []string{"." + key, "['" + key + "']", "[0]", "?." + key, "[item]", "[-1]"}[rng.IntN(6)]
	}
	shapes := []string{
		"%s", "%s is defined", "%s | length", "%s | default(9)", "[%s, 1]", "{x: %s}", "%s | tojson", "%s == 1",
		"1 in %s", "keys(%s)", "any([1], %s == #)", "%s ? a : b.c", "let v = %s; [v, v]", "%s ~ 'x'",
	}
	return fmt.Sprintf(shapes[rng.IntN(len(shapes))], root)
}

// TestCaptureProperty evaluates random expressions with all data and with what
// was captured: both give the same value, or the same error.
func TestCaptureProperty(t *testing.T) {
	t.Parallel()
	values, failures := 0, 0
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var fields strings.Builder
		for i := range 5 {
			fmt.Fprintf(&fields, "      f%d: %q\n", i, "{{ "+randomExpression(rng)+" }}")
		}
		fmt.Fprintf(&fields, "    headers: {h: %q}\n", "x{{ "+randomExpression(rng)+" }}y")
		book, found := tables.TryDecode("workflow:\n  - step: each\n    tool: http\n    url: http://x\n    loop: {collection: [1]}\n    params:\n" +
			fields.String() + "  - {step: fetch, tool: http, url: http://x}\n")
		if found.HasErrors() {
			continue // refused, such as an expression that means two things
		}
		object := func() expression.Value {
			return expression.Of(map[string]any{"a": randomValue(rng, 3), "b": randomValue(rng, 3), "c": randomValue(rng, 2), "unused": "x"})
		}
		whole := interpreter.Data{
			Workload: object(), Vars: object(),
			Steps: expression.Of(map[string]any{"fetch": map[string]any{"data": randomValue(rng, 3), "status": "success", "a": 1}}),
		}
		part := interpreter.CaptureData(book, whole, book.CallNodes(book.Steps[0]))
		scope := func(data interpreter.Data) *interpreter.Scope {
			return interpreter.NewScope(book, tables.Run, data).WithElement("item", "a", interpreter.ElementPosition{Size: 1})
		}
		for _, node := range leaves(book.Steps[0].Action) {
			want, wantErr := node.Render(scope(whole), tables.NewBudget())
			got, err := node.Render(scope(part), tables.NewBudget())
			require.Equal(t, fmt.Sprint(wantErr), fmt.Sprint(err), "seed %d: %s", seed, node.Raw)
			require.Equal(t, want, got, "seed %d: %s", seed, node.Raw)
			if err != nil {
				failures++
			} else if want != nil {
				values++
			}
		}
	}
	require.Greater(t, values, 500, "hardly any expression found something")
	require.Greater(t, failures, 10, "hardly any expression failed")
}

// leaves are the templates of an action's params and headers.
func leaves(action *playbook.Action) []*playbook.Node {
	var nodes []*playbook.Node
	for _, field := range []string{"params", "headers"} {
		for _, entry := range action.Field(field).Entries {
			nodes = append(nodes, entry.Value)
		}
	}
	return nodes
}
