package e2e_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/workflows"
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
				workflows.PlaybookWorkflowName, workflows.Input{
					Name: "test.yaml", Source: source, Workload: expression.Of(map[string]any{"api": api, "tenant": key}),
				})
		})
	}
	group.Wait()
	for _, err := range failed {
		require.NoError(w.t, err)
	}
	return all
}

// TestAFloodOnOneKey: 60 runs ask for one key at once, far more than have a turn. The
// line takes them all in, no more go than may, and each has its turn.
func TestAFloodOnOneKey(t *testing.T) {
	t.Parallel()
	const runs, limit = 60, 10
	w := newWorking(t)
	gate, open := newLobby(t)
	all := w.flood(w.keyed(limit), gate.url, slices.Repeat([]string{"acme"}, runs))
	require.Eventually(t, func() bool { return w.standing("acme").Waiting == runs-limit }, patience, time.Second)
	open()
	w.allEnd(all)
	require.LessOrEqual(t, gate.most, limit)
	asked, granted := w.turnsOf(w.lineOf("acme"))
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
		asked, granted := w.turnsOf(interpreter.LineName{Playbook: w.queue, Key: key}.ID())
		require.ElementsMatch(t, []string{all[i].GetID(), all[i+len(keys)].GetID()}, asked, "%q", key)
		require.ElementsMatch(t, asked, granted, "%q", key)
	}
	result, err := w.run(w.keyed(1), map[string]any{"api": gate.url, "tenant": strings.Repeat("x", 100_000)})
	require.NoError(t, err)
	require.Equal(t, interpreter.Failed, result.Status)
	require.Equal(t, "concurrency: the name of concurrency has 100000 bytes; it may have 500 (test.yaml:4:20)", result.Error.Message)
}

// standing is how the line of a key stands, as far as it answers.
func (w *world) standing(key string) (standing interpreter.LineStanding) {
	answer, err := w.env.Client().QueryWorkflow(w.t.Context(), w.lineOf(key), "", interpreter.LineQuery, []interpreter.Member{})
	if err == nil {
		_ = answer.Get(&standing)
	}
	return standing
}

// allEnd waits until runs have completed.
func (w *world) allEnd(all []client.WorkflowRun) {
	w.t.Helper()
	ctx, stop := context.WithTimeout(w.t.Context(), 2*patience)
	defer stop()
	for _, run := range all {
		var result workflows.Result
		require.NoError(w.t, run.Get(ctx, &result), run.GetID())
		require.Equal(w.t, interpreter.Completed, result.Status, "%s: %+v", run.GetID(), result.Error)
	}
}
