package protocol

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
	"reprise/interpreter/partition"
	"reprise/interpreter/playbook"
)

// The input of a child, and of a workflow's next history, was validated when the run began and is not validated
// again. A client that starts a workflow with such an input would bypass the validation, so each is refused unless
// the server confirms its origin: a child has a parent, and the state of a run contains the first run ID of its
// chain, which is unknown before that run has begun. The owner of a worker in the namespace can write both, but can
// do more than that anyway: such an input may fail the tasks of its own workflow.

// InvalidInput is the error type of a workflow whose input cannot have been written by a worker.
const InvalidInput = "invalid_input"

// InvalidPlaybook is the error type of a run whose playbook failed the validation.
const InvalidPlaybook = "invalid_playbook"

// Check returns an error if the playbook does not have the loops to run again, or if the elements cannot be a
// selection from their collections.
func (p *Reprocess) Check(book *playbook.Playbook) error {
	for _, again := range p.Loops {
		step := book.Step(again.Step)
		if step == nil || step.Loop == nil || step.Action == nil {
			return fmt.Errorf("playbook %s has no step %q with a loop whose iterations could run again", book.Name, again.Step)
		}
		if book.NeedsWholeLoop(step) {
			return fmt.Errorf("the rows of all iterations of step %q are published together, so some of them cannot run again alone", again.Step)
		}
		if again.Visit < 0 {
			return fmt.Errorf("visit %d of step %q", again.Visit, again.Step)
		}
		if err := cmp.Or(
			call.MapOrNil("args", again.Args), call.MapOrNil("vars", again.Vars), call.MapOrNil("steps", again.Steps),
			again.checkPositions(len(again.Elements)),
		); err != nil {
			return fmt.Errorf("step %q: %w", again.Step, err)
		}
	}
	return nil
}

// checkPositions returns an error for positions that n elements of a collection cannot have.
func (c *Subset) checkPositions(n int) error {
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

// PartitionRequest returns the request from which validation computes the run's partition. The result is in history
// and is used from then on, because time zone rules may have changed when the run is replayed.
func (in Input) PartitionRequest(ctx workflow.Context) *interpreter.PartitionRequest {
	request := interpreter.PartitionRequest{Key: in.Partition}
	var scheduled time.Time
	request.At, scheduled = workflow.GetInfo(ctx).WorkflowStartTime, ScheduledAt(ctx)
	switch {
	case in.Reprocess != nil:
		request.At, scheduled = in.Reprocess.Origin.StartedAt, in.Reprocess.Origin.ScheduledAt
	case in.Called != nil:
		scheduled = in.Called.ScheduledAt
	}
	if !scheduled.IsZero() && in.Partition == "" {
		request.At = scheduled
	}
	return &request
}

// RunMissing makes a backfill run the partitions that its validation found missing; nil, for other runs, changes
// nothing.
func (in *Input) RunMissing(missing *partition.Selection) {
	if missing == nil {
		return
	}
	keys := lists.Map(missing.Keys, func(key string) any { return key })
	in.Workload = expression.Of(expression.MergeMaps(in.Workload.Data, map[string]any{"keys": keys}))
	if len(keys) > 0 {
		in.Claim = &missing.Claim
	}
}

// ScheduledAt returns the time that a schedule started the run for; zero for runs without a schedule.
func ScheduledAt(ctx workflow.Context) time.Time {
	at, _ := workflow.GetTypedSearchAttributes(ctx).GetTime(temporal.NewSearchAttributeKeyTime(ScheduledAttribute))
	return at.UTC()
}

// InitialAttributes returns the search attributes of a run that another run starts.
func (in Input) InitialAttributes() []temporal.SearchAttributeUpdate {
	if !in.SearchAttributes {
		return nil
	}
	book, err := interpreter.LoadPlaybook(in.Name, in.Source)
	if err != nil {
		return nil // the validation refuses it
	}
	return []temporal.SearchAttributeUpdate{temporal.NewSearchAttributeKeyKeyword(PlaybookAttribute).ValueSet(book.Name)}
}

// InitialMemo returns the memo of a run that is started with this input; nil for none.
func (in Input) InitialMemo() map[string]any {
	if in.Partition == "" {
		return nil
	}
	return map[string]any{PartitionMemo: in.Partition}
}

// WithoutParent returns the input for a run that no step has started: without the data of a parent run and the
// files of the workers.
func (in Input) WithoutParent() Input {
	in.Called = nil
	files := maps.Clone(in.Files)
	maps.DeleteFunc(files, func(name, _ string) bool { return strings.HasPrefix(name, playbook.NamedScheme) })
	in.Files = files
	return in
}

// ParentRuns returns the parent runs, the root first; none for a root.
func (in Input) ParentRuns() []interpreter.Parent {
	if in.Called == nil {
		return nil
	}
	return in.Called.Parents
}
