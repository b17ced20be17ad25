package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	"reprise/internal/observe/render"
	"reprise/internal/observe/runs"
	"reprise/internal/program/host"
	"reprise/internal/test/testenv"
	"reprise/interpreter"
	"reprise/interpreter/queue"
	"reprise/workflows/protocol"
)

// looker reads runs and counts the calls that reach the server.
type looker struct {
	w     *world
	calls atomic.Int64
	*runs.Reader
}

func (w *world) looker() *looker {
	l := &looker{w: w}
	count := func(
		ctx context.Context, method string, request, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption,
	) error {
		l.calls.Add(1)
		return invoke(ctx, method, request, reply, cc, options...)
	}
	options := client.Options{Logger: quiet{}}
	options.ConnectionOptions.DialOptions = []grpc.DialOption{grpc.WithChainUnaryInterceptor(count)}
	l.Reader = &runs.Reader{Client: w.env.Dial(w.t, options), Store: w.store, Namespace: w.env.Namespace}
	return l
}

// status finds a run and asks where it is.
func (l *looker) status(id string) *runs.Status {
	l.w.t.Helper()
	l.calls.Store(0)
	found, err := l.Find(l.w.t.Context(), id, "")
	require.NoError(l.w.t, err)
	finding := l.calls.Load()
	status, err := l.Status(l.w.t.Context(), found, time.Now())
	require.NoError(l.w.t, err)
	require.LessOrEqual(l.w.t, l.calls.Load(), int64(10), "status takes too many calls")
	require.GreaterOrEqual(l.w.t, l.calls.Load()-finding, int64(status.Calls), "the client asks again where a workflow is not ready")
	return status
}

// until asks until a run is where it should be.
func (l *looker) until(id string, there func(*runs.Status) bool) *runs.Status {
	l.w.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(tick) {
		status := l.status(id)
		if there(status) {
			return status
		}
		require.True(l.w.t, time.Now().Before(deadline), "the run did not get there: %+v", status)
	}
}

func inState(step string, state interpreter.Status) func(*runs.Status) bool {
	return func(status *runs.Status) bool {
		for _, visit := range status.Visits(step) {
			return visit.Status == state
		}
		return false
	}
}

// TestStatusOfAStateOutOfReach: a step that cannot claim its state makes no attempt, so the status of
// the run has to say what it waits for.
func TestStatusOfAStateOutOfReach(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	w.connected["away"] = "postgres://reader@127.0.0.1:1/clinic"
	run := w.start(pagesInto("tool: postgres, auth: away, table: orders", "row_order: asc"), nil)

	status := w.looker().until(run.GetID(), func(status *runs.Status) bool { return status.HeldBy == runs.HeldByState })
	require.Empty(t, status.Stalled)
	require.Equal(t, "fetch: waiting to retry, waits: the state test/fetch is out of reach: "+
		"could not connect to PostgreSQL at 127.0.0.1:1: connection refused", render.NowText(status))
	w.cancel(run)
}

func TestStatusOfSteps(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	l := w.looker()
	run := w.start(book(`
  - step: start
    next: [slow, flaky]
  - step: slow
    tool: http
    url: "{{ api }}/slow?ms=60000"
    timeout: 1h
  - step: flaky
    tool: http
    url: "{{ api }}/status/503"
    retry: [{when: error is defined, then: {max_attempts: 4, delay: 1h, jitter: none}}]
    next: after
  - step: after
    tool: http
    url: "{{ api }}/status/200"
`), nil)

	status := l.until(run.GetID(), inState("flaky", "retry_pending"))
	require.EqualValues(t, "running", status.Status, "one step goes on")
	require.Equal(t, run.GetRunID(), status.RunID)
	require.Positive(t, status.Workers)
	require.EqualValues(t, "completed", status.Visits("start")[0].Status)
	require.EqualValues(t, "running", status.Visits("slow")[0].Status)
	require.Equal(t, 1, status.Visits("slow")[0].Attempt)
	require.EqualValues(t, "pending", status.Visits("after")[0].Status)
	flaky := status.Visits("flaky")[0]
	require.Equal(t, []int{1, 4}, []int{flaky.Attempt, flaky.MaxAttempts})
	require.Equal(t, runs.HeldByWait, flaky.HeldBy)
	require.Equal(t, "flaky: attempt 2 of 4 after 1h0m0s: HTTP 503", flaky.Waiting)
	require.WithinDuration(t, time.Now().Add(time.Hour), flaky.NextRetryAt, time.Minute)
	require.EqualValues(t, "retryable", flaky.Error.Class)

	w.cancel(run)
	status = l.status(run.GetID())
	require.EqualValues(t, "cancelled", status.Status)
	require.EqualValues(t, "cancelled", status.Visits("flaky")[0].Status)
	require.EqualValues(t, "skipped", status.Visits("after")[0].Status)
	require.LessOrEqual(t, status.Calls, 2, "a run that has ended is not asked")
}

func TestStatusOfARunThatWaits(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	l := w.looker()
	run := w.start(book(`
  - step: flaky
    tool: http
    url: "{{ api }}/status/503"
    retry: [{when: error is defined, then: {max_attempts: 4, delay: 1h, jitter: none}}]
`), nil)
	status := l.until(run.GetID(), inState("flaky", "retry_pending"))
	require.EqualValues(t, "retry_pending", status.Status)
	require.Equal(t, runs.HeldByWait, status.HeldBy)

	w.terminates = true
	require.NoError(t, w.env.Client().TerminateWorkflow(t.Context(), run.GetID(), run.GetRunID(), "by a test"))
	status = l.status(run.GetID())
	require.EqualValues(t, "failed", status.Status)
	require.EqualValues(t, "cancelled", status.Visits("flaky")[0].Status)
	require.Equal(t, 1, status.Visits("flaky")[0].Attempt)
	require.Contains(t, status.Notes[0], "terminated")
}

// TestStatusSaysWhoCancelled: of a run that is being cancelled, and of one that was,
// the status tells who did it, when and why.
func TestStatusSaysWhoCancelled(t *testing.T) {
	t.Parallel()
	for name, loop := range map[string]string{
		"a step": "", "a loop": `loop: {collection: "{{ 1..40 }}", element: n, mode: parallel, batch: 1}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, api := newWorld(t), newGauge(t)
			l := w.looker()
			api.set(true)
			worker := w.spawn()
			run := w.start(book(`
  - step: fetch
    tool: http
    url: "{{ api }}/"
    retry: [{when: "{{ error is defined }}", then: {max_attempts: 3, delay: 1h}}]
    `+loop+`
`), map[string]any{"api": api.url})
			w.awaitWaiting(run)
			require.Nil(t, l.status(run.GetID()).Cancel)
			worker.Kill()
			before := time.Now()
			_, err := w.env.Client().WorkflowService().RequestCancelWorkflowExecution(t.Context(), &workflowservice.RequestCancelWorkflowExecutionRequest{
				Namespace: w.env.Namespace, WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: run.GetID()},
				RequestId: uuid.NewString(), Identity: "ada@clinic", Reason: "the wrong month",
			})
			require.NoError(t, err)
			said := func() {
				t.Helper()
				status := l.status(run.GetID())
				require.NotNil(t, status.Cancel)
				require.Equal(t, []string{"ada@clinic", "the wrong month"}, []string{status.Cancel.By, status.Cancel.Reason})
				require.WithinDuration(t, before, status.Cancel.At, patience)
				require.LessOrEqual(t, status.Calls, runs.StatusCalls)
			}
			said()
			w.work()
			_, err = w.outcome(run)
			require.NoError(t, err)
			said()
		})
	}
}

func elementsUpTo(n int) []any {
	elements := make([]any, n)
	for i := range elements {
		elements[i] = i
	}
	return elements
}

// TestStatusOfLoops: where loops of each kind are, with what their iterations are
// doing, in ten calls at most.
func TestStatusOfLoops(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		loop, url, step string
		elements        int
		counts          runs.Counts // without what varies
		state, heldBy   string
		listed          map[interpreter.Status]int // of the iterations, by state
	}{
		"a window full": {
			loop: "mode: parallel, max_concurrency: 5, batch: 1", url: "/slow?ms=60000", elements: 1000,
			counts: runs.Counts{Total: 1000, Running: 5, Pending: 995}, state: "running", heldBy: runs.HeldByWindow,
			listed: map[interpreter.Status]int{"running": 5},
		},
		"all wait": {
			loop: "mode: parallel, max_concurrency: 20, batch: 1", url: "/status/503", elements: 40,
			counts: runs.Counts{Total: 40, Waiting: 40}, state: "retry_pending", heldBy: runs.HeldByWait,
			listed: map[interpreter.Status]int{"retry_pending": 40},
		},
		"in order, the first waits": {
			loop: "mode: sequential, batch: 1", url: "/status/503", elements: 30,
			counts: runs.Counts{Total: 30, Waiting: 1, Pending: 29}, state: "retry_pending", heldBy: runs.HeldByWait,
			listed: map[interpreter.Status]int{"retry_pending": 1},
		},
		"some have failed": {
			loop: "mode: parallel, max_concurrency: 2, batch: 1", elements: 8,
			url:    "{{ item < 3 ? '/status/404' : item < 5 ? '/status/200' : '/slow?ms=60000' }}",
			counts: runs.Counts{Total: 8, Success: 2, Failed: 3, Running: 2, Pending: 1}, state: "running", heldBy: runs.HeldByWindow,
			listed: map[interpreter.Status]int{"failed": 3, "running": 2},
		},
		"what is left waits": {
			loop: "mode: parallel, max_concurrency: 20, batch: 1", url: "{{ item < 8 ? '/status/200' : '/status/503' }}", elements: 10,
			counts: runs.Counts{Total: 10, Success: 8, Waiting: 2}, state: "retry_pending", heldBy: runs.HeldByWait,
			listed: map[interpreter.Status]int{"retry_pending": 2},
		},
		"batches": {
			loop: "mode: parallel, max_concurrency: 20, batch: 10", url: "/status/503", elements: 100,
			counts: runs.Counts{Total: 100, Waiting: 100}, state: "retry_pending", heldBy: runs.HeldByWait,
			listed: map[interpreter.Status]int{"retry_pending": 100},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorking(t)
			l := w.looker()
			run := w.start(book(fmt.Sprintf(`
  - step: fetch
    tool: http
    url: "{{ api }}%s"
    timeout: 1h
    loop: {collection: "{{ elements }}", %s}
    retry: [{when: error.status == 503, then: {max_attempts: 4, delay: 1h, jitter: none}}]
`, test.url, test.loop)), map[string]any{"elements": elementsUpTo(test.elements)})

			status := l.until(run.GetID(), func(status *runs.Status) bool {
				visits := status.Visits("fetch")
				if len(visits) == 0 || visits[0].Loop == nil {
					return false
				}
				counts := *visits[0].Loop
				counts.WorkflowID, counts.PerSecond, counts.Left = "", 0, 0
				return counts == test.counts
			})
			step := status.Visits("fetch")[0]
			require.EqualValues(t, test.state, step.Status)
			require.EqualValues(t, test.state, status.Status)
			require.Equal(t, test.heldBy, step.HeldBy)
			if test.state == "retry_pending" {
				require.WithinDuration(t, time.Now().Add(time.Hour), step.NextRetryAt, time.Minute)
			}
			if test.counts.Success > 0 {
				require.Positive(t, step.Loop.PerSecond)
				require.Positive(t, step.Loop.Left)
				require.Equal(t, test.counts.Waiting > 0, step.Loop.Left > time.Hour.Seconds()/2, "it goes on in an hour")
			}
			l.AddIterations(t.Context(), status, step)
			listed := map[interpreter.Status]int{}
			for _, iteration := range step.Iterations {
				listed[iteration.Status]++
				if iteration.Status == "retry_pending" {
					require.Equal(t, []int{1, 4}, []int{iteration.Attempt, iteration.MaxAttempts})
					require.Equal(t, fmt.Sprintf("fetch[%d]: attempt 2 of 4 after 1h0m0s: HTTP 503", iteration.Index), iteration.Waiting)
					require.Equal(t, 503, iteration.Error.Status)
				}
				if iteration.Status == "failed" {
					require.Equal(t, []int{1, 0}, []int{iteration.Attempt, iteration.MaxAttempts}, "what has ended gets no more attempts")
				}
			}
			require.Equal(t, test.listed, listed)
			w.cancel(run)
		})
	}
}

// TestStatusUnderARateLimit: who waits for a turn is told from who waits for a
// retry.
func TestStatusUnderARateLimit(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	l := w.looker()
	run := w.start(book(fmt.Sprintf(`
  - step: fetch
    tool: http
    url: "{{ api }}/status/200"
    rate_limit: {requests: 1, per: 1h, key: %s}
    loop: {collection: [1, 2, 3], mode: parallel, batch: 1}
`, w.queue)), nil)
	status := l.until(run.GetID(), func(status *runs.Status) bool {
		for _, step := range status.Visits("fetch") {
			return step.Loop != nil && step.Loop.Success == 1 && step.Loop.Waiting == 2
		}
		return false
	})
	step := status.Visits("fetch")[0]
	l.AddIterations(t.Context(), status, step)
	require.Empty(t, status.Notes)
	require.Len(t, step.Iterations, 2)
	for _, iteration := range step.Iterations {
		require.Equal(t, runs.HeldByRateLimit, iteration.HeldBy)
		require.Nil(t, iteration.Error)
	}
	w.cancel(run)
}

// TestFind: a run by its ID, the beginning of one, and as the newest.
func TestFind(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	l := w.looker()
	source := book("\n  - step: call\n    tool: http\n    url: \"{{ api }}/status/404\"\n    loop: {collection: [1]}\n")
	first, second := w.start(source, nil), w.start(source, nil) // their IDs differ by what stands at the end of one
	for _, run := range []client.WorkflowRun{first, second} {
		_, err := w.outcome(run)
		require.NoError(t, err)
	}
	ctx := t.Context()

	found, err := l.Find(ctx, first.GetID(), "")
	require.NoError(t, err, "a whole ID, and the beginning of another")
	require.Equal(t, first.GetID(), found.WorkflowID)
	require.EqualValues(t, "failed", found.Status)
	found, err = l.Find(ctx, second.GetID()[:len(second.GetID())-1], "")
	require.NoError(t, err)
	require.Equal(t, second.GetID(), found.WorkflowID)
	require.Equal(t, second.GetRunID(), found.RunID)

	var ambiguous *runs.AmbiguousError
	_, err = l.Find(ctx, first.GetID()[:len(first.GetID())-1], "")
	require.ErrorAs(t, err, &ambiguous)
	require.Equal(t, []string{first.GetID(), second.GetID()}, ambiguous.IDs)

	var unknown *runs.UnknownError
	_, err = l.Find(ctx, "it's"+first.GetID(), "")
	require.ErrorAs(t, err, &unknown)
	require.ErrorIs(t, err, runs.ErrNotFound)
	open := w.start(book("\n  - {step: ask, tool: webhook}\n"), nil) // the list that is looked through begins with such runs
	require.Eventually(t, func() bool {
		_, err = l.Find(ctx, open.GetID()[1:], "")
		return errors.As(err, &unknown) && unknown.Nearest == open.GetID()
	}, patience, tick, "%v", err)
	w.cancel(open)

	var no *runs.NoRunError
	_, err = l.Find(ctx, first.GetID()+"/call#1/0", "")
	require.ErrorAs(t, err, &no)
	require.Equal(t, first.GetID(), no.Run)

	newest, err := l.Find(ctx, "", "")
	require.NoError(t, err)
	require.False(t, newest.StartedAt.Before(found.StartedAt))
	listed, err := l.List(ctx, runs.Filter{Status: "failed", Since: found.StartedAt, Limit: 1})
	require.NoError(t, err)
	require.Len(t, listed.Runs, 1)
}

// TestStatusOfLargeLoops: the size of a loop does not show in what its
// status takes.
func TestStatusOfLargeLoops(t *testing.T) {
	t.Parallel()
	sizes := []int{10, 1000}
	if *soak {
		sizes = append(sizes, 100_000)
	}
	for _, size := range sizes {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			payloads, err := host.PayloadLimits(w.store, func(string) (string, bool) { return "", false })
			require.NoError(t, err)
			w.resources.Payloads = payloads
			w.workWith(w.env.Dial(t, w.store.ClientOptions(client.Options{Logger: quiet{}})))
			w.env = w.env.WithPayloadStore(t)
			l := w.looker()
			run := w.start(book(`
  - step: fetch
    tool: http
    url: "{{ api }}/slow?ms={{ item < 5 ? 0 : 60000 }}"
    timeout: 1h
    loop: {collection: "{{ elements }}", mode: parallel, max_concurrency: 100}
`), map[string]any{"elements": elementsUpTo(size)})
			l.until(run.GetID(), func(status *runs.Status) bool {
				for _, step := range status.Visits("fetch") {
					return step.Loop != nil && step.Loop.Running > 0
				}
				return false
			})
			took := make([]time.Duration, 11)
			for i := range took {
				began := time.Now()
				l.status(run.GetID())
				took[i] = time.Since(began)
			}
			calls := l.calls.Load()
			slices.Sort(took) // the first looks wait while a window full of children begins
			t.Logf("status of %d iterations: %d calls, %s in the median, at most %s", size, calls, took[len(took)/2], took[len(took)-1])
			began := time.Now()
			l.calls.Store(0)
			_, err = l.List(t.Context(), runs.Filter{Limit: 20})
			require.NoError(t, err)
			t.Logf("list: %d calls, %s", l.calls.Load(), time.Since(began))
			w.terminates = true
			require.NoError(t, w.env.Client().TerminateWorkflow(t.Context(), run.GetID(), run.GetRunID(), "by a test"))
		})
	}
}

// TestListWithoutAttributes: a namespace that does not know our search attributes
// lists runs, and says why it cannot choose.
func TestListWithoutAttributes(t *testing.T) {
	t.Parallel()
	env := testenv.Temporal(t)
	namespace := env.NewTaskQueue()
	_, err := env.Client().WorkflowService().RegisterNamespace(t.Context(), &workflowservice.RegisterNamespaceRequest{
		Namespace: namespace, WorkflowExecutionRetentionPeriod: durationpb.New(24 * time.Hour),
	})
	require.NoError(t, err)
	reader := &runs.Reader{Client: env.Dial(t, client.Options{Namespace: namespace, Logger: quiet{}}), Namespace: namespace}
	require.Eventually(t, func() bool {
		_, err = reader.List(t.Context(), runs.Filter{})
		return err == nil
	}, patience, tick, "a new namespace is known after some seconds")
	list, err := reader.List(t.Context(), runs.Filter{Status: "failed", Since: time.Now().Add(-time.Hour), Limit: 5})
	require.NoError(t, err)
	require.Empty(t, list.Runs)
	_, err = reader.List(t.Context(), runs.Filter{Playbook: "patients"})
	require.ErrorIs(t, err, runs.ErrNoAttributes)
	_, err = reader.List(t.Context(), runs.Filter{Status: "partial_success"})
	require.ErrorIs(t, err, runs.ErrNoAttributes)
	var unknown *runs.UnknownError
	_, err = reader.Find(t.Context(), "", "")
	require.ErrorAs(t, err, &unknown)
	require.EqualError(t, err, "there are no runs yet")
}

// TestStatusOfWhatWaitsForASlot: iterations whose waits are over wait for a place in the
// window of their loop and for nothing else.
func TestStatusOfWhatWaitsForASlot(t *testing.T) {
	t.Parallel()
	w, api := newWorking(t), newGauge(t)
	l := w.looker()
	api.set(true)
	run := w.start(book(`
  - step: fetch
    tool: http
    url: "{{ api }}/"
    params: {takes: 1s}
    retry: [{when: "{{ error is defined }}", then: {max_attempts: 2, delay: 1h}}]
    loop: {collection: "{{ 1..10 }}", element: n, mode: parallel, max_concurrency: 2, batch: 1}
`), map[string]any{"api": api.url})
	l.until(run.GetID(), func(status *runs.Status) bool {
		return len(status.Visits("fetch")) == 1 && status.Visits("fetch")[0].Loop.Waiting == 10
	})
	api.set(false)
	w.steers(run, protocol.RetryNowUpdate, protocol.CommandInput{})
	status := l.until(run.GetID(), func(status *runs.Status) bool {
		visits := status.Visits("fetch")
		if len(visits) == 0 { // the run did not answer in time
			return false
		}
		c := visits[0].Loop
		return c.Waiting == 0 && c.Pending > 0 && c.Running > 0 // a loop that gives no answer is pending whole
	})
	step := status.Visits("fetch")[0]
	require.Equal(t, 10, step.Loop.CountDone()+step.Loop.Running+step.Loop.Pending)
	require.Equal(t, runs.HeldByWindow, step.HeldBy)
	require.Zero(t, step.NextRetryAt)
	l.AddIterations(t.Context(), status, step)
	for _, iteration := range step.Iterations {
		held := map[interpreter.Status]string{interpreter.Running: "", interpreter.Pending: runs.HeldByWindow}
		require.Equal(t, held[iteration.Status], iteration.HeldBy, "%+v", iteration)
		require.Contains(t, held, iteration.Status)
	}
	w.endsAs(run, interpreter.Completed)
}

// TestStatusOfABatchThatAnActivityDrives: which iterations of a batch run, have ended or have not begun is shown while one activity
// drives all of them.
func TestStatusOfABatchThatAnActivityDrives(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	l := w.looker()
	held := make(chan struct{})
	api := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/2":
			rw.WriteHeader(http.StatusNotFound)
		case "/4", "/5":
			<-held
		}
	}))
	release := sync.OnceFunc(func() { close(held) })
	t.Cleanup(func() { release(); api.Close() })
	run := w.start(book(`
  - step: fetch
    tool: http
    url: "{{ api }}/{{ n }}"
    loop: {collection: "{{ 1..8 }}", element: n, mode: parallel, max_concurrency: 2, batch: 8}
`), map[string]any{"api": api.URL})
	status := l.until(run.GetID(), func(status *runs.Status) bool {
		return len(status.Visits("fetch")) == 1 && status.Visits("fetch")[0].Loop.CountDone() == 3
	})
	for _, queried := range []bool{false, true} {
		if queried {
			l.AddIterations(t.Context(), status, status.Visits("fetch")[0])
		}
		c := status.Visits("fetch")[0].Loop
		require.Equal(t, [5]int{2, 1, 0, 2, 3}, [5]int{c.Success, c.Failed, c.Waiting, c.Running, c.Pending})
	}
	release()
	w.endsAs(run, interpreter.Partial)
}

// TestStatusOfBatchesThatWait: what has ended in a batch is done while others of it
// wait, whether its children could be asked or there are too many.
func TestStatusOfBatchesThatWait(t *testing.T) {
	t.Parallel()
	for _, batches := range []int{2, 12} {
		t.Run(fmt.Sprint(batches), func(t *testing.T) {
			t.Parallel()
			w := newWorking(t)
			l := w.looker()
			run := w.start(book(fmt.Sprintf(`
  - step: fetch
    tool: http
    url: "{{ api }}/status/{{ [503, 404, 200, 200, 200][n %% 5] }}"
    retry: [{when: "{{ error.status == 503 }}", then: {max_attempts: 2, delay: 1h}}]
    loop: {collection: "{{ 0..%d }}", element: n, mode: parallel, max_concurrency: 100, batch: 5}
`, 5*batches-1)), nil)
			status := l.until(run.GetID(), inState("fetch", "retry_pending"))
			for _, asked := range []bool{false, true} {
				if asked {
					l.AddIterations(t.Context(), status, status.Visits("fetch")[0])
				}
				c := status.Visits("fetch")[0].Loop
				require.Equal(t, [5]int{3 * batches, batches, batches, 0, 0}, [5]int{c.Success, c.Failed, c.Waiting, c.Running, c.Pending})
				require.Equal(t, [2]string{"retry_pending", runs.HeldByWait}, [2]string{string(status.Status), status.HeldBy})
			}
			require.Len(t, status.Visits("fetch")[0].Iterations, 2*batches)
			w.cancel(run)
		})
	}
}

// TestStatusSaysWhoseWorkerIsAway: a queued run shows who has the slot and since when, and that no worker
// runs the holder, or the workflow that gives slots, for as long as that is so.
func TestStatusSaysWhoseWorkerIsAway(t *testing.T) {
	t.Parallel()
	const keyed = `apiVersion: reprise/v1
kind: Playbook
metadata: {name: %s}
concurrency: {shared: %q}
workflow: [{step: ask, tool: approval, message: "Fine?"}]
`
	for name, polled := range map[string]bool{"the holder": false, "the queue": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ours, theirs := newWorking(t), newWorld(t)
			source := fmt.Sprintf(keyed, ours.queue, ours.queue)
			if !polled { // the first run has the queue begin where its worker is
				first := ours.enter("first", source, "")
				ours.await(first, "ask", interpreter.Awaiting)
				ours.cancel(first)
			}
			process := theirs.spawn()
			holder := theirs.enter("holder", source, "")
			theirs.await(holder, "ask", interpreter.Awaiting)
			waiting := ours.enter("waiting", source, "")
			ours.awaitTicket(waiting, queue.Queued)
			status := ours.status(waiting)
			require.Nil(t, status.Queue.NoWorker)
			require.Equal(t, []string{holder.GetID()}, status.Queue.Holders)
			require.WithinRange(t, status.Queue.HoldersSince[0], theirs.status(holder).StartedAt, status.At)
			process.Kill()
			status = ours.status(waiting)
			want := &runs.MissingWorker{WorkflowID: holder.GetID(), TaskQueue: theirs.queue}
			if polled {
				want.WorkflowID = status.Queue.WorkflowID
			}
			require.Equal(t, want, status.Queue.NoWorker)
			require.Equal(t, interpreter.Queued, status.Status)
			require.LessOrEqual(t, status.Calls, runs.StatusCalls)
			held := theirs.status(holder)
			require.Equal(t, runs.HeldByNoWorker, held.HeldBy)
			require.WithinRange(t, held.NoWorkerSince, held.StartedAt.Add(-time.Minute), held.At)
			theirs.spawn()
			require.Eventually(t, func() bool { return ours.status(waiting).Queue.NoWorker == nil }, patience, tick)
			ours.cancel(waiting)
			theirs.cancel(holder)
		})
	}
}

// TestStatusSaysWhoseWorkerKeepsAState: a step that waits for its state shows that no worker runs the run that
// holds it, or the workflow that gives it, as a queued run does.
func TestStatusSaysWhoseWorkerKeepsAState(t *testing.T) {
	t.Parallel()
	for name, polled := range map[string]bool{"the holder": false, "the queue": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ours, theirs := newWorking(t), newWorld(t)
			door, _ := newLobby(t)
			source := ours.loading("")
			if !polled { // the first run has the queue begin where its worker is
				first := ours.enter("first", source, door.url)
				ours.await(first, "orders", interpreter.Running)
				ours.cancel(first)
			}
			process := theirs.spawn()
			holder := theirs.enter("holder", source, door.url)
			require.Eventually(t, func() bool { return slices.Contains(door.present(), holder.GetID()) }, patience, tick)
			waiting := ours.enter("waiting", source, door.url)
			ours.await(waiting, "orders", interpreter.Pending)
			position := func() *runs.QueuePosition {
				status := ours.status(waiting)
				require.LessOrEqual(t, status.Calls, runs.StatusCalls)
				require.NotNil(t, status.Steps[0].Queue)
				return status.Steps[0].Queue
			}
			found := position()
			require.Nil(t, found.NoWorker)
			require.Equal(t, []string{holder.GetID()}, found.Holders)
			require.Equal(t, 1, found.Position)
			process.Kill()
			want := &runs.MissingWorker{WorkflowID: holder.GetID(), TaskQueue: theirs.queue}
			if polled {
				want.WorkflowID = found.WorkflowID
			}
			require.Equal(t, want, position().NoWorker)
			theirs.spawn()
			require.Eventually(t, func() bool { return position().NoWorker == nil }, patience, tick)
			ours.cancel(waiting)
			theirs.cancel(holder)
		})
	}
}
