package run

import (
	"fmt"
	"strings"

	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/interpreter/queue"
	"reprise/interpreter/source"
	"reprise/workflows/gate"
	"reprise/workflows/protocol"
)

const (
	// shownVisits is the number of visits of steps that the details of a run show: the latest.
	shownVisits = 40
)

// describeRun writes the status of the run into the details, and publishes it if it has changed.
func (s *status) describeRun(ctx workflow.Context) {
	records := s.records
	table := gate.NewMarkdownTable("step", "state", "progress", "next retry", "waits for, or last error")
	if earlier := len(records) - shownVisits; earlier > 0 {
		records = records[earlier:]
		table.Row(fmt.Sprintf("… %d earlier visits", earlier), "", "", "", "")
	}
	for _, record := range records {
		shown := *record
		if record.Loop != nil && record.EndedAt.IsZero() && s.controls.IsPaused(record.Step) {
			shown.Status = interpreter.Paused
		}
		table.Row(stepCells(ctx, shown, s.live[record])...)
	}
	s.publishOpen(ctx, s.controls.Control)
	workflow.SetCurrentDetails(ctx, s.controls.RenderHold()+s.latenessText()+movingText(s.moving())+ticketText(ctx, s.queues.currentTicket())+table.String()+s.openQuestions()+
		fmt.Sprintf("\nMore: `starter status %[1]s`, `starter events %[1]s`\n", strings.Trim(source.MarkdownCode(s.id, protocol.MaxWorkflowID), "`")))
}

// latenessText returns a note that the run takes longer than expected; "" if it does not.
func (s *status) latenessText() string {
	if !s.late() {
		return ""
	}
	return fmt.Sprintf("**the run is late: it was expected to end within %s**\n\n", s.book.Expect)
}

// movingText returns what a run waits for at its end, "" for nothing.
func movingText(wait *interpreter.Wait) string {
	if wait == nil {
		return ""
	}
	return fmt.Sprintf("**waits: %s**\n\n", source.MarkdownCode(wait.Summary, protocol.MaxText))
}

// ticketText returns what a run waits for before it has its slot; "" if it does not wait.
func ticketText(ctx workflow.Context, ticket *queue.Ticket) string {
	if !ticket.Waits() {
		return ""
	}
	return fmt.Sprintf("**queued** under the %s, since %s\n\n",
		gate.LinkTo(ctx, "concurrency key "+source.MarkdownCode(ticket.Name.Key, protocol.MaxText), ticket.Queue), gate.RenderTime(ticket.Since))
}

// openQuestions renders the questions to people of calls in this workflow, with the commands that answer them.
func (s *status) openQuestions() string {
	text := ""
	for _, record := range s.records {
		if call := s.live[record]; call != nil {
			text += gate.QuestionText(s.id, call.Config().Step.Name, call.Config().Index, call.View().AwaitedDetails())
		}
	}
	return text
}

// stepCells returns the table cells of a visit of a step; call is nil if its call is not made in this workflow.
func stepCells(ctx workflow.Context, record protocol.StepRecord, call *call.Call) []string {
	name, progress := source.MarkdownCode(record.Step, protocol.MaxText), ""
	if record.Visit > 1 {
		name += fmt.Sprintf(" visit %d", record.Visit)
	}
	switch loop := record.Loop; {
	case loop != nil && record.EndedAt.IsZero():
		text := fmt.Sprintf("%d iterations", loop.Stats.Total)
		if loop.Open {
			text = "iterations over a source"
		}
		progress = gate.LinkTo(ctx, text, loop.WorkflowID)
	case loop != nil:
		progress = gate.LinkTo(ctx, loop.Stats.ProgressText(),
			loop.WorkflowID)
	case record.Call != "" && record.EndedAt.IsZero():
		progress = gate.LinkTo(ctx, "continues in another workflow", record.Call)
	case call != nil && record.Child != "":
		progress = gate.LinkTo(ctx, fmt.Sprintf("attempt %d runs another playbook", call.View().Attempt), record.Child)
	case call != nil:
		progress = fmt.Sprintf("attempt %d", call.View().Attempt)
	case record.Attempts > 0:
		progress = fmt.Sprintf("%d attempts", record.Attempts)
	}
	return []string{name, "**" + string(record.Status) + "**", progress, gate.RenderTime(record.NextRetryAt), gate.RenderReason(record.Waiting, record.Error)}
}
