package ui

import (
	"cmp"
	"time"

	"reprise/internal/base/terminal"
	"reprise/internal/observe/runs"
	"reprise/interpreter"
)

const (
	// timelineWidth is how many units the time of a run is wide.
	timelineWidth = 1000.0
	// mostLanes bounds the visits that are drawn.
	mostLanes = 60
)

// timeline is when the steps of a run were open.
type timeline struct {
	Lanes []lane
	Left  int // visits that are not drawn
	Took  string
}

// lane is a visit of a step.
type lane struct {
	Name   string
	Status interpreter.Status
	X, W   float64
	Text   string
}

// newTimeline is nil where no step has started.
func newTimeline(status *runs.Status) *timeline {
	end := cmp.Or(status.EndedAt, status.At)
	whole := max(end.Sub(status.StartedAt), time.Millisecond)
	t := &timeline{Took: terminal.Duration(whole)}
	at := func(of time.Time) float64 {
		return min(timelineWidth, max(0, timelineWidth*float64(of.Sub(status.StartedAt))/float64(whole)))
	}
	for _, step := range status.Steps {
		if step.StartedAt.IsZero() {
			continue
		}
		if len(t.Lanes) == mostLanes {
			t.Left++
			continue
		}
		to := cmp.Or(step.EndedAt, end)
		x, text := at(step.StartedAt), terminal.Duration(to.Sub(step.StartedAt))
		t.Lanes = append(t.Lanes, lane{Name: step.Step, Status: step.Status, X: x, W: max(4, at(to)-x), Text: text})
	}
	if len(t.Lanes) == 0 {
		return nil
	}
	return t
}
