package run

import (
	"strings"
	"time"

	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/lists"
	"reprise/workflows/gate"
	"reprise/workflows/protocol"
)

// What the worker logs of runs at level info: once each, not during replays.

func (f *frame) logBegin(ctx workflow.Context) {
	gate.Logger(ctx).Info("run started", "playbook", f.Run.Playbook)
}

// logStep logs the end of a visit of a step, with what it read and what it did to each table.
func (f *frame) logStep(ctx workflow.Context, record *protocol.StepRecord) {
	fields := []any{
		"playbook", f.Run.Playbook, "step", record.Step, "visit", record.Visit, "status", record.Status,
		"seconds", record.EndedAt.Sub(record.StartedAt).Seconds(), "attempts", record.Attempts, "pages", record.Pages,
	}
	gate.Logger(ctx).Info("step ended", append(fields, outcomeFields(record.Rows, record.Error)...)...)
}

// logRun logs the end of a run.
func (f *frame) logRun(ctx workflow.Context, result *protocol.Result, took time.Duration) {
	fields := []any{"playbook", f.Run.Playbook, "status", result.Status, "seconds", took.Seconds()}
	gate.Logger(ctx).Info("run ended", append(fields, outcomeFields(result.Rows, result.Error)...)...)
}

// outcomeFields returns log fields for rows and an error; missing ones are omitted.
func outcomeFields(rows *interpreter.Rows, failure *interpreter.ErrorObject) (fields []any) {
	if rows != nil {
		tables := lists.Map(rows.Tables, func(table interpreter.TableRows) string {
			return strings.TrimPrefix(table.Connection+"/"+table.Table, "/")
		})
		fields = append(fields, "rows_read", rows.Read, "rows_written", rows.Written, "rows_deleted", rows.Deleted, "rows_rejected", rows.Rejected,
			"tables", strings.Join(tables, ", "))
	}
	if failure != nil {
		fields = append(fields, "error", failure.Message)
	}
	return fields
}
