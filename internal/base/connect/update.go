package connect

import (
	"context"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"reprise/internal/base/sleep"
)

// droppedWait is the pause before a dropped update is sent again.
const droppedWait = 20 * time.Millisecond

// SendUpdate sends an update and waits for its result until ctx ends. The server drops an update if the workflow ends
// while handling it and something else, such as a signal, arrives meanwhile. A dropped update had no effect and is
// sent again.
func SendUpdate(ctx context.Context, c client.Client, options client.UpdateWorkflowOptions, result any) error {
	options.WaitForStage = client.WorkflowUpdateStageCompleted
	return resendUpdate(ctx, result, func() (client.WorkflowUpdateHandle, error) { return c.UpdateWorkflow(ctx, options) })
}

// UpdateWithStart is SendUpdate for a workflow that is started if it is not running.
func UpdateWithStart(
	ctx context.Context, c client.Client, options client.UpdateWorkflowOptions, result any,
	start client.StartWorkflowOptions, workflow string, input any,
) error {
	options.WaitForStage = client.WorkflowUpdateStageCompleted
	start.ID, start.WorkflowIDConflictPolicy = options.WorkflowID, enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING
	return resendUpdate(ctx, result, func() (client.WorkflowUpdateHandle, error) {
		return c.UpdateWithStartWorkflow(ctx, client.UpdateWithStartWorkflowOptions{
			StartWorkflowOperation: c.NewWithStartWorkflowOperation(start, workflow, input), UpdateOptions: options,
		})
	})
}

// resendUpdate sends an update until it is not dropped, and reads its result.
func resendUpdate(ctx context.Context, result any, send func() (client.WorkflowUpdateHandle, error)) error {
	for {
		handle, err := send()
		if err == nil {
			err = handle.Get(ctx, result)
		}
		if !isDroppedUpdate(err) || sleep.For(ctx, droppedWait) != nil {
			return err
		}
	}
}
