package render

import (
	"cmp"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"reprise/internal/base/terminal"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
	"reprise/workflows"
)

// StepName is the step of a record, with its visit from the second on.
func StepName(record workflows.StepRecord) string {
	if record.Visit > 1 {
		return fmt.Sprintf("%s#%d", record.Step, record.Visit)
	}
	return record.Step
}

// Report is how a run has ended. Its last lines are the warnings and the verdict, where they are
// not overlooked.
func Report(w io.Writer, outcome EndedRun, paper terminal.Paper) {
	var b strings.Builder
	result := outcome.Result
	if len(result.Steps) > 0 {
		b.WriteString(StepTable(result.Steps, paper) + "\n")
	}
	outcome.writeFailedIterations(&b, paper)
	if record := outcome.failed(); record == nil || record.Loop == nil || len(record.Loop.Errors) == 0 {
		outcome.writeError(&b, record)
	}
	writeResult(&b, result.Result.Data)
	for _, warning := range result.FurtherWarnings() {
		for _, line := range paper.Lines("warning: " + terminal.Visible(warning)) {
			b.WriteString(paper.Warning(line) + "\n")
		}
	}
	for _, line := range paper.Lines(terminal.Visible(outcome.verdict(paper))) {
		b.WriteString(line + "\n")
	}
	_, _ = io.WriteString(w, b.String())
}

// writeError prints what the error came with that ended the run; the verdict has its message.
func (o EndedRun) writeError(b *strings.Builder, record *workflows.StepRecord) {
	var body strings.Builder
	if o.writeBody(&body, o.Result.Error); body.Len() == 0 {
		return
	}
	of := "the run"
	if record != nil {
		of = StepName(*record) + o.place(record.Step)
	}
	fmt.Fprintf(b, "error of %s:\n%s", of, body.String())
}

// Trace is what the failure of a run, or of its first failed iteration, came with: a traceback, the
// output of a program or an answer, with the lines of the playbook's file. marked is the last of
// these lines, 0 for none.
func (o EndedRun) Trace() (text string, marked int) {
	record, failure := o.failed(), o.Result.Error
	for i := range o.Result.Steps {
		if loop := &o.Result.Steps[i]; record == nil && loop.Loop != nil && len(loop.Loop.Errors) > 0 {
			record = loop
		}
	}
	if record != nil {
		if first := firstFailed(record); first != nil {
			failure = first.Error
		}
	}
	var b strings.Builder
	o.writeBody(&b, failure)
	text = strings.ReplaceAll(strings.TrimPrefix(strings.TrimSuffix(b.String(), "\n"), "    "), "\n    ", "\n")
	if o.Book != nil {
		for _, frame := range regexp.MustCompile(regexp.QuoteMeta(fmt.Sprintf("File %q, line ", o.Book.File.Name))+`(\d+)`).FindAllStringSubmatch(text, -1) {
			marked, _ = strconv.Atoi(frame[1])
		}
	}
	return text, marked
}

// column is one of the table of steps.
type column struct {
	name string
	cell func(workflows.StepRecord) string
}

var (
	columnStep       = column{"step", StepName}
	columnStatus     = column{"status", func(r workflows.StepRecord) string { return string(r.Status) }}
	columnIterations = column{"iterations", iterations}
	columnAttempts   = column{"attempts", func(r workflows.StepRecord) string { return terminal.Number(r.Attempts) }}
	columnPages      = column{"pages", func(r workflows.StepRecord) string { return terminal.Number(r.Pages) }}
	columnTime       = column{"time", duration}
	columnError      = column{"error", func(r workflows.StepRecord) string { // the message in full is below
		if r.Error == nil {
			return ""
		}
		return terminal.Shorten(r.Error.Message, 60)
	}}
)

// StepTable is a table of the steps that fits a terminal: what does not fit beside the
// rest is below it or, of errors, with the failure.
func StepTable(records []workflows.StepRecord, paper terminal.Paper) string {
	width := paper.Width
	for _, columns := range [][]column{
		{columnStep, columnStatus, columnIterations, columnAttempts, columnPages, columnTime, columnError},
		{columnStep, columnStatus, columnIterations, columnAttempts, columnPages, columnTime},
		{columnStep, columnStatus, columnAttempts, columnPages, columnTime},
		{columnStep, columnStatus, columnTime},
	} {
		if rendered := stepRows(records, columns, paper); text.LongestLineLen(rendered) <= width {
			return rendered + loopLines(records, columns, width)
		}
	}
	lines := make([]string, len(records))
	for i, record := range records {
		status := string(record.Status)
		if took := duration(record); took != "" {
			status += " " + took
		}
		lines[i] = terminal.Middle(StepName(record), max(width-len(status)-1, 1)) + " " + status
	}
	return strings.Join(lines, "\n") + loopLines(records, nil, width)
}

func stepRows(records []workflows.StepRecord, columns []column, paper terminal.Paper) string {
	columns = slices.DeleteFunc(slices.Clone(columns), func(c column) bool { // what no row has
		return !slices.ContainsFunc(records, func(r workflows.StepRecord) bool { return c.cell(r) != "" })
	})
	head := lists.Map(columns, func(column column) any { return column.name })
	rows := terminal.NewTable(head...)
	for _, record := range records {
		row := make(table.Row, len(columns))
		for i, column := range columns {
			row[i] = column.cell(record)
			if column.name == columnStatus.name {
				row[i] = paper.Paint(styleOf(record.Status), column.cell(record))
			}
		}
		rows.AppendRow(row)
	}
	return rows.Render()
}

// loopLines is what the columns leave out of loops, a line for each.
func loopLines(records []workflows.StepRecord, columns []column, width int) string {
	if slices.ContainsFunc(columns, func(c column) bool { return c.name == columnIterations.name }) {
		return ""
	}
	var b strings.Builder
	for _, record := range records {
		if record.Loop == nil {
			continue
		}
		for _, line := range terminal.Wrap(StepName(record)+": "+iterations(record), width) {
			b.WriteString("\n" + line)
		}
	}
	return b.String()
}

// iterations sums up a loop; what is zero and no news is left out.
func iterations(record workflows.StepRecord) string {
	if record.Loop == nil {
		return ""
	}
	stats := record.Loop.Stats
	return stats.Text() + Among([]StatusCount{{stats.Truncated, "truncated"}})
}

func duration(record workflows.StepRecord) string {
	if record.StartedAt.IsZero() || record.EndedAt.IsZero() {
		return ""
	}
	return terminal.Duration(record.EndedAt.Sub(record.StartedAt))
}

// mostFailures bounds the failed iterations that are listed.
const mostFailures = 20

func (o EndedRun) writeFailedIterations(b *strings.Builder, paper terminal.Paper) {
	for _, record := range o.Result.Steps {
		if record.Loop == nil || len(record.Loop.Errors) == 0 {
			continue
		}
		failures := slices.Clone(record.Loop.Errors)
		slices.SortFunc(failures, func(x, y interpreter.LoopError) int { return cmp.Compare(x.Index, y.Index) })
		fmt.Fprintf(b, "failed iterations of %s:\n", StepName(record))
		for i, failure := range failures {
			if i == mostFailures {
				fmt.Fprintf(b, "  and %d more\n", len(failures)-mostFailures)
				break
			}
			line := fmt.Sprintf("[%d] %s: %s", failure.Index, Element(failure.Element.Data), iterationFailure(failure))
			if paper.Wraps {
				b.WriteString(terminal.Hanging("  ", line, paper.Width))
			} else {
				b.WriteString("  " + line + "\n")
			}
			if i == 0 {
				o.writeBody(b, failure.Error)
			}
		}
	}
}

// Bounds of what is printed of an error's body.
const (
	mostBodyLines = 20
	mostBodyBytes = 2 << 10
)

// writeBody prints what an error came with: the traceback or the output of a
// program, of which the end says most, or the beginning of an answer. Of a run of another
// playbook the message says it all.
func (o EndedRun) writeBody(b *strings.Builder, failure *interpreter.ErrorObject) {
	if failure == nil || failure.Kind == interpreter.KindPlaybook {
		return
	}
	body, atEnd := bodyText(failure.Body.Data)
	if body == "" {
		return
	}
	body = o.placed(body)
	lines, left := strings.Split(body, "\n"), false
	if n := len(lines); n > mostBodyLines {
		left = true
		if lines = lines[:mostBodyLines]; atEnd {
			lines = strings.Split(body, "\n")[n-mostBodyLines:]
		}
	}
	text := strings.Join(lines, "\n")
	if n := len(text); n > mostBodyBytes {
		left = true
		if text = text[:mostBodyBytes]; atEnd {
			text = strings.Join(lines, "\n")[n-mostBodyBytes:]
		}
		text = strings.ToValidUTF8(text, "")
	}
	if left && atEnd {
		text = "…\n" + text
	} else if left {
		text += "\n… (cut; --output json gives all that was kept)"
	}
	b.WriteString("    " + strings.ReplaceAll(terminal.Visible(text), "\n", "\n    ") + "\n")
}

// bodyText is an error's body as text, and whether its end matters most.
func bodyText(body any) (text string, atEnd bool) {
	switch body := body.(type) {
	case nil:
		return "", false
	case string:
		return strings.TrimSpace(body), false
	case map[string]any:
		for _, key := range []string{"traceback", "output"} {
			if text, isText := body[key].(string); isText && len(body) == 1 {
				return strings.Trim(strings.TrimRight(text, " \n"), "\n"), true
			}
		}
	}
	var encoded strings.Builder
	if terminal.PrintJSON(&encoded, body) != nil {
		return "", false
	}
	return strings.TrimSpace(encoded.String()), false
}

// Element is an element of a loop in a line.
func Element(value any) string { return terminal.Shorten(expression.Text(value), 60) }

// iterationFailure begins with the HTTP status, by which people know failures,
// unless the message does.
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

// mostResult bounds what is printed of a result, in bytes.
const mostResult = 4 << 10

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
	if len(text) <= mostResult {
		return text
	}
	return strings.ToValidUTF8(text[:mostResult], "") +
		fmt.Sprintf("\n… (cut at %d of %d bytes; --output json gives all of it)", mostResult, len(text))
}
