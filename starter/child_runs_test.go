package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/base/exitcode"
	"reprise/internal/observe/runs"
	"reprise/internal/test/testenv"
	"reprise/interpreter"
	"reprise/starter/answer"
)

const asksBelow = `
  - {step: begin, next: [outer, twin]}
  - step: outer
    tool: playbook
    workflow:
      - step: inner
        tool: playbook
        workflow:
          - {step: ask, tool: approval, message: "Load it?", next: import}
          - {step: import, tool: webhook}
  - step: twin
    tool: playbook
    workflow:
      - {step: ask, tool: approval, message: "Drop it?"}
`

// TestAnswersInChildRuns answers what child runs of ask by the ID of the run above.
func TestAnswersInChildRuns(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	id := d.start(asksBelow)
	inner, twin := id+"/outer#1!1/inner#1!1", id+"/twin#1!1"
	d.awaits(inner, 1, 1)
	d.awaits(twin, 1, 1)

	said := d.does("status", id)
	require.Contains(t, said, "outer: runs "+id+"/outer#1!1")
	require.Contains(t, said, "starter approve '"+inner+"' ask")
	require.Contains(t, said, "starter approve '"+twin+"' ask")
	refused := d.refuses(exitcode.Failed, "approve", id, "ask")
	require.Contains(t, refused, "2 attempts in child runs await an answer; name one of the child runs by its ID")
	require.Contains(t, refused, "starter approve '"+twin+"' ask")
	require.Contains(t, d.refuses(exitcode.Failed, "complete", id, "import"), "no step import awaits an answer, in this run or in a child run")
	require.Contains(t, d.refuses(exitcode.Failed, "approve", id, "outer"), "step outer does not await answers")
	d.does("approve", twin, "ask")

	var answered answer.AnswerDocument
	require.NoError(t, json.Unmarshal([]byte(d.does("approve", id, "--output", "json")), &answered))
	require.Equal(t, inner, answered.WorkflowID)
	require.Equal(t, "ask", answered.Step)
	d.awaits(inner, 1, 1)
	require.Contains(t, d.does("progress", id, "import", "--done", "3"), inner+": import: 3")
	require.Contains(t, d.does("graph", id), "runs "+inner+" (asks.outer.inner): awaiting")
	require.Contains(t, d.does("fail", id, "import", "--error", "no", "--final"), inner+": import failed permanently")

	result := d.ends(id)
	require.Equal(t, interpreter.Failed, result.Status)
	require.Contains(t, result.Error.Message, inner+": no")
	page := d.does("report", id, "-o", "-")
	require.Contains(t, page, "Child runs")
	require.Contains(t, page, id+"/outer#1!1")
	require.Contains(t, d.does("graph", id, "--format", "svg"), "runs "+inner)
}

// waitsBelow runs playbooks in which something waits, in a loop and without one.
const waitsBelow = `
  - {step: begin, next: [alone, each]}
  - step: alone
    tool: playbook
    workflow:
      - step: inner
        tool: playbook
        workflow: [&flaky {step: flaky, tool: http, url: "http://127.0.0.1:1/", retry: {max_attempts: 3, initial_delay: 15m}}]
  - step: each
    tool: playbook
    loop: {in: [1, 2, 3], iterator: n, mode: parallel, max_concurrency: 2}
    workload: {n: "{{ n }}"}
    workflow:
      - step: ask
        tool: approval
        message: "{{ n }}?"
        next: flaky
      - *flaky
`

// TestStatusShowsChildRuns says what the runs wait for that a step or an iteration has
// started, and what would help.
func TestStatusShowsChildRuns(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	id := d.start(waitsBelow)
	alone, first, second := id+"/alone#1!1/inner#1!1", id+"/each#1/0!1", id+"/each#1/1!1"
	d.awaits(first, 1, 1)
	d.awaits(second, 1, 1)
	d.does("approve", second)
	waits := func(run string) {
		t.Helper()
		require.Eventually(t, func() bool {
			got := d.say("status", run)
			return got.status == exitcode.OK && strings.Contains(got.out, "retry_pending")
		}, testenv.Within(50*time.Second), 100*time.Millisecond)
	}
	waits(second)
	waits(alone)

	said := d.does("status", id)
	require.Contains(t, strings.ReplaceAll(said, "\n", " "), "alone: "+alone+", flaky retry_pending, attempt 2 of 3, in 1")
	require.Contains(t, said, "starter retry-now '"+alone+"'\n")
	require.Contains(t, said, "starter status "+id+" each\n")
	said = d.does("status", id, "--step", "each")
	require.Contains(t, said, "[0] running, attempt 1, runs "+first+"\n      ask awaiting an answer for ")
	require.Contains(t, said, "[1] running, attempt 1, runs "+second+"\n      flaky retry_pending, attempt 2 of 3, in 1")
	require.Contains(t, said, "starter approve '"+first+"' ask\n")
	require.Contains(t, said, "starter retry-now '"+second+"'\n")
	var status runs.Status
	require.NoError(t, json.Unmarshal([]byte(d.does("status", id, "--step", "each", "--output", "json")), &status))
	iterations := status.Visits("each")[0].Iterations
	require.Len(t, iterations, 2)
	require.Equal(t, first, iterations[0].Awaited[0].Run)
	require.Equal(t, "flaky", iterations[1].Held[0].Step)
	require.Equal(t, "connection", string(iterations[1].Held[0].Error.Kind))
	d.does("cancel", id)
}

// TestStatusSaysWhichChildRunIsPaused: who has paused it, and how it goes on.
func TestStatusSaysWhichChildRunIsPaused(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	id := d.start(asksBelow)
	inner := id + "/outer#1!1/inner#1!1"
	d.awaits(inner, 1, 1)
	d.awaits(id+"/twin#1!1", 1, 1)
	d.does("pause", inner, "--reason", "lunch")
	said := d.does("status", id)
	require.Regexp(t, `(?m)^outer: `+inner+`, paused since \d\d:\d\d:\d\d UTC by`, said)
	require.Contains(t, said, "to resume: starter resume '"+inner+"'\n")
	require.Contains(t, strings.ReplaceAll(said, "\n", " "), "lunch")
	held := d.status(id).Visits("outer")[0].Held
	require.Len(t, held, 1)
	require.Equal(t, interpreter.Paused, held[0].Status)
	require.Equal(t, "lunch", held[0].Control.Held[""].Reason)

	d.does("resume", inner)
	require.Empty(t, d.status(id).Visits("outer")[0].Held)
	d.does("cancel", id)
}

// TestStatusSaysWhoWaitsForASlot: who has a turn under a concurrency key says how many
// runs are behind it, who has none its place and whom it waits for, and so does a run
// whose step has started one of these.
func TestStatusSaysWhoWaitsForASlot(t *testing.T) {
	t.Parallel()
	d, dir := newDesk(t), t.TempDir()
	key := d.env.NewTaskQueue()
	head := "apiVersion: reprise/v1\nkind: Playbook\nmetadata: {name: turns}\n"
	write := func(name, source string) string {
		file := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(file, []byte(head+source), 0o600))
		return file
	}
	asks := write("asks.yaml", "concurrency: {shared: "+key+"}\nworkflow:\n  - {step: ask, tool: webhook, timeout: 1h}\n")
	parent := write("above.yaml", `workflow:
  - {step: begin, next: [alone, each]}
  - {step: alone, tool: playbook, path: asks.yaml}
  - {step: each, tool: playbook, path: asks.yaml, loop: {in: [1], iterator: n, mode: parallel}}
`)
	start := func(file string) string {
		id := d.env.NewTaskQueue()
		d.does("run", file, "--detach", "--task-queue", d.queue, "--workflow-id", id)
		return id
	}
	queued := func(id string, place int) {
		t.Helper()
		require.Eventually(t, func() bool {
			var status runs.Status
			got := d.say("status", id, "--output", "json")
			return json.Unmarshal([]byte(got.out), &status) == nil && status.Queue != nil && status.Queue.Position == place
		}, patience, 100*time.Millisecond, "%s is not in the queue", id)
	}

	holder := start(asks)
	d.awaits(holder, 1, 1)
	require.NotContains(t, d.does("status", holder), "concurrency key", "nobody waits")
	waiter := start(asks)
	queued(waiter, 1)
	said := d.does("status", holder)
	require.Contains(t, said, "\nhas a slot under the concurrency key "+key+"; queued behind it: 1 run\n")
	slot := d.status(holder).Slot
	require.Equal(t, []int{1, 1, 1}, []int{slot.Limit, slot.Running, slot.Waiting})
	require.LessOrEqual(t, d.status(holder).Calls, runs.StatusCalls)
	require.Contains(t, d.does("status", waiter), "to see the run ahead: starter status "+holder+"\n")

	outer := start(parent)
	alone, inLoop := outer+"/alone#1!1", outer+"/each#1/0!1"
	require.Eventually(t, func() bool {
		got := strings.ReplaceAll(d.say("status", holder).out, "\n", " ")
		return strings.Contains(got, "queued behind it: 3 runs")
	}, patience, 100*time.Millisecond)
	status := d.status(outer, "--step", "each")
	require.Empty(t, status.Queue, "it is the child runs that wait")
	require.NotEmpty(t, status.Visits("alone")[0].Held)
	require.NotEmpty(t, status.Visits("each")[0].Iterations)
	require.NotEmpty(t, status.Visits("each")[0].Iterations[0].Held)
	below := []runs.ChildWait{status.Visits("alone")[0].Held[0], status.Visits("each")[0].Iterations[0].Held[0]}
	require.ElementsMatch(t, []int{2, 3}, []int{below[0].Queue.Position, below[1].Queue.Position})
	require.Equal(t, []string{holder}, below[0].Queue.Holders)
	require.Equal(t, []string{alone, inLoop}, []string{below[0].Run, below[1].Run})
	text := strings.ReplaceAll(d.does("status", outer, "--step", "each"), "\n", " ")
	require.Contains(t, text, "alone: "+alone+", queued for ")
	require.Contains(t, text, "runs "+inLoop+"       queued for ")
	d.does("cancel", outer, waiter, holder)
}

// TestStatusShowsParentRuns says of a run below which run above holds it, and what would let
// it go on; so does a command that lets nothing go on as long as that is so.
func TestStatusShowsParentRuns(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	id := d.start(`
  - step: outer
    tool: playbook
    workflow:
      - step: inner
        tool: playbook
        workflow:
          - {step: ask, tool: approval, message: "Load it?"}
`)
	outer, inner := id+"/outer#1!1", id+"/outer#1!1/inner#1!1"
	d.awaits(inner, 1, 1)
	unwrapped := func(said string) string { return strings.ReplaceAll(said, "\n", " ") }
	require.NotContains(t, d.does("status", inner), "held by")

	d.does("pause", id, "--step", "outer", "--reason", "the API is down")
	d.does("pause", outer)
	said := unwrapped(d.does("status", inner))
	require.Contains(t, said, ": paused for ")
	require.Regexp(t, `held by the parent run `+outer+`: paused since \S+ UTC by \S+ `+
		`held by the parent run `+id+`: step outer paused since \S+ UTC by \S+: the API is down `, said)
	require.Contains(t, said, "to resume: starter resume '"+outer+"' to resume: starter resume "+id+" outer")
	require.Regexp(t, inner+`: was not paused; still held by its parent run `+outer+`: paused since .* \(to resume: starter resume '`+outer+`'\)`,
		d.does("resume", inner))
	require.Regexp(t, outer+`: resumed; still held by its parent run `+id+`: step outer paused since`, d.does("resume", outer))

	var status runs.Status
	require.NoError(t, json.Unmarshal([]byte(d.does("status", inner, "-o", "json")), &status))
	require.Len(t, status.HeldByParents, 1)
	require.Equal(t, []string{id, "outer", runs.HeldByPause}, []string{status.HeldByParents[0].Run, status.HeldByParents[0].Step, status.HeldBy})
	require.Equal(t, status.HeldByParents[0].Control.Held["outer"].At, status.Since, "it is paused since then, and runs for longer")
	require.Equal(t, id+": resumed\n", d.does("resume", id))
	require.NotContains(t, d.does("status", inner), "held by")
	d.does("cancel", id)
}
