package e2e_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/worker"

	"reprise/internal/base/connect"
	"reprise/internal/observe/runs"
	"reprise/internal/test/testenv"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
	"reprise/interpreter/queue"
	"reprise/workflows"
	"reprise/workflows/protocol"
)

// gatedAPI is an API that counts how many requests of a run are inside at once, and
// notes in which order runs come.
type gatedAPI struct {
	url    string
	mu     sync.Mutex
	inside map[string]bool // runs that have begun and not ended
	most   int
	order  []string
	hold   chan struct{} // closed once runs may end
}

// newGatedAPI has two doors: a run begins at /in and ends at /out.
func newGatedAPI(t *testing.T) *gatedAPI {
	t.Helper()
	g := &gatedAPI{inside: map[string]bool{}, hold: make(chan struct{})}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		run := r.URL.Query().Get("run")
		g.mu.Lock()
		defer g.mu.Unlock()
		switch r.URL.Path {
		case "/in":
			if !g.inside[run] {
				g.order = append(g.order, run)
			}
			g.inside[run] = true
			g.most = max(g.most, len(g.inside))
		case "/out":
			delete(g.inside, run)
		}
		_, _ = fmt.Fprint(w, `{}`)
	}))
	t.Cleanup(server.Close)
	g.url = server.URL
	return g
}

func (g *gatedAPI) arrived() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]string{}, g.order...)
}

// present are the runs that are inside.
func (g *gatedAPI) present() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Collect(maps.Keys(g.inside))
}

// newLobby has one door, at which runs ask until open is called whether they may go.
func newLobby(t *testing.T) (g *gatedAPI, open func()) {
	t.Helper()
	g, opened := &gatedAPI{inside: map[string]bool{}}, false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		run := r.URL.Query().Get("run")
		g.mu.Lock()
		defer g.mu.Unlock()
		g.inside[run] = true
		g.most = max(g.most, len(g.inside))
		if opened {
			delete(g.inside, run)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"open": %t}`, opened)
	}))
	t.Cleanup(server.Close)
	g.url = server.URL
	return g, func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		opened = true
	}
}

// gatedBook is a playbook whose runs go in, stay for a while and go out. Its name is
// the world's own, as keys are those of a playbook.
func (w *world) gatedBook(words string) string {
	return fmt.Sprintf(`apiVersion: reprise/v1
kind: Playbook
metadata: {name: %s}
workload: {tenant: acme, stays: 200ms}
concurrency: {key: "{{ tenant }}", %s}
workflow:
  - {step: enter, tool: http, url: "{{ api }}/in", params: {run: "{{ execution_id }}"}, next: stay}
  - step: stay
    tool: http
    url: "{{ api }}/stay"
    retry: [{when: "{{ _retry.count < 2 }}", then: {max_attempts: 3, delay: "STAYS"}}]
    next: leave
  - {step: leave, tool: http, url: "{{ api }}/out", params: {run: "{{ execution_id }}"}}
`, w.queue, words)
}

// enter starts a run with an ID of its own.
func (w *world) enter(id, source, api string) client.WorkflowRun {
	w.t.Helper()
	_, err := connect.EnsureAttributes(w.t.Context(), w.env.Client(), w.env.Namespace, protocol.SearchAttributes())
	require.NoError(w.t, err)
	return w.enterWith(id, source, api, true)
}

// enterWith is enter, of a run that says whether it sets search attributes.
func (w *world) enterWith(id, source, api string, attributes bool) client.WorkflowRun {
	w.t.Helper()
	run, err := w.env.Client().ExecuteWorkflow(w.t.Context(), client.StartWorkflowOptions{ID: w.queue + "/" + id, TaskQueue: w.queue},
		protocol.PlaybookWorkflowName, protocol.Input{
			Name: "test.yaml", Source: source, Workload: expression.Of(map[string]any{"api": api}), SearchAttributes: attributes,
		})
	require.NoError(w.t, err)
	return run
}

// status asks where a run is.
func (w *world) status(run client.WorkflowRun) *runs.Status {
	w.t.Helper()
	reader := &runs.Reader{Client: w.env.Client(), Namespace: w.env.Namespace}
	found, err := reader.Find(w.t.Context(), run.GetID(), "")
	require.NoError(w.t, err)
	status, err := reader.Status(w.t.Context(), found, time.Now())
	require.NoError(w.t, err)
	return status
}

// awaitTicket waits until the run has been told a state by the line of its key.
func (w *world) awaitTicket(run client.WorkflowRun, states ...queue.State) {
	w.t.Helper()
	require.Eventually(w.t, func() bool {
		progress, told := w.progress(run)
		return told && progress.Ticket != nil && slices.Contains(states, progress.Ticket.State)
	}, patience, tick, "%s did not become %s", run.GetID(), states)
}

// lineOf is the workflow ID of the line of a world's playbook.
func (w *world) lineOf(key string) string {
	return queue.Name{Playbook: w.queue, Key: key}.WorkflowID()
}

// replayLine replays the histories of a line, as far as they have come.
func (w *world) replayLine(key string) { w.replayLineOf(w.lineOf(key)) }

func (w *world) replayLineOf(id string) {
	w.t.Helper()
	histories := testenv.Histories(w.t, w.env.Client(), id, "")
	require.NotEmpty(w.t, histories)
	require.NoError(w.t, testenv.Replay(histories, func(r worker.WorkflowReplayer) { workflows.Register(r) }, replays, testenv.StoredIn(w.store)))
}

// TestRunsOfAKeyShareItsSlots: twenty runs that start at once never overlap, go in the
// order in which they came, and are not held up by a worker that dies.
func TestRunsOfAKeyShareItsSlots(t *testing.T) {
	t.Parallel()
	w, gate := newWorld(t), newGatedAPI(t)
	first := w.spawn()
	source := stays(w.gatedBook("limit: 1"), "0.1")
	var all []client.WorkflowRun
	for i := range 20 {
		all = append(all, w.enter(fmt.Sprintf("%02d", i), source, gate.url))
		if i%5 == 4 { // so that part of the order is known
			for _, run := range all[i-4:] {
				w.awaitTicket(run, queue.Queued, queue.Granted)
			}
		}
	}
	require.Eventually(t, func() bool { return len(gate.arrived()) >= 3 }, patience, tick)
	status := w.status(all[19])
	require.Equal(t, interpreter.Queued, status.Status)
	require.Equal(t, runs.HeldByConcurrency, status.HeldBy)
	require.Greater(t, status.Queue.Position, 5)
	require.Equal(t, "acme", status.Queue.Name.Key)
	require.Len(t, status.Queue.Holders, 1)
	first.Kill()
	w.spawn()
	for _, run := range all {
		result, err := w.outcome(run)
		require.NoError(t, err)
		require.EqualValues(t, "completed", result.Status, "%+v", result.Error)
	}
	require.Equal(t, 1, gate.most)
	order := gate.arrived()
	require.Len(t, order, 20)
	for i, id := range order { // each five had been asked for before the next five started
		require.Equal(t, i/5, rankOf(all, id)/5, "%v", order)
	}
	w.replayLine("acme")
}

func rankOf(all []client.WorkflowRun, id string) int {
	for i, run := range all {
		if run.GetID() == id {
			return i
		}
	}
	return -1
}

// stays sets how long each of two waits of a run's stay is, in seconds.
func stays(source, seconds string) string {
	return strings.ReplaceAll(source, `"STAYS"`, seconds)
}

// TestSkipsWhereItsKeyIsInUse: a run that is not to wait ends without a failure, and
// says whom it found.
func TestSkipsWhereItsKeyIsInUse(t *testing.T) {
	t.Parallel()
	w, gate := newWorking(t), newGatedAPI(t)
	source := stays(w.gatedBook("on_conflict: skip"), "60")
	holder := w.enter("holder", source, gate.url)
	w.await(holder, "stay", interpreter.RetryPending)
	skipped := w.enter("late", source, gate.url)
	w.recordAs("key_taken")
	result, err := w.outcome(skipped)
	require.NoError(t, err)
	require.Equal(t, interpreter.Skipped, result.Status)
	require.Nil(t, result.Result.Data)
	require.Len(t, result.Warnings, 1)
	require.Contains(t, result.Warnings[0], holder.GetID())
	require.Equal(t, interpreter.Skipped, step(t, result, "enter").Status)
	require.Equal(t, interpreter.Skipped, w.status(skipped).Status)
	other := w.start(strings.ReplaceAll(source, "tenant: acme", "tenant: other"), map[string]any{"api": gate.url})
	w.await(other, "stay", interpreter.RetryPending) // another key is free
	w.cancel(other)
	w.cancel(holder)
	require.Equal(t, []string{holder.GetID(), other.GetID()}, gate.arrived())
	w.replayLine("acme")
}

// TestCancelsTheRunWithItsKey: the run before is cancelled and says why, also one
// that waits only to be cancelled, and the new one begins when it has left.
func TestCancelsTheRunWithItsKey(t *testing.T) {
	t.Parallel()
	w, gate := newWorking(t), newGatedAPI(t)
	source := stays(w.gatedBook("on_conflict: cancel_running"), "60")
	first := w.enter("first", source, gate.url)
	w.await(first, "stay", interpreter.RetryPending)
	second := w.enter("second", source, gate.url)
	result, err := w.outcome(first)
	require.NoError(t, err)
	require.Equal(t, interpreter.Cancelled, result.Status)
	require.Len(t, result.Warnings, 1)
	require.Contains(t, result.Warnings[0], second.GetID())
	require.Contains(t, reasonOfCancel(w), second.GetID())
	w.await(second, "stay", interpreter.RetryPending)
	require.Equal(t, []string{first.GetID(), second.GetID()}, gate.arrived())
	w.cancel(second)
	w.replayLine("acme")
}

// reasonOfCancel is why the last run of a world was cancelled, as its history says.
func reasonOfCancel(w *world) string {
	for _, event := range w.histories[0].History.GetEvents() {
		if asked := event.GetWorkflowExecutionCancelRequestedEventAttributes(); asked != nil {
			return asked.GetCause()
		}
	}
	return ""
}

// TestARunThatCannotReleaseFreesItsSlot: a run that is terminated says nothing, so the line
// looks; one in the queue that is cancelled leaves it.
func TestARunThatCannotReleaseFreesItsSlot(t *testing.T) {
	t.Parallel()
	w, gate := newWorking(t), newGatedAPI(t)
	source := stays(w.gatedBook("limit: 1"), "60")
	holder := w.enter("holder", source, gate.url)
	w.await(holder, "stay", interpreter.RetryPending)
	var waiting []client.WorkflowRun
	for i := range 3 {
		waiting = append(waiting, w.enter(fmt.Sprint("waiting", i), source, gate.url))
		w.awaitTicket(waiting[i], queue.Queued)
	}
	reader := &runs.Reader{Client: w.env.Client(), Namespace: w.env.Namespace}
	require.Eventually(t, func() bool {
		list, err := reader.List(t.Context(), runs.Filter{Status: interpreter.Queued})
		if err != nil {
			return false
		}
		reader.SetPositions(t.Context(), list.Runs)
		places := map[string]int{}
		for _, run := range list.Runs {
			if run.Queue != nil && run.Queue.WorkflowID == w.lineOf("acme") && run.Status == interpreter.Queued {
				places[run.WorkflowID] = run.Queue.Position
			}
		}
		return len(places) == 3 && places[waiting[0].GetID()] == 1 && places[waiting[2].GetID()] == 3
	}, patience, tick)
	require.True(t, w.steers(waiting[0], protocol.PauseUpdate, protocol.CommandInput{}).Changed)
	require.True(t, w.steers(waiting[0], protocol.ResumeUpdate, protocol.CommandInput{}).Changed)
	require.Equal(t, interpreter.Queued, w.status(waiting[0]).Status)
	result := w.cancel(waiting[0])
	require.Empty(t, result.Warnings)
	require.NoError(t, w.env.Client().TerminateWorkflow(t.Context(), waiting[1].GetID(), "", "a test"))
	require.NoError(t, w.env.Client().TerminateWorkflow(t.Context(), holder.GetID(), "", "a test"))
	w.await(waiting[2], "stay", interpreter.RetryPending)
	require.Equal(t, []string{holder.GetID(), waiting[2].GetID()}, gate.arrived())
	require.Eventually(t, func() bool {
		return listed(t, reader, waiting[2].GetID()).Status == interpreter.RetryPending
	}, patience, tick)
	w.cancel(waiting[2])
	w.replayLine("acme")
}

// TestARepeatedRequestStartsTheQueue: where the line was terminated together with who had a
// turn, status says so, and retry-now has a run that waits begin it again.
func TestARepeatedRequestStartsTheQueue(t *testing.T) {
	t.Parallel()
	w, gate := newWorking(t), newGatedAPI(t)
	source := stays(w.gatedBook("limit: 1"), "60")
	holder := w.enter("holder", source, gate.url)
	w.await(holder, "stay", interpreter.RetryPending)
	waiting := w.enter("waiting", source, gate.url)
	w.awaitTicket(waiting, queue.Queued)
	require.False(t, w.status(waiting).Queue.Stopped)
	_, err := w.steer(waiting, protocol.RetryNowUpdate, protocol.CommandInput{Step: "stay"})
	require.ErrorContains(t, err, "step stay is not running")
	for _, id := range []string{holder.GetID(), w.lineOf("acme")} {
		require.NoError(t, w.env.Client().TerminateWorkflow(t.Context(), id, "", "a test"))
	}
	require.True(t, w.status(waiting).Queue.Stopped)
	require.Equal(t, 1, w.steers(waiting, protocol.RetryNowUpdate, protocol.CommandInput{}).Ended)
	w.await(waiting, "stay", interpreter.RetryPending)
	require.Equal(t, []string{holder.GetID(), waiting.GetID()}, gate.arrived())
	w.cancel(waiting)
	w.replayLine("acme")
}

// TestATerminatedQueuePreservesItsSlots: the next run to ask finds all as it was, and
// who leaves has the next one begin, though nobody asks.
func TestATerminatedQueuePreservesItsSlots(t *testing.T) {
	t.Parallel()
	w, gate := newWorking(t), newGatedAPI(t)
	source := stays(w.gatedBook("limit: 1"), "60")
	var all []client.WorkflowRun
	enter := func(id string, state queue.State) {
		run := w.enter(id, source, gate.url)
		w.awaitTicket(run, state)
		all = append(all, run)
	}
	end := func() {
		require.NoError(t, w.env.Client().TerminateWorkflow(t.Context(), w.lineOf("acme"), "", "a test"))
	}
	enter("0", queue.Granted)
	enter("1", queue.Queued)
	enter("2", queue.Queued)
	end()
	enter("3", queue.Queued)
	status := w.status(all[3])
	require.Equal(t, 3, status.Queue.Position)
	require.Equal(t, []string{all[0].GetID()}, status.Queue.Holders)
	w.await(all[0], "stay", interpreter.RetryPending)
	require.Equal(t, []string{all[0].GetID()}, gate.arrived())
	w.cancel(all[0])
	w.await(all[1], "stay", interpreter.RetryPending)
	end()
	w.cancel(all[1])
	w.await(all[2], "stay", interpreter.RetryPending)
	require.Equal(t, []string{all[0].GetID(), all[1].GetID(), all[2].GetID()}, gate.arrived())
	w.replayLine("acme")
	w.cancel(all[3])
	w.cancel(all[2])
}

// TestRunsThatWaitForEachOther: each of two runs has a key that the playbook needs
// which the other one runs. One of them fails and says why, and the other goes on.
func TestRunsThatWaitForEachOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	head := func(name string) string {
		return fmt.Sprintf("apiVersion: reprise/v1\nkind: Playbook\nmetadata: {name: %s%s}\nconcurrency: {shared: \"{{ workload.mine }}\"}\nworkflow:\n",
			name, w.queue)
	}
	outer := head("outer") + `
  - {step: begin, tool: http, url: "{{ workload.api }}/echo", next: inner}
  - step: inner
    tool: playbook
    name: inner
    workload: {mine: "{{ workload.theirs }}"}
    retry: [{when: "{{ error is defined }}", then: {max_attempts: 3, delay: 10ms}}]
`
	w.folder(map[string]string{"inner.yaml": head("inner") + "  - {step: quick, tool: python, code: \"def main(): return 1\"}\n"})
	w.work()
	hold := w.api.HoldRequests(func(r *http.Request) bool { return r.URL.Path == "/echo" })
	x, y := "x-"+w.queue, "y-"+w.queue
	both := []client.WorkflowRun{
		w.start(outer, map[string]any{"mine": x, "theirs": y}), w.start(outer, map[string]any{"mine": y, "theirs": x}),
	}
	require.Eventually(t, func() bool { return hold.HeldRequests() == 2 }, patience, tick)
	hold.Release()
	failed := 0
	for i, run := range both {
		result, err := w.outcome(run)
		require.NoError(t, err)
		if result.Status == interpreter.Completed {
			continue
		}
		failed++
		require.Equal(t, interpreter.Failed, result.Status)
		require.Equal(t, 1, step(t, result, "inner").Attempts, "it would fail again")
		require.Contains(t, result.Error.Message, "runs wait for each other in a circle: under the concurrency key")
		require.Contains(t, result.Error.Message, "it waits for "+both[1-i].GetID())
	}
	require.Equal(t, 1, failed)
	for _, name := range []queue.Name{{Key: x}, {Key: y}} {
		w.replayLineOf(name.WorkflowID())
	}
}

// TestALongQueue: 60 runs wait under one key while the worker is killed and another
// one starts. Their line goes on in another history meanwhile, and each has its turn in
// the order in which it began.
func TestALongQueue(t *testing.T) {
	t.Parallel()
	const runs, limit = 60, 10
	w := newWorld(t)
	gate, open := newLobby(t)
	first := w.spawn()
	source := fmt.Sprintf(`apiVersion: reprise/v1
kind: Playbook
metadata: {name: %s}
concurrency: {key: acme, limit: %d}
workflow:
  - step: ask
    tool: http
    url: "{{ api }}"
    params: {run: "{{ execution_id }}"}
    retry: [{when: "{{ not response.open }}", then: {max_attempts: 10000, delay: 2s}}]
`, w.queue, limit)
	var all []client.WorkflowRun
	for i := range runs {
		all = append(all, w.enterWith(fmt.Sprintf("%03d", i), source, gate.url, false))
	}
	require.Eventually(t, func() bool { return w.standing("acme").Waiting == runs-limit }, patience, time.Second)
	for range 32 { // so that the line's history gets long; the last run is where it was
		require.Eventually(t, func() bool {
			return w.env.Client().SignalWorkflow(t.Context(), w.lineOf("acme"), "", queue.RequestSignal, map[string]any{
				"workflow_id": all[runs-1].GetID(), "run_id": all[runs-1].GetRunID(), "limit": limit, "on_conflict": playbook.ConflictQueue,
				"ballast": strings.Repeat("x", 100_000),
			}) == nil
		}, patience, tick)
	}
	require.Eventually(t, func() bool { return len(gate.present()) == limit }, patience, tick)
	first.Kill()
	open()
	w.spawn()
	ctx, stop := context.WithTimeout(t.Context(), 2*patience)
	defer stop()
	for _, run := range all {
		require.NoError(t, run.Get(ctx, nil), run.GetID())
	}
	require.Equal(t, limit, gate.most)
	require.Greater(t, len(testenv.Histories(t, w.env.Client(), w.lineOf("acme"), "")), 1, "the line goes on in another history")
	asked, granted := w.slotsOf(w.lineOf("acme"))
	require.Len(t, asked, runs)
	require.ElementsMatch(t, asked, granted)
	require.IsIncreasing(t, granted[limit:]) // all of these waited before the first turn was free
	w.replayLine("acme")
}

// slotsOf are the runs that have asked a line for a turn, and those to which it gave
// one, each in order. No history of the line is longer than it may be.
func (w *world) slotsOf(line string) (asked, granted []string) {
	w.t.Helper()
	histories := testenv.Histories(w.t, w.env.Client(), line, "")
	convert := converter.GetDefaultDataConverter()
	for _, history := range histories {
		require.LessOrEqual(w.t, len(history.History.GetEvents()), 4096)
		for _, event := range history.History.GetEvents() {
			if came := event.GetWorkflowExecutionSignaledEventAttributes(); came.GetSignalName() == queue.RequestSignal {
				var request queue.Request
				require.NoError(w.t, convert.FromPayloads(came.GetInput(), &request))
				if !request.Leave && !slices.Contains(asked, request.WorkflowID) {
					asked = append(asked, request.WorkflowID)
				}
			}
			if told := event.GetSignalExternalWorkflowExecutionInitiatedEventAttributes(); told != nil {
				var answer queue.Decision
				require.NoError(w.t, convert.FromPayloads(told.GetInput(), &answer))
				if id := told.GetWorkflowExecution().GetWorkflowId(); answer.State == queue.Granted && !slices.Contains(granted, id) {
					granted = append(granted, id)
				}
			}
		}
	}
	return asked, granted
}

// listed finds a run with a status of its own.
func listed(t *testing.T, reader *runs.Reader, id string) runs.Found {
	t.Helper()
	found, err := reader.Find(t.Context(), id, "")
	require.NoError(t, err)
	return found
}

// TestATimeoutEndsTheQueue: the timeout of a playbook counts while its run waits for
// its turn.
func TestATimeoutEndsTheQueue(t *testing.T) {
	t.Parallel()
	w, gate := newWorking(t), newGatedAPI(t)
	source := stays(w.gatedBook("limit: 1"), "60")
	holder := w.enter("holder", source, gate.url)
	w.await(holder, "stay", interpreter.RetryPending)
	late := w.enter("late", strings.Replace(source, "workload:", "timeout: 2s\nworkload:", 1), gate.url)
	result, err := w.outcome(late)
	require.NoError(t, err)
	require.Equal(t, interpreter.Failed, result.Status)
	require.Equal(t, interpreter.KindTimeout, result.Error.Kind)
	w.cancel(holder)
	require.Equal(t, []string{holder.GetID()}, gate.arrived())
}

// TestAKeyMustBeText: a key that the workload does not give fails the run, which asks
// nobody for a turn.
func TestAKeyMustBeText(t *testing.T) {
	t.Parallel()
	w, gate := newWorking(t), newGatedAPI(t)
	for given, want := range map[string]string{
		"null": "every part of a key needs a value", "''": "must not be empty", "[a]": "must be text, not a list",
		strings.Repeat("x", 501): "is 501 bytes long; at most 500 are allowed",
	} {
		source := strings.ReplaceAll(w.gatedBook("limit: 1"), "tenant: acme", "tenant: "+given)
		result, err := w.run(stays(source, "0"), map[string]any{"api": gate.url})
		require.NoError(t, err)
		require.Equal(t, interpreter.Failed, result.Status)
		require.Equal(t, interpreter.KindExpression, result.Error.Kind)
		require.Contains(t, result.Error.Message, want)
	}
	require.Empty(t, gate.arrived())
}

// TestTheFirstTaskDiesWithItsWorker: a worker is killed that has a run's first task, so
// the run requests its slot long after others have that began later. It goes before them.
func TestTheFirstTaskDiesWithItsWorker(t *testing.T) {
	t.Parallel()
	w, gate := newWorld(t), newGatedAPI(t)
	source := stays(w.gatedBook("limit: 1"), "60")
	first := w.spawn()
	all := []client.WorkflowRun{w.enter("holder", source, gate.url)}
	w.await(all[0], "stay", interpreter.RetryPending)
	require.NoError(t, syscall.Kill(first.PID(), syscall.SIGSTOP)) // its polls stay open
	lost, err := w.env.Client().ExecuteWorkflow(t.Context(),
		client.StartWorkflowOptions{ID: w.queue + "/lost", TaskQueue: w.queue, WorkflowTaskTimeout: 15 * time.Second},
		protocol.PlaybookWorkflowName, protocol.Input{
			Name: "test.yaml", Source: source, Workload: expression.Of(map[string]any{"api": gate.url}),
		})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return w.happened(lost, enums.EVENT_TYPE_WORKFLOW_TASK_STARTED) == 1 }, patience, tick)
	first.Kill()
	w.spawn()
	all = append(all, lost)
	for _, id := range []string{"second", "third"} {
		run := w.enter(id, source, gate.url)
		w.awaitTicket(run, queue.Queued)
		all = append(all, run)
	}
	w.awaitTicket(lost, queue.Queued)
	require.Equal(t, 1, w.happened(lost, enums.EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT))
	require.Equal(t, 1, w.status(lost).Queue.Position)
	var want []string
	for _, run := range all {
		want = append(want, run.GetID())
		w.await(run, "stay", interpreter.RetryPending)
		require.Equal(t, want, gate.arrived())
		w.cancel(run)
	}
	asked, granted := w.slotsOf(w.lineOf("acme"))
	require.Equal(t, []string{want[0], want[2], want[3], want[1]}, asked)
	require.Equal(t, want, granted)
	w.replayLine("acme")
}

// happened counts the events of a kind in the history of a run.
func (w *world) happened(run client.WorkflowRun, kind enums.EventType) (n int) {
	w.t.Helper()
	events := w.env.Client().GetWorkflowHistory(w.t.Context(), run.GetID(), run.GetRunID(), false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		require.NoError(w.t, err)
		if event.GetEventType() == kind {
			n++
		}
	}
	return n
}
