package stats_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/observe/cost"
	"reprise/internal/observe/runs"
	"reprise/internal/observe/stats"
	"reprise/interpreter"
	"reprise/interpreter/expression"
)

var update = flag.Bool("update", false, "rewrite the expected files")

var began = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func at(seconds float64) time.Time {
	return began.Add(time.Duration(seconds * float64(time.Second)))
}

func failure(class interpreter.Class, kind interpreter.Kind, status int) *interpreter.ErrorObject {
	return &interpreter.ErrorObject{Class: class, Kind: kind, Status: status, Message: fmt.Sprintf("%s %d", kind, status)}
}

// emitter makes events of one step.
type emitter struct {
	step   string
	index  *int
	events *[]runs.Event
}

func (t emitter) emit(word string, seconds float64, change func(*runs.Event)) {
	event := runs.Event{Event: word, At: at(seconds), Step: t.step, Visit: 1, Index: t.index}
	if change != nil {
		change(&event)
	}
	*t.events = append(*t.events, event)
}

func (t emitter) of(index int) emitter { t.index = &index; return t }

// attempt takes a second.
func (t emitter) attempt(number int, seconds float64, failure *interpreter.ErrorObject) {
	set := func(event *runs.Event) { event.Attempt, event.Page = number, 1 }
	t.emit(runs.ActionStarted, seconds, set)
	word := runs.ActionCompleted
	if failure != nil {
		word = runs.ActionError
	}
	t.emit(word, seconds+1, func(event *runs.Event) { set(event); event.Duration, event.Error = 1, failure })
}

func (t emitter) wait(reason string, seconds, delay float64) {
	t.emit(runs.StepRetry, seconds, func(event *runs.Event) {
		event.Reason, event.Delay, event.NextRetryAt = reason, delay, at(seconds+delay)
	})
}

// someEvents are those of a run with a loop, in which the iteration 0 succeeds at
// once, 1 at the third attempt, 2 fails, 3 is cancelled and 4 goes on.
func someEvents() []runs.Event {
	var events []runs.Event
	run := emitter{events: &events}
	run.emit(runs.ExecutionStarted, 0, func(event *runs.Event) { event.Visit = 0 })
	token := emitter{step: "token", events: &events}
	token.emit(runs.StepStarted, 0, nil)
	token.attempt(1, 0, nil)
	token.emit(runs.StepResult, 1, func(event *runs.Event) {
		event.Status, event.Attempts, event.Pages, event.Duration = interpreter.Completed, 12, 10, 1
	})
	fetch := emitter{step: "fetch", events: &events}
	fetch.emit(runs.StepStarted, 1, nil)
	for i := range 5 {
		fetch.of(i).emit(runs.IterationStarted, 1, nil)
	}
	fetch.of(0).attempt(1, 1, nil)
	fetch.of(0).emit(runs.IterationCompleted, 2, func(event *runs.Event) {
		event.Attempts, event.Pages, event.Duration, event.Status = 1, 1, 1, interpreter.Completed
	})
	fetch.of(1).attempt(1, 2, failure("rate_limited", "http", 429))
	fetch.of(1).wait(string(interpreter.ReasonRateLimited), 3, 10)
	fetch.of(1).attempt(2, 8, failure("retryable", "http", 503)) // somebody had it tried again at once
	fetch.of(1).wait(string(interpreter.ReasonFailure), 9, 2)
	fetch.of(1).attempt(3, 12, nil)
	fetch.of(1).emit(runs.IterationCompleted, 13, func(event *runs.Event) {
		event.Attempts, event.Pages, event.Duration, event.Status = 3, 1, 11, interpreter.Completed
	})
	fetch.of(2).attempt(1, 14, failure("final", "http", 404))
	fetch.of(2).emit(runs.IterationFailed, 15, func(event *runs.Event) {
		event.Attempts, event.Duration, event.Status, event.Error = 1, 1, interpreter.Failed, failure("final", "http", 404)
	})
	fetch.of(3).emit(runs.IterationFailed, 15, func(event *runs.Event) {
		event.Status, event.Error = interpreter.Cancelled, failure("final", "cancelled", 0)
	})
	fetch.of(4).attempt(1, 15, failure("retryable", "timeout", 0))
	fetch.of(4).wait(string(interpreter.ReasonTurn), 16, 100)
	return events
}

func collected(found runs.Found, events []runs.Event, see func(stats.Span)) stats.Stats {
	collector := stats.NewCollector(see)
	collector.BeginRun(found)
	for _, event := range events {
		collector.AddEvent(event)
	}
	collector.EndRun(at(20), "it goes on")
	collector.AddCost(cost.Cost{Actions: 20, Heartbeats: 2, Workflows: 6, HistoryBytes: 40_000})
	collector.AddCost(cost.Cost{Actions: 3, Workflows: 1, HistoryBytes: 2_000})
	return collector.Stats()
}

var someRun = runs.Found{WorkflowID: "patients-1", RunID: "1", Playbook: "patients", Status: interpreter.Running, StartedAt: began}

func TestGoldenStats(t *testing.T) {
	t.Parallel()
	got, err := json.MarshalIndent(collected(someRun, someEvents(), nil), "", "  ")
	require.NoError(t, err)
	path := filepath.Join("testdata", "stats.json")
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o750))
		require.NoError(t, os.WriteFile(path, append(got, '\n'), 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got)+"\n")
}

// TestSpans: a wait ends when its time is over, when what it held goes on, or when
// nobody looks any longer.
func TestSpans(t *testing.T) {
	t.Parallel()
	var waits []string
	var open []string
	collected(someRun, someEvents(), func(span stats.Span) {
		if span.Of == stats.Wait {
			waits = append(waits, fmt.Sprintf("%d %s %v–%v", *span.Event.Index, span.Event.Reason, span.From.Sub(began), span.To.Sub(began)))
		}
		if span.Open {
			open = append(open, fmt.Sprintf("%s %s %v–%v", span.Of, span.Event.Step, span.From.Sub(began), span.To.Sub(began)))
		}
	})
	require.Equal(t, []string{"1 rate_limited 3s–8s", "1 failure 9s–11s", "4 turn 16s–20s"}, waits)
	require.Equal(t, []string{"step fetch 1s–20s", "iteration fetch 1s–20s"}, open)
}

// TestAFailedLoopIsOneStep: it has a result and a terminal failure.
func TestAFailedLoopIsOneStep(t *testing.T) {
	t.Parallel()
	var events []runs.Event
	fetch := emitter{step: "fetch", events: &events}
	failed := func(event *runs.Event) {
		event.Status, event.Stats = interpreter.Failed, &interpreter.LoopStats{Total: 1, Failed: 1}
	}
	fetch.emit(runs.StepStarted, 0, nil)
	fetch.of(0).emit(runs.IterationFailed, 1, func(event *runs.Event) { event.Status = interpreter.Failed })
	fetch.emit(runs.StepResult, 1, failed)
	fetch.emit(runs.StepFailedTerminal, 1, failed)
	sums := collected(someRun, events, nil)
	require.Len(t, sums.SlowestSteps, 1)
	require.Len(t, sums.Steps, 1)
	require.Equal(t, []int{1, 1, 1}, []int{sums.Steps[0].Visits, sums.Steps[0].Items, sums.Steps[0].Failed})
}

// TestARunThatContinuesCountsWhatHasHappened: attempts of what is running count as they
// are made, and what has failed once is no longer reliable.
func TestARunThatContinuesCountsWhatHasHappened(t *testing.T) {
	t.Parallel()
	var events []runs.Event
	fetch := emitter{step: "fetch", events: &events}
	fetch.emit(runs.StepStarted, 0, nil)
	again := func(item emitter, number int, seconds float64) {
		item.attempt(number, seconds, failure("retryable", "http", 503))
		events[len(events)-2].IsRetry = number > 1
	}
	for i := range 4 {
		fetch.of(i).emit(runs.IterationStarted, 0, nil)
	}
	fetch.of(0).attempt(1, 0, nil)
	fetch.of(0).emit(runs.IterationCompleted, 1, func(event *runs.Event) {
		event.Attempts, event.Pages, event.Status = 1, 1, interpreter.Completed
	})
	for number := 1; number <= 3; number++ {
		again(fetch.of(1), number, float64(number))
	}
	again(fetch.of(2), 1, 1)
	of := collected(someRun, events, nil).Steps[0]
	require.Equal(t, []int{4, 1, 3, 2, 1}, []int{of.Items, of.Success, of.Open, of.Retries, of.Retried})
	require.InDelta(t, 0.3333, *of.Reliability, 0.0001)
	require.InDelta(t, 0.3333, *of.RetryRate, 0.0001)
	require.InDelta(t, 1, *of.SuccessRate, 0)
	// Cancelled, it has made these retries all the same.
	fetch.of(1).emit(runs.IterationFailed, 5, func(event *runs.Event) {
		event.Attempts, event.Status, event.Error = 3, interpreter.Cancelled, failure("final", "cancelled", 0)
	})
	require.Equal(t, 2, collected(someRun, events, nil).Steps[0].Retries)
}

// TestRunsAreSummedUp: those of one playbook by step, those of another apart.
func TestRunsAreSummedUp(t *testing.T) {
	t.Parallel()
	collector := stats.NewCollector(nil)
	for _, playbook := range []string{"patients", "patients", "others"} {
		collector.BeginRun(runs.Found{WorkflowID: "run-of-" + playbook, Playbook: playbook, Status: interpreter.Completed, StartedAt: began, EndedAt: at(18)})
		for _, event := range someEvents() {
			collector.AddEvent(event)
		}
		collector.EndRun(at(1000))
	}
	sums := collector.Stats()
	require.Len(t, sums.Runs, 3)
	require.Len(t, sums.Steps, 4)
	require.Equal(t, 10, sums.Steps[1].Items)
	require.InDelta(t, 0.25, *sums.Steps[1].Reliability, 0.0001)
	require.Equal(t, "others", sums.Steps[3].Playbook)
	require.InDelta(t, 3*(5+2+2), sums.WaitSeconds, 0.001, "the last wait is over with its run")
}

// TestMemoryIsBounded: what is kept does not grow with the run.
// It passes mostAlike.
func TestMemoryIsBounded(t *testing.T) {
	collector := stats.NewCollector(nil)
	collector.BeginRun(someRun)
	run := func(from, to int) {
		for i := from; i < to; i++ {
			for _, event := range iteration(i) {
				collector.AddEvent(event)
			}
		}
	}
	run(0, 1000)
	before := heap()
	run(1000, 50_000)
	require.Less(t, heap(), before+1<<20)
	collector.EndRun(at(20))
	sums := collector.Stats()
	require.Equal(t, 50_000, sums.Steps[0].Items)
	require.Len(t, sums.SlowestIterations, 10)
	require.LessOrEqual(t, len(sums.Errors), 101)
	require.Len(t, sums.Failures, 100)
	failures := sums.FailuresLeft
	for _, of := range sums.Failures {
		failures += of.Items
	}
	require.Equal(t, sums.Steps[0].Failed, failures)
}

func heap() uint64 {
	var memory runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&memory)
	return memory.HeapAlloc
}

// iteration is one that fails in a way of its own, as every hundredth does.
func iteration(i int) []runs.Event {
	var events []runs.Event
	of := emitter{step: "fetch", events: &events}.of(i)
	of.emit(runs.IterationStarted, 0, nil)
	of.attempt(1, 0, nil)
	of.emit(runs.IterationCompleted, 1, func(event *runs.Event) {
		event.Attempts, event.Pages, event.Status, event.Duration = 1, 1, interpreter.Completed, float64(i%1000)
		if i%100 == 0 {
			event.Event, event.Status, event.Error = runs.IterationFailed, interpreter.Failed, failure("final", "http", i)
		}
	})
	return events
}

// TestNoticesOfTheRun: they belong to no step and are not among its figures.
func TestNoticesOfTheRun(t *testing.T) {
	t.Parallel()

	var events []runs.Event
	step, run := emitter{step: "fetch", events: &events}, emitter{events: &events}
	step.emit(runs.StepStarted, 0, nil)
	step.attempt(1, 0, nil)
	step.emit(runs.StepResult, 1, func(event *runs.Event) { event.Attempts, event.Pages, event.Status = 1, 1, "completed" })
	from := len(events)
	run.attempt(1, 1, failure("retryable", "http", 503))
	run.wait("failure", 2, 1)
	run.attempt(2, 3, nil)

	for i := range events[from:] {
		events[from+i].Sink, events[from+i].Visit = "run.notify.completed", 0
	}

	collector := stats.NewCollector(nil)
	collector.BeginRun(runs.Found{WorkflowID: "a", Playbook: "p", Status: "completed", StartedAt: began, EndedAt: at(4)})

	for _, event := range events {
		collector.AddEvent(event)
	}

	collector.EndRun(at(4))
	sums := collector.Stats()
	require.Len(t, sums.Steps, 1)
	require.Equal(t, "fetch", sums.Steps[0].Step)
	require.Empty(t, sums.Errors)
	require.Empty(t, sums.Waits)
}

// TestAnswersAreWaits: the time in which an attempt awaits its answer is a wait and no work, of
// one that has ended as of one that is open.
func TestAnswersAreWaits(t *testing.T) {
	t.Parallel()
	for name, ended := range map[string]bool{"answered": true, "open": false} {
		var events []runs.Event
		ask := emitter{step: "ask", events: &events}
		set := func(event *runs.Event) { event.Attempt, event.Page = 1, 1 }
		ask.emit(runs.StepStarted, 0, nil)
		ask.emit(runs.ActionStarted, 0, set)
		ask.emit(runs.AnswerAwaited, 1, func(event *runs.Event) { set(event); event.Reason = "answer" })
		if ended {
			ask.emit(runs.ActionCompleted, 20, func(event *runs.Event) { set(event); event.Duration = 20 })
		}
		var spans []stats.Span
		got := collected(someRun, events, func(span stats.Span) { spans = append(spans, span) })
		require.Equal(t, []float64{1, 19}, []float64{got.AttemptSeconds, got.WaitSeconds}, name)
		require.Equal(t, 1, got.AttemptsMade, name)
		require.Equal(t, []stats.Waits{{Reason: "answer", Waits: 1, Seconds: 19}}, got.Waits, name)
		require.Equal(t, []any{stats.Wait, at(1), at(20)}, []any{spans[0].Of, spans[0].From, spans[0].To}, name)
		require.Equal(t, []any{stats.Attempt, at(0), at(1)}, []any{spans[1].Of, spans[1].From, spans[1].To}, name)
	}
}

// TestRowsOfChildRunsCountOnce: the rows of a run include those of its child runs, also where such a run is named beside it; an open
// loop counts its ended iterations, and a failed one is counted once.
func TestRowsOfChildRunsCountOnce(t *testing.T) {
	t.Parallel()
	table := func(read, written int64) *interpreter.Rows {
		rows := interpreter.TableRows{Table: "orders", RowTotals: interpreter.RowTotals{Written: written}}.ToRows()
		return rows.Plus(&interpreter.Rows{RowTotals: interpreter.RowTotals{Read: read}})
	}
	collector := stats.NewCollector(nil)
	begin := func(id string, status interpreter.Status) {
		collector.BeginRun(runs.Found{WorkflowID: id, RunID: id, Playbook: id, Status: status, StartedAt: began})
	}
	end := func(events ...runs.Event) {
		for _, event := range events {
			event.At = at(1)
			collector.AddEvent(event)
		}
		collector.EndRun(at(2))
	}
	fetch := runs.Event{Event: runs.StepResult, Step: "fetch", Visit: 1, Rows: table(7, 5), Status: interpreter.Completed}
	begin("parent", interpreter.Completed)
	end(runs.Event{Event: runs.ActionStarted, Step: "below", Visit: 1, Attempt: 1, Child: "child", ChildRunID: "child"},
		runs.Event{Event: runs.StepResult, Step: "below", Visit: 1, Rows: table(7, 5), Status: interpreter.Completed},
		runs.Event{Event: runs.ExecutionCompleted, Rows: table(7, 5), Status: interpreter.Completed})
	begin("child", interpreter.Completed)
	end(fetch, runs.Event{Event: runs.ExecutionCompleted, Rows: table(7, 5), Status: interpreter.Completed})
	begin("open", interpreter.Running)
	zero, one := 0, 1
	end(runs.Event{Event: runs.IterationCompleted, Step: "each", Visit: 1, Index: &zero, Rows: table(2, 1)},
		runs.Event{Event: runs.IterationFailed, Step: "each", Visit: 1, Index: &one, Rows: table(1, 1), Status: interpreter.Failed})
	begin("failed", interpreter.Failed)
	end(runs.Event{Event: runs.IterationCompleted, Step: "each", Visit: 1, Index: &zero, Rows: table(2, 1)},
		runs.Event{Event: runs.StepResult, Step: "each", Visit: 1, Rows: table(2, 1), Status: interpreter.Failed, Stats: &interpreter.LoopStats{Total: 1}},
		runs.Event{Event: runs.StepFailedTerminal, Step: "each", Visit: 1, Status: interpreter.Failed, Stats: &interpreter.LoopStats{Total: 1}},
		runs.Event{Event: runs.ExecutionFailed, Status: interpreter.Failed})
	_, _, more := collector.NextChild()
	require.False(t, more, "the child is read already")
	sums := collector.Stats()
	require.Equal(t, interpreter.RowTotals{Read: 12, Written: 8}, sums.Rows.Totals())
	require.Equal(t, []interpreter.RowTotals{{Read: 7, Written: 5}, {Read: 7, Written: 5}, {Read: 3, Written: 2}, {Read: 2, Written: 1}}, []interpreter.RowTotals{
		sums.Runs[0].Rows.Totals(), sums.Runs[1].Rows.Totals(), sums.Runs[2].Rows.Totals(), sums.Runs[3].Rows.Totals(),
	})
	require.Equal(t, interpreter.RowTotals{Read: 7, Written: 5}, sums.Steps[0].Rows.Totals())
}

// TestWatermarksBeforeAndAfter: of several runs, whatever the order in which they are read.
func TestWatermarksBeforeAndAfter(t *testing.T) {
	t.Parallel()
	collector := stats.NewCollector(nil)
	for _, n := range []int{3, 1, 2} {
		collector.BeginRun(runs.Found{WorkflowID: fmt.Sprint("orders-", n), RunID: fmt.Sprint(n), Playbook: "orders", Status: interpreter.Completed, StartedAt: began})
		read := &interpreter.StateRecord{State: "orders/fetch", From: expression.Of(10*n - 10), Watermark: expression.Of(10 * n)}
		if n > 1 {
			read.Before = expression.Of(10*n - 10)
		}
		collector.AddEvent(runs.Event{Event: runs.StepResult, At: at(float64(n)), Step: "fetch", Visit: 1, Incremental: read, Status: interpreter.Completed})
		collector.EndRun(at(4))
	}
	marks := collector.Stats().Watermarks
	require.Len(t, marks, 1)
	require.Equal(t, []any{0, 30}, []any{marks[0].Before.Data, marks[0].After.Data})
	for i := range 150 {
		collector.BeginRun(runs.Found{WorkflowID: "many", RunID: fmt.Sprint("many-", i), Playbook: "many", StartedAt: began})
		collector.AddEvent(runs.Event{Event: runs.StepResult, Step: "fetch", Visit: 1, Incremental: &interpreter.StateRecord{State: fmt.Sprint(i)}})
		collector.EndRun(at(4))
	}
	require.Len(t, collector.Stats().Watermarks, 100)
	require.Equal(t, 51, collector.Stats().WatermarksLeft)
}
