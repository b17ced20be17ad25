package testenv_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"reprise/internal/test/testenv"
)

const (
	rootType  = "RootWorkflow"
	childType = "ChildWorkflow"
)

// rootWorkflow starts a child, whose ID derives from its own, in each of two
// runs.
func rootWorkflow(ctx workflow.Context, round int) (string, error) {
	id := workflow.GetInfo(ctx).WorkflowExecution.ID + "/child"
	ctx = workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{WorkflowID: id})
	var answer string
	if err := workflow.ExecuteChildWorkflow(ctx, childType, 1).Get(ctx, &answer); err != nil {
		return "", err
	}
	if round < 2 {
		return "", workflow.NewContinueAsNewError(ctx, rootType, round+1)
	}
	return answer, nil
}

// childWorkflow sleeps, and continues as new once.
func childWorkflow(ctx workflow.Context, depth int) (string, error) {
	if err := workflow.Sleep(ctx, time.Millisecond); err != nil {
		return "", err
	}
	if depth < 2 {
		return "", workflow.NewContinueAsNewError(ctx, childType, depth+1)
	}
	return "done", nil
}

// registry is what workers and replayers have in common.
type registry interface {
	RegisterWorkflowWithOptions(w any, options workflow.RegisterOptions)
}

func register(r registry, root, child any) {
	r.RegisterWorkflowWithOptions(root, workflow.RegisterOptions{Name: rootType})
	r.RegisterWorkflowWithOptions(child, workflow.RegisterOptions{Name: childType})
}

func registerAll(r worker.WorkflowReplayer) { register(r, rootWorkflow, childWorkflow) }

// run executes the root workflow on the real server and returns its first run.
func run(t *testing.T, env *testenv.Env) client.WorkflowRun {
	t.Helper()
	queue := env.NewTaskQueue()
	w := worker.New(env.Client(), queue, worker.Options{})
	register(w, rootWorkflow, childWorkflow)
	require.NoError(t, w.Start())
	t.Cleanup(w.Stop)
	started, err := env.Client().ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: queue + "-root", TaskQueue: queue}, rootType, 1)
	require.NoError(t, err)
	first := started.GetRunID() // Get moves on along the chain
	var answer string
	require.NoError(t, testenv.WaitOutcome(t, started, &answer))
	require.Equal(t, "done", answer)
	return env.Client().GetWorkflow(t.Context(), started.GetID(), first)
}

func TestHistoriesFollowChainsAndChildren(t *testing.T) {
	t.Parallel()
	env := testenv.Temporal(t)
	first := run(t, env)
	for _, runID := range []string{first.GetRunID(), ""} { // "" is the last run
		histories := testenv.Histories(t, env.Client(), first.GetID(), runID)
		var names []string
		runs := map[string]bool{}
		for _, h := range histories {
			names = append(names, h.Type+" "+strings.TrimPrefix(h.WorkflowID, first.GetID()))
			runs[h.RunID] = true
		}
		require.Equal(t, []string{
			"RootWorkflow ", "RootWorkflow ",
			"ChildWorkflow /child", "ChildWorkflow /child", "ChildWorkflow /child", "ChildWorkflow /child",
		}, names)
		require.Len(t, runs, 6)
		require.Equal(t, first.GetRunID(), histories[0].RunID)
	}
	require.Contains(t, failure(t, func(t testing.TB) {
		testenv.Histories(t, env.Client(), "no such workflow", "")
	}), `read history of workflow "no such workflow", run ""`)
}

func TestHistoriesFollowRetries(t *testing.T) {
	t.Parallel()
	env := testenv.Temporal(t)
	queue := env.NewTaskQueue()
	w := worker.New(env.Client(), queue, worker.Options{})
	failing := func(ctx workflow.Context) error {
		if workflow.GetInfo(ctx).Attempt < 2 {
			return errors.New("not yet")
		}
		return nil
	}
	w.RegisterWorkflowWithOptions(failing, workflow.RegisterOptions{Name: rootType})
	require.NoError(t, w.Start())
	t.Cleanup(w.Stop)
	started, err := env.Client().ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{
		ID: queue + "-retried", TaskQueue: queue,
		RetryPolicy: &temporal.RetryPolicy{InitialInterval: time.Millisecond, MaximumAttempts: 2},
	}, rootType)
	require.NoError(t, err)
	require.NoError(t, testenv.WaitOutcome(t, started, nil))
	require.Len(t, testenv.Histories(t, env.Client(), started.GetID(), ""), 2)
	testenv.ReplayAll(t, env.Client(), started.GetID(), "", func(r worker.WorkflowReplayer) {
		r.RegisterWorkflowWithOptions(failing, workflow.RegisterOptions{Name: rootType})
	}, 2)
}

func TestReplayAllNamesTheRunThatDiverges(t *testing.T) {
	t.Parallel()
	env := testenv.Temporal(t)
	first := run(t, env)
	testenv.ReplayAll(t, env.Client(), first.GetID(), first.GetRunID(), registerAll, 3)

	changed := func(ctx workflow.Context, _ int) (string, error) {
		return "done", workflow.UpsertMemo(ctx, map[string]any{"k": 1})
	}
	message := failure(t, func(t testing.TB) {
		testenv.ReplayAll(t, env.Client(), first.GetID(), "", func(r worker.WorkflowReplayer) {
			register(r, rootWorkflow, changed)
		}, 3)
	})
	require.Contains(t, message, `replay ChildWorkflow "`+first.GetID()+`/child" (run `)
	require.Contains(t, message, "time 1 of 3")
	require.Contains(t, message, "nondeterministic")
}

func TestSavedHistoriesReplayAndNameNoMachine(t *testing.T) {
	t.Parallel()
	env := testenv.Temporal(t)
	first := run(t, env)
	dir := filepath.Join(t.TempDir(), "histories")
	testenv.ReplayAll(t, env.Client(), first.GetID(), "", registerAll, 1, testenv.SaveHistoriesTo(dir))

	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var names []string
	host, err := os.Hostname()
	require.NoError(t, err)
	for _, entry := range entries {
		names = append(names, entry.Name())
		text, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		require.NoError(t, err)
		require.NotContains(t, string(text), "@"+host)
		require.NotContains(t, string(text), `"`+host+":")
		require.Contains(t, string(text), `"identity": "recorded"`)
	}
	require.Equal(t, []string{
		"01-RootWorkflow.json", "02-RootWorkflow.json",
		"03-ChildWorkflow.json", "04-ChildWorkflow.json", "05-ChildWorkflow.json", "06-ChildWorkflow.json",
	}, names)

	loaded := testenv.LoadHistories(t, dir)
	require.Equal(t, first.GetID(), loaded[0].WorkflowID)
	require.Equal(t, first.GetRunID(), loaded[0].RunID)
	require.NoError(t, testenv.Replay(loaded, registerAll, 2))
	require.ErrorContains(t, testenv.Replay(loaded, func(r worker.WorkflowReplayer) {
		register(r, childWorkflow, childWorkflow)
	}, 1), `replay RootWorkflow "`)
	require.ErrorContains(t, testenv.Replay(nil, registerAll, 1), "expected at least one of each")

	empty := t.TempDir()
	require.Contains(t, failure(t, func(t testing.TB) { testenv.LoadHistories(t, empty) }), "no *.json file in")
	require.NoError(t, os.WriteFile(filepath.Join(empty, "x.json"), []byte(`{"events":[]}`), 0o600))
	require.Contains(t, failure(t, func(t testing.TB) { testenv.LoadHistories(t, empty) }), "x.json")
}

func TestTemporalIsSharedAndReachable(t *testing.T) {
	t.Parallel()
	env := testenv.Temporal(t)
	require.Same(t, env, testenv.Temporal(t))
	require.NotEqual(t, env.NewTaskQueue(), env.NewTaskQueue())
	_, err := env.Dial(t, client.Options{}).WorkflowService().DescribeNamespace(t.Context(),
		&workflowservice.DescribeNamespaceRequest{Namespace: env.Namespace})
	require.NoError(t, err)
}
