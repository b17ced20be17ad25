package host_test

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"reprise/activities"
	"reprise/internal/base/meter"
	"reprise/internal/program/host"
	"reprise/internal/test/testenv"
	"reprise/interpreter/expression"
	"reprise/workflows/protocol"
)

func TestCacheBytes(t *testing.T) {
	t.Parallel()
	given := func(text string) func(string) (string, bool) {
		return func(name string) (string, bool) { return text, name == host.CacheVariable }
	}
	n, err := host.CacheBytes(given("100000000"))
	require.NoError(t, err)
	require.EqualValues(t, 100_000_000, n)
	for _, wrong := range []string{"many", "0", "-1", "1000", "1e9"} {
		_, err = host.CacheBytes(given(wrong))
		require.EqualError(t, err, fmt.Sprintf("REPRISE_CACHE_BYTES is %q; it must be a number of bytes from 33554432", wrong))
	}
	n, err = host.CacheBytes(given(""))
	require.NoError(t, err)
	require.Positive(t, n)
}

func TestCgroupBytes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{"max\n": math.MaxInt64, "1073741824\n": 1 << 30, "9223372036854771712\n": math.MaxInt64} {
		require.Equal(t, want, host.CgroupBytes(func(string) ([]byte, error) { return []byte(text), nil }), text)
	}
	require.EqualValues(t, math.MaxInt64, host.CgroupBytes(func(string) ([]byte, error) { return nil, os.ErrNotExist }))
}

// figures counts what is told.
type figures struct{ memory, bound, drops atomic.Int64 }

func (f *figures) Add(m *meter.Metric, n int64, _ ...string) {
	map[*meter.Metric]*atomic.Int64{meter.Memory: &f.memory, meter.MemoryBound: &f.bound, meter.CacheDrops: &f.drops}[m].Add(n)
}

func (f *figures) Observe(*meter.Metric, time.Duration, ...string) {}

// TestCacheIsBoundByBytes: runs that wait are dropped from memory while it is above its
// bound, and go on right when their answers come.
//
//nolint:paralleltest // it measures the memory of the process
func TestCacheIsBoundByBytes(t *testing.T) {
	const runs, size, bound = 60, 900_000, 32 << 20
	patience := testenv.Within(2 * time.Minute)
	env := testenv.Temporal(t)
	c, err := client.Dial(host.ClientOptions(nil, client.Options{HostPort: env.Address, Namespace: env.Namespace, Logger: quietLog{}}, nil))
	require.NoError(t, err)
	t.Cleanup(c.Close)
	queue := env.NewTaskQueue()
	startWorker(t, c, queue, activities.Resources{})
	told := &figures{}
	ctx, stop := context.WithCancel(t.Context())
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		host.WatchCache(ctx, bound, told, slog.New(slog.DiscardHandler))
	}()
	const book = "apiVersion: reprise/v1\nkind: Playbook\nmetadata: {name: large}\nworkflow: [{step: ask, tool: webhook}]\n" +
		"output: \"{{ [ask, len(workload.text), workload.i] }}\"\n"
	var started []client.WorkflowRun
	for i := range runs {
		run, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: fmt.Sprintf("%s-%d", queue, i), TaskQueue: queue},
			protocol.PlaybookWorkflowName, protocol.Input{
				Name: "large.yaml", Source: book, Workload: expression.Of(map[string]any{"text": strings.Repeat("x", size), "i": i}),
			})
		require.NoError(t, err)
		started = append(started, run)
	}
	for i, run := range started {
		require.Eventually(t, func() bool { // the attempt has begun
			update, err := c.UpdateWorkflow(t.Context(), client.UpdateWorkflowOptions{
				WorkflowID: run.GetID(), UpdateName: protocol.AnswerUpdate, WaitForStage: client.WorkflowUpdateStageCompleted,
				Args: []any{map[string]any{"verb": "complete", "step": "ask", "result": 10 * i}},
			})
			return err == nil && update.Get(t.Context(), nil) == nil
		}, patience, 50*time.Millisecond)
		var result protocol.Result
		require.NoError(t, testenv.WaitOutcome(t, run, &result))
		require.Equal(t, []any{10 * i, size, i}, result.Result.Data)
	}
	require.Positive(t, told.drops.Load())
	require.EqualValues(t, bound, told.bound.Load())
	stop()
	testenv.Receive(t, watched, "the end of the watch")
	require.Zero(t, told.bound.Load())
	require.Zero(t, told.memory.Load())
}

type quietLog struct{}

func (quietLog) Debug(string, ...any) {}
func (quietLog) Info(string, ...any)  {}
func (quietLog) Warn(string, ...any)  {}
func (quietLog) Error(string, ...any) {}
