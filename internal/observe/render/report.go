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
		outcome.writeError(&b, record)
	}
	writeResult(&b, result.Result.Data)
	for _, warning := range result.FurtherWarnings() {
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
func (o EndedRun) writeError(b *strings.Builder, record *protocol.StepRecord) {
	var body strings.Builder
	if o.writeBody(&body, o.Result.Error); body.Len() == 0 {
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

// shownFailures bounds the failed iterations that are listed.
const shownFailures = 20

func (o EndedRun) writeFailedIterations(b *strings.Builder, paper terminal.Paper) {
	for _, record := range o.Result.Steps {
		if record.Loop == nil || len(record.Loop.Errors) == 0 {
			continue
		}
		failures := slices.Clone(record.Loop.Errors)
		slices.SortFunc(failures, func(x, y interpreter.LoopError) int { return cmp.Compare(x.Index, y.Index) })
		fmt.Fprintf(b, "failed iterations of %s:\n", StepName(record))
		for i, failure := range failures {
			if i == shownFailures {
				fmt.Fprintf(b, "  and %d more\n", len(failures)-shownFailures)
				break
			}
			line := fmt.Sprintf("[%d] %s: %s", failure.Index, FormatElement(failure.Element.Data), iterationFailure(failure))
			b.WriteString(terminal.HangingLine("  ", line, paper.Width))
			if i == 0 {
				o.writeBody(b, failure.Error)
			}
		}
	}
}

// Bounds of what is printed of an error's body.
const (
	shownBodyLines = 20
	shownBodyBytes = 2 << 10
)

// writeBody prints the beginning and end of an error's body: a traceback, the output of a program, or a response. For
// a run of another playbook it prints nothing: the message suffices.
func (o EndedRun) writeBody(b *strings.Builder, failure *interpreter.ErrorObject) {
	if failure == nil || failure.Kind == interpreter.KindPlaybook {
		return
	}
	body := bodyText(failure.Body.Data)
	if body == "" {
		return
	}
	text := firstAndLast(o.placeTraceback(body), shownBodyLines, shownBodyBytes)
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

// FormatElement formats an element of a loop on one line.
func FormatElement(value any) string { return terminal.Shorten(expression.Text(value), 60) }

// iterationFailure returns the message of a failed iteration, preceded by the HTTP status unless the message has it.
func iterationFailure(failure interpreter.LoopError) string {
	if failure.Error == nil {
		return "failed"
	}
	message := terminal.Shorten(failure.Error.Message, 200)
	if status := fmt.Sprintf("HTTP %d", failure.Error.Status); failure.Error.Status != 0 && !strings.Contains(message, status) {
		message = status + ": " + message
	}
	return fmt.Sprintf("%s (%s)", message, terminal.Count(failure.Attempts, "attempt"))
}

// shownResult bounds what is printed of a result, in bytes.
const shownResult = 4 << 10

func writeResult(b *strings.Builder, result any) {
	if result == nil {
		return
	}
	if text, ok := result.(string); ok {
		fmt.Fprintf(b, "result: %s\n", cutResult(text))
		return
	}
	var encoded strings.Builder
	if err := terminal.PrintJSON(&encoded, result); err != nil {
		fmt.Fprintf(b, "result: %v\n", err)
		return
	}
	fmt.Fprintf(b, "result: %s\n", cutResult(strings.TrimSpace(encoded.String())))
}

func cutResult(text string) string {
	if len(text) <= shownResult {
		return text
	}
	return strings.ToValidUTF8(text[:shownResult], "") +
		fmt.Sprintf("\n… (cut at %d of %d bytes; --output json gives all of it)", shownResult, len(text))
}
