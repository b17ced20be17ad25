package workflows

import (
	"fmt"

	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
)

// A loop that does not fit one history is a tree: its inner workflows run their
// parts one after another, and only leaves start iterations. No history then
// grows with the loop, and each result is carried up once.
const (
	// leafBatches is how many children a leaf may have. A sequential loop adds
	// nine events for each.
	leafBatches = 400
	// fanParts is how many parts an inner workflow has at most. Their inputs
	// and results are all it holds.
	fanParts = 12

	// leafElements is how many elements a loop may have that starts its iterations
	// itself. A part ends early and hands the rest back; a whole loop cannot, and
	// would hold the results of its parts beside those of its own iterations.
	leafElements = 5000

	// heavyTask is the size, in bytes, from which what all children of a loop get
	// decides how many a history holds.
	heavyTask = 64_000

	// fullHistory is what a leaf may come to with what is still to be written to
	// its history: what the children under way give, and its own result.
	fullHistory = 3_700_000
)

// full reports whether a leaf starts no more children.
func (l *loop) full(ctx workflow.Context) bool {
	expected := workflow.GetInfo(ctx).GetCurrentHistorySize() + (l.window.open+1)*l.largest +
		outboxOf(ctx).limits.Carried(l.bytes)
	return historyIsLong(ctx) || expected > fullHistory
}

// weigh notes how much a child has given.
func (l *loop) weigh(ctx workflow.Context, output IterationOutput) {
	size := interpreter.EncodedSize(output)
	l.largest = max(l.largest, outboxOf(ctx).limits.Carried(size))
	l.bytes += size
}

// room is how many children a leaf may have, and how many parts another workflow
// of the tree: fewer where each of them gets a large playbook or large values.
func (l *loop) room(ctx workflow.Context) (leaf, parts int) {
	size := outboxOf(ctx).carried(l.input.Task)
	if size < heavyTask {
		return leafBatches, fanParts
	}
	room := largeHistory/size - 1 // the workflow's own input is as large
	return max(room, 1), min(fanParts, max(room, 2))
}

// partSize is how many elements a part of n has: whole batches, and few enough
// parts for one history.
func (l *loop) partSize(ctx workflow.Context, n int) int {
	leaf, parts := l.room(ctx)
	batches := (n + l.batchSize() - 1) / l.batchSize()
	perPart := max(leaf, (batches+parts-1)/parts)
	return min(n, perPart*l.batchSize())
}

// runParts runs the elements from the given place on, part by part.
func (l *loop) runParts(ctx workflow.Context, from int) {
	size := l.partSize(ctx, len(l.input.Elements)-from)
	for from < len(l.input.Elements) && ctx.Err() == nil && l.result.Budget == nil {
		end := min(from+size, len(l.input.Elements))
		done := l.runPart(ctx, from, end)
		if done == 0 {
			return
		}
		from += done
	}
}

// runPart runs the elements from first up to end in a workflow of their own and
// gives how many of them are accounted for.
func (l *loop) runPart(ctx workflow.Context, first, end int) int {
	index, known := l.index(first), l.known()
	input := LoopInput{
		Task: l.controls.task(l.input.Task), Elements: l.input.Elements[first:end], Chosen: l.input.Chosen.part(first, end),
		Part: &Part{
			First: index, Size: l.part.Size, Success: known.Success, Failed: known.Failed,
		},
		Control: l.controls.Control,
	}
	name := fmt.Sprintf("/part-%d", index)
	if l.input.Part != nil && l.part.First == index {
		name += fmt.Sprintf("-%d", end-first) // the first part of a part
	}
	id := childID(l.input.Task, name)
	l.below = id
	l.describe(ctx)
	defer func() { l.below = "" }()
	summary := fmt.Sprintf("%s: iterations %d–%d of %d", l.step.Name, index, l.index(end-1), l.size())
	to := toChild(LoopWorkflowName, id, summary, takesAll).with(describePart(l.book, l.input.Task))
	result, err := send[interpreter.LoopResult](ctx, to, input,
		fmt.Sprintf("the part of step %s from iteration %d", l.step.Name, index))
	switch {
	case err == nil:
	case givenUp(ctx, err):
		return 0
	default:
		l.failAll(ctx, l.carried(first, end), childError(err))
		return end - first
	}
	l.result.Merge(first, &result)
	if result.Next > 0 {
		return result.Next
	}
	return end - first
}

// part is the choice for the elements from first up to end.
func (c *Chosen) part(first, end int) *Chosen {
	if c == nil {
		return nil
	}
	return &Chosen{Indexes: c.Indexes[first:end], Size: c.Size}
}
