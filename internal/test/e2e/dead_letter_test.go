package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"reprise/internal/observe/deadletter"
	"reprise/internal/observe/runs"
	"reprise/internal/test/testenv"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/workflows/protocol"
)

// chain reads a run with its reprocesses.
func (w *world) chain(run client.WorkflowRun) *deadletter.Chain {
	w.t.Helper()
	chain, err := w.reader().Chain(w.t.Context(), run.GetID(), "")
	require.NoError(w.t, err)
	require.Zero(w.t, chain.Lost)
	return chain
}

func (w *world) reader() *deadletter.Reader {
	return &deadletter.Reader{Reader: runs.Reader{Client: w.env.Client(), Store: testenv.PayloadStore(w.t)}}
}

// reprocess runs the letters of a run again, with a workload laid over its own
// and, unless it is "", another playbook.
func (w *world) reprocess(
	run client.WorkflowRun, letters []deadletter.Letter, source string, workload map[string]any,
) client.WorkflowRun {
	w.t.Helper()
	return w.reprocessChain(w.chain(run), letters, source, workload)
}

// reprocessChain is reprocess of a run that was read.
func (w *world) reprocessChain(
	chain *deadletter.Chain, letters []deadletter.Letter, source string, workload map[string]any,
) client.WorkflowRun {
	w.t.Helper()
	input := chain.Origin.Input.WithoutParent()
	if source != "" {
		input.Source = source
	}
	values, err := expression.Canonical(expression.MergeMaps(input.Workload.Data, workload))
	require.NoError(w.t, err)
	input.Workload = expression.Of(values)
	book, err := interpreter.LoadPlaybook(input.Name, input.Source)
	require.NoError(w.t, err)
	input.Reprocess, err = w.reader().PlanReprocess(w.t.Context(), chain, letters, book)
	require.NoError(w.t, err)
	options := client.StartWorkflowOptions{
		ID:        deadletter.RoundID(chain.Origin.WorkflowID, chain.Origin.RunID, input.Reprocess.Origin.Round),
		TaskQueue: w.queue, WorkflowIDReusePolicy: enums.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
		WorkflowExecutionErrorWhenAlreadyStarted: true,
	}
	again, err := w.env.Client().ExecuteWorkflow(w.t.Context(), options, protocol.PlaybookWorkflowName, input)
	require.NoError(w.t, err)
	_, err = w.env.Client().ExecuteWorkflow(w.t.Context(), options, protocol.PlaybookWorkflowName, input)
	var started *serviceerror.WorkflowExecutionAlreadyStarted
	require.ErrorAs(w.t, err, &started, "asking twice runs once")
	return again
}

// describeLetters is what matters of letters: where they stand and what became of them.
func describeLetters(letters []deadletter.Letter) []string {
	texts := make([]string, len(letters))
	for i, letter := range letters {
		texts[i] = fmt.Sprintf("%s#%d/%d %v: %s after %d, failed runs %d",
			letter.Step, letter.Visit, letter.Index, letter.Element.Data, letter.State, letter.Attempts, letter.FailedRuns)
	}
	return texts
}

// siteRows fetches pages for each id and writes each page; where an id is
// broken its second page fails.
const siteRows = `
  - step: site
    tool: http
    url: "{{ api }}/echo"
    params: {name: north}
    vars: {country: se}
    next: fetch
  - step: fetch
    tool: http
    url: "{{ api }}/api/v1/assessments"
    params:
      page: 1
      pageSize: 10
      site: "{{ site.query.name[0] }}"
      fail_pages: "{{ '2' if id in broken else '' }}"
      fail_times: 0
      fail_status: 422
    loop:
      collection: "{{ ids }}"
      element: id
      mode: parallel
      batch: 2
      thresholds: {completed: 1, partial_success: 0}
      sink:
        tool: postgres
        auth: pg
        table: done
        args: {id: "{{ id }}", place: "{{ _loop.index }}", size: "{{ _loop.size }}", run: "{{ execution_id }}"}
      dead_letter:
        sink:
          tool: postgres
          auth: pg
          table: dead
          args: {place: "{{ result.index }}", status: "{{ result.status }}", attempts: "{{ result.attempts }}", why: "{{ error.message }}"}
    retry:
      - when: "{{ response.paging.hasMore }}"
        then:
          max_attempts: 10
          next_call: {params: {page: "{{ response.paging.page + 1 }}"}}
          collect: {path: data}
          per_page:
            sink:
              tool: postgres
              auth: pg
              table: pages
              args: {id: "{{ id }}", page: "{{ response.paging.page }}", country: "{{ vars.country }}"}
    sink:
      tool: http
      url: "{{ api }}/api/v1/writes"
      args: {total: "{{ result.stats.total }}", failed: "{{ result.stats.failed }}", site: "{{ site.query.name[0] }}"}
    next: after
  - step: after
    tool: http
    url: "{{ api }}/echo"
workload: {broken: [b, d], ids: [a, b, c, d, e]}
output: "{{ after.status }}"
`

// TestReprocess: the failed iterations run again in their places, and the sinks
// add what was missing.
func TestReprocess(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	db := w.database()
	w.work()
	db.Exec(t, `CREATE TABLE done (id text, place int, size int, run text);
		CREATE TABLE dead (place int, status int, attempts int, why text);
		CREATE TABLE pages (id text, page int, country text)`)

	run := w.start(book(siteRows), nil)
	_, err := w.outcome(run)
	require.NoError(t, err)
	require.ElementsMatch(t, []string{
		"fetch#1/1 b: open after 2, failed runs 1", "fetch#1/3 d: open after 2, failed runs 1",
	}, describeLetters(w.chain(run).Letters))
	pages := `SELECT id, array_agg(page ORDER BY page)::text AS pages FROM pages WHERE country = 'se' GROUP BY id ORDER BY id`
	all := "{1,2,3,4}"
	require.Equal(t, []any{
		map[string]any{"id": "a", "pages": all},
		map[string]any{"id": "b", "pages": "{1}"},
		map[string]any{"id": "c", "pages": all},
		map[string]any{"id": "d", "pages": "{1}"},
		map[string]any{"id": "e", "pages": all},
	}, w.rows(db, pages))

	w.recordAs("reprocess")
	again := w.reprocess(run, w.chain(run).Letters, "", map[string]any{"broken": []any{"d"}})
	result, err := w.outcome(again)
	require.NoError(t, err)
	require.EqualValues(t, "partial_success", result.Status, "%+v", result.Error)
	require.Len(t, result.Steps, 1, "nothing but the loop runs")
	require.Equal(t, interpreter.LoopStats{Total: 2, Success: 1, Failed: 1}, step(t, result, "fetch").Loop.Stats)
	require.ElementsMatch(t, []string{
		"fetch#1/1 b: resolved after 2, failed runs 1", "fetch#1/3 d: open after 2, failed runs 2",
	}, describeLetters(w.chain(run).Letters))

	fixed := strings.ReplaceAll(book(siteRows), "{{ '2' if id in broken else '' }}", "")
	last := w.reprocess(again, w.chain(again).Select(deadletter.Filter{}), fixed, nil)
	result, err = w.outcome(last)
	require.NoError(t, err)
	require.EqualValues(t, "completed", result.Status, "%+v", result.Error)
	require.Empty(t, w.chain(last).Select(deadletter.Filter{}))

	for _, row := range w.rows(db, pages) {
		require.Equal(t, all, row.(map[string]any)["pages"], "each page was written once: %v", row)
	}
	var want []any
	for place, id := range []string{"a", "b", "c", "d", "e"} {
		want = append(want, map[string]any{"id": id, "place": place, "size": 5, "run": run.GetID()})
	}
	require.Equal(t, want, w.rows(db, "SELECT * FROM done ORDER BY place"))
	require.Equal(t, []any{
		map[string]any{"place": 1, "status": 422, "attempts": 2, "n": 1},
		map[string]any{"place": 3, "status": 422, "attempts": 2, "n": 2},
	}, w.rows(db, "SELECT place, status, attempts, count(*) AS n FROM dead GROUP BY 1, 2, 3 ORDER BY 1"))
	require.Equal(t, []any{
		map[string]any{"total": 5, "failed": 2, "site": "north"},
		map[string]any{"total": 2, "failed": 1, "site": "north"},
		map[string]any{"total": 1, "failed": 0, "site": "north"},
	}, w.bodies(), "the sink on the step gets the iterations that ran, and what it names of other steps")
}

// TestReprocessHasOnlyWhatWasNamed: a playbook that needs more than the run
// has kept cannot take its iterations up again, and says why.
func TestReprocessHasOnlyWhatWasNamed(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	steps := `
  - step: site
    tool: http
    url: "{{ api }}/echo"
    params: {name: north, town: lund}
    next: fetch
  - step: fetch
    tool: http
    url: "{{ api }}/status/404?name={{ site.query.name[0] }}"
    loop: {collection: [1, 2]}
    next: [{when: "{{ error is defined }}", then: [{step: after}]}]
  - step: after
`
	run := w.start(book(steps), nil)
	_, err := w.outcome(run)
	require.NoError(t, err)
	chain := w.chain(run)
	for want, source := range map[string]string{
		"step fetch names [steps.site.data.query.town]": strings.Replace(steps, "query.name[0]", "query.town[0]", 1),
		`no step "fetch" with a loop`:                   strings.Replace(steps, "loop: {collection: [1, 2]}", "", 1),
	} {
		other, err := interpreter.LoadPlaybook("other.yaml", book(source))
		require.NoError(t, err)
		_, err = w.reader().PlanReprocess(t.Context(), chain, chain.Letters, other)
		var unfit *deadletter.UnfitError
		require.ErrorAs(t, err, &unfit)
		require.ErrorContains(t, err, want)
	}
}

// waiting has one iteration that fails at once and others that wait for an hour.
const waiting = `
  - step: fetch
    tool: http
    url: "{{ api }}/status/{{ 404 if item in workload.wrong else 503 if item in workload.busy else 200 }}"
    loop: {collection: "{{ workload.all }}", mode: parallel}
    retry:
      - when: "{{ error.status == 503 }}"
        then: {initial_delay: 1h}
workload: {all: [1, 2, 3], wrong: [2], busy: [1, 3]}
`

// TestDeadLettersOfARunningRun: what has failed is listed at once, and stays
// where the run is terminated.
func TestDeadLettersOfARunningRun(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	run := w.start(book(waiting), nil)
	require.Eventually(t, func() bool { return len(w.chain(run).Letters) > 0 }, patience, tick)
	chain := w.chain(run)
	require.Equal(t, []string{"fetch#1/1 2: open after 1, failed runs 1"}, describeLetters(chain.Letters))
	require.False(t, chain.Origin.Closed())

	w.terminates = true
	require.NoError(t, w.env.Client().TerminateWorkflow(t.Context(), run.GetID(), "", "for the test"))
	require.Equal(t, []string{"fetch#1/1 2: open after 1, failed runs 1"}, describeLetters(w.chain(run).Letters))

	again := w.reprocess(run, w.chain(run).Letters, "", map[string]any{"wrong": []any{}, "busy": []any{}})
	result, err := w.outcome(again)
	require.NoError(t, err)
	require.EqualValues(t, "completed", result.Status)
	require.Equal(t, []string{"fetch#1/1 2: resolved after 1, failed runs 1"}, describeLetters(w.chain(run).Letters))
}

// TestDeadLettersOfAResetRun: a run that was reset behind its loop has the
// loop's dead letters once.
func TestDeadLettersOfAResetRun(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	run := w.start(book(waiting), map[string]any{"busy": []any{}})
	_, err := w.outcome(run)
	require.NoError(t, err)
	histories := testenv.Histories(t, w.env.Client(), run.GetID(), run.GetRunID())
	last := int64(0)
	for _, event := range histories[0].History.Events {
		if event.GetEventType() == enums.EVENT_TYPE_WORKFLOW_TASK_COMPLETED {
			last = event.GetEventId()
		}
	}
	reset, err := w.env.Client().ResetWorkflowExecution(t.Context(), &workflowservice.ResetWorkflowExecutionRequest{
		Namespace:         w.env.Namespace,
		WorkflowExecution: &common.WorkflowExecution{WorkflowId: run.GetID(), RunId: run.GetRunID()},
		Reason:            "for the test", RequestId: run.GetRunID(), WorkflowTaskFinishEventId: last,
	})
	require.NoError(t, err)
	require.NotEqual(t, run.GetRunID(), reset.GetRunId())
	require.NoError(t, testenv.WaitOutcome(t, w.env.Client().GetWorkflow(t.Context(), run.GetID(), reset.GetRunId()), nil))
	require.Equal(t, []string{"fetch#1/1 2: open after 1, failed runs 1"}, describeLetters(w.chain(run).Letters))
}

// TestCancelledReprocess: what was cancelled is open again.
func TestCancelledReprocess(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	run := w.start(book(waiting), map[string]any{"wrong": []any{1, 2, 3}})
	result, err := w.outcome(run)
	require.NoError(t, err)
	require.EqualValues(t, "failed", result.Status)

	again := w.reprocess(run, w.chain(run).Letters, "", map[string]any{"wrong": []any{}, "busy": []any{1}})
	states := func() []string {
		letters := w.chain(run).Letters
		byPlace := make([]string, len(letters))
		for _, letter := range letters {
			byPlace[letter.Index] = letter.State
		}
		return byPlace
	}
	require.Eventually(t, func() bool {
		return strings.Join(states(), " ") == "reprocessing resolved resolved"
	}, patience, tick, "one waits and two have succeeded")
	require.NotNil(t, w.chain(run).RunningReprocess())
	w.cancel(again)
	require.Nil(t, w.chain(run).RunningReprocess())
	require.Equal(t, []string{"open", "resolved", "resolved"}, states())
}

// TestDeadLettersThatDoNotFitTheResult: a loop's result that has to leave
// errors out does not make a dead letter disappear.
func TestDeadLettersThatDoNotFitTheResult(t *testing.T) {
	t.Parallel()
	w := newStoring(t, map[string]string{"REPRISE_MAX_RESULT_BYTES": "262144"})
	run := w.start(book(`
  - step: fetch
    tool: http
    url: "{{ api }}/api/v1/assessments"
    params: {page: 1, pageSize: 30, fail_pages: "2", fail_times: 0, fail_status: 422}
    loop: {collection: "{{ 0..399 }}", mode: parallel, batch: 20}
    retry:
      - when: "{{ response.paging.hasMore }}"
        then:
          max_attempts: 10
          next_call: {params: {page: "{{ response.paging.page + 1 }}"}}
          collect: {path: data}
    next: [{when: "{{ error is defined }}", then: [{step: after}]}]
  - step: after
`), nil)
	result, err := w.outcome(run)
	require.NoError(t, err)
	loop := step(t, result, "fetch").Loop
	require.Equal(t, 400, loop.Stats.Failed)
	require.Less(t, len(loop.Errors), 400, "the test is about errors that were left out")

	chain := w.chain(run)
	require.Len(t, chain.Letters, 400)
	seen := map[int]bool{}
	for _, letter := range chain.Letters {
		seen[letter.Index] = true
		require.Equal(t, letter.Index, letter.Element.Data)
		require.Equal(t, 422, letter.Error.Status)
		require.Len(t, letter.Error.Collected.Data, 30)
		require.False(t, letter.LastAttemptAt.IsZero())
	}
	require.Len(t, seen, 400)
}

// TestReprocessOfLargeElements: elements in the payload store come out of the
// history again.
func TestReprocessOfLargeElements(t *testing.T) {
	t.Parallel()
	w := newStoring(t, nil)
	large := []any{strings.Repeat("a", 200_000), strings.Repeat("b", 200_000), strings.Repeat("c", 200_000)}
	source := book(`
  - step: fetch
    tool: http
    url: "{{ api }}/status/{{ workload.code if item startsWith 'b' else 200 }}"
    loop: {collection: "{{ workload.large }}", mode: parallel}
    next: [{when: "{{ error is defined }}", then: [{step: after}]}]
  - step: after
`)
	run := w.start(source, map[string]any{"large": large, "code": 404})
	_, err := w.outcome(run)
	require.NoError(t, err)
	chain := w.chain(run)
	require.Len(t, chain.Letters, 1)
	require.Equal(t, large[1], chain.Letters[0].Element.Data)
	again := w.reprocess(run, chain.Letters, "", map[string]any{"code": 200, "large": nil})
	result, err := w.outcome(again)
	require.NoError(t, err)
	require.EqualValues(t, "completed", result.Status, "%+v", result.Error)
}

// TestReprocessInShards: the iterations of a reprocess keep their indexes where
// it is too large for one history.
func TestReprocessInShards(t *testing.T) {
	t.Parallel()
	const n, third = 123, 3 // two thirds are more batches of 2 than one history takes
	w := newWorking(t)
	w.replays = 1
	source := func(batch int) string {
		return book(fmt.Sprintf(`
  - step: fetch
    tool: http
    url: "{{ api }}/status/{{ 404 if item.n %% workload.each > 0 else 200 }}{{ workload.ballast[:0] }}"
    loop: {collection: "{{ workload.all }}", mode: parallel, max_concurrency: 50, batch: %d, results: stats}
    next: [{when: "{{ error is defined }}", then: [{step: after}]}]
  - step: after
`, batch))
	}
	all := make([]any, n)
	for i := range all {
		all[i] = map[string]any{"n": i}
	}
	run := w.start(source(50), map[string]any{"all": all, "each": third, "ballast": ballast})
	result, err := w.outcome(run)
	require.NoError(t, err)
	require.Equal(t, n*2/third, step(t, result, "fetch").Loop.Stats.Failed)

	again := w.reprocess(run, w.chain(run).Letters, source(2), map[string]any{"each": 5, "all": nil})
	result, err = w.outcome(again)
	require.NoError(t, err)
	failed := 0
	for i := range n {
		if i%third > 0 && i%5 > 0 {
			failed++
		}
	}
	stats := step(t, result, "fetch").Loop.Stats
	require.Equal(t, interpreter.LoopStats{Total: n * 2 / third, Success: n*2/third - failed, Failed: failed}, stats)
	open := 0
	for _, letter := range w.chain(run).Letters {
		require.Equal(t, map[string]any{"n": letter.Index}, letter.Element.Data)
		want := deadletter.Resolved
		if letter.Index%5 > 0 {
			want, open = deadletter.Open, open+1
		}
		require.Equal(t, want, letter.State, "iteration %d", letter.Index)
	}
	require.Equal(t, failed, open)
	shards := 0
	for _, history := range testenv.Histories(t, w.env.Client(), again.GetID(), "") {
		if strings.Contains(history.WorkflowID, "/shard-") {
			shards++
		}
	}
	require.GreaterOrEqual(t, shards, 2, "the test is about a loop in shards")
}
