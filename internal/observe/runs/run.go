// Package runs reads runs of playbooks from Temporal: a run is the chain of its workflow runs, with its loops, calls
// and iterations. Everything that reads runs uses it, whether it follows a run, lists runs, shows status or events,
// or finds dead letters.
//
// Each method has a budget of calls to the server. Find makes at most four, List one for each page of a hundred runs,
// Status at most StatusCalls, whatever the size of the run: it queries the workflows, and reads no history of an
// iteration. Iterations makes one more call for each open child of the loop, up to a bound. Events reads histories
// page by page, those of iterations only if they are requested.
package runs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"reprise/internal/base/connect"
	"reprise/internal/base/payload"
	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
	"reprise/workflows/protocol"
)

// Run is a run of a playbook with all its histories.
type Run struct {
	WorkflowID string
	RunID      string // the first of the chain
	StartedAt  time.Time
	// ScheduledAt is the time for which a schedule started it; zero for other runs.
	ScheduledAt time.Time
	TaskQueue   string
	EndedAt     time.Time // zero while it is running
	Input       protocol.Input
	Loops       []*Loop // visits of steps with a loop, in the order of their start
}

// Closed reports whether the run has ended.
func (run *Run) Closed() bool { return !run.EndedAt.IsZero() }

// Loop is the progress of one visit of a step with a loop.
type Loop struct {
	WorkflowID string
	Step       string
	Visit      int
	Failed     []interpreter.LoopError // iterations, in no certain order
	// Lost counts failed iterations that are no longer in any history.
	Lost int

	// Whole is set if every iteration which did not fail has succeeded.
	Whole bool

	input     *commonpb.Payloads
	runID     string                        // of its workflow
	succeeded map[int]bool                  // those known to have, where the loop is not whole
	ended     []interpreter.IterationResult // those that the histories of children have
	// begun lists the stopped iterations, if they were requested.
	begun     []interpreter.BegunIteration
	findBegun bool
}

// Succeeded reports whether an iteration is known to have succeeded.
func (l *Loop) Succeeded(index int) bool { return l.Whole || l.succeeded[index] }

// Run reads a run with all of its loops; an empty runID means the latest run with the workflow ID. The error wraps
// ErrNotFound if there is none.
func (r *Reader) Run(ctx context.Context, workflowID, runID string) (*Run, error) {
	described, err := r.Client.DescribeWorkflowExecution(ctx, workflowID, runID)
	if connect.IsUnknownID(err) {
		return nil, fmt.Errorf("%w: %s", ErrNotFound, strings.TrimSpace(workflowID+" "+runID))
	}
	if err != nil {
		return nil, fmt.Errorf("look for the run %s: %w", workflowID, err)
	}
	info := described.GetWorkflowExecutionInfo()
	if kind := info.GetType().GetName(); kind != protocol.PlaybookWorkflowName {
		return nil, fmt.Errorf("%w of a playbook: %s is a %s", ErrNotFound, workflowID, kind)
	}
	given, err := r.readHistory(ctx, workflowID, info.GetExecution().GetRunId())
	if err != nil {
		return nil, err
	}
	first := given
	if id := given.firstRunID; id != "" && id != given.runID {
		if first, err = r.readHistory(ctx, workflowID, id); err != nil {
			return nil, err
		}
	}
	run := &Run{
		WorkflowID: workflowID, RunID: first.runID, StartedAt: first.startedAt, ScheduledAt: first.scheduledAt, TaskQueue: first.taskQueue,
	}
	if err := r.newValues(ctx).decodeInput(workflowID, first.input, &run.Input); err != nil {
		return nil, err
	}
	histories, err := r.followRun(ctx, first)
	isOne := func(h *history) bool { return h.runID == given.runID }
	if err == nil && !slices.ContainsFunc(histories, isOne) { // a run that was reset has copied what was before
		histories, err = r.followRun(ctx, given)
	}
	if err != nil {
		return nil, err
	}
	return run, r.readLoops(ctx, run, histories)
}

// followRun reads the histories of a run from the given one to the last.
func (r *Reader) followRun(ctx context.Context, h *history) ([]*history, error) {
	all := []*history{h}
	for h.nextRunID != "" {
		next, err := r.readHistory(ctx, h.workflowID, h.nextRunID)
		if err != nil {
			return nil, err
		}
		h, all = next, append(all, next)
	}
	return all, nil
}

// readLoops reads the loops of a run from its histories.
func (r *Reader) readLoops(ctx context.Context, run *Run, histories []*history) error {
	for _, h := range histories {
		run.EndedAt = h.endedAt
		for _, begun := range h.children {
			if begun.workflow != protocol.LoopWorkflowName {
				continue
			}
			if err := r.readOutlived(ctx, h, begun); err != nil {
				return err
			}
			loop, err := r.readLoop(ctx, begun)
			if err != nil {
				return err
			}
			run.Loops = append(run.Loops, loop)
		}
	}
	return nil
}

// readLoop reads how the iterations of a loop ended: from its result and, if that is incomplete, from the histories
// of its children.
func (r *Reader) readLoop(ctx context.Context, begun *child) (*Loop, error) {
	loop := &Loop{WorkflowID: begun.workflowID, input: begun.input, runID: begun.runID, succeeded: map[int]bool{}}
	if err := loop.identifyStep(); err != nil {
		return nil, err
	}
	var result interpreter.LoopResult
	known, err := r.newValues(ctx).decodeResult(begun, &result)
	if err != nil {
		return nil, err
	}
	if known && len(result.Errors) == result.Stats.Failed && result.Stats.Cancelled == 0 { // it says how every iteration ended
		loop.Failed, loop.Whole = result.Errors, true
		return loop, nil
	}
	if err := r.collectChildren(ctx, loop, begun.workflowID, begun.runID); err != nil {
		return nil, err
	}
	if known {
		loop.mergeResult(&result)
	}
	return loop, nil
}

// mergeResult adds what only the loop's result has: failures of iterations without a child, and the number of
// failures without a description.
func (l *Loop) mergeResult(result *interpreter.LoopResult) {
	known := map[int]bool{}
	for _, failure := range l.Failed {
		known[failure.Index] = true
	}
	for _, failure := range result.Errors {
		if !known[failure.Index] {
			l.Failed = append(l.Failed, failure)
		}
	}
	l.Lost = max(0, result.Stats.Failed-len(l.Failed))
}

// identifyStep sets step and visit from the workflow ID: run/step#visit.
func (l *Loop) identifyStep() error {
	name := l.WorkflowID[strings.LastIndex(l.WorkflowID, "/")+1:]
	step, visit, _ := strings.Cut(name, "#")
	number, err := strconv.Atoi(visit)
	if err != nil {
		return fmt.Errorf("the workflow ID %q is not that of a loop, which ends in /step#visit", l.WorkflowID)
	}
	l.Step, l.Visit = step, number
	return nil
}

// collectChildren collects the results of the children of a loop or shard.
func (r *Reader) collectChildren(ctx context.Context, loop *Loop, workflowID, runID string) error {
	if runID == "" {
		return nil // it has not started
	}
	h, err := r.readHistory(ctx, workflowID, runID)
	if err != nil {
		return err
	}
	for _, begun := range h.children {
		if err := r.readOutlived(ctx, h, begun); err != nil {
			return err
		}
		switch begun.workflow {
		case protocol.LoopWorkflowName:
			err = r.collectChildren(ctx, loop, begun.workflowID, begun.runID)
		case protocol.CallsWorkflowName:
			err = r.readIterations(ctx, loop, begun)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// readIterations collects the results of one batch.
func (r *Reader) readIterations(ctx context.Context, loop *Loop, begun *child) error {
	var output protocol.CallsOutput
	known, err := r.newValues(ctx).decodeResult(begun, &output)
	if err != nil || begun.end == nil {
		return err
	}
	if err := r.stoppedIn(ctx, loop, begun, known, output); err != nil {
		return err
	}
	var failed []interpreter.IterationResult
	for _, iteration := range output.Iterations {
		switch {
		case iteration.Cancelled:
		case iteration.Result.Failed():
			failed = append(failed, iteration)
		default:
			loop.succeeded[iteration.Index] = true
			loop.ended = append(loop.ended, iteration)
		}
	}
	if len(failed) == 0 && (known || wasCancelled(begun)) {
		return nil
	}
	return r.recordFailed(ctx, loop, begun, known, failed)
}

// stoppedIn records the iterations of a batch that began but did not end, or could not continue.
func (r *Reader) stoppedIn(ctx context.Context, loop *Loop, begun *child, reported bool, output protocol.CallsOutput) error {
	if !loop.findBegun {
		return nil
	}
	note := func(index int) {
		loop.begun = append(loop.begun, interpreter.BegunIteration{Index: index, By: begun.workflowID})
	}
	if reported {
		for _, iteration := range output.Iterations {
			if iteration.Cancelled || iteration.Result.Failed() && iteration.Result.Error.Type == call.TypeNotContinued {
				note(iteration.Index)
			}
		}
		return nil
	}
	var input protocol.CallsInput
	if err := r.newValues(ctx).decodeInput(begun.workflowID, begun.input, &input); err != nil {
		return err
	}
	for _, call := range input.Calls {
		note(*call.Index)
	}
	return nil
}

// wasCancelled reports whether a batch ended because its run was cancelled or terminated.
func wasCancelled(begun *child) bool {
	switch begun.end.GetEventType() {
	case enumspb.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_CANCELED, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED,
		enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT:
		return true
	}
	return false
}

// recordFailed records the failed iterations of a batch with their elements; if the batch ended without a result, all
// of its iterations.
func (r *Reader) recordFailed(
	ctx context.Context, loop *Loop, begun *child, known bool, failed []interpreter.IterationResult,
) error {
	var input protocol.CallsInput
	if err := r.newValues(ctx).decodeInput(begun.workflowID, begun.input, &input); err != nil {
		return err
	}
	elements := map[int]any{}
	for _, call := range input.Calls {
		elements[*call.Index] = call.Element.Data
		if !known {
			failed = append(failed, lostIteration(*call.Index, begun))
		}
	}
	loop.ended = append(loop.ended, failed...)
	for _, iteration := range failed {
		loop.Failed = append(loop.Failed, interpreter.NewLoopError(elements[iteration.Index], iteration))
	}
	return nil
}

// lostIteration returns the result of an iteration whose workflow was terminated, timed out or could not start.
func lostIteration(index int, begun *child) interpreter.IterationResult {
	ended := begun.end.GetEventTime().AsTime()
	return interpreter.IterationResult{Index: index, Result: interpreter.CallResult{
		Status: interpreter.StatusError,
		Error: &interpreter.ErrorObject{
			Kind: interpreter.KindTool, Class: interpreter.ClassRetryable, Type: "child_workflow",
			Message: fmt.Sprintf("the workflow %s ended without a result (%s)", begun.workflowID, begun.end.GetEventType()),
		},
		Meta: interpreter.CallMeta{StartedAt: ended, EndedAt: ended},
	}}
}

// LoopInput returns the input of a loop, with all its elements. For a loop over a source they are the elements given
// to shards; elements that were read but not given to a shard are in no input.
func (r *Reader) LoopInput(ctx context.Context, loop *Loop) (protocol.LoopInput, error) {
	var input protocol.LoopInput
	err := r.newValues(ctx).decodeInput(loop.WorkflowID, loop.input, &input)
	if err != nil || input.Source == nil {
		return input, err
	}
	shards, err := r.sourceShards(ctx, loop.WorkflowID, loop.runID)
	for _, shard := range shards {
		if missing := shard.Shard.First + len(shard.Elements) - len(input.Elements); missing > 0 {
			input.Elements = append(input.Elements, make([]expression.Value, missing)...)
		}
		copy(input.Elements[shard.Shard.First:], shard.Elements)
	}
	return input, err
}

// sourceShards returns the inputs of the shards that got elements of a source, from the workflow that reads the
// source and those in which it continued.
func (r *Reader) sourceShards(ctx context.Context, workflowID, runID string) ([]protocol.LoopInput, error) {
	if runID == "" {
		return nil, nil // it has not started
	}
	h, err := r.readHistory(ctx, workflowID, runID)
	if err != nil {
		return nil, err
	}
	var shards []protocol.LoopInput
	for _, begun := range h.children {
		var input protocol.LoopInput
		if err := r.newValues(ctx).decodeInput(begun.workflowID, begun.input, &input); err != nil {
			return nil, err
		}
		if input.Source == nil {
			shards = append(shards, input)
			continue
		}
		below, err := r.sourceShards(ctx, begun.workflowID, begun.runID)
		if err != nil {
			return nil, err
		}
		shards = append(shards, below...)
	}
	return shards, nil
}

// ChildOf returns the workflow ID of the child of a loop that ran an iteration; "" if the loop has no such iteration.
func (r *Reader) ChildOf(ctx context.Context, loop *Loop, of *playbook.Loop, task protocol.Task, index int) (string, error) {
	var input protocol.LoopInput
	if err := r.newValues(ctx).decodeInput(loop.WorkflowID, loop.input, &input); err != nil {
		return "", err
	}
	if input.Source == nil {
		size := len(input.Elements)
		if input.Chosen != nil {
			size = input.Chosen.Size
		}
		id, _ := protocol.IterationID(task, of, size, input.Chosen, index)
		return id, nil
	}
	shards, err := r.sourceShards(ctx, loop.WorkflowID, loop.runID)
	for _, shard := range shards {
		if at := index - shard.Shard.First; at >= 0 && at < len(shard.Elements) {
			return protocol.BatchID(task, index-at%of.BatchSize(shard.Shard.Size)), err
		}
	}
	return "", err
}

// Loop returns the loop of a step visit; nil if there is none.
func (run *Run) Loop(step string, visit int) *Loop {
	return lists.First(run.Loops, func(loop *Loop) bool { return loop.Step == step && loop.Visit == visit })
}

// Book parses the playbook of the run.
func (run *Run) Book() (*playbook.Playbook, error) {
	return interpreter.LoadPlaybook(run.Input.Name, run.Input.Source)
}

// Playbook returns the playbook of a run, which its first event holds. It makes one call to the server.
func (r *Reader) Playbook(ctx context.Context, run Found) (*playbook.Playbook, error) {
	book, _, err := r.ReadSource(ctx, run)
	return book, err
}

// ReadSource returns the playbook and the files that the run included, by name.
func (r *Reader) ReadSource(ctx context.Context, run Found) (*playbook.Playbook, map[string]string, error) {
	input, err := r.Input(ctx, run.WorkflowID, run.last)
	if err != nil {
		return nil, nil, err
	}
	book, err := (&Run{Input: input}).Book()
	if err != nil {
		return nil, nil, fmt.Errorf("read the playbook of %s: %w", run.WorkflowID, err)
	}
	return book, input.Files, nil
}

// StepNames returns the names of the steps in the playbook of a run. It makes one call to the server.
func (r *Reader) StepNames(ctx context.Context, run Found) ([]string, error) {
	book, err := r.Playbook(ctx, run)
	if err != nil {
		return nil, err
	}
	names := lists.Map(book.Steps, func(step *playbook.Step) string { return step.Name })
	return names, nil
}

// ErrNotFound means that the run does not exist, or that the server has deleted it.
var ErrNotFound = errors.New("there is no such run")

// Reader reads runs from Temporal. It is safe for concurrent use.
type Reader struct {
	Client client.Client
	Store  *payload.Store // of large values, nil for none
	// Namespace is the namespace of the client; only List, Find and Status need it.
	Namespace string
	// Patience bounds one query of a workflow: without a worker there is no answer, and a busy worker answers late.
	Patience time.Duration
}
