package loop

import (
	"go.temporal.io/sdk/workflow"

	"reprise/interpreter/playbook"
	"reprise/workflows/control"
	"reprise/workflows/gate"
)

// A loop cannot continue as new while children are open, and these add events to its history: each ends, and most
// report that they wait; one that may release its slot also does that, requests another and is granted it. In an
// outage hundreds of children do so. So a leaf starts a child, and lets one release its slot, only while its history
// has room for all that its open children may still add, each event in a workflow task of its own.
const (
	taskEvents = 3 // of a workflow task: scheduled, started, completed

	startEvents   = 2 + taskEvents // sent to the server, started
	endEvents     = 1 + taskEvents
	releaseEvents = 1 + taskEvents // the child's signal
	requestEvents = 1 + taskEvents // the child's signal
	grantEvents   = 2 + taskEvents // sent to the server, delivered
	parkEvents    = releaseEvents + requestEvents + grantEvents
	reportEvents  = 1 + taskEvents                         // the child's signal
	childEvents   = startEvents + reportEvents + endEvents // of a child that does not park

	// fullEvents bounds a history together with what is still to come. The rest, up to 4,096, is for the end of the loop
	// and for signals of its parent and of people.
	fullEvents = 3_900
)

// pendingEvents returns how many events the child may still add to the history of its loop.
func (b *openBatch) pendingEvents() int {
	events := endEvents + b.late*releaseEvents
	if b.sent == nil || !b.sent.HasStarted() {
		events += startEvents
	}
	if b.granting {
		events += grantEvents
	}
	switch {
	case b.holds && b.mayPark:
		events += parkEvents
	case !b.holds && b.request.Now:
		events += grantEvents
	case !b.holds:
		events += requestEvents + grantEvents
	}
	return events
}

// room is the room in the history of a loop.
type room struct{ loop *Loop }

// has reports whether the history has room for so many events besides what the open children may add.
func (r room) has(ctx workflow.Context, events int) bool {
	events += workflow.GetInfo(ctx).GetCurrentHistoryLength()
	for _, b := range r.loop.batches {
		events += b.pendingEvents()
		if _, reported := r.loop.controls.Reports[b.id]; !reported {
			events += reportEvents // further reports are rare: each is of a far longer wait
		}
	}
	return events <= fullEvents
}

// nextEvents returns how many events the batches add, if they do not park, for which the window has free slots and that
// a leaf has not started yet. taken is the number of free slots that are not for them.
func (r room) nextEvents(taken int) int {
	size := r.loop.batchSize()
	left := (len(r.loop.Input.Elements) - r.loop.next + size - 1) / size
	return max(0, min(left, r.loop.window.size()-r.loop.window.used)-taken) * childEvents
}

// mayPark reports whether a child may release its slot during long waits. own is what the child adds besides.
func (r room) mayPark(ctx workflow.Context, own int) bool {
	switch {
	case r.loop.loop.Mode != playbook.Parallel:
		return false
	case !r.loop.Input.Reserves:
		return workflow.GetInfo(ctx).GetCurrentHistoryLength() < control.ParkUntil
	}
	return r.has(ctx, own+parkEvents+r.nextEvents(0))
}

// mayStart reports whether a leaf need not wait, before it starts another child, until open ones have ended. It
// need not if it starts no more anyway.
func (r room) mayStart(ctx workflow.Context) bool {
	return !r.loop.Input.Reserves || r.loop.window.open == 0 || gate.HistoryIsLong(ctx) || r.leavesRest(ctx, 1) ||
		r.has(ctx, childEvents)
}

// leavesRest reports whether a shard leaves the elements that it has not started to the next one, which begins at once:
// children have released their slots, and another child could not. taken is the number of free slots that the other child
// does not share.
func (r room) leavesRest(ctx workflow.Context, taken int) bool {
	if !r.loop.Input.Reserves || r.loop.Input.Shard == nil || !r.loop.Shard.MayLinger {
		return false
	}
	for _, b := range r.loop.batches {
		if !b.holds {
			return !r.has(ctx, childEvents+parkEvents+r.nextEvents(taken))
		}
	}
	return false
}
