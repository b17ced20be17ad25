package connect

import (
	"context"
	"time"

	"go.temporal.io/sdk/client"

	"reprise/internal/base/sleep"
)

// droppedWait is how long an update waits that the server has dropped.
const droppedWait = 20 * time.Millisecond

// Update sends an update and waits for its result, until the context ends. The server drops an update if the workflow
// ends with it and something else arrives meanwhile, such as a signal: the update had no effect, and is sent again.
func Update(ctx context.Context, c client.Client, options client.UpdateWorkflowOptions, result any) error {
	options.WaitForStage = client.WorkflowUpdateStageCompleted
	for {
		handle, err := c.UpdateWorkflow(ctx, options)
		if err == nil {
			err = handle.Get(ctx, result)
		}
		if !updateDropped(err) || sleep.For(ctx, droppedWait) != nil {
			return err
		}
	}
}
