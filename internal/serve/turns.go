package serve

import (
	"context"
	"net/http"
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
	// queuing is how long a request may wait for a place.
	queuing = 5 * time.Second
	// placesOfOne is the share of the places that one sender has at a time: a quarter.
	placesOfOne = 4
)

// turns bound what goes on at the same time: what one sender has, and all.
type turns struct {
	all      chan struct{}
	each     int           // of one sender
	waiting  int           // how many more of one sender wait; 0 is no bound
	patience time.Duration // for how long; 0 is not at all

	mu sync.Mutex
	of map[string]*queue // by sender
}

// queue are those of one sender.
type queue struct {
	places chan struct{}
	length int // those that have a place, and those that wait for one
}

// newTurns are those of answers, by workflow ID.
func newTurns(most int) *turns {
	return &turns{
		all: make(chan struct{}, most), each: answersOfOne, waiting: waitingForOne, patience: turnPatience, of: map[string]*queue{},
	}
}

// newPlaces are those of requests, of which nobody has all.
func newPlaces(most int, patience time.Duration) *turns {
	return &turns{all: make(chan struct{}, most), each: max(1, most/placesOfOne), patience: patience, of: map[string]*queue{}}
}

// take waits for a turn; ok is false where none comes soon. over ends it.
func (t *turns) take(ctx context.Context, sender string) (over func(), ok bool) {
	one, ok := t.join(sender)
	if !ok {
		return nil, false
	}
	limited, cancel := context.WithTimeout(ctx, t.patience)
	defer cancel()
	if !acquire(limited, one.places) {
		t.part(sender, one)
		return nil, false
	}
	if !acquire(limited, t.all) {
		<-one.places
		t.part(sender, one)
		return nil, false
	}
	return func() {
		<-t.all
		<-one.places
		t.part(sender, one)
	}, true
}

// enter is take for a request, which is told where it gets no turn.
func (t *turns) enter(ctx context.Context, sender string) (leave func(), err error) {
	leave, ok := t.take(ctx, sender)
	if !ok {
		return nil, busy()
	}
	return leave, nil
}

func busy() *Problem {
	return problem(http.StatusServiceUnavailable, "busy", "the server has too many requests under way; repeat this one").with("Retry-After", "1")
}

// acquire takes a place, at once where one is free.
func acquire(ctx context.Context, places chan struct{}) bool {
	select {
	case places <- struct{}{}:
		return true
	default:
	}
	select {
	case places <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (t *turns) join(sender string) (*queue, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	one := t.of[sender]
	if one == nil {
		one = &queue{places: make(chan struct{}, t.each)}
		t.of[sender] = one
	}
	if t.waiting > 0 && one.length == t.each+t.waiting {
		return nil, false
	}
	one.length++
	return one, true
}

func (t *turns) part(sender string, one *queue) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if one.length--; one.length == 0 {
		delete(t.of, sender)
	}
}
