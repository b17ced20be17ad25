package serve

import (
	"context"
	"net/http"
	"time"

	"reprise/internal/base/slots"
)

const (
	// answersOfOne is how many answers one workflow gets at a time. The Temporal server
	// accepts ten of all its clients, and has further ones try again later.
	answersOfOne = 5
	// waitingForOne is how many more wait for that.
	waitingForOne = 20
	// turnPatience is for how long. An answer that does not get its turn is left with
	// the Temporal server.
	turnPatience = 500 * time.Millisecond
	// queuing is how long a request may wait for a slot.
	queuing = 5 * time.Second
	// requestsOfOne is the share of the slots that one sender has at a time: a quarter.
	requestsOfOne = 4
)

// turns bound what runs at the same time: for one sender, and for all.
type turns struct {
	all      chan struct{}
	each     *slots.ByKey  // by sender
	patience time.Duration // how long one waits; 0 is not at all
}

// newTurns makes the turns for answers, by workflow ID.
func newTurns(most int) *turns {
	return &turns{all: make(chan struct{}, most), each: slots.New(answersOfOne, waitingForOne), patience: turnPatience}
}

// newRequestTurns makes the turns for requests; no sender can have all of them.
func newRequestTurns(most int, patience time.Duration) *turns {
	return &turns{all: make(chan struct{}, most), each: slots.New(max(1, most/requestsOfOne), 0), patience: patience}
}

// acquireTurn waits for a turn; ok is false where none comes soon. over ends it.
func (t *turns) acquireTurn(ctx context.Context, sender string) (over func(), ok bool) {
	limited, cancel := context.WithTimeout(ctx, t.patience)
	defer cancel()
	leave, err := t.each.Enter(limited, sender)
	if err != nil {
		return nil, false
	}
	if slots.AcquireSlot(limited, t.all) != nil {
		leave()
		return nil, false
	}
	return func() {
		<-t.all
		leave()
	}, true
}

// enterRequest acquires a turn for a request. The error is a problem to answer with, if there is no turn.
func (t *turns) enterRequest(ctx context.Context, sender string) (leave func(), err error) {
	leave, ok := t.acquireTurn(ctx, sender)
	if !ok {
		return nil, busyProblem()
	}
	return leave, nil
}

func busyProblem() *Problem {
	return newProblem(http.StatusServiceUnavailable, "busy", "too many requests are open; repeat this one").withHeader("Retry-After", "1")
}
