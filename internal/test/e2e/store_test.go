package e2e_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/proto"

	"reprise/activities"
	"reprise/internal/base/payload"
	"reprise/internal/observe/ending"
	"reprise/internal/observe/render"
	"reprise/internal/observe/runs"
	"reprise/internal/program/host"
	"reprise/internal/program/steer"
	"reprise/internal/test/testenv"
	"reprise/interpreter"
	"reprise/workflows/protocol"
)

// shelf is a payload store in a directory of its own, which can be taken away.
type shelf struct {
	t     *testing.T
	dir   string
	store *payload.Store
}

// newShelved is a world with a worker and a store that only it has.
func newShelved(t *testing.T, patience time.Duration) (*world, *shelf) {
	t.Helper()
	w := newWorld(t)
	s := &shelf{t: t, dir: filepath.Join(t.TempDir(), "payloads")}
	address, err := payload.DirectoryAddress(s.dir)
	require.NoError(t, err)
	s.store, err = payload.Open(t.Context(), address)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.store.Close()) })
	w.resources.Payloads, err = host.PayloadLimits(s.store, func(string) (string, bool) { return "", false })
	require.NoError(t, err)
	w.resources.Payloads.Patience = patience
	w.env, w.store, w.replays = w.env.WithStore(t, s.store), s.store, 1
	return w, s
}

func (s *shelf) options() client.Options {
	return host.ClientOptions(s.store, client.Options{Logger: silent{}}, nil)
}

// leave takes the store away: its directory is a file. Nothing can be read or
// written, by whoever.
func (s *shelf) leave() {
	require.NoError(s.t, os.Rename(s.dir, s.dir+".away"))
	require.NoError(s.t, os.WriteFile(s.dir, nil, 0o600))
}

// comeBack is the end of leave.
func (s *shelf) comeBack() {
	require.NoError(s.t, os.Remove(s.dir))
	require.NoError(s.t, os.Rename(s.dir+".away", s.dir))
}

// largeAPI answers requests with large texts and counts them by their path.
type largeAPI struct {
	*httptest.Server
	mu       sync.Mutex
	requests map[string]int
	total    int
	bytes    int
	onCall   func(total int)
}

func newLargeAPI(t *testing.T, bytes int) *largeAPI {
	t.Helper()
	api := &largeAPI{requests: map[string]int{}, bytes: bytes}
	api.Server = httptest.NewServer(api)
	t.Cleanup(api.Close)
	return api
}

func (a *largeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	a.requests[r.URL.Path]++
	a.total++
	if a.onCall != nil {
		a.onCall(a.total)
	}
	a.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	// Large answers all differ, as equal ones would be kept once.
	_, _ = fmt.Fprintf(w, "%q", r.URL.Path+strings.Repeat("x", a.bytes))
}

func (a *largeAPI) counts() (requests map[string]int, total int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	copied := map[string]int{}
	for path, n := range a.requests {
		copied[path] = n
	}
	return copied, a.total
}

// TestTheStoreIsAwayInALoop: what was sent is not sent again, and no element is
// lost. The outage is longer than all deliveries of an attempt take.
func TestTheStoreIsAwayInALoop(t *testing.T) {
	t.Parallel()
	for name, loop := range map[string]string{
		"alone": "", "batches": ", batch: 6", "in sequence": ", batch: 8, mode: sequential",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, s := newShelved(t, 0)
			api := newLargeAPI(t, 200_000)
			away := 12 * time.Second
			api.onCall = func(total int) {
				if total == 6 {
					s.leave()
					time.AfterFunc(away, s.comeBack)
				}
			}
			w.workWith(w.env.Dial(t, s.options()))
			run := w.start(book(`
  - step: send
    tool: http
    method: POST
    url: "{{ largeAPI }}/{{ n }}"
    loop: {collection: "{{ 0..23 }}", element: n`+mode(loop)+`}
output: "{{ send.stats.success }}"
`), map[string]any{"largeAPI": api.URL})
			result, err := w.outcome(run)
			require.NoError(t, err)
			requests, total := api.counts()
			require.EqualValues(t, "completed", result.Status, "%+v", result.Error)
			require.Equal(t, 24, result.Result.Data)
			require.Equal(t, 24, total, "%v", requests)
			require.Len(t, requests, 24)
		})
	}
}

func mode(options string) string {
	if strings.Contains(options, "mode:") {
		return options
	}
	return ", mode: parallel, max_concurrency: 12" + options
}

// TestTheStoreIsAwayBeforeAnAttempt: nothing is sent until the store is back.
func TestTheStoreIsAwayBeforeAnAttempt(t *testing.T) {
	t.Parallel()
	w, s := newShelved(t, 0)
	api := newLargeAPI(t, 200_000)
	s.leave()
	w.workWith(w.env.Dial(t, s.options()))
	run := w.start(book(`
  - step: send
    tool: http
    method: POST
    url: "{{ largeAPI }}/a"
output: "{{ len(send) }}"
`), map[string]any{"largeAPI": api.URL})
	w.awaitHeartbeat(run)
	_, total := api.counts()
	require.Zero(t, total)
	s.comeBack()
	result, err := w.outcome(run)
	require.NoError(t, err)
	require.EqualValues(t, "completed", result.Status, "%+v", result.Error)
	require.Equal(t, 200_002, result.Result.Data)
	_, total = api.counts()
	require.Equal(t, 1, total)
}

// TestTheStoreStaysAway: an attempt that has not begun fails in a way that
// policies may answer; nothing was sent.
func TestTheStoreStaysAway(t *testing.T) {
	t.Parallel()
	w, s := newShelved(t, time.Second)
	api := newLargeAPI(t, 200_000)
	s.leave()
	w.workWith(w.env.Dial(t, s.options()))
	result := w.ends("failed", book(`
  - step: send
    tool: http
    method: POST
    url: "{{ largeAPI }}/a"
    retry:
      - when: "{{ error.kind == 'payload_store' and error.class == 'retryable' }}"
        then: {max_attempts: 2, initial_delay: 0.1s}
`), map[string]any{"largeAPI": api.URL})
	require.EqualValues(t, "payload_store", result.Error.Kind)
	require.Contains(t, result.Error.Message, "the attempt was not started, because")
	require.Contains(t, result.Error.Message, s.store.Name())
	require.Equal(t, 2, step(t, result, "send").Attempts)
	_, total := api.counts()
	require.Zero(t, total)
	s.comeBack()
}

// TestAnAnswerThatTheStoreDoesNotAccept goes into the history; one that is too
// large for that is a failure that no policy answers, as it was sent.
func TestAnAnswerThatTheStoreDoesNotAccept(t *testing.T) {
	t.Parallel()
	for bytes, status := range map[int]string{200_000: "completed", 3_000_000: "failed"} {
		t.Run(fmt.Sprint(bytes), func(t *testing.T) {
			t.Parallel()
			w, s := newShelved(t, time.Second)
			api := newLargeAPI(t, bytes)
			api.onCall = func(int) { s.leave() }
			w.workWith(w.env.Dial(t, s.options()))
			result := w.ends(status, book(`
  - step: send
    tool: http
    method: POST
    url: "{{ largeAPI }}/a"
    retry:
      - when: "{{ error.kind == 'payload_store' }}"
        then: {max_attempts: 5, initial_delay: 0.1s}
output: "{{ len(send) }}"
`), map[string]any{"largeAPI": api.URL})
			_, total := api.counts()
			require.Equal(t, 1, total)
			if status == "failed" {
				require.EqualValues(t, "payload_store", result.Error.Kind)
				require.EqualValues(t, "retryable", result.Error.Class)
				require.Regexp(t, `the attempt was made, .* sha256/[0-9a-f/]+ .* to the payload store file://`, result.Error.Message)
			}
			s.comeBack()
		})
	}
}

// TestAWorkerStopsWhileItStoresAnAnswer: the answer is not lost, and not asked for
// again.
func TestAWorkerStopsWhileItStoresAnAnswer(t *testing.T) {
	t.Parallel()
	w, s := newShelved(t, 0)
	api := newLargeAPI(t, 200_000)
	sent := make(chan struct{})
	api.onCall = func(total int) {
		if total == 1 {
			s.leave()
			close(sent)
		}
	}
	stop := w.workUntil(w.env.Dial(t, s.options()))
	run := w.start(book(`
  - step: send
    tool: http
    method: POST
    url: "{{ largeAPI }}/a"
output: "{{ len(send) }}"
`), map[string]any{"largeAPI": api.URL})
	testenv.Receive(t, sent, "the first request")
	stop()
	s.comeBack()
	w.workWith(w.env.Dial(t, s.options()))
	result, err := w.outcome(run)
	require.NoError(t, err)
	require.EqualValues(t, "completed", result.Status, "%+v", result.Error)
	require.Equal(t, 200_002, result.Result.Data)
	_, total := api.counts()
	require.Equal(t, 1, total)
}

// TestARequestThatCannotBeRead: an attempt whose input is in a store that is away
// is made when the store is back.
func TestARequestThatCannotBeRead(t *testing.T) {
	t.Parallel()
	w, s := newShelved(t, 0)
	arrived, first := make(chan struct{}), true
	var requests atomic.Int32
	api := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		_, _ = io.Copy(io.Discard, r.Body)
		if first {
			first = false
			close(arrived)
			<-r.Context().Done() // until the worker goes away
		}
	}))
	t.Cleanup(api.Close)
	stop := w.workUntil(w.env.Dial(t, s.options()))
	run := w.start(book(`
  - step: send
    tool: http
    method: PUT
    url: "{{ to }}"
    body: "{{ large }}"
output: "{{ send is defined }}"
`), map[string]any{"to": api.URL, "large": strings.Repeat("x", 200_000)})
	testenv.Receive(t, arrived, "the first request")
	s.leave()
	stop()
	w.workWith(w.env.Dial(t, s.options()))
	w.awaitPending(run, func(pending *workflowpb.PendingActivityInfo) bool {
		return strings.Contains(pending.GetLastFailure().GetMessage(), "from the payload store")
	})
	s.comeBack()
	result, err := w.outcome(run)
	require.NoError(t, err)
	require.EqualValues(t, "completed", result.Status, "%+v", result.Error)
	require.Equal(t, 1, step(t, result, "send").Attempts)
	require.EqualValues(t, 2, requests.Load())
}

// TestARunWhoseValuesAreGone can be cancelled, and its children end with it:
// whether it has waited since, or has tried in vain to go on.
func TestARunWhoseValuesAreGone(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ loop, delay string }{
		"waits":          {"", "300s"},
		"tries":          {"", "3s"},
		"with a loop":    {"loop: {collection: [1, 2], mode: parallel}", "300s"},
		"a loop, trying": {"loop: {collection: [1, 2], mode: parallel}", "3s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, s := newShelved(t, 0)
			api := newLargeAPI(t, 200_000)
			stop := w.workUntil(w.env.Dial(t, s.options()))
			run := w.start(book(`
  - step: load
    tool: http
    url: "{{ largeAPI }}/a"
    next: hang
  - step: hang
    tool: http
    url: "{{ api }}/echo"
    params: {size: "{{ len(load) }}"}
    `+test.loop+`
    retry:
      - when: "{{ true }}"
        then: {max_attempts: 50, initial_delay: `+test.delay+`}
`), map[string]any{"largeAPI": api.URL})
			w.awaitRequests("/echo", 1)
			stop()
			require.NoError(t, os.RemoveAll(filepath.Join(s.dir, "sha256")))
			w.workWith(w.env.Dial(t, s.options()))
			if test.delay == "3s" {
				require.Eventually(t, func() bool { return w.failing(run) }, patience, tick)
			}
			began := time.Now()
			require.NoError(t, w.env.Client().CancelWorkflow(t.Context(), run.GetID(), run.GetRunID()))
			result, err := ending.WaitForResult(t.Context(), run)
			require.NoError(t, err)
			t.Log("cancelled within", time.Since(began))
			require.EqualValues(t, "cancelled", result.Status)
			require.Regexp(t, goneMessage, result.Warnings[0])
			require.Eventually(t, func() bool {
				for _, history := range testenv.Histories(t, w.env.Client(), run.GetID(), run.GetRunID()) {
					if !slices.Contains(append(testenv.OrderlyEndings(), "Terminated"), history.Ending()) {
						return false
					}
				}
				return true
			}, patience, tick)
		})
	}
}

// TestARunWhoseValuesAreAway goes on when they are back, or ends in order where it
// was cancelled meanwhile: nothing is given up because a store is away.
func TestARunWhoseValuesAreAway(t *testing.T) {
	t.Parallel()
	for _, cancelled := range []bool{false, true} {
		t.Run(fmt.Sprint("cancelled ", cancelled), func(t *testing.T) {
			t.Parallel()
			w, s := newShelved(t, 0)
			api := newLargeAPI(t, 200_000)
			stop := w.workUntil(w.env.Dial(t, s.options()))
			run := w.start(book(`
  - step: load
    tool: http
    url: "{{ largeAPI }}/a"
    next: again
  - step: again
    tool: http
    url: "{{ api }}/echo"
    params: {size: "{{ len(load) }}"}
    retry:
      - when: "{{ _retry.index < 2 }}"
        then: {max_attempts: 3, initial_delay: 2s}
output: "{{ len(load) }}"
`), map[string]any{"largeAPI": api.URL})
			w.awaitRequests("/echo", 1)
			stop()
			s.leave()
			w.workWith(w.env.Dial(t, s.options()))
			require.Eventually(t, func() bool { return w.pendingTaskAttempt(run) >= 2 }, patience, tick)
			if cancelled {
				require.NoError(t, w.env.Client().CancelWorkflow(t.Context(), run.GetID(), run.GetRunID()))
			}
			attempt := w.pendingTaskAttempt(run)
			require.Never(t, func() bool { return w.pendingTaskAttempt(run) == 0 }, 3*time.Second, 100*time.Millisecond,
				"the run ended at attempt %d of a task", attempt)
			s.comeBack()
			began := time.Now()
			result, err := w.outcome(run)
			require.NoError(t, err)
			t.Log("went on within", time.Since(began))
			if cancelled {
				require.EqualValues(t, "cancelled", result.Status)
				require.EqualValues(t, "completed", step(t, result, "load").Status)
				return
			}
			require.EqualValues(t, "completed", result.Status, "%+v", result.Error)
			require.Equal(t, 200_002, result.Result.Data)
		})
	}
}

// pendingTaskAttempt is that of the workflow task that the run waits for, 0 for
// none.
func (w *world) pendingTaskAttempt(run client.WorkflowRun) int {
	w.t.Helper()
	described, err := w.env.Client().DescribeWorkflowExecution(w.t.Context(), run.GetID(), run.GetRunID())
	require.NoError(w.t, err)
	return int(described.GetPendingWorkflowTask().GetAttempt())
}

const goneMessage = `read sha256/[0-9a-f/]+ \(\d+ bytes\) from the payload store file://.*: the value is missing`

// failing reports whether a workflow task of the run or of its children has
// failed.
func (w *world) failing(run client.WorkflowRun) bool {
	w.t.Helper()
	for _, history := range testenv.Histories(w.t, w.env.Client(), run.GetID(), run.GetRunID()) {
		described, err := w.env.Client().DescribeWorkflowExecution(w.t.Context(), history.WorkflowID, history.RunID)
		require.NoError(w.t, err)
		if described.GetPendingWorkflowTask().GetAttempt() > 1 {
			return true
		}
	}
	return false
}

// workUntil starts a worker that stops when it is told to.
func (w *world) workUntil(c client.Client) (stop func()) {
	w.t.Helper()
	catalogue := activities.NewCatalogue(w.resources)
	worker := host.NewWorker(c, catalogue, host.Options{TaskQueue: w.queue, StopTimeout: time.Second})
	require.NoError(w.t, worker.Start())
	return func() {
		worker.Stop()
		require.NoError(w.t, catalogue.Close())
	}
}

// awaitHeartbeat waits until an activity of the run has shown that it is alive.
func (w *world) awaitHeartbeat(run client.WorkflowRun) {
	w.t.Helper()
	w.awaitPending(run, func(pending *workflowpb.PendingActivityInfo) bool { return pending.GetLastHeartbeatTime() != nil })
}

// awaitProgress waits until every running activity of the run and its child runs has shown after an instant how far it is.
func (w *world) awaitProgress(run client.WorkflowRun, after time.Time) {
	w.t.Helper()
	require.Eventually(w.t, func() bool {
		shown := 0
		for _, history := range testenv.Histories(w.t, w.env.Client(), run.GetID(), run.GetRunID()) {
			described, err := w.env.Client().DescribeWorkflowExecution(w.t.Context(), history.WorkflowID, history.RunID)
			require.NoError(w.t, err)
			for _, activity := range described.GetPendingActivities() {
				if !activity.GetLastHeartbeatTime().AsTime().After(after) {
					return false
				}
				shown++
			}
		}
		return shown > 0
	}, patience, tick, "no heartbeat")
}

// awaitPending waits until one of the pending activities of the run is as it should be.
func (w *world) awaitPending(run client.WorkflowRun, there func(*workflowpb.PendingActivityInfo) bool) {
	w.t.Helper()
	require.Eventually(w.t, func() bool {
		described, err := w.env.Client().DescribeWorkflowExecution(w.t.Context(), run.GetID(), run.GetRunID())
		return err == nil && slices.ContainsFunc(described.GetPendingActivities(), there)
	}, patience, tick)
}

// TestThePlaybookIsStoredOnce: whatever number of children and activities get it, a
// playbook of some length is in the store once, and in no history but that of its
// run. One that is short stays in Temporal.
func TestThePlaybookIsStoredOnce(t *testing.T) {
	t.Parallel()
	const marked = "# a line that is nowhere else\n"
	for name, lines := range map[string]int{"long": 200, "short": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, s := newShelved(t, 0)
			w.workWith(w.env.Dial(t, s.options()))
			result := w.ends("completed", book(`
  - step: single
    tool: http
    url: "{{ api }}/echo"
    loop: {collection: [a, b, c], mode: parallel, batch: 1}
    next: [{step: batched}]
  - step: batched
    tool: http
    url: "{{ api }}/echo"
    loop: {collection: [a, b, c, d, e], mode: parallel, batch: 3}
`)+strings.Repeat(marked, lines), nil)
			require.Equal(t, 5, result.Steps[1].Loop.Stats.Success)
			reader := &runs.Reader{Client: w.env.Client()} // and no store
			run, err := reader.Run(t.Context(), w.histories[0].WorkflowID, "")
			require.NoError(t, err)
			input, err := reader.LoopInput(t.Context(), run.Loops[1])
			require.NoError(t, err, "what a child does can be read without the store")
			require.Len(t, input.Elements, 5)
			children := 0
			for _, history := range w.histories {
				encoded, err := proto.Marshal(history.History)
				require.NoError(t, err)
				times := bytes.Count(encoded, []byte(strings.TrimSpace(marked)))
				started := history.History.Events[0].GetWorkflowExecutionStartedEventAttributes()
				if history.Type == protocol.PlaybookWorkflowName {
					continue
				}
				children++
				require.Len(t, started.Input.Payloads, 2)
				require.NotContains(t, string(started.Input.Payloads[0].Data), marked[:len(marked)-1])
				require.Equal(t, lines == 1, times > 0, "%s has it %d times", history, times)
			}
			require.Equal(t, 2+3+2, children)
			stored, err := filepath.Glob(filepath.Join(s.dir, "sha256", "*", "*"))
			require.NoError(t, err)
			stored = slices.DeleteFunc(stored, func(file string) bool {
				info, err := os.Stat(file)
				return err != nil || info.Size() >= payload.Threshold // what asks whether the store is there
			})
			require.Len(t, stored, map[bool]int{true: 1, false: 0}[lines > 1])
		})
	}
}

// TestCommandsWhileTheStoreIsAway: whoever looks at a run, steers or answers it learns that the payload store fails, and an
// answer is kept until the store is back.
func TestCommandsWhileTheStoreIsAway(t *testing.T) {
	t.Parallel()
	w, s := newShelved(t, 0)
	stop := w.workUntil(w.env.Dial(t, s.options()))
	run := w.start(book(`
  - step: ask
    tool: approval
    message: go on?
    next: end
  - step: end
    tool: http
    url: "{{ api }}/echo"
output: "{{ len(large) }}"
`), map[string]any{"large": strings.Repeat("x", 200_000)})
	require.Eventually(t, func() bool { return w.status(run).Status == interpreter.Awaiting }, patience, tick)
	stop()
	s.leave()
	w.workWith(w.env.Dial(t, s.options()))
	reader := &runs.Reader{Client: w.env.Client(), Store: s.store, Namespace: w.env.Namespace}
	var status *runs.Status
	require.Eventually(t, func() bool {
		status = w.status(run)
		return status.HeldBy == runs.HeldByStore
	}, patience, tick, "%+v", status)
	require.Contains(t, status.Failure, "from the payload store "+s.store.Name())
	require.Contains(t, status.Notes[0], `but the payload store fails: read sha256/`)
	require.Empty(t, render.HelpCommands(status), "no worker has to be started")
	require.LessOrEqual(t, status.Calls, runs.StatusCalls)

	found, err := reader.Find(t.Context(), run.GetID(), "")
	require.NoError(t, err)
	_, err = reader.Playbook(t.Context(), found)
	require.ErrorAs(t, err, new(*payload.StoreError))
	sender := &steer.Dispatcher{Client: w.env.Client(), Namespace: w.env.Namespace, Runs: reader}
	// A command that timed out may still take effect when the store is back: this one then has nothing to change.
	results := sender.SendCommand(t.Context(), steer.Command{Name: steer.RetryNow, CommandInput: protocol.CommandInput{By: "ops"}}, []runs.Found{found}, func(steer.Result) {})
	require.Contains(t, results[0].Message, "but the payload store fails")

	require.NoError(t, reader.DepositAnswer(t.Context(), run.GetID(), interpreter.Answer{
		ID: "one", Verb: interpreter.AnswerComplete, Option: "approve", By: "ops", AnswerTo: interpreter.AnswerTo{Step: "ask"},
	}))
	s.comeBack()
	result, err := w.outcome(run)
	require.NoError(t, err)
	require.EqualValues(t, "completed", result.Status, "%+v", result.Error)
	require.Equal(t, 200_000, result.Result.Data)
}
