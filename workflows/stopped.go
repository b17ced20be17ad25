package workflows

import (
	"fmt"
	"slices"

	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/interpreter/lists"
)

// A call that was stopped before its end is continued by the run that replaces its run
// (interpreter/call/stopped.go). Its state is read from the workflow that was making it, by
// a query, which a worker answers from the history.

// StoppedQuestion says which call is meant; a workflow with one call of a visit needs
// no index.
type StoppedQuestion struct {
	Step  string `json:"step"`
	Visit int    `json:"visit"`
	Index *int   `json:"index,omitempty"`
}

// continueCall has a call continue the one that by was making when it was stopped. A
// call whose request has changed begins anew, and the warning says so. A call whose
// state cannot be read ends: its request may have been sent before.
func continueCall(ctx workflow.Context, task Task, machine *call.Call, by string) (warning string) {
	name := indexed(task.Step, machine.Config().Index)
	question := call.StoppedInput{By: by, Key: task.Run.Identity(), Step: task.Step, Visit: task.Visit, Index: machine.Config().Index}
	stopped, err := send[call.Stopped](ctx, toRecall(interpreter.StoppedActivity, name+": how far an earlier run has come"),
		question, "the name of an earlier run")
	switch {
	case ctx.Err() != nil:
		return ""
	case err != nil:
		machine.Abandon(*notContinued(fmt.Sprintf("step %s: an earlier run was stopped during its call, whose progress cannot be read: %v",
			name, err)), workflow.Now(ctx))
		return ""
	case stopped.State == nil:
		return ""
	}
	if task.Continues(machine, stopped) {
		machine.Continue(stopped)
		return ""
	}
	if stopped.State.Fresh() {
		return ""
	}
	return fmt.Sprintf("an earlier run was stopped during a call, which starts again under the same keys: step %s: its request is another one now", name)
}

// continues resumes what an earlier run has left of the call of a visit.
func (r *run) continues(ctx workflow.Context, record *StepRecord, task Task, call *call.Call) {
	at := r.keptCallAt(record)
	if at < 0 {
		return
	}
	if by := r.Kept.Calls[at].By; by != "" {
		warning := continueCall(ctx, task, call, by)
		if ctx.Err() != nil || call.View().Stopped {
			return
		}
		if warning != "" {
			r.Warnings = append(r.Warnings, warning)
		}
	}
	r.Kept.Calls = slices.Delete(slices.Clone(r.Kept.Calls), at, at+1)
}

func (r *run) keptCallAt(record *StepRecord) int {
	return slices.IndexFunc(r.Kept.Calls, func(kept interpreter.KeptCall) bool {
		return kept.Step == record.Step && kept.Visit == record.Visit
	})
}

// keptCalls are the calls that have begun, here and in earlier runs, and not ended well.
func (r *run) keptCalls() []interpreter.KeptCall {
	calls := slices.Clone(r.Kept.Calls)
	for _, record := range r.records {
		step := r.book.Step(record.Step)
		if record.From != "" || step == nil || step.Action == nil || step.Loop != nil || r.keptAt(record) >= 0 || r.keptCallAt(record) >= 0 {
			continue
		}
		kept := interpreter.KeptCall{Step: record.Step, Visit: record.Visit, By: record.Call}
		if call := r.callOf(record); kept.By == "" && call != nil {
			if state := call.Stopped(); state != nil && !state.Fresh() {
				kept.By = r.id
			}
		}
		calls = append(calls, kept)
	}
	return calls
}

// callOf is the call of a visit that is made here, or was stopped; nil for none.
func (r *run) callOf(record *StepRecord) *call.Call {
	if call := r.live[record]; call != nil {
		return call
	}
	return r.stopped[record]
}

// stoppedCall answers runs that continue a call of this one.
func (r *run) stoppedCall(question StoppedQuestion) (call.Stopped, error) {
	for _, record := range slices.Backward(r.records) {
		call := r.callOf(record)
		if call == nil || record.Step != question.Step || record.Visit != question.Visit {
			continue
		}
		return r.task(interpreter.Start{Step: r.book.Step(record.Step), Visit: record.Visit}).StoppedAs(call), nil
	}
	return call.Stopped{Key: r.Run.Identity()}, nil
}

// stoppedCall answers workflows that continue an iteration of the batch.
func (b *batch) stoppedCall(question StoppedQuestion) (call.Stopped, error) {
	for i, snapshot := range b.input.Calls {
		switch {
		case snapshot.Index != nil && (question.Index == nil || *snapshot.Index != *question.Index):
		case b.earlier[i] != "":
			return call.Stopped{Key: b.input.Task.Run.Identity(), By: b.earlier[i]}, nil
		default:
			return b.input.Task.StoppedAs(b.calls[i]), nil
		}
	}
	return call.Stopped{Key: b.input.Task.Run.Identity()}, nil
}

// continues resumes what earlier runs have left of the iterations.
func (b *batch) continues(ctx workflow.Context) {
	group := workflow.NewWaitGroup(ctx)
	for i, by := range b.earlier {
		if by == "" {
			continue
		}
		group.Add(1)
		workflow.Go(ctx, func(ctx workflow.Context) {
			defer group.Done()
			warning := continueCall(ctx, b.input.Task, b.calls[i], by)
			if warning != "" {
				b.calls[i].Warn(warning)
			}
			if ctx.Err() == nil && !b.calls[i].View().Stopped {
				b.earlier[i] = ""
			}
			if b.calls[i].Finished() {
				b.counted[i] = true
				countCall(ctx, b.calls[i])
				b.count(*b.calls[i].Result())
			}
		})
	}
	group.Wait(ctx)
}

// recallLedgers has ledgers return what they hold of a call beyond its state.
func (c *activityHost) recallLedgers(ctx workflow.Context, machine *call.Call) {
	if len(machine.View().Ledgers(workflow.Now(ctx))) == 0 {
		machine.Recalled()
		return
	}
	name := indexed(c.task.Step, c.snapshot.Index)
	hostCalls(ctx, call.DriveInput{
		Task: c.task, Calls: []call.Snapshot{c.snapshot}, Width: 1, Pages: machine.View().Detachable(), Recall: true,
	}, []*call.Call{machine}, name+": what an earlier run has written")
	if machine.View().Recalls && ctx.Err() == nil {
		machine.Abandon(*notContinued("step " + name + ": an earlier run was stopped during its call, and its sinks do not know what it has written"),
			workflow.Now(ctx))
	}
}

// begunIn are the iterations of these that an earlier loop had begun.
func (l *loop) begunIn(index int) string {
	at, found := slices.BinarySearchFunc(l.input.Begun, index, func(begun interpreter.BegunIteration, index int) int {
		return begun.Index - index
	})
	if !found {
		return ""
	}
	return l.input.Begun[at].By
}

// begunBetween are those of some iterations that an earlier loop had begun.
func begunBetween(all []interpreter.BegunIteration, first, last int) []interpreter.BegunIteration {
	return lists.Filter(all, func(begun interpreter.BegunIteration) bool { return begun.Index >= first && begun.Index <= last })
}

// earlierLoops are the workflow IDs of the loops of a visit in the runs before a
// reprocess, the last one first.
func (r *run) earlierLoops(record *StepRecord) []string {
	within := fmt.Sprintf("/%s#%d", record.Step, record.Visit)
	return lists.Map(r.before(), func(run string) string { return IDWithin(run, within) })
}
