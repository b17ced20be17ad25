package workflows

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/interpreter/playbook"
	"reprise/interpreter/queue"
	"reprise/interpreter/source"
)

// The current details of workflows: their status, in Markdown, for people who look at
// them in Temporal's UI. They cost no event, and nothing is decided by them. Texts of
// others are in them as code.

const (
	// mostVisits is how many visits of steps the details of a run show: the newest.
	mostVisits = 40
	// mostRows bounds the failed iterations in the details of a loop, those that
	// wait, and the iterations in the details of a batch.
	mostRows = 8
	// mostText is how many runes a text of others has there.
	mostText = 120
)

// Describe says which playbook a run, or a part of one, is about. Texts of the
// playbook's author are nothing but texts.
func Describe(book *playbook.Playbook) string {
	return fmt.Sprintf("Playbook %s, hash %s", source.Code(book.Name, mostText), source.Code(shortHash(book), mostText))
}

// shortHash is as much of a playbook's hash as people need to distinguish it.
func shortHash(book *playbook.Playbook) string {
	const digits = 12
	return book.Hash[:digits]
}

// describeChild says which playbook a child of a run belongs to.
func describeChild(book *playbook.Playbook, task Task) string {
	return fmt.Sprintf("%s, step %s of the run %s", Describe(book), source.Code(task.Step, mostText), source.Code(runID(task), mostText))
}

// sheet is a table in Markdown.
type sheet struct{ text strings.Builder }

func newSheet(columns ...string) *sheet {
	const usual = 256 // bytes
	s := &sheet{}
	s.text.Grow(usual)
	s.row(columns...)
	s.text.WriteByte('|')
	for range columns {
		s.text.WriteString(" --- |")
	}
	s.text.WriteByte('\n')
	return s
}

func (s *sheet) row(cells ...string) {
	s.text.WriteByte('|')
	for _, cell := range cells {
		s.text.WriteByte(' ')
		s.text.WriteString(cell)
		s.text.WriteString(" |")
	}
	s.text.WriteByte('\n')
}

func (s *sheet) String() string { return s.text.String() }

// linkTo leads to another workflow. The UI shows details in a page beside those of
// its namespaces.
func linkTo(ctx workflow.Context, text, id string) string {
	return fmt.Sprintf("[%s](namespaces/%s/workflows/%s)", text, url.PathEscape(workflow.GetInfo(ctx).Namespace), url.PathEscape(id))
}

// renderTime is a time in details, "" for none.
func renderTime(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.UTC().Format("2006-01-02 15:04:05 UTC")
}

// renderReason is what is waited for, else the error, in a few words.
func renderReason(waiting string, failure *interpreter.ErrorObject) string {
	if waiting != "" {
		return source.Code(waiting, mostText)
	}
	return source.Code(failure.Short(), mostText)
}

// renderHold renders whether people hold the run, and why.
func (c *controls) renderHold() string {
	what := ""
	switch {
	case c.Paused:
		what = "the run is paused"
	case len(c.Steps) > 0:
		what = "paused: " + source.Code(strings.Join(c.Steps, ", "), mostText)
	default:
		return ""
	}
	for _, said := range []struct{ word, text string }{{"by", c.Said.By}, {"because", c.Said.Reason}} {
		if text := source.Code(said.text, mostText); text != "" {
			what += " " + said.word + " " + text
		}
	}
	return "**" + what + "**\n\n"
}

// describe writes the status of the run, and publishes it where it has changed.
func (r *run) describe(ctx workflow.Context) {
	records := r.records
	table := newSheet("step", "state", "progress", "next retry", "waits for, or last error")
	if earlier := len(records) - mostVisits; earlier > 0 {
		records = records[earlier:]
		table.row(fmt.Sprintf("… %d earlier visits", earlier), "", "", "", "")
	}
	for _, record := range records {
		shown := *record
		if record.Loop != nil && record.EndedAt.IsZero() && r.controls.IsPaused(record.Step) {
			shown.Status = interpreter.Paused
		}
		table.row(stepCells(ctx, shown, r.live[record])...)
	}
	r.publishOpen(ctx, r.controls.Control)
	workflow.SetCurrentDetails(ctx, r.controls.renderHold()+r.lateness()+r.movingText()+ticketText(ctx, r.Ticket)+table.String()+r.openQuestions()+
		fmt.Sprintf("\nMore: `starter status %[1]s`, `starter events %[1]s`\n", strings.Trim(source.Code(r.id, MaxWorkflowID), "`")))
}

// lateness says that the run takes longer than expected.
func (r *run) lateness() string {
	if !r.Late {
		return ""
	}
	return fmt.Sprintf("**the run is late: it was expected to end within %s**\n\n", r.book.Expect)
}

// ticketText says of a run that waits for its turn what it waits for.
func ticketText(ctx workflow.Context, ticket *queue.Ticket) string {
	if !ticket.Waits() {
		return ""
	}
	return fmt.Sprintf("**queued** under the %s, since %s\n\n",
		linkTo(ctx, "concurrency key "+source.Code(ticket.Name.Key, mostText), ticket.Queue), renderTime(ticket.Since))
}

// openQuestions renders the questions to people in steps whose calls are made here, and
// the commands that answer.
func (r *run) openQuestions() string {
	text := ""
	for _, record := range r.records {
		if call := r.live[record]; call != nil {
			text += questionText(r.id, call.Config().Step.Name, call.Config().Index, call.View().AwaitedDetails())
		}
	}
	return text
}

// questionText is what an attempt awaits, and the command that answers; "" for none.
func questionText(id, step string, index *int, awaiting *interpreter.AwaitedDetails) string {
	if awaiting == nil {
		return ""
	}
	text := "\n" + source.Code(indexed(step, index), mostText) + " awaits an answer"
	if question := awaiting.Question(); question != "" {
		text += ": " + source.Code(question, mostText)
	}
	if awaiting.Approval != nil {
		text += "; the options are " + source.Code(strings.Join(awaiting.Approval.Options, ", "), mostText)
	}
	return text + ". To answer: " + source.Code(answerCommand(id, step, index, awaiting), MaxWorkflowID+2*mostText) + "\n"
}

// answerCommand is the command that answers an attempt.
func answerCommand(id, step string, index *int, awaiting *interpreter.AwaitedDetails) string {
	verb, option := awaiting.Command()
	command := "starter " + verb + " " + id + " " + step
	if index != nil {
		command += fmt.Sprintf(" --index %d", *index)
	}
	if option != "" {
		command += " --option " + strconv.Quote(option)
	}
	return command
}

// stepCells are those of a visit of a step; call is nil where its call is not made
// here.
func stepCells(ctx workflow.Context, record StepRecord, call *call.Call) []string {
	name, progress := source.Code(record.Step, mostText), ""
	if record.Visit > 1 {
		name += fmt.Sprintf(" visit %d", record.Visit)
	}
	switch loop := record.Loop; {
	case loop != nil && record.EndedAt.IsZero():
		progress = linkTo(ctx, fmt.Sprintf("%d iterations", loop.Stats.Total), loop.WorkflowID)
	case loop != nil:
		progress = linkTo(ctx, loop.Stats.Text(),
			loop.WorkflowID)
	case record.Call != "" && record.EndedAt.IsZero():
		progress = linkTo(ctx, "continues in another workflow", record.Call)
	case call != nil && record.Child != "":
		progress = linkTo(ctx, fmt.Sprintf("attempt %d runs another playbook", call.View().Attempt), record.Child)
	case call != nil:
		progress = fmt.Sprintf("attempt %d", call.View().Attempt)
	case record.Attempts > 0:
		progress = fmt.Sprintf("%d attempts", record.Attempts)
	}
	return []string{name, "**" + string(record.Status) + "**", progress, renderTime(record.NextRetryAt), renderReason(record.Waiting, record.Error)}
}

// describe writes the status of the loop, or of this shard of it.
func (l *loop) describe(ctx workflow.Context) {
	rest, stats := l.countParked(), l.result.Stats
	waiting, active := rest.waiting, rest.active(l.active)
	stats.Success, stats.Failed = stats.Success+rest.within.Success, stats.Failed+rest.within.Failed
	counts := newSheet("completed", "failed", "waiting", "running", "pending", "next retry")
	counts.row(fmt.Sprint(stats.Success), fmt.Sprint(stats.Failed), fmt.Sprint(waiting), fmt.Sprint(active),
		fmt.Sprint(max(stats.Total-stats.Success-stats.Failed-waiting-active, 0)), renderTime(rest.next))
	text := l.controls.renderHold() + fmt.Sprintf("%s: iterations %d to %d of %d\n\n%s",
		source.Code(l.step.Name, mostText), l.index(0), l.index(stats.Total-1), l.size(), counts)
	for _, p := range l.shards {
		text += "\nRunning, and not counted yet: " + linkTo(ctx, "a shard of the loop", p.id) + "\n"
	}
	workflow.SetCurrentDetails(ctx, text+l.failures(ctx)+l.waits(ctx))
	l.reportWaits(ctx)
}

// failures are the first iterations that failed, and where to look.
func (l *loop) failures(ctx workflow.Context) string {
	if len(l.result.Errors) == 0 {
		return ""
	}
	table := newSheet("failed iteration", "last error", "attempts", "where")
	for _, failure := range l.result.Errors[:min(len(l.result.Errors), mostRows)] {
		id := l.childOf(failure.Index)
		table.row(fmt.Sprint(failure.Index), renderReason("", failure.Error), fmt.Sprint(failure.Attempts),
			linkTo(ctx, source.Code(id, mostText), id))
	}
	if more := l.result.Stats.Failed - mostRows; more > 0 {
		table.row(fmt.Sprintf("and %d more", more), "", "", "")
	}
	return "\n" + table.String()
}

// childOf is the workflow ID of the child in which an iteration was.
func (l *loop) childOf(index int) string {
	if id, found := IterationID(l.input.Task, l.loop, l.size(), l.input.Chosen, index); found {
		return id
	}
	return iterationID(l.input.Task, index)
}

// waits are the first children that wait without a slot, and what for.
func (l *loop) waits(ctx workflow.Context) string {
	var table *sheet
	rows := 0
	for _, b := range l.batches {
		if b.holds {
			continue
		}
		if table == nil {
			table = newSheet("waiting iteration", "waits for", "next retry", "where")
		}
		if rows++; rows > mostRows {
			table.row("and more", "", "", "")
			break
		}
		which := fmt.Sprint(b.index)
		if b.request.Waiting > 1 {
			which = fmt.Sprintf("%d, from %d on", b.request.Waiting, b.index)
		}
		why, next := b.request.Why, b.request.At
		if b.request.Now {
			why, next = interpreter.WaitsForSlot, time.Time{}
		}
		table.row(which, source.Code(why, mostText), renderTime(next), linkTo(ctx, source.Code(b.id, mostText), b.id))
	}
	if table == nil {
		return ""
	}
	return "\n" + table.String()
}

// describe writes the status of the batch: how many iterations have each status, with
// details of some.
func (b *batch) describe(ctx workflow.Context) {
	records := b.records()
	var counts []string
	questions := ""
	table, rows := newSheet("iteration", "state", "attempts", "next retry", "waits for, or last error"), 0
	for state := range interpreter.EachStatus {
		n := 0
		for i := range records {
			record := &records[i]
			if record.Status != state {
				continue
			}
			n++
			if detailed := record.Waiting != "" || record.Error != nil || len(records) == 1; !detailed || rows == mostRows {
				continue
			}
			rows++
			name, index := strconv.Itoa(record.Index), &record.Index
			if b.step.Loop == nil {
				name, index = source.Code(b.step.Name, mostText), nil
			}
			questions += questionText(runID(b.input.Task), b.step.Name, index, record.Awaits)
			table.row(name, "**"+string(record.Status)+"**", strconv.Itoa(record.Attempts),
				renderTime(record.NextRetryAt), renderReason(record.Waiting, record.Error))
		}
		if n > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", n, state))
		}
	}
	text := controlsOf(ctx).renderHold() + source.Code(b.step.Name, mostText) + ": " + strings.Join(counts, ", ") + "\n"
	if rows > 0 {
		text += "\n" + table.String()
	}
	workflow.SetCurrentDetails(ctx, text+questions)
}

// AttemptDetailsQuery takes an interpreter.AnswerTo that names an attempt, and returns
// its AttemptDetails: the request, for the people who are to answer it.
const AttemptDetailsQuery = "asked"

// AttemptDetails is what a workflow knows of an attempt that is answered from outside.
// One of its fields is set; none is set where the workflow knows nothing of the
// attempt, or no longer awaits its answer.
type AttemptDetails struct {
	// Awaiting is the attempt that has no answer yet; Since is zero while its request
	// is still being sent.
	Awaiting *interpreter.AwaitedDetails `json:"awaiting,omitempty"`
	// Answered is the answer that the attempt has.
	Answered *Answered `json:"answered,omitempty"`
	// Elsewhere is the ID of the workflow that accepts the answer in place of this one.
	Elsewhere string `json:"elsewhere,omitempty"`
}

// describeAttempt describes the attempt with an address.
func (c *controls) describeAttempt(to interpreter.AnswerTo) (AttemptDetails, error) {
	for _, one := range slices.Backward(c.Answered) {
		if one.is(to) {
			return AttemptDetails{Answered: &one}, nil
		}
	}
	for _, awaited := range c.awaited {
		if awaited.call.View().IsAddressed(to, awaited.sent) && !awaited.call.View().HasAnswer() {
			asking := &interpreter.AwaitedDetails{Attempt: awaited.call.View().Attempts + 1}
			asking.Approval, _ = awaited.call.View().Approval()
			return AttemptDetails{Awaiting: cmp.Or(awaited.call.View().AwaitedDetails(), asking)}, nil
		}
	}
	return AttemptDetails{Elsewhere: interpreter.AnsweredAt(c.notAwaited(to))}, nil
}
