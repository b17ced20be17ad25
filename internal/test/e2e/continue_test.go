package e2e_test

import (
	"errors"
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
	"reprise/internal/observe/ending"
	"reprise/internal/test/testenv"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/workflows/protocol"
)

// steps of a playbook that reads, writes a row and posts, and then ends, which fails
// for the elements in broken and takes a minute for those in slow.
const writesAndEnds = `
      - step: read
        tool: http
        url: "{{ api }}/echo"
        params: {read: "{{ n }}"}
        next: write
      - step: write
        tool: http
        url: "{{ api }}/echo"
        params: {write: "{{ n }}"}
        sink: {tool: postgres, auth: pg, table: done, args: {n: "{{ read.query.read[0] | int }}"}}
        next: post
      - step: post
        tool: http
        method: POST
        url: "{{ api }}/api/v1/writes"
        body: {n: "{{ n }}"}
        next: finish
      - step: finish
        tool: http
        timeout: 90s
        url: "{{ api }}{{ '/status/404' if n in broken else '/slow?ms=60000' if n in slow else '/echo?last=1' }}"
`

// handed is what the playbooks of a loop are handed.
const handed = `workload: {n: "{{ n }}", broken: "{{ workload.broken }}", slow: "{{ workload.slow }}", api: "{{ workload.api }}"}`

// eachWrites runs them for each element.
func eachWrites(loop string) string {
	return fmt.Sprintf(`
  - step: each
    tool: playbook
    loop:
      in: "{{ 0..2 }}"
      iterator: n
      %s
    %s
    workflow:%s
workload: {broken: [], slow: []}
`, loop, handed, writesAndEnds)
}

// eachNested runs them two levels down.
func eachNested(loop string) string {
	return fmt.Sprintf(`
  - step: each
    tool: playbook
    loop:
      in: ["{{ 0..1 }}", [2]]
      iterator: ns
      %s
    workload: {ns: "{{ ns }}", broken: "{{ workload.broken }}", slow: "{{ workload.slow }}", api: "{{ workload.api }}"}
    workflow:
      - step: through
        tool: playbook
        workload: {ns: "{{ ns }}", broken: "{{ broken }}", slow: "{{ slow }}", api: "{{ api }}"}
        workflow:
          - step: inner
            tool: playbook
            loop: {in: "{{ ns }}", iterator: n, mode: parallel, thresholds: {completed: 1, partial_success: 1}}
            workload: {n: "{{ n }}", broken: "{{ broken }}", slow: "{{ slow }}", api: "{{ api }}"}
            workflow:%s
workload: {broken: [], slow: []}
`, loop, strings.ReplaceAll(writesAndEnds, "\n      ", "\n              "))
}

// writing is a loop of playbooks of which something is left undone.
type writing struct {
	*world
	db *testenv.Database
}

func newWriting(t *testing.T) *writing {
	t.Helper()
	w := newWorld(t)
	w.replays = 1
	db := w.database()
	w.work()
	db.Exec(t, "CREATE TABLE done (n int)")
	return &writing{world: w, db: db}
}

// requireOnce checks that each of three elements was written once, and that every
// call that has ended well was made once.
func (w *writing) requireOnce() {
	w.t.Helper()
	require.Equal(w.t, []any{
		map[string]any{"n": 0, "rows": 1}, map[string]any{"n": 1, "rows": 1}, map[string]any{"n": 2, "rows": 1},
	}, w.rows(w.db, "SELECT n, count(*) AS rows FROM done GROUP BY n ORDER BY n"))
	made := map[string]int{}
	for _, request := range w.api.Requests("") {
		if request.Path == "/echo" || request.Path == "/api/v1/writes" {
			made[strings.TrimSpace(request.Path+" "+request.Query)]++
		}
	}
	want := map[string]int{"/echo last=1": 3, "/api/v1/writes": 3}
	for n := range 3 {
		want[fmt.Sprintf("/echo read=%d", n)] = 1
		want[fmt.Sprintf("/echo write=%d", n)] = 1
	}
	require.Equal(w.t, want, made)
	require.ElementsMatch(w.t, []any{map[string]any{"n": 0}, map[string]any{"n": 1}, map[string]any{"n": 2}}, w.bodies())
}

// resolve runs again what is left of a run.
func (w *writing) resolve(run client.WorkflowRun, filter deadletter.Filter, workload map[string]any) {
	w.t.Helper()
	again := w.reprocess(run, w.chain(run).Select(filter), "", workload)
	result, err := w.outcome(again)
	require.NoError(w.t, err)
	require.EqualValues(w.t, "completed", result.Status, "%+v", result.Error)
	require.Empty(w.t, w.chain(run).Select(deadletter.Filter{Cancelled: true}))
}

var playbookShapes = map[string]string{
	"one at a time":        eachWrites("mode: sequential"),
	"together":             eachWrites("mode: parallel"),
	"in batches":           eachWrites("mode: parallel\n      batch: 2"),
	"in a batch":           eachWrites("batch: 3"),
	"two down":             eachNested("mode: parallel"),
	"two down, in a batch": eachNested("batch: 2"),
}

// TestReprocessOfPlaybooks: a playbook that a loop runs for an element goes on where
// its first run failed.
func TestReprocessOfPlaybooks(t *testing.T) {
	t.Parallel()
	for name, source := range playbookShapes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWriting(t)
			run := w.start(book(source), map[string]any{"broken": []any{0, 1, 2}})
			_, err := w.outcome(run)
			require.NoError(t, err)
			w.resolve(run, deadletter.Filter{}, map[string]any{"broken": []any{}})
			w.requireOnce()
		})
	}
}

// TestReprocessOfStoppedPlaybooks takes up what was under way when its run was
// cancelled or terminated, or when somebody terminated the run of an element.
func TestReprocessOfStoppedPlaybooks(t *testing.T) {
	t.Parallel()
	for name, source := range playbookShapes {
		for stop, ends := range map[string]func(*writing, client.WorkflowRun){
			"cancelled":  func(w *writing, run client.WorkflowRun) { w.cancel(run) },
			"terminated": func(w *writing, run client.WorkflowRun) { w.terminate(run.GetID()) },
		} {
			t.Run(name+", "+stop, func(t *testing.T) {
				t.Parallel()
				w := newWriting(t)
				run := w.start(book(source), map[string]any{"slow": []any{1}})
				w.awaitSlow(run.GetID())
				ends(w, run)
				w.resolve(run, deadletter.Filter{Cancelled: true}, map[string]any{"slow": []any{}})
				w.requireOnce()
			})
		}
	}
}

// awaitSlow waits until the slow call is all that is under way: whatever else has been
// asked for has its answer in a history.
func (w *writing) awaitSlow(id string) {
	w.t.Helper()
	w.awaitRequests("/slow", 1)
	require.Eventually(w.t, func() bool {
		calls, still := w.openCalls(id)
		return still && calls == 1
	}, patience, tick)
}

// openCalls counts the calls that a run and those below it await. It is false where one
// of them is about to go on. A run is looked at before those below it: where it awaits
// them and they have not ended, it awaits them still.
func (w *writing) openCalls(id string) (calls int, still bool) {
	described, err := w.env.Client().DescribeWorkflowExecution(w.t.Context(), id, "")
	if err != nil || described.GetPendingWorkflowTask() != nil ||
		described.GetWorkflowExecutionInfo().GetStatus() != enums.WORKFLOW_EXECUTION_STATUS_RUNNING {
		return 0, false
	}
	calls = len(described.GetPendingActivities())
	for _, child := range described.GetPendingChildren() {
		below, still := w.openCalls(child.GetWorkflowId())
		if !still {
			return 0, false
		}
		calls += below
	}
	return calls, true
}

func (w *writing) terminate(id string) {
	w.t.Helper()
	w.terminates = true
	require.NoError(w.t, w.env.Client().TerminateWorkflow(w.t.Context(), id, "", "for the test"))
}

// TestReprocessOfATerminatedPlaybook: the run of an element is terminated by itself.
func TestReprocessOfATerminatedPlaybook(t *testing.T) {
	t.Parallel()
	w := newWriting(t)
	run := w.start(book(playbookShapes["together"]), map[string]any{"slow": []any{1}})
	w.awaitRequests("/slow", 1)
	w.terminate(run.GetID() + "/each#1/1!1")
	_, err := w.outcome(run)
	require.NoError(t, err)
	w.resolve(run, deadletter.Filter{}, map[string]any{"slow": []any{}})
	w.requireOnce()
}

// TestReprocessOfAReprocess: what a reprocess has done is not done again by the next.
func TestReprocessOfAReprocess(t *testing.T) {
	t.Parallel()
	w := newWriting(t)
	run := w.start(book(playbookShapes["two down"]), map[string]any{"broken": []any{0, 2}, "slow": []any{1}})
	w.awaitSlow(run.GetID())
	w.terminate(run.GetID())
	again := w.reprocess(run, w.chain(run).Select(deadletter.Filter{Cancelled: true}), "", map[string]any{"slow": []any{}})
	_, err := w.outcome(again)
	require.NoError(t, err)
	w.resolve(run, deadletter.Filter{Cancelled: true}, map[string]any{"broken": []any{}, "slow": []any{}})
	w.requireOnce()
}

// TestReprocessWithoutHistories: where the histories of the first runs are gone, keys
// keep what is written once.
func TestReprocessWithoutHistories(t *testing.T) {
	t.Parallel()
	w := newWriting(t)
	run := w.start(book(playbookShapes["together"]), map[string]any{"broken": []any{0, 1, 2}})
	_, err := w.outcome(run)
	require.NoError(t, err)
	for n := range 3 {
		id := fmt.Sprintf("%s/each#1/%d!1", run.GetID(), n)
		_, err := w.env.Client().WorkflowService().DeleteWorkflowExecution(t.Context(), &workflowservice.DeleteWorkflowExecutionRequest{
			Namespace: w.env.Namespace, WorkflowExecution: &common.WorkflowExecution{WorkflowId: id},
		})
		require.NoError(t, err)
		require.Eventually(t, func() bool {
			_, err := w.env.Client().DescribeWorkflowExecution(t.Context(), id, "")
			var missing *serviceerror.NotFound
			return errors.As(err, &missing)
		}, patience, tick)
	}
	w.resolve(run, deadletter.Filter{}, map[string]any{"broken": []any{}})
	require.Equal(t, []any{map[string]any{"rows": 3, "elements": 3}}, w.rows(w.db, "SELECT count(*) AS rows, count(DISTINCT n) AS elements FROM done"))
	for _, write := range w.api.Writes("") {
		require.Equal(t, 2, write.Attempts, "it is posted again, under the same key")
		require.Empty(t, write.Others)
	}
	require.Len(t, w.bodies(), 3)
}

// TestReprocessOfAnOlderRun: another run has had the ID of the run since, and its
// children theirs.
func TestReprocessOfAnOlderRun(t *testing.T) {
	t.Parallel()
	w := newWriting(t)
	source := book(playbookShapes["together"])
	run := w.start(source, map[string]any{"broken": []any{0, 1, 2}})
	_, err := w.outcome(run)
	require.NoError(t, err)
	w.db.Exec(t, "CREATE TABLE first AS SELECT * FROM done; DELETE FROM done")
	input := protocol.Input{Name: "test.yaml", Source: source, Workload: expression.Of(map[string]any{"api": w.api.URL(), "broken": []any{0, 1, 2}})}
	second, err := w.env.Client().ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: run.GetID(), TaskQueue: w.queue},
		protocol.PlaybookWorkflowName, input)
	require.NoError(t, err)
	_, err = w.outcome(second)
	require.NoError(t, err)
	require.Len(t, w.bodies(), 6)
	chain, err := w.reader().Chain(t.Context(), run.GetID(), run.GetRunID())
	require.NoError(t, err)
	result, err := w.outcome(w.reprocessChain(chain, chain.Letters, "", map[string]any{"broken": []any{}}))
	require.NoError(t, err)
	require.EqualValues(t, "completed", result.Status, "%+v", result.Error)
	require.Len(t, w.bodies(), 6)
	for _, write := range w.api.Writes("") {
		require.Equal(t, 1, write.Attempts)
	}
}

// TestRetryOfAPlaybook: another attempt of a playbook goes on where the one before has
// failed, unless that has only read.
func TestRetryOfAPlaybook(t *testing.T) {
	t.Parallel()
	w := newWriting(t)
	result := w.ends("completed", book(`
  - step: once
    tool: playbook
    workload: {n: 0, api: "{{ workload.api }}"}
    workflow:
      - step: read
        tool: http
        url: "{{ api }}/echo"
        params: {read: "{{ n }}"}
        next: each
      - step: each
        tool: http
        loop:
          in: [0, 1, 2]
          iterator: m
          thresholds: {completed: 1, partial_success: 1}
        method: POST
        url: "{{ api }}/api/v1/writes"
        params: {fail_after: "{{ 1 if m == 1 else 0 }}"}
        body: {n: "{{ m }}"}
        next: write
      - step: write
        tool: http
        url: "{{ api }}/echo"
        params: {write: "{{ n }}"}
        sink: {tool: postgres, auth: pg, table: done, args: {n: "{{ n }}"}}
        next: end
      - step: end
        tool: http
        url: "{{ api }}/flaky?times=1&key=end"
    retry: [{when: "{{ error is defined }}", then: {max_attempts: 5, delay: 10ms}}]
    next: twice
  - step: twice
    tool: playbook
    workload: {api: "{{ workload.api }}"}
    workflow:
      - {step: look, tool: http, url: "{{ api }}/echo?look=1", next: end}
      - {step: end, tool: http, url: "{{ api }}/flaky?times=1&key=other"}
    retry: [{when: "{{ error is defined }}", then: {max_attempts: 5, delay: 10ms}}]
`), nil)
	once := step(t, result, "once")
	require.Equal(t, 3, once.Attempts)
	require.Equal(t, []any{map[string]any{"n": 0, "rows": 1}}, w.rows(w.db, "SELECT n, count(*) AS rows FROM done GROUP BY n"))
	made := map[string]int{}
	for _, request := range w.api.Requests("") {
		made[request.Path+" "+request.Query]++
	}
	require.Equal(t, map[string]int{
		"/echo read=0": 1, "/echo write=0": 1, "/flaky times=1&key=end": 2,
		"/api/v1/writes fail_after=0": 2, "/api/v1/writes fail_after=1": 2,
		"/echo look=1": 2, "/flaky times=1&key=other": 2,
	}, made)
}

// TestLoopTerminatedFromOutside: the run says of a loop that somebody has terminated
// what its histories say, and a reprocess knows.
func TestLoopTerminatedFromOutside(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		loop, ends string
		slow       []any
		left       []int
		ballast    string
	}{
		"all of it": {loop: "mode: parallel\n      max_concurrency: 5", ends: "/fetch#1", slow: []any{25}, left: []int{25}},
		"a shard": {
			loop: "mode: parallel\n      max_concurrency: 5\n      batch: 1", ends: "/fetch#1/shard-40", slow: []any{65}, left: []int{65}, ballast: ballast,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := test.slow[0].(int) + 1
			i := newInterrupted(t, test.loop, map[string]any{"n": n, "slow": test.slow, "ballast": test.ballast})
			i.terminates = true
			i.awaitRequests("/slow", 1)
			require.Eventually(t, func() bool { return len(i.rows(i.db, "SELECT n FROM done")) == n }, patience, tick)
			i.awaitEnded(i.run.GetID()+test.ends, 25)
			require.NoError(t, i.env.Client().TerminateWorkflow(t.Context(), i.run.GetID()+test.ends, "", "for the test"))
			result, err := ending.WaitForResult(t.Context(), i.run)
			require.NoError(t, err)
			require.Equal(t, interpreter.Failed, result.Status)
			stats := step(t, result, "fetch").Loop.Stats
			require.Equal(t, interpreter.LoopStats{Total: n, Success: n - 1, Cancelled: 1}, stats)
			require.Contains(t, result.Error.Message, "ended from outside")
			require.Equal(t, []any{map[string]any{"total": n, "success": n - 1}}, i.bodies())
			require.Equal(t, test.left, indexes(i.left()))
			require.Empty(t, i.chain(i.run).Letters)
			i.finish(i.left())
		})
	}
}

// awaitEnded waits until so many iterations of a loop, or of a shard of it, have ended.
func (i *interrupted) awaitEnded(loop string, n int) {
	i.t.Helper()
	require.Eventually(i.t, func() bool {
		var progress protocol.Progress
		return i.ask(loop, "", protocol.ProgressQuery, &progress) && progress.Stats.Success >= n
	}, patience, tick)
}

// TestReprocessDoesNotAskAgain: what a person has answered in the first run counts in the
// one that takes its place.
func TestReprocessDoesNotAskAgain(t *testing.T) {
	t.Parallel()
	w, _ := newAnswering(t)
	run := w.start(book(`
  - step: each
    tool: playbook
    loop: {in: [1], iterator: n}
    workload: {api: "{{ workload.api }}", broken: "{{ workload.broken }}"}
    workflow:
      - {step: ask, tool: approval, message: "go?", next: end}
      - step: end
        tool: http
        url: "{{ api }}/status/{{ 404 if broken else 200 }}"
        next: [{when: "{{ ask.option == 'approve' }}", step: done}]
      - {step: done, tool: http, url: "{{ api }}/echo"}
workload: {broken: true}
`), nil)
	child := run.GetID() + "/each#1/0!1"
	w.awaited(child, "ask")
	_, err := w.looker().SendAnswer(t.Context(), child, interpreter.Answer{
		Verb: interpreter.AnswerComplete, Option: "approve", By: "ada", AnswerTo: interpreter.AnswerTo{Step: "ask"},
	})
	require.NoError(t, err)
	_, err = w.outcome(run)
	require.NoError(t, err)
	w.endsAs(w.reprocess(run, w.chain(run).Letters, "", map[string]any{"broken": false}), interpreter.Completed)
	require.Equal(t, 1, w.api.CountRequests("", "/echo"))
}
