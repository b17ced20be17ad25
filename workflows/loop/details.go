package loop

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/source"
	"reprise/workflows/control"
	"reprise/workflows/gate"
	"reprise/workflows/protocol"
)

// describeLoop writes the status of the loop, or of this shard, into the details.
func (l *Loop) describeLoop(ctx workflow.Context) {
	rest, stats := l.countParked(), l.Result.Stats
	waiting, active := rest.waiting, rest.activeCalls(l.active)
	stats.Success, stats.Failed = stats.Success+rest.within.Success, stats.Failed+rest.within.Failed
	counts := gate.NewMarkdownTable("completed", "failed", "waiting", "running", "pending", "next retry")
	counts.Row(fmt.Sprint(stats.Success), fmt.Sprint(stats.Failed), fmt.Sprint(waiting), fmt.Sprint(active),
		fmt.Sprint(max(stats.Total-stats.Success-stats.Failed-waiting-active, 0)), gate.RenderTime(rest.next))
	text := l.controls.RenderHold() + fmt.Sprintf("%s: iterations %d to %d of %s\n\n%s",
		source.MarkdownCode(l.step.Name, protocol.MaxText), l.indexAt(0), l.indexAt(stats.Total-1), sizeText(l), counts)
	if l.source != nil {
		text += l.source.describeSource()
	}
	for _, p := range l.shards {
		text += "\nRunning, and not counted yet: " + gate.LinkTo(ctx, "a shard of the loop", p.id) + "\n"
	}
	workflow.SetCurrentDetails(ctx, text+l.failureLines(ctx)+l.waitLines(ctx))
	l.reportWaits(ctx)
}

// failureLines lists the first failed iterations, with links.
func (l *Loop) failureLines(ctx workflow.Context) string {
	if len(l.Result.Errors) == 0 {
		return ""
	}
	table := gate.NewMarkdownTable("failed iteration", "last error", "attempts", "where")
	for _, failure := range l.Result.Errors[:min(len(l.Result.Errors), gate.MostRows)] {
		id := l.childRunning(failure.Index)
		table.Row(fmt.Sprint(failure.Index), gate.RenderReason("", failure.Error), fmt.Sprint(failure.Attempts),
			gate.LinkTo(ctx, source.MarkdownCode(id, protocol.MaxText), id))
	}
	if more := l.Result.Stats.Failed - gate.MostRows; more > 0 {
		table.Row(fmt.Sprintf("and %d more", more), "", "", "")
	}
	return "\n" + table.String()
}

// childRunning returns the workflow ID of the child that ran an iteration.
func (l *Loop) childRunning(index int) string {
	if l.Shard.Open || l.Input.Source != nil { // batches begin where the shard does
		if position := index - l.Shard.First; position >= 0 && len(l.Input.Elements) > 0 {
			index -= position % l.batchSize()
		}
		return protocol.BatchID(l.Input.Task, index)
	}
	if id, found := protocol.IterationID(l.Input.Task, l.loop, l.collectionSize(), l.Input.Chosen, index); found {
		return id
	}
	return protocol.BatchID(l.Input.Task, index)
}

// waitLines lists the first children that wait without a slot, and what they wait for.
func (l *Loop) waitLines(ctx workflow.Context) string {
	var table *gate.MarkdownTable
	rows := 0
	for _, b := range l.batches {
		if b.holds {
			continue
		}
		if table == nil {
			table = gate.NewMarkdownTable("waiting iteration", "waits for", "next retry", "where")
		}
		if rows++; rows > gate.MostRows {
			table.Row("and more", "", "", "")
			break
		}
		which := fmt.Sprint(b.index)
		if b.request.Waiting > 1 {
			which = fmt.Sprintf("%d, from %d on", b.request.Waiting, b.index)
		}
		why, next := b.request.Why, b.request.At
		if b.request.Now {
			why, next = interpreter.WaitsForSlot, time.Time{}
		}
		table.Row(which, source.MarkdownCode(why, protocol.MaxText), gate.RenderTime(next), gate.LinkTo(ctx, source.MarkdownCode(b.id, protocol.MaxText), b.id))
	}
	if table == nil {
		return ""
	}
	return "\n" + table.String()
}

// describeBatch writes the status of the batch into the details: the number of iterations with each status, and
// some of them.
func (b *batch) describeBatch(ctx workflow.Context) {
	records := b.iterationRecords()
	var counts []string
	questions := ""
	table, rows := gate.NewMarkdownTable("iteration", "state", "attempts", "next retry", "waits for, or last error"), 0
	for state := range interpreter.EachStatus {
		n := 0
		for i := range records {
			record := &records[i]
			if record.Status != state {
				continue
			}
			n++
			if detailed := record.Waiting != "" || record.Error != nil || len(records) == 1; !detailed || rows == gate.MostRows {
				continue
			}
			rows++
			name, index := strconv.Itoa(record.Index), &record.Index
			if b.step.Loop == nil {
				name, index = source.MarkdownCode(b.step.Name, protocol.MaxText), nil
			}
			questions += gate.QuestionText(protocol.RunID(b.input.Task), b.step.Name, index, record.Awaits)
			table.Row(name, "**"+string(record.Status)+"**", strconv.Itoa(record.Attempts),
				gate.RenderTime(record.NextRetryAt), gate.RenderReason(record.Waiting, record.Error))
		}
		if n > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", n, state))
		}
	}
	text := control.ControlsOf(ctx).RenderHold() + source.MarkdownCode(b.step.Name, protocol.MaxText) + ": " + strings.Join(counts, ", ") + "\n"
	if rows > 0 {
		text += "\n" + table.String()
	}
	workflow.SetCurrentDetails(ctx, text+questions)
}
