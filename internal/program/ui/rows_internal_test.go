package ui

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/observe/runs"
	"reprise/interpreter"
	"reprise/interpreter/expression"
)

// TestRowsOfARun: a table has its figures in words of their own, with the watermark before and after.
func TestRowsOfARun(t *testing.T) {
	t.Parallel()
	require.Nil(t, newRowsView(nil, &runs.Status{}, nil))
	behind := 7200.0
	rows := interpreter.TableRows{Table: "<b>orders", Connection: "shop", RowTotals: interpreter.RowTotals{Written: 1234, Rejected: 2}}.ToRows().
		Plus(&interpreter.Rows{RowTotals: interpreter.RowTotals{Read: 1236}})
	view := newRowsView(rows, &runs.Status{}, []runs.Step{{Step: "load", Incremental: &runs.IncrementalStatus{
		StateRecord: interpreter.StateRecord{Type: "time", Before: expression.Of("2026-01-01T00:00:00Z"), Watermark: expression.Of("2026-01-02T00:00:00Z")}, Behind: &behind,
	}}})
	require.Equal(t, "1,236 read, 1,234 written, 2 rejected", view.Text)
	var page strings.Builder
	require.NoError(t, templates()["run"].ExecuteTemplate(&page, "rows", view))
	for _, want := range []string{"&lt;b&gt;orders", `<td data-label="Written" class="n">1,234</td>`, "watermark from 2026-01-01T00:00:00Z to 2026-01-02T00:00:00Z, "} {
		require.Contains(t, page.String(), want)
	}
}

// TestWhatARunBrought: a completed run leads with the rows that it wrote, and how new they are. A watermark that is no time, or whose
// move is in doubt, is left to the section about rows.
func TestWhatARunBrought(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 12, 1, 1, 0, 0, 0, time.UTC)
	table := func(name string, n int64) *interpreter.Rows {
		return interpreter.TableRows{Table: name, Connection: "warehouse", RowTotals: interpreter.RowTotals{Written: n}}.ToRows()
	}
	read := func(state interpreter.StateRecord) []runs.Step {
		return []runs.Step{{Step: "load", Incremental: &runs.IncrementalStatus{StateRecord: state}}}
	}
	day, later := expression.Of("2026-11-30T23:58:00Z"), expression.Of("2026-12-01T00:58:00+01:00")
	for want, of := range map[string]runs.Status{
		"Completed in 310ms: 4,812 rows written to warehouse/orders, newest 2026-11-30 23:58 UTC.": {Rows: table("orders", 4812), Steps: read(interpreter.StateRecord{Type: "time", Watermark: day, MovesTo: later})},
		"Completed in 310ms: 1 row written to warehouse/orders.":                                   {Rows: table("orders", 1), Steps: read(interpreter.StateRecord{Type: "integer", Watermark: expression.Of(7.0)})},
		"Completed in 310ms: 6 rows written to several tables.":                                    {Rows: table("a", 4).Plus(table("b", 2))},
		"Completed in 310ms.": {},
	} {
		of.StartedAt, of.EndedAt, of.Status = began, began.Add(310*time.Millisecond), interpreter.Completed
		require.Equal(t, want, verdictText(&of, began))
	}
}

// TestFolders: the page of playbooks says which folder it shows, and how to see the playbooks of one in it.
func TestFolders(t *testing.T) {
	t.Parallel()
	type content struct {
		Rows                         []bookRow
		Left                         int
		Note, Folder, Command, Other string
	}
	shown := func(of content) string {
		var page strings.Builder
		require.NoError(t, templates()["playbooks"].ExecuteTemplate(&page, "content", struct{ Content content }{of}))
		return page.String()
	}
	const command = "starter dev --playbooks playbooks"
	empty := shown(content{Folder: "clinic", Command: command, Other: "playbooks"})
	require.Contains(t, empty, "The folder <code>clinic</code> has no playbooks: files such as <code>orders.yaml</code>. To show those of another folder, restart with <code>"+command+"</code>.")
	require.NotContains(t, empty, "has playbooks too")
	require.Contains(t, shown(content{}), "The folder has no playbooks")
	some := content{Rows: []bookRow{{Name: "orders", Verdict: "valid"}}, Folder: "clinic", Command: command}
	require.NotContains(t, shown(some), "--playbooks")
	some.Other = "playbooks"
	require.Contains(t, shown(some), "The folder <code>playbooks</code> has playbooks too. To show those, restart with <code>"+command+"</code>.")
}

// TestBarsOfRuns: the last runs are drawn on the server, each a link with its figures in words.
func TestBarsOfRuns(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	require.Nil(t, newBars(nil, now))
	var list []*runRow
	for i := range 40 {
		began := now.Add(-time.Duration(i) * time.Hour)
		run := runs.Found{WorkflowID: "run/" + string(rune('a'+i%26)), Status: interpreter.Completed, StartedAt: began, EndedAt: began.Add(time.Duration(i+1) * time.Minute)}
		if i%2 == 0 {
			run.Rows = &interpreter.RowTotals{Read: 9, Written: int64(100 * i)}
		}
		list = append(list, newLastRun(run, now))
	}
	for _, i := range []int{3, 4} {
		list[i].Run.EndedAt, list[i].Status = time.Time{}, interpreter.Running
	}
	list[3].NoWorker, list[4].Status, list[4].ByPerson = true, interpreter.RetryPending, true
	bars := newBars(list, now)
	require.Len(t, bars.Bars, shownBars)
	require.True(t, bars.HasRows)
	newest, oldest := bars.Bars[shownBars-1], bars.Bars[0]
	require.Less(t, newest.Time, oldest.Time)
	require.Equal(t, "2026-01-02 00:00 UTC, "+interpreter.Completed.DisplayWord()+", 1m00s, 9 read", newest.Title)
	unserved, asking := bars.Bars[shownBars-4], bars.Bars[shownBars-5]
	require.Equal(t, interpreter.RetryPending, unserved.Status, "it does not look like a running one")
	require.Contains(t, unserved.Title, ", no worker, 3h")
	require.Equal(t, interpreter.Awaiting, asking.Status)
	require.Contains(t, asking.Title, ", needs a person, 4h")
	for _, bar := range bars.Bars {
		require.GreaterOrEqual(t, bar.TimeY, 0)
		require.LessOrEqual(t, bar.RowsY+bar.Written, 2*barHigh)
		require.GreaterOrEqual(t, bar.RowsY, barHigh)
	}
	var page strings.Builder
	require.NoError(t, templates()["playbook"].ExecuteTemplate(&page, "bars", bars))
	require.Equal(t, shownBars, strings.Count(page.String(), "<a href="))
	require.NotContains(t, page.String(), "style=")
}
