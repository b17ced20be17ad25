package oracle_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"reprise/activities"
	"reprise/internal/base/seal"
	"reprise/internal/observe/ending"
	"reprise/internal/program/host"
	"reprise/internal/test/testenv"
	"reprise/interpreter/expression"
	"reprise/workflows"
	"reprise/workflows/protocol"
)

func TestMain(m *testing.M) { testenv.Main(m) }

const (
	// quicker is how much shorter waits are on a real server.
	quicker = 50
	// silence is how long a webhook awaits an answer there, in time as it is.
	silence = 15 * time.Second
	// replays is how often its histories are replayed.
	replays = 2
)

// patience is how long a run may take there.
var patience = testenv.Within(4 * time.Minute)

// quiet is a worker's log without the failures that tests make on purpose.
type quiet struct{}

func (quiet) Debug(string, ...any) {}
func (quiet) Info(string, ...any)  {}
func (quiet) Warn(string, ...any)  {}

func (quiet) Error(message string, pairs ...any) {
	if message != "Activity error." && message != "the run failed" {
		slog.Error(message, pairs...)
	}
}

// quick makes the round's waits short enough for a real server, where nothing is
// exact: nothing happens at a known time, and no policy looks at the clock.
func (r *round) quick() *round {
	r.steers, r.real = nil, true
	for name, s := range r.styles {
		s.told = false
		for i, word := range s.troubles {
			s.troubles[i] = strings.TrimSuffix(strings.Replace(word, "403spent", "403", 1), "told")
		}
		if len(s.answers) > 0 {
			s.answers = []string{"complete", "fail", "final", "progress"}
		}
		r.styles[name] = s
	}
	r.book.quick()
	return r
}

func (g *graph) quick() {
	for _, s := range g.steps {
		s.quickForm()
		if s.timeout = 0; s.tool == "webhook" {
			s.timeout = silence
		}
		sinks := []*sink{s.sink}
		if s.loop != nil {
			sinks = append(sinks, s.loop.sink)
		}
		for _, p := range s.retry {
			p.quick()
			sinks = append(sinks, p.sink, p.page)
		}
		for _, each := range sinks {
			if each == nil {
				continue
			}
			for _, p := range each.retry {
				p.quick()
			}
		}
		if s.below != nil {
			// Another attempt continues the run of the one before, which only a server
			// can tell of, and the oracle does not predict.
			s.retry = nil
			s.below.quick()
		}
	}
}

// quickForm leaves a form of retry whose waits have whole seconds, or none at all.
func (s *step) quickForm() {
	switch s.oldForm {
	case "number":
		s.oldForm = "flat"
	case "seconds":
		s.oldForm = ""
	}
}

// quick has a policy wait for milliseconds. A sink may stand in two places.
func (p *policy) quick() {
	p.retryAfter = nil
	p.maxElapsed = 0
	if p.onExhausted == "pause" { // nobody comes at a time that is known
		p.onExhausted = ""
	}
	if p.short || !p.repeats() || p.next != nil && !p.namesWait() {
		return
	}
	p.short = true
	p.maxDelay /= quicker
	switch {
	case p.delay != nil:
		d := *p.delay / quicker
		p.delay = &d
	case p.backoff != "none":
		d := time.Second / quicker
		if p.initial != nil {
			d = *p.initial / quicker
		}
		p.initial = &d
	}
}

// fixedOnServer are rounds that found something on a server.
var fixedOnServer = []uint64{70005, 70009, 70029, 80008}

// TestOnServer runs random playbooks on a real server, with waits of milliseconds:
// batches, runs below with keys of their own, and replays of every history.
func TestOnServer(t *testing.T) {
	t.Parallel()
	for _, seed := range seedsWith(t, fixedOnServer, *serverFlag) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			run(t, seed, func(seed uint64) *round { return newRound(seed).quick() }, (*round).onServer)
		})
	}
}

// onServer runs a round on a real server.
func (r *round) onServer(t *testing.T) came {
	t.Helper()
	env := testenv.Temporal(t)
	dir := t.TempDir()
	r.makeTables(t, dir)
	queue := env.NewTaskQueue()
	began := time.Now()
	a := &api{seed: r.seed, styles: r.styles, counts: map[string]int{}, now: func() time.Duration { return time.Since(began) }}
	server := httptest.NewServer(a)
	defer server.Close()
	defer startWorker(t, env, queue, dir)()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	id := "oracle-" + queue
	a.outside = func(_ asked, _ int, header http.Header, all []said) {
		go answerOnServer(ctx, env.Client(), id, header.Get("Idempotency-Key"), all)
	}
	started := startRun(ctx, t, env, queue, id, protocol.Input{
		Name: "oracle.yaml", Source: r.book.source(r.data), Workload: expression.Of(map[string]any{"api": server.URL}),
	})
	c := came{apart: true}
	c.result, c.err = ending.WaitForResult(ctx, started)
	require.NoError(t, ctx.Err(), "the run did not end:\n%s", r.describe())
	replay(t, env, started)
	c.events, c.order = readEvents(ctx, t, env, id, started.GetRunID())
	a.mu.Lock()
	defer a.mu.Unlock()
	c.log, c.files = a.log, written(t, dir)
	r.readTables(t, dir, c.files)
	return c
}

// startWorker runs a worker of a task queue until stop is called. Its files are in dir.
func startWorker(t *testing.T, env *testenv.Env, queue, dir string) (stop func()) {
	t.Helper()
	keys, err := seal.Parse(seal.NewKey())
	require.NoError(t, err)
	catalogue := activities.NewCatalogue(activities.Resources{Connections: activities.Connections{}, Directory: dir, SecretKeys: keys})
	w := host.NewWorker(env.Dial(t, client.Options{Logger: quiet{}}), catalogue, host.Options{TaskQueue: queue, StopTimeout: time.Second})
	require.NoError(t, w.Start())
	return func() {
		w.Stop()
		require.NoError(t, catalogue.Close())
	}
}

// startRun starts a run of a playbook.
func startRun(ctx context.Context, t *testing.T, env *testenv.Env, queue, id string, input protocol.Input) client.WorkflowRun {
	t.Helper()
	run, err := env.Client().ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: id, TaskQueue: queue}, protocol.PlaybookWorkflowName, input)
	require.NoError(t, err)
	return run
}

// replay replays the histories of a run that has ended, and of its children.
func replay(t *testing.T, env *testenv.Env, run client.WorkflowRun) {
	t.Helper()
	histories := testenv.Histories(t, env.Client(), run.GetID(), run.GetRunID())
	require.NoError(t, testenv.Replay(histories, func(r worker.WorkflowReplayer) { workflows.Register(r) }, replays,
		testenv.StoredIn(testenv.PayloadStore(t))))
}

// isIdle reports whether a run has begun, and nothing of it is being done: it waits.
func isIdle(ctx context.Context, env *testenv.Env, run client.WorkflowRun) bool {
	const begun = 3 // events, with which its first workflow task has started
	is, err := env.Client().DescribeWorkflowExecution(ctx, run.GetID(), run.GetRunID())
	return err == nil && is.GetWorkflowExecutionInfo().GetHistoryLength() > begun && len(is.GetPendingActivities()) == 0 && is.GetPendingWorkflowTask() == nil
}

// answerOnServer says from outside what becomes of an attempt.
func answerOnServer(ctx context.Context, c client.Client, id, key string, all []said) {
	last := time.Duration(0)
	for i, each := range all {
		select {
		case <-time.After((each.after - last) / quicker):
		case <-ctx.Done():
			return
		}
		last = each.after
		_, _ = c.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
			WorkflowID: id, UpdateName: protocol.AnswerUpdate, Args: []any{each.answer(key, i)},
			WaitForStage: client.WorkflowUpdateStageAccepted,
		})
	}
}
