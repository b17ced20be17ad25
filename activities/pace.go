package activities

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"

	"reprise/interpreter"
)

const (
	// leaseEvery is the least time between two leases of one worker for one
	// key: waiters gather meanwhile and share the next one.
	leaseEvery = 100 * time.Millisecond
	// leaseTimeout bounds one lease; it needs a worker to answer it.
	leaseTimeout = 30 * time.Second
	// leaseAgain is the pause before a lease that failed is asked for again.
	leaseAgain = time.Second
	// leaseAhead bounds how far ahead turns are leased, beyond what it takes to
	// use them. What is leased is lost with its worker.
	leaseAhead = time.Second
	// maxTurns is how many turns one lease asks for.
	maxTurns = 1000
)

// pacer makes the attempts of this worker wait for their turn under a rate
// limit. Turns are leased from a workflow per key, so all workers of a task
// queue share them; attempts that were told to wait hold the others back.
type pacer struct {
	logger *slog.Logger
	mu     sync.Mutex
	lanes  map[string]*lane
}

func newPacer(logger *slog.Logger) *pacer {
	return &pacer{logger: logger, lanes: map[string]*lane{}}
}

// lane is the queue of one key.
type lane struct {
	pacer   *pacer
	id      string
	mu      sync.Mutex
	waiters []*waiter
	serving bool
	pause   time.Time           // nobody sends before
	answer  estimate            // how long a lease takes to arrive
	ready   estimate            // how long an attempt takes to begin
	sends   []*time.Time        // when attempts of this worker arrived, at the latest
	local   interpreter.Limiter // outside of activities
}

// waiter is an attempt that waits; turn is told when its turn is.
type waiter struct {
	ctx   context.Context
	limit interpreter.RateLimit
	turn  chan time.Time
}

// estimate is how long something takes, on the safe side. It follows what was
// seen in steps, so that one slow answer does not hold the next attempts back.
type estimate time.Duration

const (
	leastEstimate = 30 * time.Millisecond
	estimateStep  = 250 * time.Millisecond
)

func (e *estimate) saw(took time.Duration) {
	*e = min(max(*e*7/8, estimate(took+took/2)), 2**e+estimate(estimateStep))
}

func (e estimate) time() time.Duration { return max(time.Duration(e), leastEstimate) }

// await waits for the attempt's turn, sending heartbeats meanwhile. The server
// knows that the attempt begins before its turn comes; a turn that the attempt
// comes too late for is spent. The error is that of ctx, or of begin.
func (p *pacer) await(ctx context.Context, limit interpreter.RateLimit, b *beginning) error {
	lane := p.lane(ctx, limit.Key)
	heartbeat, stop := heartbeats(ctx)
	defer stop()
	for {
		var turn time.Time
		for joined := lane.join(ctx, limit); turn.IsZero(); {
			select {
			case turn = <-joined:
			case <-heartbeat:
				b.delivery.beat(ctx)
			case <-stopChannel(ctx):
				return errHandedBack
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		if err := sleepUntil(ctx, turn.Add(-lane.lead())); err != nil {
			return err
		}
		if err := lane.begin(ctx, b); err != nil {
			return err
		}
		if ok, err := lane.take(ctx, turn, limit, b); ok || err != nil {
			return err
		}
		b.waits(ctx)
	}
}

// take waits for the turn of an attempt that has begun; false if it cannot be
// used. The error says that the attempt is not made.
func (l *lane) take(ctx context.Context, turn time.Time, limit interpreter.RateLimit, b *beginning) (bool, error) {
	for at := turn; !at.After(turn.Add(limit.Slack())); {
		if err := sleepUntil(ctx, at); err != nil {
			b.takeBack()
			return false, err
		}
		var ok bool
		if at, ok = l.use(turn, limit, b); ok {
			return true, nil
		}
	}
	return false, nil
}

// mostSends bounds what a worker remembers of what it sent. Where a limit is of
// more requests, one that is late does not matter.
const mostSends = 1000

// use takes the turn, unless it is too early for one more: an attempt before it
// may have taken time on its way out, and followed its own turn late. In that
// case it gives the time when to look again.
func (l *lane) use(turn time.Time, limit interpreter.RateLimit, b *beginning) (again time.Time, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if late := turn.Add(limit.Slack()); now.After(late) || now.Before(l.pause) {
		return late.Add(1), false
	}
	over := func(arrived *time.Time) bool { return now.Sub(*arrived) > limit.Per() }
	l.sends = slices.DeleteFunc(l.sends, over)
	if n := len(l.sends) - limit.Requests; n >= 0 && n < len(l.sends) {
		slices.SortFunc(l.sends, func(x, y *time.Time) int { return x.Compare(*y) })
		return l.sends[n].Add(limit.Per() + 1), false
	}
	if limit.Requests > mostSends {
		return now, true
	}
	arrived := now.Add(limit.Margin())
	l.sends = append(l.sends, &arrived)
	b.noted = func(answered bool) {
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
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-stopChannel(ctx):
		return errHandedBack
	case <-ctx.Done():
		return ctx.Err()
	}
}

// lead is how long before its turn an attempt gets ready.
func (l *lane) lead() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ready.time()
}

// begin begins the attempt and notes how long that takes.
func (l *lane) begin(ctx context.Context, b *beginning) error {
	began := time.Now()
	err := b.begin(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ready.saw(time.Since(began))
	return err
}

// told notes that the other side asked for patience.
func (p *pacer) told(ctx context.Context, limit interpreter.RateLimit, wait time.Duration) {
	lane := p.lane(ctx, limit.Key)
	lane.mu.Lock()
	defer lane.mu.Unlock()
	if until := time.Now().Add(wait); lane.pause.Before(until) {
		lane.pause = until
	}
}

// lane finds the queue of a key. Keys belong to the task queue.
func (p *pacer) lane(ctx context.Context, key string) *lane {
	queue := ""
	if activity.IsActivity(ctx) {
		queue = activity.GetInfo(ctx).TaskQueue
	}
	digest := sha256.Sum256([]byte(queue + "\x00" + key))
	id := "reprise-rate-limit-" + hex.EncodeToString(digest[:8])
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lanes[id] == nil {
		p.lanes[id] = &lane{pacer: p, id: id}
	}
	return p.lanes[id]
}

// join queues an attempt and makes sure that somebody serves the queue.
func (l *lane) join(ctx context.Context, limit interpreter.RateLimit) <-chan time.Time {
	w := &waiter{ctx: ctx, limit: limit, turn: make(chan time.Time, 1)}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiters = append(l.waiters, w)
	if !l.serving {
		l.serving = true
		go l.serve()
	}
	return w.turn
}

// serve leases turns for those who wait until nobody does. Where the limiter
// cannot be asked they go on waiting: it is as near as the server, without
// which no attempt could end either.
func (l *lane) serve() {
	warned := time.Time{}
	for {
		began := time.Now()
		waiter, request := l.ask()
		if waiter == nil {
			return
		}
		turns, next, err := l.lease(waiter.ctx, request)
		if err != nil {
			if time.Since(warned) >= time.Minute {
				warned = time.Now()
				l.pacer.logger.Warn("cannot lease turns under a rate limit, asking again", "key", request.Limit.Key, "error", err)
			}
			next = time.Now().Add(leaseAgain)
		}
		l.hand(turns)
		time.Sleep(max(time.Until(began.Add(leaseEvery)), time.Until(next)))
	}
}

// ask gives the first of those who wait, nil for nobody, and a request for all
// of them; with nobody waiting the queue is no longer served.
func (l *lane) ask() (*waiter, interpreter.LeaseRequest) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiters = slices.DeleteFunc(l.waiters, func(w *waiter) bool { return w.ctx.Err() != nil || workerStopping(w.ctx) })
	if len(l.waiters) == 0 {
		l.serving = false
		return nil, interpreter.LeaseRequest{}
	}
	after := l.answer.time() + l.ready.time()
	return l.waiters[0], interpreter.LeaseRequest{
		Limit: l.waiters[len(l.waiters)-1].limit, Count: min(len(l.waiters), maxTurns),
		PauseSeconds: max(time.Until(l.pause), 0).Seconds(),
		AfterSeconds: after.Seconds(), WithinSeconds: (after + leaseAhead).Seconds(),
	}
}

// lease asks the workflow that holds the limit. It gives the times of the turns
// and when to ask for more.
func (l *lane) lease(ctx context.Context, request interpreter.LeaseRequest) (turns []time.Time, next time.Time, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaseTimeout)
	defer cancel()
	asked := time.Now()
	var lease interpreter.Lease
	if activity.IsActivity(ctx) {
		if lease, err = askLimiter(ctx, l.id, request); err != nil {
			return nil, time.Time{}, err
		}
	} else {
		lease = l.local.Lease(request, time.Now())
	}
	now := time.Now()
	first := firstTurn(lease, asked, now)
	l.mu.Lock()
	l.answer.saw(now.Sub(first.Add(-lease.Delay())))
	l.mu.Unlock()
	count := request.Count
	if lease.Turns != nil {
		count = *lease.Turns
	}
	for i := range count {
		turns = append(turns, first.Add(time.Duration(i)*lease.Interval()))
	}
	// Half of what is leased ahead is used up then.
	return turns, first.Add(time.Duration(count)*lease.Interval() - leaseAhead/2), nil
}

// firstTurn is when the first turn of a lease is by the clock of this machine.
// That clock is believed as far as the lease does not contradict it: the limiter
// has answered after it was asked, and before its answer came.
func firstTurn(lease interpreter.Lease, asked, answered time.Time) time.Time {
	if lease.At.IsZero() {
		return answered.Add(lease.Delay())
	}
	decided := lease.At.Add(-lease.Delay())
	since := min(max(answered.Sub(decided), 0), answered.Sub(asked))
	return answered.Add(lease.Delay() - since)
}

func askLimiter(ctx context.Context, id string, request interpreter.LeaseRequest) (interpreter.Lease, error) {
	c := activity.GetClient(ctx)
	start := c.NewWithStartWorkflowOperation(client.StartWorkflowOptions{
		ID: id, TaskQueue: activity.GetInfo(ctx).TaskQueue,
		WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
		StaticSummary: fmt.Sprintf("%d requests per %gs to %s",
			request.Limit.Requests, request.Limit.PerSeconds, request.Limit.Key),
	}, interpreter.RateLimitWorkflow, interpreter.Limiter{})
	handle, err := c.UpdateWithStartWorkflow(ctx, client.UpdateWithStartWorkflowOptions{
		StartWorkflowOperation: start,
		UpdateOptions: client.UpdateWorkflowOptions{
			WorkflowID: id, UpdateName: interpreter.LeaseUpdate, Args: []any{request},
			WaitForStage: client.WorkflowUpdateStageCompleted,
		},
	})
	if err != nil {
		return interpreter.Lease{}, fmt.Errorf("lease turns: %w", err)
	}
	var lease interpreter.Lease
	if err := handle.Get(ctx, &lease); err != nil {
		return interpreter.Lease{}, fmt.Errorf("lease turns: %w", err)
	}
	return lease, nil
}

// hand tells those who wait when their turns are, in order.
func (l *lane) hand(turns []time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, turn := range turns {
		for len(l.waiters) > 0 && l.waiters[0].ctx.Err() != nil {
			l.waiters = l.waiters[1:]
		}
		if len(l.waiters) == 0 {
			return
		}
		l.waiters[0].turn <- turn
		l.waiters = l.waiters[1:]
	}
}
