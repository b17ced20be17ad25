package render

import (
	"fmt"
	"time"

	"reprise/internal/base/terminal"
	"reprise/internal/observe/runs"
	"reprise/interpreter"
)

// waitsText describes what the iterations of a loop wait for, a line for each group.
func waitsText(step runs.Step, now time.Time) []string {
	var lines []string
	for _, group := range step.Waits {
		line := fmt.Sprintf("%d %s", group.Items, waitsFor(group))
		if step.Loop.Waiting > step.WaitsOf { // more wait than were asked
			line = fmt.Sprintf("of %d iterations that were queried, %s", step.WaitsOf, line)
		}
		if wait := group.NextRetryAt.Sub(now); !group.NextRetryAt.IsZero() && step.Status != interpreter.Paused {
			line += ", next in " + terminal.Duration(max(0, wait).Round(time.Second))
		}
		lines = append(lines, line)
	}
	return lines
}

// waitsFor describes what a group waits for.
func waitsFor(group runs.WaitsFor) string {
	verb := "wait"
	if group.Items == 1 {
		verb = "waits"
	}
	if group.Reason == interpreter.ReasonPerson {
		verb = PeopleNeeded(group.Items)
	}
	what := map[interpreter.Reason]string{
		interpreter.ReasonTurn: " for the rate limit", interpreter.ReasonPoll: " for the next poll",
		interpreter.ReasonPage: " for the next page", interpreter.ReasonRateLimited: " as the server requested", interpreter.ReasonPaused: " until they are resumed",
		interpreter.ReasonKeeper: " for a state that is out of reach",
	}[group.Reason]
	if group.Why == "" {
		return verb + what
	}
	return verb + what + ": " + terminal.EscapeInvisible(group.Why)
}

// DueText describes what an item waits for and when the wait ends, for a line that is not redrawn.
func DueText(item interpreter.CallStatus) string {
	if item.Phrase == nil || item.NextRetryAt.IsZero() {
		return item.Waiting
	}
	return item.Phrase.PhraseUntil("at " + item.NextRetryAt.UTC().Format("15:04:05 UTC"))
}

// CountDown describes what an item waits for and how much of the wait is left, for a line that is redrawn.
func CountDown(item interpreter.CallStatus, now time.Time) string {
	left := item.NextRetryAt.Sub(now)
	switch {
	case item.Phrase == nil || item.NextRetryAt.IsZero():
		return item.Waiting
	case left < time.Second/2:
		return item.Phrase.PhraseUntil("due")
	}
	return item.Phrase.PhraseUntil("in " + terminal.Duration(left.Round(time.Second)))
}
