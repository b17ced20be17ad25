package runs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"reprise/internal/base/connect"
	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
	"reprise/workflows/protocol"
)

// Schedule is a schedule that runs a playbook.
type Schedule struct {
	ID       string
	Playbook string // its name
	// Described is the server's description, and Action is what starts the runs.
	Described *client.ScheduleDescription
	Action    *client.ScheduleWorkflowAction
}

// StartedRun is a run that a schedule started.
type StartedRun struct {
	At  time.Time // when it did
	Run Found     // as it is now; without a status where the server has forgotten it
}

// NoScheduleError is the error if no schedule of a playbook has the given ID, or one that begins with it.
type NoScheduleError struct {
	ID      string
	Nearest string // an ID that is like it, "" for none
	// Type is the workflow type that the schedule with that ID starts; "" if there is none.
	Type string
}

func (e *NoScheduleError) Error() string {
	if e.Type != "" {
		return fmt.Sprintf("the schedule %q starts %s, and no playbook", e.ID, e.Type)
	}
	text := fmt.Sprintf("no schedule has the name %q or one that begins with it", e.ID)
	if e.Nearest != "" {
		text += fmt.Sprintf("; did you mean %q?", e.Nearest)
	}
	return text
}

const (
	// schedulePage is how many schedules one call lists.
	schedulePage = 500
	// mostSchedules bounds how many schedules are read: the server lists all of a namespace, whatever they start.
	mostSchedules = 10_000
	// scheduleWidth is how many schedules are described at a time.
	scheduleWidth = 8
)

// Schedules reads the schedules of playbooks, and the runs that they started.
type Schedules struct{ runs *Reader }

// Schedules returns the reader of schedules.
func (r *Reader) Schedules() Schedules { return Schedules{r} }

// Find finds a schedule by its ID, or by a unique beginning of it. The error is a *NoScheduleError or *AmbiguousError
// if the ID is the reason.
func (s Schedules) Find(ctx context.Context, id string) (*Schedule, error) {
	found, err := s.readSchedule(ctx, id)
	var missing *NoScheduleError
	if !errors.As(err, &missing) || missing.Type != "" {
		return found, err
	}
	all, err := s.listIDs(ctx)
	if err != nil {
		return nil, err
	}
	begin := lists.Filter(all, func(one string) bool { return strings.HasPrefix(one, id) })
	switch {
	case len(begin) == 0:
		return nil, &NoScheduleError{ID: id, Nearest: expression.Suggest(id, all)}
	case len(begin) > 1:
		return nil, &AmbiguousError{ID: id, IDs: begin[:min(len(begin), shownBeginnings)], More: len(begin) > shownBeginnings}
	}
	return s.readSchedule(ctx, begin[0])
}

// SchedulePage is a part of the schedules of playbooks, sorted by their IDs.
type SchedulePage struct {
	Schedules []*Schedule
	// Total counts all schedules, and Left those after the page.
	Total, Left int
	// Last is the ID after which the next page begins.
	Last string
}

// List returns at most limit schedules of playbooks whose IDs follow after; "" starts at the first one, and a limit
// of 0 returns all.
func (s Schedules) List(ctx context.Context, after string, limit int) (SchedulePage, error) {
	ids, err := s.listIDs(ctx)
	if err != nil {
		return SchedulePage{}, err
	}
	page := SchedulePage{Total: len(ids)}
	at, found := slices.BinarySearch(ids, after)
	if found {
		at++
	}
	if ids = ids[at:]; limit > 0 {
		page.Left = max(len(ids)-limit, 0)
		ids = ids[:min(limit, len(ids))]
	}
	if len(ids) > 0 {
		page.Last = ids[len(ids)-1]
	}
	page.Schedules, err = s.describeAll(ctx, ids)
	return page, err
}

// describeAll reads schedules, leaving out those that were deleted meanwhile.
func (s Schedules) describeAll(ctx context.Context, ids []string) ([]*Schedule, error) {
	list := make([]*Schedule, len(ids))
	group, asking := errgroup.WithContext(ctx)
	group.SetLimit(scheduleWidth)
	for i, id := range ids {
		group.Go(func() error {
			found, err := s.readSchedule(asking, id)
			if _, ok := errors.AsType[*NoScheduleError](err); ok { // deleted meanwhile
				return nil
			}
			list[i] = found
			return err
		})
	}
	err := group.Wait()
	return slices.DeleteFunc(list, func(one *Schedule) bool { return one == nil }), err
}

// listIDs returns the sorted IDs of all schedules of playbooks. The server's list lags by about a second.
func (s Schedules) listIDs(ctx context.Context) ([]string, error) {
	entries, err := s.runs.Client.ScheduleClient().List(ctx, client.ScheduleListOptions{PageSize: schedulePage})
	if err != nil {
		return nil, fmt.Errorf("list schedules: %w", err)
	}
	var ids []string
	for entries.HasNext() && len(ids) < mostSchedules {
		entry, err := entries.Next()
		if err != nil {
			return nil, fmt.Errorf("list schedules: %w", err)
		}
		if entry.WorkflowType.Name == protocol.PlaybookWorkflowName {
			ids = append(ids, entry.ID)
		}
	}
	slices.Sort(ids)
	return ids, nil
}

// readSchedule reads one schedule.
func (s Schedules) readSchedule(ctx context.Context, id string) (*Schedule, error) {
	described, err := s.runs.Client.ScheduleClient().GetHandle(ctx, id).Describe(ctx)
	if connect.IsNotFound(err) {
		return nil, &NoScheduleError{ID: id}
	}
	if err != nil {
		return nil, fmt.Errorf("look for the schedule %s: %w", id, err)
	}
	action, ok := described.Schedule.Action.(*client.ScheduleWorkflowAction)
	if !ok || action.Workflow != protocol.PlaybookWorkflowName {
		return nil, &NoScheduleError{ID: id, Type: fmt.Sprint(action.Workflow)}
	}
	return &Schedule{ID: id, Playbook: action.StaticSummary, Described: described, Action: action}, nil
}

// Input returns the input with which a schedule starts its runs.
func (s Schedules) Input(ctx context.Context, of *Schedule) (protocol.Input, error) {
	var input protocol.Input
	payloads := &commonpb.Payloads{}
	for _, arg := range of.Action.Args {
		if payload, ok := arg.(*commonpb.Payload); ok {
			payloads.Payloads = append(payloads.Payloads, proto.CloneOf(payload))
		}
	}
	return input, s.runs.newValues(ctx).decodeInput("the schedule "+of.ID, payloads, &input)
}

// CountTimes counts the times of a schedule in an interval, up to most; more says that there are others.
func (s Schedules) CountTimes(ctx context.Context, of *Schedule, from, to time.Time, most int) (count int, more bool, err error) {
	for !from.After(to) {
		answer, err := s.runs.Client.WorkflowService().ListScheduleMatchingTimes(ctx, &workflowservice.ListScheduleMatchingTimesRequest{
			Namespace: s.runs.Namespace, ScheduleId: of.ID, StartTime: timestamppb.New(from.Add(-time.Nanosecond)), EndTime: timestamppb.New(to),
		})
		if err != nil {
			return 0, false, fmt.Errorf("count the times of the schedule %s: %w", of.ID, err)
		}
		times := answer.GetStartTime() // a page of them
		if len(times) == 0 {
			break
		}
		if count += len(times); count > most {
			return most, true, nil
		}
		from = times[len(times)-1].AsTime().Add(time.Second) // schedules know no less
	}
	return count, false, nil
}

// Started returns the last runs of a schedule in their current state, latest first, at most `most`. The server
// remembers ten.
func (s Schedules) Started(ctx context.Context, of *Schedule, most int) ([]StartedRun, error) {
	recent := slices.Clone(of.Described.Info.RecentActions)
	slices.Reverse(recent)
	recent = recent[:min(len(recent), most)]
	list := make([]StartedRun, len(recent))
	for i, one := range recent {
		list[i].At = one.ActualTime
		if one.StartWorkflowResult == nil {
			continue
		}
		id, runID := one.StartWorkflowResult.WorkflowID, one.StartWorkflowResult.FirstExecutionRunID
		run, err := s.lastRun(ctx, id, runID)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return nil, err
		}
		run.WorkflowID, run.RunID = id, runID
		list[i].Run = run
	}
	return list, nil
}

// lastRun reads the run that began with a run ID, in its latest workflow run.
func (s Schedules) lastRun(ctx context.Context, id, runID string) (Found, error) {
	if last, err := s.runs.describeRun(ctx, id, ""); err != nil || last.RunID == runID {
		return last, err
	}
	return s.runs.describeRun(ctx, id, runID) // the ID has been used again
}
