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

// Printer writes what a try shows for people, as it comes.
type Printer struct {
	W     io.Writer
	Width int // in columns, as terminal.Paper has it
	Limit int // rows and lines of a value that are shown
}

// line writes a line behind a margin; what is too long continues behind a larger one.
func (p Printer) line(margin, format string, args ...any) {
	_, _ = io.WriteString(p.W, terminal.Hanging(margin, fmt.Sprintf(format, args...), p.Width))
}

// verbatim writes a text of several lines behind a margin, each cut to the width of a terminal.
func (p Printer) verbatim(margin, text string) {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i, line := range lines {
		if i == 3*p.Limit && len(lines) > i+1 {
			p.line(margin, "… %s", terminal.Count(len(lines)-i, "more line"))
			return
		}
		_, _ = io.WriteString(p.W, margin+terminal.Cell(line, p.Width-len(margin))+"\n")
	}
}

// Attempt writes one attempt.
func (p Printer) Attempt(attempt Attempt) {
	p.line("", "attempt %d, page %d", attempt.Number, attempt.Page)
	p.request(attempt.Request)
	if attempt.Answer != nil {
		p.answer(*attempt.Answer)
	}
	for _, policy := range attempt.Policies {
		p.policy(policy)
	}
	if attempt.Next != nil {
		p.next(*attempt.Next)
	}
	_, _ = io.WriteString(p.W, "\n")
}

// usualHeaders are the headers that every request has, which nobody needs to see.
var usualHeaders = map[string]bool{"accept-encoding": true, "user-agent": true, "traceparent": true, "tracestate": true}

func (p Printer) request(request Request) {
	if request.Method != "" {
		p.line("  ", "%s %s", request.Method, request.URL)
	}
	for _, name := range playbook.SortedKeys(request.Headers) {
		if !usualHeaders[name] {
			p.line("    ", "%s: %s", name, request.Headers[name])
		}
	}
	if request.Body != "" {
		p.Value("    ", ValueOf(request.Body))
	}
	for _, name := range playbook.SortedKeys(request.Fields) {
		value := request.Fields[name]
		if text, isText := value.(string); isText && strings.Contains(text, "\n") {
			p.line("  ", "%s:", name)
			p.verbatim("    ", text)
			continue
		}
		p.line("  ", "%s: %s", name, expression.Text(value))
	}
}

// ValueOf is the value of JSON, else the text itself.
func ValueOf(text string) any {
	if value, err := expression.Decode([]byte(text)); err == nil {
		return value
	}
	return text
}

// Value writes a value, as JSON of several lines where it does not fit one.
func (p Printer) Value(margin string, value any) {
	if text, isText := value.(string); isText {
		p.verbatim(margin, text)
		return
	}
	short, err := expression.Encode(value)
	width := terminal.Layout(p.Width) - len(margin)
	if err == nil && len(short) <= width {
		p.verbatim(margin, string(short))
		return
	}
	var b strings.Builder
	indented(&b, value, "", width)
	p.verbatim(margin, b.String())
}

// indented writes a value as JSON in which what fits a line is in one.
func indented(b *strings.Builder, value any, margin string, width int) {
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
		indented(b, members[key], inner, width)
		b.WriteString(comma(i, len(members)))
	}
	for i, item := range items {
		b.WriteString(inner)
		indented(b, item, inner, width)
		b.WriteString(comma(i, len(items)))
	}
	b.WriteString(margin + closes)
}

func comma(i, n int) string {
	if i < n-1 {
		return ",\n"
	}
	return "\n"
}

func (p Printer) answer(answer Response) {
	var facts []string
	if answer.Status != 0 {
		facts = append(facts, fmt.Sprintf("HTTP %d", answer.Status))
	}
	answered := answer.Status != 0 || answer.Error == ""
	if answered && answer.Type != "" {
		facts = append(facts, answer.Type)
	}
	if answered && answer.Bytes > 0 {
		facts = append(facts, size(answer.Bytes))
	}
	p.line("  ", "%s", strings.Join(append(facts, elapsed(answer.Seconds)), ", "))
	if answer.Error != "" {
		p.line("    ", "error of kind %s, class %s: %s", answer.Kind, answer.Class, answer.Error)
	}
	if answer.RetryAfter != nil {
		p.line("    ", "the server asks to wait %s", terminal.Seconds(*answer.RetryAfter))
	}
	if answer.Data.Data != nil {
		p.Value("    ", answer.Data.Data)
	}
}

// elapsed is how long an answer took, in milliseconds where that is short.
func elapsed(seconds float64) string {
	took := time.Duration(seconds * float64(time.Second))
	if took < time.Second {
		return max(took.Round(time.Millisecond), time.Millisecond).String()
	}
	return terminal.Duration(took)
}

// size is a number of bytes for people.
func size(bytes int) string {
	switch {
	case bytes < 1000:
		return terminal.Count(bytes, "byte")
	case bytes < 1_000_000:
		return fmt.Sprintf("%.1f kB", float64(bytes)/1e3)
	}
	return fmt.Sprintf("%.1f MB", float64(bytes)/1e6)
}

func (p Printer) policy(policy Policy) {
	verdict := "not asked"
	if n := len(policy.Conditions); n > 0 {
		if verdict = "does not match"; policy.Conditions[n-1].Holds {
			verdict = "matches"
			if policy.Conditions[n-1].Word == "stop_when" {
				verdict = "ends the step"
			}
		}
	}
	p.line("  ", "policy %d %s", policy.Number, strings.TrimSpace("("+verdict+")"))
	for _, condition := range policy.Conditions {
		p.Condition("    ", condition)
	}
}

// Condition writes what came of a condition, with the values of its parts.
func (p Printer) Condition(margin string, condition Condition) {
	if condition.Error != "" {
		p.line(margin, "%s: %s", condition.Word, condition.Error)
	} else {
		p.line(margin, "%s: %s is %t", condition.Word, condition.Text, condition.Holds)
	}
	p.Parts(margin+"  ", condition.Parts)
}

// Parts writes the values of the parts of an expression.
func (p Printer) Parts(margin string, parts []Part) {
	for _, part := range parts {
		if part.Error != "" {
			p.line(margin, "%s: %s", part.Text, part.Error)
			continue
		}
		p.line(margin, "%s = %s", part.Text, part.Value)
	}
}

func (p Printer) next(next NextThing) {
	wait := ""
	if next.Seconds > 0 && next.Kind == NextRequest {
		wait = " after " + terminal.Seconds(next.Seconds)
	}
	p.line("  ", "next: %s%s", next.Text, wait)
	for _, change := range next.Changes {
		p.line("    ", "%s: %s -> %s", change.Path, cmp.Or(change.From, "(none)"), cmp.Or(change.To, "(none)"))
	}
}

// Header writes what is tried.
func (p Printer) Header(report *Report) {
	what := fmt.Sprintf("%s: tool %s", report.Step, report.Tool)
	if report.Element != nil {
		encoded, _ := expression.Encode(report.Element.Data) // of canonical values
		what += ", element " + string(encoded)
		if report.Elements > 1 {
			what += fmt.Sprintf(" of %d", report.Elements)
		}
	}
	p.line("", "%s", what)
	_, _ = io.WriteString(p.W, "\n")
}

// Report writes the end of a try, behind its attempts.
func (p Printer) Report(report *Report) {
	switch {
	case report.Stopped != "":
		p.line("", "stopped: %s", report.Stopped)
	case report.Error != "":
		p.line("", "the step fails: %s", report.Error)
	}
	if report.Result != nil {
		p.result(report)
	}
	for _, sink := range report.Sinks {
		p.sink(sink)
	}
	for _, warning := range report.Warnings {
		p.line("", "warning: %s", warning)
	}
	for _, note := range report.Notes {
		p.line("", "note: %s", note)
	}
}

func (p Printer) result(report *Report) {
	what := "result"
	if report.Error != "" {
		what = "collected before the failure"
	}
	rows, isList := report.Result.Data.([]any)
	if !isList || len(report.Columns) == 0 {
		p.line("", "%s: a %s", what, expression.TypeName(report.Result.Data))
		p.Value("  ", report.Result.Data)
		return
	}
	p.line("", "%s: %s", what, terminal.Count(len(rows), "row"))
	p.rows(rows, report.Columns)
}

func (p Printer) sink(sink Sink) {
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
	p.line("", "sink %s (%s): %s, %s", sink.Place, what, given, done)
	if sink.Error != "" {
		p.line("  ", "error: %s", sink.Error)
	}
	for i, param := range sink.Params {
		p.line("  ", "$%d: %s", i+1, expression.Text(param.Data))
	}
	switch {
	case len(sink.Columns) > 0:
		p.rows(sink.Rows, sink.Columns)
	case len(sink.Rows) > 0:
		p.Value("  ", sink.Rows)
	}
}

// columnsAcross is how many columns are side by side; more are written below each other.
const columnsAcross = 6

// rows writes the first rows as a table, whose header has the types.
func (p Printer) rows(rows []any, columns []Column) {
	shown := rows[:min(len(rows), p.Limit)]
	if len(columns) > columnsAcross {
		p.below(shown, columns)
	} else {
		p.across(shown, columns)
	}
	if more := len(rows) - len(shown); more > 0 {
		p.line("", "%s", terminal.Count(more, "more row"))
	}
}

func (p Printer) across(rows []any, columns []Column) {
	heads, elastic := make([]any, len(columns)), make([]terminal.Elastic, len(columns))
	for i, column := range columns {
		head := terminal.OneLine(column.Name) + "\n" + column.Type
		heads[i], elastic[i] = head, terminal.Elastic{Name: head, Least: max((p.Width-1)/len(columns)-3, 4), Cut: terminal.Snip}
	}
	writer := terminal.NewTable(heads...)
	for _, row := range rows {
		cells := make(table.Row, len(columns))
		for i, column := range columns {
			cells[i] = cell(row, column.Name)
		}
		writer.AppendRow(cells)
	}
	_, _ = io.WriteString(p.W, terminal.Fit(writer, p.Width, elastic...)+"\n")
}

// below writes one line for each column, with its value in the first row.
func (p Printer) below(rows []any, columns []Column) {
	writer := terminal.NewTable("column", "type", "first row")
	for _, column := range columns {
		first := ""
		if len(rows) > 0 {
			first = cell(rows[0], column.Name)
		}
		writer.AppendRow(table.Row{terminal.OneLine(column.Name), column.Type, first})
	}
	const least = 12
	_, _ = io.WriteString(p.W, terminal.Fit(writer, p.Width, terminal.Elastic{Name: "first row", Least: least, Cut: terminal.Snip},
		terminal.Elastic{Name: "column", Least: least, Cut: terminal.Snip}, terminal.Elastic{Name: "type", Least: least, Cut: terminal.Snip})+"\n")
}

// cell is a member of a row for a table.
func cell(row any, name string) string {
	members, _ := row.(map[string]any)
	if value, has := members[name]; has && value != nil {
		return terminal.OneLine(expression.Text(value))
	}
	return ""
}
