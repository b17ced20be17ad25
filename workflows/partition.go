package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
)

// partition is what the validation works the partition of a run out of. Its answer is in history
// and goes with the run from then on: the rules of zones may be others when the run is replayed.
func (in Input) partition(ctx workflow.Context) *interpreter.PartitionRequest {
	request := interpreter.PartitionRequest{Key: in.Partition}
	var scheduled time.Time
	request.At, scheduled = workflow.GetInfo(ctx).WorkflowStartTime, scheduledAt(ctx)
	switch {
	case in.Reprocess != nil:
		request.At, scheduled = in.Reprocess.Origin.StartedAt, in.Reprocess.Origin.ScheduledAt
	case in.Called != nil:
		scheduled = in.Called.ScheduledAt
	}
	if !scheduled.IsZero() && in.Partition == "" {
		request.At = scheduled
	}
	return &request
}
