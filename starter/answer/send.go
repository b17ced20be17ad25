package answer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"reprise/internal/base/answers"
	"reprise/internal/base/exitcode"
	"reprise/internal/base/payload"
	"reprise/internal/base/terminal"
	"reprise/internal/observe/render"
	"reprise/internal/observe/runs"
	"reprise/internal/program/steer"
	"reprise/interpreter"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
	"reprise/starter/cli"
	"reprise/starter/session"
	"reprise/workflows/protocol"
)

// AnswerDocument is the JSON output of a command that answers.
type AnswerDocument struct {
	Command    string `json:"command"`
	WorkflowID string `json:"workflow_id"`
	interpreter.AnswerTo

	Outcome steer.CommandOutcome `json:"outcome"` // done, unchanged, kept, refused or unknown
	Message string               `json:"message"`
	// Awaits are the attempts that await an answer; set if the answer was refused.
	Awaits []runs.AwaitedAttempt `json:"awaits,omitempty"`
}

// answerer determines which attempt a command is meant for, and answers it.
type answerer struct {
	*answerOptions

	reader  *runs.Reader
	run     runs.Found
	book    *playbook.Playbook    // nil where the payload store is away
	awaited []runs.AwaitedAttempt // all that await an answer
	left    int                   // children of loops that were not queried
}

// answerAttempt answers an attempt of a run.
func answerAttempt(ctx context.Context, streams cli.Streams, s *session.Session, r *answerOptions, id string) error {
	found, err := s.Runs().Find(ctx, id, "")
	if err != nil {
		return session.FindError(streams, s, err)
	}
	t := &answerer{answerOptions: r, reader: s.Runs(), run: found}
	if t.book, err = t.reader.Playbook(ctx, found); errors.As(err, new(*payload.StoreError)) {
		streams.Notef("note: the playbook of the run cannot be read: %v", err) // its workers may know it
	} else if err != nil {
		return err
	}
	if r.answer.Step != "" && t.book != nil && len(t.book.PlaybookCalls()) == 0 { // else a child run may have it
		if err := cli.KnownStep(r.answer.Step, stepNames(t.book)); err != nil {
			return err
		}
	}
	r.answer.ID = uuid.NewString()
	if err := fitsAnswer(s, r.answer); err != nil {
		return err
	}
	doc, err := t.deliverAnswer(ctx)
	if ctx.Err() != nil {
		return cli.WithStatus(exitcode.Interrupted, cli.ErrSaid)
	}
	if err != nil {
		return err
	}
	return reportAnswer(streams, t, doc)
}

// fitsAnswer returns an error for an answer that is too large for Temporal or the payload store.
func fitsAnswer(s *session.Session, answer interpreter.Answer) error {
	most, err := s.MostBytes()
	if err != nil {
		return err
	}
	if size := answer.SentBytes(); size > most {
		return cli.UsageError("the answer has %d bytes, and a run accepts at most %d; store large data elsewhere, and answer with its location",
			size, most)
	}
	return nil
}

func stepNames(book *playbook.Playbook) []string {
	return lists.Map(book.Steps, func(step *playbook.Step) string { return step.Name })
}

// documentOf returns the output for an answer, with its outcome and a message.
func (t *answerer) documentOf(to interpreter.AnswerTo, outcome steer.CommandOutcome, format string, args ...any) AnswerDocument {
	return AnswerDocument{
		Command: t.name, WorkflowID: t.run.WorkflowID, AnswerTo: to, Outcome: outcome, Message: fmt.Sprintf(format, args...),
	}
}

// refuseAnswer returns the output for a refused answer, with the attempts that await one.
func (t *answerer) refuseAnswer(format string, args ...any) AnswerDocument {
	doc := t.documentOf(t.answer.AnswerTo, steer.Refused, format, args...)
	doc.Awaits = t.awaited
	return doc
}

// deliverAnswer answers the attempt that is meant. An error is the server's; a refusal is in the output.
func (t *answerer) deliverAnswer(ctx context.Context) (AnswerDocument, error) {
	if t.run.Ended() {
		return t.findReply(ctx), nil
	}
	workers, err := t.reader.WorkersOf(ctx, t.run)
	if err != nil {
		return AnswerDocument{}, err
	}
	if workers.Count == 0 {
		return t.depositAnswer(ctx, nil)
	}
	t.awaited, t.left, err = t.reader.AwaitingAttempts(ctx, t.run.WorkflowID, "", t.answer.Index)
	switch {
	case errors.Is(err, answers.ErrNoAnswer):
		return t.depositAnswer(ctx, err)
	case err != nil:
		return AnswerDocument{}, err
	}
	meant := lists.Filter(t.awaited, t.isMeant)
	switch {
	case len(meant) > 1:
		return t.refuseAnswer("%s", t.ambiguousText(meant)), nil
	case len(meant) == 0:
		return t.sendToChild(ctx)
	}
	return t.sendTo(ctx, meant[0])
}

// sendToChild answers an attempt of a child run, or an attempt of the run itself that does not seem to await an
// answer.
func (t *answerer) sendToChild(ctx context.Context) (doc AnswerDocument, err error) {
	if t.book != nil && len(t.book.PlaybookCalls()) == 0 {
		return t.sendBlind(ctx)
	}
	below, left, err := t.reader.AwaitingInChildren(ctx, t.run.WorkflowID, "", t.answer.Index)
	if err != nil {
		return doc, err
	}
	meant := lists.Filter(below, t.isMeant)
	switch {
	case len(meant) == 0:
		if t.book != nil && t.answer.Step != "" && t.book.Step(t.answer.Step) == nil && len(below) == 0 {
			return doc, cli.KnownStep(t.answer.Step, stepNames(t.book))
		}
		doc, err = t.sendBlind(ctx)
		if doc.Outcome == steer.Refused {
			doc.Awaits, t.left = append(doc.Awaits, below...), t.left+left
		}
		return doc, err
	case len(meant) > 1:
		t.awaited, t.left = meant, left
		return t.refuseAnswer("%s", t.ambiguousText(meant)), nil
	}
	if t.run, err = t.reader.Find(ctx, meant[0].Run, ""); err != nil {
		return doc, err
	}
	if t.book, err = t.reader.Playbook(ctx, t.run); err != nil && !errors.As(err, new(*payload.StoreError)) {
		return doc, err
	}
	return t.sendTo(ctx, meant[0])
}

// sendTo answers an attempt, unless the command does not suit it, such as approve for a step that is not an approval.
func (t *answerer) sendTo(ctx context.Context, awaited runs.AwaitedAttempt) (AnswerDocument, error) {
	switch {
	case t.answersApproval() && awaited.Approval == nil:
		return t.refuseAnswer("step %s does not ask for an approval; answer its attempt with complete or fail", awaited.Step), nil
	case t.name == "complete" && awaited.Approval != nil:
		return t.refuseAnswer("step %s is an approval; answer it with approve or reject, not with a result", awaited.Step), nil
	}
	t.answer.AnswerTo = awaited.AttemptAddress()
	return t.sendAnswer(ctx, awaited.WorkflowID)
}

// isMeant reports whether the command is meant for an attempt.
func (t *answerer) isMeant(awaited runs.AwaitedAttempt) bool {
	if t.answer.Step == "" {
		return awaited.Approval != nil
	}
	return awaited.Step == t.answer.Step
}

// sendBlind sends an answer to an attempt that was not found to await one. The attempt may already have this answer,
// or be about to await it; the workflows decide.
func (t *answerer) sendBlind(ctx context.Context) (doc AnswerDocument, err error) {
	if t.answer.Index != nil { // so that others are named than that which does not wait
		if t.awaited, t.left, err = t.reader.AwaitingAttempts(ctx, t.run.WorkflowID, "", nil); err != nil && !errors.Is(err, answers.ErrNoAnswer) {
			return doc, err
		}
	}
	if t.book == nil && t.answer.Step != "" { // the workflow knows the step
		return t.sendAnswer(ctx, t.run.WorkflowID)
	}
	step := t.answeredStep()
	switch {
	case step == nil && t.answer.Step != "":
		return t.refuseAnswer("no step %s awaits an answer, in this run or in a child run", t.answer.Step), nil
	case step == nil:
		return t.refuseAnswer("no approval is waiting in the run"), nil
	case !mayAwait(step):
		return t.refuseAnswer("step %s does not await answers: its tool is neither webhook nor approval", step.Name), nil
	case step.Loop != nil && t.answer.Index == nil:
		return t.refuseAnswer("no iteration of step %s awaits an answer", step.Name), nil
	case step.Loop == nil && t.answer.Index != nil:
		return t.refuseAnswer("step %s has no loop, so it has no iteration %d", step.Name, *t.answer.Index), nil
	}
	return t.sendAnswer(ctx, t.run.WorkflowID)
}

// sendAnswer sends the answer and returns its outcome.
func (t *answerer) sendAnswer(ctx context.Context, to string) (AnswerDocument, error) {
	accepted, err := t.reader.SendAnswer(ctx, to, t.answer)
	var refused *interpreter.AnswerError
	switch {
	case err == nil:
		return t.acceptedDocument(accepted), nil
	case errors.As(err, &refused):
		return t.refuseAnswer("%s", refused.Message), nil
	case errors.Is(err, answers.ErrClosed):
		return t.findReply(ctx), nil
	case errors.Is(err, answers.ErrNoAnswer):
		return t.depositAnswer(ctx, err)
	}
	return AnswerDocument{}, err
}

// answeredStep returns the step that the answer names; nil if it names none, or if the playbook has no such step or
// is unknown.
func (t *answerer) answeredStep() *playbook.Step {
	if t.book == nil {
		return nil
	}
	return t.book.Step(t.answer.Step)
}

// acceptedDocument returns the output for an accepted answer, which describes its effect.
func (t *answerer) acceptedDocument(taken interpreter.AnswerReceipt) AnswerDocument {
	to := taken.AttemptAddress()
	name := render.AttemptName(to)
	switch {
	case taken.ID != t.answer.ID:
		return t.documentOf(to, steer.Unchanged, "%s already has this answer", name)
	case t.answer.Verb == interpreter.AnswerProgress:
		reported := interpreter.ReportedProgress{Done: t.answer.Done, Total: t.answer.Total, Message: t.answer.Message}
		return t.documentOf(to, steer.Done, "%s: %s; its timeout starts again", name, reported.String())
	case t.answer.Verb == interpreter.AnswerFail && t.final:
		return t.documentOf(to, steer.Done, "%s failed permanently", name)
	case t.answer.Verb == interpreter.AnswerFail:
		return t.documentOf(to, steer.Done, "%s failed; the policies of the step decide what follows", name)
	case t.answersApproval():
		return t.documentOf(to, steer.Done, "%s: %s, by %s", name, t.answer.Option, t.answer.By)
	}
	return t.documentOf(to, steer.Done, "%s is complete", name)
}

// depositAnswer leaves the answer on the server until a worker polls. unanswered is the error of the workers; nil if
// none polls.
func (t *answerer) depositAnswer(ctx context.Context, unanswered error) (AnswerDocument, error) {
	silence := runs.Silence{HeldBy: runs.HeldByNoWorker}
	if unanswered != nil {
		silence = t.reader.Silence(ctx, t.run, unanswered)
	}
	why, step := silence.Text(t.run, ""), t.answeredStep()
	switch {
	case t.book == nil && t.answer.Step != "": // the worker that accepts the answer checks its step
	case step == nil && t.answer.Step != "":
		return AnswerDocument{}, cli.KnownStep(t.answer.Step, stepNames(t.book))
	case step == nil:
		return t.refuseAnswer("%s, so it is unknown which approval is waiting; name the step: %s %s %s STEP",
			why, terminal.ProgramName(), t.name, terminal.ShellWord(t.run.WorkflowID)), nil
	case step.Loop != nil && t.answer.Index == nil:
		return t.refuseAnswer("%s, so it is unknown which iteration is waiting; name it with --index", why), nil
	case !mayAwait(step):
		return t.refuseAnswer("step %s does not await answers: its tool is neither webhook nor approval", step.Name), nil
	}
	err := t.reader.DepositAnswer(ctx, t.run.WorkflowID, t.answer)
	switch {
	case errors.Is(err, answers.ErrClosed):
		return t.findReply(ctx), nil
	case errors.Is(err, answers.ErrFull):
		return t.refuseAnswer("%s, and %s", why, err), nil
	case err != nil:
		return AnswerDocument{}, err
	}
	if silence.HeldBy != runs.HeldByNoWorker {
		return t.documentOf(t.answer.AnswerTo, steer.Pending, "%s; the server keeps the answer until that works, and the run accepts it if %s awaits it then",
			why, render.AttemptName(t.answer.AnswerTo)), nil
	}
	return t.documentOf(t.answer.AnswerTo, steer.Pending, "no worker of the task queue %q responds; the server keeps the answer until a worker is back, which accepts it "+
		"if %s awaits it then; worker --task-queue %s starts one", t.run.TaskQueue, render.AttemptName(t.answer.AnswerTo), terminal.ShellWord(t.run.TaskQueue)), nil
}

// mayAwait reports whether attempts of a step can await answers.
func mayAwait(step *playbook.Step) bool {
	if step.Action == nil {
		return false
	}
	_, literal := step.Action.ToolName()
	return !literal || step.Action.ToolTraits().Awaits
}

// findReply finds how a workflow that has ended replied to the answer.
func (t *answerer) findReply(ctx context.Context) AnswerDocument {
	status, err := t.reader.Status(ctx, t.run, t.run.EndedAt)
	if err == nil && t.answer.Step != "" && t.answer.Verb != interpreter.AnswerProgress {
		visits := status.Visits(t.answer.Step)
		for _, visit := range slices.Backward(visits) {
			if taken, found := t.recallVisit(ctx, visit); found {
				taken.ID = "" // it is not about this answer
				return t.acceptedDocument(taken)
			}
		}
	}
	if t.run.Ended() {
		return t.refuseAnswer("the run has ended (%s) and accepts no more answers", t.run.Status)
	}
	return t.refuseAnswer("%s is over and accepts no more answers", render.AttemptName(t.answer.AnswerTo))
}

func (t *answerer) recallVisit(ctx context.Context, visit *runs.Step) (taken interpreter.AnswerReceipt, found bool) {
	answer := t.answer
	answer.Visit = visit.Visit
	if visit.Loop == nil {
		return t.reader.FindReceipt(ctx, t.run.WorkflowID, answer, visit.Attempt)
	}
	if answer.Index == nil || t.book == nil {
		return taken, false
	}
	task := protocol.Task{ID: t.run.WorkflowID, Step: visit.Step, Visit: visit.Visit}
	size := max(visit.Loop.Total, *answer.Index+1) // a reprocess runs less than there is
	id, found := protocol.IterationID(task, t.book.Step(visit.Step).Loop, size, nil, *answer.Index)
	if !found {
		return taken, false
	}
	return t.reader.FindReceipt(ctx, id, answer, 0)
}

// reportAnswer prints the outcome of an answer. A refusal goes to standard error, with the attempts that await an
// answer.
func reportAnswer(streams cli.Streams, t *answerer, doc AnswerDocument) error {
	var err error
	if doc.Outcome == steer.Refused {
		err = cli.WithStatus(exitcode.Failed, cli.ErrSaid)
	}
	if t.output == "json" {
		if failed := terminal.PrintJSON(streams.Out, doc); failed != nil {
			return failed
		}
		return err
	}
	to, said := streams.Out, doc.Message
	if doc.Outcome == steer.Refused {
		to, said = streams.Err, "refused: "+said
	}
	var b strings.Builder
	b.WriteString(cli.OutcomeLine(to, doc.WorkflowID, said))
	writeAwaited(&b, doc, t.left, terminal.PaperOf(to).Width, time.Now())
	_, _ = io.WriteString(to, b.String())
	return err
}

// shownAwaited bounds how many awaiting attempts a refusal lists.
const shownAwaited = 10

// writeAwaited lists the attempts that await an answer, with the commands that answer them. left is how many more
// there are.
func writeAwaited(b *strings.Builder, doc AnswerDocument, left, width int, now time.Time) {
	if len(doc.Awaits) == 0 {
		return
	}
	b.WriteString("these attempts await an answer:\n")
	for _, awaited := range doc.Awaits[:min(len(doc.Awaits), shownAwaited)] {
		in := ""
		if awaited.Run != "" {
			in = " in " + terminal.EscapeInvisible(awaited.Run)
		}
		writeIndented(b, "  ", render.AttemptName(awaited.AttemptAddress())+in+" "+render.DescribeAwaited(&awaited.AwaitedDetails, now), width)
		for _, more := range render.AwaitedText(&awaited.AwaitedDetails) {
			writeIndented(b, "    ", more, width)
		}
		b.WriteString("    " + render.AnswerCommand(cmp.Or(awaited.Run, doc.WorkflowID), awaited.Step, awaited.Index, &awaited.AwaitedDetails) + "\n")
	}
	if more := len(doc.Awaits) - shownAwaited; more > 0 {
		fmt.Fprintf(b, "  and %d more\n", more)
	}
	if left > 0 {
		fmt.Fprintf(b, "  %s of loops were not queried\n", terminal.Count(left, "other part"))
	}
}

// writeIndented writes a text, wrapped at width, with each line indented.
func writeIndented(b *strings.Builder, indent, said string, width int) {
	var lines strings.Builder
	terminal.WriteWrapped(&lines, said, width-len(indent))
	for line := range strings.Lines(lines.String()) {
		b.WriteString(indent + line)
	}
}

// ambiguousText describes that several attempts match the command.
func (t *answerer) ambiguousText(meant []runs.AwaitedAttempt) string {
	if t.answer.Step == "" {
		return fmt.Sprintf("%d approvals are waiting; name the STEP, and the iteration with --index", len(meant))
	}
	if meant[0].Run != "" {
		return fmt.Sprintf("%d attempts in child runs await an answer; name one of the child runs by its ID", len(meant))
	}
	if t.answer.Index == nil && meant[0].Index != nil {
		return fmt.Sprintf("%s of step %s await an answer; name one with --index", terminal.Count(len(meant), "iteration"), t.answer.Step)
	}
	return fmt.Sprintf("%d visits of step %s await an answer at once; answer one by an update (docs/concepts/answers.md)", len(meant), t.answer.Step)
}
