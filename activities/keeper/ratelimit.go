package keeper

import (
	"context"
	"fmt"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"

	"reprise/activities/tool"
	"reprise/internal/base/connect"
	"reprise/interpreter/ratelimit"
)

// LeaseSlots requests turns from the workflow of a rate limit, and starts it if need be.
func LeaseSlots(ctx context.Context, id string, request ratelimit.LeaseRequest) (lease ratelimit.Lease, err error) {
	err = connect.UpdateWithStart(ctx, activity.GetClient(ctx), client.UpdateWorkflowOptions{
		WorkflowID: id, UpdateName: ratelimit.LeaseUpdate, Args: []any{request},
	}, &lease, client.StartWorkflowOptions{
		TaskQueue: activity.GetInfo(ctx).TaskQueue, StaticSummary: limitSummary(request.Limit),
	}, ratelimit.WorkflowName, ratelimit.Limiter{})
	if err != nil {
		return ratelimit.Lease{}, fmt.Errorf("lease slots of a rate limit: %w", err)
	}
	return lease, nil
}

// limitSummary is shown in Temporal's UI next to the limiter's workflow.
func limitSummary(limit ratelimit.Limit) string {
	summary := fmt.Sprintf("%d requests per %gs to %s", limit.Requests, limit.PerSeconds, limit.Key)
	if limit.Playbook != "" {
		summary += ", playbook " + limit.Playbook
	}
	return tool.CutText(summary, mostSummary)
}
