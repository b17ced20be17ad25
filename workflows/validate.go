package workflows

import (
	"cmp"
	"errors"
	"fmt"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"reprise/interpreter/call"
	"reprise/interpreter/playbook"
)

// The input of children, and of a workflow's own next history, was validated when the
// run began and is not validated again. A client that starts a workflow with such an
// input of its own would avoid the validation, so each is refused unless the server
// vouches for it: a child has a parent, and the state of a run names the first run ID
// of its chain, which is unknown before that run has begun. The owner of a worker in
// the namespace can write both, and can do more than that anyway: such an input may
// fail the tasks of its own workflow.

// InvalidInput is the type of the failure of a workflow whose input does not fit:
// no worker has written it.
const InvalidInput = "invalid_input"

func unfit(err error) error {
	return temporal.NewApplicationErrorWithOptions("the input of the workflow was refused: "+err.Error(), InvalidInput,
		temporal.ApplicationErrorOptions{NonRetryable: true})
}

// InvalidPlaybook is the type of the failure of a run whose playbook was refused by the
// validation.
const InvalidPlaybook = "invalid_playbook"

func invalid(err error) error {
	return temporal.NewApplicationErrorWithOptions(err.Error(), InvalidPlaybook,
		temporal.ApplicationErrorOptions{NonRetryable: true})
}

var (
	errNotContinued = errors.New("it holds the state of a run, and no run continues here; start a run without state")
	errNotCalled    = errors.New("it says that a step of another run has started it, or that a worker has found its files, and neither is so")
	errNoParent     = errors.New("it is a part of a run, and no run has started it; start " + PlaybookWorkflowName)
)

// childOnly guards a workflow that only runs as a child.
func childOnly[In, Out any](
	run func(workflow.Context, In, call.Script) (Out, error),
) func(workflow.Context, In, call.Script) (Out, error) {
	return func(ctx workflow.Context, input In, script call.Script) (Out, error) {
		if workflow.GetInfo(ctx).ParentWorkflowExecution == nil {
			var none Out
			return none, unfit(errNoParent)
		}
		return run(ctx, input, script)
	}
}

// checkContinued refuses the state of a run that was not written by the history before
// this one. Cron schedules and retries follow other histories too, with the input that
// a client has written.
func checkContinued(ctx workflow.Context, state *RunState) error {
	info := workflow.GetInfo(ctx)
	if info.ContinuedExecutionRunID == "" || state.First == "" || state.First != info.FirstRunID {
		return errNotContinued
	}
	return nil
}

// check refuses a request to run iterations again where the playbook has no such loop,
// or the elements are not a choice from its collection.
func (p *Reprocess) check(book *playbook.Playbook) error {
	for _, again := range p.Loops {
		step := book.Step(again.Step)
		if step == nil || step.Loop == nil || step.Action == nil {
			return fmt.Errorf("playbook %s has no step %q with a loop, whose iterations are to run again", book.Name, again.Step)
		}
		if len(book.StagingSinks(step)) > 0 || book.Stages(step.Sink) {
			return fmt.Errorf("the rows of all iterations of step %q are published together, so that some of them cannot run again alone", again.Step)
		}
		if again.Visit < 0 {
			return fmt.Errorf("visit %d of step %q", again.Visit, again.Step)
		}
		if err := cmp.Or(
			call.MapOrNil("args", again.Args), call.MapOrNil("vars", again.Vars), call.MapOrNil("steps", again.Steps),
			again.check(len(again.Elements)),
		); err != nil {
			return fmt.Errorf("step %q: %w", again.Step, err)
		}
	}
	return nil
}

// check finds positions that n elements of a collection cannot have.
func (c *Chosen) check(n int) error {
	switch {
	case len(c.Indexes) != n:
		return fmt.Errorf("%d indexes for %d elements", len(c.Indexes), n)
	case n == 0:
		return errors.New("none of the elements is chosen")
	}
	for i, index := range c.Indexes {
		if index < 0 || index >= c.Size || i > 0 && index <= c.Indexes[i-1] {
			return fmt.Errorf("an element has index %d of %d", index, c.Size)
		}
	}
	return nil
}

// load compiles a task's playbook and finds its step.
func load(task Task) (*playbook.Playbook, *playbook.Step, error) {
	book, step, err := task.Load()
	if err != nil {
		return nil, nil, invalid(err)
	}
	return book, step, nil
}
