package interpreter_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/test/tables"
	"reprise/interpreter"
	"reprise/interpreter/call/request"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// render evaluates a template where names mean what scope says.
func render(t testing.TB, template string, scope *interpreter.Scope) any {
	t.Helper()
	book := tables.DecodeBody(t, "workflow:\n  - {step: x, tool: http, url: http://x, params: {v: "+template+"}}\n")
	v, err := book.Steps[0].Action.Field("params").Get("v").Render(scope, tables.NewBudget())
	require.NoError(t, err, template)
	return v
}

// TestNamesResolveInOrder gives one name to everything that may have it: words
// of the language, element, into, steps, workload keys.
func TestNamesResolveInOrder(t *testing.T) {
	t.Parallel()
	const name = "thing"
	with := func(step, element, into bool, names map[string]any) *interpreter.Scope {
		body := "workflow:\n  - {step: other, tool: http, url: http://x}\n"
		if step {
			body += "  - {step: thing, tool: http, url: http://x}\n"
		}
		scope := interpreter.NewScope(tables.DecodeBody(t, body), tables.Run, interpreter.Data{
			Workload: expression.Of(map[string]any{name: "workload", "vars": "hidden", "run": "hidden", "args": "hidden"}),
			Steps:    expression.Of(map[string]any{name: map[string]any{"data": "step", "status": "success"}}),
			Vars:     expression.Of(map[string]any{name: "var"}),
		})
		if element {
			scope = scope.WithElement(name, "element", interpreter.ElementPosition{Index: 1, Size: 3})
		}
		if into {
			scope = scope.With(map[string]any{name: "into"})
		}
		return scope.With(names)
	}
	lookup := func(scope *interpreter.Scope, name string) any {
		v, _ := scope.Lookup(name)
		return v
	}
	require.Equal(t, "workload", lookup(with(false, false, false, nil), name))
	require.Equal(t, "step", lookup(with(true, false, false, nil), name))
	require.Equal(t, "into", lookup(with(true, false, true, nil), name))
	require.Equal(t, "element", lookup(with(true, true, false, nil), name))
	require.Equal(t, "word", lookup(with(true, true, true, map[string]any{name: "word"}), name))

	scope := with(true, true, false, nil)
	require.Equal(t, map[string]any{name: "var"}, lookup(scope, "vars"), "a word hides the workload key")
	require.Equal(t, map[string]any{}, lookup(scope, "args"))
	require.Equal(t, "hidden", render(t, `"{{ workload.run }}"`, scope), "which stays reachable")
	require.Equal(t, "run-1", render(t, `"{{ run.id }}"`, scope))
	require.Equal(t, "2026-01-02T03:04:05Z", render(t, `"{{ run.started_at }}"`, scope))
	require.Nil(t, render(t, `"{{ run.scheduled_at }}"`, scope), "no schedule has started it")
	require.Equal(t, "success", render(t, `"{{ steps.thing.status }}"`, scope))
	require.Equal(t, []any{1, 2, 3}, render(t, `["{{ _loop.index }}", "{{ _loop.count }}", "{{ _loop.size }}"]`, scope))
	require.Nil(t, lookup(scope, "nothing"))
	_, found := with(false, false, false, nil).Lookup("_loop")
	require.False(t, found, "no _loop outside a loop")
	require.Nil(t, lookup(with(true, false, false, nil), "other"), "a step that has not run is nil")
}

// TestScheduledAt: a run that a schedule has started knows what time it is for, in
// its iterations too.
func TestScheduledAt(t *testing.T) {
	t.Parallel()
	scheduled := tables.Run
	scheduled.ScheduledAt = time.Date(2026, 3, 29, 3, 0, 0, 0, time.FixedZone("CEST", 2*60*60))
	scope := interpreter.NewScope(nil, scheduled, interpreter.Data{})
	require.Equal(t, "2026-03-29T01:00:00Z", render(t, `"{{ run.scheduled_at }}"`, scope))
	scope = scope.WithElement("item", 1, interpreter.ElementPosition{Size: 1})
	require.Equal(t, "2026-03-29T01:00:00Z", render(t, `"{{ run.scheduled_at }}"`, scope))
}

func TestEndScope(t *testing.T) {
	t.Parallel()
	scope := interpreter.NewScope(nil, tables.Run, interpreter.Data{})
	names := []string{"result", "response", "error", "this", "args"}
	for _, row := range []struct {
		name   string
		result interpreter.CallResult
		args   any
		want   string
	}{
		{
			"success",
			interpreter.CallResult{Status: interpreter.StatusSuccess, Data: expression.Of([]any{1})},
			map[string]any{"a": 1},
			`[[1],[1],null,"success",{"a":1}]`,
		},
		{
			"failure",
			interpreter.CallResult{Status: interpreter.StatusError, Error: &interpreter.ErrorObject{Kind: "http", Status: 500}},
			nil,
			`[null,null,"http","error",{}]`,
		},
		{
			"partial success",
			interpreter.CallResult{Status: interpreter.Partial, Data: expression.Of("x")},
			nil,
			`["x","x",null,"partial_success",{}]`,
		},
	} {
		ended := interpreter.EndScope(scope, row.args, row.result)
		var got []any
		for _, name := range names {
			v, _ := ended.Lookup(name)
			switch m, _ := v.(map[string]any); name {
			case "this":
				v = m["status"]
			case "error":
				v = m["kind"]
			}
			got = append(got, v)
		}
		require.Equal(t, row.want, tables.Encode(t, got), row.name)
	}
}

// TestVars checks that each var sees those before it, that a var takes its new
// value whole, and that the vars before are left as they were.
func TestVars(t *testing.T) {
	t.Parallel()
	book := tables.DecodeBody(t, `workflow:
  - step: a
    tool: http
    url: http://x
    vars: {n: "{{ result.n }}", twice: "{{ vars.n * 2 }}", m: {new: "{{ vars.m.old }}"}}
`)
	before := map[string]any{"n": 1, "kept": true, "m": map[string]any{"old": 7}}
	scope := interpreter.EndScope(interpreter.NewScope(book, tables.Run, interpreter.Data{}), nil,
		interpreter.CallResult{Status: interpreter.StatusSuccess, Data: expression.Of(map[string]any{"n": 21})})
	after, err := interpreter.RenderVars(book.Steps[0], before, scope, tables.NewBudget())
	require.NoError(t, err)
	require.Equal(t, `{"kept":true,"m":{"new":7},"n":21,"twice":42}`, tables.Encode(t, after))
	require.Equal(t, `{"kept":true,"m":{"old":7},"n":1}`, tables.Encode(t, before))
}

func TestStepArgs(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ step, routed, want string }{
		{`{step: a, tool: http, url: http://x}`, `null`, `null`},
		{`{step: a, tool: http, url: http://x}`, `{"r": 1}`, `{"r":1}`},
		{`{step: a, tool: http, url: http://x, args: {a: 1, d: {x: 1}}}`, `{"r": 1, "d": {"y": 2}}`, `{"a":1,"d":{"x":1,"y":2},"r":1}`},
		{`{step: a, tool: http, url: http://x, args: {a: "{{ item }}"}, loop: {collection: [1]}}`, `{"r": 1}`, `{"r":1}`},
		{`{step: a, tool: http, url: http://x, args: {a: 1}, loop: {collection: [1]}}`, `null`, `{"a":1}`},
		{`{step: a, tool: http, url: http://x, args: {a: "{{ operation_key }}"}}`, `{"r": 1}`, `{"r":1}`},
	} {
		book := tables.DecodeBody(t, "workflow:\n  - "+row.step+"\n")
		args, err := request.StepArgs(book.Steps[0], tables.Value(t, row.routed), interpreter.NewScope(book, tables.Run, interpreter.Data{}), tables.NewBudget())
		require.NoError(t, err, row.step)
		require.Equal(t, row.want, tables.Encode(t, args), row.step)
	}
}

func TestCollection(t *testing.T) {
	t.Parallel()
	book := tables.DecodeBody(t, "workload: {n: 3}\nworkflow:\n  - {step: a, tool: http, url: http://x, loop: {collection: \"{{ n }}\"}}\n")
	scope := interpreter.NewScope(book, tables.Run, interpreter.Data{Workload: expression.Of(book.Workload)})
	_, err := interpreter.EvalCollection(book.Steps[0].Loop, scope, tables.NewBudget())
	var place *playbook.EvalError
	require.ErrorAs(t, err, &place)
	require.Equal(t, "6:61", place.Pos.String())
	require.Equal(t, "step a: loop.collection must be a list or a map, not number (table.yaml:6:61)",
		interpreter.ExpressionFailure(book, "step a", err, tables.Started).Error.Message)
}
