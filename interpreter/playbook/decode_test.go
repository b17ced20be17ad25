package playbook_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
	"reprise/interpreter/source"
)

const everything = `apiVersion: reprise/v1
kind: Playbook
metadata: {name: full, description: every section, labels: {team: data}}
timeout: 2h
workload:
  api: "https://x"
  ids: [1, 2.5, 12345678901234567890123, 16, true, null, 2024-01-01, "007"]
output: {rows: "{{ fetch.stats.success }}", fixed: [1, two]}
workbook:
  - name: score
    desc: scores
    tool: python
    timeout: 1m
    args: {x: 1}
    code: |
      def main(x):
          return "{{ not a template }}"
workflow:
  - step: start
    desc: begin
    next: fetch
  - step: fetch
    tool: {kind: http, method: POST, auth: api}
    url: "{{ api }}/patients/{{ id }}"
    timeout: 30s
    idempotency: attempt
    args: {q: "{{ vars.q }}"}
    loop:
      in: "{{ ids }}"
      iterator: id
      mode: async
      max_concurrency: 20
      batch: 5
      failure_budget: {rate: 0.1}
      thresholds: {completed: 0.9, partial_success: 0.4}
      sink: {tool: file, path: out.jsonl}
    retry:
      - when: error.status in [429, 503]
        stop_when: true
        then: {max_attempts: 5, initial_delay: 500ms, max_delay: 0.5, backoff: linear, jitter: full, max_elapsed: 1m, max_wait: 2h, on_exhausted: succeed}
      - when: "{{ response.next is defined }}"
        then:
          next_call: {args: {a: 1}, params: {page: "{{ _retry.index + 1 }}", old: null}, headers: {X: y}, url: "{{ response.next }}", method: GET, body: {b: 2}}
          collect: {strategy: merge, path: data.items, into: rows, optional: true}
          allow_repeat: true
          backoff_multiplier: 1.5
          sink: {tool: postgres, auth: pg, statement: "INSERT INTO t VALUES ({{ result }})"}
          per_page: {sink: {tool: sqlite, table: t, args: "{{ result }}", retry: [{when: error.class == 'retryable', then: {delay: 1}}]}}
      - when: "{{ false }}"
    sink: {tool: postgres, table: totals}
    vars: {last: "{{ result }}"}
    join: all
    next:
      - when: error is defined
        then: [{step: report, args: {failed: "{{ error.message }}"}}, done]
      - {when: result.stats.failed > 0, step: report}
      - else: [done]
  - step: report
    tool: workbook
    name: score
    next: [{step: done, args: "{{ result }}"}]
  - step: done
`

func decode(t *testing.T, text string) (*playbook.Playbook, source.Diagnostics) {
	t.Helper()
	return playbook.Decode(source.NewFile("x.yaml", []byte(text)))
}

func TestDecodeHeader(t *testing.T) {
	t.Parallel()

	pb, found := decode(t, everything)
	require.Empty(t, found, found.Error())
	require.Equal(t, playbook.Version, pb.APIVersion)
	require.Equal(t, "full", pb.Name)
	require.Equal(t, "every section", pb.Description)
	require.Equal(t, map[string]string{"team": "data"}, pb.Labels)
	require.Equal(t, 2*time.Hour, pb.Timeout)
	require.Equal(t, map[string]any{
		"api": "https://x",
		"ids": []any{1, 2.5, json.Number("12345678901234567890123"), 16, true, nil, "2024-01-01", "007"},
	}, pb.Workload)
	require.Equal(t, source.Position{Line: 6, Column: 3}, pb.WorkloadPos["api"])
	require.Len(t, pb.Hash, 64)
	require.Equal(t, "start", pb.FirstStep().Name)
	require.Equal(t, pb.Steps[3], pb.Step("done"))
	require.Nil(t, pb.Step("nothing"))
	require.Nil(t, pb.Step(""))

	score := pb.Action("score")
	require.Equal(t, time.Minute, score.Timeout)
	code := score.Field("code")
	require.True(t, code.IsConstant())
	require.Equal(t, "def main(x):\n    return \"{{ not a template }}\"\n", code.Value)
	require.Equal(t, source.Position{Line: 16, Column: 7}, code.Position(0))
	require.Nil(t, pb.Action("nothing"))

	other, _ := decode(t, everything+"# more\n")
	require.NotEqual(t, pb.Hash, other.Hash)
}

func TestDecodeCall(t *testing.T) {
	t.Parallel()

	pb, _ := decode(t, everything)
	require.Nil(t, pb.Step("start").Action)

	call := pb.Step("fetch").Action
	name, ok := call.ToolName()
	require.True(t, ok)
	require.Equal(t, "http", name)
	require.Equal(t, 30*time.Second, call.Timeout)
	require.Equal(t, "attempt", call.Idempotency)
	require.Equal(t, "api", call.Auth.Value)
	require.Equal(t, "{{ vars.q }}", call.Args.Get("q").Raw)
	require.Nil(t, call.Args.Get("nothing"))
	require.Equal(t, "POST", call.Field("method").Value)
	require.Nil(t, call.Field("timeout"))

	url := call.Field("url")
	require.False(t, url.IsConstant())
	refs := url.Refs()
	require.Len(t, refs, 2)
	require.Equal(t, "api", refs[0].Root)
	require.Equal(t, "id", refs[1].Root)
	require.Equal(t, source.Position{Line: 24, Column: 11}, url.Position(0))
	require.Equal(t, source.Position{Line: 24, Column: 33}, url.Position(refs[1].Offset))
}

func TestDecodeLoop(t *testing.T) {
	t.Parallel()

	pb, _ := decode(t, everything)
	loop := pb.Step("fetch").Loop
	require.Equal(t, "id", loop.Element)
	require.Equal(t, playbook.Parallel, loop.Mode)
	require.Equal(t, 20, loop.MaxConcurrency)
	require.Equal(t, 5, loop.Batch)
	require.Equal(t, &playbook.FailureBudget{Rate: 0.1, MinSamples: 1000}, loop.FailureBudget)
	require.Equal(t, playbook.Thresholds{Completed: 0.9, PartialSuccess: 0.4}, loop.Thresholds)
	require.True(t, loop.Words.Has("collection"))
	require.True(t, loop.Words.Has("element"))

	pb, found := decode(t, head+"workflow: [{step: a, tool: x, loop: {collection: [1]}}]")
	require.Empty(t, found)
	loop = pb.FirstStep().Loop
	require.Equal(t, "item", loop.Element)
	require.Equal(t, playbook.Sequential, loop.Mode)
	require.Equal(t, 10, loop.MaxConcurrency)
	require.True(t, loop.AutoBatch)
	require.Nil(t, loop.FailureBudget)
	require.Equal(t, playbook.Thresholds{Completed: 0.95, PartialSuccess: 0.5}, loop.Thresholds)
}

func TestThresholdsFollowEachOther(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]playbook.Thresholds{
		"{completed: 1.0}":                       {Completed: 1, PartialSuccess: 0.5},
		"{completed: 0.3}":                       {Completed: 0.3, PartialSuccess: 0.3},
		"{partial_success: 0.97}":                {Completed: 0.97, PartialSuccess: 0.97},
		"{completed: 0.2, partial_success: 0.9}": {Completed: 0.2, PartialSuccess: 0.9},
	} {
		pb, found := decode(t, head+"workflow: [{step: a, tool: x, loop: {collection: [1], thresholds: "+text+"}}]")
		require.Empty(t, found)
		require.Equal(t, want, pb.FirstStep().Loop.Thresholds, text)
	}
}

func TestDecodeRetry(t *testing.T) {
	t.Parallel()

	pb, _ := decode(t, everything)
	policies := pb.Step("fetch").Retry
	require.Len(t, policies, 3)

	failures := policies[0]
	require.Equal(t, 1, failures.Number)
	require.Equal(t, "error.status in [429, 503]", failures.When.Raw)
	require.Equal(t, "true", failures.StopWhen.Raw)
	require.True(t, failures.Then.Repeats)
	require.Equal(t, 5, *failures.Then.MaxAttempts)
	require.Equal(t, 500*time.Millisecond, *failures.Then.InitialDelay)
	require.Equal(t, 500*time.Millisecond, *failures.Then.MaxDelay)
	require.Equal(t, playbook.Linear, failures.Then.Backoff)
	require.Equal(t, playbook.JitterFull, failures.Then.Jitter)
	require.Equal(t, time.Minute, *failures.Then.MaxElapsed)
	require.Equal(t, 2*time.Hour, *failures.Then.MaxWait)
	require.Equal(t, playbook.ExhaustedSucceed, failures.Then.OnExhausted)
	require.Nil(t, failures.Then.Delay)

	pages := policies[1].Then
	require.True(t, pages.Repeats)
	require.True(t, pages.AllowRepeat)
	require.Equal(t, 1.5, *pages.Multiplier)
	require.Equal(t, 1, pages.NextCall.Args.Get("a").Value)
	require.True(t, pages.NextCall.Params.Get("old").IsConstant())
	require.Nil(t, pages.NextCall.Params.Get("old").Value)
	require.Equal(t, "GET", pages.NextCall.Method.Value)
	require.Equal(t, "merge", string(pages.Collect.Strategy))
	require.Equal(t, "data.items", pages.Collect.Path)
	require.Equal(t, "rows", pages.Collect.Into)
	require.True(t, pages.Collect.Optional)

	require.False(t, policies[2].Then.Repeats)
}

func TestSinkPlaces(t *testing.T) {
	t.Parallel()

	pb, _ := decode(t, everything)
	step := pb.Step("fetch")
	then := step.Retry[1].Then
	require.Equal(t, "fetch.sink", step.Sinks[0].Place)
	require.Equal(t, "fetch.loop.sink", step.Loop.Sinks[0].Place)
	require.Equal(t, "fetch.retry[2].then.sink", then.Sinks[0].Place)
	require.Equal(t, "fetch.retry[2].then.per_iteration.sink", then.PageSinks[0].Place)

	statement := then.Sinks[0].Action.Field("statement")
	require.Nil(t, statement.Template)
	require.Equal(t, "INSERT INTO t VALUES ({{ result }})", statement.Value)
	require.Equal(t, statement.Value, statement.Raw)

	require.Len(t, then.PageSinks[0].Action.Retry, 1)
	require.Equal(t, time.Second, *then.PageSinks[0].Action.Retry[0].Then.Delay)
	require.NotNil(t, then.PageSinks[0].Action.Args.Template)
}

func TestDecodeNext(t *testing.T) {
	t.Parallel()

	pb, _ := decode(t, everything)
	require.Equal(t, "fetch", pb.Step("start").Next[0].Targets[0].Step)

	routes := pb.Step("fetch").Next
	require.Len(t, routes, 3)
	require.Equal(t, "error is defined", routes[0].When.Raw)
	require.Len(t, routes[0].Targets, 2)
	require.Equal(t, "{{ error.message }}", routes[0].Targets[0].Args.Get("failed").Raw)
	require.Equal(t, "done", routes[0].Targets[1].Step)
	require.Equal(t, "report", routes[1].Targets[0].Step)
	require.True(t, routes[2].Else)
	require.Nil(t, routes[2].When)
	require.Equal(t, "done", routes[2].Targets[0].Step)
	require.NotNil(t, pb.Step("report").Next[0].Targets[0].Args.Template)
	require.Empty(t, pb.Step("done").Next)
}

func TestRender(t *testing.T) {
	t.Parallel()

	pb, found := decode(t, head+`workflow:
  - step: a
    tool: x
    body:
      list: ["{{ n + 1 }}", fixed, 2]
      text: "n is {{ n }}"
      empty: {}
    fixed: {a: [1, {b: null}]}
    bad: |
      first
      {{ missing + 1 }}
    next: [{when: n > 1, step: a}, {when: "{{ none }}", step: a}]
`)
	require.Empty(t, found)

	step := pb.FirstStep()
	scope := expression.MapScope{"n": 41}
	b := expression.NewBudget(expression.DecisionLimits, time.Time{})

	v, err := step.Action.Field("body").Render(scope, b)
	require.NoError(t, err)
	require.Equal(t, map[string]any{"list": []any{42, "fixed", 2}, "text": "n is 41", "empty": map[string]any{}}, v)

	fixed := step.Action.Field("fixed")
	require.True(t, fixed.IsConstant())
	v, err = fixed.Render(nil, nil)
	require.NoError(t, err)
	require.Equal(t, map[string]any{"a": []any{1, map[string]any{"b": nil}}}, v)

	_, err = step.Action.Field("bad").Render(scope, b)

	var failure *playbook.EvalError
	require.ErrorAs(t, err, &failure)
	require.Equal(t, 14, failure.Pos.Line)
	require.GreaterOrEqual(t, failure.Pos.Column, 10)
	require.NotEmpty(t, failure.Message)
	require.Equal(t, failure.Message, err.Error())

	truth, err := step.Next[0].When.EvalCondition(scope, b)
	require.NoError(t, err)
	require.True(t, truth)

	truth, err = step.Next[1].When.EvalCondition(scope, b)
	require.NoError(t, err)
	require.False(t, truth)

	var absent *playbook.Node
	v, err = absent.Render(scope, b)
	require.NoError(t, err)
	require.Nil(t, v)
}

// TestOlderVersion reads the spellings of noetl.io/v1, and only there.
func TestOlderVersion(t *testing.T) {
	t.Parallel()

	const text = `apiVersion: VERSION
kind: Playbook
metadata: {name: older, path: tests/older}
workflow:
  - step: a
    type: http
    endpoint: "https://x"
    payload: {a: 1}
    retry: [{when: "{{ response.next }}", then: {next_call: {endpoint: "{{ response.next }}"}}}]
    sink: {tool: {type: postgres}, command: "SELECT 1"}
`

	pb, found := decode(t, strings.ReplaceAll(text, "VERSION", playbook.OlderVersion))
	require.Empty(t, found, found.Error())

	call := pb.FirstStep().Action
	require.NotNil(t, call.Field("url"))
	require.NotNil(t, call.Field("body"))
	require.NotNil(t, pb.FirstStep().Retry[0].Then.NextCall.URL)
	require.Equal(t, "SELECT 1", pb.FirstStep().Sinks[0].Action.Field("statement").Raw)

	_, found = decode(t, strings.ReplaceAll(text, "VERSION", playbook.Version))
	require.Contains(t, found.Error(), `x.yaml:6:5: unknown key "type" in step "a", which has no tool; reprise/v1 writes "tool", such as tool: http [unknown-key]`)
	require.Contains(t, found.Error(), `x.yaml:9:62: unknown key "endpoint" in next_call; reprise/v1 writes "url" [unknown-key]`)
	require.Contains(t, found.Error(), `unknown key "path" in metadata`)
}

// TestNames: what Names says is what a search of Refs would.
func TestNames(t *testing.T) {
	t.Parallel()

	pb, found := decode(t, head+`workflow:
  - step: a
    tool: postgres
    statement: "select {{ args.id }} where {{ vars.x }} = 1"
    args: {id: "{{ item }}", list: [1, {deep: "a {{ operation_key }} b"}], none: text}
    loop: {collection: [1, 2], element: item}
`)
	require.Empty(t, found)

	action := pb.Steps[0].Action
	for _, c := range []struct {
		node  *playbook.Node
		names []string
	}{
		{action.Args, []string{"item", "operation_key"}},
		{action.Args.Get("list"), []string{"operation_key"}},
		{action.Args.Get("none"), nil},
		{action.Field("statement"), []string{"args", "vars"}},
		{nil, nil},
	} {
		var names []string

		for _, name := range []string{"args", "item", "operation_key", "vars", "workload"} {
			if c.node.UsesAny("nobody", name) {
				names = append(names, name)
			}
		}

		require.Equal(t, c.names, names)
	}
}

// TestOlderLabels checks what noetl.io/v1 keeps in metadata beside labels.
func TestOlderLabels(t *testing.T) {
	t.Parallel()

	for _, test := range []struct {
		metadata string
		want     map[string]string
	}{
		{"{name: a, path: tests/a}", map[string]string{"path": "tests/a"}},
		{"{name: a, path: tests/a, version: 1.0, labels: {team: data}}", map[string]string{"path": "tests/a", "version": "1.0", "team": "data"}},
		{"{name: a, path: tests/a, labels: {path: tests/b}}", map[string]string{"path": "tests/b"}},
		{"{name: a, tags: [a], owner: {team: b}, note: }", nil},
		{"{name: a, schedule: nightly}", map[string]string{"schedule": "nightly"}},
		{"{name: a, schedule: {crons: 5}}", nil},
	} {
		pb, found := decode(t, "apiVersion: noetl.io/v1\nkind: Playbook\nmetadata: "+test.metadata+"\nworkflow: [{step: start}]\n")
		require.Empty(t, found, found.Error())
		require.Equal(t, test.want, pb.Labels)
	}
}

// TestNilInURL: what is nil because a list was asked for a member says so.
func TestNilInURL(t *testing.T) {
	t.Parallel()

	pb, found := decode(t, head+"workflow:\n  - step: a\n    tool: http\n    url: \"http://x/{{ fetch.next }}\"\n")
	require.Empty(t, found, found.Error())

	for _, test := range []struct {
		fetch any
		want  string
	}{
		{make([]any, 100), "{{ fetch.next }} is nil, as fetch is a list of 100; every part of a URL needs a value"},
		{map[string]any{}, "{{ fetch.next }} is nil; every part of a URL needs a value"},
	} {
		_, err := pb.FirstStep().Action.Field("url").RenderURL(expression.MapScope{"fetch": test.fetch},
			expression.NewBudget(expression.DecisionLimits, time.Time{}))
		require.EqualError(t, err, test.want)
	}
}
