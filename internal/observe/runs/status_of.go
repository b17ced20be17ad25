package runs

import (
	"cmp"
	"slices"
	"time"

	"reprise/interpreter"
	"reprise/workflows/protocol"
)

// listedHolders maps a run's published status to what holds the whole run.
var listedHolders = map[interpreter.Status]string{
	interpreter.Awaiting: HeldByAnswer, interpreter.RetryPending: HeldByWait, interpreter.Paused: HeldByPause, interpreter.Queued: HeldByConcurrency,
}

// deriveStatus sets the status of an open run, what holds it, and since when, from its steps and from what people
// have paused. If a step could not be read completely, it uses the published status.
func (s *Status) deriveStatus() {
	listed := s.Status
	held, paused := s.pausedSince("")
	for i := range s.Steps {
		if step := &s.Steps[i]; step.Status == interpreter.Paused && step.Since.IsZero() {
			step.Since, _ = s.pausedSince(step.Step)
		}
	}
	s.Status, s.HeldBy, s.Since = interpreter.Paused, HeldByPause, held
	if !paused {
		s.Status, s.HeldBy, s.Since = openStatus(s.Steps)
	}
	if holder := listedHolders[listed]; holder != "" && s.Status == interpreter.Running && slices.ContainsFunc(s.Steps, Step.isElsewhere) {
		s.Status, s.HeldBy = listed, holder
	}
}

// isElsewhere reports whether a step is doing something that was not read: in a child run, or in a loop that did not
// respond.
func (s Step) isElsewhere() bool {
	return s.Status == interpreter.Running && (s.Child != "" || s.Loop != nil && (s.silent || s.Loop.Plays))
}

// pausedSince returns since when people have paused a step or, for "", the run; false if they have not. A paused run
// pauses all its steps.
func (s *Status) pausedSince(step string) (since time.Time, paused bool) {
	for name, said := range s.Control.Held {
		if name == "" || name == step {
			since, paused = interpreter.EarlierTime(since, said.At), true
		}
	}
	for _, parent := range s.HeldByParents {
		since, paused = interpreter.EarlierTime(since, parent.Since), true
	}
	return since, paused || s.Control.Paused
}

// openStatus returns the status of an open run from those of its steps, what holds all of it, and since when. An
// awaited answer takes precedence over running steps: a person has to act.
func openStatus(steps []Step) (status interpreter.Status, heldBy string, since time.Time) {
	var waiting, awaiting []Step
	running := false
	for _, step := range steps {
		switch tally := step.Status.LoopTally(); {
		case step.Status.Ended():
		case step.Status == interpreter.Awaiting, step.Status == interpreter.Running && len(step.Awaited) > 0:
			awaiting = append(awaiting, step)
			since = interpreter.EarlierTime(since, step.Since)
			running = running || step.HeldBy != HeldByAnswer
		case tally == interpreter.TallyRunning:
			running = true
		case tally == interpreter.TallyWaiting:
			waiting = append(waiting, step)
		}
	}
	switch {
	case len(awaiting) > 0 && running:
		return interpreter.Awaiting, "", since
	case len(awaiting) > 0:
		return interpreter.Awaiting, HeldByAnswer, since
	case running || len(waiting) == 0:
		return interpreter.Running, "", time.Time{}
	}
	status, heldBy, since = waiting[0].Status, waiting[0].HeldBy, waiting[0].Since
	for _, step := range waiting[1:] {
		if heldBy != step.HeldBy {
			status, heldBy = interpreter.RetryPending, HeldByWait
		}
		since = latestKnown(since, step.Since)
	}
	return status, heldBy, since
}

// isOpenLoop reports whether a loop has not ended, as far as its run knows: until then the record counts every
// iteration as cancelled. The step's sink runs after that.
func isOpenLoop(loop *protocol.LoopRecord) bool {
	return loop != nil && loop.Stats.Cancelled == loop.Stats.Total
}

// WithCall returns the record of a step whose call continues in another workflow, updated to the status of that call.
func WithCall(record protocol.StepRecord, call protocol.IterationRecord) protocol.StepRecord {
	call.Child = cmp.Or(call.Child, record.Child)
	record.CallStatus, record.Incremental, record.Rows = call.CallStatus, call.Incremental, call.Rows
	return record
}

// stepOf returns the step of a record, with its reading progress.
func (q *inquiry) stepOf(record protocol.StepRecord) Step {
	step := stepOf(record)
	step.Incremental = newIncremental(record.Incremental, q.status.At)
	return step
}

func stepOf(record protocol.StepRecord) Step {
	step := Step{
		Step: record.Step, Visit: record.Visit, StartedAt: record.StartedAt, EndedAt: record.EndedAt, Handled: record.Handled,
		Child: record.Child, Rows: record.Rows,
		Item: itemOf(record.CallStatus),
	}
	if loop := record.Loop; loop != nil {
		step.failed = loop.Errors
		step.Loop = &Counts{
			WorkflowID: loop.WorkflowID, Total: loop.Stats.Total, Success: loop.Stats.Success, Failed: loop.Stats.Failed,
			Cancelled: loop.Stats.Cancelled, Truncated: loop.Stats.Truncated, Open: loop.Open,
		}
		step.Loop.setPace(step.StartedAt, step.EndedAt)
	}
	return step
}

// holders maps the reason of a wait to what holds the item.
var holders = map[interpreter.Reason]string{
	interpreter.ReasonFailure: HeldByWait, interpreter.ReasonRateLimited: HeldByWait, interpreter.ReasonPoll: HeldByWait,
	interpreter.ReasonPage: HeldByWait, interpreter.ReasonTurn: HeldByRateLimit, interpreter.ReasonPaused: HeldByPause,
	interpreter.ReasonPerson: HeldByPerson, interpreter.ReasonAnswer: HeldByAnswer, interpreter.ReasonSlot: HeldByWindow,
	interpreter.ReasonState: HeldByConcurrency, interpreter.ReasonKeeper: HeldByState,
}

// itemOf converts a call's status to that of a step or an iteration.
func itemOf(call interpreter.CallStatus) Item {
	item := Item{
		Status: call.Status, Attempt: call.Attempts, MaxAttempts: call.MaxAttempts, Pages: call.Pages,
		Since: call.Since, NextRetryAt: call.NextRetryAt, Waiting: call.Waiting, Phrase: call.Phrase, Awaits: call.Awaits, Error: call.Error, HeldBy: holders[call.Reason],
	}
	switch {
	case item.Status == interpreter.Paused:
		item.HeldBy = HeldByPause
	case item.Awaits != nil:
		item.HeldBy, item.Since = HeldByAnswer, item.Awaits.Since
	}
	if item.Status.Ended() {
		item.MaxAttempts, item.Since = 0, time.Time{}
	}
	return item
}
