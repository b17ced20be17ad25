package loop

import (
	"cmp"
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/interpreter/retry"
	"reprise/workflows/drive"
	"reprise/workflows/gate"
	"reprise/workflows/protocol"
)

func (l *Loop) iterationRecords() (protocol.Iterations, error) {
	answer := protocol.Iterations{Iterations: []protocol.IterationRecord{}}
	for _, failure := range l.Result.Errors {
		if len(answer.Iterations) == gate.MostListed {
			break
		}
		answer.Iterations = append(answer.Iterations, protocol.IterationRecord{Index: failure.Index, CallStatus: interpreter.CallStatus{
			Status: interpreter.Failed, Attempts: failure.Attempts, Error: failure.Error.ShrunkError(),
		}})
	}
	answer.Left = l.Result.Stats.Failed - len(answer.Iterations)
	slices.SortStableFunc(answer.Iterations, func(x, y protocol.IterationRecord) int { return cmp.Compare(x.Index, y.Index) })
	return answer, nil
}

// waitRecorder returns a recorder of the waits of a call and its sinks, which updates the details.
func (b *batch) waitRecorder(ctx workflow.Context, i int) drive.WaitRecorder {
	return func(call *call.Call, wait *interpreter.Wait, until time.Time) {
		b.waits[i], b.until[i] = wait, until
		b.describeBatch(ctx)
		b.reportWaits(ctx)
		if news, waits := drive.WaitsForPeople(call, wait, b.input.Task.Visit); waits {
			b.notifier.NotifyParent(ctx, news)
		}
	}
}

func (b *batch) openIterations() (protocol.Iterations, error) {
	answer := protocol.Iterations{Iterations: b.iterationRecords()}
	for _, i := range b.hosted {
		if index := b.calls[i].Config().Index; index != nil {
			answer.Hosted = append(answer.Hosted, *index)
		}
	}
	for i := range answer.Iterations {
		answer.Iterations[i].Error = answer.Iterations[i].Error.ShownError()
	}
	return answer, nil
}

// iterationRecords returns the states of the batch's iterations, in order.
func (b *batch) iterationRecords() []protocol.IterationRecord {
	records := make([]protocol.IterationRecord, 0, len(b.input.Ended)+len(b.calls))
	most := retry.MostAttempts(b.step, b.input.Task.Limits)
	for _, ended := range b.input.Ended {
		records = append(records, protocol.IterationRecord{Index: ended.Index, CallStatus: ended.Result.CallStatus()})
	}
	for i, call := range b.calls {
		view := call.View()
		record := protocol.IterationRecord{CallStatus: view.Status(b.waits[i], b.until[i]), Incremental: view.Incremental().Record(), Rows: view.Rows()}
		if index := call.Config().Index; index != nil {
			record.Index = *index
		}
		if record.Status == interpreter.Pending && record.Reason == "" && slices.Contains(b.hosted, i) {
			record.Status, record.Attempts = interpreter.Running, 1
		}
		if record.Child = b.children[i]; record.MaxAttempts == 0 && !record.Status.Ended() {
			record.MaxAttempts = most
		}
		records = append(records, record)
	}
	slices.SortStableFunc(records, func(x, y protocol.IterationRecord) int { return cmp.Compare(x.Index, y.Index) })
	return records
}
