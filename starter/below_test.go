package main

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

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
