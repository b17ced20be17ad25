package runs

import (
	"fmt"
	"time"

	"reprise/interpreter"
	"reprise/workflows/protocol"
)

// StepEvents returns the events of one visit of a step.
func StepEvents(record protocol.StepRecord) []Event {
	base := Event{Step: record.Step, Visit: record.Visit}
	event := func(kind string, at time.Time) Event {
		one := base
		one.Event, one.At = kind, at
		one.key = fmt.Sprintf("%s#%d/%s", record.Step, record.Visit, kind)
		return one
	}
	events := []Event{event(StepStarted, record.StartedAt)}
	if record.EndedAt.IsZero() {
		return events
	}
	end := event(StepResult, record.EndedAt)
	end.Duration, end.Status = record.EndedAt.Sub(record.StartedAt).Seconds(), record.Status
	end.Attempts, end.Pages, end.Handled, end.Error = record.Attempts, record.Pages, record.Handled, record.Error
	end.Rows, end.Incremental = record.Rows, record.Incremental
	if record.Loop != nil {
		end.Stats = &record.Loop.Stats
	}
	for i, ending := range endingEvents(record.CallStatus) {
		before := event(ending.Event, record.EndedAt)
		before.Attempts, before.Error = record.Attempts, ending.Error
		before.key += fmt.Sprintf("/%d", i)
		events = append(events, before)
	}
	if record.Status != interpreter.Failed {
		return append(events, end)
	}
	if record.Loop != nil { // a failed loop has a result too
		result := end
		result.Error, end.Rows, end.Incremental = nil, nil, nil
		events = append(events, result)
	}
	end.Event, end.key = StepFailedTerminal, event(StepFailedTerminal, record.EndedAt).key
	return append(events, end)
}
