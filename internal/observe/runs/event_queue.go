package runs

import (
	"cmp"
	"time"
)

// item is an event, or a history that has to be opened before later events.
type item struct {
	at     time.Time
	number int
	event  Event
	opens  *link
}

// eventQueue is items by time.
type eventQueue []item

func (q eventQueue) Len() int { return len(q) }
func (q eventQueue) Less(i, j int) bool {
	return cmp.Or(q[i].at.Compare(q[j].at), cmp.Compare(q[i].rank(), q[j].rank()), cmp.Compare(q[i].number, q[j].number)) < 0
}

// rank puts the end of an iteration behind what it has done at the same moment, which
// is in another history. The event right before the end has attempts, as the end does.
func (it item) rank() int {
	kind := it.event.Kind()
	if kind.Of == OfIteration && kind.Phase == Ends || kind.Phase == Happens && it.event.Index != nil && it.event.Attempts > 0 {
		return 1
	}
	return 0
}

func (q eventQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

// Push is that of container/heap.
func (q *eventQueue) Push(x any) { *q = append(*q, x.(item)) }

// Pop is that of container/heap.
func (q *eventQueue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}
