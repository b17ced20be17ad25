package workflows

import (
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/interpreter/playbook"
)

// A run that a step has started may replace an earlier one: it is another attempt of
// the call, or a reprocess runs the call again. It reads the results of what has
// completed from the earlier runs, and its steps have them without a call.

// recallTime bounds the queries of earlier runs, recallTries how often they are sent.
const (
	recallTime  = 2 * time.Minute
	recallTries = 10
)

func toRecall(name, summary string) destination {
	to := toTool(name, recallTime, summary)
	to.tries = recallTries
	return to
}

// RoundID is the workflow ID of a run's nth reprocess: the same for all that start it,
// so that Temporal starts it once.
func RoundID(workflowID, runID string, n int) string {
	return IDWithin(workflowID, fmt.Sprintf("/reprocess-%s-%d", runID[max(0, len(runID)-roundIDLength):], n))
}

// roundIDLength is how much of the run ID distinguishes the reprocesses of runs with
// one workflow ID: its end, which is random; it begins with the time.
const roundIDLength = 12

// before are the workflow IDs of the earlier runs that this one replaces, the last one
// first: of a reprocess those before it and the run itself.
func (r *run) before() []string {
	again := r.input.Reprocess
	if again == nil {
		return r.Earlier
	}
	var before []string
	for n := again.Origin.Round - 1; n > 0 && len(before) < interpreter.MaxEarlier-1; n-- {
		before = append(before, RoundID(again.Origin.WorkflowID, again.Origin.RunID, n))
	}
	return append(before, again.Origin.WorkflowID)
}

// recall names the runs that may have made an attempt's call before: the attempts
// before of the same request, and those of earlier runs of the one that makes it. It is
// nil where there are none.
func (d *driver) recall(task Task, nesting *call.Nesting, in interpreter.ToolInput) *interpreter.Recall {
	recall := &interpreter.Recall{Key: in.OperationKey, Runs: nesting.Before}
	first := in.Attempt - min(d.call.View().RequestAttempts, interpreter.MaxEarlier)
	for attempt := in.Attempt - 1; attempt >= max(first, 1); attempt-- {
		before := in
		before.Attempt = attempt
		recall.Attempts = append(recall.Attempts, playID(task, before))
	}
	if len(recall.Runs) > 0 {
		recall.Suffix = fmt.Sprintf("/%s#%d%s!", task.Step, task.Visit, indexSuffix(in))
	}
	if len(recall.Attempts)+len(recall.Runs) == 0 {
		return nil
	}
	return recall
}

// keptSoFar answers runs that replace this one.
func (r *run) keptSoFar() (interpreter.Kept, error) {
	kept := r.Kept
	kept.Run, kept.Wrote, kept.Calls = r.Run, kept.Wrote || r.wrote(), r.keptCalls()
	return kept, nil
}

// wrote reports whether the run has begun more than reads.
func (r *run) wrote() bool {
	return slices.ContainsFunc(r.records, func(record *StepRecord) bool {
		step := r.book.Step(record.Step)
		return record.From == "" && step != nil && !call.ReadsOnly(r.book, step)
	})
}

// recall reads the results of the earlier runs that this one replaces. An attempt
// begins anew where those before it have only read: the data may be why they failed.
func (r *run) recall(ctx workflow.Context) {
	if !r.begins || r.input.Called.Recall == nil {
		return
	}
	question := *r.input.Called.Recall
	found, err := send[interpreter.Recalled](ctx, toRecall(interpreter.RecallActivity, "what earlier runs have done"), question, "the names of earlier runs")
	switch {
	case err != nil:
		if ctx.Err() == nil {
			r.Failure = notContinued(fmt.Sprintf("the earlier runs cannot be asked what they have done: %v", err))
		}
		return
	case len(question.Attempts) > 0 && !found.Wrote:
		return
	}
	for _, silent := range found.Silent {
		r.Warnings = append(r.Warnings, "an earlier run cannot be asked what it has done, so its calls are made again, under the same keys: "+silent)
	}
	for _, step := range found.Left {
		r.Warnings = append(r.Warnings, fmt.Sprintf("step %s: its result in the earlier run is too large to be taken over, so its call is made again, under the same keys", step))
	}
	if len(found.From) == 0 {
		return
	}
	r.Kept, r.Earlier = found.Kept, found.From
	r.Kept.Left = nil
	r.StartedAt = workflow.GetInfo(ctx).WorkflowStartTime
	r.Run.WorkflowID, r.Run.RunID, r.Run.StartedAt = found.Run.WorkflowID, found.Run.RunID, found.Run.StartedAt
}

// print is the fingerprint of a step's request; "" where no run will compare it.
func (r *run) print(task Task, call *call.Call, at time.Time) string {
	if r.input.Called == nil {
		return ""
	}
	return task.Print(call, at)
}

// earlierResult is the result that an earlier run has of a visit of a step, nil where it has
// none for the same request. It is then that of this run.
func (r *run) earlierResult(record *StepRecord, print func(at time.Time) string) *interpreter.CallResult {
	at := r.keptAt(record)
	if at < 0 {
		return nil
	}
	kept := r.Kept.Steps[at]
	if kept.Print == "" || kept.Print != print(kept.Result.Meta.StartedAt) {
		r.Kept.Steps = slices.Delete(slices.Clone(r.Kept.Steps), at, at+1)
		return nil
	}
	if record.From = kept.From; kept.Loop != nil {
		loop := *kept.Loop // its warning is another one in this run
		loop.Warning, record.Loop = 0, &loop
	}
	result := kept.Result
	return &result
}

func (r *run) keptAt(record *StepRecord) int {
	return slices.IndexFunc(r.Kept.Steps, func(kept interpreter.KeptStep) bool {
		return kept.Step == record.Step && kept.Visit == record.Visit
	})
}

// keepStep keeps how a visit has ended for runs that may replace this one. The results
// of secret steps are made again: they may have run out.
func (r *run) keepStep(step *playbook.Step, record *StepRecord, print string, result interpreter.CallResult) {
	if r.input.Called == nil || result.Failed() || print == "" || step.Secret {
		return
	}
	kept := interpreter.KeptStep{Step: record.Step, Visit: record.Visit, Print: print, From: r.id, Result: result}
	if record.Loop != nil {
		kept.Loop = &LoopRecord{WorkflowID: record.Loop.WorkflowID, Stats: record.Loop.Stats}
	}
	size := interpreter.EncodedSize(kept)
	if r.keptBytes == 0 {
		r.keptBytes = interpreter.EncodedSize(r.Kept.Steps)
	}
	if r.keptBytes+size > interpreter.MaxKept {
		r.Kept.Left = append(slices.Clip(r.Kept.Left), record.Step)
		return
	}
	r.keptBytes += size
	r.Kept.Steps = append(slices.Clip(r.Kept.Steps), kept)
}

// continueLoop runs those iterations of a loop that have not ended well in an earlier
// run.
func (r *run) continueLoop(
	ctx workflow.Context, step *playbook.Step, input LoopInput, record *StepRecord,
) (*interpreter.LoopResult, *interpreter.ErrorObject) {
	if again := r.input.Reprocess; again != nil && again.Loops[r.Reprocessed].Stopped {
		found, failure := r.readEnded(ctx, step, r.earlierLoops(record))
		if failure != nil {
			return nil, failure
		}
		input.Begun = found.Begun
	}
	earlier := r.recordLoop(record, childID(input.Task, ""))
	if len(earlier) == 0 {
		return r.runLoop(ctx, step, input, record)
	}
	ended, begun, failure := r.endedBefore(ctx, step, input, earlier)
	if failure != nil {
		return nil, failure
	}
	input.Begun = begun
	if len(ended) == 0 {
		return r.runLoop(ctx, step, input, record)
	}
	all := interpreter.NewLoopResult(len(input.Elements))
	if step.Loop.StatsOnly {
		all.DropResults()
	}
	rest := input
	rest.Elements, rest.Chosen = nil, &Chosen{Size: len(input.Elements)}
	for index, element := range input.Elements {
		if iteration, has := ended[index]; has {
			all.Add(index, element.Data, iteration)
			continue
		}
		rest.Elements = append(rest.Elements, element)
		rest.Chosen.Indexes = append(rest.Chosen.Indexes, index)
	}
	if len(rest.Elements) == 0 {
		record.Loop = &LoopRecord{WorkflowID: earlier[0], Stats: all.Stats}
		return all, nil
	}
	result, failure := r.runLoop(ctx, step, rest, record)
	if failure != nil {
		return nil, failure
	}
	all.MergeChosen(rest.Chosen.Indexes, result)
	all.Shrink(step.Name, payloadCap(ctx))
	return all, nil
}

// recordLoop records the loop of a visit, and returns those before it.
func (r *run) recordLoop(record *StepRecord, id string) []string {
	if r.input.Called == nil {
		return nil
	}
	noted := interpreter.KeptLoop{Step: record.Step, Visit: record.Visit, Runs: []string{id}}
	at := slices.IndexFunc(r.Kept.Loops, func(kept interpreter.KeptLoop) bool {
		return kept.Step == record.Step && kept.Visit == record.Visit
	})
	if at < 0 {
		r.Kept.Loops = append(slices.Clip(r.Kept.Loops), noted)
		return nil
	}
	earlier := r.Kept.Loops[at].Runs
	for _, run := range earlier {
		noted.Add(run)
	}
	r.Kept.Loops = slices.Clone(r.Kept.Loops)
	r.Kept.Loops[at] = noted
	return earlier
}

// endedBefore are the iterations that have ended well in earlier loops and would make
// the same request again, by index, and those that were stopped.
func (r *run) endedBefore(
	ctx workflow.Context, step *playbook.Step, input LoopInput, earlier []string,
) (map[int]interpreter.IterationResult, []interpreter.BegunIteration, *interpreter.ErrorObject) {
	found, failure := r.readEnded(ctx, step, earlier)
	if failure != nil {
		return nil, nil, failure
	}
	if left := len(found.Left); left > 0 {
		r.Warnings = append(r.Warnings, fmt.Sprintf("step %s: the results of %d earlier iterations are too large to be taken over, so they run again, under the same keys",
			step.Name, left))
	}
	ended := map[int]interpreter.IterationResult{}
	for i, iteration := range found.Iterations {
		index := iteration.Index
		if index < 0 || index >= len(input.Elements) || iteration.Result.Failed() {
			continue
		}
		snapshot := call.Snapshot{Index: &index, Size: len(input.Elements), Element: input.Elements[index]}
		if print := input.Task.IterationPrint(r.book, step, snapshot, iteration.Result.Meta.StartedAt); print != "" && print == found.Prints[i] {
			ended[index] = iteration
		}
	}
	return ended, found.Begun, nil
}

// readEnded reads how the iterations of earlier loops have ended.
func (r *run) readEnded(
	ctx workflow.Context, step *playbook.Step, earlier []string,
) (found interpreter.EndedIterations, failure *interpreter.ErrorObject) {
	question := interpreter.EndedInput{Loops: earlier, Key: r.Run.Identity()}
	found, err := send[interpreter.EndedIterations](ctx, toRecall(interpreter.EndedActivity, step.Name+": what earlier runs have done"), question,
		"the names of earlier loops")
	if err == nil && len(found.Prints) != len(found.Iterations) {
		err = fmt.Errorf("%d results, and what %d have asked for", len(found.Iterations), len(found.Prints))
	}
	switch {
	case err == nil:
		return found, nil
	case ctx.Err() != nil:
		return found, cancelledError()
	}
	return found, notContinued(fmt.Sprintf("step %s: its earlier iterations cannot be read: %v", step.Name, err))
}

// notContinued is the failure of what cannot be continued now: a later run may.
func notContinued(why string) *interpreter.ErrorObject {
	return &interpreter.ErrorObject{
		Kind: interpreter.KindTool, Class: interpreter.ClassRetryable, Type: call.TypeNotContinued,
		Message: why + "; nothing is sent, because it may have been sent before",
	}
}

// endedIn accounts for the iterations of a loop, or of a shard of one, that was ended
// from outside: its histories show how they ended. Iterations that they do not show
// count as cancelled.
func (l *loop) endedIn(ctx workflow.Context, id string, failure *interpreter.ErrorObject) {
	l.result.Broken = failure
	question := interpreter.EndedInput{Loops: []string{id}}
	found, err := send[interpreter.EndedIterations](ctx, toRecall(interpreter.EndedActivity, "how the iterations of "+id+" ended"), question,
		"the name of a loop")
	if err != nil {
		l.result.Warn(fmt.Sprintf("how the iterations of %s ended cannot be read: %v", id, err))
		return
	}
	for _, left := range found.Left {
		found.Iterations = append(found.Iterations, left.Result())
	}
	for _, iteration := range found.Iterations {
		if position, found := l.position(iteration.Index); found {
			l.result.Add(position, l.input.Elements[position].Data, iteration)
		}
	}
}
