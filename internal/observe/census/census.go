// Package census reads gauges about a namespace from its Temporal server: open runs, waiting tasks, workers, and the
// watermarks of loads. They are available whichever process did the work, and after a restart.
package census

import (
	"context"
	"errors"
	"log/slog"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"reprise/internal/base/meter"
	"reprise/internal/base/payload"
	"reprise/internal/base/sleep"
	"reprise/internal/observe/runs"
	"reprise/interpreter"
)

const (
	// Every is the time between two rounds, in each worker and each `starter serve` with metrics.
	Every = time.Minute
	// roundTimeout bounds a round: a server that does not respond must not hold up the next one.
	roundTimeout = 30 * time.Second
)

// Sampler reads the figures round by round. It must be used from one goroutine.
type Sampler struct {
	Reader    *runs.Reader
	To        meter.Gauges
	TaskQueue string
	Logger    *slog.Logger

	oldest     map[interpreter.Status]time.Time // of the open runs in the last round
	watermarks sweep
	failing    bool // the last round failed
}

// NewSampler returns a Sampler for a namespace. store is the payload store, nil for none.
func NewSampler(c client.Client, store *payload.Store, namespace string) *Sampler {
	return &Sampler{Reader: &runs.Reader{Client: c, Store: store, Namespace: namespace}}
}

// Watch makes rounds until ctx ends. It does nothing if c.To is nil.
func (c *Sampler) Watch(ctx context.Context, every time.Duration) {
	if c.To == nil {
		return
	}
	c.To.Age(meter.ReadingsAge, time.Now(), time.Now())
	for {
		c.sampleAll(ctx)
		if sleep.For(ctx, every) != nil {
			return
		}
	}
}

// sampleAll reads everything once. A figure that cannot be read keeps its last value; meter.ReadingsAge shows its age.
func (c *Sampler) sampleAll(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, roundTimeout)
	defer cancel()
	err := errors.Join(c.countOpen(ctx), c.readQueue(ctx), c.sweepWatermarks(ctx))
	switch {
	case err == nil:
		c.To.Age(meter.ReadingsAge, time.Now(), time.Now())
	case !c.failing && !errors.Is(ctx.Err(), context.Canceled):
		c.Logger.Warn("the figures of open runs were not read", "error", err)
	}
	c.failing = err != nil
}

// countOpen counts the open runs with each status, and finds the oldest.
func (c *Sampler) countOpen(ctx context.Context) error {
	known := true
	now, oldest := time.Now(), map[interpreter.Status]time.Time{}
	for _, status := range interpreter.StatusesOf(interpreter.OfRun) {
		if status.Ended() || !known && status != interpreter.Running {
			continue
		}
		n, err := runs.CountRuns(ctx, c.Reader, runs.OpenFilter(status, known))
		if errors.Is(err, runs.ErrNoAttributes) {
			known = false
			continue
		}
		if err != nil {
			return err
		}
		c.To.Set(meter.OpenRuns, float64(n), string(status))
		var began time.Time
		if n > 0 {
			if began, err = runs.OldestStart(ctx, c.Reader, runs.OpenFilter(status, known), c.oldest[status], now); err != nil {
				return err
			}
		}
		if began.IsZero() { // there is none, or it has ended since it was counted
			c.To.Clear(meter.OldestRun, string(status))
			continue
		}
		oldest[status] = began
		c.To.Age(meter.OldestRun, began, now, string(status))
	}
	c.oldest = oldest
	return nil
}

// readQueue counts the workers that poll the task queue, and the tasks that wait for them.
func (c *Sampler) readQueue(ctx context.Context) error {
	for kind, name := range map[enumspb.TaskQueueType]string{
		enumspb.TASK_QUEUE_TYPE_WORKFLOW: "workflow", enumspb.TASK_QUEUE_TYPE_ACTIVITY: "activity",
	} {
		described, err := c.Reader.Client.WorkflowService().DescribeTaskQueue(ctx, &workflowservice.DescribeTaskQueueRequest{
			Namespace: c.Reader.Namespace, TaskQueue: &taskqueuepb.TaskQueue{Name: c.TaskQueue}, TaskQueueType: kind, ReportStats: true,
		})
		if err != nil {
			return err
		}
		c.To.Set(meter.BacklogTasks, float64(described.GetStats().GetApproximateBacklogCount()), c.TaskQueue, name)
		c.To.Set(meter.BacklogAge, described.GetStats().GetApproximateBacklogAge().AsDuration().Seconds(), c.TaskQueue, name)
		if kind == enumspb.TASK_QUEUE_TYPE_WORKFLOW {
			c.To.Set(meter.QueueWorkers, float64(countPolling(described.GetPollers(), time.Now())), c.TaskQueue)
		}
	}
	return nil
}

// countPolling counts the workers that polled recently: the server lists others for minutes.
func countPolling(pollers []*taskqueuepb.PollerInfo, now time.Time) (polling int) {
	for _, poller := range pollers {
		if (runs.Workers{Count: 1, LastPoll: poller.GetLastAccessTime().AsTime()}).HavePolled(now) {
			polling++
		}
	}
	return polling
}
