package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	updatepb "go.temporal.io/api/update/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"reprise/internal/base/connect"
	"reprise/internal/observe/runs"
	"reprise/internal/test/testenv"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/workflows/protocol"
)

// gauge is an API that fails while it is told to, and notes when attempts begin.
type gauge struct {
	url   string
	mu    sync.Mutex
	down  bool
	flaky uint64 // seed by which attempts fail now and then; 0 for none
	times []time.Time
	held  int // attempts that have no answer yet
	of    map[string]int
}

func newGauge(t *testing.T) *gauge {
	t.Helper()
	g := &gauge{of: map[string]int{}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.mu.Lock()
		g.times = append(g.times, time.Now())
		g.of[r.URL.Query().Get("n")]++
		g.held++
		down, n := g.down, len(g.times)
		down = down || g.flaky != 0 && (g.flaky*uint64(n))>>40&3 == 3
		g.mu.Unlock()
		defer g.answered()
		if pause, err := time.ParseDuration(r.URL.Query().Get("takes")); err == nil {
			select {
			case <-time.After(pause):
			case <-r.Context().Done(): // who asked has gone
			}
		}
		if down {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_, _ = fmt.Fprintf(w, `{"n": %d}`, n)
	}))
	t.Cleanup(server.Close)
	g.url = server.URL
	return g
}

// answered says that an attempt is about to have its answer.
func (g *gauge) answered() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.held--
}

// together is how many attempts have no answer yet.
func (g *gauge) together() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.held
}

func (g *gauge) set(down bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.down = down
}

// steady has every attempt succeed from now on.
func (g *gauge) steady() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.flaky, g.down = 0, false
}

// began is how many attempts began after a time.
func (g *gauge) began(after time.Time) (n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, at := range g.times {
		if at.After(after) {
			n++
		}
	}
	return n
}

// steer sends a command to a run.
func (w *world) steer(run client.WorkflowRun, update string, command protocol.CommandInput) (protocol.CommandResult, error) {
	w.t.Helper()
	var standing protocol.CommandResult
	handle, err := w.env.Client().UpdateWorkflow(w.t.Context(), client.UpdateWorkflowOptions{
		WorkflowID: run.GetID(), UpdateName: update, Args: []any{command}, WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	if err != nil {
		return standing, err
	}
	return standing, handle.Get(w.t.Context(), &standing)
}

func (w *world) steers(run client.WorkflowRun, update string, command protocol.CommandInput) protocol.CommandResult {
	w.t.Helper()
	standing, err := w.steer(run, update, command)
	require.NoError(w.t, err)
	return standing
}

// shapes are the ways in which attempts are made.
var shapes = []struct {
	name, step string
	elements   int
}{
	{"a poll", `
    params: {n: poll, takes: 50ms}
    retry: [{when: "{{ _retry.count < 60 }}", then: {max_attempts: 100, backoff: none}}]`, 60},
	{"pages", `
    params: {n: pages, takes: 50ms}
    retry: [{when: "{{ _retry.index < 60 }}", then: {max_attempts: 100, next_call: {params: {page: "{{ _retry.index }}"}}, collect: {}}}]`, 60},
	{"a loop", `
    params: {n: "{{ n }}", takes: 200ms}
    loop: {collection: "{{ 1..60 }}", element: n, mode: parallel, max_concurrency: 4}`, 60},
	{"a sequential loop", `
    params: {n: "{{ n }}", takes: 50ms}
    loop: {collection: "{{ 1..60 }}", element: n}`, 60},
	{"batches", `
    params: {n: "{{ n }}", takes: 200ms}
    loop: {collection: "{{ 1..60 }}", element: n, mode: parallel, batch: 20, max_concurrency: 4}`, 60},
}

// TestPauseAndResume: in whatever way attempts are made, none begins later than 2 s
// after the command, and the rest are made after resume, each once.
func TestPauseAndResume(t *testing.T) {
	t.Parallel()
	for _, shape := range shapes {
		for _, step := range []string{"", "fetch"} {
			t.Run(shape.name+"/"+step, func(t *testing.T) {
				t.Parallel()
				w, api := newWorking(t), newGauge(t)
				run := w.start(book(`
  - step: fetch
    tool: http
    url: "{{ api }}/"`+shape.step+"\n"), map[string]any{"api": api.url})
				require.Eventually(t, func() bool { return api.began(time.Time{}) >= 8 }, patience, tick)
				standing := w.steers(run, protocol.PauseUpdate, protocol.CommandInput{Step: step, Reason: "the API is down", By: "ada"})
				require.True(t, standing.Changed)
				require.True(t, standing.Control.IsPaused("fetch"))
				told := testenv.Within(2 * time.Second) // every iteration
				paused := time.Now().Add(told)
				require.False(t, w.steers(run, protocol.PauseUpdate, protocol.CommandInput{Step: step}).Changed, "it is so already")
				w.await(run, "fetch", interpreter.Paused)
				require.Never(t, func() bool { return api.began(paused) > 0 }, told+3*time.Second, 100*time.Millisecond)
				require.Less(t, api.began(time.Time{}), shape.elements, "it was paused before its end")

				resumed := time.Now()
				require.True(t, w.steers(run, protocol.ResumeUpdate, protocol.CommandInput{Step: step}).Changed)
				require.Eventually(t, func() bool { return api.began(resumed) > 0 }, patience, tick)
				result, err := w.outcome(run)
				require.NoError(t, err)
				require.EqualValues(t, "completed", result.Status, "%+v", result.Error)
				require.Equal(t, shape.elements, api.began(time.Time{}), "each attempt once")
			})
		}
	}
}

// TestPauseDuringTheValidation: a run that no worker has seen yet can be paused. It begins no
// attempt before it is resumed, and says what is wrong with a command once it knows.
func TestPauseDuringTheValidation(t *testing.T) {
	t.Parallel()
	w, api := newWorld(t), newGauge(t)
	run := w.start(book(`
  - step: fetch
    tool: http
    url: "{{ api }}/"
    params: {n: "1"}
`), map[string]any{"api": api.url})
	paused := w.saysEarly(run, protocol.PauseUpdate, protocol.CommandInput{})
	missing := w.saysEarly(run, protocol.PauseUpdate, protocol.CommandInput{Step: "fech"})

	w.work()
	first := testenv.Receive(t, paused, "the answer to pause")
	require.NoError(t, first.err)
	require.True(t, first.standing.Changed)
	require.ErrorContains(t, testenv.Receive(t, missing, "the answer to pause").err, `no step "fech"`)
	w.await(run, "fetch", interpreter.Paused)
	require.Zero(t, api.began(time.Time{}))

	w.steers(run, protocol.ResumeUpdate, protocol.CommandInput{})
	result, err := w.outcome(run)
	require.NoError(t, err)
	require.EqualValues(t, "completed", result.Status, "%+v", result.Error)
	require.Equal(t, 1, api.began(time.Time{}))
}

// heeded is what became of a command.
type heeded struct {
	standing protocol.CommandResult
	err      error
}

// saysEarly sends a command while no worker looks after the run: the server has the
// command when it returns.
func (w *world) saysEarly(run client.WorkflowRun, update string, command protocol.CommandInput) <-chan heeded {
	w.t.Helper()
	id, told := uuid.NewString(), make(chan heeded, 1)
	go func() {
		handle, err := w.env.Client().UpdateWorkflow(w.t.Context(), client.UpdateWorkflowOptions{
			UpdateID: id, WorkflowID: run.GetID(), UpdateName: update, Args: []any{command},
			WaitForStage: client.WorkflowUpdateStageCompleted,
		})
		var standing protocol.CommandResult
		if err == nil {
			err = handle.Get(w.t.Context(), &standing)
		}
		told <- heeded{standing, err}
	}()
	execution := &commonpb.WorkflowExecution{WorkflowId: run.GetID()}
	require.Eventually(w.t, func() bool {
		_, err := w.env.Client().WorkflowService().PollWorkflowExecutionUpdate(w.t.Context(), &workflowservice.PollWorkflowExecutionUpdateRequest{
			Namespace: w.env.Namespace, UpdateRef: &updatepb.UpdateRef{WorkflowExecution: execution, UpdateId: id},
			WaitPolicy: &updatepb.WaitPolicy{LifecycleStage: enumspb.UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_ADMITTED},
		})
		return err == nil
	}, patience, tick)
	return told
}

// waitingItems are the ways in which items wait for their next attempt.
var waitingItems = []struct{ name, step string }{
	{"a step", `params: {n: "1"}`},
	{"a loop", `
    params: {n: "{{ n }}"}
    loop: {collection: "{{ 1..3 }}", element: n, mode: parallel}`},
	{"a sequential loop", `
    params: {n: "{{ n }}"}
    loop: {collection: [1], element: n}`},
	{"a batch", `
    params: {n: "{{ n }}"}
    loop: {collection: "{{ 1..3 }}", element: n, mode: parallel, batch: 3}`},
}

// TestRetryNow: what waits for an hour is tried again at once, and so is what waits
// for a person.
func TestRetryNow(t *testing.T) {
	t.Parallel()
	for _, wait := range waitingItems {
		for policy, then := range map[string]string{
			"a delay": "{max_attempts: 3, delay: 1h}", "exhausted": "{max_attempts: 1, on_exhausted: pause}",
		} {
			t.Run(wait.name+"/"+policy, func(t *testing.T) {
				t.Parallel()
				w, api := newWorking(t), newGauge(t)
				api.set(true)
				run := w.start(book(`
  - step: fetch
    tool: http
    url: "{{ api }}/"
    `+wait.step+`
    retry: [{when: "{{ error is defined }}", then: `+then+"}]\n"), map[string]any{"api": api.url})
				elements := w.awaitWaiting(run)
				require.Equal(t, elements, api.began(time.Time{}))
				w.requireWaits(run, "fetch", elements)
				api.set(false)
				w.steers(run, protocol.RetryNowUpdate, protocol.CommandInput{})
				result, err := w.outcome(run)
				require.NoError(t, err)
				require.EqualValues(t, "completed", result.Status, "%+v", result.Error)
				require.Equal(t, 2*elements, api.began(time.Time{}))
			})
		}
	}
}

// requireWaits checks how many waits a command would end.
func (w *world) requireWaits(run client.WorkflowRun, name string, want int) {
	w.t.Helper()
	l := w.looker()
	found, err := l.Find(w.t.Context(), run.GetID(), "")
	require.NoError(w.t, err)
	last := want - 1
	for _, c := range []struct {
		step  string
		index *int
		want  int
	}{{"", nil, want}, {name, nil, want}, {name, &last, 1}, {name, &want, 0}, {"other", nil, 0}} {
		if c.index != nil && w.loopOf(run, name) == nil {
			continue
		}
		n := -1
		require.Eventually(w.t, func() (whole bool) { // a child that does not answer in time is not counted
			n, whole = l.CountWaits(w.t.Context(), found, c.step, c.index, false)
			return whole
		}, patience, tick)
		require.Equal(w.t, c.want, n, "%+v", c)
	}
}

// loopOf is the loop of a step that a run is at, nil for none.
func (w *world) loopOf(run client.WorkflowRun, name string) *protocol.LoopRecord {
	w.t.Helper()
	progress, ok := w.progress(run)
	require.True(w.t, ok)
	for _, record := range progress.Steps {
		if record.Step == name {
			return record.Loop
		}
	}
	return nil
}

// TestWaitsOfManyChildren: of a loop with more open children than are asked, those
// that have left their places are counted, and others may wait too.
func TestWaitsOfManyChildren(t *testing.T) {
	t.Parallel()
	w, api := newWorking(t), newGauge(t)
	l := w.looker()
	api.set(true)
	run := w.start(book(`
  - step: fetch
    tool: http
    url: "{{ api }}/"
    loop: {collection: "{{ 1..110 }}", element: n, mode: parallel, max_concurrency: 30, batch: 1}
    retry: [{when: "{{ error is defined }}", then: {max_attempts: 3, delay: 1h}}]
`), map[string]any{"api": api.url})
	found, err := l.Find(t.Context(), run.GetID(), "")
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		n, whole := l.CountWaits(t.Context(), found, "fetch", nil, false)
		return n == 110 && !whole
	}, patience, time.Second)
	w.cancel(run)
}

// awaitWaiting waits until all elements of step fetch wait, and gives their number.
func (w *world) awaitWaiting(run client.WorkflowRun) int {
	w.t.Helper()
	elements := 1
	require.Eventually(w.t, func() bool {
		progress, ok := w.progress(run)
		if !ok || len(progress.Steps) == 0 {
			return false
		}
		record := progress.Steps[0]
		if record.Loop == nil {
			return record.Waiting != ""
		}
		elements = record.Loop.Stats.Total
		return w.waitingIterations(record.Loop.WorkflowID) == elements
	}, patience, tick, "they do not wait")
	return elements
}

// waitingIterations counts the iterations of a loop that wait.
func (w *world) waitingIterations(loop string) (waiting int) {
	for _, iteration := range w.openIterations(loop) {
		if iteration.Waiting != "" {
			waiting++
		}
	}
	return waiting
}

// openIterations are those of a loop that have begun and not ended; nil while
// somebody cannot tell.
func (w *world) openIterations(loop string) []protocol.IterationRecord {
	var progress protocol.Progress
	if !w.ask(loop, "", protocol.ProgressQuery, &progress) {
		return nil
	}
	var open []protocol.IterationRecord
	for _, id := range progress.Open {
		var iterations protocol.Iterations
		if !w.ask(id, "", protocol.IterationsQuery, &iterations) {
			return nil
		}
		open = append(open, iterations.Iterations...)
	}
	return open
}

// TestSkip: one of the items that wait fails with what it waited for, with who said
// so and why; the others are tried again.
func TestSkip(t *testing.T) {
	t.Parallel()
	for _, wait := range waitingItems {
		t.Run(wait.name, func(t *testing.T) {
			t.Parallel()
			w, api := newWorking(t), newGauge(t)
			api.set(true)
			run := w.start(book(`
  - step: fetch
    tool: http
    url: "{{ api }}/"
    `+wait.step+`
    retry: [{when: "{{ error is defined }}", then: {max_attempts: 3, delay: 1h}}]
`), map[string]any{"api": api.url})
			elements := w.awaitWaiting(run)
			command := protocol.CommandInput{Step: "fetch", Reason: "the patient has left", By: "ada"}
			if elements > 1 {
				one := 1
				command.Index = &one
			}
			w.steers(run, protocol.SkipUpdate, command)
			api.set(false)
			if elements > 1 {
				require.Eventually(t, func() bool {
					_, err := w.steer(run, protocol.RetryNowUpdate, protocol.CommandInput{Step: "fetch"})
					return err != nil && w.ended(run) || w.loopFailed(run) == 1
				}, patience, tick)
			}
			result, err := w.outcome(run)
			require.NoError(t, err)
			record := step(t, result, "fetch")
			failure := record.Error
			if record.Loop != nil {
				require.Equal(t, [2]int{elements - 1, 1}, [2]int{record.Loop.Stats.Success, record.Loop.Stats.Failed})
				failure = record.Loop.Errors[0].Error
			}
			require.Equal(t, 503, failure.Status)
			require.Contains(t, failure.Message, "(skipped by ada: the patient has left)")
		})
	}
}

// loopFailed is how many iterations of step fetch have failed.
func (w *world) loopFailed(run client.WorkflowRun) int {
	var progress protocol.Progress
	if !w.ask(run.GetID()+"/fetch#1", "", protocol.ProgressQuery, &progress) {
		return 0
	}
	return progress.Stats.Failed
}

// TestSet: a loop that takes one at a time takes more from now on, and fewer again.
func TestSet(t *testing.T) {
	t.Parallel()
	w, api := newWorking(t), newGauge(t)
	run := w.start(book(`
  - step: fetch
    tool: http
    url: "{{ api }}/"
    params: {n: "{{ n }}", takes: 8s}
    loop: {collection: "{{ 1..40 }}", element: n, mode: parallel, max_concurrency: 1}
`), map[string]any{"api": api.url})
	require.Eventually(t, func() bool { return api.began(time.Time{}) >= 1 }, patience, tick)
	standing := w.steers(run, protocol.SetUpdate, protocol.CommandInput{Step: "fetch", Tuning: &interpreter.Tuning{MaxConcurrency: 20}})
	require.Equal(t, 20, standing.Control.TuningOf("fetch").MaxConcurrency)
	require.Eventually(t, func() bool { return api.together() > 4 }, patience, tick, "more than one at a time")
	w.steers(run, protocol.SetUpdate, protocol.CommandInput{Step: "fetch", Tuning: &interpreter.Tuning{
		Rate: &interpreter.Rate{Requests: 2, PerSeconds: 1},
	}})
	limited := time.Now().Add(testenv.Within(2 * time.Second))
	result, err := w.outcome(run)
	require.NoError(t, err)
	require.EqualValues(t, "completed", result.Status, "%+v", result.Error)
	took := time.Since(limited).Seconds()
	require.LessOrEqual(t, float64(api.began(limited)), 2*took+3, "no more than two a second")
}

// TestSteeredAtOnce: of people who pause and resume at the same time each is told
// where that leaves the run, and the last to be heard is right.
func TestSteeredAtOnce(t *testing.T) {
	t.Parallel()
	w, api := newWorking(t), newGauge(t)
	run := w.start(book(`
  - step: fetch
    tool: http
    url: "{{ api }}/"
    retry: [{when: "{{ _retry.count < 9000 }}", then: {max_attempts: 10000, delay: 100ms}}]
`), map[string]any{"api": api.url})
	require.Eventually(t, func() bool { return api.began(time.Time{}) >= 1 }, patience, tick)
	standings := make([]protocol.CommandResult, 20)
	var people sync.WaitGroup
	for i := range standings {
		people.Go(func() {
			update := protocol.PauseUpdate
			if i%2 == 1 {
				update = protocol.ResumeUpdate
			}
			standings[i], _ = w.steer(run, update, protocol.CommandInput{By: fmt.Sprint(i)})
		})
	}
	testenv.Wait(t, people.Wait, "the answers to all commands")
	progress, ok := w.progress(run)
	require.True(t, ok)
	changed := 0
	for i, standing := range standings {
		require.Equal(t, i%2 == 0, standing.Control.Paused, "each is told what it asked for, be it by another")
		if standing.Control.Version == progress.Control.Version {
			require.Equal(t, progress.Control, standing.Control)
		}
		if standing.Changed {
			changed++
		}
	}
	require.Equal(t, changed, progress.Control.Version, "what changed nothing is no command")
	require.Equal(t, progress.Control.Paused, progress.Control.Version%2 == 1)
	w.cancel(run)
}

// TestSteeringIsRefused: a command that does not fit says what would.
func TestSteeringIsRefused(t *testing.T) {
	t.Parallel()
	w, api := newWorking(t), newGauge(t)
	run := w.start(book(`
  - step: fetch
    tool: http
    url: "{{ api }}/"
    params: {takes: 2m}
    timeout: 3m
    next: [{when: "{{ true }}", then: [{step: load}]}]
  - step: load
    tool: http
    url: "{{ api }}/"
    loop: {collection: [1, 2]}
`), map[string]any{"api": api.url})
	require.Eventually(t, func() bool { return api.began(time.Time{}) == 1 }, patience, tick)
	one, negative := 1, -1
	for _, c := range []struct {
		update  string
		command protocol.CommandInput
		says    string
	}{
		{protocol.PauseUpdate, protocol.CommandInput{Step: "fetsh"}, `the playbook has no step "fetsh"; its steps are fetch, load`},
		{protocol.ResumeUpdate, protocol.CommandInput{Step: "fetch", Index: &one}, "step fetch has no loop, so it has no iteration 1"},
		{protocol.SkipUpdate, protocol.CommandInput{}, "name the step that should fail"},
		{protocol.SkipUpdate, protocol.CommandInput{Step: "load"}, "step load is not running, so it is not waiting; running: fetch"},
		{protocol.RetryNowUpdate, protocol.CommandInput{Step: "load", Index: &negative}, "iterations are numbered from 0"},
		{protocol.RetryNowUpdate, protocol.CommandInput{Step: "fetch"}, "nothing waits: attempt 1 of step fetch is running"},
		{protocol.SetUpdate, protocol.CommandInput{Step: "fetch"}, "the command sets nothing"},
		{protocol.SetUpdate, protocol.CommandInput{Step: "fetch", Tuning: &interpreter.Tuning{MaxConcurrency: 4}}, "step fetch has no parallel loop"},
		{protocol.SetUpdate, protocol.CommandInput{Step: "load", Tuning: &interpreter.Tuning{Rate: &interpreter.Rate{}}}, "a rate limit needs requests"},
	} {
		_, err := w.steer(run, c.update, c.command)
		require.ErrorContains(t, err, c.says)
	}
	w.steers(run, protocol.PauseUpdate, protocol.CommandInput{})
	_, err := w.steer(run, protocol.RetryNowUpdate, protocol.CommandInput{})
	require.ErrorContains(t, err, "nothing waits")
	_, err = w.steer(run, protocol.ResumeUpdate, protocol.CommandInput{Step: "fetch"})
	require.ErrorContains(t, err, "the whole run is paused, not only step fetch; resume the run")
	require.EqualValues(t, "cancelled", w.cancel(run).Status, "a paused run can be cancelled")
}

// TestSteeringInAnyOrder: whatever people say, in whatever order, while workers
// come and go: no attempt begins while the run is held, and no element is lost.
// With -soak there are 200 rounds.
func TestSteeringInAnyOrder(t *testing.T) {
	t.Parallel()
	rounds := 4
	if *soak {
		rounds = 200
	}
	for round := range rounds {
		seed := uint64(round)
		if *soak {
			seed = rand.Uint64()
		}
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			t.Parallel()
			t.Logf("seed %d", seed)
			steerAtRandom(t, rand.New(rand.NewPCG(seed, 0)))
		})
	}
}

// retryPause is how long a run is left alone between two commands that are to bring it
// to its end: each is a signal to every child, and on a machine that has much else to
// do a second does not see them delivered.
const retryPause = 10 * time.Second

// steerAtRandom steers a loop whose attempts fail now and then.
func steerAtRandom(t *testing.T, random *rand.Rand) {
	w, api := newWorld(t), newGauge(t)
	api.flaky = random.Uint64()
	worker := w.spawn()
	const elements = 30
	batch := []int{1, 1, 5, 30}[random.IntN(4)]
	then := []string{"{max_attempts: 11, delay: 6s}", "{max_attempts: 11, delay: 200ms}", "{max_attempts: 2, delay: 200ms, on_exhausted: pause}"}
	run := w.start(book(fmt.Sprintf(`
  - step: fetch
    tool: http
    url: "{{ api }}/"
    params: {n: "{{ n }}", takes: 50ms}
    loop: {collection: "{{ 1..%d }}", element: n, mode: %s, batch: %d}
    retry: [{when: "{{ error is defined }}", then: %s}]
`, elements, []string{"parallel", "sequential"}[random.IntN(2)], batch, then[random.IntN(len(then))])), map[string]any{"api": api.url})
	require.Eventually(t, func() bool { return api.began(time.Time{}) > 0 }, patience, tick)
	skipped := 0
	for range 12 {
		time.Sleep(time.Duration(random.IntN(600)) * time.Millisecond)
		switch command := (protocol.CommandInput{Step: []string{"", "fetch"}[random.IntN(2)]}); random.IntN(6) {
		case 0, 1:
			if _, err := w.steer(run, protocol.PauseUpdate, command); err != nil {
				break // it has ended
			}
			held := time.Now().Add(testenv.Within(2 * time.Second))
			time.Sleep(time.Until(held) + time.Duration(random.IntN(1000))*time.Millisecond)
			require.Zero(t, api.began(held), "an attempt began while the run was held")
			_, _ = w.steer(run, protocol.ResumeUpdate, command)
		case 2:
			_, _ = w.steer(run, protocol.RetryNowUpdate, command)
		case 3:
			index := random.IntN(elements)
			if _, err := w.steer(run, protocol.SkipUpdate, protocol.CommandInput{Step: "fetch", Index: &index}); err == nil {
				skipped++
			}
		case 4:
			_, _ = w.steer(run, protocol.SetUpdate, protocol.CommandInput{Step: "fetch", Tuning: &interpreter.Tuning{MaxConcurrency: 1 + random.IntN(20)}})
		case 5:
			worker.Kill()
			worker = w.spawn()
		}
	}
	api.steady()
	require.Eventually(t, func() bool {
		_, _ = w.steer(run, protocol.ResumeUpdate, protocol.CommandInput{})
		_, _ = w.steer(run, protocol.RetryNowUpdate, protocol.CommandInput{}) // what waits for people
		return w.ended(run)
	}, patience, retryPause, "it does not end")
	result, err := w.outcome(run)
	require.NoError(t, err)
	stats := step(t, result, "fetch").Loop.Stats
	require.Equal(t, elements, stats.Total)
	require.Equal(t, elements, stats.Success+stats.Failed+stats.Cancelled)
	require.LessOrEqual(t, stats.Failed, skipped, "who was not skipped succeeds, or waits for people")
	require.GreaterOrEqual(t, len(api.of)+skipped, elements, "every element was tried that was not skipped before")
}

// ended reports whether a run has.
func (w *world) ended(run client.WorkflowRun) bool {
	described, err := w.env.Client().DescribeWorkflowExecution(w.t.Context(), run.GetID(), run.GetRunID())
	return err == nil && described.GetWorkflowExecutionInfo().GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING
}

// TestListOfOpenRuns: a list filter takes runs that go on, and nothing else, whatever it
// says.
func TestListOfOpenRuns(t *testing.T) {
	t.Parallel()
	w, api := newWorking(t), newGauge(t)
	l := w.looker()
	api.set(true)
	source := book(`
  - step: fetch
    tool: http
    url: "{{ api }}/"
    retry: [{when: "{{ error is defined and waits }}", then: {max_attempts: 1, on_exhausted: pause}}]
    loop: {collection: [1, 2], element: n, mode: parallel, batch: 1}
`)
	run := w.start(source, map[string]any{"api": api.url, "waits": true})
	ended := w.start(source, map[string]any{"api": api.url, "waits": false})
	_, err := w.outcome(ended)
	require.NoError(t, err)
	l.until(run.GetID(), inState("fetch", "retry_pending"))
	for _, filter := range []string{
		fmt.Sprintf("WorkflowId IN ('%s', '%s')", run.GetID(), ended.GetID()),
		fmt.Sprintf("WorkflowId = 'none' OR RootWorkflowId = '%s'", run.GetID()),
	} {
		require.Eventually(t, func() bool {
			found, err := l.Running(t.Context(), filter)
			return err == nil && len(found) == 1 && found[0].WorkflowID == run.GetID()
		}, patience, tick, filter)
	}
	var refused *runs.QueryError
	for _, filter := range []string{"Nothing = 1", fmt.Sprintf("WorkflowId = 'none') OR (RootWorkflowId IN ('%s', '%s')", run.GetID(), ended.GetID())} {
		_, err = l.Running(t.Context(), filter)
		require.ErrorAs(t, err, &refused, filter)
	}
	w.cancel(run)
}

// TestStatusOfWhatIsHeld: what people hold is told from what waits for a retry, and
// what waits for people from both.
func TestStatusOfWhatIsHeld(t *testing.T) {
	t.Parallel()
	for name, loop := range map[string]string{
		"a step": "", "a window": "loop: {collection: \"{{ 1..40 }}\", element: n, mode: parallel, max_concurrency: 4, batch: 1}",
		"in order": "loop: {collection: \"{{ 1..40 }}\", element: n}",
		"batches":  "loop: {collection: \"{{ 1..40 }}\", element: n, mode: parallel, max_concurrency: 10, batch: 10}",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, api := newWorking(t), newGauge(t)
			l := w.looker()
			api.set(true)
			run := w.start(book(`
  - step: fetch
    tool: http
    url: "{{ api }}/"
    params: {takes: 300ms}
    retry: [{when: "{{ error is defined }}", then: {max_attempts: 2, delay: 1s, on_exhausted: pause}}]
    `+loop+"\n"), map[string]any{"api": api.url})
			whole := func(status *runs.Status) {
				if c := status.Visits("fetch")[0].Loop; c != nil {
					require.Equal(t, c.Total, c.CountDone()+c.Running+c.Waiting+c.Pending+c.Cancelled, "%+v", c)
					require.Zero(t, c.Left, "people decide how long it takes")
				}
			}
			atRest := func(status *runs.Status, state interpreter.Status) bool {
				steps := status.Visits("fetch")
				if len(steps) == 0 || steps[0].Status != state || steps[0].Loop != nil && steps[0].Loop.Running > 0 {
					return false
				}
				l.AddIterations(t.Context(), status, steps[0])
				return !slices.ContainsFunc(steps[0].Iterations, func(i runs.Iteration) bool { return i.Status != state })
			}
			require.Eventually(t, func() bool { return api.began(time.Time{}) > 0 }, patience, tick)
			w.steers(run, protocol.PauseUpdate, protocol.CommandInput{By: "ada", Reason: "a test"})
			status := l.until(run.GetID(), func(status *runs.Status) bool {
				return atRest(status, "paused") // what waits goes on to do so until it is due
			})
			whole(status)
			require.Equal(t, []string{"paused", runs.HeldByPause}, []string{string(status.Status), status.HeldBy})
			require.Equal(t, "ada", status.Control.Held[""].By)
			step := status.Visits("fetch")[0]
			require.Equal(t, runs.HeldByPause, step.HeldBy)
			for _, iteration := range step.Iterations {
				require.Equal(t, []string{"paused", runs.HeldByPause}, []string{string(iteration.Status), iteration.HeldBy}, "%+v", iteration)
			}

			_, err := l.Events(t.Context(), status.Found, runs.EventFilter{Step: "fetch"}, func(event runs.Event) error {
				require.NotEqual(t, runs.ActionCompleted, event.Event, "%+v: the API has failed so far, so this attempt was not made", event)
				return nil
			})
			require.NoError(t, err)

			w.steers(run, protocol.ResumeUpdate, protocol.CommandInput{})
			status = l.until(run.GetID(), func(status *runs.Status) bool {
				return status.Visits("fetch")[0].HeldBy == runs.HeldByPerson && atRest(status, "retry_pending")
			})
			whole(status)
			require.Equal(t, []string{"retry_pending", runs.HeldByPerson}, []string{string(status.Status), status.HeldBy})
			step = status.Visits("fetch")[0]
			require.EqualValues(t, "retry_pending", step.Status)
			require.Zero(t, step.NextRetryAt)
			for _, iteration := range step.Iterations {
				require.Equal(t, []string{"retry_pending", runs.HeldByPerson}, []string{string(iteration.Status), iteration.HeldBy}, "%+v", iteration)
			}
			if step.Loop != nil {
				require.NotEmpty(t, step.Iterations)
			}
			w.cancel(run)
		})
	}
}

// ensureAttributes adds the search attributes, and waits until the server takes them.
func (w *world) ensureAttributes() {
	w.t.Helper()
	_, err := connect.EnsureAttributes(w.t.Context(), w.env.Client(), w.env.Namespace, protocol.SearchAttributes())
	require.NoError(w.t, err)
	next := temporal.NewSearchAttributeKeyTime(protocol.NextRetryAttribute)
	options := client.StartWorkflowOptions{
		ID: w.queue + "/attributes", TaskQueue: w.queue + "/nobody", WorkflowExecutionTimeout: time.Minute,
		TypedSearchAttributes: temporal.NewSearchAttributes(next.ValueSet(time.Now())),
	}
	require.Eventually(w.t, func() bool {
		_, err := w.env.Client().ExecuteWorkflow(w.t.Context(), options, "nothing")
		return err == nil
	}, patience, tick)
	require.NoError(w.t, w.env.Client().TerminateWorkflow(w.t.Context(), options.ID, "", "it was a test of the attributes"))
}

// TestNextRetryAttribute: when the first retry is due is set where the status changes,
// in the same event, and goes with the run's end.
func TestNextRetryAttribute(t *testing.T) {
	t.Parallel()
	w, api := newWorking(t), newGauge(t)
	w.ensureAttributes()
	api.set(true)
	run, err := w.env.Client().ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: w.queue + "/next", TaskQueue: w.queue},
		protocol.PlaybookWorkflowName, protocol.Input{
			Name: "test.yaml", Workload: expression.Of(map[string]any{"api": api.url}),
			SearchAttributes: true, DeadLetters: true, NextRetry: true, Source: book(`
  - step: fork
    next: [hour, day]
  - step: hour
    tool: http
    url: "{{ api }}/"
    retry: [{when: "{{ error is defined }}", then: {max_attempts: 3, delay: 1h}}]
  - step: day
    tool: http
    url: "{{ api }}/"
    retry: [{when: "{{ error is defined }}", then: {max_attempts: 3, delay: 12h}}]
`),
		})
	require.NoError(t, err)
	due := map[string]time.Time{}
	for _, name := range []string{"hour", "day"} {
		due[name] = w.await(run, name, interpreter.RetryPending).NextRetryAt
	}
	set := func(status interpreter.Status, next time.Time) {
		t.Helper()
		described, err := w.env.Client().DescribeWorkflowExecution(t.Context(), run.GetID(), "")
		require.NoError(t, err)
		fields := described.GetWorkflowExecutionInfo().GetSearchAttributes().GetIndexedFields()
		var said interpreter.Status
		if status != "" {
			require.NoError(t, converter.GetDefaultDataConverter().FromPayload(fields[protocol.StatusAttribute], &said))
		}
		require.Equal(t, status, said)
		var at time.Time
		if payload := fields[protocol.NextRetryAttribute]; payload != nil {
			require.NoError(t, converter.GetDefaultDataConverter().FromPayload(payload, &at))
		}
		require.WithinDuration(t, next, at, time.Millisecond)
	}
	set(interpreter.RetryPending, due["hour"])
	w.steers(run, protocol.PauseUpdate, protocol.CommandInput{})
	set(interpreter.Paused, due["hour"])
	w.steers(run, protocol.ResumeUpdate, protocol.CommandInput{})
	set(interpreter.RetryPending, due["hour"])
	api.set(false)
	w.steers(run, protocol.RetryNowUpdate, protocol.CommandInput{Step: "hour"})
	w.await(run, "hour", interpreter.Completed)
	set(interpreter.RetryPending, due["day"])
	w.steers(run, protocol.PauseUpdate, protocol.CommandInput{})
	set(interpreter.Paused, due["day"])
	w.steers(run, protocol.ResumeUpdate, protocol.CommandInput{})
	w.steers(run, protocol.RetryNowUpdate, protocol.CommandInput{})
	_, err = w.outcome(run)
	require.NoError(t, err)
	set(interpreter.Completed, time.Time{})
	events := 0
	for _, event := range w.histories[0].History.GetEvents() {
		if event.GetUpsertWorkflowSearchAttributesEventAttributes() != nil {
			events++
		}
	}
	require.Equal(t, 9, events, "one for each change of status")
}
