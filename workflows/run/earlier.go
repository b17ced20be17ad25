package run

import (
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/interpreter/playbook"
	"reprise/workflows/drive"
	"reprise/workflows/gate"
	"reprise/workflows/protocol"
)

// earlier is the part of a run that deals with runs that it replaces, and with runs that replace it.
type earlier struct {
	*frame
	*visits
	protocol.RunEarlier
	// stepBytes is the encoded size of Work.Steps, at most MaxEarlierBytes.
	stepBytes int
	// task returns the task of a step.
	task func(interpreter.Start) protocol.Task
}

// replacedRuns returns the workflow IDs of the earlier runs that this one replaces, latest first: for a reprocess
// the previous reprocesses and the original run.
func (e *earlier) replacedRuns() []string {
	again := e.input.Reprocess
	if again == nil {
		return e.Earlier
	}
	var before []string
	for n := again.Origin.Round - 1; n > 0 && len(before) < interpreter.MaxEarlier-1; n-- {
		before = append(before, protocol.RoundID(again.Origin.WorkflowID, again.Origin.RunID, n))
	}
	return append(before, again.Origin.WorkflowID)
}

// workSoFar answers the query of a run that replaces this one.
func (e *earlier) workSoFar() (interpreter.EarlierWork, error) {
	work := e.Work
	work.Run, work.Wrote, work.Calls = e.Run, work.Wrote || e.hasWritten(), e.openCalls()
	return work, nil
}

// hasWritten reports whether the run has begun a step that does more than read.
func (e *earlier) hasWritten() bool {
	return slices.ContainsFunc(e.records, func(record *protocol.StepRecord) bool {
		step := e.book.Step(record.Step)
		return record.From == "" && step != nil && !call.IsReadOnly(e.book, step)
	})
}

// recallResults reads the results of the earlier runs that this one replaces. If those have only read, nothing is
// reused: the data may be the reason why they failed.
func (e *earlier) recallResults(ctx workflow.Context) {
	if e.input.Called.Recall == nil {
		return
	}
	question := *e.input.Called.Recall
	found, err := gate.Send[interpreter.EarlierAnswers](ctx, drive.ToRecall(interpreter.RecallActivity, "what earlier runs have done"), question, "the names of earlier runs")
	switch {
	case err != nil:
		if ctx.Err() == nil {
			e.Failure = protocol.NotContinuedError(fmt.Sprintf("the results of earlier runs cannot be read: %v", err))
		}
		return
	case len(question.Attempts) > 0 && !found.Wrote:
		return
	}
	for _, silent := range found.Silent {
		e.Warnings = append(e.Warnings, "the results of an earlier run cannot be read, so its calls are repeated with the same keys: "+silent)
	}
	for _, step := range found.Left {
		e.Warnings = append(e.Warnings, fmt.Sprintf("step %s: its result in the earlier run is too large to reuse, so its call is repeated with the same keys", step))
	}
	if len(found.From) == 0 {
		return
	}
	e.Work, e.Earlier = found.EarlierWork, found.From
	e.Work.Left = nil
	if warning := staleWarning(e.book, e.Work.Steps, workflow.Now(ctx)); warning != "" {
		e.Warnings = append(e.Warnings, warning)
	}
	e.StartedAt = workflow.GetInfo(ctx).WorkflowStartTime
	e.Run.WorkflowID, e.Run.RunID, e.Run.StartedAt = found.Run.WorkflowID, found.Run.RunID, found.Run.StartedAt
}

// freshFor is how old a reused result may be before a run warns: by then another run may well have loaded newer rows.
const freshFor = time.Hour

// staleWarning warns about results of an earlier run that are older than freshFor, if a sink would replace newer rows with them; "" for none.
func staleWarning(book *playbook.Playbook, steps []interpreter.EarlierStep, now time.Time) string {
	if !slices.ContainsFunc(book.Steps, func(step *playbook.Step) bool { return book.UnsequencedKey(step) != nil }) {
		return ""
	}
	for _, step := range steps {
		if ended := step.Result.Meta.EndedAt; now.Sub(ended) > freshFor {
			return fmt.Sprintf("step %s: its result of %s is reused. If another run has loaded newer rows since, a sink with mode: upsert replaces them with these; "+
				"to prevent that, set sequence_by in the sink, or run the playbook again instead", step.Step, ended.UTC().Format(time.RFC3339))
		}
	}
	return ""
}

// printRequest returns the digest of a step's request; "" if no run will compare it.
func (e *earlier) printRequest(task protocol.Task, call *call.Call, at time.Time) string {
	if e.input.Called == nil {
		return ""
	}
	return task.CallDigest(call, at)
}

// earlierResult returns, and adopts, the result that an earlier run has for a visit of a step; nil if it has none
// for the same request.
func (e *earlier) earlierResult(record *protocol.StepRecord, print func(at time.Time) string) *interpreter.CallResult {
	at := e.stepAt(record)
	if at < 0 {
		return nil
	}
	step := e.Work.Steps[at]
	if step.Print == "" || step.Print != print(step.Result.Meta.StartedAt) {
		e.Work.Steps = slices.Delete(slices.Clone(e.Work.Steps), at, at+1)
		return nil
	}
	if record.From = step.From; step.Loop != nil {
		loop := *step.Loop // its warning is another one in this run
		loop.Warning, record.Loop = 0, &loop
	}
	result := step.Result
	result.Meta.Rows = nil // the earlier run has counted them
	return &result
}

func (e *earlier) stepAt(record *protocol.StepRecord) int {
	return slices.IndexFunc(e.Work.Steps, func(step interpreter.EarlierStep) bool {
		return step.Step == record.Step && step.Visit == record.Visit
	})
}

// saveStep stores the result of a visit for runs that may replace this one. Results of secret steps are not stored,
// because they may expire.
func (e *earlier) saveStep(step *playbook.Step, record *protocol.StepRecord, print string, result interpreter.CallResult) {
	if e.input.Called == nil || result.Failed() || print == "" || step.Secret {
		return
	}
	saved := interpreter.EarlierStep{Step: record.Step, Visit: record.Visit, Print: print, From: e.id, Result: result}
	if record.Loop != nil {
		saved.Loop = &protocol.LoopRecord{WorkflowID: record.Loop.WorkflowID, Stats: record.Loop.Stats}
	}
	size := interpreter.EncodedSize(saved)
	if e.stepBytes == 0 {
		e.stepBytes = interpreter.EncodedSize(e.Work.Steps)
	}
	if e.stepBytes+size > interpreter.MaxEarlierBytes {
		e.Work.Left = append(slices.Clip(e.Work.Left), record.Step)
		return
	}
	e.stepBytes += size
	e.Work.Steps = append(slices.Clip(e.Work.Steps), saved)
}

// continueLoop runs the iterations of a loop that have not succeeded in an earlier run.
func (r *run) continueLoop(
	ctx workflow.Context, step *playbook.Step, input protocol.LoopInput, record *protocol.StepRecord,
) (*interpreter.LoopResult, *interpreter.ErrorObject) {
	if again := r.input.Reprocess; again != nil && again.Loops[r.Reprocessed].Stopped {
		found, failure := r.earlier.readEnded(ctx, step, r.earlier.earlierLoops(record))
		if failure != nil {
			return nil, failure
		}
		input.Begun = found.Begun
	}
	earlier := r.earlier.recordLoop(record, protocol.ChildID(input.Task, ""))
	switch {
	case len(earlier) == 0:
		return r.runLoopChild(ctx, step, input, record)
	case input.Source != nil: // it may now return other elements under the same keys
		return nil, protocol.NotContinuedError(fmt.Sprintf("step %s: an earlier run began this loop over a source, which cannot be continued; "+
			"start a new run of the playbook, or reprocess the iterations of the earlier run", step.Name))
	}
	ended, begun, failure := r.earlier.endedBefore(ctx, step, input, earlier)
	if failure != nil {
		return nil, failure
	}
	input.Begun = begun
	if len(ended) == 0 {
		return r.runLoopChild(ctx, step, input, record)
	}
	all := interpreter.NewLoopResult(len(input.Elements))
	if step.Loop.StatsOnly {
		all.DropResults()
	}
	rest := input
	rest.Elements, rest.Chosen = nil, &protocol.Subset{Size: len(input.Elements)}
	for index, element := range input.Elements {
		if iteration, has := ended[index]; has {
			iteration.Result.Meta.Rows = nil // the earlier loop has counted them
			all.AddIteration(index, element.Data, iteration)
			continue
		}
		rest.Elements = append(rest.Elements, element)
		rest.Chosen.Indexes = append(rest.Chosen.Indexes, index)
	}
	if len(rest.Elements) == 0 {
		record.Loop = &protocol.LoopRecord{WorkflowID: earlier[0], Stats: all.Stats}
		return all, nil
	}
	result, failure := r.runLoopChild(ctx, step, rest, record)
	if failure != nil {
		return nil, failure
	}
	all.MergeChosen(rest.Chosen.Indexes, result)
	all.Shrink(step.Name, gate.PayloadCap(ctx))
	return all, nil
}

// recordLoop records the workflow ID of a visit's loop, and returns those of earlier loops.
func (e *earlier) recordLoop(record *protocol.StepRecord, id string) []string {
	if e.input.Called == nil {
		return nil
	}
	noted := interpreter.EarlierLoop{Step: record.Step, Visit: record.Visit, Runs: []string{id}}
	at := slices.IndexFunc(e.Work.Loops, func(loop interpreter.EarlierLoop) bool {
		return loop.Step == record.Step && loop.Visit == record.Visit
	})
	if at < 0 {
		e.Work.Loops = append(slices.Clip(e.Work.Loops), noted)
		return nil
	}
	earlier := e.Work.Loops[at].Runs
	for _, run := range earlier {
		noted.AddRun(run)
	}
	e.Work.Loops = slices.Clone(e.Work.Loops)
	e.Work.Loops[at] = noted
	return earlier
}

// endedBefore returns the iterations that succeeded in earlier loops and would make the same request again, by
// index, and the stopped ones.
func (e *earlier) endedBefore(
	ctx workflow.Context, step *playbook.Step, input protocol.LoopInput, earlier []string,
) (map[int]interpreter.IterationResult, []interpreter.BegunIteration, *interpreter.ErrorObject) {
	found, failure := e.readEnded(ctx, step, earlier)
	if failure != nil {
		return nil, nil, failure
	}
	if left := len(found.Left); left > 0 {
		e.Warnings = append(e.Warnings, fmt.Sprintf("step %s: the results of %d earlier iterations are too large to reuse, so these run again with the same keys",
			step.Name, left))
	}
	ended := map[int]interpreter.IterationResult{}
	for i, iteration := range found.Iterations {
		index := iteration.Index
		if index < 0 || index >= len(input.Elements) || iteration.Result.Failed() {
			continue
		}
		snapshot := call.Snapshot{Index: &index, Size: len(input.Elements), Element: input.Elements[index]}
		if print := input.Task.IterationDigest(e.book, step, snapshot, iteration.Result.Meta.StartedAt); print != "" && print == found.Prints[i] {
			ended[index] = iteration
		}
	}
	return ended, found.Begun, nil
}

// readEnded reads the outcomes of the iterations of earlier loops.
func (e *earlier) readEnded(
	ctx workflow.Context, step *playbook.Step, earlier []string,
) (found interpreter.EndedIterations, failure *interpreter.ErrorObject) {
	question := interpreter.EndedInput{Loops: earlier, Key: e.Run.KeyPrefix()}
	found, err := gate.Send[interpreter.EndedIterations](ctx, drive.ToRecall(interpreter.EndedActivity, step.Name+": what earlier runs have done"), question,
		"the names of earlier loops")
	if err == nil && len(found.Prints) != len(found.Iterations) {
		err = fmt.Errorf("%d results, and what %d have asked for", len(found.Iterations), len(found.Prints))
	}
	switch {
	case err == nil:
		return found, nil
	case ctx.Err() != nil:
		return found, protocol.CancelledError()
	}
	return found, protocol.NotContinuedError(fmt.Sprintf("step %s: its earlier iterations cannot be read: %v", step.Name, err))
}
