package chaos_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/worker"
	"google.golang.org/protobuf/proto"

	"reprise/internal/observe/ending"
	"reprise/internal/test/testenv"
	"reprise/interpreter"
	"reprise/workflows"
	"reprise/workflows/protocol"
)

// replays is how often the histories of every run are replayed.
const replays = 3

// Bounds of a history (docs/architecture.md, section figures).
const (
	maxEvents = 4096
	maxBytes  = 4 << 20
)

// outcome waits for the end of the run and checks all that holds whatever went
// wrong meanwhile. It gives the time the run took.
func (r *round) outcome() time.Duration {
	r.t.Helper()
	r.await("the run ends", r.ended)
	result, err := ending.WaitForResult(r.t.Context(), r.run)
	require.NoError(r.t, err)
	histories := testenv.Histories(r.t, r.env.Client(), r.run.GetID(), r.run.GetRunID())
	r.checkAggregate(result)
	r.checkTables()
	r.checkRequests()
	took := r.checkTime(histories)
	r.checkHistories(histories)
	if r.disturbance.evidence != nil {
		r.disturbance.evidence(r, histories)
	}
	return took
}

// checkHistories: every workflow has ended in order and within its bounds, and
// goes the same way when it is replayed.
func (r *stage) checkHistories(histories []testenv.RunHistory) {
	r.t.Helper()
	for _, history := range histories {
		require.Contains(r.t, testenv.OrderlyEndings(), history.Ending(), "%s", history)
		require.LessOrEqual(r.t, len(history.History.GetEvents()), maxEvents, "events of %s", history)
		require.LessOrEqual(r.t, proto.Size(history.History), maxBytes, "bytes of %s", history)
	}
	require.NoError(r.t, testenv.Replay(histories, func(r worker.WorkflowReplayer) { workflows.Register(r) }, replays))
}

// checkAggregate: each element is there exactly once, as what the API answered
// it, and the counts add up.
func (r *round) checkAggregate(result protocol.Result) {
	r.t.Helper()
	s := r.scenario
	require.Equal(r.t, s.status(), result.Status, "%+v", result.Error)
	record := result.Steps[len(result.Steps)-1]
	require.Equal(r.t, "fetch", record.Step)
	loop := record.Loop
	require.NotNil(r.t, loop)
	require.Equal(r.t, interpreter.LoopStats{Total: s.items, Success: s.items - s.failed(), Failed: s.failed()}, loop.Stats)
	require.Equal(r.t, loop.Stats.Total, loop.Stats.Success+loop.Stats.Failed+loop.Stats.Cancelled)

	aggregate, ok := result.Result.Data.(map[string]any)
	require.True(r.t, ok, "%T", result.Result.Data)
	require.Equal(r.t, s.results(), aggregate["results"])
	var failures []failure
	for _, e := range loop.Errors {
		require.Equal(r.t, s.element(e.Index), e.Element.Data, "the element of iteration %d", e.Index)
		failures = append(failures, failure{item: e.Index, status: e.Error.Status, attempts: e.Attempts})
	}
	require.Equal(r.t, s.failures(), failures)
}

// failure is an item that failed for good.
type failure struct{ item, status, attempts int }

// failures are those that the API has in store, by item.
func (s *scenario) failures() []failure {
	var all []failure
	for i, script := range s.scripts {
		if s.fails(i) {
			all = append(all, failure{item: i, status: s.last(i).Status, attempts: len(script)})
		}
	}
	return all
}

// results are those of the aggregate: the rows of all pages, nil for an item
// that failed.
func (s *scenario) results() []any {
	all := make([]any, s.items)
	for i, script := range s.scripts {
		if s.fails(i) {
			continue
		}
		var rows []any
		for _, said := range script {
			if said.Page > 0 {
				rows = append(rows, pageRows(i, said.Page)...)
			}
		}
		all[i] = rows
	}
	return all
}

// status is that of the run (docs/concepts/loops.md).
func (s *scenario) status() interpreter.Status {
	const completed = 0.95
	if float64(s.items-s.failed())/float64(s.items) >= completed {
		return interpreter.Completed
	}
	return interpreter.Partial
}

// written are the rows that the sink has to have written. A sink of pages has
// also those that came before an item failed.
func (s *scenario) written() []map[string]any {
	var all []map[string]any
	for i, script := range s.scripts {
		if s.fails(i) && s.sink != "page" {
			continue
		}
		for _, said := range script {
			if said.Page == 0 {
				continue
			}
			for _, made := range rowsOf(i, said.Page) {
				all = append(all, map[string]any{"id": made.id, "item": int64(made.item), "page": int64(made.page)})
			}
		}
	}
	return all
}

// checkTables: each holds what it should, each row once.
func (r *round) checkTables() {
	r.t.Helper()
	require.Equal(r.t, r.scenario.written(), r.db.Query(r.t, `SELECT id, item, page FROM rows ORDER BY id COLLATE "C"`))
	var dead []map[string]any
	for _, f := range r.scenario.failures() {
		dead = append(dead, map[string]any{"item": int64(f.item), "status": int64(f.status), "attempts": int64(f.attempts)})
	}
	require.Equal(r.t, dead, r.db.Query(r.t, "SELECT item, status, attempts FROM dead ORDER BY item, attempts"))
	items, failed := int64(r.scenario.items), int64(r.scenario.failed())
	require.Equal(r.t, []map[string]any{{
		"run": r.run.GetID(), "total": items, "success": items - failed, "failed": failed, "cancelled": int64(0),
	}}, r.db.Query(r.t, "SELECT * FROM runs"))
}

// checkRequests: every attempt that was due was made and no other, each wait
// lasted as long as it had to, and a sequential loop took one item after the
// other.
func (r *round) checkRequests() {
	r.t.Helper()
	require.Empty(r.t, r.api.complaints())
	first := map[[2]int]call{} // by item and attempt
	for _, made := range r.api.log() {
		place := [2]int{made.item, made.attempt}
		seen, found := first[place]
		if !found {
			first[place] = made
		} else if seen.answered.IsZero() || !made.answered.IsZero() && made.answered.Before(seen.answered) {
			seen.answered = made.answered
			first[place] = seen
		}
	}
	require.Len(r.t, first, r.scenario.attempts(), "attempts that came to the API")
	var before time.Time
	for item, script := range r.scenario.all() {
		for attempt := 1; attempt <= len(script); attempt++ {
			made := first[[2]int{item, attempt}]
			require.False(r.t, made.answered.IsZero(), "item %d, attempt %d has no answer", item, attempt)
			if wait := waitAfter(script, attempt); wait > 0 {
				waited := first[[2]int{item, attempt + 1}].arrived.Sub(made.answered)
				require.GreaterOrEqual(r.t, waited, wait, "item %d waits after attempt %d", item, attempt)
			}
			if !r.scenario.parallel && item < r.scenario.items {
				require.True(r.t, made.arrived.After(before), "item %d, attempt %d came before its turn", item, attempt)
				before = made.answered
			}
		}
	}
}

// checkTime: the server says that the run took at least as long as the waits
// that were due, and each of them has its timer. Iterations that left their place
// share theirs.
func (r *round) checkTime(histories []testenv.RunHistory) time.Duration {
	r.t.Helper()
	var timers []time.Duration
	carried := 0 // waits that went on in another history, with a timer for what was left of them
	for _, history := range histories {
		if history.Ending() == "ContinuedAsNew" {
			carried++
		}
		for _, event := range history.History.GetEvents() {
			if timer := event.GetTimerStartedEventAttributes(); timer != nil {
				timers = append(timers, timer.GetStartToFireTimeout().AsDuration())
			}
		}
	}
	took := r.took(histories)
	waits, least := r.scenario.dueWaits()
	require.GreaterOrEqual(r.t, took, least)
	for _, d := range waits {
		if d < longWait {
			require.GreaterOrEqual(r.t, atLeast(timers, d), atLeast(waits, d)-atLeast(waits, longWait)-carried, "timers of %s", d)
		}
	}
	return took
}

// took is how long the run took, as the server says.
func (r *stage) took(histories []testenv.RunHistory) time.Duration {
	var began, ended time.Time
	for _, history := range histories {
		if history.WorkflowID != r.run.GetID() {
			continue
		}
		events := history.History.GetEvents()
		if began.IsZero() {
			began = events[0].GetEventTime().AsTime()
		}
		ended = events[len(events)-1].GetEventTime().AsTime()
	}
	return ended.Sub(began)
}

// atLeast counts the durations from d on.
func atLeast(all []time.Duration, d time.Duration) int {
	n := 0
	for _, one := range all {
		if one >= d {
			n++
		}
	}
	return n
}

// requireTakeOver: a worker that was killed had the last word about an
// activity, and another the next about its workflow.
func requireTakeOver(r *round, histories []testenv.RunHistory) {
	r.t.Helper()
	killed := fmt.Sprintf("%d@", r.killed)
	for _, history := range histories {
		reported := false
		for _, event := range history.History.GetEvents() {
			switch event.GetEventType() {
			case enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
				reported = strings.HasPrefix(event.GetActivityTaskCompletedEventAttributes().GetIdentity(), killed)
			case enumspb.EVENT_TYPE_ACTIVITY_TASK_FAILED:
				reported = strings.HasPrefix(event.GetActivityTaskFailedEventAttributes().GetIdentity(), killed)
			case enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED:
				if reported && !strings.HasPrefix(event.GetWorkflowTaskCompletedEventAttributes().GetIdentity(), killed) {
					return
				}
				reported = false
			}
		}
	}
	require.Fail(r.t, "no activity of the killed worker was taken up by another")
}

// requireContinued: a workflow of the run went on in another history.
func requireContinued(r *round, histories []testenv.RunHistory) {
	r.t.Helper()
	for _, history := range histories {
		if history.Ending() == "ContinuedAsNew" {
			return
		}
	}
	require.Fail(r.t, "no workflow continued as new")
}

// surplus is how many requests were made more than once.
func (r *round) surplus() int { return r.api.count() - r.scenario.attempts() }
