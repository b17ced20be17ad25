package run

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/incremental"
	"reprise/interpreter/partition"
	"reprise/interpreter/queue"
	"reprise/workflows/control"
	"reprise/workflows/protocol"
)

// threeSteps are steps of each kind: a call, a loop and a router.
const threeSteps = `
apiVersion: reprise/v1
kind: Playbook
metadata: {name: test}
concurrency: {key: shop, limit: 1}
notify: {on: [failed], url: http://team}
workflow:
  - step: fetch
    tool: http
    url: http://x
    next: [{when: "{{ true }}", then: [{step: each}]}]
  - step: each
    tool: http
    method: POST
    url: http://x/{{ item }}
    loop: {collection: [a, b], mode: sequential}
    next: [{when: "{{ true }}", then: [{step: choose}]}]
  - step: choose
`

// parts are those of a run that has begun, without a workflow.
func parts(t *testing.T) *run {
	t.Helper()
	book, err := interpreter.LoadPlaybook("test.yaml", threeSteps)
	require.NoError(t, err)
	r := newRun(&control.Controls{})
	r.id, r.book, r.graph, r.cancel = "me", book, interpreter.NewGraph(book), func() {}
	r.loadState(protocol.RunState{RunPath: protocol.RunPath{Routing: interpreter.Routing{Visits: map[string]int{}}}})
	return r
}

// visit adds a visit of a step.
func (r *run) visit(step string, edit func(*protocol.StepRecord)) *protocol.StepRecord {
	r.Routing.Visits[step]++
	record := &protocol.StepRecord{Step: step, Visit: r.Routing.Visits[step], CallStatus: interpreter.CallStatus{Status: interpreter.Running}}
	edit(record)
	r.records = append(r.records, record)
	return record
}

func running(*protocol.StepRecord) {}

func over(record *protocol.StepRecord) { record.EndedAt = time.Unix(1, 0) }

// TestStateIsThatOfItsParts: a run continues with what each of its parts owns.
func TestStateIsThatOfItsParts(t *testing.T) {
	t.Parallel()
	r := parts(t)
	state := protocol.RunState{
		RunFrame:      protocol.RunFrame{First: "first", Warnings: []string{"late"}},
		RunPath:       protocol.RunPath{Partial: true},
		RunStatus:     protocol.RunStatus{Records: []protocol.StepRecord{{Step: "fetch", Visit: 1}}, DeadLetters: 2, Published: interpreter.Running},
		RunEarlier:    protocol.RunEarlier{Earlier: []string{"before"}},
		RunNotices:    protocol.RunNotices{Notified: 3, Late: true},
		RunQueues:     protocol.RunQueues{Ticket: &queue.Ticket{Queue: "q"}},
		RunPartitions: protocol.RunPartitions{Identity: "i", Noted: true},
		RunMoves:      protocol.RunMoves{Pending: []protocol.PendingState{{Step: "fetch"}}},
	}
	r.loadState(state)
	require.Equal(t, state, r.saveState())
}

func TestNotices(t *testing.T) {
	t.Parallel()
	r := parts(t)
	notice := r.book.Notices("failed")[0]
	failed := interpreter.CallResult{Status: interpreter.StatusError, Error: &interpreter.ErrorObject{Message: "no route"}, Warnings: []string{"slow"}}
	for range 2 {
		r.notices.recordSent(notice, failed)
	}
	require.Len(t, r.Warnings, 2, "a warning is given once")
	require.Contains(t, r.Warnings[0], "no route")
	require.Nil(t, r.Failure, "a notice that fails does not fail the run")
}

func TestQueues(t *testing.T) {
	t.Parallel()
	r := parts(t)
	name := queue.Name{Key: "shop"}
	require.Nil(t, r.queues.waitsForItself(name))
	r.controls.Parents = []interpreter.Parent{{Run: "above", Queue: name.WorkflowID()}}
	require.ErrorContains(t, r.queues.waitsForItself(name), "above, which started it, holds the concurrency key")
	require.False(t, r.queues.isSkipped())
	r.queues.Ticket = &queue.Ticket{State: queue.Skipped}
	require.True(t, r.wasSkipped())

	waits := &stateTicket{visit: "fetch#1", record: r.visit("fetch", running), Ticket: queue.Ticket{State: queue.Queued, Name: queue.Name{Key: "s"}, By: "other"}}
	has := &stateTicket{visit: "each#1", record: r.visit("each", running), Ticket: queue.Ticket{State: queue.Granted}}
	r.queues.visits = []*stateTicket{waits, has}
	require.Equal(t, map[string]queue.Ticket{"fetch#1": waits.Ticket}, r.queues.queuedVisits())
	require.Zero(t, r.queues.settleTickets(protocol.CommandInput{Step: "each"}, interpreter.Settlement{Skip: true}))
	require.Equal(t, 1, r.queues.settleTickets(protocol.CommandInput{}, interpreter.Settlement{Skip: true, By: "ann"}))
	require.ErrorContains(t, waits.skipFailure(), "waits for the state s, which run other holds")
	require.Empty(t, r.queues.waitingTickets(protocol.CommandInput{}), "what is skipped waits no longer")
}

func TestStatus(t *testing.T) {
	t.Parallel()
	r := parts(t)
	r.visit("fetch", over)
	r.visit("each", func(record *protocol.StepRecord) {
		record.Loop = &protocol.LoopRecord{WorkflowID: "me/each", Errors: []interpreter.LoopError{{}}}
	})
	r.controls.Paused = true
	progress, err := r.status.runProgress()
	require.NoError(t, err)
	require.Equal(t, []string{"choose"}, progress.Pending)
	require.Equal(t, interpreter.Paused, progress.Steps[1].Status)
	require.Empty(t, progress.Steps[1].Loop.Errors, "a loop has them")
	require.Len(t, r.records[1].Loop.Errors, 1, "and the run keeps them")
	final := r.status.finalRecords()
	require.Equal(t, interpreter.Skipped, final[len(final)-1].Status)
	open := r.status.openWaits(nil, r.controls.Control)
	require.Equal(t, interpreter.Paused, open.Status())
	r.queues.Ticket, r.controls.Paused = &queue.Ticket{State: queue.Queued}, false
	open = r.status.openWaits(nil, r.controls.Control)
	require.Equal(t, interpreter.Queued, open.Status())
}

func TestEarlier(t *testing.T) {
	t.Parallel()
	r := parts(t)
	r.input.Called = &protocol.ParentAttempt{}
	record, step := r.visit("fetch", over), r.book.Step("fetch")
	result := interpreter.CallResult{Status: interpreter.StatusSuccess, Data: expression.Of("rows")}
	same, other := func(time.Time) string { return "print" }, func(time.Time) string { return "another" }

	r.earlier.saveStep(step, record, "", result)
	require.Nil(t, r.earlier.earlierResult(record, same), "what nobody will compare is not kept")
	r.earlier.saveStep(step, record, "print", interpreter.CallResult{Status: interpreter.StatusError})
	require.Nil(t, r.earlier.earlierResult(record, same), "nor is what has failed")
	r.earlier.saveStep(step, record, "print", result)
	require.Equal(t, &result, r.earlier.earlierResult(record, same))
	require.Equal(t, "me", record.From)
	require.Nil(t, r.earlier.earlierResult(record, other))
	require.Nil(t, r.earlier.earlierResult(record, same), "a request that has changed is made again")

	result.Data = expression.Of(strings.Repeat("x", interpreter.MaxEarlierBytes))
	r.earlier.saveStep(step, record, "print", result)
	require.Equal(t, []string{"fetch"}, r.earlier.Work.Left)

	r.input.Reprocess = &protocol.Reprocess{Origin: interpreter.RunInfo{WorkflowID: "origin", RunID: "first", Round: 2}}
	require.Equal(t, []string{protocol.RoundID("origin", "first", 1), "origin"}, r.earlier.replacedRuns())
	work, err := r.earlier.workSoFar()
	require.NoError(t, err)
	require.False(t, work.Wrote, "the only visit is that of an earlier run")
	r.visit("each", running)
	work, err = r.earlier.workSoFar()
	require.NoError(t, err)
	require.True(t, work.Wrote)
}

func TestPartitions(t *testing.T) {
	t.Parallel()
	for status, want := range map[interpreter.Status]partition.Status{
		interpreter.Completed: partition.Done, interpreter.Partial: partition.Failed, interpreter.Failed: partition.Failed,
		interpreter.Cancelled: partition.Missing, interpreter.Skipped: partition.Missing,
	} {
		require.Equal(t, want, outcomeOf(status), status)
	}
	r := parts(t)
	r.partitions.noteEnd(nil, interpreter.Completed) // nothing was noted
	r.partitions.Conflict = &partition.Conflict{Run: "other"}
	require.True(t, r.wasSkipped())
}

func TestMoves(t *testing.T) {
	t.Parallel()
	r := parts(t)
	of := func(holder string, states ...string) *interpreter.CallIncremental {
		moves := []incremental.Moves{{Group: "g"}}
		for _, name := range states {
			moves[0].Writes = append(moves[0].Writes, incremental.StateWrite{Name: name, Holder: holder})
		}
		return &interpreter.CallIncremental{Pending: moves}
	}
	r.moves.saveMoves("fetch", nil)
	require.Empty(t, r.moves.Pending)
	r.moves.saveMoves("fetch", of("first", "a", "b"))
	r.moves.saveMoves("each", of("other", "a"))
	r.moves.saveMoves("fetch", of("second", "b", "c"))
	require.Len(t, r.moves.Pending, 2)
	var fetch []string
	for _, write := range r.moves.Pending[0].Moves[0].Writes {
		fetch = append(fetch, write.Holder+" "+write.Name)
	}
	require.Equal(t, []string{"first a", "second b", "second c"}, fetch, "a later visit has claimed anew what it moves")
	require.Empty(t, movingText(r.status.moving()))
	r.moves.wait = &interpreter.Wait{Summary: "the file is locked"}
	require.Contains(t, movingText(r.status.moving()), "the file is locked")
}

func TestSteering(t *testing.T) {
	t.Parallel()
	r := parts(t)
	r.visit("fetch", over)
	r.visit("each", func(record *protocol.StepRecord) {
		record.Loop = &protocol.LoopRecord{Stats: interpreter.LoopStats{Total: 2}}
	})
	index := 7
	for _, one := range []struct {
		check   func(protocol.CommandInput) error
		command protocol.CommandInput
		want    string
	}{
		{r.steering.checkPause, protocol.CommandInput{}, ""},
		{r.steering.checkPause, protocol.CommandInput{Step: "each"}, ""},
		{r.steering.checkPause, protocol.CommandInput{Step: "nothing"}, `the playbook has no step "nothing"; its steps are fetch, each, choose`},
		{r.steering.checkPause, protocol.CommandInput{Step: "fetch"}, "step fetch has ended; running: each"},
		{r.steering.checkPause, protocol.CommandInput{Step: "choose"}, "does not call a tool"},
		{r.steering.checkSkip, protocol.CommandInput{}, "name the step that should fail"},
		{r.steering.checkSkip, protocol.CommandInput{Step: "fetch"}, "step fetch is not running"},
		{r.steering.checkSkip, protocol.CommandInput{Step: "each", Index: &index}, "step each has 2 iterations, 0 to 1, and no iteration 7"},
		{r.steering.checkRetryNow, protocol.CommandInput{}, "nothing waits: no attempt is due"},
		{r.steering.checkSet, protocol.CommandInput{Step: "each"}, "the command sets nothing"},
	} {
		if err := one.check(one.command); one.want == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, one.want)
		}
	}
	for _, said := range []protocol.CommandInput{{Reason: strings.Repeat("x", protocol.MaxSaid+1)}, {By: strings.Repeat("x", protocol.MaxSaid+1)}} {
		require.EqualError(t, r.steering.checkPause(said), "reason and by may have at most 500 bytes each")
	}
	r.controls.Updates = mostUrgent
	require.ErrorContains(t, r.steering.checkRoom(protocol.PauseUpdate, protocol.CommandInput{}), "it can still be cancelled")
	r.controls.Updates = mostCommands
	require.ErrorContains(t, r.steering.checkRoom(protocol.SkipUpdate, protocol.CommandInput{Step: "each"}), "which it does when each has ended")
	require.NoError(t, r.steering.checkRoom(protocol.PauseUpdate, protocol.CommandInput{}), "there is room for what is urgent")
}

// TestBoundsOfRuns passes maxRecords, interpreter.MaxEarlierAlong and maxIdleVisits.
func TestBoundsOfRuns(t *testing.T) {
	t.Parallel()
	r := parts(t)
	for range maxRecords + 1 {
		r.visit("fetch", over)
	}
	for visit := range 3 {
		r.earlier.Work.Steps = append(r.earlier.Work.Steps, interpreter.EarlierStep{
			Step: "fetch", Visit: visit, Result: interpreter.CallResult{Data: expression.Of(strings.Repeat("x", interpreter.MaxEarlierAlong/2))},
		})
	}
	state := r.continuedInput().State
	require.Len(t, state.Records, maxRecords)
	require.Equal(t, 2, state.Records[0].Visit, "the last visits count")
	require.Len(t, state.Work.Steps, 1)
	require.Equal(t, []string{"fetch", "fetch"}, state.Work.Left)

	var cycle idle
	for range maxIdleVisits - 1 {
		cycle.checkCycles(r, stepEnd{record: r.records[0]})
	}
	require.Nil(t, r.Failure)
	cycle.checkCycles(r, stepEnd{start: interpreter.Start{Step: r.book.Steps[0]}, record: r.records[0]})
	require.ErrorContains(t, r.Failure, "2000 steps have ended without an attempt or a wait")
}

// TestStaleResults: results of an earlier run that are old are a warning if a sink would replace newer rows with them.
func TestStaleResults(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	steps := func(age time.Duration) []interpreter.EarlierStep {
		fetched := interpreter.EarlierStep{Step: "fetch"}
		fetched.Result.Meta.EndedAt = now.Add(-age)
		return []interpreter.EarlierStep{fetched}
	}
	for sink, warns := range map[string]bool{
		"{tool: sqlite, path: a.db, table: t, mode: upsert, key: id}":                  true,
		"{tool: sqlite, path: a.db, table: t, mode: upsert, key: id, sequence_by: at}": false,
		"{tool: sqlite, path: a.db, table: t}":                                         false,
	} {
		book, err := interpreter.LoadPlaybook("test.yaml", "apiVersion: reprise/v1\nkind: Playbook\nmetadata: {name: test}\nworkflow:\n"+
			"  - {step: fetch, tool: http, url: http://x, next: load}\n  - {step: load, tool: http, url: http://x, sink: "+sink+"}\n")
		require.NoError(t, err)
		old := staleWarning(book, steps(2*time.Hour), now)
		require.Equal(t, warns, old != "", sink)
		if warns {
			require.Contains(t, old, "step fetch: its result of 2026-01-02T01:04:05Z is reused")
		}
		require.Empty(t, staleWarning(book, steps(time.Minute), now), sink)
	}
}
