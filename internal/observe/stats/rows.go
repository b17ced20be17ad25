package stats

import (
	"time"

	"reprise/internal/observe/runs"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/incremental"
)

// mostWatermarks bounds the listed watermarks: with a state for each tenant, every iteration has one.
const mostWatermarks = 100

// WatermarkMove is where the watermark of a step was before the runs, and where it was after them.
type WatermarkMove struct {
	Playbook    string `json:"playbook,omitempty"`
	Step        string `json:"step"`
	InChildRuns bool   `json:"in_child_runs,omitempty"`
	State       string `json:"state"`
	// States is the number of states of a loop's iterations, of which State has the lowest watermark; 0 for a single
	// state.
	States int                    `json:"states,omitempty"`
	Type   incremental.CursorType `json:"type,omitempty"`
	// Before is the watermark that the first visit found or, if unknown, where it began to read. After is the
	// watermark at the end of the last visit.
	Before expression.Value `json:"before"`
	After  expression.Value `json:"after"`
	// Pending is where the watermark of a step that writes nothing moves when the last run completes; nil if there is
	// none.
	Pending expression.Value `json:"pending,omitzero"`

	first, last time.Time // of the visits that Before and After are of
}

// markKey identifies a watermark.
type markKey struct {
	stepKey
	state string
}

// rowCounts is what one run did to data.
type rowCounts struct {
	steps *interpreter.Rows // of the steps
	ended *interpreter.Rows // of the run, as it said at its end
	// open is what the ended iterations of open visits did.
	open map[item]*interpreter.Rows
}

// addRows counts what an event reports about data: an ended visit includes its iterations, and an ended run its
// steps.
func (c *Collector) addRows(event runs.Event) {
	visit := item{event.Step, event.Visit, -1}
	switch event.Event {
	case runs.IterationCompleted, runs.IterationFailed:
		if event.Rows != nil {
			c.rows.open[visit] = c.rows.open[visit].Plus(event.Rows)
		}
	case runs.StepResult, runs.StepFailedTerminal:
		delete(c.rows.open, visit)
		c.addStepRows(event.Step, event.Rows)
		c.addWatermark(event)
	case runs.ExecutionCompleted, runs.ExecutionFailed, runs.ExecutionCancelled:
		c.rows.ended = event.Rows
	}
}

func (c *Collector) addStepRows(step string, rows *interpreter.Rows) {
	if rows == nil {
		return
	}
	figures := c.figuresOf(step)
	figures.Rows, c.rows.steps = figures.Rows.Plus(rows), c.rows.steps.Plus(rows)
}

// endRows counts what the open visits of the current run did so far.
func (c *Collector) endRows() {
	for visit, rows := range c.rows.open {
		c.addStepRows(visit.step, rows)
	}
	c.current.Rows = c.rows.steps
	if c.rows.ended != nil {
		c.current.Rows = c.rows.ended
	}
}

// allRows adds up the runs. A run that another of them started is already part of that one.
func (c *Collector) allRows() (all *interpreter.Rows) {
	for _, run := range c.stats.Runs {
		if !c.inside[run.RunID] {
			all = all.Plus(run.Rows)
		}
	}
	return all
}

// addWatermark records the watermarks that a visit found and left. Runs may be read in any order.
func (c *Collector) addWatermark(event runs.Event) {
	read := event.Incremental
	if read == nil {
		return
	}
	key := markKey{stepKey{c.current.Playbook, event.Step, c.child}, read.State}
	at, known := c.marks[key]
	if !known && len(c.stats.Watermarks) >= mostWatermarks {
		c.stats.WatermarksLeft++
		return
	}
	if !known {
		at = len(c.stats.Watermarks)
		c.marks[key] = at
		c.stats.Watermarks = append(c.stats.Watermarks, WatermarkMove{
			Playbook: key.playbook, Step: key.step, InChildRuns: key.child, State: read.State, States: read.States, Type: read.Type,
		})
	}
	mark := &c.stats.Watermarks[at]
	if mark.first.IsZero() || event.At.Before(mark.first) {
		mark.first, mark.Before = event.At, read.BeginValue()
	}
	if !event.At.Before(mark.last) {
		mark.last, mark.After, mark.Pending = event.At, read.Watermark, read.MovesTo
	}
}
