package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/runs"
	"reprise/interpreter"
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

// TestAnswersBelow answers what runs below ask by the ID of the run above.
func TestAnswersBelow(t *testing.T) {
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
	refused := d.refuses(exitFailed, "approve", id, "ask")
	require.Contains(t, refused, "2 attempts in runs below await an answer; name one of these by its ID")
	require.Contains(t, refused, "starter approve '"+twin+"' ask")
	require.Contains(t, d.refuses(exitFailed, "complete", id, "import"), "no step import awaits an answer, here or in a run below")
	require.Contains(t, d.refuses(exitFailed, "approve", id, "outer"), "step outer awaits no answers")
	d.does("approve", twin, "ask")

	var answered replyDocument
	require.NoError(t, json.Unmarshal([]byte(d.does("approve", id, "--output", "json")), &answered))
	require.Equal(t, inner, answered.WorkflowID)
	require.Equal(t, "ask", answered.Step)
	d.awaits(inner, 1, 1)
	require.Contains(t, d.does("progress", id, "import", "--done", "3"), inner+": import: 3")
	require.Contains(t, d.does("graph", id), "runs "+inner+" (asks.outer.inner): running")
	require.Contains(t, d.does("fail", id, "import", "--error", "no", "--final"), inner+": import has failed for good")

	result := d.ends(id)
	require.Equal(t, interpreter.Failed, result.Status)
	require.Contains(t, result.Error.Message, inner+": no")
	page := d.does("report", id, "-o", "-")
	require.Contains(t, page, "Runs of other playbooks")
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

// TestStatusLooksBelow says what the runs wait for that a step or an iteration has
// started, and what would help.
func TestStatusLooksBelow(t *testing.T) {
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
			return got.status == exitOK && strings.Contains(got.out, "retry_pending")
		}, 50*time.Second, 100*time.Millisecond)
	}
	waits(second)
	waits(alone)

	said := d.does("status", id)
	require.Contains(t, strings.ReplaceAll(said, "\n", " "), "alone: "+alone+", flaky retry_pending, attempt 1/3, in 1")
	require.Contains(t, said, "starter retry-now '"+alone+"'\n")
	require.Contains(t, said, "starter status "+id+" --step each\n")
	said = d.does("status", id, "--step", "each")
	require.Contains(t, said, "[0] running, attempt 1, runs "+first+"\n      ask awaits an answer for ")
	require.Contains(t, said, "[1] running, attempt 1, runs "+second+"\n      flaky retry_pending, attempt 1/3, in 1")
	require.Contains(t, said, "starter approve '"+first+"' ask\n")
	require.Contains(t, said, "starter retry-now '"+second+"'\n")
	var status runs.Status
	require.NoError(t, json.Unmarshal([]byte(d.does("status", id, "--step", "each", "--output", "json")), &status))
	iterations := status.Visits("each")[0].Iterations
	require.Len(t, iterations, 2)
	require.Equal(t, first, iterations[0].Below[0].Run)
	require.Equal(t, "flaky", iterations[1].Held[0].Step)
	require.Equal(t, "connection", string(iterations[1].Held[0].Error.Kind))
	d.does("cancel", id)
}
