// Package start starts runs of playbooks: at once, or as the action of a schedule.
package start

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"reprise/internal/base/connect"
	"reprise/internal/base/sleep"
	"reprise/internal/program/host"
	"reprise/workflows/protocol"
)

// Destination is where runs are started.
type Destination struct {
	Client    client.Client
	TaskQueue string
	// Key vouches for the code of playbooks on a local server; "" for other servers.
	Key string
}

// ErrInterrupted means that a start was interrupted before the run began.
var ErrInterrupted = errors.New("interrupted before the run began")

// StartedError is the error if a run with the ID exists already.
type StartedError struct{ WorkflowID, RunID string }

func (e *StartedError) Error() string {
	return fmt.Sprintf("a run with the ID %q is open; choose another --workflow-id, or leave it out", e.WorkflowID)
}

// UnsureError is the error if the response to a start was lost: the run may have begun.
type UnsureError struct {
	WorkflowID string
	Err        error
}

func (e *UnsureError) Error() string {
	return fmt.Sprintf("start the run: %v; whether %s has begun is unknown", e.Err, e.WorkflowID)
}

// Unwrap returns the reason.
func (e *UnsureError) Unwrap() error { return e.Err }

// StartRun starts a run, with the search attributes that its namespace has. The error is a *StartedError, an *UnsureError
// or ErrInterrupted if one of them is the reason.
func StartRun(ctx context.Context, to Destination, plan Plan, known connect.Attributes) (run client.WorkflowRun, err error) {
	err = WithAttributes(ctx, plan, known, func(plan Plan) error {
		options := client.StartWorkflowOptions{
			ID: plan.WorkflowID, TaskQueue: to.TaskQueue, WorkflowExecutionErrorWhenAlreadyStarted: true,
			StaticSummary: plan.Summary, StaticDetails: plan.Details, Priority: plan.Priority(),
			TypedSearchAttributes: plan.searchAttributes(), Memo: plan.Memo,
		}
		if to.Key != "" && len(plan.Codes) > 0 {
			options.Memo = host.VouchMemo(to.Key, plan.WorkflowID, plan.Codes)
			maps.Copy(options.Memo, plan.Memo)
		}
		if plan.Build != nil {
			options.VersioningOverride = &client.PinnedVersioningOverride{
				Version: worker.WorkerDeploymentVersion{DeploymentName: plan.Build.Deployment, BuildID: plan.Build.ID},
			}
		}
		options.Memo = plan.initialMemo(options.Memo)
		if plan.Once || plan.Input.Reprocess != nil { // the ID of a reprocess stands for what it does, so it is done once
			options.WorkflowIDReusePolicy = enums.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE
		}
		run, err = to.Client.ExecuteWorkflow(ctx, options, protocol.PlaybookWorkflowName, plan.Input)
		return startError(plan, err)
	})
	return run, err
}

func startError(plan Plan, err error) error {
	runID, started := connect.AlreadyStarted(err)
	switch {
	case err == nil:
		return nil
	case started:
		return &StartedError{WorkflowID: plan.WorkflowID, RunID: runID}
	case connect.IsUnreachable(err):
		return &UnsureError{WorkflowID: plan.WorkflowID, Err: err}
	}
	return fmt.Errorf("start the run: %w", err)
}

// ScheduleAction returns the action of a schedule that starts a planned run; input is already encoded. memo is the
// memo of the schedule's current action if it vouches for the same code, else nil.
func (t Destination) ScheduleAction(plan Plan, input *commonpb.Payload, memo map[string]any) *client.ScheduleWorkflowAction {
	if memo == nil && t.Key != "" && len(plan.Codes) > 0 {
		memo = host.VouchSchedule(t.Key, plan.WorkflowID, plan.Codes)
	}
	return &client.ScheduleWorkflowAction{
		ID: plan.WorkflowID, TaskQueue: t.TaskQueue, Workflow: protocol.PlaybookWorkflowName, Args: []any{input},
		StaticSummary: plan.Summary, StaticDetails: plan.Details, Priority: plan.Priority(),
		TypedSearchAttributes: plan.searchAttributes(), Memo: plan.initialMemo(memo),
	}
}

const (
	// attributeDelay is how long after adding search attributes a server may take until runs can use them, and
	// attributeRetry the interval of retries.
	attributeDelay = 5 * time.Second
	attributeRetry = 200 * time.Millisecond
)

// WithAttributes calls submit with a plan that has the search attributes of the namespace. If the server cannot use
// them yet, the plan is submitted again, and finally without them.
func WithAttributes(ctx context.Context, plan Plan, known connect.Attributes, submit func(Plan) error) error {
	plan.useAttributes(known)
	deadline := time.Now().Add(attributeDelay)
	for {
		err := submit(plan)
		if err == nil || !plan.Input.SearchAttributes || !connect.IsInvalidArgument(err) || !namesAttributes(err) {
			return err
		}
		if time.Now().After(deadline) {
			plan.useAttributes(connect.Attributes{})
			continue
		}
		if sleep.For(ctx, attributeRetry) != nil {
			return ErrInterrupted
		}
	}
}

// namesAttributes reports whether an error is about search attributes.
func namesAttributes(err error) bool {
	names := append(slices.Collect(maps.Keys(protocol.SearchAttributes())), "search attribute")
	return slices.ContainsFunc(names, func(name string) bool { return strings.Contains(err.Error(), name) })
}
