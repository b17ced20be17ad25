package runs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"reprise/interpreter"
)

// addTurn adds an event for the seconds that an activity waited for its turn under a rate limit before it made its
// attempt, and returns when the attempt began. If the history has one pair of events for several attempts, their waits
// become one.
func (p *projector) addTurn(id int64, which string, attempt Event, before int, seconds float64) time.Time {
	if seconds <= 0 || attempt.At.IsZero() {
		return attempt.At
	}
	wait := Event{
		Event: StepRetry, At: attempt.At, Step: attempt.Step, Visit: attempt.Visit, Index: attempt.Index, Sink: attempt.Sink,
		Attempt: before, Page: attempt.Page, Reason: string(interpreter.ReasonTurn), Delay: seconds,
	}
	wait.NextRetryAt = wait.At.Add(time.Duration(seconds * float64(time.Second)).Round(time.Millisecond))
	p.addEvent(id, "turn/"+which, wait)
	return wait.NextRetryAt
}

// turnOf returns how many seconds the attempt of an ended activity waited for its turn. A result in the payload store
// is read only if the step has a rate limit.
func (p *projector) turnOf(of *madeActivity, event *historypb.HistoryEvent) (float64, error) {
	if recorded := failureOf(event); recorded != nil {
		var application *temporal.ApplicationError
		if errors.As(temporal.GetDefaultFailureConverter().FailureToError(recorded), &application) && application.HasDetails() {
			return interpreter.SlotTurn(application), nil
		}
		return 0, nil
	}
	result := event.GetActivityTaskCompletedEventAttributes().GetResult()
	if of.one.RateLimit != nil {
		if err := p.resolve(result); err != nil {
			return 0, fmt.Errorf("read whether an attempt of %s waited for its rate limit: %w", p.workflowID, err)
		}
	}
	if len(result.GetPayloads()) != 1 {
		return 0, nil
	}
	return firstTurn(result.GetPayloads()[0].GetData()), nil
}

// firstTurn returns the turn of an encoded ToolResult, which is its first field if set; else 0.
func firstTurn(encoded []byte) float64 {
	read := json.NewDecoder(bytes.NewReader(encoded))
	for _, want := range []json.Token{json.Delim('{'), "turn"} {
		if got, err := read.Token(); err != nil || got != want {
			return 0
		}
	}
	seconds, _ := read.Token()
	turn, _ := seconds.(float64)
	return turn
}

// hasBegun reports whether the heartbeats of an attempt say that it got its turn.
func hasBegun(heartbeat *commonpb.Payloads) bool {
	var read struct {
		State struct {
			Begun bool `json:"begun"`
		} `json:"delivery"`
	}
	return len(heartbeat.GetPayloads()) > 0 &&
		converter.GetDefaultDataConverter().FromPayloads(heartbeat, &read) == nil && read.State.Begun
}
