package payload

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	commandpb "go.temporal.io/api/command/v1"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/proxy"
	"go.temporal.io/api/workflowservice/v1"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

const (
	// checkTime bounds one check of the values of a workflow task, which occupies one of the worker's pollers.
	checkTime = 3 * time.Second
	// checkWidth is how many values one check requests at a time.
	checkWidth = 16
	// checkEvery is the interval between checks of a held task.
	checkEvery = time.Second
	// checkFailures is how often in a row the server may fail to respond before a held task is abandoned.
	checkFailures = 5
)

// HoldTasks intercepts workflow tasks that can only fail, because values of their run cannot be read or none can be
// written. The SDK would report the first failure of a task and then stay silent, while the server waits longer each
// time, up to ten minutes, during which the run receives nothing, not even a cancel. A held task is returned to the
// server once the values are available. A cancelled run with a missing value is ended as cancelled: what its code
// would have done is unknown.
//
// details creates the message with which such a run ends; reason names key and store.
func (s *Store) HoldTasks(
	logger *slog.Logger, details func(workflowType, reason string) *commonpb.Payloads,
) grpc.UnaryClientInterceptor {
	return func(
		ctx context.Context, method string, request, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption,
	) error {
		if err := invoke(ctx, method, request, reply, cc, options...); err != nil {
			return err
		}
		task, isTask := reply.(*workflowservice.PollWorkflowTaskQueueResponse)
		poll, isPoll := request.(*workflowservice.PollWorkflowTaskQueueRequest)
		if !isTask || !isPoll || task.GetAttempt() < 2 || task.GetQuery() != nil {
			return nil
		}
		h := &heldTask{
			store: s, service: workflowservice.NewWorkflowServiceClient(cc), details: details,
			task: proto.CloneOf(task), namespace: poll.GetNamespace(), identity: poll.GetIdentity(),
		}
		// The check may outlive the poll, as does everything that the task triggers.
		background := context.WithoutCancel(ctx)
		reason := h.checkTask(background)
		if reason == nil {
			return nil
		}
		logger.Warn("a run waits for its large values", "WorkflowID", task.GetWorkflowExecution().GetWorkflowId(),
			"RunID", task.GetWorkflowExecution().GetRunId(), "error", reason)
		proto.Reset(task) // as a poll that found nothing
		go h.awaitValues(background)
		return nil
	}
}

// heldTask is a workflow task that would fail.
type heldTask struct {
	store     *Store
	service   workflowservice.WorkflowServiceClient
	details   func(workflowType, reason string) *commonpb.Payloads
	task      *workflowservice.PollWorkflowTaskQueueResponse
	namespace string
	identity  string
	values    []reference // all of the run's; nil before they were searched
}

// checkTask returns why the task would fail; nil if there is no reason, it is not the store's fault, or it was not
// found in time.
func (h *heldTask) checkTask(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	if err := h.store.CheckReady(ctx); err != nil {
		return err
	}
	if h.values == nil {
		values, err := h.readReferences(ctx)
		if err != nil {
			return nil // it has nothing to do with the store
		}
		h.values = values
	}
	group, looking := errgroup.WithContext(ctx)
	group.SetLimit(checkWidth)
	for _, ref := range h.values {
		group.Go(func() error {
			if err := h.store.checkValue(looking, ref); looking.Err() == nil {
				return err
			}
			return nil
		})
	}
	return group.Wait()
}

// readReferences returns the references of the whole history.
func (h *heldTask) readReferences(ctx context.Context) ([]reference, error) {
	found := []reference{}
	visit := func(_ *proxy.VisitPayloadsContext, payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
		for _, payload := range payloads {
			claim, err := claimOf(payload)
			if err != nil || claim == nil {
				continue // the SDK says what is wrong with it
			}
			if ref, err := parseClaim(claim); err == nil {
				found = append(found, ref)
			}
		}
		return payloads, nil
	}
	history, next := h.task.GetHistory(), h.task.GetNextPageToken()
	for {
		options := proxy.VisitPayloadsOptions{Visitor: visit, SkipSearchAttributes: true}
		if err := proxy.VisitPayloads(ctx, history, options); err != nil {
			return nil, fmt.Errorf("find the stored values of a history: %w", err)
		}
		if len(next) == 0 {
			return found, nil
		}
		page, err := h.service.GetWorkflowExecutionHistory(ctx, &workflowservice.GetWorkflowExecutionHistoryRequest{
			Namespace: h.namespace, Execution: h.task.GetWorkflowExecution(), NextPageToken: next,
		})
		if err != nil {
			return nil, fmt.Errorf("read a history for its stored values: %w", err)
		}
		history, next = page.GetHistory(), page.GetNextPageToken()
	}
}

// awaitValues waits until the values are available, the run is to be ended, or the server no longer waits for this
// task.
func (h *heldTask) awaitValues(ctx context.Context) {
	for failures := 0; failures < checkFailures; {
		time.Sleep(checkEvery)
		cancelled, waits, err := h.pendingState(ctx)
		if err != nil {
			failures++
			continue
		}
		failures = 0
		if !waits {
			return
		}
		reason := h.checkTask(ctx)
		switch {
		case reason == nil:
			h.releaseTask(ctx)
			return
		case cancelled && errors.Is(reason, ErrMissing):
			h.cancelRun(ctx, reason)
			return
		}
	}
}

// pendingState reports whether the run was cancelled, and whether the server still waits for this task.
func (h *heldTask) pendingState(ctx context.Context) (cancelled, waits bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	run, err := h.service.DescribeWorkflowExecution(ctx, &workflowservice.DescribeWorkflowExecutionRequest{
		Namespace: h.namespace, Execution: h.task.GetWorkflowExecution(),
	})
	if err != nil {
		return false, false, err
	}
	pending := run.GetPendingWorkflowTask()
	waits = pending.GetState() == enumspb.PENDING_WORKFLOW_TASK_STATE_STARTED && pending.GetAttempt() == h.task.GetAttempt()
	return run.GetWorkflowExtendedInfo().GetCancelRequested(), waits, nil
}

// releaseTask makes the server dispatch the task again.
func (h *heldTask) releaseTask(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	// If the request is lost, the task's timeout has the same effect later.
	_, _ = h.service.RespondWorkflowTaskFailed(ctx, &workflowservice.RespondWorkflowTaskFailedRequest{
		TaskToken: h.task.GetTaskToken(), Namespace: h.namespace, Identity: h.identity,
		Cause: enumspb.WORKFLOW_TASK_FAILED_CAUSE_WORKFLOW_WORKER_UNHANDLED_FAILURE,
	})
}

// cancelRun ends the run as cancelled. If something happened that the task does not include, the server refuses and
// dispatches another task.
func (h *heldTask) cancelRun(ctx context.Context, reason error) {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	message := "the run was cancelled and could not end cleanly: " + reason.Error()
	_, _ = h.service.RespondWorkflowTaskCompleted(ctx, &workflowservice.RespondWorkflowTaskCompletedRequest{
		TaskToken: h.task.GetTaskToken(), Namespace: h.namespace, Identity: h.identity,
		Commands: []*commandpb.Command{{
			CommandType: enumspb.COMMAND_TYPE_CANCEL_WORKFLOW_EXECUTION,
			Attributes: &commandpb.Command_CancelWorkflowExecutionCommandAttributes{
				CancelWorkflowExecutionCommandAttributes: &commandpb.CancelWorkflowExecutionCommandAttributes{
					Details: h.details(h.task.GetWorkflowType().GetName(), message),
				},
			},
		}},
	})
}
