package attempt

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"slices"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"

	"reprise/activities/keeper"
	"reprise/internal/base/sleep"
	"reprise/interpreter"
	"reprise/interpreter/ratelimit"
)

const (
	// leaseEvery is the least time between two leases of one worker for one key: attempts that
	// arrive in between share the next lease.
	leaseEvery = 100 * time.Millisecond
	// leaseTimeout bounds one lease; it needs a worker to answer it.
	leaseTimeout = 30 * time.Second
	// leaseAgain is the pause before a lease that failed is requested again.
	leaseAgain = time.Second
	// leaseAhead bounds how far ahead turns are leased, beyond the time to use them. Leased
	// turns are lost with their worker.
	leaseAhead = time.Second
	// maxTurns is how many turns one lease requests. Without it, a busy worker with thousands
	// of waiting attempts would reserve minutes of a limit that other workers share.
	maxTurns = 1000
	// joinPatience is how long an attempt that joins a queue waits for the queue's next lease,
	// before it requests one itself.
	joinPatience = leaseAhead
)

// pacer makes the attempts of this worker wait for turns of their rate limits. Turns are
// leased from one workflow per key, so all workers of a task queue share them; a response that
// asks to wait pauses the others too.
type pacer struct {
	limits RateLimits
	logger *slog.Logger
	mu     sync.Mutex
	queues map[string]*turnQueue
	warned map[string]bool // playbooks and keys that ask for more than the operator gives
	// slots are the slots of the worker in which attempts wait, with how many.
	slots map[*Delivery]int
}

func newPacer(limits RateLimits, logger *slog.Logger) *pacer {
	return &pacer{limits: limits, logger: logger, queues: map[string]*turnQueue{}, warned: map[string]bool{}, slots: map[*Delivery]int{}}
}

// turnQueue is the queue of one key.
type turnQueue struct {
	pacer      *pacer
	id         string
	mu         sync.Mutex
	waiters    []*waiter
	serving    bool
	nextLease  time.Time         // when the next lease is requested
	wake       chan struct{}     // signalled when nextLease became earlier
	skew       time.Duration     // how far the server's clock is ahead, by the last lease
	pause      time.Time         // no attempt is sent before
	long       bool              // the server asked for more than the pause
	askedUntil time.Time         // until when it asked to wait, the last time
	answer     estimate          // how long a lease takes to arrive
	ready      estimate          // how long an attempt takes to begin
	leaving    []leaving         // waiters that are sent away and do not know yet
	sends      []*time.Time      // when attempts of this worker arrived, at the latest
	local      ratelimit.Limiter // outside of activities
}

// estimate is a cautious estimate of a duration. It follows the measured durations in steps, so
// that one slow answer does not delay the next attempts.
type estimate time.Duration

const (
	leastEstimate = 30 * time.Millisecond
	estimateStep  = 250 * time.Millisecond
)

func (e *estimate) observeTime(took time.Duration) {
	*e = min(max(*e*7/8, estimate(took+took/2)), 2**e+estimate(estimateStep))
}

func (e estimate) estimatedTime() time.Duration { return max(time.Duration(e), leastEstimate) }

// awaitTurn waits for the attempt's turn and sends heartbeats. The server learns that the
// attempt begins before its turn comes, because a missed turn is lost. The error comes
// from ctx or begin, or is a *putOffError if the turn is too far away to wait here.
func (p *pacer) awaitTurn(ctx context.Context, limit ratelimit.Limit, in interpreter.ToolInput, b *beginning) error {
	queue := p.queueOf(ctx, limit)
	w := newWaiter(ctx, limit, in)
	for {
		at, err := queue.awaitTurn(w, b)
		if err != nil {
			return err
		}
		if err := sleepUntil(ctx, at.Add(-queue.leadTime())); err != nil {
			return err
		}
		if err := queue.beginAttempt(ctx, b); err != nil {
			return err
		}
		if ok, err := queue.acquireTurn(ctx, at, limit, b); ok || err != nil {
			return err
		}
		b.revokeBegin(ctx)
		w.patient = time.Now().Add(turnPatience)
	}
}

// occupySlot counts an attempt that waits in its slot, until it is undone.
func (p *pacer) occupySlot(b *beginning) (undo func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.slots[b.delivery]++
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.slots[b.delivery]--; p.slots[b.delivery] == 0 {
			delete(p.slots, b.delivery)
		}
	}
}

// isCrowded reports whether attempts that wait have more than half of the worker's
// slots.
func (p *pacer) isCrowded(ctx context.Context) bool {
	most := WorkerOf(ctx).Slots
	p.mu.Lock()
	defer p.mu.Unlock()
	return most > 0 && 2*len(p.slots) > most
}

// acquireTurn waits for the turn of an attempt that has begun, and returns false if it cannot
// be used. The error says that the attempt is not made.
func (l *turnQueue) acquireTurn(ctx context.Context, turn time.Time, limit ratelimit.Limit, b *beginning) (bool, error) {
	for at := turn; !at.After(turn.Add(limit.SlotTolerance())); {
		if err := sleepUntil(ctx, at); err != nil {
			b.resetBegin()
			return false, err
		}
		var ok bool
		if at, ok = l.useTurn(turn, limit, b); ok {
			return true, nil
		}
	}
	return false, nil
}

// mostSends bounds how many sent requests a worker remembers. Under a limit that allows more,
// one late request does not matter.
const mostSends = 1000

// useTurn uses the turn, unless the requests before it were sent late and this one would
// follow too soon. In that case it returns the time of the next check.
func (l *turnQueue) useTurn(turn time.Time, limit ratelimit.Limit, b *beginning) (again time.Time, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if late := turn.Add(limit.SlotTolerance()); now.After(late) || now.Before(l.pause) {
		return late.Add(1), false
	}
	over := func(arrived *time.Time) bool { return now.Sub(*arrived) > limit.Period() }
	l.sends = slices.DeleteFunc(l.sends, over)
	if n := len(l.sends) - limit.Requests; n >= 0 && n < len(l.sends) {
		slices.SortFunc(l.sends, func(x, y *time.Time) int { return x.Compare(*y) })
		return l.sends[n].Add(limit.Period() + 1), false
	}
	if limit.Requests > mostSends {
		return now, true
	}
	arrived := now.Add(limit.Margin())
	l.sends = append(l.sends, &arrived)
	b.onSend = func(answered bool) {
		l.mu.Lock()
		defer l.mu.Unlock()
		if now := time.Now(); !answered {
			arrived = now.Add(limit.Margin())
		} else if now.Before(arrived) {
			arrived = now
		}
	}
	return now, true
}

// sleepUntil returns early, with an error, where the attempt is not to begin.
func sleepUntil(ctx context.Context, until time.Time) error {
	return sleep.UnlessStopped(ctx, time.Until(until), stopChannel(ctx), ErrReleased)
}

// leadTime is how long before its turn an attempt prepares.
func (l *turnQueue) leadTime() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ready.estimatedTime()
}

// beginAttempt begins the attempt and measures how long that takes.
func (l *turnQueue) beginAttempt(ctx context.Context, b *beginning) error {
	began := time.Now()
	err := b.Begin(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ready.observeTime(time.Since(began))
	return err
}

// pauseLimit pauses all attempts under a limit, as the server asked, but no longer than the
// operator allows. The attempt that got the response waits by itself, as long as its policy
// says.
func (p *pacer) pauseLimit(ctx context.Context, limit ratelimit.Limit, wait time.Duration) {
	most := p.limits.maxPause(limit)
	if turns := WorkerOf(ctx).Turns; turns != nil {
		turns.PauseAttempts(limit, min(wait, most))
		return
	}
	queue, now := p.queueOf(ctx, limit), time.Now()
	queue.mu.Lock()
	defer queue.mu.Unlock()
	if until := now.Add(min(wait, most)); queue.pause.Before(until) && (wait <= most || !queue.askedUntil.After(now)) {
		queue.pause, queue.long = until, wait > most
	}
	if wait > most && queue.askedUntil.Before(now) {
		queue.askedUntil = now.Add(wait)
	}
}

// queueOf finds the queue of a key. Keys belong to the task queue, and to a playbook
// unless it shares them.
func (p *pacer) queueOf(ctx context.Context, limit ratelimit.Limit) *turnQueue {
	taskQueue := ""
	if activity.IsActivity(ctx) {
		taskQueue = activity.GetInfo(ctx).TaskQueue
	}
	digest := sha256.Sum256([]byte(taskQueue + "\x00" + limit.Playbook + "\x00" + limit.Key))
	id := "reprise-rate-limit-" + hex.EncodeToString(digest[:8])
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.queues[id] == nil {
		p.queues[id] = &turnQueue{pacer: p, id: id, wake: make(chan struct{}, 1)}
	}
	return p.queues[id]
}

// requestLease requests turns from the limit's workflow, and returns the time of the first one by
// the clock of this machine.
func (l *turnQueue) requestLease(ctx context.Context, request ratelimit.LeaseRequest) (ratelimit.Lease, time.Time, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaseTimeout)
	defer cancel()
	asked := time.Now()
	var lease ratelimit.Lease
	var err error
	if activity.IsActivity(ctx) {
		if lease, err = keeper.LeaseSlots(ctx, l.id, request); err != nil {
			return ratelimit.Lease{}, time.Time{}, err
		}
	} else {
		lease = l.local.Lease(request, time.Now())
	}
	now := time.Now()
	first := firstTurn(lease, asked, now)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.answer.observeTime(now.Sub(first.Add(-lease.Delay())))
	l.skew = lease.At.Sub(first)
	return lease, first, nil
}

// maxLimitSummary bounds the key that the text of an attempt names, in bytes.
const maxLimitSummary = 300

// firstTurn returns the time of the first turn of a lease by the clock of this machine.
// That clock is used as far as it does not contradict the lease: the limiter has responded
// after the request was sent and before its response arrived.
func firstTurn(lease ratelimit.Lease, asked, answered time.Time) time.Time {
	if lease.At.IsZero() {
		return answered.Add(lease.Delay())
	}
	decided := lease.At.Add(-lease.Delay())
	since := min(max(answered.Sub(decided), 0), answered.Sub(asked))
	return answered.Add(lease.Delay() - since)
}
