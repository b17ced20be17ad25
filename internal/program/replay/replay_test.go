package replay_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/temporalproto"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/proto"

	"reprise/activities"
	"reprise/internal/program/host"
	"reprise/internal/program/replay"
	"reprise/internal/test/testenv"
	"reprise/interpreter/expression"
	"reprise/interpreter/login"
	"reprise/workflows/protocol"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// TestReplay: the histories of a run with a loop fit, one that was changed does not, and what is saved has no values.
func TestReplay(t *testing.T) {
	t.Parallel()
	env := testenv.Temporal(t)
	queue, private := env.NewTaskQueue(), "the name of a patient"
	catalogue := activities.NewCatalogue(activities.Resources{})
	w := host.NewWorker(env.Client(), catalogue, host.Options{TaskQueue: queue, StopTimeout: time.Second})
	require.NoError(t, w.Start())
	t.Cleanup(func() {
		w.Stop()
		require.NoError(t, catalogue.Close())
	})
	const book = "apiVersion: reprise/v1\nkind: Playbook\nmetadata: {name: loop}\nworkflow:\n" +
		"  - {step: each, tool: http, url: \"http://127.0.0.1:1/{{ who }}\", loop: {collection: [1, 2], mode: parallel}}\n"
	run, err := env.Client().ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: queue, TaskQueue: queue}, protocol.PlaybookWorkflowName,
		protocol.Input{Name: "loop.yaml", Source: book, Workload: expression.Of(map[string]any{"who": private})})
	require.NoError(t, err)
	_ = testenv.WaitOutcome(t, run, nil) // it fails: nobody is there
	var found []replay.Execution
	require.Eventually(t, func() bool {
		found, err = replay.FindOfRun(t.Context(), env.Client(), queue)
		return err == nil && len(found) == 4
	}, testenv.Within(20*time.Second), 100*time.Millisecond, "the run, its loop and two children")

	saved := t.TempDir()
	replayer := &replay.Replayer{Client: env.Client(), SaveTo: saved}
	report, err := replayer.ReplayAll(t.Context(), found)
	require.NoError(t, err)
	require.Empty(t, report.Mismatches)
	require.Empty(t, report.Unread)
	require.Equal(t, 4, report.Histories)
	require.Greater(t, report.Events, 30)
	files, err := filepath.Glob(filepath.Join(saved, "*.json"))
	require.NoError(t, err)
	require.Len(t, files, 4)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NotContains(t, string(text), private)
		require.NotContains(t, string(text), "127.0.0.1")
		require.NotContains(t, string(text), "@", "who has started it")
		require.Contains(t, string(text), "WORKFLOW_EXECUTION_STARTED")
	}

	history := testenv.Histories(t, env.Client(), queue, run.GetRunID())[0].History
	inFolder, err := replay.FindInFolder(endedAtEachEvent(t, history))
	require.NoError(t, err)
	report, err = (&replay.Replayer{}).ReplayAll(t.Context(), inFolder)
	require.NoError(t, err)
	require.Empty(t, report.Mismatches, "what workflow code would do with events that no worker has seen is not in a history")
	require.Greater(t, report.Histories, 8)

	for _, event := range history.GetEvents() {
		if begun := event.GetStartChildWorkflowExecutionInitiatedEventAttributes(); begun != nil {
			begun.WorkflowId += "-other"
		}
	}
	folder := t.TempDir()
	writeHistory(t, filepath.Join(folder, "changed.json"), history)
	require.NoError(t, os.WriteFile(filepath.Join(folder, "none.json"), []byte("no"), 0o600))
	inFolder, err = replay.FindInFolder(folder)
	require.NoError(t, err)
	report, err = (&replay.Replayer{}).ReplayAll(t.Context(), inFolder)
	require.NoError(t, err)
	require.Len(t, report.Unread, 1)
	require.Len(t, report.Mismatches, 1)
	mismatch := report.Mismatches[0]
	require.Equal(t, queue, mismatch.WorkflowID)
	require.Equal(t, "ChildWorkflow "+queue+"/each#1-other", mismatch.Expected)
	require.Positive(t, mismatch.Event)

	sample, more, err := replay.SampleClosed(t.Context(), env.Client(), time.Now().Add(-time.Hour), 2)
	require.NoError(t, err)
	require.Len(t, sample, 2)
	require.True(t, more)
	_, err = replay.FindOpen(t.Context(), env.Client())
	require.NoError(t, err)
	_, err = replay.FindInFolder(t.TempDir())
	require.ErrorContains(t, err, "has no histories")
}

// TestReplayOfUpdates: what a workflow task did for updates is decided too, wherever a history ends.
func TestReplayOfUpdates(t *testing.T) {
	t.Parallel()
	env := testenv.Temporal(t)
	queue := env.NewTaskQueue()
	catalogue := activities.NewCatalogue(activities.Resources{})
	w := host.NewWorker(env.Client(), catalogue, host.Options{TaskQueue: queue, StopTimeout: time.Second})
	require.NoError(t, w.Start())
	t.Cleanup(func() {
		w.Stop()
		require.NoError(t, catalogue.Close())
	})
	start := env.Client().NewWithStartWorkflowOperation(client.StartWorkflowOptions{
		ID: login.WorkflowID(queue), TaskQueue: queue, WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
	}, login.WorkflowName, login.StoredLogin{})
	handle, err := env.Client().UpdateWithStartWorkflow(t.Context(), client.UpdateWithStartWorkflowOptions{
		StartWorkflowOperation: start, UpdateOptions: client.UpdateWorkflowOptions{
			UpdateName: login.TokenUpdate, Args: []any{login.TokenRequest{Connection: queue, Seed: &login.SeedToken{Sealed: "seed", Digest: "of the seed"}}}, WaitForStage: client.WorkflowUpdateStageCompleted,
		},
	})
	require.NoError(t, err)
	var answer login.TokenAnswer
	require.NoError(t, handle.Get(t.Context(), &answer))
	require.NotNil(t, answer.Failure, "no worker knows the connection")
	run, err := start.Get(t.Context())
	require.NoError(t, err)
	require.NoError(t, env.Client().TerminateWorkflow(t.Context(), run.GetID(), run.GetRunID(), "the test is over"))
	history := testenv.Histories(t, env.Client(), run.GetID(), run.GetRunID())[0].History
	ended := endedAtEachEvent(t, history)
	writeHistory(t, filepath.Join(ended, "whole.json"), history)
	inFolder, err := replay.FindInFolder(ended)
	require.NoError(t, err)
	report, err := (&replay.Replayer{}).ReplayAll(t.Context(), inFolder)
	require.NoError(t, err)
	require.Empty(t, report.Mismatches)
	require.Greater(t, report.Histories, 8)
}

// endedAtEachEvent writes histories as they are if the run is cancelled after each of its events, without a worker, and then terminated or not;
// it returns their folder.
func endedAtEachEvent(t *testing.T, history *historypb.History) string {
	t.Helper()
	folder := t.TempDir()
	for n := 1; n < len(history.GetEvents()); n++ {
		if isCommand(history.GetEvents()[n]) {
			continue // the server writes all that a workflow task does at once
		}
		ended := proto.CloneOf(&historypb.History{Events: history.GetEvents()[:n]})
		ended.Events = append(ended.Events, &historypb.HistoryEvent{
			EventId: int64(n) + 1, EventTime: ended.GetEvents()[n-1].GetEventTime(), EventType: enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED,
			Attributes: &historypb.HistoryEvent_WorkflowExecutionCancelRequestedEventAttributes{
				WorkflowExecutionCancelRequestedEventAttributes: &historypb.WorkflowExecutionCancelRequestedEventAttributes{},
			},
		}, &historypb.HistoryEvent{
			EventId: int64(n) + 2, EventTime: ended.GetEvents()[n-1].GetEventTime(), EventType: enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED,
			Attributes: &historypb.HistoryEvent_WorkflowExecutionTerminatedEventAttributes{
				WorkflowExecutionTerminatedEventAttributes: &historypb.WorkflowExecutionTerminatedEventAttributes{Reason: "test"},
			},
		})
		writeHistory(t, filepath.Join(folder, fmt.Sprintf("terminated_%d.json", n)), ended)
		ended.Events = ended.GetEvents()[:n+1]
		writeHistory(t, filepath.Join(folder, fmt.Sprintf("cancelled_%d.json", n)), ended)
	}
	return folder
}

// isCommand reports whether a workflow task has made an event.
func isCommand(event *historypb.HistoryEvent) bool {
	if event.GetWorkflowExecutionUpdateAcceptedEventAttributes() != nil || event.GetWorkflowExecutionUpdateCompletedEventAttributes() != nil {
		return true
	}
	message := event.ProtoReflect()
	return message.WhichOneof(message.Descriptor().Oneofs().ByName("attributes")).Message().Fields().ByName("workflow_task_completed_event_id") != nil
}

func writeHistory(t *testing.T, path string, history *historypb.History) {
	t.Helper()
	text, err := temporalproto.CustomJSONMarshalOptions{}.Marshal(history)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, bytes.TrimSpace(text), 0o600))
}
