package runs

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"reprise/interpreter/queue"
	"reprise/workflows/protocol"
)

var update = flag.Bool("update", false, "write the expected events")

// storedHistories are recorded runs, a folder for each.
const storedHistories = "../../../workflows/testdata/histories"

// storedRun is a recorded run: an origin that needs no server. upTo bounds the events that are
// known of each history, 0 for none, as if it were looked at before it has ended.
type storedRun struct {
	root      source
	histories map[string][]*historypb.HistoryEvent // by run ID
	upTo      int
}

func inline(proto.Message) error { return nil } // no value is in a payload store

// readRun reads the histories of a folder; the first file is that of the run.
func readRun(t *testing.T, folder string) *storedRun {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	require.NoError(t, err)
	require.NotEmpty(t, files, folder)
	run := &storedRun{histories: map[string][]*historypb.HistoryEvent{}}
	for i, name := range files {
		file, err := os.Open(name)
		require.NoError(t, err)
		history, err := client.HistoryFromJSON(file, client.HistoryJSONOptions{})
		require.NoError(t, err, name)
		require.NoError(t, file.Close())
		started := history.GetEvents()[0].GetWorkflowExecutionStartedEventAttributes()
		run.histories[started.GetOriginalExecutionRunId()] = history.GetEvents()
		if i == 0 {
			run.root = source{
				workflowID: started.GetWorkflowId(), runID: started.GetOriginalExecutionRunId(),
				workflow: started.GetWorkflowType().GetName(), first: true,
			}
		}
	}
	return run
}

func (s *storedRun) recorded(runID string) ([]*historypb.HistoryEvent, error) {
	events, found := s.histories[runID]
	if !found {
		return nil, serviceerror.NewNotFound(runID)
	}
	if s.upTo == 0 || s.upTo >= len(events) {
		return events, nil
	}
	upTo := s.upTo
	for upTo < len(events) && isCommand(events[upTo]) { // the server adds what a workflow decides at once
		upTo++
	}
	return events[:upTo], nil
}

// isCommand reports whether an event is what a workflow has decided.
func isCommand(event *historypb.HistoryEvent) bool {
	message := event.ProtoReflect()
	attributes := message.WhichOneof(message.Descriptor().Oneofs().ByName("attributes"))
	of := message.Get(attributes).Message()
	field := of.Descriptor().Fields().ByName("workflow_task_completed_event_id")
	return field != nil && of.Get(field).Int() > 0
}

// load is that of origin.
func (s *storedRun) load(_ context.Context, from source, filter EventFilter) (*projector, error) {
	events, err := s.recorded(from.runID)
	if err != nil {
		return nil, err
	}
	return projectHistory(from, events, filter, values{resolve: inline})
}

// records is that of origin.
func (s *storedRun) records(context.Context, bool) ([]protocol.StepRecord, string, error) {
	events, err := s.recorded(s.root.runID)
	if err != nil || !isEnd(events[len(events)-1]) {
		return nil, "nobody answers", err
	}
	result, err := values{resolve: inline}.resultOf(&child{workflowID: s.root.workflowID, end: events[len(events)-1]})
	return result.Steps, "", err
}

// revision is that of origin.
func (s *storedRun) revision(_ context.Context, of source) (string, error) {
	return fmt.Sprint(len(s.histories[of.runID])), nil
}

func (s *storedRun) events(t *testing.T, filter EventFilter) ([]Event, EventsInfo) {
	t.Helper()
	var events []Event
	info, err := mergeEvents(t.Context(), s, s.root, filter, func(event Event) error {
		events = append(events, event)
		return nil
	})
	require.NoError(t, err)
	return events, info
}

// eventLines are events as text, with times since the first.
func eventLines(t *testing.T, events []Event) string {
	t.Helper()
	var b strings.Builder
	for _, event := range events {
		at := event.At.Sub(events[0].At)
		if !event.NextRetryAt.IsZero() {
			event.NextRetryAt = time.Time{}.Add(event.NextRetryAt.Sub(event.At))
		}
		encoded, err := json.Marshal(event)
		require.NoError(t, err)
		var fields map[string]any
		require.NoError(t, json.Unmarshal(encoded, &fields))
		delete(fields, "event")
		delete(fields, "at")
		if failure := event.Error; failure != nil {
			fields["error"] = fmt.Sprintf("%s %s: %.60s", failure.Class, failure.Kind, failure.Message)
		}
		rest, err := json.Marshal(fields)
		require.NoError(t, err)
		fmt.Fprintf(&b, "%9.3fs %-22s %s\n", at.Seconds(), event.Event, rest)
	}
	return b.String()
}

// TestGoldenEvents: the events of each recorded run, those of iterations too, are those
// that are expected.
func TestGoldenEvents(t *testing.T) {
	t.Parallel()
	folders, err := filepath.Glob(filepath.Join(storedHistories, "*"))
	require.NoError(t, err)
	require.Greater(t, len(folders), 25)
	for _, folder := range folders {
		t.Run(filepath.Base(folder), func(t *testing.T) {
			t.Parallel()
			events, info := readRun(t, folder).events(t, EventFilter{Attempts: true})
			require.Empty(t, info.Notes)
			expected := filepath.Join("testdata", "events", filepath.Base(folder)+".txt")
			text := eventLines(t, events)
			if *update {
				require.NoError(t, os.MkdirAll(filepath.Dir(expected), 0o755))
				require.NoError(t, os.WriteFile(expected, []byte(text), 0o644))
			}
			want, err := os.ReadFile(expected)
			require.NoError(t, err, "make golden writes it")
			require.Equal(t, string(want), text)
		})
	}
}

// TestEventsComeOnce: a run that is looked at while it goes on has a part of the events that it
// has in the end, whichever events its histories had by then. Only what is open has no end, and an
// iteration that starts may turn out to have begun later, when its end says so.
func TestEventsComeOnce(t *testing.T) {
	t.Parallel()
	folders, err := filepath.Glob(filepath.Join(storedHistories, "*"))
	require.NoError(t, err)
	for _, folder := range folders {
		run := readRun(t, folder)
		whole, _ := run.events(t, EventFilter{Attempts: true})
		known := map[string]bool{}
		for _, event := range whole {
			require.False(t, known[event.key], "%s: %s twice", folder, event.key)
			known[event.key] = true
		}
		longest := 0
		for _, events := range run.histories {
			longest = max(longest, len(events))
		}
		for run.upTo = 1; run.upTo < longest; run.upTo++ {
			part, _ := run.events(t, EventFilter{Attempts: true})
			for _, event := range part {
				require.True(t, known[event.key], "%s: %s after %d events, but not in the end", folder, event.key, run.upTo)
			}
		}
	}
}

// TestFiltersOfEvents: a filter leaves a part of the events, in the same order.
func TestFiltersOfEvents(t *testing.T) {
	t.Parallel()
	one := 1
	for _, row := range []struct {
		folder string
		filter EventFilter
		want   []string // kinds
	}{
		{"loop", EventFilter{Kinds: []string{ExecutionStarted, ExecutionCompleted}}, []string{ExecutionStarted, ExecutionCompleted}},
		{"loop", EventFilter{Index: &one}, []string{IterationStarted, ActionStarted, ActionError, IterationFailed}},
		{"loop", EventFilter{Step: "fetch", Kinds: []string{ActionError}}, []string{ActionError}},
		{"loop", EventFilter{Step: "nothing"}, nil},
		{"loop", EventFilter{Failed: true, Kinds: []string{ActionStarted, IterationFailed, IterationCompleted}}, []string{ActionStarted, IterationFailed}},
		{"loop", EventFilter{Kinds: []string{ActionStarted}}, nil},
		{"fan_out", EventFilter{Failed: true}, []string{ExecutionStarted, ExecutionCompleted}},
	} {
		events, info := readRun(t, filepath.Join(storedHistories, row.folder)).events(t, row.filter)
		var kinds []string
		for _, event := range events {
			kinds = append(kinds, event.Event)
		}
		require.Equal(t, row.want, kinds, "%+v", row.filter)
		if row.filter.withinIterations() || row.folder != "loop" {
			require.Zero(t, info.Unasked)
		} else {
			require.Equal(t, 1, info.Unasked, "the attempts of iterations were not asked for")
		}
	}
}

// TestFailedIterationsAlone: the events of what has failed leave out those of iterations that have not, also
// of those that share a child with one that has.
func TestFailedIterationsAlone(t *testing.T) {
	t.Parallel()
	folders, err := filepath.Glob(filepath.Join(storedHistories, "*"))
	require.NoError(t, err)
	shown, left := 0, 0
	for _, folder := range folders {
		run := readRun(t, folder)
		whole, _ := run.events(t, EventFilter{Attempts: true})
		failed := map[string]bool{}
		for _, event := range whole {
			if event.Event == IterationFailed {
				failed[fmt.Sprintf("%s#%d/%d", event.Step, event.Visit, *event.Index)] = true
			}
		}
		part, _ := run.events(t, EventFilter{Failed: true})
		for _, event := range part {
			if event.Index != nil {
				require.True(t, failed[fmt.Sprintf("%s#%d/%d", event.Step, event.Visit, *event.Index)], "%s: %s of %s[%d]", folder, event.Event, event.Step, *event.Index)
				shown++
			}
		}
		left += len(whole) - len(part)
	}
	require.NotZero(t, shown)
	require.NotZero(t, left)
}

// TestHistoriesThatAreGone: what the server no longer has is a note, and the rest is there.
func TestHistoriesThatAreGone(t *testing.T) {
	t.Parallel()
	run := readRun(t, filepath.Join(storedHistories, "loop"))
	for id, events := range run.histories {
		if events[0].GetWorkflowExecutionStartedEventAttributes().GetWorkflowType().GetName() == protocol.CallsWorkflowName {
			delete(run.histories, id)
		}
	}
	events, info := run.events(t, EventFilter{Attempts: true})
	require.Len(t, info.Notes, 3)
	require.Contains(t, info.Notes[0], "no longer has the history")
	require.Equal(t, ExecutionCompleted, events[len(events)-1].Event)
}

// queueHistory is that of a run that waits for its turn for 5 s.
func queueHistory(t *testing.T) []*historypb.HistoryEvent {
	t.Helper()
	memo := func(ticket queue.Ticket) *commonpb.Memo {
		payload, err := converter.GetDefaultDataConverter().ToPayload(ticket)
		require.NoError(t, err)
		return &commonpb.Memo{Fields: map[string]*commonpb.Payload{queue.Memo: payload}}
	}
	modified := func(id int64, after time.Duration, ticket queue.Ticket) *historypb.HistoryEvent {
		return &historypb.HistoryEvent{
			EventId: id, EventTime: timestamppb.New(noon.Add(after)), EventType: enumspb.EVENT_TYPE_WORKFLOW_PROPERTIES_MODIFIED,
			Attributes: &historypb.HistoryEvent_WorkflowPropertiesModifiedEventAttributes{
				WorkflowPropertiesModifiedEventAttributes: &historypb.WorkflowPropertiesModifiedEventAttributes{UpsertedMemo: memo(ticket)},
			},
		}
	}
	waiting := queue.Ticket{Queue: "line", Name: queue.Name{Key: "one"}, Since: noon.Add(time.Second)}
	return []*historypb.HistoryEvent{
		{
			EventId: 1, EventTime: timestamppb.New(noon), EventType: enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED,
			Attributes: &historypb.HistoryEvent_WorkflowExecutionStartedEventAttributes{
				WorkflowExecutionStartedEventAttributes: &historypb.WorkflowExecutionStartedEventAttributes{},
			},
		},
		modified(2, time.Second, waiting), modified(3, 2*time.Second, waiting), modified(4, 6*time.Second, queue.Ticket{}),
	}
}

func queueEvents(t *testing.T) []Event {
	t.Helper()
	p, err := projectHistory(source{workflow: protocol.PlaybookWorkflowName, first: true}, queueHistory(t), EventFilter{}, values{resolve: inline})
	require.NoError(t, err)
	return p.sortedEvents()
}

// TestEventsOfAQueue: a run waits for its turn once, however often its memo says so.
func TestEventsOfAQueue(t *testing.T) {
	t.Parallel()
	events := queueEvents(t)
	for i := range events {
		events[i].key = ""
	}
	require.Equal(t, []Event{
		{Event: ExecutionStarted, At: noon},
		{Event: ExecutionQueued, At: noon.Add(time.Second), Concurrency: "one"},
		{Event: ExecutionAdmitted, At: noon.Add(6 * time.Second), Concurrency: "one", Duration: 5},
	}, events)
}

// TestEachKindHappens: each kind of events is one that a recorded run has, or a history above.
func TestEachKindHappens(t *testing.T) {
	t.Parallel()
	all := queueEvents(t)
	folders, err := filepath.Glob(filepath.Join(storedHistories, "*"))
	require.NoError(t, err)
	for _, folder := range folders {
		events, _ := readRun(t, folder).events(t, EventFilter{Attempts: true})
		all = append(all, events...)
	}
	for _, kind := range kinds {
		require.True(t, slices.ContainsFunc(all, func(event Event) bool { return event.Event == kind.Name }),
			"no recorded run has an event %q: is it added anywhere?", kind.Name)
	}
}
