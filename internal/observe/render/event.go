package render

import (
	"cmp"
	"fmt"
	"strings"

	"reprise/internal/base/terminal"
	"reprise/internal/observe/runs"
	"reprise/interpreter"
)

// DescribeEvent describes an event in words, without its time and name.
func DescribeEvent(event runs.Event) string {
	said := strings.Join(eventFacts(event), ", ")
	if failure := event.Error; failure != nil && event.Event == runs.StepRetry { // it was in full where it happened
		said += ": " + failure.ShortText()
	} else if failure != nil {
		said += ": " + terminal.Shorten(failure.Message, 300)
	}
	return strings.TrimSpace(eventPlace(event) + " " + strings.TrimPrefix(said, ": "))
}

// eventPlace returns where an event happened.
func eventPlace(event runs.Event) string {
	where := cmp.Or(event.Sink, event.Step)
	if event.Visit > 1 {
		where += fmt.Sprintf("#%d", event.Visit)
	}
	if event.Index != nil {
		where += fmt.Sprintf("[%d]", *event.Index)
	}
	return where
}

// eventFacts returns an event's details except its error.
func eventFacts(event runs.Event) []string {
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	if event.Attempt > 0 {
		parts = append(parts, rangeText("attempt", event.Attempt, event.AttemptTo))
	}
	if event.Page > 1 || event.PageTo > 0 {
		parts = append(parts, rangeText("page", event.Page, event.PageTo))
	}
	if event.IsRetry {
		add("retry")
	}
	switch {
	case event.Event == runs.AnswerAwaited:
		add("awaits an answer")
	case event.Event != runs.StepRetry:
	case interpreter.Reason(event.Reason) == interpreter.ReasonPerson:
		add(NeedsPerson)
	default:
		add("%s, waits %s", event.Reason, terminal.SecondsText(event.Delay))
	}
	if event.Status != "" {
		add("%s", event.Status)
	}
	if event.Option != "" {
		add("%s", event.Option)
	}
	if decided := event.Event == runs.ActionStarted && event.By+event.Reason != ""; decided {
		add("resumed")
	}
	if event.By != "" {
		add("by %s", event.By)
	}
	if event.Kind().Of != runs.OfWait && event.Reason != "" {
		add("because: %s", event.Reason)
	}
	if event.Concurrency != "" {
		add("under the key %s", event.Concurrency)
	}
	if event.Stats != nil {
		add("%s iterations", event.Stats.ProgressText())
	}
	if event.Duration > 0 && event.Event != runs.ActionStarted {
		add("%s", terminal.SecondsText(event.Duration))
	}
	if event.Child != "" {
		add("runs %s", terminal.EscapeInvisible(event.Child))
	}
	if event.Deliveries > 1 {
		add("dispatched %d times", event.Deliveries)
	}
	return parts
}

func rangeText(what string, from, to int) string {
	if to > from {
		return fmt.Sprintf("%ss %d–%d", what, from, to)
	}
	return fmt.Sprintf("%s %d", what, from)
}
