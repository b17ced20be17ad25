package activities

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
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
	pause   time.Time // nobody sends before
	local   interpreter.Limiter
}

// waiter is an attempt that waits; turn is closed when it may go on.
type waiter struct {
	ctx   context.Context
	limit interpreter.RateLimit
	turn  chan struct{}
}

// await waits for the attempt's turn, sending heartbeats meanwhile. The error
// is that of ctx.
func (p *pacer) await(ctx context.Context, limit interpreter.RateLimit) error {
	lane := p.lane(ctx, limit.Key)
	heartbeat, stop := heartbeats(ctx)
	defer stop()
	for {
		turn := lane.join(ctx, limit)
	waiting:
		for {
			select {
			case <-turn:
				break waiting
			case <-heartbeat:
				activity.RecordHeartbeat(ctx)
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		if !lane.paused() {
			return nil
		}
	}
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
func (l *lane) join(ctx context.Context, limit interpreter.RateLimit) <-chan struct{} {
	w := &waiter{ctx: ctx, limit: limit, turn: make(chan struct{})}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiters = append(l.waiters, w)
	if !l.serving {
		l.serving = true
		go l.serve()
	}
	return w.turn
}

func (l *lane) paused() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Now().Before(l.pause)
}

// serve leases turns for those who wait until nobody does.
func (l *lane) serve() {
	for {
		began := time.Now()
		waiters, pause := l.take()
		if len(waiters) == 0 {
			return
		}
		l.hand(waiters, l.lease(waiters, pause))
		time.Sleep(leaseEvery - time.Since(began))
	}
}

// take gives those who wait, up to a lease's worth; with nobody waiting the
// queue is no longer served.
func (l *lane) take() (waiters []*waiter, pause time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.waiters) > 0 && len(waiters) < maxTurns {
		if w := l.waiters[0]; w.ctx.Err() == nil {
			waiters = append(waiters, w)
		}
		l.waiters = l.waiters[1:]
	}
	if len(waiters) == 0 {
		l.serving = false
	}
	return waiters, max(time.Until(l.pause), 0)
}

// lease asks the workflow that holds the limit. Where it cannot be asked this
// worker paces itself: too many workers may then send too much, which is
// better than none sending at all.
func (l *lane) lease(waiters []*waiter, pause time.Duration) interpreter.Lease {
	request := interpreter.LeaseRequest{
		Limit: waiters[len(waiters)-1].limit, Count: len(waiters), PauseSeconds: pause.Seconds(),
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(waiters[0].ctx), leaseTimeout)
	defer cancel()
	if activity.IsActivity(ctx) {
		lease, err := askLimiter(ctx, l.id, request)
		if err == nil {
			return lease
		}
		l.pacer.logger.Warn("cannot lease turns under a rate limit, pacing this worker alone", "key", request.Limit.Key, "error", err)
	}
	return l.local.Lease(request, time.Now())
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

// hand gives each waiter its turn when it comes.
func (l *lane) hand(waiters []*waiter, lease interpreter.Lease) {
	first := time.Now().Add(lease.Delay())
	for i, w := range waiters {
		time.AfterFunc(time.Until(first.Add(time.Duration(i)*lease.Interval())), func() { close(w.turn) })
	}
}
