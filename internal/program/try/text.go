package try

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

	"reprise/internal/base/terminal"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// Printer prints a try for people, as it proceeds.
type Printer struct {
	W     io.Writer
	Width int // in columns, as terminal.Paper has it
	Limit int // rows and lines of a value that are shown
}

// printLine prints a line after a margin, with its continuation lines indented further.
func (p Printer) printLine(margin, format string, args ...any) {
	_, _ = io.WriteString(p.W, terminal.HangingLine(margin, fmt.Sprintf(format, args...), p.Width))
}

// printVerbatim prints a text of several lines after a margin, each cut to the width of the terminal.
func (p Printer) printVerbatim(margin, text string) {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i, line := range lines {
		if i == 3*p.Limit && len(lines) > i+1 {
			p.printLine(margin, "… %s", terminal.Count(len(lines)-i, "more line"))
			return
		}
		_, _ = io.WriteString(p.W, margin+terminal.CellText(line, p.Width-len(margin))+"\n")
	}
}

// PrintAttempt prints one attempt.
func (p Printer) PrintAttempt(attempt Attempt) {
	p.printLine("", "attempt %d, page %d", attempt.Number, attempt.Page)
	p.printRequest(attempt.Request)
	if attempt.Answer != nil {
		p.printAnswer(*attempt.Answer)
	}
	for _, policy := range attempt.Policies {
		p.printPolicy(policy)
	}
	if attempt.Next != nil {
		p.printNext(*attempt.Next)
	}
	_, _ = io.WriteString(p.W, "\n")
}

// usualHeaders are headers that every request has, which are not shown.
var usualHeaders = map[string]bool{"accept-encoding": true, "user-agent": true, "traceparent": true, "tracestate": true}

func (p Printer) printRequest(request Request) {
	if request.Method != "" {
		p.printLine("  ", "%s %s", request.Method, request.URL)
	}
	for _, name := range playbook.SortedKeys(request.Headers) {
		if !usualHeaders[name] {
			p.printLine("    ", "%s: %s", name, request.Headers[name])
		}
	}
	if request.Body != "" {
		p.Value("    ", ValueOf(request.Body))
	}
	for _, name := range playbook.SortedKeys(request.Fields) {
		value := request.Fields[name]
		if text, isText := value.(string); isText && strings.Contains(text, "\n") {
			p.printLine("  ", "%s:", name)
			p.printVerbatim("    ", text)
			continue
		}
		p.printLine("  ", "%s: %s", name, expression.Text(value))
	}
}

// ValueOf decodes JSON; other texts are returned unchanged.
func ValueOf(text string) any {
	if value, err := expression.Decode([]byte(text)); err == nil {
		return value
	}
	return text
}

// Value prints a value, as JSON on several lines if it does not fit on one.
func (p Printer) Value(margin string, value any) {
	if text, isText := value.(string); isText {
		p.printVerbatim(margin, text)
		return
	}
	short, err := expression.Encode(value)
	width := terminal.LayoutWidth(p.Width) - len(margin)
	if err == nil && len(short) <= width {
		p.printVerbatim(margin, string(short))
		return
	}
	var b strings.Builder
	writeIndented(&b, value, "", width)
	p.printVerbatim(margin, b.String())
}

// writeIndented writes a value as JSON in which parts that fit are on one line.
func writeIndented(b *strings.Builder, value any, margin string, width int) {
	short, err := expression.Encode(value)
	members, isMap := value.(map[string]any)
	items, isList := value.([]any)
	if err != nil || len(short)+len(margin) <= width || !isMap && !isList {
		b.Write(short)
		return
	}
	inner, opens, closes := margin+"  ", "[", "]"
	if isMap {
		opens, closes = "{", "}"
	}
	b.WriteString(opens + "\n")
	for i, key := range playbook.SortedKeys(members) {
		quoted, _ := expression.Encode(key) // a text
		b.WriteString(inner + string(quoted) + ": ")
		writeIndented(b, members[key], inner, width)
		b.WriteString(commaBetween(i, len(members)))
	}
	for i, item := range items {
		b.WriteString(inner)
		writeIndented(b, item, inner, width)
		b.WriteString(commaBetween(i, len(items)))
	}
	b.WriteString(margin + closes)
}

func commaBetween(i, n int) string {
	if i < n-1 {
		return ",\n"
	}
	return "\n"
}

func (p Printer) printAnswer(answer Response) {
	var facts []string
	if answer.Status != 0 {
		facts = append(facts, fmt.Sprintf("HTTP %d", answer.Status))
	}
	answered := answer.Status != 0 || answer.Error == ""
	if answered && answer.Type != "" {
		facts = append(facts, answer.Type)
	}
	if answered && answer.Bytes > 0 {
		facts = append(facts, sizeText(answer.Bytes))
	}
	p.printLine("  ", "%s", strings.Join(append(facts, elapsedText(answer.Seconds)), ", "))
	if answer.Error != "" {
		p.printLine("    ", "error of kind %s, class %s: %s", answer.Kind, answer.Class, answer.Error)
	}
	if answer.RetryAfter != nil {
		p.printLine("    ", "the server asks to wait %s", terminal.SecondsText(*answer.RetryAfter))
	}
	if answer.Data.Data != nil {
		p.Value("    ", answer.Data.Data)
	}
}

// elapsedText formats the duration of a response, in milliseconds if it is short.
func elapsedText(seconds float64) string {
	took := time.Duration(seconds * float64(time.Second))
	if took < time.Second {
		return max(took.Round(time.Millisecond), time.Millisecond).String()
	}
	return terminal.Duration(took)
}

// sizeText formats a number of bytes for people.
func sizeText(bytes int) string {
	switch {
	case bytes < 1000:
		return terminal.Count(bytes, "byte")
	case bytes < 1_000_000:
		return fmt.Sprintf("%.1f kB", float64(bytes)/1e3)
	}
	return fmt.Sprintf("%.1f MB", float64(bytes)/1e6)
}

func (p Printer) printPolicy(policy Policy) {
	verdict := "not asked"
	if n := len(policy.Conditions); n > 0 {
		if verdict = "does not match"; policy.Conditions[n-1].Holds {
			verdict = "matches"
			if policy.Conditions[n-1].Word == "stop_when" {
				verdict = "ends the step"
			}
		}
	}
	p.printLine("  ", "policy %d %s", policy.Number, strings.TrimSpace("("+verdict+")"))
	for _, condition := range policy.Conditions {
		p.PrintCondition("    ", condition)
	}
}

// PrintCondition prints the result of a condition, with the values of its parts.
func (p Printer) PrintCondition(margin string, condition Condition) {
	if condition.Error != "" {
		p.printLine(margin, "%s: %s", condition.Word, condition.Error)
	} else {
		p.printLine(margin, "%s: %s is %t", condition.Word, condition.Text, condition.Holds)
	}
	p.PrintParts(margin+"  ", condition.Parts)
}

// PrintParts prints the values of the parts of an expression.
func (p Printer) PrintParts(margin string, parts []Part) {
	for _, part := range parts {
		if part.Error != "" {
			p.printLine(margin, "%s: %s", part.Text, part.Error)
			continue
		}
		p.printLine(margin, "%s = %s", part.Text, part.Value)
	}
}

func (p Printer) printNext(next NextThing) {
	wait := ""
	if next.Seconds > 0 && next.Kind == NextRequest {
		wait = " after " + terminal.SecondsText(next.Seconds)
	}
	p.printLine("  ", "next: %s%s", next.Text, wait)
	for _, change := range next.Changes {
		p.printLine("    ", "%s: %s -> %s", change.Path, cmp.Or(change.From, "(none)"), cmp.Or(change.To, "(none)"))
	}
}

// PrintHeader prints what is tried.
func (p Printer) PrintHeader(report *Report) {
	what := fmt.Sprintf("%s: tool %s", report.Step, report.Tool)
	if report.Element != nil {
		encoded, _ := expression.Encode(report.Element.Data) // of canonical values
		what += ", element " + string(encoded)
		if report.Elements > 1 {
			what += fmt.Sprintf(" of %d", report.Elements)
		}
	}
	p.printLine("", "%s", what)
	_, _ = io.WriteString(p.W, "\n")
}

// PrintReport prints the end of a try, after its attempts.
func (p Printer) PrintReport(report *Report) {
	switch {
	case report.Stopped != "":
		p.printLine("", "stopped: %s", report.Stopped)
	case report.Error != "":
		p.printLine("", "the step fails: %s", report.Error)
	}
	if report.Result != nil {
		p.printResult(report)
	}
	for _, sink := range report.Sinks {
		p.printSink(sink)
	}
	for _, warning := range report.Warnings {
		p.printLine("", "warning: %s", warning)
	}
	for _, note := range report.Notes {
		p.printLine("", "note: %s", note)
	}
}

func (p Printer) printResult(report *Report) {
	what := "result"
	if report.Error != "" {
		what = "collected before the failure"
	}
	rows, isList := report.Result.Data.([]any)
	if !isList || len(report.Columns) == 0 {
		p.printLine("", "%s: a %s", what, expression.TypeName(report.Result.Data))
		p.Value("  ", report.Result.Data)
		return
	}
	p.printLine("", "%s: %s", what, terminal.Count(len(rows), "row"))
	p.printRows(rows, report.Columns)
}

func (p Printer) printSink(sink Sink) {
	what := sink.Tool
	if sink.Auth != "" {
		what += ", auth " + sink.Auth
	}
	if sink.Target != "" {
		what += ", " + sink.Target
	}
	done := "not written"
	if sink.Written {
		done = "written"
	}
	given := terminal.Count(len(sink.Rows), "row")
	if len(sink.Params) > 0 {
		given = terminal.Count(len(sink.Params), "parameter")
	}
	p.printLine("", "sink %s (%s): %s, %s", sink.Place, what, given, done)
	if sink.Error != "" {
		p.printLine("  ", "error: %s", sink.Error)
	}
	if len(sink.Paths) > 0 {
		p.printPaths(sink.Paths)
	}
	for i, param := range sink.Params {
		p.printLine("  ", "$%d: %s", i+1, expression.Text(param.Data))
	}
	switch {
	case len(sink.Columns) > 0:
		p.printRows(sink.Rows, sink.Columns)
	case len(sink.Rows) > 0:
		p.Value("  ", sink.Rows)
	}
	for _, of := range sink.Tables {
		key := ""
		if len(of.Key) > 0 {
			key = ", key " + strings.Join(of.Key, ", ")
		}
		p.printLine("  ", "table %s%s: %s", of.Table, key, terminal.Count(len(of.Rows), "row"))
		if len(of.Columns) > 0 {
			p.printRows(of.Rows, of.Columns)
		}
	}
}

// printPaths prints the first paths to which rows of a sink go.
func (p Printer) printPaths(paths []SinkPath) {
	p.printLine("  ", "%s:", terminal.Count(len(paths), "path"))
	for _, one := range paths[:min(len(paths), p.Limit)] {
		p.printLine("    ", "%s: %s", one.Path, terminal.Count(one.Rows, "row"))
	}
	if more := len(paths) - p.Limit; more > 0 {
		p.printLine("    ", "%s", terminal.Count(more, "more path"))
	}
}

// columnsAcross is how many columns are printed side by side; more are printed one per line.
const columnsAcross = 6

// printRows prints the first rows as a table, whose header has the types.
func (p Printer) printRows(rows []any, columns []Column) {
	shown := rows[:min(len(rows), p.Limit)]
	if len(columns) > columnsAcross {
		p.printColumns(shown, columns)
	} else {
		p.printAcross(shown, columns)
	}
	if more := len(rows) - len(shown); more > 0 {
		p.printLine("", "%s", terminal.Count(more, "more row"))
	}
}

func (p Printer) printAcross(rows []any, columns []Column) {
	heads, elastic := make([]any, len(columns)), make([]terminal.Elastic, len(columns))
	for i, column := range columns {
		head := terminal.OneLine(column.Name) + "\n" + column.Type
		heads[i], elastic[i] = head, terminal.Elastic{Name: head, Least: max((p.Width-1)/len(columns)-3, 4), Cut: terminal.SnipCell}
	}
	writer := terminal.NewTable(heads...)
	for _, row := range rows {
		cells := make(table.Row, len(columns))
		for i, column := range columns {
			cells[i] = cellText(row, column.Name)
		}
		writer.AppendRow(cells)
	}
	_, _ = io.WriteString(p.W, terminal.FitTable(writer, p.Width, elastic...)+"\n")
}

// printColumns prints one line for each column, with its value in the first row.
func (p Printer) printColumns(rows []any, columns []Column) {
	writer := terminal.NewTable("column", "type", "first row")
	for _, column := range columns {
		first := ""
		if len(rows) > 0 {
			first = cellText(rows[0], column.Name)
		}
		writer.AppendRow(table.Row{terminal.OneLine(column.Name), column.Type, first})
	}
	const least = 12
	_, _ = io.WriteString(p.W, terminal.FitTable(writer, p.Width, terminal.Elastic{Name: "first row", Least: least, Cut: terminal.SnipCell},
		terminal.Elastic{Name: "column", Least: least, Cut: terminal.SnipCell}, terminal.Elastic{Name: "type", Least: least, Cut: terminal.SnipCell})+"\n")
}

// cellText returns a member of a row for a table cell.
func cellText(row any, name string) string {
	members, _ := row.(map[string]any)
	if value, has := members[name]; has && value != nil {
		return terminal.OneLine(expression.Text(value))
	}
	return ""
}
