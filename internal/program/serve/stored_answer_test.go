package serve_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"reprise/internal/base/callback"
	"reprise/internal/test/testenv"
	"reprise/interpreter/expression"
	"reprise/workflows/protocol"
)

// signalled counts the signals in the history of a workflow.
func (a *asking) signalled(id string) (count int) {
	a.t.Helper()
	events := a.env.Client().GetWorkflowHistory(a.t.Context(), id, "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		require.NoError(a.t, err)
		if event.GetWorkflowExecutionSignaledEventAttributes() != nil {
			count++
		}
	}
	return count
}

// floods says many things at once with a token, and counts the statuses that come back.
func (a *asking) floods(token, verb string, many int, body func(i int) string) map[int]int {
	a.t.Helper()
	var next atomic.Int64
	var mu sync.Mutex
	var group sync.WaitGroup
	statuses := map[int]int{}
	for range 10 {
		group.Go(func() {
			for i := int(next.Add(1)); i <= many; i = int(next.Add(1)) {
				status, _ := a.send(callback.Path+token+"/"+verb, body(i))
				mu.Lock()
				statuses[status]++
				mu.Unlock()
			}
		})
	}
	testenv.Wait(a.t, group.Wait, "the answers to all callers")
	return statuses
}

// TestStoredAnswersAreBounded: of what comes with one token while nobody works a hundred
// are kept, outside the run. The first counts, and each says again what became of it.
func TestStoredAnswersAreBounded(t *testing.T) {
	t.Parallel()
	a := newAsking(t)
	run, token := a.ask("bounded", webhook)
	a.stop()
	require.Equal(t, http.StatusAccepted, a.callback(token, "complete", `{"result": "first"}`).status)
	statuses := a.floods(token, "complete", 250, func(i int) string { return fmt.Sprintf(`{"result": %d}`, i) })
	require.Equal(t, map[int]int{http.StatusAccepted: 99, http.StatusTooManyRequests: 151}, statuses)
	full := a.callback(token, "complete", `{"result": "first"}`)
	require.Equal(t, http.StatusTooManyRequests, full.status)
	require.NotEmpty(t, full.header.Get("Retry-After"))
	require.Zero(t, a.signalled(run.GetID()), "the run's own signals are not used up")
	a.work()
	require.Equal(t, "first", a.ends(run).Result.Data)
	for body, status := range map[string]int{`{"result": "first"}`: http.StatusOK, `{"result": 7}`: http.StatusConflict} {
		require.Eventually(t, func() bool {
			return a.callback(token, "complete", body).status == status
		}, patience, 10*tick, body)
	}
}

// TestStoredAnswersThatDoNotFit are left out; the first that fits counts.
func TestStoredAnswersThatDoNotFit(t *testing.T) {
	t.Parallel()
	a := newAsking(t)
	run, token := a.ask("misfits", `apiVersion: reprise/v1
kind: Playbook
metadata: {name: release}
workflow:
  - step: release
    tool: approval
    message: Go?
    on_start: {url: "{{ other }}", body: {token: "{{ callback.token }}", complete: "{{ callback.complete }}"}}
    next: after
  - step: after
    tool: webhook
    on_start: {url: "{{ other }}", body: {token: "{{ callback.token }}", complete: "{{ callback.complete }}"}}
output: "{{ release.option }}"
`)
	a.stop()
	const maybe, reject, approve = `{"option": "maybe", "by": "ada"}`, `{"option": "reject", "by": "ada"}`, `{"option": "approve", "by": "ada"}`
	for _, body := range []string{maybe, maybe, reject, approve} {
		require.Equal(t, http.StatusAccepted, a.callback(token, "complete", body).status)
	}
	a.work()
	after := a.token()
	for body, status := range map[string]int{reject: http.StatusOK, approve: http.StatusConflict, maybe: http.StatusUnprocessableEntity} {
		require.Eventually(t, func() bool {
			given := a.callback(token, "complete", body)
			t.Log(body, given.status, string(given.body))
			return given.status == status
		}, testenv.Within(20*time.Second), 10*tick, body)
	}
	require.Equal(t, http.StatusAccepted, a.callback(after, "complete", `{}`).status)
	require.Equal(t, "reject", a.ends(run).Result.Data)
}

// TestStoredAnswersCountThoughTheTimeIsOver: what was kept in time counts when a worker
// comes back later.
func TestStoredAnswersCountThoughTheTimeIsOver(t *testing.T) {
	t.Parallel()
	a := newAsking(t)
	const limit = 8 * time.Second
	run, token := a.ask("overdue", strings.Replace(webhook, "timeout: 10m", "timeout: "+limit.String(), 1))
	asked := time.Now()
	a.stop()
	require.Equal(t, http.StatusAccepted, a.callback(token, "complete", `{"result": "in time"}`).status)
	require.Eventually(t, func() bool { return time.Since(asked) > limit+2*time.Second }, patience, tick)
	a.work()
	require.Equal(t, "in time", a.ends(run).Result.Data)
	require.Empty(t, a.told, "no other attempt was made")
}

// TestProgressWithoutAWorker: the newest report is kept, whatever their number, takes no
// room from answers, and lets the time of the attempt begin anew.
func TestProgressWithoutAWorker(t *testing.T) {
	t.Parallel()
	a := newAsking(t)
	const limit = 10 * time.Second
	run, token := a.ask("reports", strings.Replace(webhook, "timeout: 10m", "timeout: "+limit.String(), 1))
	asked := time.Now()
	a.stop()
	statuses := a.floods(token, "progress", 1000, func(i int) string { return fmt.Sprintf(`{"done": %d}`, i) })
	require.Equal(t, map[int]int{http.StatusAccepted: 1000}, statuses)
	require.Equal(t, http.StatusAccepted, a.callback(token, "progress", `{"done": 5000}`).status)
	require.Zero(t, a.signalled(run.GetID()))
	a.world.stop() // which sends what it holds back
	a.serve()
	require.Eventually(t, func() bool { return time.Since(asked) > limit+2*time.Second }, patience, tick)
	a.work()
	require.Eventually(t, func() bool { return strings.Contains(a.waiting(run.GetID()), "5000 done") }, patience, tick)
	require.Equal(t, http.StatusAccepted, a.callback(token, "complete", `{"result": "reported"}`).status)
	require.Equal(t, "reported", a.ends(run).Result.Data)
	require.Empty(t, a.told, "no other attempt was made")
}

// TestManyTokensOfOneRun: the attempts of one child are flooded without a worker, and the
// first answer to each counts.
func TestManyTokensOfOneRun(t *testing.T) {
	t.Parallel()
	const many = 20
	a := newAsking(t)
	a.told = make(chan map[string]any, many)
	run := a.crowd(many)
	tokens := a.tokens(many)
	a.stop()
	var group sync.WaitGroup
	for i, token := range tokens {
		group.Go(func() {
			for n := range 10 {
				_, _ = a.send(callback.Path+token+"/complete", fmt.Sprintf(`{"result": %d}`, i+1+n*1000))
				_, _ = a.send(callback.Path+token+"/progress", fmt.Sprintf(`{"done": %d}`, n))
			}
		})
	}
	testenv.Wait(t, group.Wait, "the answers to all callers")
	a.work()
	require.Equal(t, many*(many+1)/2, a.ends(run).Result.Data)
}

// fullClient is one by whose account no mailbox has room.
type fullClient struct{ client.Client }

func (f fullClient) DescribeWorkflowExecution(
	ctx context.Context, workflowID, runID string,
) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	if !strings.HasPrefix(workflowID, "reprise-answers") {
		return f.Client.DescribeWorkflowExecution(ctx, workflowID, runID)
	}
	return &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{
		Status: enums.WORKFLOW_EXECUTION_STATUS_RUNNING, HistoryLength: 1000,
	}}, nil
}

// crowd starts a run whose one child awaits many answers.
func (a *asking) crowd(many int) client.WorkflowRun {
	a.t.Helper()
	run, err := a.env.Client().ExecuteWorkflow(a.t.Context(), client.StartWorkflowOptions{ID: a.queue, TaskQueue: a.queue}, protocol.PlaybookWorkflowName,
		protocol.Input{
			Name: "crowd.yaml", Source: strings.ReplaceAll(crowd, "BATCH", fmt.Sprint(many)),
			Workload: expression.Of(map[string]any{"other": a.other, "size": many}),
		})
	require.NoError(a.t, err)
	return run
}

// waiting is what the first step of a run waits for.
func (a *asking) waiting(id string) string {
	value, err := a.env.Client().QueryWorkflow(a.t.Context(), id, "", protocol.ProgressQuery)
	var progress protocol.Progress
	if err != nil || value.Get(&progress) != nil || len(progress.Steps) == 0 {
		return ""
	}
	return progress.Steps[0].Waiting
}
