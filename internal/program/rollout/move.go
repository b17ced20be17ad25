package rollout

import (
	"cmp"
	"context"
	"fmt"
	"sync"

	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"golang.org/x/sync/errgroup"

	"reprise/internal/base/connect"
	"reprise/internal/base/payload"
	"reprise/internal/observe/runs"
	"reprise/internal/program/replay"
	"reprise/interpreter/lists"
)

const (
	// callsAtOnce is how many workflows of a run are read or moved at a time: a loop may have hundreds that are open.
	callsAtOnce = 10
	// mostRounds bounds how often a run is searched for workflows that are not on the build yet. Those that start after the first
	// workflow of the run has moved are on it already, so a second round finds what started meanwhile and a third nothing.
	mostRounds = 5
)

// Mover moves open runs to a build of a deployment.
type Mover struct {
	Client     client.Client
	Store      *payload.Store // of large values, nil for none
	Deployment string
	To         string // the build, which this program must be, since it replays what it moves
}

// MoveReport is what came of moving a run.
type MoveReport struct {
	Run  string      `json:"run"`
	From *runs.Build `json:"from,omitempty"` // of the run itself, nil for none
	// Moved counts the workflows that were moved, the run itself included.
	Moved int `json:"moved"`
	// Mismatches are the histories that the build does not fit, and Unread those that could not be read: then nothing was moved,
	// except where Moved is not 0.
	Mismatches []replay.Mismatch      `json:"mismatches"`
	Unread     []replay.UnreadHistory `json:"unread"`
	// Ended says that the run has ended, so that nothing is left to move.
	Ended bool `json:"ended,omitempty"`
}

// Fits reports whether the build fits all histories of the run.
func (m MoveReport) Fits() bool { return len(m.Mismatches) == 0 && len(m.Unread) == 0 }

// member is an open workflow of a run.
type member struct {
	execution replay.Execution
	build     *runs.Build
}

// MoveRun replays the histories of a run's open workflows, and moves all of them if they fit: the run first, so that what it starts from
// then on is on the build too. The error is one of the server.
func (m *Mover) MoveRun(ctx context.Context, workflowID string) (MoveReport, error) {
	move := MoveReport{Run: workflowID, Mismatches: []replay.Mismatch{}, Unread: []replay.UnreadHistory{}}
	for round := range mostRounds {
		members, err := m.openMembers(ctx, workflowID)
		if err != nil {
			return move, err
		}
		if round == 0 {
			if move.Ended = len(members) == 0; move.Ended {
				return move, nil
			}
			move.From = members[0].build
		}
		left := lists.Filter(members, func(one member) bool { return !m.isThere(one.build) })
		if len(left) == 0 {
			return move, nil
		}
		replayer := &replay.Replayer{Client: m.Client, Store: m.Store}
		report, err := replayer.ReplayAll(ctx, lists.Map(left, func(one member) replay.Execution { return one.execution }))
		if err != nil {
			return move, err
		}
		if len(report.Mismatches) > 0 || len(report.Unread) > 0 {
			move.Mismatches, move.Unread = report.Mismatches, report.Unread
			return move, nil
		}
		moved, err := m.pinMembers(ctx, left)
		if move.Moved += moved; err != nil {
			return move, err
		}
	}
	return move, fmt.Errorf("move %s: workflows of it still start on another build; repeat the command", workflowID)
}

// isThere reports whether a workflow is pinned to the build already.
func (m *Mover) isThere(build *runs.Build) bool {
	return build != nil && *build == runs.Build{Deployment: m.Deployment, ID: m.To, Pinned: true}
}

// pinMembers pins workflows to the build, the first of them before the others. Those that have ended meanwhile are left out.
func (m *Mover) pinMembers(ctx context.Context, members []member) (moved int, err error) {
	var mu sync.Mutex
	one := func(of member) error {
		_, err := m.Client.UpdateWorkflowExecutionOptions(ctx, client.UpdateWorkflowExecutionOptionsRequest{
			WorkflowId: of.execution.WorkflowID, RunId: of.execution.RunID,
			WorkflowExecutionOptionsChanges: client.WorkflowExecutionOptionsChanges{VersioningOverride: &client.VersioningOverrideChange{
				Value: &client.PinnedVersioningOverride{Version: worker.WorkerDeploymentVersion{DeploymentName: m.Deployment, BuildID: m.To}},
			}},
		})
		if connect.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("move %s: %w", of.execution.WorkflowID, wrapRefusal(err))
		}
		mu.Lock()
		defer mu.Unlock()
		moved++
		return nil
	}
	if err := one(members[0]); err != nil {
		return moved, err
	}
	var group errgroup.Group
	group.SetLimit(callsAtOnce)
	for _, of := range members[1:] {
		group.Go(func() error { return one(of) })
	}
	err = group.Wait()
	return moved, err
}

// openMembers finds the open workflows of a run, itself first, then its children, then theirs. It describes each, since lists of the
// server are late.
func (m *Mover) openMembers(ctx context.Context, workflowID string) ([]member, error) {
	var all []member
	floor := []*workflowpb.PendingChildExecutionInfo{{WorkflowId: workflowID}}
	for len(floor) > 0 {
		members := make([]*member, len(floor))
		below := make([][]*workflowpb.PendingChildExecutionInfo, len(floor))
		group, calls := errgroup.WithContext(ctx)
		group.SetLimit(callsAtOnce)
		for i, one := range floor {
			group.Go(func() (err error) {
				members[i], below[i], err = m.describeOpen(calls, one)
				return err
			})
		}
		if err := group.Wait(); err != nil {
			return nil, err
		}
		floor = nil
		for i, one := range members {
			if one != nil {
				all, floor = append(all, *one), append(floor, below[i]...)
			}
		}
	}
	return all, nil
}

// describeOpen reads a workflow and names its children; it is nil where the workflow is not open.
func (m *Mover) describeOpen(
	ctx context.Context, of *workflowpb.PendingChildExecutionInfo,
) (*member, []*workflowpb.PendingChildExecutionInfo, error) {
	described, err := m.Client.DescribeWorkflowExecution(ctx, of.GetWorkflowId(), "")
	if connect.IsNotFound(err) { // it has not begun: then it begins on the build of its parent
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("describe %s: %w", of.GetWorkflowId(), err)
	}
	info := described.GetWorkflowExecutionInfo()
	if info.GetCloseTime() != nil {
		return nil, nil, nil
	}
	id := info.GetExecution()
	return &member{
		execution: replay.Execution{WorkflowID: id.GetWorkflowId(), RunID: id.GetRunId(), Type: cmp.Or(info.GetType().GetName(), of.GetWorkflowTypeName())},
		build:     runs.BuildOf(info),
	}, described.GetPendingChildren(), nil
}

// PinnedRuns finds the runs that have workflows which are pinned to a build, by their workflow IDs.
func (d *Deployment) PinnedRuns(ctx context.Context, id string) ([]string, error) {
	return d.Reader.PinnedTo(ctx, runs.Build{Deployment: d.Name, ID: id, Pinned: true})
}
