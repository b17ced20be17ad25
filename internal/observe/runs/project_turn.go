package runs

import (
	"errors"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"reprise/interpreter"
)

// turn adds the wait for a turn under a rate limit that an activity made before its
// attempt, of so many seconds, and gives when the attempt began. Where several attempts
// are one pair of events, their waits are one wait in front of it.
func (p *projector) turn(id int64, which string, attempt Event, before int, seconds float64) time.Time {
	if seconds <= 0 || attempt.At.IsZero() {
		return attempt.At
	}
	wait := Event{
		Event: StepRetry, At: attempt.At, Step: attempt.Step, Visit: attempt.Visit, Index: attempt.Index, Sink: attempt.Sink,
		Attempt: before, Page: attempt.Page, Reason: string(interpreter.ReasonTurn), Delay: seconds,
	}
	wait.NextRetryAt = wait.At.Add(time.Duration(seconds * float64(time.Second)).Round(time.Millisecond))
	p.add(id, "turn/"+which, wait)
	return wait.NextRetryAt
}

// maxTurnRead bounds the results that are looked through for a wait, in bytes. Larger
// ones are in the payload store.
const maxTurnRead = 256 << 10

// turnOf is how many seconds the attempt of an activity that has ended waited for its
// turn.
func turnOf(event *historypb.HistoryEvent) float64 {
	if recorded := failureOf(event); recorded != nil {
		var application *temporal.ApplicationError
		if errors.As(temporal.GetDefaultFailureConverter().FailureToError(recorded), &application) && application.HasDetails() {
			return interpreter.TurnOf(application)
		}
		return 0
	}
	payloads := event.GetActivityTaskCompletedEventAttributes().GetResult()
	if len(payloads.GetPayloads()) != 1 || len(payloads.GetPayloads()[0].GetData()) > maxTurnRead {
		return 0
	}
	var read struct {
		Turn float64 `json:"turn"`
	}
	if converter.GetDefaultDataConverter().FromPayloads(payloads, &read) != nil {
		return 0
	}
	return read.Turn
}

// begun reports whether the heartbeats of an attempt say that it has its turn.
func begun(heartbeat *commonpb.Payloads) bool {
	var read struct {
		State struct {
			Begun bool `json:"begun"`
		} `json:"word"`
	}
	return len(heartbeat.GetPayloads()) > 0 &&
		converter.GetDefaultDataConverter().FromPayloads(heartbeat, &read) == nil && read.State.Begun
}
