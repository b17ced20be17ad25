package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/stretchr/testify/require"

	"reprise/activities"
	"reprise/internal/base/terminal"
	"reprise/internal/observe/deadletter"
	"reprise/interpreter"
	"reprise/interpreter/call/sink"
	"reprise/interpreter/expression"
)

// TestLettersFit: a narrow terminal shows every ID, element and error, and as many other columns as there is room for;
// a pipe gets all of it.
func TestLettersFit(t *testing.T) {
	t.Parallel()

	letter := sink.DeadLetter{
		LastAttemptAt: time.Date(2026, 3, 1, 8, 0, 0, 0, time.Local), Attempts: 3,
		Element: expression.Of(map[string]any{"id": strings.Repeat("p", 60)}),
		Error:   &interpreter.ErrorObject{Class: interpreter.ClassRateLimited, Message: "HTTP 429 from GET http://127.0.0.1:8088/api/v1/patients/p13"},
	}
	letters := []deadletter.Letter{
		{ID: "patient_medications-7x2k/fetch#1/13", DeadLetter: letter, State: "open", FailedRuns: 1},
		{ID: "b/fetch#1/1", DeadLetter: letter, State: "resolved"},
	}
	columns := map[int]int{}

	for width := 40; width < 240; width += 5 {
		rendered := lettersTable(letters, terminal.Paper{Width: width})
		require.LessOrEqual(t, text.LongestLineLen(rendered), width)
		ids := ""
		for _, line := range strings.Split(rendered, "\n")[3:] {
			if cells := strings.Split(line, "│"); len(cells) > 1 {
				ids += strings.TrimSpace(cells[1])
			}
		}
		require.Equal(t, letters[0].ID+letters[1].ID, ids, "%d columns", width)
		columns[width] = strings.Count(strings.SplitN(rendered, "\n", 3)[1], "│") - 1
		require.GreaterOrEqual(t, columns[width], columns[width-5], "%d columns", width)
	}
	require.Equal(t, 3, columns[40])
	require.Equal(t, 4, columns[90])
	require.Equal(t, 8, columns[200])
	whole := lettersTable(letters, terminal.Paper{Width: terminal.Unbounded})
	require.Contains(t, whole, letter.Error.Message)
	require.Contains(t, whole, strings.Repeat("p", 60))
}

// TestToolsFit explains every tool within 80 columns, but for its example, with its
// words whole.
func TestToolsFit(t *testing.T) {
	t.Parallel()

	catalogue := activities.NewCatalogue(activities.Resources{Directory: t.TempDir()})
	t.Cleanup(func() { require.NoError(t, catalogue.Close()) })

	for _, name := range catalogue.Names() {
		var b strings.Builder
		spec, _ := catalogue.Spec(name)
		explain(&b, spec)
		said, _, _ := strings.Cut(b.String(), "\nExample:")
		require.LessOrEqual(t, text.LongestLineLen(said), 80, "%s", said)
		require.NotContains(t, said, "may take 0s")
	}

	var out strings.Builder
	require.NoError(t, listTools(&app{Streams: Streams{Out: &out}}, catalogue, "table"))
	require.LessOrEqual(t, text.LongestLineLen(out.String()), 80, "%s", out.String())
	require.Contains(t, strings.Join(strings.Fields(out.String()), " "), fmt.Sprintf("│ %s │", "approval"))
}

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
	require.Contains(t, d.refuses(exitUsage, "dead-letters", "list", id+"x"), "there is no such run: "+id+"x")
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
	said := d.refuses(exitUsage, "status", id, "--run-id", other)
	require.Contains(t, said, "there is no such run: no run with the ID \""+id+"\" has the run ID \""+other+"\" on ")
	require.Contains(t, d.refuses(exitUsage, "status", id+"x", "--run-id", other), "no run has the ID \""+id+"x\" or one")
	d.does("cancel", id, id+"-and-more")
}
