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

	"reprise/internal/base/terminal"
	"reprise/internal/test/testenv"
	"reprise/interpreter"
	"reprise/workflows"
)

func TestParseTuning(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]interpreter.Rate{
		"20/s": {Requests: 20, PerSeconds: 1}, "100/m": {Requests: 100, PerSeconds: 60}, "5/h": {Requests: 5, PerSeconds: 3600},
		"10/30s": {Requests: 10, PerSeconds: 30}, "1/24h": {Requests: 1, PerSeconds: 86400}, "3/500ms": {Requests: 3, PerSeconds: 0.5},
	} {
		tuning, err := parseTuning([]string{"rate_limit=" + text, "max_concurrency=7"})
		require.NoError(t, err, text)
		require.Equal(t, interpreter.Tuning{MaxConcurrency: 7, Rate: &want}, tuning)
		require.NoError(t, tuning.Check())
	}
	for _, text := range []string{"", "20", "/s", "0/s", "-1/s", "1.5/s", "20/", "20/x", "20/0s", "20/-1s", "20/25h", "20/s/s"} {
		_, err := parseTuning([]string{"rate_limit=" + text})
		require.ErrorContains(t, err, "expected attempts in a time of at most a day", text)
	}
	require.Equal(t, "max_concurrency=7 rate_limit=10/30s",
		tuningText(interpreter.Tuning{MaxConcurrency: 7, Rate: &interpreter.Rate{Requests: 10, PerSeconds: 30}}))
}

// TestDone: the answer to each command in words.
func TestDone(t *testing.T) {
	t.Parallel()
	said := interpreter.Said{By: "ada@host", Reason: "it is\ndown"}
	paused := interpreter.Control{Version: 1, Paused: true, Held: map[string]interpreter.Said{"": said}}
	alone := interpreter.Control{Version: 2, Steps: []string{"fetch"}, Held: map[string]interpreter.Said{"fetch": said}}
	for _, c := range []struct {
		update, step string
		standing     workflows.CommandResult
		says         string
	}{
		{workflows.PauseUpdate, "", workflows.CommandResult{Changed: true, Control: paused}, "paused; no other attempt begins"},
		{workflows.PauseUpdate, "", workflows.CommandResult{Control: paused}, "was paused already by ada@host: it is down"},
		{workflows.PauseUpdate, "fetch", workflows.CommandResult{Control: alone}, "step fetch was paused already by ada@host: it is down"},
		{workflows.ResumeUpdate, "load", workflows.CommandResult{Changed: true, Control: alone}, "step load goes on; still step fetch paused by ada@host: it is down"},
		{workflows.ResumeUpdate, "", workflows.CommandResult{}, "was not paused"},
	} {
		o := &steering{update: c.update, Command: workflows.Command{Step: c.step}}
		require.Equal(t, c.says, o.done(steerResult{Standing: &c.standing}))
	}
	for _, c := range []struct {
		update string
		waits  int
		more   bool
		told   bool // loops
		says   string
	}{
		{workflows.RetryNowUpdate, 2, false, false, "step fetch tried again now: 2 waits ended"},
		{workflows.SkipUpdate, 1, false, true, "step fetch given up: 1 wait ended"},
		{workflows.RetryNowUpdate, 120, true, true, "step fetch tried again now: at least 120 waits ended"},
		{workflows.RetryNowUpdate, 0, true, true, "step fetch tried again now: what waits there, if anything does"},
		{workflows.SkipUpdate, 0, false, true, "nothing waits in step fetch, so nothing was changed"},
		{workflows.SkipUpdate, 0, false, false, "nothing waits in step fetch, so nothing was changed"},
	} {
		o := &steering{update: c.update, Command: workflows.Command{Step: "fetch"}}
		require.Equal(t, c.says, o.done(steerResult{Standing: &workflows.CommandResult{Signalled: c.told}, Waits: &c.waits, WaitsMore: c.more}))
	}
}

// TestOlderBuild: a worker that takes no commands says which it does not know;
// what would work is said in its place.
func TestOlderBuild(t *testing.T) {
	t.Parallel()
	env := testenv.Temporal(t)
	queue := env.NewTaskQueue()
	w := worker.New(env.Client(), queue, worker.Options{})
	w.RegisterWorkflowWithOptions(func(ctx workflow.Context) error {
		return workflow.Sleep(ctx, time.Hour)
	}, workflow.RegisterOptions{Name: workflows.PlaybookWorkflowName})
	require.NoError(t, w.Start())
	t.Cleanup(w.Stop)
	require.Eventually(t, func() bool { // a worker that has just started is not seen at once
		listening, err := listens(t.Context(), env.Client(), queue)
		return err == nil && listening
	}, patience, 50*time.Millisecond)
	run, err := env.Client().ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{TaskQueue: queue}, workflows.PlaybookWorkflowName)
	require.NoError(t, err)

	steer := func(args ...string) (status int, doc steerDocument) {
		var out, errs bytes.Buffer
		status = Main(t.Context(), append(args, run.GetID(), "--address", env.Address, "--output", "json"), Streams{Out: &out, Err: &errs})
		require.NoError(t, json.Unmarshal(out.Bytes(), &doc), "%s%s", out.String(), errs.String())
		return status, doc
	}
	status, doc := steer("pause")
	require.Equal(t, exitFailed, status)
	require.Equal(t, outcomeRefused, doc.Runs[0].Outcome)
	require.Equal(t, "its worker is of an older build, which takes no such command; put a worker of this build in its place, "+
		"or end the run with starter cancel "+run.GetID(), strings.Replace(doc.Runs[0].Message, terminal.Program(), "starter", 1))
	status, doc = steer("cancel", "--reason", "it is old")
	require.Equal(t, exitOK, status)
	require.Equal(t, outcomeDone, doc.Runs[0].Outcome)
	require.ErrorContains(t, run.Get(t.Context(), nil), "canceled")
	history := testenv.Histories(t, env.Client(), run.GetID(), run.GetRunID())
	require.Contains(t, history[0].History.String(), "it is old")
	status, doc = steer("cancel")
	require.Equal(t, exitFailed, status)
	require.Contains(t, doc.Runs[0].Message, "it has ended (cancelled), so there is nothing to cancel")
}

// TestAPauseNamesItsRunInFull: the command that lets a run go on does so when other
// runs have begun whose IDs begin like it.
func TestAPauseNamesItsRunInFull(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	id := d.start(importStep)
	d.awaits(id, 1, 1)
	got := d.say("pause", d.listed(id))
	require.Equal(t, exitOK, got.status, got.err)
	require.Equal(t, "to let it go on: starter resume "+id+"\n", got.err)
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
	require.Eventually(t, func() bool { return strings.Contains(d.say("status", id).out, "1 waiting for a retry") }, patience, 100*time.Millisecond)
	require.NotEmpty(t, d.status(id).Notes, "not all that is below was asked")
	skip := func(index string) steerResult {
		var doc steerDocument
		require.NoError(t, json.Unmarshal([]byte(d.does("skip", id, "each", "--index", index, "--reason", "why", "--output", "json")), &doc))
		return doc.Runs[0]
	}
	none := skip("2")
	require.Equal(t, []any{outcomeUnchanged, 0, false}, []any{none.Outcome, *none.Waits, none.WaitsMore}, none.Message)
	one := skip("0")
	require.Equal(t, []any{outcomeDone, 1, false}, []any{one.Outcome, *one.Waits, one.WaitsMore}, one.Message)
	d.does("cancel", id)
}
