// Package replay replays histories with this program's workflows: a history that does not match would block its run
// as soon as a worker of this build gets it.
package replay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/proto"

	"reprise/internal/base/codec"
	"reprise/internal/base/payload"
	"reprise/workflows"
)

// atOnce is how many histories are replayed concurrently: each is in memory as a whole.
const atOnce = 4

// Execution is a workflow run whose history is replayed.
type Execution struct {
	WorkflowID string `json:"workflow_id"`
	RunID      string `json:"run_id,omitempty"`
	Type       string `json:"type,omitempty"`
	Playbook   string `json:"playbook,omitempty"`
	// file is the path of the history; "" if the server has it.
	file string
}

// Mismatch is a history that this build does not match.
type Mismatch struct {
	Execution
	// Event is the ID of the last event that was replayed without an error; 0 if unknown.
	Event int64 `json:"event"`
	// Expected is what the history has, and Got what this build does instead; "" means nothing.
	Expected string `json:"expected,omitempty"`
	Got      string `json:"got,omitempty"`
	Error    string `json:"error"`
}

// UnreadHistory is a history that could not be read.
type UnreadHistory struct {
	Execution
	Error string `json:"error"`
}

// Report is the result for all histories.
type Report struct {
	Histories int `json:"histories"`
	Events    int `json:"events"`
	// NotBegun counts workflows that no worker has run yet, so that every build matches.
	NotBegun   int             `json:"not_begun"`
	Mismatches []Mismatch      `json:"mismatches"`
	Unread     []UnreadHistory `json:"unread"`
	// Left is set if there are closed workflows beyond the sample.
	Left bool `json:"left,omitempty"`
}

// Replayer replays histories. Client is nil if they are in files.
type Replayer struct {
	Client client.Client
	Store  *payload.Store // of large values, nil for none
	// Encryption decrypts histories of files; those of the server come decrypted.
	Encryption *codec.Codec
	// SaveTo is the folder for saved histories, whose values are removed; "" saves none.
	SaveTo string

	mu     sync.Mutex
	report Report
	saved  atomic.Int64
}

// ReplayAll replays executions, a few at a time. The error is from saving, or from ctx.
func (r *Replayer) ReplayAll(ctx context.Context, executions []Execution) (Report, error) {
	r.report.Mismatches, r.report.Unread = []Mismatch{}, []UnreadHistory{}
	var group errgroup.Group
	group.SetLimit(atOnce)
	for _, execution := range executions {
		if ctx.Err() != nil {
			break
		}
		group.Go(func() error { return r.replayExecution(ctx, execution) })
	}
	err := group.Wait()
	return r.report, errors.Join(ctx.Err(), err)
}

// replayExecution reads, saves and replays one history. The error is from saving.
func (r *Replayer) replayExecution(ctx context.Context, execution Execution) error {
	history, err := r.readHistory(ctx, &execution)
	if err != nil {
		r.addUnread(execution, err)
		return nil
	}
	if r.SaveTo != "" {
		if err := saveStripped(r.SaveTo, r.saved.Add(1), history); err != nil {
			return err
		}
	}
	if len(decidedPart(history).GetEvents()) < fewestEvents {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.report.NotBegun++
		return nil
	}
	err = r.replayHistory(execution, history)
	if errors.As(err, new(*payload.StoreError)) {
		r.addUnread(execution, err)
		return nil
	}
	mismatch := Mismatch{Execution: execution}
	if err != nil {
		mismatch = r.describeMismatch(execution, history, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.report.Histories++
	r.report.Events += len(history.GetEvents())
	if err != nil {
		r.report.Mismatches = append(r.report.Mismatches, mismatch)
	}
	return nil
}

func (r *Replayer) addUnread(execution Execution, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.report.Unread = append(r.report.Unread, UnreadHistory{Execution: execution, Error: err.Error()})
}

// fewestEvents is the shortest history that the SDK can replay: the workflow has started, and a worker got its first
// task.
const fewestEvents = 3

// replayHistory replays the decided part of a history with its original IDs, from which IDs of children derive.
func (r *Replayer) replayHistory(execution Execution, history *historypb.History) (err error) {
	if history = decidedPart(history); len(history.GetEvents()) < fewestEvents {
		return nil
	}
	replayer, err := worker.NewWorkflowReplayerWithOptions(worker.WorkflowReplayerOptions{
		ExternalStorage: r.Store.ReadOnly(), DisableDeadlockDetection: true, // large values and busy machines
	})
	if err != nil {
		return err
	}
	workflows.Register(replayer)
	defer func() {
		if stopped := recover(); stopped != nil {
			err = fmt.Errorf("the workflow code panicked: %v", stopped)
		}
	}()
	// The replayer may change the history, so it gets a copy.
	return replayer.ReplayWorkflowHistoryWithOptions(log.NewStructuredLogger(slog.New(slog.DiscardHandler)), proto.CloneOf(history), worker.ReplayWorkflowHistoryOptions{
		OriginalExecution: workflow.Execution{ID: execution.WorkflowID, RunID: execution.RunID},
	})
}

// decidedPart returns the part of a history that workflow code has decided: up to the last event that its last
// completed workflow task caused; empty if no task has completed. Later events, such as a cancel request or a
// termination, have not been processed by the workflow.
func decidedPart(history *historypb.History) *historypb.History {
	events := history.GetEvents()
	for i, event := range slices.Backward(events) {
		if isOfTask(event) {
			return &historypb.History{Events: events[:i+1]}
		}
	}
	return &historypb.History{}
}

// isOfTask reports whether an event is the completion of a workflow task, or was caused by one. Events about
// accepted, rejected and completed updates have no task ID.
func isOfTask(event *historypb.HistoryEvent) bool {
	switch event.GetEventType() {
	case enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED,
		enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_REJECTED, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_COMPLETED:
		return true
	default:
	}
	message := event.ProtoReflect()
	of := message.WhichOneof(message.Descriptor().Oneofs().ByName("attributes"))
	return of != nil && of.Message().Fields().ByName("workflow_task_completed_event_id") != nil
}

// describeMismatch finds where a history stops matching: the shortest beginning of it that fails.
func (r *Replayer) describeMismatch(execution Execution, history *historypb.History, err error) Mismatch {
	mismatch := Mismatch{Execution: execution, Error: err.Error()}
	mismatch.Expected, mismatch.Got = compareTexts(err.Error())
	var tasks []int // lengths of beginnings that end when a workflow task has started
	for i, event := range history.GetEvents() {
		if event.GetEventType() == enumspb.EVENT_TYPE_WORKFLOW_TASK_STARTED && i+1 >= fewestEvents {
			tasks = append(tasks, i+1)
		}
	}
	low, high := 0, len(tasks) // tasks[:low] fit, tasks[high:] do not
	for low < high {
		middle := (low + high) / 2
		if r.replayHistory(execution, &historypb.History{Events: history.GetEvents()[:tasks[middle]]}) != nil {
			high = middle
		} else {
			low = middle + 1
		}
	}
	if low > 0 {
		mismatch.Event = history.GetEvents()[tasks[low-1]-1].GetEventId()
	}
	return mismatch
}

// The SDK's messages about a history that does not match.
var (
	differs = regexp.MustCompile(`(?s)history event is (.*), replay command is (.*)$`)
	missing = regexp.MustCompile(`(?s)missing replay command for (.*)$`)
	absent  = regexp.MustCompile(`(?s)a matching (.*) command was expected in history event position (.*)\. However,`)
	extra   = regexp.MustCompile(`(?s)extra replay command for (.*)$`)
)

// compareTexts extracts what was expected and what came instead from the SDK's error; "" if the error says something
// else.
func compareTexts(message string) (expected, got string) {
	if found := differs.FindStringSubmatch(message); found != nil {
		return found[1], found[2]
	}
	if found := missing.FindStringSubmatch(message); found != nil {
		return found[1], ""
	}
	if found := absent.FindStringSubmatch(message); found != nil {
		return found[1] + " " + found[2], ""
	}
	if found := extra.FindStringSubmatch(message); found != nil {
		return "", found[1]
	}
	return "", ""
}

// DescribeMismatch describes a mismatch for people, in lines.
func DescribeMismatch(one Mismatch) string {
	text := fmt.Sprintf("mismatch: %s (%s, run ID %s), after event %d\n", one.WorkflowID, one.Type, one.RunID, one.Event)
	if one.Expected == "" && one.Got == "" {
		return text + fmt.Sprintf("  error: %s\n", one.Error)
	}
	return text + fmt.Sprintf("  expected: %s\n  got: %s\n", cmp.Or(one.Expected, "nothing"), cmp.Or(one.Got, "nothing"))
}
