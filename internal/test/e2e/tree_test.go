package e2e_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc"

	"reprise/internal/test/testenv"
	"reprise/interpreter"
	"reprise/interpreter/playbook"
	"reprise/interpreter/tree"
	"reprise/workflows/protocol"
)

// again is a playbook that runs itself for each element, and does nothing else.
const again = `apiVersion: reprise/v1
kind: Playbook
metadata: {name: again}
workload: {wait: true}
workflow:
  - step: each
    tool: playbook
    name: again
    wait: "{{ workload.wait }}"
    loop: {in: "{{ [1, 2, 3, 4] }}", iterator: i, mode: parallel, max_concurrency: 4}
    workload: {wait: "{{ wait }}"}
`

// bounded is a world in which most runs may start below a first one.
func bounded(t *testing.T, most int, source string) *world {
	t.Helper()
	w := newWorld(t)
	w.resources.Limits = playbook.Limits{MaxRuns: most}
	w.folder(map[string]string{"again.yaml": source})
	w.work()
	return w
}

// countRuns is how many runs have started below one that has ended.
func (w *world) countRuns(run client.WorkflowRun) (n int) {
	for _, history := range w.histories {
		if history.Type == protocol.PlaybookWorkflowName && history.WorkflowID != run.GetID() {
			n++
		}
	}
	return n
}

const tooMany = "the top-level run has started 25 child runs, at any depth, the most that REPRISE_RUNS_LIMIT allows"

// TestRunsLimit runs a playbook that starts itself four times, with nobody to stop it.
func TestRunsLimit(t *testing.T) {
	t.Parallel()
	w := bounded(t, 25, again)
	w.replays = 1
	run := w.start(again, nil)
	result, err := w.outcome(run)
	require.NoError(t, err)
	require.Equal(t, interpreter.Failed, result.Status, "no run has anything else to do")
	require.Contains(t, result.Error.Message, tooMany)
	require.Equal(t, 25, w.countRuns(run))
	refused := 0
	for _, history := range w.histories {
		for _, event := range history.History.GetEvents() {
			if message := event.GetWorkflowExecutionFailedEventAttributes().GetFailure().GetMessage(); strings.Contains(message, tooMany) {
				refused++
			}
		}
	}
	require.GreaterOrEqual(t, refused, 4*26-25, "each run asked for four, and those that failed say why")
}

// TestRunsLimitOfThoseThatNobodyWaitsFor counts them too.
func TestRunsLimitOfThoseThatNobodyWaitsFor(t *testing.T) {
	t.Parallel()
	w := bounded(t, 25, again)
	run := w.start(again, map[string]any{"wait": false})
	_, err := w.outcomeOfAll(run, 25)
	require.NoError(t, err)
	require.Equal(t, 25, w.countRuns(run))
}

// outcomeOfAll is outcome once n runs have started below a run and all have ended.
func (w *world) outcomeOfAll(run client.WorkflowRun, n int) (protocol.Result, error) {
	w.t.Helper()
	below := fmt.Sprintf("RootWorkflowId = '%s' AND WorkflowType = 'PlaybookWorkflow'", run.GetID())
	require.Eventually(w.t, func() bool {
		return w.count(below) == n+1 && w.count(below+" AND ExecutionStatus = 'Running'") == 0
	}, patience, 10*tick)
	return w.outcome(run)
}

func (w *world) count(query string) int {
	found, err := w.env.Client().CountWorkflow(w.t.Context(), &workflowservice.CountWorkflowExecutionsRequest{
		Namespace: w.env.Namespace, Query: query,
	})
	if err != nil {
		return -1
	}
	return int(found.GetCount())
}

// TestRunsLimitIsReachedUnevenly: as many runs as may start do, wherever they are
// asked for. One element takes most, and those that end early leave theirs.
func TestRunsLimitIsReachedUnevenly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.resources.Limits = playbook.Limits{MaxRuns: 40}
	w.work()
	source := book(`
  - step: outer
    tool: playbook
    loop: {in: "{{ 0..19 }}", iterator: i, mode: parallel, max_concurrency: 5}
    workload: {list: "{{ 0..19 if i == 7 else [] }}"}
    workflow:
      - step: inner
        tool: playbook
        loop: {in: "{{ list }}", iterator: j, mode: parallel, max_concurrency: 10}
        workload: {j: "{{ j }}"}
        workflow: [{step: end}]
`)
	run := w.start(source, nil)
	result, err := w.outcome(run)
	require.NoError(t, err)
	require.Equal(t, interpreter.Completed, result.Status, "%+v", result.Error)
	require.Equal(t, interpreter.LoopStats{Total: 20, Success: 20}, result.Steps[0].Loop.Stats)
	require.Equal(t, 40, w.countRuns(run))
	for _, history := range w.histories {
		require.Equal(t, "Completed", history.Ending(), "%s", history)
	}
}

// TestRunsLimitOutlivesItsWorkflow: who counts may end, and the count goes on.
func TestRunsLimitOutlivesItsWorkflow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.resources.Limits = playbook.Limits{MaxRuns: 2}
	w.work()
	const one = `
    tool: playbook
    workflow: [{step: end}]
`
	run := w.start(book(`
  - step: begin`+one+`    next: ask
  - step: ask
    tool: webhook
    next: more
  - step: more`+one+`    next: most
  - step: most`+one), nil)
	w.awaited(run.GetID(), "ask")
	described, err := w.env.Client().DescribeWorkflowExecution(t.Context(), run.GetID(), run.GetRunID())
	require.NoError(t, err)
	id := tree.Tree{Root: described.GetWorkflowExecutionInfo().GetFirstRunId()}.WorkflowID()
	require.NoError(t, w.env.Client().TerminateWorkflow(t.Context(), id, "", "a test"))
	w.answers(run.GetID(), interpreter.Answer{AnswerTo: interpreter.AnswerTo{Step: "ask"}, Verb: interpreter.AnswerComplete})
	result, err := w.outcome(run)
	require.NoError(t, err)
	require.Equal(t, interpreter.Failed, result.Status)
	require.Equal(t, "step most: the top-level run has started 2 child runs, at any depth, the most that REPRISE_RUNS_LIMIT allows",
		result.Error.Message)
	require.Equal(t, interpreter.KindPlaybook, result.Error.Kind)
	require.Equal(t, interpreter.ClassFinal, result.Error.Class)
	require.Equal(t, 2, w.countRuns(run))
}

// TestCancelReachesAllChildRuns cancels a run that starts others as fast as they can: none
// starts after, all end as cancelled, and who nobody waits for goes on.
func TestCancelReachesAllChildRuns(t *testing.T) {
	t.Parallel()
	w := bounded(t, 10_000, again)
	w.replays, w.patience = 1, 2*patience
	run := w.start(strings.Replace(again, "workflow:\n", `workflow:
  - step: apart
    tool: playbook
    wait: false
    workflow: [{step: ask, tool: webhook}]
    next: each
`, 1), nil)
	below := fmt.Sprintf("RootWorkflowId = '%s' AND WorkflowType = 'PlaybookWorkflow'", run.GetID())
	require.Eventually(t, func() bool { return w.count(below) > 40 }, patience, tick)
	apart := run.GetID() + "/apart#1!1"
	began := time.Now()
	require.NoError(t, w.env.Client().CancelWorkflow(t.Context(), run.GetID(), run.GetRunID()))
	require.Eventually(t, func() bool { return w.count(below+" AND ExecutionStatus = 'Running'") == 1 }, patience, tick,
		"only the run goes on that nobody waits for")
	t.Logf("%d runs have ended %s after the cancel", w.count(below), time.Since(began).Round(time.Second))
	described, err := w.env.Client().DescribeWorkflowExecution(t.Context(), apart, "")
	require.NoError(t, err)
	require.Equal(t, enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, described.GetWorkflowExecutionInfo().GetStatus())
	require.NoError(t, w.env.Client().CancelWorkflow(t.Context(), apart, ""))
	require.Eventually(t, func() bool { return w.count(below+" AND ExecutionStatus = 'Running'") == 0 }, patience, tick)
	result, err := w.outcome(run)
	require.NoError(t, err)
	require.Equal(t, interpreter.Cancelled, result.Status)
	var asked time.Time
	for _, event := range w.histories[0].History.GetEvents() {
		if event.GetWorkflowExecutionCancelRequestedEventAttributes() != nil {
			asked = event.GetEventTime().AsTime()
		}
	}
	for _, history := range w.histories {
		require.Equal(t, "Canceled", history.Ending(), "%s", history)
		if history.Type == protocol.PlaybookWorkflowName {
			late := history.History.GetEvents()[0].GetEventTime().AsTime().Sub(asked)
			require.Less(t, late, testenv.Within(4*time.Second), "%s started after the cancel", history)
		}
	}
	require.False(t, slices.ContainsFunc(result.Steps, func(record protocol.StepRecord) bool {
		return record.Loop != nil && record.Loop.Stats.Failed > 0
	}))
}

// TestFailureBudgetReachesAllChildRuns: a loop whose failure budget is spent has the runs
// below its iterations cancelled at once, however deep.
func TestFailureBudgetReachesAllChildRuns(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	run := w.start(book(`
  - step: each
    tool: playbook
    loop: {in: "{{ 0..2 }}", iterator: i, mode: parallel, max_concurrency: 3, failure_budget: {rate: 0.1, min_samples: 1}}
    workload: {deep: "{{ i > 0 }}"}
    workflow:
      - step: begin
        next: [{step: deep, when: "{{ workload.deep }}"}, {step: ask}]
      - step: ask
        tool: webhook
      - step: deep
        tool: playbook
        loop: {in: "{{ 0..2 }}", iterator: j, mode: parallel, max_concurrency: 3}
        workload: {}
        workflow: [{step: wait, tool: webhook}]
`), nil)
	for i := 1; i <= 2; i++ {
		for j := range 3 {
			w.awaited(fmt.Sprintf("%s/each#1/%d!1/deep#1/%d!1", run.GetID(), i, j), "wait")
		}
	}
	first := run.GetID() + "/each#1/0!1"
	w.awaited(first, "ask")
	_, err := w.answerTo(first, interpreter.Answer{AnswerTo: interpreter.AnswerTo{Step: "ask"}, Verb: interpreter.AnswerFail, Message: "no"})
	require.NoError(t, err)
	result, err := w.outcome(run)
	require.NoError(t, err)
	require.Equal(t, interpreter.Failed, result.Status)
	require.Equal(t, interpreter.LoopStats{Total: 3, Failed: 1, Cancelled: 2}, result.Steps[0].Loop.Stats)
	cancels := map[string]bool{}
	for _, history := range w.histories {
		for _, event := range history.History.GetEvents() {
			if event.GetActivityTaskScheduledEventAttributes().GetActivityType().GetName() == tree.CancelActivity {
				cancels[history.WorkflowID] = true
			}
		}
		if strings.Contains(history.WorkflowID, "/deep#1") {
			require.Equal(t, "Canceled", history.Ending(), "%s", history)
		}
	}
	require.True(t, cancels[run.GetID()+"/each#1"], "the loop does")
}

// TestFewAdmissionsAtATime: however many runs request admission at once, a worker has few
// requests under way. The server would drop all of them with the eleventh.
func TestFewAdmissionsAtATime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.resources.Limits = playbook.Limits{MaxRuns: 100}
	var open, most atomic.Int64
	count := func(ctx context.Context, method string, request, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
		update, isUpdate := request.(*workflowservice.UpdateWorkflowExecutionRequest)
		if isUpdate && update.GetRequest().GetInput().GetName() == tree.AdmitUpdate {
			now := open.Add(1)
			defer open.Add(-1)
			for before := most.Load(); now > before && !most.CompareAndSwap(before, now); before = most.Load() {
			}
		}
		return invoke(ctx, method, request, reply, cc, options...)
	}
	w.workWith(w.env.Dial(t, client.Options{Logger: quiet{}, ConnectionOptions: client.ConnectionOptions{
		DialOptions: []grpc.DialOption{grpc.WithChainUnaryInterceptor(count)},
	}}))
	result := w.ends("completed", book(`
  - step: outer
    tool: playbook
    loop: {in: "{{ 1..30 }}", iterator: i, mode: parallel, max_concurrency: 30}
    workload: {}
    workflow: [{step: inner, tool: playbook, workflow: [{step: end}]}]
`), nil)
	require.Equal(t, interpreter.LoopStats{Total: 30, Success: 30}, result.Steps[0].Loop.Stats)
	require.LessOrEqual(t, most.Load(), int64(2))
	require.Positive(t, most.Load())
}
