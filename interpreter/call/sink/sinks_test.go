package sink_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/test/tables"
	"reprise/interpreter"
	"reprise/interpreter/call/page"
	"reprise/interpreter/call/request"
	"reprise/interpreter/call/sink"
	"reprise/interpreter/playbook"
)

const stepWithSinks = `workflow:
  - step: fetch
    tool: http
    url: http://x
    loop: {collection: [1], sink: {tool: sqlite, auth: db, table: rows, mode: replace, key: id}, dead_letter: {sink: {tool: file, path: failed}}}
    retry:
      - {when: "{{ response.more }}", then: {next_call: {params: {p: 1}}, per_page: {sink: {tool: file, path: page}}}}
      - {when: "{{ error.status == 404 }}", then: {max_attempts: 2, sink: {tool: file, path: missing}}}
`

func sinksOf(t *testing.T) (*playbook.Playbook, *playbook.Step, sink.Sinks) {
	t.Helper()
	book := tables.DecodeBody(t, stepWithSinks)
	step := book.Steps[0]
	return book, step, sink.Sinks{Policies: step.Retry, After: step.Loop.Sinks, DeadLetter: interpreter.DeadLetterSink(step)}
}

// TestOf: a success goes to the sinks behind it, a failure to that of the policy that ruled on it and to the one for
// failed iterations.
func TestOf(t *testing.T) {
	t.Parallel()
	_, step, sinks := sinksOf(t)
	failed := func(kind interpreter.Kind) *interpreter.CallResult {
		return &interpreter.CallResult{Status: interpreter.StatusError, Error: &interpreter.ErrorObject{Kind: kind, Class: interpreter.ClassFinal}}
	}
	for name, test := range map[string]struct {
		result  *interpreter.CallResult
		decided int
		want    []sink.Choice
	}{
		"a success":                {&interpreter.CallResult{Status: interpreter.StatusSuccess}, 0, []sink.Choice{{After: 1}}},
		"a failure by a policy":    {failed(interpreter.KindHTTP), 2, []sink.Choice{{Policy: 2}, {DeadLetter: true}}},
		"a failure without one":    {failed(interpreter.KindHTTP), 0, []sink.Choice{{DeadLetter: true}}},
		"a failed expression":      {failed(interpreter.KindExpression), 2, []sink.Choice{{DeadLetter: true}}},
		"a call that is cancelled": {failed(interpreter.KindCancelled), 2, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, test.want, sinks.ForResult(test.result, &page.Pages{}, test.decided))
		})
	}
	require.Len(t, sinks.AllSinks(), 4)
	require.Equal(t, step.Retry[0].Then.PageSinks[0], sinks.SinkOf(sink.Choice{Policy: 1, Page: true}))
	require.Equal(t, step.Loop.Sinks[0], sinks.SinkOf(sink.Choice{After: 1}))
	require.Equal(t, sinks.DeadLetter, sinks.SinkOf(sink.Choice{DeadLetter: true}))
}

// TestStagedRows: only what has read all is published, and an iteration drops what it had staged before it began anew.
func TestStagedRows(t *testing.T) {
	t.Parallel()
	book, step, sinks := sinksOf(t)
	index := 3
	round := func(index *int, restarts int) sink.Round {
		return sink.Round{
			Source:    &request.Source{Book: book, Run: tables.Run, Step: step, Visit: 1, Index: index},
			LedgerKey: func() string { return "key" }, Restarts: restarts,
		}
	}
	ended := func(change func(*interpreter.CallResult)) *interpreter.CallResult {
		result := &interpreter.CallResult{Status: interpreter.StatusSuccess}
		change(result)
		return result
	}
	whole := ended(func(*interpreter.CallResult) {})

	chosen, warnings := round(nil, 0).EndChoices(&sinks, whole)
	require.Equal(t, []sink.Choice{{After: 1, Do: interpreter.StagingPublish}}, chosen)
	require.Empty(t, warnings)

	for _, change := range []func(*interpreter.CallResult){
		func(r *interpreter.CallResult) { r.Meta.Truncated = true },
		func(r *interpreter.CallResult) { r.Meta.Incomplete = true },
		func(r *interpreter.CallResult) { r.Status = interpreter.Partial },
	} {
		chosen, warnings = round(nil, 0).EndChoices(&sinks, ended(change))
		require.Empty(t, chosen)
		require.Len(t, warnings, 1)
		require.Contains(t, warnings[0], "not everything was read, so its table keeps its previous rows")
	}

	chosen, _ = round(&index, 0).EndChoices(&sinks, whole)
	require.Empty(t, chosen, "the loop publishes")
	chosen, _ = round(&index, 2).EndChoices(&sinks, whole)
	require.Equal(t, []sink.Choice{{After: 1, Do: interpreter.StagingSettle}}, chosen)

	require.Nil(t, round(nil, 0).StagingOf(step.Retry[0].Then.PageSinks[0], ""), "it stages nothing")
	one, other := round(&index, 1).StagingOf(step.Loop.Sinks[0], ""), round(nil, 0).StagingOf(step.Loop.Sinks[0], "")
	require.Equal(t, sink.LoopStaging(tables.Run, step, 1, step.Loop.Sinks[0]), one.ID, "all iterations stage together")
	require.NotEqual(t, one.ID, other.ID)
	require.Equal(t, 1, one.Round)
}

// TestOfAList: the sinks of a list follow each other, of a page and of a call that ends well or fails.
func TestOfAList(t *testing.T) {
	t.Parallel()
	const two = "[{tool: file, path: a}, {tool: file, path: b}]"
	book := tables.DecodeBody(t, `workflow:
  - step: fetch
    tool: http
    url: http://x
    sink: `+two+`
    retry:
      - {when: "{{ response.more }}", then: {next_call: {params: {p: 1}}, sink: `+two+`, per_page: {sink: `+two+`}}}
      - {when: "{{ error.status == 404 }}", then: {max_attempts: 2, sink: `+two+`}}
`)
	step := book.Steps[0]
	sinks := sink.Sinks{Policies: step.Retry, After: step.Sinks}
	places := func(choices []sink.Choice) (places []string) {
		for _, choice := range choices {
			places = append(places, sinks.SinkOf(choice).Place)
		}
		return places
	}
	require.Equal(t, []string{"fetch.retry[1].then.per_iteration.sink.1", "fetch.retry[1].then.per_iteration.sink.2"}, places(sinks.ForPage(1)))
	require.Empty(t, sinks.ForPage(2))
	success := sinks.ForResult(&interpreter.CallResult{Status: interpreter.StatusSuccess}, &page.Pages{}, 1)
	require.Equal(t, []string{"fetch.retry[1].then.sink.1", "fetch.retry[1].then.sink.2", "fetch.sink.1", "fetch.sink.2"}, places(success))
	failure := sinks.ForResult(&interpreter.CallResult{Status: interpreter.StatusError, Error: &interpreter.ErrorObject{Kind: interpreter.KindHTTP}}, &page.Pages{}, 2)
	require.Equal(t, []string{"fetch.retry[2].then.sink.1", "fetch.retry[2].then.sink.2"}, places(failure))
	require.Len(t, sinks.AllSinks(), 8)
}
