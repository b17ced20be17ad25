package testenv

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"testing"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
)

// RunHistory is the history of one run of one workflow.
type RunHistory struct {
	WorkflowID string
	RunID      string
	Type       string // workflow type
	History    *historypb.History
}

// String returns a name of the run for messages.
func (r RunHistory) String() string {
	return fmt.Sprintf("%s %q (run %s)", r.Type, r.WorkflowID, r.RunID)
}

// Ending returns how the run ended: Completed, Failed, TimedOut, Canceled, Terminated or ContinuedAsNew. For an open
// run it returns the type of its last event.
func (r RunHistory) Ending() string {
	events := r.History.GetEvents()
	if len(events) == 0 {
		return ""
	}
	return strings.TrimPrefix(events[len(events)-1].GetEventType().String(), "WorkflowExecution")
}

// OrderlyEndings returns the endings that a workflow itself can choose.
func OrderlyEndings() []string { return []string{"Completed", "Failed", "Canceled", "ContinuedAsNew"} }

// Histories returns the histories of a run, of the other runs of its chain (continue-as-new, retry), and of all their
// descendants with their chains. The root's chain comes first, in order, and each run before its children. An empty
// runID stands for the latest run. The test fails if a history cannot be read.
func Histories(t testing.TB, c client.Client, workflowID, runID string) []RunHistory {
	t.Helper()
	collect := &collector{client: c, seen: map[string]bool{}}
	if err := collect.collectRoot(t.Context(), workflowID, runID); err != nil {
		t.Fatal(err)
	}
	return collect.found
}

// collector collects the histories of chains of runs and their children.
type collector struct {
	client client.Client
	seen   map[string]bool // by run ID
	found  []RunHistory
}

// collectRoot finds the first run of the chain and collects from there. The given run is collected too if the chain does not
// include it, as after a reset.
func (c *collector) collectRoot(ctx context.Context, workflowID, runID string) error {
	given, err := c.fetchHistory(ctx, workflowID, runID)
	if err != nil {
		return err
	}
	first := cmp.Or(startedEvent(given).GetFirstExecutionRunId(), given.RunID)
	if err := c.collectChain(ctx, workflowID, first); err != nil {
		return err
	}
	return c.collectChain(ctx, workflowID, given.RunID)
}

// collectChain collects a run, its children, and the subsequent runs of its chain.
func (c *collector) collectChain(ctx context.Context, workflowID, runID string) error {
	var chain []RunHistory
	for runID != "" && !c.seen[runID] {
		run, err := c.fetchHistory(ctx, workflowID, runID)
		if err != nil {
			return err
		}
		c.seen[runID] = true
		chain = append(chain, run)
		runID = nextRun(run.History)
	}
	c.found = append(c.found, chain...)
	for _, run := range chain {
		for _, event := range run.History.Events {
			child := event.GetChildWorkflowExecutionStartedEventAttributes().GetWorkflowExecution()
			if child == nil {
				continue
			}
			if err := c.collectChain(ctx, child.WorkflowId, child.RunId); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *collector) fetchHistory(ctx context.Context, workflowID, runID string) (RunHistory, error) {
	history := &historypb.History{}
	events := c.client.GetWorkflowHistory(ctx, workflowID, runID, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		if err != nil {
			return RunHistory{}, fmt.Errorf("read history of workflow %q, run %q: %w", workflowID, runID, err)
		}
		history.Events = append(history.Events, event)
	}
	run, err := identifyRun(history)
	if err != nil {
		return RunHistory{}, fmt.Errorf("read history of workflow %q, run %q: %w", workflowID, runID, err)
	}
	run.WorkflowID = workflowID
	if runID != "" { // after a reset the first event names the run it was copied from
		run.RunID = runID
	}
	return run, nil
}

// identifyRun reads the identity of a run from its first event.
func identifyRun(history *historypb.History) (RunHistory, error) {
	run := RunHistory{History: history}
	first := startedEvent(run)
	if first == nil {
		return run, fmt.Errorf("the first event is not WorkflowExecutionStarted")
	}
	run.WorkflowID = first.GetWorkflowId()
	run.RunID = first.GetOriginalExecutionRunId()
	run.Type = first.GetWorkflowType().GetName()
	return run, nil
}

func startedEvent(run RunHistory) *historypb.WorkflowExecutionStartedEventAttributes {
	if len(run.History.GetEvents()) == 0 {
		return nil
	}
	return run.History.Events[0].GetWorkflowExecutionStartedEventAttributes()
}

// nextRun returns the run ID of the next run in the chain; "" if this is the last. Each type of closing event has its
// own attribute for it.
func nextRun(history *historypb.History) string {
	if len(history.Events) == 0 {
		return ""
	}
	last := history.Events[len(history.Events)-1]
	for _, attributes := range []interface{ GetNewExecutionRunId() string }{
		last.GetWorkflowExecutionContinuedAsNewEventAttributes(),
		last.GetWorkflowExecutionCompletedEventAttributes(),
		last.GetWorkflowExecutionFailedEventAttributes(),
		last.GetWorkflowExecutionTimedOutEventAttributes(),
	} {
		if id := attributes.GetNewExecutionRunId(); id != "" { // nil attributes give ""
			return id
		}
	}
	return ""
}
