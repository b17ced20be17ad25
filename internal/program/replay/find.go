package replay

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"reprise/internal/base/visibility"
	"reprise/interpreter/lists"
	"reprise/workflows"
	"reprise/workflows/protocol"
)

const (
	// listPage is how many workflows one call lists.
	listPage = 500
	// mostCandidates bounds the closed workflows of a type from which a sample is chosen; each page of them is a
	// request.
	mostCandidates = 2000
)

// typeNames collects the names of this program's workflow types.
type typeNames struct{ names []string }

// RegisterWorkflowWithOptions records the name of a workflow type.
func (t *typeNames) RegisterWorkflowWithOptions(_ any, options workflow.RegisterOptions) {
	t.names = append(t.names, options.Name)
}

// workflowTypes returns the sorted names of this program's workflow types.
func workflowTypes() []string {
	var all typeNames
	workflows.Register(&all)
	slices.Sort(all.names)
	return all.names
}

// typeCondition returns the list filter for workflows of this program.
func typeCondition() string {
	return "WorkflowType IN (" + strings.Join(lists.Map(workflowTypes(), visibility.Quote), ", ") + ")"
}

// FindOpen finds all open workflows of this program.
func FindOpen(ctx context.Context, c client.Client) ([]Execution, error) {
	found, _, err := listExecutions(ctx, c, typeCondition()+" AND ExecutionStatus = 'Running'", 0)
	return found, err
}

// FindMatching finds the workflows of this program that a list filter selects.
func FindMatching(ctx context.Context, c client.Client, filter string) ([]Execution, error) {
	found, _, err := listExecutions(ctx, c, typeCondition()+" AND ("+filter+")", 0)
	return found, err
}

// FindOfRun finds a run, the earlier workflow runs of its chain, and all workflows that belong to it.
func FindOfRun(ctx context.Context, c client.Client, workflowID string) ([]Execution, error) {
	found, _, err := listExecutions(ctx, c, typeCondition()+" AND RootWorkflowId = "+visibility.Quote(workflowID), 0)
	return found, err
}

// SampleClosed finds closed workflows of this program that ended since a time: at most `most`, about equally many of each
// type and playbook, the last to end first. more says that there are others.
func SampleClosed(ctx context.Context, c client.Client, since time.Time, most int) (sample []Execution, more bool, err error) {
	groups := map[string][]Execution{}
	for _, name := range workflowTypes() {
		filter := fmt.Sprintf("WorkflowType = %s AND ExecutionStatus != 'Running' AND CloseTime >= '%s'",
			visibility.Quote(name), since.UTC().Format(time.RFC3339Nano))
		found, left, err := listExecutions(ctx, c, filter, mostCandidates)
		if err != nil {
			return nil, false, err
		}
		more = more || left
		for _, one := range found {
			key := one.Type + "\n" + one.Playbook
			groups[key] = append(groups[key], one)
		}
	}
	keys := slices.Sorted(maps.Keys(groups))
	for i := 0; len(groups) > 0; i++ { // one of each group in turn
		for _, key := range keys {
			switch of := groups[key]; {
			case i >= len(of):
				delete(groups, key)
			case len(sample) == most:
				return sample, true, nil
			default:
				sample = append(sample, of[i])
			}
		}
	}
	return sample, more, nil
}

// listExecutions lists workflows, at most `most` unless that is 0. more says that there are others.
func listExecutions(ctx context.Context, c client.Client, filter string, most int) (found []Execution, more bool, err error) {
	var token []byte
	for {
		page, err := c.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{Query: filter, PageSize: listPage, NextPageToken: token})
		if err != nil {
			return nil, false, fmt.Errorf("list workflows: %w", err)
		}
		for _, info := range page.GetExecutions() {
			if slices.Contains(workflowTypes(), info.GetType().GetName()) { // whatever the server makes of a filter
				found = append(found, executionOf(info))
			}
		}
		token = page.GetNextPageToken()
		if len(token) == 0 || most > 0 && len(found) >= most {
			return found, len(token) > 0, nil
		}
	}
}

func executionOf(info *workflowpb.WorkflowExecutionInfo) Execution {
	one := Execution{WorkflowID: info.GetExecution().GetWorkflowId(), RunID: info.GetExecution().GetRunId(), Type: info.GetType().GetName()}
	if name := info.GetSearchAttributes().GetIndexedFields()[protocol.PlaybookAttribute]; name != nil {
		_ = converter.GetDefaultDataConverter().FromPayload(name, &one.Playbook) // "" where it is no text
	}
	return one
}

// FindInFolder finds the histories in a folder: files that end in .json, as the web UI and `temporal workflow show` write
// them.
func FindInFolder(folder string) ([]Execution, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, fmt.Errorf("read the folder of histories: %w", err)
	}
	var found []Execution
	for _, entry := range entries {
		if path := filepath.Join(folder, entry.Name()); strings.HasSuffix(path, ".json") && !entry.IsDir() {
			found = append(found, Execution{WorkflowID: path, file: path})
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("the folder %s has no histories: expected files that end in .json", folder)
	}
	return found, nil
}

// readHistory reads the history of an execution. For a history in a file, it also sets the IDs.
func (r *Replayer) readHistory(ctx context.Context, execution *Execution) (*historypb.History, error) {
	if execution.file != "" {
		history, err := readFile(execution)
		if err == nil {
			err = r.Encryption.DecodeMessage(ctx, history)
		}
		return history, err
	}
	history := &historypb.History{}
	events := r.Client.GetWorkflowHistory(ctx, execution.WorkflowID, execution.RunID, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		if err != nil {
			return nil, fmt.Errorf("read the history: %w", err)
		}
		history.Events = append(history.Events, event)
	}
	return history, nil
}

func readFile(execution *Execution) (*historypb.History, error) {
	file, err := os.Open(execution.file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	history, err := client.HistoryFromJSON(file, client.HistoryJSONOptions{})
	if err != nil {
		return nil, fmt.Errorf("read the history: %w", err)
	}
	if len(history.GetEvents()) == 0 {
		return nil, fmt.Errorf("the file has no events")
	}
	began := history.GetEvents()[0].GetWorkflowExecutionStartedEventAttributes()
	if began.GetWorkflowId() != "" {
		execution.WorkflowID = began.GetWorkflowId()
	}
	execution.RunID, execution.Type = began.GetOriginalExecutionRunId(), began.GetWorkflowType().GetName()
	return history, nil
}
