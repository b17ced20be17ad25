package activities

import (
	"cmp"
	"context"
	"log/slog"

	"go.temporal.io/sdk/activity"

	"reprise/interpreter"
)

// attemptLogger is the logger of an attempt: every record says which attempt of
// which run it is about, and holds none of the attempt's secrets. It is made where
// there is something to log, which is seldom.
func attemptLogger(ctx context.Context, worker *slog.Logger, in interpreter.ToolInput) *slog.Logger {
	fields := interpreter.LogFields(in.Step, in.Visit, in.Index, in.Place, in.Page, in.Attempt, in.OperationKey)
	if activity.IsActivity(ctx) {
		id := activity.GetInfo(ctx).WorkflowExecution.ID
		fields = append(fields, "run", cmp.Or(in.ControlID, id), "workflow", id)
	}
	return slog.New(secretsOf(ctx).Handler(worker.Handler())).With(fields...)
}
