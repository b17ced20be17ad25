// Package deadletter finds failed and cancelled iterations of runs, and what became of them. It reads the histories
// that Temporal stores, so it finds them for as long as those exist, even after a run was terminated.
package deadletter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"reprise/internal/observe/runs"
	"reprise/interpreter"
	"reprise/interpreter/call/sink"
	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
	"reprise/workflows/protocol"
)

// The states of a dead letter.
const (
	Open         = "open"         // it failed, and nothing has come after
	Cancelled    = "cancelled"    // it never failed: it was cancelled, or did not begin
	Reprocessing = "reprocessing" // it runs again
	Resolved     = "resolved"     // it ran again and succeeded
)

// Letter is a dead letter and what became of it. It may also be a cancelled iteration, which is not a dead letter but
// can be run again like one.
type Letter struct {
	ID string `json:"id"` // of the iteration: run/step#visit/index
	sink.DeadLetter
	State string `json:"state"`
	// FailedRuns counts the runs in which it failed: the run itself and its reprocesses.
	FailedRuns int `json:"failed_runs"`
	// FailedIn is the workflow ID of the run in which it failed last; "" if it never failed.
	FailedIn string `json:"failed_in"`
}

// WasCancelled reports whether the iteration was cancelled and never failed, so that it is not a dead letter.
func (l Letter) WasCancelled() bool { return l.Error.Kind == interpreter.KindCancelled }

// Reader reads dead letters. It is safe for concurrent use.
type Reader struct{ runs.Reader }

// Chain is a run with its reprocesses, and their dead letters.
type Chain struct {
	Origin  *runs.Run
	Rounds  []*runs.Run
	Letters []Letter // newest first
	// Cancelled are the iterations that neither failed nor succeeded in any run, newest first: they were cancelled,
	// were not started, or were running when the run was terminated. Empty while the origin is running.
	Cancelled []Letter
	// Lost counts failed iterations that are no longer in any history.
	Lost int
}

// RoundID returns the workflow ID of a run's nth reprocess.
func RoundID(workflowID, runID string, n int) string { return protocol.RoundID(workflowID, runID, n) }

// Chain reads a run and its reprocesses. The run may be given as one of its reprocesses.
func (r *Reader) Chain(ctx context.Context, workflowID, runID string) (*Chain, error) {
	origin, err := r.Run(ctx, workflowID, runID)
	if err != nil {
		return nil, err
	}
	if again := origin.Input.Reprocess; again != nil {
		if origin, err = r.Run(ctx, again.Origin.WorkflowID, again.Origin.RunID); err != nil {
			return nil, fmt.Errorf("read the run that %s reprocesses: %w", workflowID, err)
		}
	}
	chain := &Chain{Origin: origin}
	for {
		round, err := r.Run(ctx, RoundID(origin.WorkflowID, origin.RunID, len(chain.Rounds)+1), "")
		if errors.Is(err, runs.ErrNotFound) {
			break
		}
		if err != nil {
			return nil, err
		}
		chain.Rounds = append(chain.Rounds, round)
	}
	return chain, r.gatherLetters(ctx, chain)
}

// RunningReprocess returns the last reprocess if it is open, else nil.
func (c *Chain) RunningReprocess() *runs.Run {
	if n := len(c.Rounds); n > 0 && !c.Rounds[n-1].Closed() {
		return c.Rounds[n-1]
	}
	return nil
}

// iterationKey identifies an iteration in all runs of a chain.
type iterationKey struct {
	step         string
	visit, index int
}

func (r *Reader) gatherLetters(ctx context.Context, c *Chain) error {
	letters := map[iterationKey]*Letter{}
	for n, run := range append([]*runs.Run{c.Origin}, c.Rounds...) {
		for _, loop := range run.Loops {
			c.Lost += loop.Lost
			book, err := run.Book() // one that was refused has no loops
			if err != nil {
				return err
			}
			for _, failure := range loop.Failed {
				c.addFailed(letters, run, loop, failure, book)
			}
			if n == 0 && run.Closed() {
				if err := r.addCancelled(ctx, c, letters, loop, book); err != nil {
					return err
				}
			}
		}
		if n > 0 {
			c.settleLetters(letters, run)
		}
	}
	for _, letter := range letters {
		if letter.WasCancelled() {
			c.Cancelled = append(c.Cancelled, *letter)
		} else {
			c.Letters = append(c.Letters, *letter)
		}
	}
	slices.SortFunc(c.Letters, CompareNewest)
	slices.SortFunc(c.Cancelled, CompareNewest)
	return nil
}

// addCancelled records the iterations of a loop that neither failed nor succeeded. The origin must have ended.
func (r *Reader) addCancelled(
	ctx context.Context, c *Chain, letters map[iterationKey]*Letter, loop *runs.Loop, book *playbook.Playbook,
) error {
	if loop.Whole {
		return nil
	}
	input, err := r.LoopInput(ctx, loop)
	if err != nil {
		return err
	}
	for at, element := range input.Elements {
		index := indexAt(input, at)
		at := iterationKey{loop.Step, loop.Visit, index}
		if letters[at] != nil || loop.Succeeded(index) {
			continue
		}
		letters[at] = &Letter{ID: c.letterID(at), State: Cancelled, DeadLetter: sink.DeadLetter{
			ExecutionID: c.Origin.WorkflowID, RunID: c.Origin.RunID, Playbook: book.Name, PlaybookHash: book.Hash,
			Step: loop.Step, Visit: loop.Visit, Index: index, Element: element, LastAttemptAt: c.Origin.EndedAt,
			Error: &interpreter.ErrorObject{
				Kind: interpreter.KindCancelled, Class: interpreter.ClassFinal, Message: "it was cancelled before it ended",
			},
		}}
	}
	return nil
}

// indexAt returns the index of an element from its position in a loop's input, which may hold only some elements of
// the collection.
func indexAt(input protocol.LoopInput, position int) int {
	if input.Chosen != nil {
		return input.Chosen.Indexes[position]
	}
	return position
}

// letterID returns the ID of an iteration's letter.
func (c *Chain) letterID(at iterationKey) string {
	return fmt.Sprintf("%s/%s#%d/%d", c.Origin.WorkflowID, at.step, at.visit, at.index)
}

// addFailed records a failure of an iteration, the first or a repeated one.
func (c *Chain) addFailed(
	letters map[iterationKey]*Letter, run *runs.Run, loop *runs.Loop, failure interpreter.LoopError, book *playbook.Playbook,
) {
	at := iterationKey{loop.Step, loop.Visit, failure.Index}
	letter := letters[at]
	if letter == nil {
		letter = &Letter{ID: c.letterID(at)}
		letters[at] = letter
	}
	letter.DeadLetter = sink.DeadLetter{
		ExecutionID: c.Origin.WorkflowID, RunID: c.Origin.RunID, Playbook: book.Name, PlaybookHash: book.Hash,
		Step: loop.Step, Visit: loop.Visit, Index: failure.Index, Element: failure.Element,
		Attempts: failure.Attempts, LastAttemptAt: failure.LastAttemptAt, Error: failure.Error,
	}
	letter.State, letter.FailedIn = Open, run.WorkflowID
	letter.FailedRuns++
}

// settleLetters updates the state of iterations that did not fail in a reprocess. Cancelled iterations keep theirs, and are as recent
// as the last run that has cancelled them.
func (c *Chain) settleLetters(letters map[iterationKey]*Letter, run *runs.Run) {
	for _, again := range run.Input.Reprocess.Loops {
		loop := run.Loop(again.Step, again.Visit) // nil where it has not begun
		for _, index := range again.Indexes {
			letter := letters[iterationKey{again.Step, again.Visit, index}]
			switch {
			case letter == nil || letter.FailedIn == run.WorkflowID:
			case loop != nil && loop.Succeeded(index):
				letter.State = Resolved
			case !run.Closed():
				letter.State = Reprocessing
			case letter.WasCancelled():
				letter.LastAttemptAt = run.EndedAt // again
			}
		}
	}
}

// CompareNewest orders letters by the time of their last attempt, newest first, then by their place.
func CompareNewest(x, y Letter) int {
	return cmp.Or(y.LastAttemptAt.Compare(x.LastAttemptAt), cmp.Compare(x.ExecutionID, y.ExecutionID),
		cmp.Compare(x.Step, y.Step), cmp.Compare(x.Visit, y.Visit), cmp.Compare(x.Index, y.Index))
}

// FailedChild returns the workflow whose history holds the last failure of an iteration: its own, or that of its
// batch. It is "" for an iteration that has not failed.
func (r *Reader) FailedChild(ctx context.Context, c *Chain, letter Letter) (string, error) {
	for _, run := range append([]*runs.Run{c.Origin}, c.Rounds...) {
		loop := run.Loop(letter.Step, letter.Visit)
		if run.WorkflowID != letter.FailedIn || loop == nil {
			continue
		}
		book, err := run.Book()
		if err != nil {
			return "", err
		}
		task := protocol.Task{ID: run.WorkflowID, Step: letter.Step, Visit: letter.Visit}
		return r.ChildOf(ctx, loop, book.Step(letter.Step).Loop, task, letter.Index)
	}
	return "", nil
}

// Filter selects dead letters; its zero value selects all that are not resolved.
type Filter struct {
	Step  string
	Class interpreter.Class
	Since time.Time // of the last attempt, and for cancelled iterations of the end of the last run that cancelled them
	// All also selects resolved letters.
	All bool
	// Cancelled also selects cancelled iterations; they have no error class.
	Cancelled bool
}

// Matches reports whether the filter selects a letter.
func (f Filter) Matches(letter Letter) bool {
	return (f.All || letter.State != Resolved) &&
		(f.Step == "" || letter.Step == f.Step) &&
		(f.Class == "" || letter.WasCancelled() || letter.Error.Class == f.Class) &&
		!letter.LastAttemptAt.Before(f.Since)
}

// Select returns the letters that a filter selects, newest first.
func (c *Chain) Select(filter Filter) []Letter {
	all := slices.Clone(c.Letters)
	if filter.Cancelled {
		all = append(all, c.Cancelled...)
		slices.SortFunc(all, CompareNewest)
	}
	return slices.DeleteFunc(all, func(letter Letter) bool { return !filter.Matches(letter) })
}

// CountCancelled counts the cancelled iterations that a filter would select with Cancelled set, without those that a
// reprocess is running.
func (c *Chain) CountCancelled(filter Filter) int {
	n := 0
	for _, letter := range c.Cancelled {
		if letter.State == Cancelled && filter.Matches(letter) {
			n++
		}
	}
	return n
}

// UnfitError says why a playbook cannot run the iterations of another one.
type UnfitError struct{ Reason string }

func (e *UnfitError) Error() string { return e.Reason }

// PlanReprocess plans the next reprocess: the iterations of the letters, as the origin numbered them, with a playbook
// that may differ from the origin's. An *UnfitError says why the playbook cannot run them.
func (r *Reader) PlanReprocess(
	ctx context.Context, chain *Chain, letters []Letter, book *playbook.Playbook,
) (*protocol.Reprocess, error) {
	before, err := chain.Origin.Book()
	if err != nil {
		return nil, err
	}
	origin := chain.Origin
	plan := &protocol.Reprocess{Origin: interpreter.RunInfo{
		WorkflowID: origin.WorkflowID, RunID: origin.RunID, StartedAt: origin.StartedAt, Playbook: book.Name,
		Round: len(chain.Rounds) + 1, ScheduledAt: origin.ScheduledAt,
	}}
	if called := origin.Input.Called; called != nil {
		plan.Origin.Key, plan.Origin.Lap = called.Key, called.Lap
	}
	for _, loop := range origin.Loops {
		indexes := indexesOf(loop, letters)
		if len(indexes) == 0 {
			continue
		}
		if err := stepFits(before, book, loop.Step); err != nil {
			return nil, err
		}
		again, err := r.iterationsOf(ctx, loop, indexes)
		if err != nil {
			return nil, err
		}
		again.Stopped = chain.hasStopped(loop)
		plan.Loops = append(plan.Loops, again)
	}
	return plan, nil
}

// hasStopped reports whether a loop ended before all of its iterations in any run of the chain.
func (c *Chain) hasStopped(of *runs.Loop) bool {
	return slices.ContainsFunc(append([]*runs.Run{c.Origin}, c.Rounds...), func(run *runs.Run) bool {
		loop := run.Loop(of.Step, of.Visit)
		return loop != nil && !loop.Whole
	})
}

func indexesOf(loop *runs.Loop, letters []Letter) []int {
	indexes := lists.Pick(letters, func(letter Letter) (int, bool) {
		return letter.Index, letter.Step == loop.Step && letter.Visit == loop.Visit
	})
	slices.Sort(indexes)
	return indexes
}

// stepFits returns an error if a playbook's step cannot run the iterations of the origin's.
func stepFits(before, book *playbook.Playbook, name string) error {
	if step := book.Step(name); step == nil || step.Loop == nil {
		return &UnfitError{fmt.Sprintf("the playbook has no step %q with a loop; that is where the iterations belong", name)}
	}
	if book.NeedsWholeLoop(book.Step(name)) {
		return &UnfitError{fmt.Sprintf("step %s replaces the rows of a table or path by those of the whole loop, or deletes those that it has not read, "+
			"so its iterations cannot run again alone; run the playbook again", name)}
	}
	if missing := interpreter.UncapturedNames(before, book, name); len(missing) > 0 {
		return &UnfitError{fmt.Sprintf("step %s names %v, which it did not name when its iterations ran, "+
			"so the run has not kept it for them; put the value into the workload, and give it with --set", name, missing)}
	}
	return nil
}

// iterationsOf returns the elements of iterations in the loop of the origin.
func (r *Reader) iterationsOf(ctx context.Context, loop *runs.Loop, indexes []int) (protocol.ReprocessLoop, error) {
	input, err := r.LoopInput(ctx, loop)
	if err != nil {
		return protocol.ReprocessLoop{}, err
	}
	again := protocol.ReprocessLoop{
		Step: loop.Step, Visit: loop.Visit, Args: input.Task.Args,
		Vars:   mergeValues(input.Task.Data.Vars, input.SinkData.Vars),
		Steps:  mergeValues(input.Task.Data.Steps, input.SinkData.Steps),
		Subset: protocol.Subset{Indexes: indexes, Size: len(input.Elements)},
	}
	if input.Chosen != nil {
		again.Size = input.Chosen.Size
	}
	for at, element := range input.Elements {
		if slices.Contains(indexes, indexAt(input, at)) {
			again.Elements = append(again.Elements, element)
		}
	}
	return again, nil
}

func mergeValues(base, overlay expression.Value) expression.Value {
	switch {
	case overlay.Data == nil:
		return base
	case base.Data == nil:
		return overlay
	}
	return expression.Of(expression.MergeMaps(base.Data, overlay.Data))
}
