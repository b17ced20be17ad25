package runs

import (
	"cmp"

	"reprise/interpreter"
	"reprise/workflows"
)

// openStatus is the status of a run that has not ended, and what holds all of it.
func openStatus(steps []Step, paused bool) (status interpreter.Status, heldBy string) {
	if paused {
		return interpreter.Paused, HeldByPause
	}
	waiting := 0
	for _, step := range steps {
		switch tally := step.Status.Tally(); {
		case step.Status.Ended():
		case tally == interpreter.TallyRunning:
			return interpreter.Running, ""
		case tally == interpreter.TallyWaiting:
			if waiting++; waiting == 1 || heldBy == step.HeldBy {
				status, heldBy = step.Status, step.HeldBy
			} else {
				status, heldBy = interpreter.RetryPending, HeldByWait
			}
		}
	}
	if waiting == 0 {
		return interpreter.Running, ""
	}
	return status, heldBy
}

// underWay reports whether a loop has not ended, as far as its run knows: until
// then it counts every iteration as cancelled. The sink on the step comes after.
func underWay(loop *workflows.LoopRecord) bool {
	return loop != nil && loop.Stats.Cancelled == loop.Stats.Total
}

// WithCall is the record of a step whose call continues in histories of its own, as far
// as that has come.
func WithCall(record workflows.StepRecord, call workflows.IterationRecord) workflows.StepRecord {
	call.Child = cmp.Or(call.Child, record.Child)
	record.CallStatus = call.CallStatus
	return record
}

// stepOf is the step of a record, with how far it has read.
func (q *inquiry) stepOf(record workflows.StepRecord) Step {
	step := stepOf(record)
	step.Incremental = newIncremental(record.Incremental, q.status.At)
	return step
}

func stepOf(record workflows.StepRecord) Step {
	step := Step{
		Step: record.Step, Visit: record.Visit, StartedAt: record.StartedAt, EndedAt: record.EndedAt, Handled: record.Handled,
		Child: record.Child,
		Item:  itemOf(record.CallStatus),
	}
	if loop := record.Loop; loop != nil {
		step.failed = loop.Errors
		step.Loop = &Counts{
			WorkflowID: loop.WorkflowID, Total: loop.Stats.Total, Success: loop.Stats.Success, Failed: loop.Stats.Failed,
			Cancelled: loop.Stats.Cancelled, Truncated: loop.Stats.Truncated,
		}
		step.Loop.pace(step.StartedAt, step.EndedAt)
	}
	return step
}

// holders are what holds an item that waits, by the reason of the wait.
var holders = map[interpreter.Reason]string{
	interpreter.ReasonFailure: HeldByWait, interpreter.ReasonRateLimited: HeldByWait, interpreter.ReasonPoll: HeldByWait,
	interpreter.ReasonPage: HeldByWait, interpreter.ReasonTurn: HeldByRateLimit, interpreter.ReasonPaused: HeldByPause,
	interpreter.ReasonPerson: HeldByPerson, interpreter.ReasonAnswer: HeldByAnswer, interpreter.ReasonSlot: HeldByWindow,
	interpreter.ReasonState: HeldByConcurrency,
}

// itemOf is a step or an iteration by what its workflow says of its call.
func itemOf(call interpreter.CallStatus) Item {
	item := Item{
		Status: call.Status, Attempt: call.Attempts, MaxAttempts: call.MaxAttempts, Pages: call.Pages,
		NextRetryAt: call.NextRetryAt, Waiting: call.Waiting, Awaits: call.Awaits, Error: call.Error, HeldBy: holders[call.Reason],
	}
	switch {
	case item.Status == interpreter.Paused:
		item.HeldBy = HeldByPause
	case item.Awaits != nil:
		item.HeldBy = HeldByAnswer
	}
	if item.Status.Ended() {
		item.MaxAttempts = 0
	}
	return item
}
