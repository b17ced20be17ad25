package attempt

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/activity"

	"reprise/activities/tool"
	"reprise/interpreter"
	"reprise/interpreter/ratelimit"
)

const (
	// turnPatience is how long an attempt waits for its turn in its activity slot. If the
	// turn is further away, the attempt releases the slot and comes back.
	turnPatience = 5 * time.Second
	// comesEarly is how long before its turn an attempt comes back, because timers fire late
	// and slots may be taken.
	comesEarly = 2 * time.Second
	// firstAway is how long an attempt with a distant turn stays away before it checks for a
	// sooner one: attempts before it may have ended. After that it stays away for as long as it
	// has waited already.
	firstAway = time.Minute
	// mostTries bounds how often the time that an attempt stays away is doubled.
	mostTries = 7
)

// waiter is an attempt that waits in its slot.
type waiter struct {
	ctx      context.Context
	limit    ratelimit.Limit
	step     string
	index    *int
	patient  time.Time // until when it waits here
	since    time.Time // of its first request; zero until that was answered
	promise  time.Time // its turn, as it was promised; zero for no promise
	due      bool      // it comes for that turn
	called   bool      // the limiter has called it back, with others
	tries    int
	assigned chan assignment
}

// assignment is the answer to a waiter: its turn, or that it releases its slot.
type assignment struct {
	turn   time.Time
	putOff *putOffError
}

// awayError ends an attempt that releases its slot because its turn is too far away.
func awayError(turn ratelimit.Reservation, key string, wait time.Duration) *putOffError {
	return &putOffError{until: interpreter.PutOff{Turn: &turn}, text: fmt.Sprintf(
		"the rate limit has no slot for %s yet; the attempt waits outside the worker for %s",
		tool.CutText(key, maxLimitSummary), wait.Round(time.Millisecond))}
}

// newWaiter returns an attempt that waits for a turn, nil for its first one.
func newWaiter(ctx context.Context, limit ratelimit.Limit, in interpreter.ToolInput) *waiter {
	w := &waiter{ctx: ctx, limit: limit, step: in.Step, index: in.Index, patient: time.Now().Add(turnPatience)}
	if turn := in.Turn; turn != nil {
		w.since, w.promise, w.tries = turn.Since, turn.Promised, turn.Tries
		w.called = turn.Called
		w.due = w.called || !turn.At.Add(comesEarly).Before(turn.Promised)
	}
	return w
}

// awaitTurn waits in the queue until the attempt has its turn, or has to release its slot.
func (l *turnQueue) awaitTurn(w *waiter, b *beginning) (time.Time, error) {
	heartbeat, stop := heartbeatTicks(w.ctx)
	defer stop()
	patience := time.NewTimer(time.Until(w.patient))
	defer patience.Stop()
	defer l.pacer.occupySlot(b)()
	l.joinQueue(w)
	for {
		select {
		case assigned := <-w.assigned:
			if assigned.putOff != nil {
				return time.Time{}, assigned.putOff
			}
			w.due = true // also where it comes too late for it
			return assigned.turn, nil
		case <-patience.C:
			l.dismissWaiter(w)
			l.releaseWaiters(w.ctx)
		case <-heartbeat:
			b.delivery.SendHeartbeat(w.ctx)
		case <-stopChannel(w.ctx):
			return time.Time{}, ErrReleased
		case <-w.ctx.Done():
			return time.Time{}, w.ctx.Err()
		}
	}
}

// joinQueue queues an attempt and makes sure that the queue is served.
func (l *turnQueue) joinQueue(w *waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w.assigned = make(chan assignment, 1)
	l.waiters = append(l.waiters, w)
	if !l.serving {
		l.serving = true
		go l.serveQueue()
	}
	soon := time.Now()
	if !l.pacer.isCrowded(w.ctx) {
		soon = soon.Add(joinPatience)
	}
	if soon.Before(l.nextLease) {
		l.nextLease = soon
		select {
		case l.wake <- struct{}{}:
		default:
		}
	}
}

// dismissWaiter sends a waiter away whose patience is over, unless it has its assignment.
func (l *turnQueue) dismissWaiter(w *waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.waiters, w); i >= 0 {
		l.waiters = slices.Delete(l.waiters, i, i+1)
		l.sendAway(w, time.Time{})
	}
}

// serveQueue leases turns until no attempt waits. If the limiter does not respond it tries
// again: it is as reachable as the server, which every attempt needs.
func (l *turnQueue) serveQueue() {
	warned := time.Time{}
	for {
		began := time.Now()
		asked, request, pause := l.leaseRequest(began)
		if len(asked) == 0 {
			return
		}
		ctx := asked[0].ctx
		lease, first, err := l.requestLease(ctx, request)
		if err != nil && time.Since(warned) >= time.Minute {
			warned = time.Now()
			l.pacer.logger.Warn("cannot lease slots of a rate limit, trying again", "key", request.Limit.Key, "error", err)
		}
		next := time.Now().Add(leaseAgain)
		if err == nil {
			next = l.assignTurns(asked, lease, first, pause)
			l.releaseWaiters(ctx)
		}
		l.sleepUntil(began.Add(leaseEvery), next)
	}
}

// sleepUntil sleeps until the next lease is due, and at least until a time.
func (l *turnQueue) sleepUntil(least, next time.Time) {
	l.mu.Lock()
	l.nextLease = next
	l.mu.Unlock()
	time.Sleep(time.Until(least))
	for {
		l.mu.Lock()
		timer := time.NewTimer(time.Until(l.nextLease))
		l.mu.Unlock()
		select {
		case <-timer.C:
			return
		case <-l.wake:
			timer.Stop()
		}
	}
}

// leaseRequest sorts the waiters, and returns the waiters for which it requests turns, the
// request, and the pause that it reports; without waiters the queue is no longer
// served.
func (l *turnQueue) leaseRequest(now time.Time) (asked []*waiter, request ratelimit.LeaseRequest, pause time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiters = slices.DeleteFunc(l.waiters, func(w *waiter) bool { return w.ctx.Err() != nil || WorkerStopping(w.ctx) })
	if len(l.waiters) == 0 {
		l.serving = false
		return nil, request, l.pause
	}
	after := l.answer.estimatedTime() + l.ready.estimatedTime()
	request = ratelimit.LeaseRequest{
		Limit: l.waiters[0].limit, Count: min(len(l.waiters), maxTurns), Promises: true,
		AfterSeconds: after.Seconds(), WithinSeconds: (after + leaseAhead).Seconds(),
	}
	if l.pause.After(now) {
		request.PauseSeconds = l.pause.Sub(now).Seconds()
		if l.long {
			request.AskedSeconds = l.askedUntil.Sub(now).Seconds()
		}
	}
	for _, w := range l.waiters {
		w.due = w.due || !w.promise.IsZero() && !w.promise.Add(-l.skew).After(now.Add(after+leaseAhead))
		if w.limit.Interval() > request.Limit.Interval() {
			request.Limit = w.limit // the strictest counts
		}
	}
	slices.SortStableFunc(l.waiters, comparePositions)
	asked = slices.Clone(l.waiters[:request.Count])
	for _, w := range asked {
		switch w.queuePosition() {
		case positionDue:
			request.Due++
		case positionFresh:
			request.Fresh++
		}
	}
	return asked, request, l.pause
}

// The order of a queue: first attempts whose turn is due, then attempts with a promise,
// then the rest.
const (
	positionDue = iota
	positionPromised
	positionFresh
)

func (w *waiter) queuePosition() int {
	switch {
	case w.due:
		return positionDue
	case !w.promise.IsZero():
		return positionPromised
	}
	return positionFresh
}

// comparePositions returns the order of waiters: among those whose turn is due, the one that has waited
// longest is first.
func comparePositions(a, b *waiter) int {
	if order := cmp.Compare(a.queuePosition(), b.queuePosition()); order != 0 {
		return order
	}
	if a.due {
		return a.since.Compare(b.since)
	}
	return a.promise.Compare(b.promise)
}

// assignTurns distributes a lease: turns to the first waiters of the queue, promises to the
// last. Waiters with a long wait are sent away. It returns the time of the next request; pause
// is the pause that the request reported.
func (l *turnQueue) assignTurns(requested []*waiter, lease ratelimit.Lease, first, pause time.Time) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.long && l.pause.Equal(pause) && first.Before(pause) {
		l.pause = first // others were sent that pause before, and have waited
	}
	crowded := l.pacer.isCrowded(requested[0].ctx)
	requested = l.removeWaiters(requested)
	turns := len(requested)
	if lease.Turns != nil {
		turns = min(turns, *lease.Turns)
	}
	for i, w := range requested {
		if w.since.IsZero() {
			w.since = lease.At.Add(-lease.Delay())
		}
		if i < turns {
			w.assigned <- assignment{turn: first.Add(time.Duration(i) * lease.Interval())}
		}
	}
	rest := requested[turns:]
	for i, w := range rest[max(0, len(rest)-lease.Promised):] {
		w.promise, w.due = lease.Promise.Add(time.Duration(i)*lease.Interval()), false
	}
	free := first.Add(time.Duration(turns) * lease.Interval()) // the turn after those
	return l.requeueWaiters(rest, free, lease.Interval(), crowded)
}

// removeWaiters removes the waiters of a request from the queue, and returns those that still
// wait.
func (l *turnQueue) removeWaiters(asked []*waiter) []*waiter {
	asked = slices.DeleteFunc(asked, func(w *waiter) bool { return w.ctx.Err() != nil || !slices.Contains(l.waiters, w) })
	l.waiters = slices.DeleteFunc(l.waiters, func(w *waiter) bool { return slices.Contains(asked, w) })
	return asked
}

// requeueWaiters queues the waiters again that got no turn; free is the first free turn. A
// waiter that would wait for long is sent away. It returns the time of the next
// request.
func (l *turnQueue) requeueWaiters(rest []*waiter, free time.Time, interval time.Duration, crowded bool) time.Time {
	again := free.Add(-leaseAhead / 2) // half of what is leased ahead is used up then
	for i, w := range rest {
		at := free.Add(time.Duration(i) * interval)
		if !w.due && !w.promise.IsZero() {
			at = w.promise.Add(-l.skew)
		}
		if at.After(w.patient) || crowded && !w.due && at.After(time.Now().Add(leaseAhead)) {
			l.sendAway(w, at)
			continue
		}
		l.waiters = append(l.waiters, w)
		if due := at.Add(-leaseAhead); due.Before(again) {
			again = due
		}
	}
	return again
}

// sendAway makes a waiter release its slot and come back for its turn; at is zero if its time
// is not known.
func (l *turnQueue) sendAway(w *waiter, at time.Time) {
	now := time.Now()
	if w.since.IsZero() {
		w.since = now.Add(l.skew)
	}
	turn := ratelimit.Reservation{Since: w.since, Promised: w.promise, Tries: w.tries}
	longest := now.Add(max(firstAway, now.Add(l.skew).Sub(w.since)))
	if turn.Promised.IsZero() {
		turn.Promised = at.Add(l.skew)
	}
	switch back := at.Add(-comesEarly); {
	case w.called && !at.IsZero():
		// Waiters that were called back keep their order of turns, which this is.
		if soon := now.Add(comesEarly); back.Before(soon) {
			back = soon
		}
		turn.At, turn.Promised = back.Add(l.skew), back.Add(comesEarly+l.skew)
	case w.due || at.IsZero():
		// It stays away longer each time, since many would otherwise come for one turn.
		least := now.Add(turnPatience << w.tries)
		if back.Before(least) {
			back = least
		}
		turn.Tries = min(w.tries+1, mostTries)
		turn.At, turn.Promised = back.Add(l.skew), back.Add(comesEarly+l.skew)
	case back.After(longest):
		turn.At = longest.Add(l.skew)
	default:
		turn.At = back.Add(l.skew)
	}
	l.leaving = append(l.leaving, leaving{w, awayError(turn, w.limit.Key, turn.At.Add(-l.skew).Sub(now))})
}

// leaving is a waiter that is sent away.
type leaving struct {
	*waiter
	away *putOffError
}

// releaseWaiters reports to the limiter which waiters leave, so that it can call them back, and
// then releases them. A waiter that was not reported comes back by itself.
func (l *turnQueue) releaseWaiters(ctx context.Context) {
	l.mu.Lock()
	dropped := l.leaving
	l.leaving = nil
	l.mu.Unlock()
	if len(dropped) > 0 && activity.IsActivity(ctx) {
		away := make([]ratelimit.Away, 0, len(dropped))
		for _, w := range dropped {
			away = append(away, ratelimit.Away{
				Workflow: activity.GetInfo(w.ctx).WorkflowExecution.ID, Step: w.step, Index: w.index, At: w.away.until.Turn.At,
			})
		}
		bounded, stop := context.WithTimeout(context.WithoutCancel(ctx), awayTimeout)
		defer stop()
		if err := activity.GetClient(ctx).SignalWorkflow(bounded, l.id, "", ratelimit.AwaySignal, away); err != nil {
			l.pacer.logger.Debug("cannot report dropped attempts to the rate limiter", "key", dropped[0].limit.Key, "error", err)
		}
	}
	for _, w := range dropped {
		w.assigned <- assignment{putOff: w.away}
	}
}

// awayTimeout bounds how long leaving waiters wait for that report.
const awayTimeout = 2 * time.Second
