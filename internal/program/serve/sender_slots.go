package serve

import (
	"context"
	"net/http"
	"time"

	"reprise/internal/base/slots"
)

const (
	// answersOfOne is how many answers are sent to one workflow concurrently. The Temporal server accepts ten from
	// all its clients, and makes others retry later.
	answersOfOne = 5
	// waitingForOne is how many more answers may wait for that.
	waitingForOne = 20
	// slotPatience is how long they may wait. After that, an answer is stored on the Temporal server.
	slotPatience = 500 * time.Millisecond
	// queuing is how long a request may wait for a slot.
	queuing = 5 * time.Second
	// requestsOfOne limits the slots of one sender to this fraction (1/4).
	requestsOfOne = 4
)

// senderSlots limits how much runs concurrently: for one sender, and for all.
type senderSlots struct {
	all      chan struct{}
	each     *slots.ByKey  // by sender
	patience time.Duration // how long one waits; 0 is not at all
}

// newAnswerSlots returns the limits for answers, by workflow ID.
func newAnswerSlots(most int) *senderSlots {
	return &senderSlots{all: make(chan struct{}, most), each: slots.New(answersOfOne, waitingForOne), patience: slotPatience}
}

// newRequestSlots returns the limits for requests; no sender can use all slots.
func newRequestSlots(most int, patience time.Duration) *senderSlots {
	return &senderSlots{all: make(chan struct{}, most), each: slots.New(max(1, most/requestsOfOne), 0), patience: patience}
}

// acquireSlot waits for a slot, which over releases; ok is false if none becomes free soon.
func (t *senderSlots) acquireSlot(ctx context.Context, sender string) (over func(), ok bool) {
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

// enterRequest acquires a slot for a request, which leave releases. The error is the problem to respond with if there
// is none.
func (t *senderSlots) enterRequest(ctx context.Context, sender string) (leave func(), err error) {
	leave, ok := t.acquireSlot(ctx, sender)
	if !ok {
		return nil, busyProblem()
	}
	return leave, nil
}

func busyProblem() *Problem {
	return newProblem(http.StatusServiceUnavailable, "busy", "too many requests are open; repeat this one").withHeader("Retry-After", "1")
}
