package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"reprise/internal/runs"
	"reprise/interpreter"
	"reprise/interpreter/playbook"
)

// sayReply says what came of an answer: to the standard error where it was refused,
// with what awaits an answer.
func (a *app) sayReply(t *replier, doc replyDocument) error {
	var err error
	if doc.Outcome == outcomeRefused {
		err = withStatus(exitFailed, errSaid)
	}
	if t.output == "json" {
		if failed := printJSON(a.Out, doc); failed != nil {
			return failed
		}
		return err
	}
	to, said := a.Out, doc.Message
	if doc.Outcome == outcomeRefused {
		to, said = a.Err, "refused: "+said
	}
	var b strings.Builder
	width := paperOf(to).width
	line := visible(doc.WorkflowID) + ": " + oneLine(said, 2000)
	if isTerminal(to) {
		writeWrapped(&b, line, width)
	} else {
		b.WriteString(line + "\n")
	}
	writeAsked(&b, doc, t.left, width, time.Now())
	_, _ = io.WriteString(to, b.String())
	return err
}

// mostAskedSaid bounds the attempts that are named to who has asked for another.
const mostAskedSaid = 10

// writeAsked names the attempts that await an answer, with the commands that give it.
func writeAsked(b *strings.Builder, doc replyDocument, left, width int, now time.Time) {
	if len(doc.Awaits) == 0 {
		return
	}
	b.WriteString("what awaits an answer:\n")
	for _, asked := range doc.Awaits[:min(len(doc.Awaits), mostAskedSaid)] {
		in := ""
		if asked.Run != "" {
			in = " in " + visible(asked.Run)
		}
		writeIndented(b, "  ", placeText(asked.To())+in+" "+awaitedText(&asked.Awaiting, now), width)
		for _, more := range askedText(&asked.Awaiting) {
			writeIndented(b, "    ", more, width)
		}
		b.WriteString("    " + answerCommand(cmp.Or(asked.Run, doc.WorkflowID), asked.Step, asked.Index, &asked.Awaiting) + "\n")
	}
	if more := len(doc.Awaits) - mostAskedSaid; more > 0 {
		fmt.Fprintf(b, "  and %d more\n", more)
	}
	if left > 0 {
		fmt.Fprintf(b, "  %s of loops were not asked\n", counted(left, "other part"))
	}
}

// writeIndented writes a line, on several where it is too long, each indented.
func writeIndented(b *strings.Builder, indent, said string, width int) {
	var lines strings.Builder
	writeWrapped(&lines, said, width-len(indent))
	for line := range strings.Lines(lines.String()) {
		b.WriteString(indent + line)
	}
}

// placeText names an attempt.
func placeText(to interpreter.AnswerTo) string {
	text := to.Step
	if to.Visit > 1 {
		text += fmt.Sprintf("#%d", to.Visit)
	}
	if to.Index != nil {
		text += fmt.Sprintf("[%d]", *to.Index)
	}
	if to.Attempt > 1 {
		text += fmt.Sprintf(" attempt %d", to.Attempt)
	}
	return text
}

// ambiguous says that several attempts may be meant.
func (t *replier) ambiguous(meant []runs.Asked) string {
	if t.answer.Step == "" {
		return fmt.Sprintf("%d approvals wait; name the STEP that is meant, and with --index the iteration", len(meant))
	}
	if meant[0].Run != "" {
		return fmt.Sprintf("%d attempts in runs below await an answer; name one of these by its ID", len(meant))
	}
	if t.answer.Index == nil && meant[0].Index != nil {
		return fmt.Sprintf("%s of step %s await an answer; name one with --index", counted(len(meant), "iteration"), t.answer.Step)
	}
	return fmt.Sprintf("%d visits of step %s await an answer at once; answer one by an update (docs/operations.md, answers)", len(meant), t.answer.Step)
}

// wrongVerb says why a command is none for an attempt, "" where it may be one.
func (t *replier) wrongVerb(asked runs.Asked) string {
	switch {
	case t.approves() && asked.Approval == nil:
		return fmt.Sprintf("step %s asks for no approval; its attempt is answered with complete or fail", asked.Step)
	case t.name == "complete" && asked.Approval != nil:
		return fmt.Sprintf("step %s is an approval: it is answered with approve or reject, not with a result", asked.Step)
	}
	return ""
}

// awaitedText is since when and until when an attempt awaits its answer.
func awaitedText(awaits *interpreter.Awaiting, now time.Time) string {
	text := "awaits an answer for " + roughly(now.Sub(awaits.Since).Round(time.Second))
	if awaits.Until.IsZero() {
		return text
	}
	return text + ", until " + clock(awaits.Until, now)
}

// clock is a time of day, with its day where that is another one.
func clock(at, now time.Time) string {
	layout := time.TimeOnly
	if at.Local().Format(time.DateOnly) != now.Local().Format(time.DateOnly) {
		layout = time.DateTime
	}
	return at.Local().Format(layout)
}

// barWidth is how many columns a bar of progress has.
const barWidth = 20

// progressText is how far an attempt has come, with a bar where that is known.
func progressText(awaits *interpreter.Awaiting) string {
	text := oneLine(awaits.Progress(), 300)
	if awaits.Total <= 0 || text == "" {
		return text
	}
	full := int(float64(barWidth) * min(1, float64(awaits.Done)/float64(awaits.Total)))
	return "[" + strings.Repeat("#", full) + strings.Repeat("-", barWidth-full) + "] " + text
}

// askedText is what people are asked: the question, the options and the form.
func askedText(awaits *interpreter.Awaiting) []string {
	var said []string
	if progress := progressText(awaits); progress != "" {
		said = append(said, progress)
	}
	if awaits.Approval == nil {
		return said
	}
	if question := oneLine(awaits.Question(), 300); question != "" {
		said = append(said, "asks: "+question)
	}
	said = append(said, "options: "+oneLine(strings.Join(awaits.Approval.Options, ", "), 1000))
	if len(awaits.Approval.Form) > 0 {
		fields := make([]string, len(awaits.Approval.Form))
		for i, item := range awaits.Approval.Form {
			fields[i] = fieldText(item)
		}
		said = append(said, "form: "+strings.Join(fields, ", "))
	}
	return said
}

// fieldText is a field of a form with its type.
func fieldText(item playbook.ApprovalItem) string {
	kind := item.Type
	if len(item.Choices) > 0 {
		kind = strings.Join(item.Choices, " or ")
	}
	switch {
	case item.Default != nil:
		kind += fmt.Sprintf(", else %v", item.Default)
	case item.Required:
		kind += ", required"
	}
	return oneLine(fmt.Sprintf("%s (%s)", item.Name, kind), 300)
}

// answerCommand is the command that answers an attempt.
func answerCommand(id, step string, index *int, awaits *interpreter.Awaiting) string {
	verb, option := awaits.Command()
	command := fmt.Sprintf("%s %s %s %s", program(), verb, shellWord(id), shellWord(step))
	if index != nil {
		command += fmt.Sprintf(" --index %d", *index)
	}
	if option != "" {
		command += " --option " + shellWord(option)
	}
	if awaits.Approval == nil {
		return command
	}
	for _, item := range awaits.Approval.Form {
		if item.Required && item.Default == nil {
			command += " --set " + shellWord(item.Name+"=") + strings.ToUpper(item.Type)
		}
	}
	return command
}
