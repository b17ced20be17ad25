package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	workflowpb "go.temporal.io/api/workflow/v1"

	"reprise/interpreter/lists"
)

const (
	// outlying is how much longer than the median of its case a pass has to take for its histories to be examined: a
	// task that no worker receives waits for seconds.
	outlying = 3 * time.Second
	// shortest is the shortest gap that is shown.
	shortest = time.Second
	// mostGaps bounds how many gaps of a pass are shown.
	mostGaps = 8
)

// gap is the time between two consecutive events of a workflow.
type gap struct {
	workflow, before, after string
	at                      time.Time // of the first
	took                    time.Duration
}

func (g gap) String() string {
	return fmt.Sprintf("%.1f s from %s at %s to %s of %s",
		g.took.Seconds(), g.before, g.at.UTC().Format("15:04:05.000"), g.after, g.workflow)
}

// outlyingPasses returns the passes of a case that took far longer than the median.
func outlyingPasses(passes []figures) []figures {
	all := lists.Map(passes, func(f figures) float64 { return f.took.Seconds() })
	slices.Sort(all)
	limit := time.Duration(medianOf(all)*float64(time.Second)) + outlying
	return slices.DeleteFunc(slices.Clone(passes), func(f figures) bool { return f.took <= limit })
}

// gapsIn returns the gaps of at least a second between a workflow's events.
func gapsIn(workflow string, events []*historypb.HistoryEvent) []gap {
	var all []gap
	for i, event := range events[min(1, len(events)):] {
		before := events[i]
		if took := event.GetEventTime().AsTime().Sub(before.GetEventTime().AsTime()); took >= shortest {
			all = append(all, gap{workflow, eventText(before), eventText(event), before.GetEventTime().AsTime(), took})
		}
	}
	return all
}

// longestGaps returns the gaps to show, longest first; of equal ones the latest first, because the others waited for that
// one.
func longestGaps(all []gap) []gap {
	slices.SortStableFunc(all, func(a, b gap) int {
		return cmp.Or(cmp.Compare(b.took.Round(100*time.Millisecond), a.took.Round(100*time.Millisecond)), b.at.Compare(a.at))
	})
	return all[:min(len(all), mostGaps)]
}

// eventText returns the type of an event; for a scheduled workflow task with its task queue.
func eventText(event *historypb.HistoryEvent) string {
	name := event.GetEventType().String()
	scheduled := event.GetWorkflowTaskScheduledEventAttributes()
	if scheduled == nil {
		if timedOut := event.GetWorkflowTaskTimedOutEventAttributes(); timedOut != nil {
			name += fmt.Sprintf(" (%s)", timedOut.GetTimeoutType())
		}
		return name
	}
	queue := "normal"
	if scheduled.GetTaskQueue().GetKind() == enumspb.TASK_QUEUE_KIND_STICKY {
		queue = "sticky"
	}
	return fmt.Sprintf("%s (%s queue, attempt %d)", name, queue, scheduled.GetAttempt())
}

// explainOutliers prints the passes of a group that took far longer than the median, with the gaps in their workflows'
// histories.
func (b *bench) explainOutliers(ctx context.Context, passes [][]figures, stdout io.Writer) error {
	for at := range passes[0] {
		for _, f := range outlyingPasses(lists.Map(passes, func(pass []figures) figures { return pass[at] })) {
			if _, err := fmt.Fprintf(stdout, "%s, %s: a pass took %.1f s, from %s on\n",
				f.group, f.name, f.took.Seconds(), f.began.UTC().Format("2006-01-02 15:04:05.000")); err != nil {
				return err
			}
			found, err := b.gapsOf(ctx, f)
			if err != nil {
				return err
			}
			lines := lists.Map(longestGaps(found), func(g gap) string { return "  " + g.String() + "\n" })
			if more := len(found) - len(lines); more > 0 {
				lines = append(lines, fmt.Sprintf("  and %d more of at least %s\n", more, shortest))
			}
			if _, err := fmt.Fprintln(stdout, strings.Join(lines, "")); err != nil {
				return err
			}
		}
	}
	return nil
}

// gapsOf returns the gaps in all workflows of a pass.
func (b *bench) gapsOf(ctx context.Context, f figures) ([]gap, error) {
	if f.root == "" {
		return nil, nil // a program without workflows
	}
	all, err := b.listExecutions(ctx, f.root)
	if err != nil {
		return nil, err
	}
	var found []gap
	for _, execution := range all {
		events, err := b.readEvents(ctx, execution)
		if err != nil {
			return nil, err
		}
		found = append(found, gapsIn(execution.GetExecution().GetWorkflowId(), events)...)
	}
	return found, nil
}

// readEvents returns all events of a history.
func (b *bench) readEvents(ctx context.Context, execution *workflowpb.WorkflowExecutionInfo) ([]*historypb.HistoryEvent, error) {
	id, runID := execution.GetExecution().GetWorkflowId(), execution.GetExecution().GetRunId()
	pages := b.client.GetWorkflowHistory(ctx, id, runID, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	var events []*historypb.HistoryEvent
	for pages.HasNext() {
		event, err := pages.Next()
		if err != nil {
			return nil, fmt.Errorf("read the history of %s: %w", id, err)
		}
		events = append(events, event)
	}
	return events, nil
}
