package render

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"reprise/internal/base/terminal"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
	"reprise/workflows/protocol"
)

// StepName returns the step name of a record, with the visit number from the second visit on.
func StepName(record protocol.StepRecord) string {
	if record.Visit > 1 {
		return fmt.Sprintf("%s#%d", record.Step, record.Visit)
	}
	return record.Step
}

// PrintReport prints how a run ended. The warnings and the verdict come last, where nobody overlooks them.
func PrintReport(w io.Writer, outcome EndedRun, paper terminal.Paper) {
	var b strings.Builder
	result := outcome.Result
	if len(result.Steps) > 0 {
		b.WriteString(StepTable(result.Steps, paper) + "\n")
	}
	writeRows(&b, result, paper)
	outcome.writeFailedIterations(&b, paper)
	if record := outcome.failedVisit(); record == nil || record.Loop == nil || len(record.Loop.Errors) == 0 {
		outcome.writeError(&b, record, paper)
	}
	outcome.writeResult(&b, paper)
	for _, warning := range GroupWarnings(result.FurtherWarnings()) {
		for _, line := range paper.WrapLines("warning: " + terminal.EscapeInvisible(warning)) {
			b.WriteString(paper.PaintWarning(line) + "\n")
		}
	}
	for _, line := range paper.WrapLines(terminal.EscapeInvisible(outcome.verdictText(paper))) {
		b.WriteString(line + "\n")
	}
	_, _ = io.WriteString(w, b.String())
}

// writeError prints the body of the error that ended the run; the verdict shows its message.
func (o EndedRun) writeError(b *strings.Builder, record *protocol.StepRecord, paper terminal.Paper) {
	var body strings.Builder
	if o.writeBody(&body, o.Result.Error, paper); body.Len() == 0 {
		return
	}
	of := "the run"
	if record != nil {
		of = StepName(*record) + o.stepPlace(record.Step)
	}
	fmt.Fprintf(b, "error of %s:\n%s", of, body.String())
}

// StepTable returns a table of the steps that fits the terminal. Details that do not fit follow below it; errors are
// printed with the failure.
func StepTable(records []protocol.StepRecord, paper terminal.Paper) string {
	steps := itemTable[protocol.StepRecord]{title: "step", columns: []itemColumn[protocol.StepRecord]{
		{"status", 0, func(r protocol.StepRecord) string { return paper.Paint(styleOf(r.Status), string(r.Status)) }},
		{"iterations", 2, iterationsText},
		{"attempts", 3, func(r protocol.StepRecord) string { return terminal.NumberText(r.Attempts) }},
		{"pages", 3, func(r protocol.StepRecord) string { return terminal.NumberText(r.Pages) }},
		{"time", 4, durationText},
		{"error", 1, func(r protocol.StepRecord) string { return errorCell(r, paper) }},
	}}
	rendered, shown := steps.fitTable(records, lists.Map(records, StepName), paper)
	if slices.Contains(shown, "iterations") {
		return rendered
	}
	return rendered + loopLines(records, paper.Width)
}

// errorCell returns a step's error message, shortened: the full text is below the table.
func errorCell(record protocol.StepRecord, paper terminal.Paper) string {
	if record.Error == nil {
		return ""
	}
	return paper.Shorten(record.Error.Message, 60)
}

// loopLines describes the progress of loops, one per line.
func loopLines(records []protocol.StepRecord, width int) string {
	var b strings.Builder
	for _, record := range records {
		if record.Loop == nil {
			continue
		}
		for _, line := range terminal.WrapText(StepName(record)+": "+iterationsText(record), width) {
			b.WriteString("\n" + line)
		}
	}
	return b.String()
}

// iterationsText summarizes the iterations of a loop, without zero counts.
func iterationsText(record protocol.StepRecord) string {
	if record.Loop == nil {
		return ""
	}
	stats := record.Loop.Stats
	return stats.ProgressText() + AmongText([]StatusCount{{stats.Truncated, "truncated"}})
}

func durationText(record protocol.StepRecord) string {
	if record.StartedAt.IsZero() || record.EndedAt.IsZero() {
		return ""
	}
	return terminal.Duration(record.EndedAt.Sub(record.StartedAt))
}

// shownFailures bounds the failed iterations, or groups of them, that are listed at a terminal.
const shownFailures = 20

// writeFailedIterations lists the failed iterations of each loop: all of them, and at a terminal those with the same cause together.
func (o EndedRun) writeFailedIterations(b *strings.Builder, paper terminal.Paper) {
	for _, record := range o.Result.Steps {
		if record.Loop == nil || len(record.Loop.Errors) == 0 {
			continue
		}
		failed := lists.Map(record.Loop.Errors, func(failure interpreter.LoopError) failedIteration {
			return failedIteration{failure.Index, shortElement(failure.Element.Data, paper), failure.Attempts, failure.Error}
		})
		slices.SortFunc(failed, func(x, y failedIteration) int { return cmp.Compare(x.index, y.index) })
		groups := lists.Map(failed, func(one failedIteration) []failedIteration { return []failedIteration{one} })
		if paper.IsBounded() {
			groups = groupFailures(failed)
		}
		fmt.Fprintf(b, "failed iterations of %s:\n", StepName(record))
		o.writeGroups(b, groups, paper)
	}
}

func (o EndedRun) writeGroups(b *strings.Builder, groups [][]failedIteration, paper terminal.Paper) {
	cut, left := false, 0
	for i, group := range groups {
		if i >= shownFailures && paper.IsBounded() {
			left += len(group)
			continue
		}
		if first := group[0]; len(group) == 1 {
			line := fmt.Sprintf("[%d] %s: %s (%s)", first.index, first.element, iterationMessage(first.failure, paper), terminal.Count(first.attempts, "attempt"))
			b.WriteString(terminal.HangingLine("  ", line, paper.Width))
		} else {
			cut = writeGroup(b, group, "iterations", paper) || cut
		}
		if i == 0 {
			o.writeBody(b, group[0].failure, paper)
		}
	}
	switch {
	case left > 0:
		b.WriteString(terminal.HangingLine("  ", fmt.Sprintf("and %d more; %s", left, o.restHint()), paper.Width))
	case cut:
		b.WriteString(terminal.HangingLine("  ", o.restHint(), paper.Width))
	}
}

// Bounds of what a terminal shows of an error's body.
const (
	shownBodyLines = 20
	shownBodyBytes = 2 << 10
)

// writeBody prints an error's body, a traceback, the output of a program, or a response: all of it, and at a terminal its
// beginning and end. Of a failed child run it prints the body with which that failed.
func (o EndedRun) writeBody(b *strings.Builder, failure *interpreter.ErrorObject, paper terminal.Paper) {
	if failure == nil {
		return
	}
	text, hint := "", o.restHint()
	if failure.Kind != interpreter.KindPlaybook {
		text = o.placeTraceback(bodyText(failure.Body.Data))
	} else if child, cause := o.childOf(failure); cause != nil {
		text, hint = cause.Body.Text(), child.restHint()
	}
	if text == "" {
		return
	}
	if paper.IsBounded() {
		text = firstAndLast(text, shownBodyLines, shownBodyBytes, hint)
	}
	b.WriteString("    " + strings.ReplaceAll(terminal.EscapeInvisible(text), "\n", "\n    ") + "\n")
}

// bodyText returns an error's body as text.
func bodyText(body any) string {
	switch body := body.(type) {
	case nil:
		return ""
	case string:
		return strings.TrimSpace(body)
	case map[string]any:
		for _, key := range []string{"traceback", "output"} {
			if text, isText := body[key].(string); isText && len(body) == 1 {
				return strings.Trim(strings.TrimRight(text, " \n"), "\n")
			}
		}
	}
	var encoded strings.Builder
	if terminal.PrintJSON(&encoded, body) != nil {
		return ""
	}
	return strings.TrimSpace(encoded.String())
}

// shownElement bounds an element of a loop, in characters.
const shownElement = 60

// FormatElement formats an element of a loop on one line, shortened.
func FormatElement(value any) string { return terminal.Shorten(expression.Text(value), shownElement) }

// shortElement is FormatElement at a terminal, and the whole element on one line for pipes and files.
func shortElement(value any, paper terminal.Paper) string {
	return paper.Shorten(expression.Text(value), shownElement)
}

// iterationMessage returns the message of a failed iteration, preceded by the HTTP status unless the message has it.
func iterationMessage(failure *interpreter.ErrorObject, paper terminal.Paper) string {
	if failure == nil {
		return "failed"
	}
	message := paper.Shorten(failure.Message, 200)
	if status := fmt.Sprintf("HTTP %d", failure.Status); failure.Status != 0 && !strings.Contains(message, status) {
		message = status + ": " + message
	}
	return message
}

// shownResult bounds what a terminal shows of a result, in bytes: a larger one would move the table of the steps off the
// screen.
const shownResult = 4 << 10

// writeResult prints the result of the run: all of it, and at a terminal its beginning.
func (o EndedRun) writeResult(b *strings.Builder, paper terminal.Paper) {
	result := o.Result.Result.Data
	if result == nil {
		return
	}
	text, isText := result.(string)
	if !isText {
		var encoded strings.Builder
		if err := terminal.PrintJSON(&encoded, result); err != nil {
			fmt.Fprintf(b, "result: %v\n", err)
			return
		}
		text = strings.TrimSpace(encoded.String())
	}
	if !paper.IsBounded() || len(text) <= shownResult {
		fmt.Fprintf(b, "result: %s\n", text)
		return
	}
	shown := strings.ToValidUTF8(text[:shownResult], "")
	fmt.Fprintf(b, "result: %s\n", shown)
	for _, line := range paper.WrapLines(fmt.Sprintf("… %d of %d bytes are not shown; %s", len(text)-len(shown), len(text), o.restHint())) {
		b.WriteString(line + "\n")
	}
}

// restHint says how to see what a terminal does not show.
func (o EndedRun) restHint() string {
	if o.Whole == "" {
		return "--output json or a pipe shows all of it"
	}
	return "to print all of it: " + o.Whole
}
