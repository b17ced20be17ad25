package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"go.temporal.io/sdk/client"

	"reprise/internal/ending"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/workflows"
)

// document is what `run --output json` prints.
type document struct {
	WorkflowID string                   `json:"workflow_id"`
	RunID      string                   `json:"run_id"`
	Status     interpreter.Status       `json:"status"`
	Result     expression.Value         `json:"result"`
	Steps      []workflows.StepRecord   `json:"steps"`
	Warnings   []string                 `json:"warnings"`
	Error      *interpreter.ErrorObject `json:"error,omitempty"`
	Problems   []problem                `json:"problems,omitempty"` // of a playbook that was refused
	// ProblemsTotal counts those that are not among Problems too.
	ProblemsTotal int    `json:"problems_total,omitempty"`
	Link          string `json:"link,omitempty"` // to the run in the web UI
}

// Kinds of errors that only this program has, beside those of runs.
const (
	kindInvalid  interpreter.Kind = "invalid_playbook"
	kindNoServer interpreter.Kind = "no_server"
	kindUsage    interpreter.Kind = "usage"
	kindNoResult interpreter.Kind = "no_result"
	kindStart    interpreter.Kind = "start"
)

// statusUnknown is the status of a run of which we do not know how it ended, or
// whether it began.
const statusUnknown interpreter.Status = "unknown"

// refusal is the document of a run that did not start, as far as we know.
func refusal(err error) document {
	failure := &interpreter.ErrorObject{Kind: kindStart, Class: interpreter.ClassFinal, Message: err.Error()}
	doc := document{Status: interpreter.Failed, Error: failure, Steps: []workflows.StepRecord{}, Warnings: []string{}}
	switch statusOf(err) {
	case exitNoServer:
		failure.Kind = kindNoServer
	case exitUsage:
		failure.Kind = kindUsage
	}
	var unsure *unsureError
	if errors.As(err, &unsure) {
		doc.Status, doc.WorkflowID = statusUnknown, unsure.workflowID
	}
	var invalid *invalidError
	if errors.As(err, &invalid) {
		failure.Kind, doc.Problems, doc.ProblemsTotal = kindInvalid, invalid.problems, invalid.total
	}
	return doc
}

// unfinished is the document of a run that goes on without us.
func (s *session) unfinished(run client.WorkflowRun) document {
	return document{
		WorkflowID: run.GetID(), RunID: run.GetRunID(), Status: interpreter.Running,
		Steps: []workflows.StepRecord{}, Warnings: []string{}, Link: s.link(run.GetID(), run.GetRunID()),
	}
}

// reportStart tells the IDs of a run that nobody follows.
func (a *app) reportStart(s *session, run client.WorkflowRun, output string) error {
	link := s.link(run.GetID(), run.GetRunID())
	if output == "json" {
		return printJSON(a.Out, s.unfinished(run))
	}
	_, _ = fmt.Fprintf(a.Out, "workflow ID: %s\nrun ID:      %s\n", run.GetID(), run.GetRunID())
	if link != "" {
		_, _ = fmt.Fprintf(a.Out, "web UI:      %s\n", link)
	}
	return nil
}

// report prints how a run ended and gives the exit status.
func (a *app) report(s *session, run client.WorkflowRun, end outcome, output string) error {
	result := end.known()
	result.Warnings = slices.Concat(a.warnings, result.Warnings)
	link := ""
	if !s.ends {
		link = s.link(run.GetID(), run.GetRunID())
	}
	if output == "json" {
		doc := document{
			WorkflowID: run.GetID(), RunID: run.GetRunID(), Status: result.Status, Result: result.Result,
			Steps: orEmpty(result.Steps), Warnings: orEmpty(result.Warnings), Error: result.Error, Link: link,
		}
		if err := printJSON(a.Out, doc); err != nil {
			return err
		}
	} else {
		writeReport(a.Out, run.GetID(), result, link, paperOf(a.Out))
		if !s.ends {
			a.hintDeadLetters(s, run, result)
		}
	}
	switch result.Status.Ending() {
	case interpreter.Good: // or skipped as its playbook asks
		return nil
	case interpreter.Mixed:
		return withStatus(exitPartial, errSaid)
	}
	if result.Status == statusUnknown {
		if output == "json" {
			a.notef("starter: %s", result.Error.Message)
		}
		if s.server == nil {
			a.notef("The run may go on, or have ended.")
			a.hints(s, run)
		}
		return withStatus(exitNoServer, errSaid)
	}
	if errors.Is(end.err, ending.ErrRefused) {
		return withStatus(exitUsage, errSaid)
	}
	return withStatus(exitFailed, errSaid)
}

// known is the result of a run as far as it is known.
func (o outcome) known() workflows.Result {
	result := o.result
	if o.err == nil {
		return result
	}
	result.Status = statusUnknown
	result.Error = &interpreter.ErrorObject{Kind: kindNoServer, Class: interpreter.ClassFinal, Message: "how the run ended is unknown: " + o.err.Error()}
	if errors.Is(o.err, ending.ErrNoResult) || errors.Is(o.err, ending.ErrRefused) {
		result.Status, result.Error.Kind, result.Error.Message = interpreter.Failed, kindNoResult, o.err.Error()
	}
	return result
}

func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// writeReport ends with the warnings, where nobody passes over them.
func writeReport(w io.Writer, workflowID string, result workflows.Result, link string, paper paper) {
	var b strings.Builder
	if len(result.Steps) > 0 {
		b.WriteString(stepTable(result.Steps, paper.width) + "\n")
	}
	writeFailedIterations(&b, result.Steps)
	if result.Error != nil {
		fmt.Fprintf(&b, "error: %s\n", visible(result.Error.Message))
		writeBody(&b, result.Error)
	}
	writeResult(&b, result.Result.Data)
	fmt.Fprintf(&b, "%s: %s\n", workflowID, result.Status)
	if link != "" {
		fmt.Fprintf(&b, "web UI: %s\n", link)
	}
	for _, warning := range result.Warnings {
		b.WriteString(paper.warning("warning: "+visible(warning)) + "\n")
	}
	_, _ = io.WriteString(w, b.String())
}

// column is one of the table of steps.
type column struct {
	name string
	cell func(workflows.StepRecord) string
}

var (
	columnStep       = column{"step", stepName}
	columnStatus     = column{"status", func(r workflows.StepRecord) string { return string(r.Status) }}
	columnIterations = column{"iterations", iterations}
	columnAttempts   = column{"attempts", func(r workflows.StepRecord) string { return number(r.Attempts) }}
	columnPages      = column{"pages", func(r workflows.StepRecord) string { return number(r.Pages) }}
	columnTime       = column{"time", duration}
	columnError      = column{"error", func(r workflows.StepRecord) string { return failureText(r.Error) }}
)

// stepTable is a table of the steps that fits a terminal: what does not fit beside
// the rest stands below it or, of errors, with the failure.
func stepTable(records []workflows.StepRecord, width int) string {
	for _, columns := range [][]column{
		{columnStep, columnStatus, columnIterations, columnAttempts, columnPages, columnTime, columnError},
		{columnStep, columnStatus, columnIterations, columnAttempts, columnPages, columnTime},
		{columnStep, columnStatus, columnAttempts, columnPages, columnTime},
		{columnStep, columnStatus, columnTime},
	} {
		if rendered := render(records, columns); text.LongestLineLen(rendered) <= width {
			return rendered + below(records, columns, width)
		}
	}
	lines := make([]string, len(records))
	for i, record := range records {
		status := string(record.Status)
		if took := duration(record); took != "" {
			status += " " + took
		}
		lines[i] = text.Snip(stepName(record), max(width-len(status)-1, 1), "…") + " " + status
	}
	return strings.Join(lines, "\n") + below(records, nil, width)
}

func render(records []workflows.StepRecord, columns []column) string {
	head := make([]any, len(columns))
	for i, column := range columns {
		head[i] = column.name
	}
	rows := newTable(head...)
	for _, record := range records {
		row := make(table.Row, len(columns))
		for i, column := range columns {
			row[i] = column.cell(record)
		}
		rows.AppendRow(row)
	}
	return rows.Render()
}

// below is what the columns leave out of loops, a line for each.
func below(records []workflows.StepRecord, columns []column, width int) string {
	if slices.ContainsFunc(columns, func(c column) bool { return c.name == columnIterations.name }) {
		return ""
	}
	var b strings.Builder
	for _, record := range records {
		if record.Loop == nil {
			continue
		}
		for _, line := range wrapped(stepName(record)+": "+iterations(record), width) {
			b.WriteString("\n" + line)
		}
	}
	return b.String()
}

// hintDeadLetters tells how to take up the iterations that did not succeed. Where
// a run was terminated, its result does not tell whether there are any.
func (a *app) hintDeadLetters(s *session, run client.WorkflowRun, result workflows.Result) {
	var failed, cancelled int
	for _, record := range result.Steps {
		if record.Loop != nil {
			failed, cancelled = failed+record.Loop.Stats.Failed, cancelled+record.Loop.Stats.Cancelled
		}
	}
	what, flag := "failed iterations", ""
	switch {
	case failed+cancelled == 0:
		return
	case failed == 0:
		what, flag = "cancelled iterations", " --cancelled"
	case cancelled > 0:
		what, flag = "failed and cancelled iterations", " --cancelled"
	}
	a.notef("To run the %s again: %s dead-letters reprocess %s%s --address %s --namespace %s",
		what, program(), shellWord(run.GetID()), flag, s.address, s.namespace)
}

// iterations sums up a loop; what is zero and no news is left out.
func iterations(record workflows.StepRecord) string {
	if record.Loop == nil {
		return ""
	}
	stats := record.Loop.Stats
	parts := []string{fmt.Sprintf("%d total", stats.Total), fmt.Sprintf("%d success", stats.Success), fmt.Sprintf("%d failed", stats.Failed)}
	if stats.Truncated > 0 {
		parts = append(parts, fmt.Sprintf("%d truncated", stats.Truncated))
	}
	if stats.Cancelled > 0 {
		parts = append(parts, fmt.Sprintf("%d cancelled", stats.Cancelled))
	}
	return strings.Join(parts, ", ")
}

func number(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

func duration(record workflows.StepRecord) string {
	if record.StartedAt.IsZero() || record.EndedAt.IsZero() {
		return ""
	}
	return record.EndedAt.Sub(record.StartedAt).Round(10 * time.Millisecond).String()
}

// failureText is an error in a table's cell; the message in full stands below.
func failureText(failure *interpreter.ErrorObject) string {
	if failure == nil {
		return ""
	}
	return oneLine(failure.Message, 60)
}

// mostFailures bounds the failed iterations that are listed.
const mostFailures = 20

func writeFailedIterations(b *strings.Builder, records []workflows.StepRecord) {
	for _, record := range records {
		if record.Loop == nil || len(record.Loop.Errors) == 0 {
			continue
		}
		failures := slices.Clone(record.Loop.Errors)
		slices.SortFunc(failures, func(x, y interpreter.LoopError) int { return cmp.Compare(x.Index, y.Index) })
		fmt.Fprintf(b, "failed iterations of %s:\n", stepName(record))
		for i, failure := range failures {
			if i == mostFailures {
				fmt.Fprintf(b, "  and %d more\n", len(failures)-mostFailures)
				break
			}
			fmt.Fprintf(b, "  [%d] %s: %s\n", failure.Index, element(failure.Element.Data), iterationFailure(failure))
			if i == 0 {
				writeBody(b, failure.Error)
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
// program, of which the end tells most, or the beginning of an answer.
func writeBody(b *strings.Builder, failure *interpreter.ErrorObject) {
	if failure == nil {
		return
	}
	body, atEnd := bodyText(failure.Body.Data)
	if body == "" {
		return
	}
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
	b.WriteString("    " + strings.ReplaceAll(visible(text), "\n", "\n    ") + "\n")
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
	if printJSON(&encoded, body) != nil {
		return "", false
	}
	return strings.TrimSpace(encoded.String()), false
}

func element(value any) string { return oneLine(expression.Text(value), 60) }

// iterationFailure begins with the HTTP status, by which people know failures,
// unless the message does.
func iterationFailure(failure interpreter.LoopError) string {
	if failure.Error == nil {
		return "failed"
	}
	message := oneLine(failure.Error.Message, 200)
	if status := fmt.Sprintf("HTTP %d", failure.Error.Status); failure.Error.Status != 0 && !strings.Contains(message, status) {
		message = status + ": " + message
	}
	return fmt.Sprintf("%s (%s)", message, counted(failure.Attempts, "attempt"))
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
	if err := printJSON(&encoded, result); err != nil {
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
