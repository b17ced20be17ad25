package render

import (
	"fmt"
	"strings"
	"time"

	"reprise/internal/base/terminal"
	"reprise/interpreter"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
)

// AttemptName returns an attempt's name: its step with visit, index and so on.
func AttemptName(to interpreter.AnswerTo) string {
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

// DescribeAwaited describes since when an attempt has waited for its answer, and until when it will.
func DescribeAwaited(awaits *interpreter.AwaitedDetails, now time.Time) string {
	text := "awaiting an answer for " + terminal.Duration(now.Sub(awaits.Since).Round(time.Second))
	if awaits.Until.IsZero() {
		return text
	}
	return text + ", until " + terminal.DeadlineText(awaits.Until)
}

// barWidth is the width of a progress bar, in columns.
const barWidth = 20

// DescribeProgress describes the progress of an attempt, with a bar if its total is known.
func DescribeProgress(awaits *interpreter.AwaitedDetails) string {
	text := terminal.Shorten(awaits.Progress(), 300)
	if awaits.Total <= 0 || text == "" {
		return text
	}
	full := int(float64(barWidth) * min(1, float64(awaits.Done)/float64(awaits.Total)))
	return "[" + strings.Repeat("#", full) + strings.Repeat("-", barWidth-full) + "] " + text
}

// AwaitedText describes what an attempt asks: the question, the options and the form.
func AwaitedText(awaits *interpreter.AwaitedDetails) []string {
	var said []string
	if progress := DescribeProgress(awaits); progress != "" {
		said = append(said, progress)
	}
	if awaits.Approval == nil {
		return said
	}
	if question := terminal.Shorten(awaits.Question(), 300); question != "" {
		said = append(said, "asks: "+question)
	}
	said = append(said, "options: "+terminal.Shorten(strings.Join(awaits.Approval.Options, ", "), 1000))
	if len(awaits.Approval.Form) > 0 {
		fields := lists.Map(awaits.Approval.Form, fieldText)
		said = append(said, "form: "+strings.Join(fields, ", "))
	}
	return said
}

// fieldText describes a field of a form and its type.
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
	return terminal.Shorten(fmt.Sprintf("%s (%s)", item.Name, kind), 300)
}

// AnswerCommand returns the command that answers an attempt.
func AnswerCommand(id, step string, index *int, awaits *interpreter.AwaitedDetails) string {
	verb, option := awaits.AnswerCommand()
	command := fmt.Sprintf("%s %s %s %s", terminal.ProgramName(), verb, terminal.ShellWord(id), terminal.ShellWord(step))
	if index != nil {
		command += fmt.Sprintf(" --index %d", *index)
	}
	if option != "" {
		command += " --option " + terminal.ShellWord(option)
	}
	if awaits.Approval == nil {
		return command
	}
	for _, item := range awaits.Approval.Form {
		if item.Required && item.Default == nil {
			command += " --set " + terminal.ShellWord(item.Name+"=") + strings.ToUpper(item.Type)
		}
	}
	return command
}
