package loop

import (
	"slices"

	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/workflows/drive"
	"reprise/workflows/protocol"
)

// stoppedCall answers the query of a workflow that continues an iteration of this batch.
func (b *batch) stoppedCall(question protocol.StoppedQuestion) (call.StoppedCall, error) {
	for i, snapshot := range b.input.Calls {
		switch {
		case snapshot.Index != nil && (question.Index == nil || *snapshot.Index != *question.Index):
		case b.earlier[i] != "":
			return call.StoppedCall{Key: b.input.Task.Run.KeyPrefix(), By: b.earlier[i]}, nil
		default:
			return b.input.Task.StoppedAs(b.calls[i]), nil
		}
	}
	return call.StoppedCall{Key: b.input.Task.Run.KeyPrefix()}, nil
}

// resumeStopped continues the iterations that earlier runs had begun.
func (b *batch) resumeStopped(ctx workflow.Context) {
	group := workflow.NewWaitGroup(ctx)
	for i, by := range b.earlier {
		if by == "" {
			continue
		}
		group.Add(1)
		workflow.Go(ctx, func(ctx workflow.Context) {
			defer group.Done()
			warning := drive.ContinueCall(ctx, b.input.Task, b.calls[i], by)
			if warning != "" {
				b.calls[i].Warn(warning)
			}
			if ctx.Err() == nil && !b.calls[i].View().Stopped {
				b.earlier[i] = ""
			}
			if b.calls[i].Finished() {
				b.counted[i] = true
				drive.CountCall(ctx, b.calls[i])
				b.countResult(*b.calls[i].Result())
			}
		})
	}
	group.Wait(ctx)
}

// earlierWorkflow returns the ID of the workflow in which an iteration had begun in an earlier loop; "" for none.
func (l *Loop) earlierWorkflow(index int) string {
	at, found := slices.BinarySearchFunc(l.Input.Begun, index, func(begun interpreter.BegunIteration, index int) int {
		return begun.Index - index
	})
	if !found {
		return ""
	}
	return l.Input.Begun[at].By
}
