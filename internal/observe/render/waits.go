package render

import (
	"fmt"
	"time"

	"reprise/internal/base/terminal"
	"reprise/internal/observe/runs"
	"reprise/interpreter"
)

// waitsText is what the iterations of a loop wait for, a line for each group.
func waitsText(step runs.Step, now time.Time) []string {
	var lines []string
	for _, group := range step.Waits {
		line := fmt.Sprintf("%d %s", group.Items, waitsFor(group))
		if step.Loop.Waiting > step.WaitsOf { // more wait than were asked
			line = fmt.Sprintf("of %d iterations that were asked, %s", step.WaitsOf, line)
		}
		if wait := group.NextRetryAt.Sub(now); !group.NextRetryAt.IsZero() && step.Status != interpreter.Paused {
			line += ", next in " + terminal.Duration(max(0, wait).Round(time.Second))
		}
		lines = append(lines, line)
	}
	return lines
}

// waitsFor is a group in words.
func waitsFor(group runs.WaitsFor) string {
	verb := "wait"
	if group.Items == 1 {
		verb = "waits"
	}
	what := map[interpreter.Reason]string{
		interpreter.ReasonTurn: " for a turn under the rate limit", interpreter.ReasonPoll: " for the next poll",
		interpreter.ReasonPage: " for the next page", interpreter.ReasonPerson: " for a person",
		interpreter.ReasonRateLimited: " as they were told to", interpreter.ReasonPaused: " until they are resumed",
	}[group.Reason]
	if group.Reason == interpreter.ReasonRateLimited && group.Items == 1 {
		what = " as it was told to"
	}
	if group.Why == "" {
		return verb + what
	}
	return verb + what + ": " + terminal.Visible(group.Why)
}
