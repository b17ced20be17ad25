package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// startKeyed starts runs that share a fairness key. They wait for a worker.
func startKeyed(t *testing.T, c client.Client, key string, count int) []client.WorkflowRun {
	t.Helper()
	runs := make([]client.WorkflowRun, count)
	for i := range runs {
		run, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{
			ID: fmt.Sprintf("%s-%d", key, i), TaskQueue: "turns", Priority: temporal.Priority{FairnessKey: key},
		}, "turns")
		require.NoError(t, err)
		runs[i] = run
	}
	return runs
}

// workTwoAtATime waits for the runs and gives their keys in the order in which
// the worker got them.
func workTwoAtATime(t *testing.T, c client.Client, runs []client.WorkflowRun) []string {
	t.Helper()
	var mu sync.Mutex
	var order []string
	w := worker.New(c, "turns", worker.Options{
		MaxConcurrentWorkflowTaskPollers: 2, MaxConcurrentWorkflowTaskExecutionSize: 2, // the SDK takes no fewer
	})
	w.RegisterWorkflowWithOptions(func(ctx workflow.Context) error {
		mu.Lock()
		defer mu.Unlock()
		key, _, _ := strings.Cut(workflow.GetInfo(ctx).WorkflowExecution.ID, "-")
		order = append(order, key)
		return nil
	}, workflow.RegisterOptions{Name: "turns"})
	require.NoError(t, w.Start())
	defer w.Stop()
	for _, run := range runs {
		require.NoError(t, run.Get(t.Context(), nil))
	}
	return order
}

func TestKeysAreServedFairly(t *testing.T) {
	t.Parallel()
	p := startProcess(t, "--port", "0", "--headless")
	c := dial(t, p.server)
	const many = 60
	runs := append(startKeyed(t, c, "many", many), startKeyed(t, c, "one", 1)...)
	order := workTwoAtATime(t, c, runs)
	require.Len(t, order, many+1)
	require.Less(t, slices.Index(order, "one"), many/3, "the last to come has a key of its own: %v", order)
	p.stopWith(t, syscall.SIGTERM)
}

func TestAFileStoresWhatWaitsWhenFairnessChanges(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "state.db")
	start := func(settings ...string) (*process, client.Client) {
		args := []string{"--port", "0", "--headless", "--db-filename", file}
		for _, setting := range settings {
			args = append(args, "--dynamic-config-value", setting)
		}
		p := startProcess(t, args...)
		return p, dial(t, p.server)
	}
	const off, parts = "matching.enableFairness=false", "matching.numTaskqueueWritePartitions=4"
	first, c := start(off, parts)
	runs := startKeyed(t, c, "before", 20)
	first.stopWith(t, syscall.SIGTERM)

	second, c := start()
	runs = append(through(t, c, runs), startKeyed(t, c, "after", 20)...)
	require.Len(t, workTwoAtATime(t, c, runs), 40)
	runs = startKeyed(t, c, "again", 20)
	second.stopWith(t, syscall.SIGTERM)

	third, c := start(off, parts)
	require.Len(t, workTwoAtATime(t, c, through(t, c, runs)), 20)
	third.stopWith(t, syscall.SIGTERM)
}

// through are the same runs, asked for by another client.
func through(t *testing.T, c client.Client, runs []client.WorkflowRun) []client.WorkflowRun {
	t.Helper()
	same := make([]client.WorkflowRun, len(runs))
	for i, run := range runs {
		same[i] = c.GetWorkflow(t.Context(), run.GetID(), run.GetRunID())
	}
	return same
}
