package workflows

import (
	"cmp"
	"errors"
	"fmt"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/playbook"
)

// What a workflow hands to its children, and to its own next history, has passed
// the door once and is not checked there again. A client that starts a workflow
// with such an input of its own would walk around the door. Two things keep it
// from that. Only the server says who began a workflow: a child has a parent, and
// a next history the history before it, which no client can claim. And whoever
// began it, the input is held against the playbook before it is used.
//
// A panic is not turned into a failure anywhere: it may be the SDK's own, for a
// history that does not fit the code, or a mistake of ours, and then the task is
// tried again until a worker knows better. So the check has to leave nothing in an
// input that makes later code panic.

// InvalidInput is the type of the failure of a workflow whose input does not fit:
// no worker has written it.
const InvalidInput = "invalid_input"

func unfit(err error) error {
	return temporal.NewApplicationErrorWithOptions("the input of the workflow was refused: "+err.Error(), InvalidInput,
		temporal.ApplicationErrorOptions{NonRetryable: true})
}

// InvalidPlaybook is the type of the failure of a run whose playbook was
// refused at the door.
const InvalidPlaybook = "invalid_playbook"

func invalid(err error) error {
	return temporal.NewApplicationErrorWithOptions(err.Error(), InvalidPlaybook,
		temporal.ApplicationErrorOptions{NonRetryable: true})
}

var (
	errNotContinued = errors.New("it holds the state of a run, and no run goes on here; start a run without state")
	errNotCalled    = errors.New("it says that a step of another run has started it, or that a worker has found its files, and neither is so")
	errNoParent     = errors.New("it is a part of a run, and no run has started it; start " + PlaybookWorkflowName)
)

// part guards a workflow that only runs as a child.
func part[In, Out any](
	run func(workflow.Context, In, interpreter.Script) (Out, error),
) func(workflow.Context, In, interpreter.Script) (Out, error) {
	return func(ctx workflow.Context, input In, script interpreter.Script) (Out, error) {
		if workflow.GetInfo(ctx).ParentWorkflowExecution == nil {
			var none Out
			return none, unfit(errNoParent)
		}
		return run(ctx, input, script)
	}
}

// checkContinued holds the state that a run goes on with against what the server
// says of the run, and against its playbook. Every run of a schedule follows
// another, so there the server's word is the ID of the first run alone, which
// nobody knows before it has begun.
func checkContinued(ctx workflow.Context, book *playbook.Playbook, input Input) error {
	info, state := workflow.GetInfo(ctx), input.State
	switch {
	case info.ContinuedExecutionRunID == "":
		return errNotContinued
	case input.Reprocess == nil && info.ParentWorkflowExecution == nil && // a child may have the place of another run
		(state.Run.RunID != info.FirstRunID || state.Run.WorkflowID != info.WorkflowExecution.ID):
		return errNotContinued
	case input.Reprocess != nil && (info.CronSchedule != "" || !sameRun(state.Run, input.Reprocess.Origin)):
		return errNotContinued
	}
	return state.check(book, input.Reprocess)
}

func sameRun(a, b interpreter.RunInfo) bool {
	return a.WorkflowID == b.WorkflowID && a.RunID == b.RunID && a.Round == b.Round
}

// check holds the state of a run against its playbook.
func (s *RunState) check(book *playbook.Playbook, reprocess *Reprocess) error {
	loops := 0
	if reprocess != nil {
		loops = len(reprocess.Loops)
	}
	switch {
	case s.DeadLetters < 0 || s.Told < 0:
		return fmt.Errorf("%d dead letters, %d news", s.DeadLetters, s.Told)
	case s.Reprocessed < 0 || s.Reprocessed > loops:
		return fmt.Errorf("%d loops of %d have run again", s.Reprocessed, loops)
	case len(s.Records) > maxRecords:
		return fmt.Errorf("%d records of visits", len(s.Records))
	}
	return cmp.Or(
		s.Limits.Check(), s.Control.Check(), s.Data.Check(), s.Ticket.Check(book), interpreter.NewGraph(book).Check(s.Routing),
		s.checkUntold(book),
	)
}

// check holds what is to run again against the playbook.
func (p *Reprocess) check(book *playbook.Playbook) error {
	for _, again := range p.Loops {
		step := book.Step(again.Step)
		if step == nil || step.Loop == nil || step.Action == nil {
			return fmt.Errorf("playbook %s has no step %q with a loop, whose iterations are to run again", book.Name, again.Step)
		}
		task := Task{Step: again.Step, Visit: again.Visit, Args: again.Args, Data: interpreter.Data{
			Vars: again.Vars, Steps: again.Steps,
		}}
		if err := cmp.Or(task.Check(book, step), again.check(len(again.Elements))); err != nil {
			return fmt.Errorf("step %q: %w", again.Step, err)
		}
	}
	return nil
}

// check finds places that n elements of a collection cannot have.
func (c *Chosen) check(n int) error {
	switch {
	case len(c.Indexes) != n:
		return fmt.Errorf("%d places for %d elements", len(c.Indexes), n)
	case n == 0:
		return errors.New("none of the elements is chosen")
	}
	for i, index := range c.Indexes {
		if index < 0 || index >= c.Size || i > 0 && index <= c.Indexes[i-1] {
			return fmt.Errorf("an element has place %d of %d", index, c.Size)
		}
	}
	return nil
}

// check holds the input of a loop against its step.
func (l LoopInput) check(book *playbook.Playbook, step *playbook.Step) error {
	if step.Loop == nil {
		return fmt.Errorf("step %q has no loop", step.Name)
	}
	if err := cmp.Or(l.Task.Check(book, step), l.SinkData.Check(), l.Control.Check()); err != nil {
		return err
	}
	if l.Chosen != nil {
		if err := l.Chosen.check(len(l.Elements)); err != nil {
			return err
		}
	}
	if l.Part == nil {
		return nil
	}
	p, most := *l.Part, l.Part.Size-len(l.Elements)
	if l.Chosen != nil {
		most = l.Chosen.Size // Size is how many were chosen, First a place in the collection
	}
	if p.First < 0 || p.First > most || p.Success < 0 || p.Failed < 0 || p.Success > p.Size-p.Failed {
		return fmt.Errorf("a part with %d elements from %d of %d, of which %d succeeded and %d failed",
			len(l.Elements), p.First, p.Size, p.Success, p.Failed)
	}
	return p.Shared.check()
}

// check holds the input of calls against their step.
func (c CallsInput) check(book *playbook.Playbook, step *playbook.Step) error {
	switch {
	case len(c.Calls) == 0:
		return errors.New("there are no calls")
	case step.Loop == nil && len(c.Calls)+len(c.Ended) > 1:
		return fmt.Errorf("step %q has no loop", step.Name)
	case c.Known != nil && (c.Known.Size < 0 || c.Known.Success < 0 || c.Known.Failed < 0):
		return fmt.Errorf("a loop of %d, of which %d succeeded and %d failed", c.Known.Size, c.Known.Success, c.Known.Failed)
	}
	for _, ended := range c.Ended {
		if err := ended.Result.Check(); err != nil && !ended.Cancelled {
			return fmt.Errorf("iteration %d: %w", ended.Index, err)
		}
	}
	return cmp.Or(c.Task.Check(book, step, c.Calls...), c.Control.Check())
}

// handed is the input of a workflow that runs a part of a run.
type handed interface {
	check(book *playbook.Playbook, step *playbook.Step) error
}

// load compiles a task's playbook, finds its step, and holds the input against
// them.
func load(task Task, input handed) (*playbook.Playbook, *playbook.Step, error) {
	book, step, err := task.Load()
	if err != nil {
		return nil, nil, invalid(err)
	}
	if err := input.check(book, step); err != nil {
		return nil, nil, unfit(err)
	}
	return book, step, nil
}
