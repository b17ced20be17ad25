package loop

import (
	"fmt"
	"slices"

	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
	"reprise/workflows/drive"
	"reprise/workflows/gate"
	"reprise/workflows/protocol"
)

// A loop that does not fit into one history is a tree: its inner workflows run shards one after another, and only
// leaves start iterations. So no history grows with the loop, and each result is copied to one parent. A shard that
// has nothing left to start lingers while the next one begins: it keeps the part of the loop's window that it still
// uses, and the next one gets the rest.
const (
	// heavyTask is the size of a task, in bytes, above which it reduces the number of children in a history, since
	// every child gets it.
	heavyTask = 64_000

	// fullHistory bounds the history of a leaf, including what is still to be written: the results of running
	// children and its own.
	fullHistory = 3_700_000
)

// isFull reports whether a leaf must not start further children.
func (l *Loop) isFull(ctx workflow.Context) bool {
	expected := workflow.GetInfo(ctx).GetCurrentHistorySize() + (l.window.open+1)*l.largest +
		gate.OutboxOf(ctx).Limits.InlineSize(l.bytes)
	return gate.HistoryIsLong(ctx) || expected > fullHistory
}

// weighOutput records the size of a child's output.
func (l *Loop) weighOutput(ctx workflow.Context, output protocol.CallsOutput) {
	size := interpreter.EncodedSize(output)
	l.largest = max(l.largest, gate.OutboxOf(ctx).Limits.InlineSize(size))
	l.bytes += size
}

// childCapacity returns how many children a leaf may have, and how many shards an inner workflow: fewer if each of them
// gets a large playbook or large values.
func (l *Loop) childCapacity(ctx workflow.Context) (leaf, shards int) {
	size := gate.OutboxOf(ctx).TaskBytes(l.Input.Task)
	if size < heavyTask {
		return interpreter.LeafBatches, interpreter.FanShards
	}
	room := gate.LargeHistory/size - 1 // the workflow's own input is as large
	return max(room, 1), min(interpreter.FanShards, max(room, 2))
}

// shardSize returns the number of elements in each shard of n elements.
func (l *Loop) shardSize(ctx workflow.Context, n int) int {
	leaf, shards := l.childCapacity(ctx)
	return interpreter.ShardSize(n, l.batchSize(), leaf, shards)
}

// lingering is the signal of a shard to its loop that it has nothing left to start, with what it still uses of the
// loop's window. It is sent again when it uses less. Kept in workflow history.
type lingering struct {
	First int `json:"first"` // index of the shard's first element
	// ID is the workflow ID of a shard that reads the source of the loop, since several may have no element. Source
	// is the snapshot from which the next one reads on.
	ID     string                `json:"id,omitempty"`
	Source *call.Snapshot        `json:"source,omitempty"`
	Next   int                   `json:"next"` // number of elements that it handles
	Shared protocol.SharedWindow `json:"shared"`
}

// openShard is a shard of a loop that has not ended.
type openShard struct {
	id         string
	first, end int // positions of its elements
	elements   []expression.Value
	reads      *protocol.LoopSource // the part of the source that it reads, instead of elements; nil for none
	source     *call.Snapshot       // the snapshot from which the next shard reads on; nil until it is reported
	// next is the number of its elements that the shard handles, which is less than all if its history gets long;
	// known once it lingers or has ended.
	next    int
	lingers bool
	uses    protocol.SharedWindow // what it uses of the loop's window while it lingers
	sent    protocol.SharedWindow // what the others use, as last signalled to the shard
	ended   bool
	gaveUp  bool
}

// runShards runs the elements from a position on, shard by shard. A shard whose last iterations wait, or of which
// only a few still run, does not delay the next one.
func (l *Loop) runShards(ctx workflow.Context, from int) {
	size := l.shardSize(ctx, len(l.Input.Elements)-from)
	for from < len(l.Input.Elements) && ctx.Err() == nil && l.Result.Budget == nil {
		p := l.newShard(from, min(from+size, len(l.Input.Elements)))
		l.describeLoop(ctx)
		workflow.Go(ctx, func(ctx workflow.Context) {
			l.runShard(ctx, p)
			l.endShard(ctx, p)
		})
		l.waitUntil(ctx, func() bool { return p.ended || p.lingers })
		if p.gaveUp {
			break
		}
		from += p.next
	}
	l.started = from
	l.waitUntil(ctx, func() bool { return len(l.shards) == 0 })
}

// newShard opens a shard for the elements from first up to end.
func (l *Loop) newShard(first, end int) *openShard {
	index := l.indexAt(first)
	name := fmt.Sprintf("/shard-%d", index)
	if l.Input.Shard != nil && l.Shard.First == index {
		name += fmt.Sprintf("-%d", end-first) // the first shard of a shard
	}
	return l.openShard(&openShard{id: protocol.ChildID(l.Input.Task, name), first: first, end: end, elements: l.Input.Elements[first:end]})
}

// openShard opens a shard, which gets the unused part of the window.
func (l *Loop) openShard(p *openShard) *openShard {
	p.sent = l.usedWindow()
	l.shards = append(l.shards, p)
	return p
}

// runShard runs a shard in a child workflow and merges its result.
func (l *Loop) runShard(ctx workflow.Context, p *openShard) {
	index, known := l.indexAt(p.first), l.knownCounts()
	input := protocol.LoopInput{
		Task: l.controls.WithControls(l.Input.Task), Elements: p.elements, Source: p.reads, Chosen: l.Input.Chosen.SliceOf(p.first, p.end),
		Shard: &protocol.Shard{
			First: index, Size: l.Shard.Size, Open: l.Shard.Open, Success: known.Success, Failed: known.Failed,
			MayLinger: shardsLinger(l), Shared: p.sent,
		},
		Control: l.controls.Control, Begun: drive.BegunBetween(l.Input.Begun, index, l.indexAt(p.end-1)), Reserves: l.Input.Reserves,
	}
	summary := fmt.Sprintf("%s: iterations %d–%d of %s", l.step.Name, index, l.indexAt(p.end-1), sizeText(l))
	if p.reads != nil {
		summary = fmt.Sprintf("%s: continues to read the source at iteration %d", l.step.Name, index)
	}
	to := gate.ToChild(protocol.LoopWorkflowName, p.id, l.step.Name, summary, func(protocol.Steering) bool { return true })
	to.Details = protocol.DescribeChild(l.book, l.Input.Task)
	result, err := gate.Send[interpreter.LoopResult](ctx, to, input,
		fmt.Sprintf("the shard of step %s from iteration %d", l.step.Name, index))
	if !p.lingers {
		p.next = p.end - p.first
	}
	if err == nil && p.reads != nil {
		l.Result.AddElements(result.Stats.Total)
		result.Next = result.Stats.Total
	}
	switch {
	case err == nil:
		l.Result.MergeShard(p.first, &result)
		if result.Next > 0 {
			p.next = result.Next
		}
	case protocol.IsOwnCancel(ctx, err):
		p.gaveUp = true
	default:
		l.AddTerminated(ctx, p.id, protocol.ChildError(err))
	}
}

// endShard closes a shard, and leaves its part of the window to the others.
func (l *Loop) endShard(ctx workflow.Context, p *openShard) {
	p.ended = true
	l.shards = slices.DeleteFunc(l.shards, func(other *openShard) bool { return other == p })
	l.shareWindow(ctx)
	l.describeLoop(ctx)
}

// listenForShards records which shards linger, and what they use.
func (l *Loop) listenForShards(ctx workflow.Context) {
	gate.HandleSignal(ctx, protocol.LingerSignal, func(ctx workflow.Context, next lingering) {
		at := slices.IndexFunc(l.shards, func(p *openShard) bool {
			return next.ID == p.id || next.ID == "" && p.reads == nil && l.indexAt(p.first) == next.First
		})
		if at < 0 || next.Shared.Check() != nil {
			return // it has ended in the meantime
		}
		p := l.shards[at]
		if next.Source != nil {
			p.source = next.Source
		}
		switch {
		case p.reads != nil && !p.lingers:
			p.lingers, p.next, p.uses = shardsLinger(l), next.Next, next.Shared
		case !p.lingers && next.Next > 0 && next.Next <= p.end-p.first:
			p.lingers, p.next, p.uses = true, next.Next, next.Shared
		case p.lingers: // use only decreases, and signals may arrive in another order
			p.uses = protocol.SharedWindow{Slots: min(p.uses.Slots, next.Shared.Slots), Open: min(p.uses.Open, next.Shared.Open)}
		}
		l.shareWindow(ctx)
		l.describeLoop(ctx)
	})
}

// usedWindow returns what lingering shards use, both those of this workflow and, as far as known, others of the
// whole loop.
func (l *Loop) usedWindow() protocol.SharedWindow {
	used := l.shared
	for _, p := range l.shards {
		used = used.Plus(p.uses)
	}
	return used
}

// shareWindow signals to the shard that starts iterations what the others use.
func (l *Loop) shareWindow(ctx workflow.Context) {
	for _, p := range l.shards {
		if used := l.usedWindow(); !p.lingers && used != p.sent {
			p.sent = used
			steering := protocol.Steering{Control: l.controls.Control, Shared: &used}
			workflow.Go(ctx, func(ctx workflow.Context) { l.controls.SignalChild(ctx, p.id, steering) })
		}
	}
}

// applyShared records what other shards use.
func (l *Loop) applyShared(ctx workflow.Context, shared protocol.SharedWindow) {
	if shared.Check() == nil {
		l.shared = shared
		l.shareWindow(ctx)
	}
}

// waitUntil waits for a condition. Meanwhile, a shard that may linger reports that, and does not end before the
// report has arrived.
func (l *Loop) waitUntil(ctx workflow.Context, until func() bool) {
	disconnected, _ := workflow.NewDisconnectedContext(ctx)
	var sending workflow.Future
	for {
		_ = workflow.Await(disconnected, func() bool { return until() || l.mayLinger(ctx) })
		if sending != nil {
			_ = sending.Get(disconnected, nil)
		}
		if until() {
			return
		}
		uses := l.lingeringUse()
		l.reported = &uses
		sending = gate.SignalWorkflow(disconnected, workflow.GetInfo(ctx).ParentWorkflowExecution.ID, protocol.LingerSignal,
			lingeringReport(ctx, l, uses))
	}
}

// lingeringReport returns the report that this shard lingers, or leaves the rest of the source to the next one.
func lingeringReport(ctx workflow.Context, l *Loop, uses protocol.SharedWindow) lingering {
	report := lingering{First: l.Shard.First, Next: l.started, Shared: uses}
	if l.Input.Source != nil {
		report.ID, report.Source = workflow.GetInfo(ctx).WorkflowExecution.ID, l.left
	}
	return report
}

// shardsLinger reports whether the shards of the loop may linger: see Shard.MayLinger.
func shardsLinger(l *Loop) bool {
	return l.loop.Mode == playbook.Parallel && l.loop.FailureBudget == nil
}

// lingeringUse returns what a shard with nothing left to start uses of the loop's window: its used slots, but at
// least its share, because waiting batches may come back all at once, and never more than it has reported.
func (l *Loop) lingeringUse() protocol.SharedWindow {
	share := (l.loopWidth()*l.active + protocol.MaxOpen - 1) / protocol.MaxOpen
	uses := protocol.SharedWindow{Slots: max(l.window.used+l.window.returning, share), Open: l.active}
	for _, p := range l.shards {
		uses = uses.Plus(p.uses)
	}
	if l.reported != nil {
		uses.Slots = min(l.reported.Slots, uses.Slots)
	}
	return uses
}

// mayLinger reports whether a shard must report that it lingers, because a slot is free for the next shard, or that
// it uses less than it has reported.
func (l *Loop) mayLinger(ctx workflow.Context) bool {
	if l.Input.Shard == nil || !l.Shard.MayLinger || l.started == 0 || ctx.Err() != nil || l.Result.Budget != nil {
		return false
	}
	uses := l.lingeringUse()
	if l.reported != nil {
		return uses.FallsEnough(*l.reported, l.loopWidth())
	}
	if len(l.shards) > 0 && !l.shards[len(l.shards)-1].lingers {
		return false
	}
	all := uses.Plus(l.shared)
	return all.Slots < l.loopWidth() && all.Open+l.batchSize() <= protocol.MaxOpen
}
