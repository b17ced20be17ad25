package tool

import (
	"cmp"
	"context"
	"log/slog"

	"go.temporal.io/sdk/activity"

	"reprise/interpreter"
	"reprise/interpreter/call"
)

// Logger is the logger of an attempt: every record says which attempt of
// which run it is about, and holds none of the attempt's secrets. It is made where
// there is something to log, which is seldom.
func Logger(ctx context.Context, worker *slog.Logger, in interpreter.ToolInput) *slog.Logger {
	fields := call.LogFields(in.Step, in.Visit, in.Index, in.Place, in.Page, in.Attempt, in.OperationKey)
	if activity.IsActivity(ctx) {
		id := activity.GetInfo(ctx).WorkflowExecution.ID
		fields = append(fields, "run", cmp.Or(in.ControlID, id), "workflow", id)
	}
	return slog.New(SecretsOf(ctx).Handler(worker.Handler())).With(fields...)
}
