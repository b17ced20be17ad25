package runs

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	sdkpb "go.temporal.io/api/sdk/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/workflows/protocol"
)

func encoded(t *testing.T, value any) *commonpb.Payloads {
	t.Helper()
	payloads, err := converter.GetDefaultDataConverter().ToPayloads(value)
	require.NoError(t, err)
	return payloads
}

// hosted is the history of a batch whose calls an activity has hosted from second 1 to
// second 5, as JSON says: what it was given and what it gave.
func hosted(t *testing.T, given, gave string) []*historypb.HistoryEvent {
	t.Helper()
	event := func(id int64, after time.Duration) *historypb.HistoryEvent {
		return &historypb.HistoryEvent{EventId: id, EventTime: timestamppb.New(noon.Add(after))}
	}
	started, scheduled, began, ended := event(1, 0), event(5, time.Second), event(6, time.Second), event(7, 5*time.Second)
	started.Attributes = &historypb.HistoryEvent_WorkflowExecutionStartedEventAttributes{
		WorkflowExecutionStartedEventAttributes: &historypb.WorkflowExecutionStartedEventAttributes{Input: encoded(t, protocol.CallsInput{})},
	}
	in := json.RawMessage(`{"task": {"step": "s", "visit": 1}, "calls": ` + given + `}`)
	scheduled.Attributes = &historypb.HistoryEvent_ActivityTaskScheduledEventAttributes{
		ActivityTaskScheduledEventAttributes: &historypb.ActivityTaskScheduledEventAttributes{
			ActivityId: "5", ActivityType: &commonpb.ActivityType{Name: call.DriveActivity}, Input: encoded(t, in),
		},
	}
	began.Attributes = &historypb.HistoryEvent_ActivityTaskStartedEventAttributes{
		ActivityTaskStartedEventAttributes: &historypb.ActivityTaskStartedEventAttributes{ScheduledEventId: 5, Attempt: 1},
	}
	ended.EventType = enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED
	ended.Attributes = &historypb.HistoryEvent_ActivityTaskCompletedEventAttributes{
		ActivityTaskCompletedEventAttributes: &historypb.ActivityTaskCompletedEventAttributes{
			ScheduledEventId: 5, Result: encoded(t, json.RawMessage(`{"calls": `+gave+`}`)),
		},
	}
	return []*historypb.HistoryEvent{started, scheduled, began, ended}
}

// sinkWait is an event of a wait of the page's sink of iteration 2.
func sinkWait(t *testing.T) *historypb.HistoryEvent {
	t.Helper()
	index := 2
	mark := interpreter.TimerMark{Call: pageSink, Index: &index, Reason: interpreter.ReasonFailure}
	summary, err := converter.GetDefaultDataConverter().ToPayload(mark.MarkSummary("in 20ms"))
	require.NoError(t, err)
	return &historypb.HistoryEvent{
		EventId: 11, EventTime: timestamppb.New(noon.Add(6 * time.Second)), UserMetadata: &sdkpb.UserMetadata{Summary: summary},
		Attributes: &historypb.HistoryEvent_TimerStartedEventAttributes{
			TimerStartedEventAttributes: &historypb.TimerStartedEventAttributes{StartToFireTimeout: durationpb.New(20 * time.Millisecond)},
		},
	}
}

const pageSink = "s.retry[1].then.per_iteration.sink"

// TestEventsOfHostedSinks: what an activity has done of the sinks of its calls are events,
// also where it has made no attempt of the call itself.
func TestEventsOfHostedSinks(t *testing.T) {
	t.Parallel()
	const due = `{"attempts": 1, "successes": 1, "todo": [{"sink": {"policy": 1, "page": true}}, {"end": {"status": "success"}}]}`
	const behind = `{"attempts": 2, "successes": 2, "todo": [{"sink": {"after": 1}}, {"end": {"status": "success"}}]}`
	from := source{workflow: protocol.CallsWorkflowName, step: "s", visit: 1, first: true}
	for _, row := range []struct {
		name, given, gave string
		waits             bool
		want              []string
	}{
		{
			"it is written", due, `{"written": 1, "result": {"status": "success", "meta": {"attempts": 1, "pages": 1,
				"started_at": "2026-03-01T12:00:00Z", "ended_at": "2026-03-01T12:00:03Z"}}}`, false,
			[]string{`    0.000s sink_completed         {"index":2,"page":1,"step":"s","visit":1}`},
		},
		{
			"it is of the result", behind, `{"written": 1, "result": {"status": "success", "meta": {"attempts": 2, "pages": 2,
				"started_at": "2026-03-01T12:00:00Z", "ended_at": "2026-03-01T12:00:03Z"}}}`, false,
			[]string{`    0.000s sink_completed         {"index":2,"page":2,"step":"s","visit":1}`},
		},
		{
			"it fails, and the workflow goes on with it", due, `{"state": ` + due + `, "unwritten": [{"attempt": 1, "page": 1, "place": "` + pageSink + `",
				"began": "2026-03-01T12:00:02Z", "ended": "2026-03-01T12:00:03Z", "error": {"kind": "http", "class": "retryable", "message": "HTTP 503"}}]}`, true,
			[]string{
				`    0.000s action_started         {"attempt":1,"index":2,"page":1,"sink":"` + pageSink + `","step":"s","visit":1}`,
				`    1.000s action_error           {"attempt":1,"duration":1,"error":"retryable http: HTTP 503","index":2,"page":1,"sink":"` + pageSink + `","step":"s","visit":1}`,
				`    4.000s step_retry             {"attempt":1,"delay":0.02,"error":"retryable http: HTTP 503","index":2,"next_retry_at":"0001-01-01T00:00:00.02Z","page":1,"reason":"failure","sink":"` + pageSink + `","step":"s","visit":1}`,
			},
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			events := hosted(t, `[{"index": 2, "state": `+row.given+`}]`, "["+row.gave+"]")
			if row.waits {
				events = append(events, sinkWait(t))
			}
			p, err := projectHistory(from, events, EventFilter{}, values{resolve: inline})
			require.NoError(t, err)
			require.Equal(t, strings.Join(row.want, "\n")+"\n", eventLines(t, p.sortedEvents()))
			last, ended := p.sortedEvents()[len(row.want)-1], interpreter.Completed
			if row.waits {
				ended = ""
			}
			require.Equal(t, ended, last.Ended)
		})
	}
}

// TestEventsOfFailuresBehindAttempts: an attempt that succeeded is action_completed where the call fails
// behind it, and one that failed keeps its own error.
func TestEventsOfFailuresBehindAttempts(t *testing.T) {
	t.Parallel()
	from := source{workflow: protocol.CallsWorkflowName, step: "s", visit: 1, first: true}
	const started = `    0.000s action_started         {"attempt":1,"index":2,"page":1,"step":"s","visit":1}`
	completed := func(seconds int) string {
		return fmt.Sprintf(`    %d.000s action_completed       {"attempt":1,"duration":%d,"index":2,"page":1,"step":"s","visit":1}`, seconds, seconds)
	}
	gave := func(page, pages int, made string) string {
		return fmt.Sprintf(`[{"result": {"status": "error", "meta": {"attempts": 1, "pages": %d, "started_at": "2026-03-01T12:00:01Z",
			"ended_at": "2026-03-01T12:00:03Z"}, "error": {"kind": "expression", "class": "final", "message": "x is nil",
			"attempt": 1, "page": %d}}%s}]`, pages, page, made)
	}
	const made = `, "made": [{"attempt": 1, "page": 1, "began": "2026-03-01T12:00:01Z", "ended": "2026-03-01T12:00:02Z"%s}]`
	for _, row := range []struct {
		name, gave string
		want       []string
	}{
		{"the next page has no request", gave(1, 1, ""), []string{started, completed(2)}},
		{"the request of the next page cannot be sent", gave(2, 1, fmt.Sprintf(made, "")), []string{started, completed(1)}},
		{
			"a condition is wrong behind a failure",
			gave(1, 0, fmt.Sprintf(made, `, "error": {"kind": "http", "class": "retryable", "message": "HTTP 503", "attempt": 1, "page": 1}`)),
			[]string{
				started,
				`    1.000s action_error           {"attempt":1,"duration":1,"error":"retryable http: HTTP 503","index":2,"page":1,"step":"s","visit":1}`,
			},
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			p, err := projectHistory(from, hosted(t, `[{"index": 2}]`, row.gave), EventFilter{}, values{resolve: inline})
			require.NoError(t, err)
			require.Equal(t, strings.Join(row.want, "\n")+"\n", eventLines(t, p.sortedEvents()))
			require.Equal(t, interpreter.Failed, p.sortedEvents()[1].Ended)
		})
	}
}

// TestSinksThatFailBehindAFailure: sinks that fail behind the failure of an iteration or of a step are
// events before its end, in their order and each once.
func TestSinksThatFailBehindAFailure(t *testing.T) {
	t.Parallel()
	failure := func(kind interpreter.Kind, message string) interpreter.ErrorObject {
		return interpreter.ErrorObject{Kind: kind, Class: interpreter.ClassRetryable, Message: message}
	}
	of := failure(interpreter.KindHTTP, "HTTP 503")
	of.Exhausted = true
	sinks := []interpreter.ErrorObject{failure(interpreter.KindSink, "one"), failure(interpreter.KindSink, "two")}
	said := func(events []Event) (said []string) {
		keys := map[string]bool{}
		for _, event := range events {
			require.False(t, keys[event.key], event.key)
			keys[event.key] = true
			said = append(said, event.Event)
			if event.Error != nil {
				said[len(said)-1] += ": " + event.Error.Message
			}
		}
		return said
	}
	p := &projector{source: source{step: "s", visit: 1}}
	p.addIteration(7, p.iterationEvent(IterationCompleted, noon, 3), interpreter.IterationResult{
		Index: 3, Result: interpreter.CallResult{Status: interpreter.StatusError, Error: &of, SinkErrors: sinks},
	})
	require.Equal(t, []string{
		"step_retry_exhausted: HTTP 503", "sink_failed: one", "sink_failed: two", "iteration_failed: HTTP 503",
	}, said(p.events))
	require.Equal(t, []string{
		"step_started", "step_retry_exhausted: HTTP 503", "sink_failed: one", "sink_failed: two", "step_failed_terminal: HTTP 503",
	}, said(StepEvents(protocol.StepRecord{
		Step: "s", Visit: 1, StartedAt: noon, EndedAt: noon.Add(time.Second),
		CallStatus: interpreter.CallStatus{Status: interpreter.Failed, Error: &of, SinkErrors: sinks},
	})))
}

// TestIterationsFrameTheirEvents: an iteration that has begun and ended by a clock which is an hour away does
// so around what its history has of it, and the order of all else is as it was.
func TestIterationsFrameTheirEvents(t *testing.T) {
	t.Parallel()
	right, _ := readRun(t, filepath.Join(storedHistories, "batches")).events(t, EventFilter{Attempts: true})
	for _, away := range []time.Duration{-time.Hour, time.Hour} {
		run := readRun(t, filepath.Join(storedHistories, "batches"))
		shifted := 0
		for _, history := range run.histories {
			for _, event := range history {
				ended := event.GetChildWorkflowExecutionCompletedEventAttributes()
				if ended.GetWorkflowType().GetName() != protocol.CallsWorkflowName {
					continue
				}
				var output protocol.CallsOutput
				require.NoError(t, converter.GetDefaultDataConverter().FromPayloads(ended.GetResult(), &output))
				for i := range output.Iterations {
					meta := &output.Iterations[i].Result.Meta
					meta.StartedAt, meta.EndedAt = meta.StartedAt.Add(away), meta.EndedAt.Add(away)
					shifted++
				}
				ended.Result = encoded(t, output)
			}
		}
		require.NotZero(t, shifted)
		wrong, _ := run.events(t, EventFilter{Attempts: true})
		require.Len(t, wrong, len(right))
		open, over, last := map[string]bool{}, map[string]bool{}, time.Time{}
		for _, event := range wrong {
			require.False(t, event.At.Before(last), "%s: %+v before %s", away, event, last)
			last = event.At
			if event.Index == nil {
				continue
			}
			of := frameOf(event)
			switch kind := event.Kind(); {
			case event.Event == IterationStarted:
				open[of] = true
			case kind.Of == OfIteration:
				over[of] = true
			default:
				require.True(t, open[of], "%s: %s of %s before its start", away, event.Event, of)
				require.False(t, over[of], "%s: %s of %s behind its end", away, event.Event, of)
			}
		}
		require.NotEmpty(t, over)
	}
}
