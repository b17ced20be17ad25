package render

import (
	"fmt"
	"strings"
	"time"

	"reprise/internal/base/terminal"
	"reprise/internal/observe/runs"
	"reprise/interpreter"
)

// NowText describes in one line what an open run is doing: who paused it, or what its steps do. It returns "" if
// nothing is known.
func NowText(status *runs.Status) string {
	if said, paused := status.Control.Held[""]; status.Control.Paused && paused {
		return "paused" + Attribution(said) + agoText(said.At, status.At)
	}
	if status.Queue != nil {
		return queueText(status.Queue, status.At)
	}
	if status.Stalled != "" {
		return "waits: " + terminal.Shorten(status.Stalled, 200)
	}
	text, open := "", 0
	for _, step := range status.Steps {
		if step.Status.Ended() || step.StartedAt.IsZero() {
			continue
		}
		if open++; open == 1 {
			text = stepLabel(step) + ": " + stepNow(step, status)
		}
	}
	if open > 1 {
		text += fmt.Sprintf("; and %s", terminal.Count(open-1, "other step"))
	}
	return text
}

// stepNow is StepNow, with the child run and what holds it for a step that runs another playbook.
func stepNow(step runs.Step, status *runs.Status) string {
	if step.Child == "" || step.Status != interpreter.Running {
		return StepNow(step, status)
	}
	text := "runs " + terminal.EscapeInvisible(step.Child)
	if below := childRunsText(step.ChildRuns, step.Child, status.At, terminal.Paper{}); len(below) > 0 {
		text += ", " + below[0]
	}
	return text
}

// StepNow describes in one line what an open step is doing.
func StepNow(step runs.Step, status *runs.Status) string {
	now := status.At
	if said, paused := status.Control.Held[step.Step]; paused {
		return "paused" + Attribution(said) + agoText(said.At, now)
	}
	switch {
	case step.Loop != nil:
		return CountsText(step)
	case step.Awaits != nil:
		return DescribeAwaited(step.Awaits, now)
	}
	text := attemptOf(step.Item)
	if text != "" {
		text = "attempt " + text
	}
	if step.Status == interpreter.RetryPending && !step.NextRetryAt.IsZero() {
		text = strings.TrimSpace(text + " " + nextOf(step.Item, now))
	}
	switch {
	case step.HeldBy == runs.HeldByPerson:
		text = NeedsPerson + ", after " + text
	case text == "":
		text = step.Status.DisplayWord()
	}
	switch held := heldOf(step.Item, now); {
	case step.Error != nil && step.Status != interpreter.Completed:
		text += ": " + terminal.Shorten(step.Error.Message, 200)
	case held != "":
		text += ", " + held
	}
	if stuck := StuckQueue(step.Queue); stuck != "" {
		text += "; " + stuck
	}
	return text
}

func agoText(at, now time.Time) string {
	if at.IsZero() {
		return ""
	}
	return ", " + terminal.Duration(now.Sub(at).Round(time.Second)) + " ago"
}
