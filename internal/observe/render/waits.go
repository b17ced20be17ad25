package render

import (
	"fmt"
	"regexp"
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
			line = fmt.Sprintf("of %d iterations that were queried, %s", step.WaitsOf, line)
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
		interpreter.ReasonTurn: " for the rate limit", interpreter.ReasonPoll: " for the next poll",
		interpreter.ReasonPage: " for the next page", interpreter.ReasonPerson: " for a person",
		interpreter.ReasonRateLimited: " as the server requested", interpreter.ReasonPaused: " until they are resumed",
	}[group.Reason]
	if group.Why == "" {
		return verb + what
	}
	return verb + what + ": " + terminal.Visible(group.Why)
}

// lengthOf finds how long a wait is, in what is said of it: "retry 1/4 after 5m0s: HTTP 503".
var lengthOf = regexp.MustCompile(` after [0-9][0-9a-zµ.]*`)

// Due has the text of a wait say when that is over, in place of how long it is.
func Due(text string, at time.Time) string {
	if at.IsZero() {
		return text
	}
	return replaceFirst(lengthOf, text, " at "+at.UTC().Format("15:04:05 UTC"))
}

// CountDown has the text of a wait say how much of it is left, for a line that is drawn again and
// again.
func CountDown(text string, at, now time.Time) string {
	left := at.Sub(now)
	switch {
	case at.IsZero():
		return text
	case left < time.Second/2:
		return replaceFirst(lengthOf, text, " due")
	}
	return replaceFirst(lengthOf, text, " in "+terminal.Duration(left.Round(time.Second)))
}

// replaceFirst replaces the first match: what comes behind is of others.
func replaceFirst(of *regexp.Regexp, text, by string) string {
	at := of.FindStringIndex(text)
	if at == nil {
		return text
	}
	return text[:at[0]] + by + text[at[1]:]
}
