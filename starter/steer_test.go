package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"reprise/internal/base/exitcode"
	"reprise/internal/base/terminal"
	"reprise/internal/program/steer"
	"reprise/internal/test/testenv"
	"reprise/starter/cli"
	"reprise/starter/control"
	"reprise/workflows/protocol"
)

// TestOlderBuild: a worker that takes no commands says which it does not know;
// what would work is said in its place.
func TestOlderBuild(t *testing.T) {
	t.Parallel()
	env := testenv.Temporal(t)
	queue := env.NewTaskQueue()
	w := worker.New(env.Client(), queue, worker.Options{})
	w.RegisterWorkflowWithOptions(func(ctx workflow.Context) error {
		return workflow.Sleep(ctx, time.Hour)
	}, workflow.RegisterOptions{Name: protocol.PlaybookWorkflowName})
	require.NoError(t, w.Start())
	t.Cleanup(w.Stop)
	require.Eventually(t, func() bool { // a worker that has just started is not seen at once
		polled, err := isPolled(t.Context(), env.Client(), queue)
		return err == nil && polled
	}, patience, 50*time.Millisecond)
	run, err := env.Client().ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{TaskQueue: queue}, protocol.PlaybookWorkflowName)
	require.NoError(t, err)

	send := func(args ...string) (status int, doc control.SteerDocument) {
		var out, errs bytes.Buffer
		status = Main(t.Context(), append(args, run.GetID(), "--address", env.Address, "--output", "json"), cli.Streams{Out: &out, Err: &errs})
		require.NoError(t, json.Unmarshal(out.Bytes(), &doc), "%s%s", out.String(), errs.String())
		return status, doc
	}
	status, doc := send("pause")
	require.Equal(t, exitcode.Failed, status)
	require.Equal(t, steer.Refused, doc.Runs[0].Outcome)
	require.Equal(t, "the run's worker is an older build that does not know this command; upgrade the worker, "+
		"or end the run with starter cancel "+run.GetID(), strings.Replace(doc.Runs[0].Message, terminal.ProgramName(), "starter", 1))
	status, doc = send("cancel", "--reason", "it is old")
	require.Equal(t, exitcode.OK, status)
	require.Equal(t, steer.Done, doc.Runs[0].Outcome)
	require.ErrorContains(t, testenv.WaitOutcome(t, run, nil), "canceled")
	history := testenv.Histories(t, env.Client(), run.GetID(), run.GetRunID())
	require.Contains(t, history[0].History.String(), "it is old")
	status, doc = send("cancel")
	require.Equal(t, exitcode.Failed, status)
	require.Contains(t, doc.Runs[0].Message, "the run has ended (cancelled), so there is nothing to cancel")
}

// TestAPauseNamesItsRunInFull: the command that lets a run go on does so when other
// runs have begun whose IDs begin like it.
func TestAPauseNamesItsRunInFull(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	id := d.start(importStep)
	d.awaits(id, 1, 1)
	got := d.say("pause", d.listed(id))
	require.Equal(t, exitcode.OK, got.status, got.err)
	require.Equal(t, "to resume: starter resume "+id+"\n", got.err)
	got = d.say("pause", id, "import")
	require.Equal(t, exitcode.OK, got.status, got.err)
	require.Equal(t, "to resume: starter resume "+id+"\n", got.err, "the whole run is paused")
	d.does("resume", id)
	got = d.say("pause", id, "import")
	require.Equal(t, exitcode.OK, got.status, got.err)
	require.Equal(t, "to resume: starter resume "+id+" import\n", got.err)
	d.does("resume", id, "import")
	d.does("cancel", id)
}

// TestSettlingSaysHowManyWaits: what else a run has that was not asked does not keep a
// command from saying whether something waited where it was meant.
func TestSettlingSaysHowManyWaits(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	const unreachable = `{tool: http, url: "http://127.0.0.1:1/", retry: [{when: "{{ error is defined }}", then: {max_attempts: 2, delay: 1h}}]`
	steps := "  - {step: start, next: [each"
	below := ""
	for i := range 6 {
		steps += fmt.Sprintf(", below%d", i)
		below += fmt.Sprintf("  - {step: below%d, tool: playbook, workflow: [%s, step: inner}]}\n", i, unreachable)
	}
	id := d.start(steps + "]}\n  - " + unreachable + ", step: each, loop: {in: [1, 2, 3]}}\n" + below)
	require.Eventually(t, func() bool { return strings.Contains(d.say("status", id).out, "1 waiting to retry") }, patience, 100*time.Millisecond)
	require.NotEmpty(t, d.status(id).Notes, "not all that is below was asked")
	skip := func(index string) steer.Result {
		var doc control.SteerDocument
		require.NoError(t, json.Unmarshal([]byte(d.does("skip", id, "each", "--index", index, "--reason", "why", "--output", "json")), &doc))
		return doc.Runs[0]
	}
	none := skip("2")
	require.Equal(t, []any{steer.Unchanged, 0, false}, []any{none.Outcome, *none.Waits, none.WaitsMore}, none.Message)
	one := skip("0")
	require.Equal(t, []any{steer.Done, 1, false}, []any{one.Outcome, *one.Waits, one.WaitsMore}, one.Message)
	d.does("cancel", id)
}
