package serve

import (
	"context"
	"sync"
	"time"
)

const (
	// answersOfOne is how many answers ask one workflow at a time what becomes of
	// them. The Temporal server takes ten of all its clients, and has those that come
	// on top try again later.
	answersOfOne = 5
	// waitingForOne is how many more wait for that.
	waitingForOne = 20
	// turnPatience is for how long. An answer that does not get its turn is left with
	// the Temporal server.
	turnPatience = 500 * time.Millisecond
)

// turns bound the answers that are asked about at the same time: those to one
// workflow, and all. To ask takes a worker's time, and to leave an answer nearly none.
type turns struct {
	all places

	mu sync.Mutex
	of map[string]*queue // by workflow ID
}

// queue are the answers to one workflow.
type queue struct {
	places places
	length int // those that have a place, and those that wait for one
}

func newTurns(most int) *turns { return &turns{all: make(places, most), of: map[string]*queue{}} }

// take waits for a turn; ok is false where none comes soon. over ends it.
func (t *turns) take(ctx context.Context, workflowID string) (over func(), ok bool) {
	one, ok := t.join(workflowID)
	if !ok {
		return nil, false
	}
	limited, cancel := context.WithTimeout(ctx, turnPatience)
	defer cancel()
	for i, places := range []places{one.places, t.all} {
		select {
		case places <- struct{}{}:
		case <-limited.Done():
			if i > 0 {
				<-one.places
			}
			t.part(workflowID, one)
			return nil, false
		}
	}
	return func() {
		<-t.all
		<-one.places
		t.part(workflowID, one)
	}, true
}

func (t *turns) join(workflowID string) (*queue, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	one := t.of[workflowID]
	if one == nil {
		one = &queue{places: make(places, answersOfOne)}
		t.of[workflowID] = one
	}
	if one.length == answersOfOne+waitingForOne {
		return nil, false
	}
	one.length++
	return one, true
}

func (t *turns) part(workflowID string, one *queue) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if one.length--; one.length == 0 {
		delete(t.of, workflowID)
	}
}
