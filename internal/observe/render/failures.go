package render

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"

	"reprise/internal/base/terminal"
	"reprise/interpreter"
)

// comparedText is the number of characters by which the causes of failed iterations are compared.
const comparedText = 200

// CauseText returns the text that failures with one cause share: the status, or the kind with its type. Where a failure has neither
// status nor type, it is the message.
func CauseText(failure *interpreter.ErrorObject) string {
	if failure == nil {
		return "failed"
	}
	cause := failure.ShortText()
	if cause == string(failure.Kind) {
		cause = cmp.Or(failure.Message, cause)
	}
	return terminal.Shorten(cause, comparedText)
}

// failedIteration is a failed iteration in a list.
type failedIteration struct {
	index    int
	element  string // on one line; "" if it is not shown
	attempts int
	failure  *interpreter.ErrorObject
}

// groupFailures groups failed iterations by cause: the largest group first, and of equal ones the one with the lower first index. The
// iterations of a group are in the order of their indexes.
func groupFailures(failed []failedIteration) [][]failedIteration {
	var groups [][]failedIteration
	at := map[string]int{}
	failed = slices.SortedStableFunc(slices.Values(failed), func(x, y failedIteration) int { return cmp.Compare(x.index, y.index) })
	for _, one := range failed {
		cause := CauseText(one.failure)
		i, known := at[cause]
		if !known {
			i = len(groups)
			at[cause] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], one)
	}
	slices.SortStableFunc(groups, func(x, y []failedIteration) int { return cmp.Compare(len(y), len(x)) })
	return groups
}

// shownIndexes bounds the iterations that a group lists at a terminal.
const shownIndexes = 8

// writeGroup prints a group of several iterations: how many they are, what they have in common, and the first of them. Of is what they
// are called. It reports whether it has left some out.
func writeGroup(b *strings.Builder, group []failedIteration, of string, paper terminal.Paper) (cut bool) {
	const margin = "    "
	first, attempts := group[0], attemptsOf(group)
	message := iterationMessage(first.failure, paper)
	said := fmt.Sprintf("%d %s: %s (%s)", len(group), of, message, attempts)
	if slices.ContainsFunc(group, func(one failedIteration) bool { return messageText(one.failure) != messageText(first.failure) }) {
		cause, rest := CauseText(first.failure), ": "+message
		if from, begins := strings.CutPrefix(message, cause+" "); begins {
			rest = " " + from // HTTP 404 (1 attempt each), the first from GET …
		}
		said = fmt.Sprintf("%d %s: %s (%s), the first%s", len(group), of, cause, attempts, rest)
	}
	b.WriteString(terminal.HangingLine("  ", said, paper.Width))
	line, space := "", max(paper.Width-len(margin)-len(", and 100000 more"), 20)
	for i, one := range group[:min(len(group), shownIndexes)] {
		item := strings.TrimSpace(fmt.Sprintf("[%d] %s", one.index, one.element))
		switch {
		case i == 0:
			line = item
		case text.StringWidth(line+", "+item) > space: // an element is not apart from its index
			b.WriteString(terminal.HangingLine(margin, line+",", paper.Width))
			line = item
		default:
			line += ", " + item
		}
	}
	more := len(group) - shownIndexes
	if more > 0 {
		line += fmt.Sprintf(" and %d more", more)
	}
	b.WriteString(terminal.HangingLine(margin, line, paper.Width))
	return more > 0
}

func messageText(failure *interpreter.ErrorObject) string {
	if failure == nil {
		return ""
	}
	return failure.Message
}

// attemptsOf says how many attempts the iterations of a group had.
func attemptsOf(group []failedIteration) string {
	least, most := group[0].attempts, group[0].attempts
	for _, one := range group {
		least, most = min(least, one.attempts), max(most, one.attempts)
	}
	if least == most {
		return terminal.Count(most, "attempt") + " each"
	}
	return fmt.Sprintf("%d to %d attempts each", least, most)
}
