package render_test

import (
	"bytes"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/stretchr/testify/require"

	"reprise/internal/base/terminal"
	"reprise/internal/observe/render"
	"reprise/internal/observe/runs"
	"reprise/internal/test/samples"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/incremental"
	"reprise/interpreter/queue"
)

// someStatus has every state, with all that may hold a step.
func someStatus() *runs.Status {
	now := samples.Began.Add(192 * time.Second)
	item := func(state interpreter.Status) runs.Item { return runs.Item{Status: state} }
	waits := runs.Item{
		Status: interpreter.RetryPending, Attempt: 2, MaxAttempts: 5, NextRetryAt: now.Add(4 * time.Second),
		HeldBy: runs.HeldByWait, Waiting: "call: attempt 3 of 5 after 4s: HTTP 503", Phrase: &interpreter.WaitPhrase{What: "attempt 3 of 5", Why: ": HTTP 503"}, Error: samples.FailureOf503(),
	}
	turn := runs.Item{
		Status: interpreter.Running, Attempt: 1, HeldBy: runs.HeldByRateLimit,
		Waiting: "paced: slot after 4m0s, under its rate limit", Phrase: &interpreter.WaitPhrase{What: "slot", Why: ", under its rate limit"}, NextRetryAt: now.Add(4 * time.Minute),
	}
	loop := runs.Step{
		Step: "fetch", Visit: 2, StartedAt: samples.Began.Add(time.Second), Item: runs.Item{
			Status: interpreter.Running, HeldBy: runs.HeldByWindow, Waiting: "88000 iterations wait for a slot in the loop's window",
			NextRetryAt: now.Add(-time.Second),
		},
		Loop: &runs.Counts{
			Total: 100_000, Success: 11_000, Failed: 480, Running: 500, Waiting: 20, Pending: 88_000, PerSecond: 60.1, Left: 1473,
		},
		Iterations: []runs.Iteration{
			{Index: 7, Item: runs.Item{Status: interpreter.Failed, Attempt: 5, Error: samples.FailureOf503()}},
			{Index: 12000, Item: runs.Item{
				Status: interpreter.RetryPending, Attempt: 1, MaxAttempts: 5, NextRetryAt: now.Add(90 * time.Second), Error: samples.FailureOf503(),
			}},
			{Index: 12001, Item: turn},
			{Index: 12002, Item: runs.Item{Status: interpreter.Running, Attempt: 1, MaxAttempts: 5}},
		},
		Left: 470,
	}
	return &runs.Status{
		Found: runs.Found{WorkflowID: "patients-7x2k", Playbook: "patients", Status: interpreter.Running, StartedAt: samples.Began},
		At:    now,
		Steps: []runs.Step{
			{Step: "start", Visit: 1, Item: item(interpreter.Completed), StartedAt: samples.Began, EndedAt: samples.Began.Add(40 * time.Millisecond)},
			{Step: "call", Visit: 1, Item: waits, StartedAt: samples.Began.Add(time.Second)},
			loop,
			{Step: "paced", Visit: 1, Item: turn, StartedAt: samples.Began.Add(time.Second)},
			{Step: "held", Visit: 1, Item: item("paused"), StartedAt: samples.Began.Add(time.Second)},
			{
				Step: "missed", Visit: 1, StartedAt: samples.Began, EndedAt: samples.Began.Add(2 * time.Second), Handled: true,
				Item: runs.Item{Status: interpreter.Failed, Attempt: 1, Error: samples.FailureOf503()},
			},
			{Step: "parts", Visit: 1, Item: item(interpreter.Partial), StartedAt: samples.Began, EndedAt: samples.Began.Add(time.Hour)},
			{Step: "a_step_with_a_name_as_long_as_names_of_steps_may_be_in_a_playbook", Item: item(interpreter.Pending)},
			{Step: "other", Item: item(interpreter.Skipped)},
			{Step: "gone", Visit: 1, Item: item(interpreter.Cancelled), StartedAt: samples.Began, EndedAt: samples.Began},
		},
		Slot:            &runs.QueueSlot{Name: queue.Name{Playbook: "patients", Key: "acme"}, Limit: 2, Running: 2, Waiting: 3},
		FurtherWarnings: []string{"step missed failed, and a route handled the failure: HTTP 503 from GET https://api.example.com/patients/13/medications"},
		Notes:           []string{"the progress of the loop of step other was not queried: that would take more than 8 calls to the server"},
	}
}

func TestGoldenStatus(t *testing.T) {
	t.Parallel()
	for _, width := range []int{40, 60, 80, 120} {
		var out bytes.Buffer
		render.PrintStatus(&terminal.Screen{To: &out}, someStatus(), terminal.Paper{Width: width})
		for line := range strings.Lines(out.String()) {
			if !strings.HasPrefix(line, "  starter ") && !strings.HasPrefix(line, "patients-7x2k (") { // commands and IDs are in one piece
				require.LessOrEqual(t, text.StringWidth(strings.TrimRight(line, "\n")), width, "%d columns: %s", width, line)
			}
			require.NotContains(t, line, "\x1b")
		}
		samples.Golden(t, fmt.Sprintf("status/width_%d", width), out.String())
	}
}

// TestGoldenStatusGroups: at a terminal, failed iterations with the same cause are listed together, in the place of the first; a pipe
// has a line for each.
func TestGoldenStatusGroups(t *testing.T) {
	t.Parallel()
	status := someStatus()
	loop := status.Steps[2]
	for i := range 12 {
		failure := samples.FailureOf503()
		failure.Message = fmt.Sprintf("HTTP 503 from GET https://api.example.com/patients/%d", 20+i)
		loop.Iterations = append(loop.Iterations, runs.Iteration{Index: 20 + i, Item: runs.Item{Status: interpreter.Failed, Attempt: 5, Error: failure}})
	}
	loop.Iterations = append(loop.Iterations, runs.Iteration{Index: 40, Item: runs.Item{Status: interpreter.Failed, Attempt: 1, Error: &interpreter.ErrorObject{
		Kind: interpreter.KindConnection, Type: "econnrefused", Message: "GET https://api.example.com/patients/40: connection refused",
	}}})
	loop.Left = 0
	status.Steps = []runs.Step{loop}
	for _, width := range []int{40, 80, terminal.Unbounded} {
		var out bytes.Buffer
		render.PrintStatus(&terminal.Screen{To: &out}, status, terminal.Paper{Width: width})
		if width == terminal.Unbounded {
			for _, iteration := range loop.Iterations {
				require.Contains(t, out.String(), fmt.Sprintf("\n  [%d] ", iteration.Index))
			}
			continue
		}
		samples.Golden(t, fmt.Sprintf("status/groups_%d", width), out.String())
	}
}

// TestGoldenActivities: what a worker does is said where it continues for a while without an answer or a write, or again and again.
func TestGoldenActivities(t *testing.T) {
	t.Parallel()
	at := samples.LocalBegan.Add(2 * time.Minute)
	status := &runs.Status{
		Found: runs.Found{WorkflowID: "load-9s1k2a", Playbook: "load", Status: interpreter.Running, StartedAt: samples.LocalBegan}, At: at,
		Steps: []runs.Step{{Step: "orders", Visit: 1, Item: runs.Item{Status: interpreter.Running}, StartedAt: samples.LocalBegan}},
		Activities: []runs.PendingActivity{
			{Type: "drive", Worker: "4711@worker-1", Since: at.Add(-time.Minute), Running: true, Deliveries: 1, Step: "orders", Progress: at.Add(-31 * time.Second)},
			{Type: "drive", Worker: "4711@worker-1", Since: at.Add(-time.Minute), Running: true, Deliveries: 1, Step: "quick", Progress: at.Add(-time.Second)},
			{Type: "state", Worker: "4711@worker-1", Since: at.Add(-25 * time.Second), Running: true, Deliveries: 1},
			{Type: "http", Worker: "4711@worker-1", Since: at.Add(-2 * time.Second), Running: true, Deliveries: 1},
			{Type: "postgres", Worker: "4711@worker-1", Since: at.Add(-5 * time.Second), Deliveries: 3, LastFailure: "the state load/orders is out of reach"},
			{Type: "file", Deliveries: 1},
		},
	}
	var out bytes.Buffer
	render.PrintStatus(&terminal.Screen{To: &out}, status, terminal.Paper{Width: 80})
	samples.Golden(t, "status/activities_80", out.String())
}

// TestGoldenIncremental: a step says how far it has read and how far behind it is, a loop how many
// states it has and which one is behind the others; only times are behind.
func TestGoldenIncremental(t *testing.T) {
	t.Parallel()
	read := func(name string, behind float64, record interpreter.StateRecord) runs.Step {
		shown := &runs.IncrementalStatus{StateRecord: record}
		if behind >= 0 {
			shown.Behind = &behind
		}
		return runs.Step{Step: name, Visit: 1, Item: runs.Item{Status: interpreter.Completed}, Incremental: shown}
	}
	at := expression.Of("2026-01-31T10:00:00.123456Z")
	status := &runs.Status{
		Found: runs.Found{WorkflowID: "load-9s1k2a", Playbook: "load", Status: interpreter.Completed, StartedAt: samples.LocalBegan, EndedAt: samples.LocalBegan},
		At:    samples.LocalBegan.Add(2 * time.Minute),
		Steps: []runs.Step{
			read("time", 31, interpreter.StateRecord{State: "load/time", Type: incremental.Time, From: at, Watermark: at, Rows: 1}),
			read("date", 2*86400, interpreter.StateRecord{State: "load/date", Type: incremental.Date, From: at, Watermark: expression.Of("2026-01-31"), Rows: 12}),
			read("first", -1, interpreter.StateRecord{State: "load/first", Type: incremental.Time, From: at}),
			read("integer", -1, interpreter.StateRecord{State: "load/integer", Type: incremental.Integer, Watermark: expression.Of(41)}),
			read("ages", 1e30, interpreter.StateRecord{State: "load/ages", Type: incremental.Time, Watermark: at}),
			read("shops", 260_000, interpreter.StateRecord{State: "load/shops/7\x1b", States: 12, Type: incremental.Time, Watermark: at, Rows: 4000}),
			read("new_shops", -1, interpreter.StateRecord{State: "load/new_shops/7", States: 12, Type: incremental.Time}),
			read("ids", -1, interpreter.StateRecord{State: "load/ids/7", States: 12, Type: incremental.Integer, Watermark: expression.Of(41)}),
			read("tokens", -1, interpreter.StateRecord{State: "load/tokens/7", States: 12, Type: incremental.Token, Watermark: at}),
			read("nowhere", -1, interpreter.StateRecord{State: "load/nowhere", Type: incremental.Time, From: at, MovesTo: at, Rows: 3}),
			read("nowhere_shops", -1, interpreter.StateRecord{State: "load/nowhere_shops/7", States: 12, Type: incremental.Time, MovesTo: at, Rows: 3}),
			read("one", 7200, interpreter.StateRecord{State: "load/one/7", States: 1, Type: incremental.Time, Watermark: at}),
		},
	}
	var out bytes.Buffer
	render.PrintStatus(&terminal.Screen{To: &out}, status, terminal.Paper{Width: 80})
	samples.Golden(t, "status/incremental_80", out.String())
}

// TestGoldenQueued: a run that waits for its turn says under which key, its place and
// who has one.
func TestGoldenQueued(t *testing.T) {
	t.Parallel()
	now := samples.Began.Add(192 * time.Second)
	status := &runs.Status{
		Found: runs.Found{
			WorkflowID: "patients-9s1k2a", Playbook: "patients", Status: interpreter.Queued, StartedAt: samples.Began,
			Since: now.Add(-3 * time.Minute), Queue: &runs.QueuePosition{
				Name: queue.Name{Playbook: "patients", Key: "acme\x1b corp"}, WorkflowID: "reprise-concurrency/patients/acme corp", Since: now.Add(-3 * time.Minute), Limit: 2, Position: 12,
				Holders: []string{"patients-7x2k3q", "patients-8a6c3z"}, Running: 5,
				HoldersSince: []time.Time{now.Add(-30 * time.Hour), now.Add(-4 * time.Minute)},
			},
			HeldBy: runs.HeldByConcurrency,
		},
		Steps: []runs.Step{{Step: "fetch", Item: runs.Item{Status: interpreter.Pending}}}, At: now,
	}
	var out bytes.Buffer
	render.PrintStatus(&terminal.Screen{To: &out}, status, terminal.Paper{Width: 80})
	for _, unpolled := range []runs.MissingWorker{{WorkflowID: "patients-7x2k3q", TaskQueue: "night shift"}, {WorkflowID: status.Queue.WorkflowID, TaskQueue: "clinic"}} {
		status.Queue.NoWorker = &unpolled
		render.PrintStatus(&terminal.Screen{To: &out}, status, terminal.Paper{Width: 80})
	}
	samples.Golden(t, "status/queued_80", out.String())
}

// TestGoldenQueuedStep: a step that waits for its state shows why the run that holds it does not continue.
func TestGoldenQueuedStep(t *testing.T) {
	t.Parallel()
	now := samples.Began.Add(192 * time.Second)
	queueID := "reprise-concurrency//load%2Forders/state"
	status := &runs.Status{
		Found: runs.Found{WorkflowID: "load-9s1k2a", Playbook: "load", Status: interpreter.Running, StartedAt: samples.Began, HeldBy: runs.HeldByConcurrency},
		At:    now,
	}
	var out bytes.Buffer
	for _, unpolled := range []*runs.MissingWorker{nil, {WorkflowID: "load-7x2k3q", TaskQueue: "night shift"}, {WorkflowID: queueID, TaskQueue: "clinic"}} {
		status.Steps = []runs.Step{{
			Step: "orders", Visit: 1, StartedAt: samples.Began,
			Item: runs.Item{
				Status: interpreter.Pending, HeldBy: runs.HeldByConcurrency, Waiting: "waits for the state load/orders, which run load-7x2k3q holds",
			},
			Queue: &runs.QueuePosition{
				Name: queue.Name{Key: "load/orders", State: true}, WorkflowID: queueID, Since: samples.Began, Limit: 1, Position: 1,
				Holders: []string{"load-7x2k3q"}, Running: 1, HoldersSince: []time.Time{samples.Began}, NoWorker: unpolled,
			},
		}}
		render.PrintStatus(&terminal.Screen{To: &out}, status, terminal.Paper{Width: 80})
		out.WriteString(render.StepNow(status.Steps[0], status) + "\n")
	}
	samples.Golden(t, "status/queued_step_80", out.String())
}

// TestGoldenCancelled: a run says who has cancelled it, and why, before it has ended
// and afterwards.
func TestGoldenCancelled(t *testing.T) {
	t.Parallel()
	status := &runs.Status{
		Found: runs.Found{WorkflowID: "patients-9s1k2a", Playbook: "patients", Status: interpreter.Running, StartedAt: samples.LocalBegan, Build: &runs.Build{Deployment: "clinic", ID: "v0.1.0", Pinned: true}},
		Cancel: &interpreter.Said{
			By: "ada@clinic", Reason: "the wrong\x1b[31m\nmonth", At: samples.LocalBegan.Add(time.Minute),
		},
		Steps: []runs.Step{{Step: "fetch", Visit: 1, Item: runs.Item{Status: interpreter.Running}, StartedAt: samples.LocalBegan}},
		At:    samples.LocalBegan.Add(2 * time.Minute),
	}
	var out bytes.Buffer
	render.PrintStatus(&terminal.Screen{To: &out}, status, terminal.Paper{Width: 80})
	status.Status, status.EndedAt, status.Steps[0].Status = interpreter.Cancelled, status.At, interpreter.Cancelled
	render.PrintStatus(&terminal.Screen{To: &out}, status, terminal.Paper{Width: 80})
	samples.Golden(t, "status/cancelled_80", out.String())
}

func TestGoldenRuns(t *testing.T) {
	t.Parallel()
	began := samples.LocalBegan
	found := []runs.Found{
		{WorkflowID: "patients-7x2k3q", Playbook: "patients", Status: interpreter.Running, StartedAt: began, DeadLetters: 12, Build: &runs.Build{Deployment: "clinic", ID: "v0.1.0", Pinned: true}},
		{WorkflowID: "patient_medications-\x1bqq81", Playbook: "patient_medications", Status: interpreter.Partial, StartedAt: began, EndedAt: began.Add(75 * time.Minute), Rows: &interpreter.RowTotals{Written: 12_400}},
		{WorkflowID: "patients-9s1k2a", Playbook: "patients", Status: interpreter.Queued, StartedAt: began, Queue: &runs.QueuePosition{Position: 12}},
		{WorkflowID: "patients-3b9kxd", Playbook: "patients", Status: interpreter.Running, StartedAt: began, HeldBy: runs.HeldByNoWorker},
		{WorkflowID: "patients-5m1q0s", Playbook: "patients", Status: interpreter.RetryPending, StartedAt: began, HeldBy: runs.HeldByPerson},
		{WorkflowID: "rates-8c4vwe", Playbook: "rates", Status: interpreter.Running, StartedAt: began, LateSeconds: 7380},
		{WorkflowID: "patients-7x2k3q/reprocess-01a201eda681-1", Status: interpreter.Failed, StartedAt: began, EndedAt: began.Add(50 * time.Hour)},
	}
	// A run with a value for each column, also for a new one.
	var whole runs.Found
	fillValue(reflect.ValueOf(&whole).Elem(), began)
	whole.WorkflowID, whole.Playbook, whole.Status, whole.HeldBy, whole.EndedAt = "patients-1w8h0l", "patients", interpreter.Completed, "", began.Add(time.Hour)
	found = append(found, whole)
	for _, width := range []int{40, 80, 120} {
		table := render.RunsTable(found, began.Add(3*time.Second), terminal.Paper{Width: width})
		require.LessOrEqual(t, text.LongestLineLen(table), width)
		samples.Golden(t, fmt.Sprintf("list/width_%d", width), table+"\n")
	}
	for i := range 2 { // the runs of a backfill
		days := []runs.Found{found[1], found[2]}
		days[i].Partition = "2026-11-2" + strconv.Itoa(i)
		require.Contains(t, render.RunsTable(days, began.Add(3*time.Second), terminal.Paper{Width: 120}), days[i].Partition)
	}
}

// TestLongRunsFold: at a terminal, steps of a long run with equal statuses share a row, and those that have something to say do not;
// pipes get all.
func TestLongRunsFold(t *testing.T) {
	t.Parallel()
	status := &runs.Status{
		Found: runs.Found{WorkflowID: "long-9s1k2a", Playbook: "long", Status: interpreter.Running, StartedAt: samples.LocalBegan}, At: samples.LocalBegan.Add(time.Hour),
	}
	for i := range 300 {
		step := runs.Step{Step: fmt.Sprintf("step_%03d", i), Visit: 1, Item: runs.Item{Status: interpreter.Completed, Attempt: 1}, StartedAt: samples.LocalBegan.Add(time.Duration(i) * time.Second)}
		step.EndedAt = step.StartedAt.Add(time.Second)
		switch {
		case i == 100:
			step.Handled = true
		case i == 200:
			step.Status, step.EndedAt = interpreter.Running, time.Time{}
		case i > 200:
			step.Status, step.Attempt, step.StartedAt, step.EndedAt = interpreter.Pending, 0, time.Time{}, time.Time{}
		}
		status.Steps = append(status.Steps, step)
	}
	show := func(width int) string {
		var out bytes.Buffer
		render.PrintStatus(&terminal.Screen{To: &out}, status, terminal.Paper{Width: width})
		return out.String()
	}
	samples.Golden(t, "status/long_80", show(80))
	whole := show(terminal.Unbounded)
	for i := range 300 {
		require.Contains(t, whole, fmt.Sprintf("step_%03d", i))
	}
	require.NotContains(t, whole, "share a row")
	status.Steps = status.Steps[:15]
	require.NotContains(t, show(80), "share a row")
}
