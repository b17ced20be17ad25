package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/client"

	"reprise/internal/test/testenv"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/queue"
	"reprise/workflows/protocol"
)

// keyed is a playbook whose key callers choose. Its runs ask the API until they may go.
func (w *world) keyed(limit int) string {
	return fmt.Sprintf(`apiVersion: reprise/v1
kind: Playbook
metadata: {name: %s}
concurrency: {key: "{{ workload.tenant }}", limit: %d}
workflow:
  - step: ask
    tool: http
    url: "{{ api }}"
    params: {run: "{{ execution_id }}"}
    retry: [{when: "{{ not response.open }}", then: {max_attempts: 10000, delay: 2s}}]
`, w.queue, limit)
}

// flood starts a run for each key, many at a time.
func (w *world) flood(source, api string, keys []string) []client.WorkflowRun {
	w.t.Helper()
	all, failed := make([]client.WorkflowRun, len(keys)), make([]error, len(keys))
	var group sync.WaitGroup
	places := make(chan struct{}, 16)
	for i, key := range keys {
		places <- struct{}{}
		group.Go(func() {
			defer func() { <-places }()
			all[i], failed[i] = w.env.Client().ExecuteWorkflow(w.t.Context(),
				client.StartWorkflowOptions{ID: fmt.Sprintf("%s/%04d", w.queue, i), TaskQueue: w.queue},
				protocol.PlaybookWorkflowName, protocol.Input{
					Name: "test.yaml", Source: source, Workload: expression.Of(map[string]any{"api": api, "tenant": key}),
				})
		})
	}
	testenv.Wait(w.t, group.Wait, "the starts of all runs")
	for _, err := range failed {
		require.NoError(w.t, err)
	}
	return all
}

// TestAFloodOnOneKey: 60 runs ask for one key at once, far more than have a turn. The
// line takes them all in, no more go than may, and each has its turn. With -soak there
// are 1,500, for which the line needs several histories; it answers all the time.
func TestAFloodOnOneKey(t *testing.T) {
	t.Parallel()
	const limit = 10
	runs, within := 60, patience
	if *soak {
		runs, within = 1500, 30*time.Minute
	}
	w := newWorking(t)
	gate, open := newLobby(t)
	silence := w.asksAgainAndAgain("acme")
	all := w.flood(w.keyed(limit), gate.url, slices.Repeat([]string{"acme"}, runs))
	require.Eventually(t, func() bool { return w.standing("acme").Waiting == runs-limit }, within, time.Second)
	open()
	w.allEndWithin(all, within)
	longest := silence()
	t.Logf("the line gave no answer for %s at most", longest.Round(100*time.Millisecond))
	if *soak {
		require.Less(t, longest, 30*time.Second)
	}
	require.LessOrEqual(t, gate.most, limit)
	asked, granted := w.slotsOf(w.lineOf("acme"))
	require.Len(t, asked, runs)
	require.ElementsMatch(t, asked, granted)
	w.replayLine("acme")
}

// TestKeysThatCallersChoose: whatever text a key is, runs that have it take turns and
// wait for nobody else. One that is far too long fails its run, which asks for no turn.
func TestKeysThatCallersChoose(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	gate, open := newLobby(t)
	open()
	keys := []string{
		"a/b", "a%2fb", "../..", "?", "#", "*", "a b", "`code`|<script>", "line\nbreak", "nul\x00", "\u202e", "ключ", "😀", "null", "0",
		strings.Repeat("/", 500), strings.Repeat("/", 499) + "x", strings.Repeat("é", 250), `") OR ("1"="1`,
	}
	all := w.flood(w.keyed(1), gate.url, append(slices.Clone(keys), keys...))
	w.allEnd(all)
	for i, key := range keys {
		asked, granted := w.slotsOf(queue.Name{Playbook: w.queue, Key: key}.WorkflowID())
		require.ElementsMatch(t, []string{all[i].GetID(), all[i+len(keys)].GetID()}, asked, "%q", key)
		require.ElementsMatch(t, asked, granted, "%q", key)
	}
	result, err := w.run(w.keyed(1), map[string]any{"api": gate.url, "tenant": strings.Repeat("x", 100_000)})
	require.NoError(t, err)
	require.Equal(t, interpreter.Failed, result.Status)
	require.Equal(t, "concurrency: the name of concurrency is 100000 bytes long; at most 500 are allowed (test.yaml:4:20)", result.Error.Message)
}

// standing is how the line of a key stands, as far as it answers.
func (w *world) standing(key string) (standing queue.Status) {
	answer, err := w.env.Client().QueryWorkflow(w.t.Context(), w.lineOf(key), "", queue.StatusQuery, []queue.Member{})
	if err == nil {
		_ = answer.Get(&standing)
	}
	return standing
}

// asksAgainAndAgain asks the line of a key how it stands, each second until silence is
// called, which tells the longest time that the line gave no answer.
func (w *world) asksAgainAndAgain(key string) (silence func() time.Duration) {
	ctx, stop := context.WithCancel(w.t.Context())
	done, longest := make(chan struct{}), time.Duration(0)
	go func() {
		defer close(done)
		for answered := time.Now(); ctx.Err() == nil; {
			_, err := w.env.Client().QueryWorkflow(ctx, w.lineOf(key), "", queue.StatusQuery, []queue.Member{})
			longest = max(longest, time.Since(answered))
			if err == nil || errors.As(err, new(*serviceerror.NotFound)) {
				answered = time.Now()
			}
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
		}
	}()
	return func() time.Duration {
		stop()
		testenv.Receive(w.t, done, "the answer to the last query")
		return longest
	}
}

// allEnd waits until runs have completed.
func (w *world) allEnd(all []client.WorkflowRun) {
	w.t.Helper()
	w.allEndWithin(all, 2*patience)
}

// allEndWithin is allEnd, of runs that may take longer.
func (w *world) allEndWithin(all []client.WorkflowRun, within time.Duration) {
	w.t.Helper()
	ctx, stop := context.WithTimeout(w.t.Context(), within)
	defer stop()
	for _, run := range all {
		var result protocol.Result
		require.NoError(w.t, run.Get(ctx, &result), run.GetID())
		require.Equal(w.t, interpreter.Completed, result.Status, "%s: %+v", run.GetID(), result.Error)
	}
}

// TestRequestsWaitWhileAQueueContinues: a line whose history is long gets no requests until
// it has continued as new, as the server would refuse that while they come.
func TestRequestsWaitWhileAQueueContinues(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	gate, open := newLobby(t)
	open()
	id, elsewhere := w.lineOf("acme"), newWorld(t)
	_, err := w.env.Client().ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: id, TaskQueue: elsewhere.queue},
		queue.WorkflowName, queue.Queue{Name: queue.Name{Playbook: w.queue, Key: "acme"}})
	require.NoError(t, err)
	for range interpreter.LargeHistory/100_000 + 1 {
		require.NoError(t, w.env.Client().SignalWorkflow(t.Context(), id, "", queue.RequestSignal, map[string]any{
			"leave": true, "workflow_id": "nobody", "ballast": strings.Repeat("x", 100_000),
		}))
	}
	run := w.flood(w.keyed(1), gate.url, []string{"acme"})[0]
	require.Eventually(t, func() bool { return w.pending(run.GetID(), queue.EnterActivity) }, patience, tick)
	elsewhere.work()
	w.endsAs(run, interpreter.Completed)
	histories := testenv.Histories(t, w.env.Client(), id, "")
	require.Len(t, histories, 2, "the line continues as new once")
	for _, event := range histories[0].History.GetEvents() {
		require.NotContains(t, event.GetWorkflowExecutionSignaledEventAttributes().GetInput().String(), run.GetID())
	}
}

// pending reports whether a run has an activity that has not ended.
func (w *world) pending(id, name string) bool {
	described, err := w.env.Client().DescribeWorkflowExecution(w.t.Context(), id, "")
	require.NoError(w.t, err)
	return slices.ContainsFunc(described.GetPendingActivities(), func(one *workflowpb.PendingActivityInfo) bool {
		return one.GetActivityType().GetName() == name
	})
}
