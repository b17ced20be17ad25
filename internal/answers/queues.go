package answers

import (
	"context"
	"sync"
)

// Queues let a few at a time do something to each workflow; the others wait.
type Queues struct {
	each int

	mu sync.Mutex
	of map[string]*queue // by workflow ID
}

// queue are those of one workflow.
type queue struct {
	slots  chan struct{}
	length int // those that have a slot, and those that wait for one
}

// NewQueues has slots for so many of each workflow.
func NewQueues(each int) *Queues { return &Queues{each: each, of: map[string]*queue{}} }

// Enter waits for a slot until ctx is done, whose error it returns then. leave gives the
// slot to the next one.
func (q *Queues) Enter(ctx context.Context, workflowID string) (leave func(), err error) {
	one := q.join(workflowID)
	select {
	case one.slots <- struct{}{}:
		return func() { <-one.slots; q.part(workflowID, one) }, nil
	case <-ctx.Done():
		q.part(workflowID, one)
		return nil, ctx.Err()
	}
}

func (q *Queues) join(workflowID string) *queue {
	q.mu.Lock()
	defer q.mu.Unlock()
	one := q.of[workflowID]
	if one == nil {
		one = &queue{slots: make(chan struct{}, q.each)}
		q.of[workflowID] = one
	}
	one.length++
	return one
}

func (q *Queues) part(workflowID string, one *queue) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if one.length--; one.length == 0 {
		delete(q.of, workflowID)
	}
}
