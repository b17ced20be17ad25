package census

import (
	"context"
	"errors"
	"time"

	"reprise/internal/base/meter"
	"reprise/internal/observe/ending"
	"reprise/internal/observe/runs"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/incremental"
	"reprise/workflows/protocol"
)

const (
	// sweepBack is how long ago a run may have ended for the first sweep to find it.
	sweepBack = 30 * 24 * time.Hour
	// sweepOverlap is the longest delay after which the server lists a run as ended.
	sweepOverlap = time.Minute
	// mostSweepCalls bounds the calls to the server in one round; the next round continues the sweep.
	mostSweepCalls = 30
	// mostSwept bounds the playbooks of a sweep, because each query names them. Metrics distinguish as many.
	mostSwept = 100
	// plainFor is how long a playbook without watermarks is not checked again.
	plainFor = time.Hour
	// sweepPage is how many runs one call lists.
	sweepPage = 100
)

// sweep looks at the runs that have ended since the previous sweep. For each playbook it reads the last run: its
// result has the watermarks of all its steps, wherever they are stored.
type sweep struct {
	since, began time.Time
	seen         []string     // playbooks of this sweep
	todo         []runs.Found // runs whose results are to be read
	plain        map[string]time.Time
	read         map[string]bool // playbooks whose watermarks are known
}

// sweepWatermarks continues the current sweep, or begins the next one.
func (c *Sampler) sweepWatermarks(ctx context.Context) error {
	s, calls := &c.watermarks, 0
	if s.plain == nil {
		s.plain, s.read, s.since = map[string]time.Time{}, map[string]bool{}, time.Now().Add(-sweepBack)
	}
	if s.began.IsZero() {
		s.began = time.Now()
	}
	for ended := false; !ended; {
		for ; len(s.todo) > 0; s.todo = s.todo[1:] {
			if calls++; calls > mostSweepCalls {
				return nil
			}
			if err := c.readWatermarks(ctx, s.todo[0]); err != nil {
				return err
			}
		}
		if calls++; calls > mostSweepCalls {
			return nil
		}
		page, err := c.Reader.Page(ctx, runs.Filter{EndedSince: s.since, OtherThan: s.seen, Children: true}, sweepPage, nil)
		if errors.Is(err, runs.ErrNoAttributes) {
			return nil // the server does not know the playbooks of runs
		}
		if err != nil {
			return err
		}
		s.addPage(page.Runs, time.Now())
		ended = page.Next == nil && len(s.todo) == 0 || len(s.seen) >= mostSwept || len(page.Runs) == 0
	}
	s.since, s.began, s.seen = s.began.Add(-sweepOverlap), time.Time{}, nil
	return nil
}

// addPage adds the last run of each new playbook on a page. Pages list runs that ended last first.
func (s *sweep) addPage(page []runs.Found, now time.Time) {
	known := map[string]bool{"": true}
	for _, name := range s.seen {
		known[name] = true
	}
	for _, run := range page {
		if known[run.Playbook] {
			continue
		}
		known[run.Playbook] = true
		s.seen = append(s.seen, run.Playbook)
		if now.Sub(s.plain[run.Playbook]) > plainFor {
			s.todo = append(s.todo, run)
		}
	}
}

// readWatermarks reads the watermarks from the result of an ended run. A run without a result has none.
func (c *Sampler) readWatermarks(ctx context.Context, run runs.Found) error {
	result, err := ending.WaitForResult(ctx, c.Reader.Client.GetWorkflow(ctx, run.WorkflowID, run.LastRunID()))
	if errors.Is(err, ending.ErrNoResult) || errors.Is(err, ending.ErrRefused) {
		return nil
	}
	if err != nil {
		return err
	}
	stateful := false
	for _, record := range result.Steps {
		stateful = stateful || record.Incremental != nil
		if at, ok := watermarkTime(record, result.Status); ok {
			c.watermarks.read[run.Playbook] = true
			c.To.Age(meter.WatermarkAge, at, run.EndedAt, run.Playbook, record.Step)
		}
	}
	switch {
	case !stateful && result.Status == interpreter.Completed: // another may not have come to the step
		c.watermarks.plain[run.Playbook] = time.Now()
	case result.Status != interpreter.Completed && !c.watermarks.read[run.Playbook]:
		return c.addCompleted(ctx, run.Playbook)
	}
	return nil
}

// addCompleted queues the last completed run of a playbook for reading: a failed run may not know the watermarks.
func (c *Sampler) addCompleted(ctx context.Context, playbook string) error {
	c.watermarks.read[playbook] = true // once is enough
	page, err := c.Reader.Page(ctx, runs.Filter{Playbook: playbook, Status: interpreter.Completed, Children: true}, 1, nil)
	c.watermarks.todo = append(c.watermarks.todo, page.Runs...)
	return err
}

// watermarkTime returns the time that a step's watermark has reached; false if the watermark is unknown or not a
// time.
func watermarkTime(record protocol.StepRecord, status interpreter.Status) (time.Time, bool) {
	of := record.Incremental
	if of == nil {
		return time.Time{}, false
	}
	value := of.Watermark
	if of.MovesTo.Data != nil && status == interpreter.Completed {
		value = of.MovesTo
	}
	return timeOfCursor(of.Form(), value)
}

func timeOfCursor(form incremental.Form, value expression.Value) (time.Time, bool) {
	if value.Data == nil {
		return time.Time{}, false
	}
	cursor, err := form.ParseAny(value.Data)
	if err != nil {
		return time.Time{}, false
	}
	return incremental.TimeOf(form.Type, cursor)
}
