package report

import (
	"fmt"
	"time"

	"reprise/internal/observe/runs"
	"reprise/interpreter"
)

// shownChildRuns bounds the listed child runs.
const shownChildRuns = 100

// ChildRunTable lists the child runs that a run started. Events are added as they are read.
type ChildRunTable struct {
	Rows []*ChildRun
	// Left counts the child runs beyond the limit, which have no row.
	Left  int
	known map[string]*ChildRun
}

// ChildRun is a run of another playbook that the run started.
type ChildRun struct {
	WorkflowID string
	Step       string // with the iteration
	Attempt    int
	Status     interpreter.Status
	Error      string
	// Link is its address in the web UI; "" if unknown.
	Link    string
	seconds float64
}

// DurationText returns how long the run took, or "" if it has not ended.
func (r *ChildRun) DurationText() string {
	if r.Status == interpreter.Running {
		return ""
	}
	return tookText(time.Duration(r.seconds * float64(time.Second)))
}

// AddEvent applies an event of the parent run.
func (b *ChildRunTable) AddEvent(event runs.Event) {
	switch {
	case event.Child == "":
	case event.Event == runs.ActionStarted:
		b.beginRun(event)
	case event.Event == runs.ActionCompleted || event.Event == runs.ActionError:
		row := b.known[event.Child]
		if row == nil {
			return
		}
		row.Status, row.seconds = interpreter.Completed, event.Duration
		if event.Error != nil {
			row.Status, row.Error = interpreter.Failed, event.Error.Message
			if event.Error.Kind == interpreter.KindCancelled || event.Error.Type == string(interpreter.KindCancelled) {
				row.Status = interpreter.Cancelled
			}
		}
	}
}

func (b *ChildRunTable) beginRun(event runs.Event) {
	if len(b.Rows) == shownChildRuns {
		b.Left++
		return
	}
	if b.known == nil {
		b.known = map[string]*ChildRun{}
	}
	step := event.Step
	if event.Index != nil {
		step += fmt.Sprintf("[%d]", *event.Index)
	}
	row := &ChildRun{WorkflowID: event.Child, Step: step, Attempt: event.Attempt, Status: interpreter.Running}
	b.Rows, b.known[event.Child] = append(b.Rows, row), row
}
