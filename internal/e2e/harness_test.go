// Package e2e runs playbooks end to end: a real Temporal server, a real
// worker, the real demo API, real databases.
package e2e_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"reprise/activities"
	"reprise/internal/demoapi"
	"reprise/internal/host"
	"reprise/internal/testenv"
	"reprise/interpreter/expression"
	"reprise/workflows"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// replays is how often the histories of every run are replayed.
const replays = 5

// world is what one test runs against.
type world struct {
	t         *testing.T
	env       *testenv.Env
	api       *demoapi.Server
	dir       string
	queue     string
	resources activities.Resources
	connected activities.Connections
}

func newWorld(t *testing.T) *world {
	t.Helper()
	env := testenv.Temporal(t)
	dir := t.TempDir()
	w := &world{
		t: t, env: env, api: testenv.DemoAPI(t), dir: dir, queue: env.NewTaskQueue(),
		connected: activities.Connections{},
	}
	w.resources = activities.Resources{Connections: w.connected, AllowPython: true, Directory: dir}
	return w
}

// work starts a worker that stops at the end of the test.
func (w *world) work() {
	w.t.Helper()
	catalogue := activities.NewCatalogue(w.resources)
	worker := host.NewWorker(w.env.Client(), catalogue, host.Options{TaskQueue: w.queue, StopTimeout: time.Second})
	require.NoError(w.t, worker.Start())
	w.t.Cleanup(func() {
		worker.Stop()
		require.NoError(w.t, catalogue.Close())
	})
}

// start starts a run of a playbook.
func (w *world) start(source string, workload map[string]any) client.WorkflowRun {
	w.t.Helper()
	if workload == nil {
		workload = map[string]any{}
	}
	if _, given := workload["api"]; !given {
		workload["api"] = w.api.URL()
	}
	canonical, err := expression.Canonical(workload)
	require.NoError(w.t, err)
	id := "e2e-" + strings.NewReplacer("/", "-", "#", "-").Replace(w.t.Name()) + "-" + w.queue
	run, err := w.env.Client().ExecuteWorkflow(w.t.Context(), client.StartWorkflowOptions{ID: id, TaskQueue: w.queue},
		workflows.PlaybookWorkflowName,
		workflows.Input{Name: "test.yaml", Source: source, Workload: expression.Of(canonical)})
	require.NoError(w.t, err)
	return run
}

// outcome waits for a run and replays its histories.
func (w *world) outcome(run client.WorkflowRun) (workflows.Result, error) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 2*time.Minute)
	defer cancel()
	result, err := workflows.Outcome(ctx, run)
	require.NoError(w.t, ctx.Err(), "the run did not end")
	testenv.ReplayAll(w.t, w.env.Client(), run.GetID(), run.GetRunID(),
		func(r worker.WorkflowReplayer) { workflows.Register(r) }, replays)
	return result, err
}

// run runs a playbook to its end.
func (w *world) run(source string, workload map[string]any) (workflows.Result, error) {
	w.t.Helper()
	return w.outcome(w.start(source, workload))
}

// playbook reads one of the playbooks that come with Reprise.
func (w *world) playbook(name string) string {
	w.t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "playbooks", name))
	require.NoError(w.t, err)
	return string(text)
}
