package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/base/exitcode"
	"reprise/interpreter"
)

// TestDeadLettersByTheBeginningOfAnID: a run is named as it is everywhere else.
func TestDeadLettersByTheBeginningOfAnID(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	const fails = `
  - step: fetch
    tool: http
    url: "http://127.0.0.1:1/"
    loop: {in: [1, 2], iterator: n, mode: parallel}
`
	id := d.start(fails)
	d.start(fails) // another run, the ID of which begins with test- too
	require.Equal(t, interpreter.Failed, d.ends(id).Status)
	part := d.listed(id)
	require.Contains(t, d.does("dead-letters", "list", part), id+"/fetch#1/0")
	require.Contains(t, d.does("dead-letters", "show", part+"/fetch#1/1"), "dead letter:   "+id+"/fetch#1/1\n")
	require.Contains(t, d.does("dead-letters", "reprocess", part, "--dry-run"), id+"/fetch#1/1")
	require.Contains(t, d.refuses(exitcode.Usage, "dead-letters", "list", id+"x"), "there is no such run: "+id+"x")
	require.Eventually(t, func() bool {
		return strings.Contains(d.say("dead-letters", "list", "test-").err, "give more of it")
	}, patience, 100*time.Millisecond, "the list of the server has both runs")
}

// TestRunIDsOfABeginning: a run ID says which of the runs of an ID is meant, and the ID
// may be a beginning all the same.
func TestRunIDsOfABeginning(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	id := d.start(importStep)
	d.awaits(id, 1, 1)
	runID := d.status(id).RunID
	part := d.listed(id)
	require.Equal(t, id, d.status(part, "--run-id", runID).WorkflowID)
	const other = "0197f0a4-5c0e-7d3a-9f2b-8f6f0a1b2c3d"
	d.listed(d.startAs(id+"-and-more", importStep))
	said := d.refuses(exitcode.Usage, "status", id, "--run-id", other)
	require.Contains(t, said, "there is no such run: no run with the ID \""+id+"\" has the run ID \""+other+"\" on ")
	require.Contains(t, d.refuses(exitcode.Usage, "status", id+"x", "--run-id", other), "no run has the ID \""+id+"x\" or one")
	d.does("cancel", id, id+"-and-more")
}
