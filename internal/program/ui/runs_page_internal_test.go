package ui

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/observe/runs"
	"reprise/internal/program/backfill"
	"reprise/interpreter"
	"reprise/interpreter/queue"
)

// TestShareCalls: runs that run get the calls that others need not, and a page never takes more than
// it may.
func TestShareCalls(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		running, others int
		want            []int // of a running one, and of another one
	}{
		"nothing is open":       {0, 0, []int{0, 0}},
		"one":                   {1, 0, []int{callsPerPage, 0}},
		"one beside others":     {1, 5, []int{4, 1}},
		"several beside others": {2, 3, []int{3, 1}},
		"none runs":             {0, 4, []int{0, 1}},
		"as many as there are":  {callsPerPage, 0, []int{1, 0}},
	} {
		var open []*runRow
		for i := range row.running {
			open = append(open, &runRow{Status: []interpreter.Status{interpreter.Running, interpreter.RetryPending}[i%2]})
		}
		for range row.others {
			open = append(open, &runRow{Status: interpreter.Awaiting})
		}
		calls, sum := shareCalls(open, callsPerPage), 0
		require.Len(t, calls, len(open), name)
		for i, n := range calls {
			sum += n
			if i < row.running {
				require.Equal(t, row.want[0], n, name)
			} else {
				require.Equal(t, row.want[1], n, name)
			}
		}
		require.LessOrEqual(t, sum, callsPerPage, name)
	}
}

// TestListedNow: what the list of runs says without a question to a worker.
func TestListedNow(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	for want, run := range map[string]runs.Found{
		"":                              {Status: interpreter.Running, NextRetryAt: now.Add(time.Hour)},
		"next retry in 5m00s":           {Status: interpreter.RetryPending, NextRetryAt: now.Add(5 * time.Minute)},
		"the next retry is due":         {Status: interpreter.RetryPending, NextRetryAt: now.Add(-time.Second)},
		"under the concurrency key one": {Status: interpreter.Queued, Queue: &runs.QueuePosition{Name: queue.Name{Key: "one"}}},
	} {
		require.Equal(t, want, listedNow(run, now))
	}
}

// TestCausesOfTheRunsThatNeedSomebodyAreReadFirst: on the first load of the start page they take all calls that are left, and a row
// whose cause was not read says so.
func TestCausesOfTheRunsThatNeedSomebodyAreReadFirst(t *testing.T) {
	t.Parallel()
	s := &Server{faults: newFaults()}
	row := func(id, playbook string) runRow {
		return runRow{Status: interpreter.Failed, Run: runs.Found{WorkflowID: id, RunID: id, Playbook: playbook}}
	}
	for _, c := range []struct {
		first, calls, left int
		read               string
	}{{3, 4, 0, "a b c"}, {0, 4, 2, "a"}, {2, 6, 1, "a b c d"}, {3, 3, 0, "a b"}, {3, -1, -1, ""}} {
		rows := []runRow{row("a", "days"+backfill.Suffix), row("b", "orders"), row("c", "orders"), row("d", "orders"), {Status: interpreter.Running}}
		var read []string
		calls := c.calls
		for _, row := range s.failedRows(rows, c.first, &calls, true) {
			read = append(read, row.Run.WorkflowID)
		}
		require.Equal(t, c.read, strings.Join(read, " "), "%+v", c)
		require.Equal(t, c.left, calls, "%+v", c)
		for _, row := range rows[:4] {
			require.NotEqual(t, slices.Contains(read, row.Run.WorkflowID), row.IsUnread, "%+v, %s", c, row.Run.WorkflowID)
		}
		require.False(t, rows[4].IsUnread)
	}
}
