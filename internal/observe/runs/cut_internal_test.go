package runs

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/interpreter"
	"reprise/workflows/protocol"
)

// TestEventsOfCutCalls: a call that a policy has cut says so before its end, which is that of a part.
func TestEventsOfCutCalls(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	cut := &interpreter.Cut{Error: interpreter.ErrorObject{Kind: interpreter.KindExhausted, Message: "cut", Exhausted: true}}
	result := interpreter.CallResult{
		Status: interpreter.Partial, Cut: cut, Meta: interpreter.CallMeta{Attempts: 3, Pages: 3, Truncated: true, StartedAt: began, EndedAt: began.Add(time.Second)},
	}
	told := func(events []Event) (names []string) {
		for _, event := range events {
			names = append(names, event.Event+" "+string(event.Status))
		}
		return names
	}
	record := protocol.StepRecord{Step: "fetch", Visit: 1, StartedAt: began, EndedAt: began.Add(time.Second), CallStatus: result.CallStatus()}
	events := StepEvents(record)
	require.Equal(t, []string{"step_started ", "step_retry_exhausted ", "step_result partial_success"}, told(events))
	require.Equal(t, "cut", events[1].Error.Message)

	p := &projector{}
	p.step, p.visit = "fetch", 1
	p.addIteration(1, p.iterationEvent(IterationCompleted, record.EndedAt, 2), interpreter.IterationResult{Index: 2, Result: result})
	require.Equal(t, []string{"step_retry_exhausted ", "iteration_completed partial_success"}, told(p.events))

	index := 2
	ofLoop := interpreter.CallResult{Status: interpreter.Partial, Cut: &interpreter.Cut{Index: &index, Error: cut.Error}}
	require.Nil(t, ofLoop.CallStatus().Cut, "its iteration has said so")
}
