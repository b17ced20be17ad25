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

// Lease requests slots of the workflow of a rate limit, which begins where there is none.
func Lease(ctx context.Context, id string, request ratelimit.LeaseRequest) (lease ratelimit.Lease, err error) {
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

// limitSummary is what Temporal's UI shows beside the limiter.
func limitSummary(limit ratelimit.Limit) string {
	summary := fmt.Sprintf("%d requests per %gs to %s", limit.Requests, limit.PerSeconds, limit.Key)
	if limit.Playbook != "" {
		summary += ", playbook " + limit.Playbook
	}
	return tool.CutText(summary, mostSummary)
}
