package gate

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/source"
	"reprise/workflows/protocol"
)

const (
	// MostRows bounds each table of iterations in the details of a workflow (failed, waiting, of a batch): Temporal's UI shows
	// details in a small box, and they are part of what each workflow task sends.
	MostRows = 8
)

// MarkdownTable is a table in the details of a workflow, which Temporal's UI renders.
type MarkdownTable struct{ text strings.Builder }

// NewMarkdownTable returns an empty table with the given column names.
func NewMarkdownTable(columns ...string) *MarkdownTable {
	const usual = 256 // bytes
	s := &MarkdownTable{}
	s.text.Grow(usual)
	s.Row(columns...)
	s.text.WriteByte('|')
	for range columns {
		s.text.WriteString(" --- |")
	}
	s.text.WriteByte('\n')
	return s
}

// Row adds a row; cells are Markdown.
func (s *MarkdownTable) Row(cells ...string) {
	s.text.WriteByte('|')
	for _, cell := range cells {
		s.text.WriteByte(' ')
		s.text.WriteString(cell)
		s.text.WriteString(" |")
	}
	s.text.WriteByte('\n')
}

func (s *MarkdownTable) String() string { return s.text.String() }

// LinkTo returns a Markdown link to another workflow of the namespace, relative to the page of details.
func LinkTo(ctx workflow.Context, text, id string) string {
	return fmt.Sprintf("[%s](namespaces/%s/workflows/%s)", text, url.PathEscape(workflow.GetInfo(ctx).Namespace), url.PathEscape(id))
}

// RenderTime formats a time for details; the zero time is "".
func RenderTime(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.UTC().Format("2006-01-02 15:04:05 UTC")
}

// RenderReason returns the last column of a row: what the iteration waits for, else its last error, shortened.
func RenderReason(waiting string, failure *interpreter.ErrorObject) string {
	if waiting != "" {
		return source.MarkdownCode(waiting, protocol.MaxText)
	}
	return source.MarkdownCode(failure.ShortText(), protocol.MaxText)
}

// QuestionText describes an attempt that awaits an answer: its question, and the command to answer it. It returns
// "" if none awaits one.
func QuestionText(id, step string, index *int, awaiting *interpreter.AwaitedDetails) string {
	if awaiting == nil {
		return ""
	}
	text := "\n" + source.MarkdownCode(WithIndex(step, index), protocol.MaxText) + " awaits an answer"
	if question := awaiting.Question(); question != "" {
		text += ": " + source.MarkdownCode(question, protocol.MaxText)
	}
	if awaiting.Approval != nil {
		text += "; the options are " + source.MarkdownCode(strings.Join(awaiting.Approval.Options, ", "), protocol.MaxText)
	}
	return text + ". To answer: " + source.MarkdownCode(AnswerCommand(id, step, index, awaiting), protocol.MaxWorkflowID+2*protocol.MaxText) + "\n"
}

// AnswerCommand returns the command with which a person answers an attempt.
func AnswerCommand(id, step string, index *int, awaiting *interpreter.AwaitedDetails) string {
	verb, option := awaiting.AnswerCommand()
	command := "starter " + verb + " " + id + " " + step
	if index != nil {
		command += fmt.Sprintf(" --index %d", *index)
	}
	if option != "" {
		command += " --option " + strconv.Quote(option)
	}
	return command
}

// MostListed bounds the iterations of each kind in the result of a query, which Temporal rejects above 2 MB.
// Readers want to see where the loop is, not all of it.
const MostListed = 500
