package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"reprise/internal/base/terminal"
	"reprise/internal/observe/render"
	"reprise/internal/observe/runs"
	"reprise/internal/program/steer"
)

// reportAnswer says what came of an answer: to the standard error where it was refused,
// with what awaits an answer.
func (a *app) reportAnswer(t *answerer, doc answerDocument) error {
	var err error
	if doc.Outcome == steer.Refused {
		err = withStatus(exitFailed, errSaid)
	}
	if t.output == "json" {
		if failed := terminal.PrintJSON(a.Out, doc); failed != nil {
			return failed
		}
		return err
	}
	to, said := a.Out, doc.Message
	if doc.Outcome == steer.Refused {
		to, said = a.Err, "refused: "+said
	}
	var b strings.Builder
	width := terminal.PaperOf(to).Width
	line := terminal.Visible(doc.WorkflowID) + ": " + terminal.Shorten(said, 2000)
	if terminal.IsTerminal(to) {
		terminal.WriteWrapped(&b, line, width)
	} else {
		b.WriteString(line + "\n")
	}
	writeAwaited(&b, doc, t.left, width, time.Now())
	_, _ = io.WriteString(to, b.String())
	return err
}

// mostAwaitedShown bounds the attempts that are named where another was meant.
const mostAwaitedShown = 10

// writeAwaited names the attempts that await an answer, with the commands that give it.
func writeAwaited(b *strings.Builder, doc answerDocument, left, width int, now time.Time) {
	if len(doc.Awaits) == 0 {
		return
	}
	b.WriteString("what awaits an answer:\n")
	for _, awaited := range doc.Awaits[:min(len(doc.Awaits), mostAwaitedShown)] {
		in := ""
		if awaited.Run != "" {
			in = " in " + terminal.Visible(awaited.Run)
		}
		writeIndented(b, "  ", render.Attempt(awaited.To())+in+" "+render.Awaited(&awaited.AwaitedDetails, now), width)
		for _, more := range render.AwaitedText(&awaited.AwaitedDetails) {
			writeIndented(b, "    ", more, width)
		}
		b.WriteString("    " + render.AnswerCommand(cmp.Or(awaited.Run, doc.WorkflowID), awaited.Step, awaited.Index, &awaited.AwaitedDetails) + "\n")
	}
	if more := len(doc.Awaits) - mostAwaitedShown; more > 0 {
		fmt.Fprintf(b, "  and %d more\n", more)
	}
	if left > 0 {
		fmt.Fprintf(b, "  %s of loops were not queried\n", terminal.Count(left, "other part"))
	}
}

// writeIndented writes a line, on several where it is too long, each indented.
func writeIndented(b *strings.Builder, indent, said string, width int) {
	var lines strings.Builder
	terminal.WriteWrapped(&lines, said, width-len(indent))
	for line := range strings.Lines(lines.String()) {
		b.WriteString(indent + line)
	}
}

// ambiguous says that several attempts may be meant.
func (t *answerer) ambiguous(meant []runs.AwaitedAttempt) string {
	if t.answer.Step == "" {
		return fmt.Sprintf("%d approvals wait; name the STEP that is meant, and with --index the iteration", len(meant))
	}
	if meant[0].Run != "" {
		return fmt.Sprintf("%d attempts in child runs await an answer; name one of these by its ID", len(meant))
	}
	if t.answer.Index == nil && meant[0].Index != nil {
		return fmt.Sprintf("%s of step %s await an answer; name one with --index", terminal.Count(len(meant), "iteration"), t.answer.Step)
	}
	return fmt.Sprintf("%d visits of step %s await an answer at once; answer one by an update (docs/concepts/answers.md)", len(meant), t.answer.Step)
}

// wrongVerb says why a command is none for an attempt, "" where it may be one.
func (t *answerer) wrongVerb(awaited runs.AwaitedAttempt) string {
	switch {
	case t.approves() && awaited.Approval == nil:
		return fmt.Sprintf("step %s asks for no approval; its attempt is answered with complete or fail", awaited.Step)
	case t.name == "complete" && awaited.Approval != nil:
		return fmt.Sprintf("step %s is an approval: it is answered with approve or reject, not with a result", awaited.Step)
	}
	return ""
}
