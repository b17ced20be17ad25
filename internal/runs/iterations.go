package runs

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"reprise/interpreter"
	"reprise/workflows"
)

const (
	// mostAsked bounds the open children of a loop that are asked for their
	// iterations.
	mostAsked = 100
	// asking is how many of them at once.
	asking = 8
)

// Iteration is the state of an iteration.
type Iteration struct {
	Index int `json:"index"`
	// Child is the workflow ID of the run of another playbook that it has started last.
	Child string `json:"child,omitempty"`
	Under
	Item
}

// Iterations adds to one visit of a step with a loop the iterations that failed,
// wait or are under way, by index; those that went well or have not begun are only
// counted. They become the step's. It takes a call for
// the loop and each of its parts, one for each of at most a hundred children, and one
// for each of at most a hundred runs of other playbooks that they have started; of a run
// that has ended none.
func (r *Reader) Iterations(ctx context.Context, run *Status, step *Step) {
	if step.Loop == nil {
		return
	}
	if run.Ended() {
		step.takeFailed()
		return
	}
	asked := map[int]Iteration{}
	r.askLoop(ctx, run, step, asked)
	r.askOpen(ctx, run, step, asked)
	step.takeAsked(asked)
	r.under(ctx, run, step)
}

// takeFailed takes the failures of a run that has ended.
func (s *Step) takeFailed() {
	for _, failure := range s.failed {
		s.Iterations = append(s.Iterations, Iteration{Index: failure.Index, Item: Item{
			Status: interpreter.Failed, Attempt: failure.Attempts, Error: failure.Error,
		}})
	}
	s.Left = s.Loop.Failed - len(s.Iterations)
}

// askLoop asks a loop and its parts for the iterations that they know of.
func (r *Reader) askLoop(ctx context.Context, run *Status, step *Step, asked map[int]Iteration) {
	for ids := []string{step.Loop.WorkflowID}; len(ids) > 0; ids = ids[1:] {
		var answer workflows.Iterations
		progress, err := r.Progress(ctx, ids[0], "")
		if err == nil {
			err = r.ask(ctx, ids[0], "", workflows.IterationsQuery, &answer)
		}
		if err != nil {
			step.silent = true
			run.Notes = append(run.Notes, fmt.Sprintf("the loop of step %s gave no answer, so its iterations are not all here", step.Step))
			continue
		}
		take(asked, answer)
		step.Left += answer.Left
		ids = append(ids, progress.Parts...)
	}
}

// askOpen asks the open children of a loop, which know more than it.
func (r *Reader) askOpen(ctx context.Context, run *Status, step *Step, asked map[int]Iteration) {
	answers := make([]workflows.Iterations, min(len(step.open), mostAsked))
	var group errgroup.Group
	group.SetLimit(asking)
	for i := range answers {
		group.Go(func() error {
			if r.ask(ctx, step.open[i], "", workflows.IterationsQuery, &answers[i]) != nil {
				answers[i] = silent(step.open[i])
			}
			return nil
		})
	}
	_ = group.Wait()
	for _, answer := range answers {
		take(asked, answer)
	}
	step.Left += len(step.open) - len(answers)
	if len(answers) < len(step.open) || len(answers) == 0 {
		return
	}
	step.recount(answers)
	step.summarize(run.At)
	if run.Status != interpreter.Queued {
		run.Status, run.HeldBy = openStatus(run.Steps, run.Control.Paused || len(run.Above) > 0)
	}
}

// takeAsked takes what was asked for, by index.
func (s *Step) takeAsked(asked map[int]Iteration) {
	awaiting := 0
	for _, iteration := range asked {
		if iteration.Awaits != nil {
			awaiting++
		}
		if iteration.Status != interpreter.Completed {
			s.Iterations = append(s.Iterations, iteration)
		}
	}
	s.Loop.Awaiting = min(max(awaiting, s.Loop.Awaiting), s.Loop.Running)
	slices.SortFunc(s.Iterations, func(x, y Iteration) int { return cmp.Compare(x.Index, y.Index) })
}

// under looks into the runs that the iterations of a step have started.
func (r *Reader) under(ctx context.Context, run *Status, step *Step) {
	var looked atomic.Int64
	var group errgroup.Group
	group.SetLimit(asking)
	for i := range step.Iterations {
		iteration := &step.Iterations[i]
		if iteration.Child == "" || iteration.Status != interpreter.Running {
			continue
		}
		group.Go(func() error {
			iteration.Under, _ = r.look(ctx, iteration.Child, func() bool { return looked.Add(1) <= mostBelow })
			return nil
		})
	}
	_ = group.Wait()
	if looked.Load() > mostBelow {
		run.Notes = append(run.Notes, fmt.Sprintf("of the runs that step %s has started, %d were asked what they wait for", step.Step, mostBelow))
	}
}

// silent stands for the answer of a child that gave none, because it is about to
// begin or to end: all that is known is the index of its first element.
func silent(workflowID string) workflows.Iterations {
	index, err := strconv.Atoi(workflowID[strings.LastIndex(workflowID, "/")+1:])
	if err != nil {
		return workflows.Iterations{}
	}
	return workflows.Iterations{Iterations: []workflows.IterationRecord{{Index: index, CallStatus: interpreter.CallStatus{Status: interpreter.Running}}}}
}

func take(into map[int]Iteration, answer workflows.Iterations) {
	for _, record := range answer.Iterations {
		into[record.Index] = Iteration{Index: record.Index, Child: record.Child, Item: itemOf(record.CallStatus)}
	}
}
