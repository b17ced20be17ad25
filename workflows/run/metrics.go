package run

import (
	"slices"
	"strings"

	"go.temporal.io/sdk/workflow"

	"reprise/internal/base/meter"
	"reprise/interpreter"
	"reprise/interpreter/incremental"
	"reprise/workflows/gate"
	"reprise/workflows/protocol"
)

// countCancelled counts the iterations of a loop that were cancelled or never began.
func (f *frame) countCancelled(ctx workflow.Context, record *protocol.StepRecord) {
	if n := record.Loop.Stats.Cancelled; n > 0 {
		gate.MetricsOf(ctx).Add(meter.Iterations, int64(n), f.Run.Playbook, record.Step, string(interpreter.Cancelled))
	}
}

// countStep counts and logs a visit of a step that has ended.
func (f *frame) countStep(ctx workflow.Context, record *protocol.StepRecord) {
	gate.MetricsOf(ctx).Add(meter.Steps, 1, f.Run.Playbook, record.Step, string(record.Status))
	gate.MetricsOf(ctx).Observe(meter.StepTime, record.EndedAt.Sub(record.StartedAt), f.Run.Playbook, record.Step, string(record.Status))
	f.countRows(ctx, record)
	f.logStep(ctx, record)
	gate.EmitSpan(ctx, meter.Span{
		Kind: meter.SpanStep, Playbook: f.Run.Playbook, Step: record.Step, Visit: record.Visit, Status: record.Status,
		Attempts: record.Attempts, Pages: record.Pages, Error: record.Error, Started: record.StartedAt, Ended: record.EndedAt,
	})
}

// otherTable is the label of targets that the playbook does not name literally, such as files whose names depend on
// data.
const otherTable = "other"

// countRows counts what a visit of a step did to data, by the tables that the playbook names.
func (f *frame) countRows(ctx workflow.Context, record *protocol.StepRecord) {
	step := f.book.Step(record.Step)
	if record.Rows == nil || step == nil || step.Action != nil && f.book.ResolveAction(step.Action).ToolTraits().Plays {
		return
	}
	count := func(table, operation string, n int64) {
		if n > 0 {
			gate.MetricsOf(ctx).Add(meter.StepRows, n, f.Run.Playbook, record.Step, table, operation)
		}
	}
	count("", "read", record.Rows.Read)
	tables := record.Rows.Tables
	if record.Rows.Others != nil {
		tables = append(slices.Clip(tables), interpreter.TableRows{Table: otherTable, RowTotals: *record.Rows.Others})
	}
	for _, table := range tables {
		name := table.Table
		if !strings.Contains(f.input.Source, name) {
			name = otherTable
		}
		count(name, "written", table.Written)
		count(name, "inserted", table.Inserted)
		count(name, "updated", table.Updated)
		count(name, "deleted", table.Deleted)
		count(name, "rejected", table.Rejected)
		count(name, "discarded", table.Discarded)
	}
}

// markWatermark sets the metric of a moved watermark, if the watermark is a time.
func (f *frame) markWatermark(ctx workflow.Context, step string, of incremental.CursorType, watermark incremental.Cursor) {
	if at, ok := incremental.TimeOf(of, watermark); ok {
		gate.MetricsOf(ctx).MarkTime(meter.WatermarkAge, at, f.Run.Playbook, step)
	}
}

// countRun counts a run when it ends.
func (f *frame) countRun(ctx workflow.Context, result *protocol.Result) {
	started, now := f.startedAt(), workflow.Now(ctx)
	gate.MetricsOf(ctx).Add(meter.Runs, 1, f.Run.Playbook, string(result.Status))
	gate.MetricsOf(ctx).Observe(meter.RunTime, now.Sub(started), f.Run.Playbook, string(result.Status))
	f.logRun(ctx, result, now.Sub(started))
	gate.EmitSpan(ctx, meter.Span{
		Kind: meter.SpanRun, Playbook: f.Run.Playbook, Status: result.Status, Error: result.Error, Started: started, Ended: now,
	})
}
