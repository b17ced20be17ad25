package render

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"

	"reprise/internal/base/terminal"
	"reprise/internal/observe/runs"
	"reprise/interpreter"
	"reprise/interpreter/lists"
)

// DescribePaused describes what is paused in a run, since when, by whom and why; "" if nothing is. Times are shown without
// their date if it is that of now.
func DescribePaused(control interpreter.Control, now time.Time) string {
	if control.Paused {
		return "paused" + SinceText(control.Held[""], now)
	}
	texts := lists.Map(control.Steps, func(step string) string {
		return "step " + terminal.EscapeInvisible(step) + " paused" + SinceText(control.Held[step], now)
	})
	return strings.Join(texts, "; ")
}

// SinceText describes when a command was given, by whom and why.
func SinceText(said interpreter.Said, now time.Time) string {
	if said.At.IsZero() {
		return Attribution(said)
	}
	return " since " + terminal.ClockText(said.At, now) + Attribution(said)
}

// Attribution describes who gave a command, and why.
func Attribution(said interpreter.Said) string {
	text := ""
	if said.By != "" {
		text = " by " + terminal.Shorten(said.By, 100)
	}
	if said.Reason != "" {
		text += ": " + terminal.Shorten(said.Reason, 200)
	}
	return text
}

// HeldByParent returns the part of a parent run's pauses that affects a child run: everything, or the step that
// started the child.
func HeldByParent(parent runs.ChildWait) interpreter.Control {
	control := *parent.Control
	if !control.Paused {
		control.Steps = []string{parent.Step}
	}
	return control
}

// ResumeCommand returns the command that resumes what is paused.
func ResumeCommand(id string, control interpreter.Control) string {
	command := terminal.ProgramName() + " resume " + terminal.ShellWord(id)
	if !control.Paused && len(control.Steps) == 1 {
		command += " " + terminal.ShellWord(control.Steps[0])
	}
	return "to resume: " + command
}

// resumeCommands returns the commands that resume a paused run, or the parent runs that hold it.
func resumeCommands(status *runs.Status) []string {
	var help []string
	if status.Control.AnyPaused() {
		help = append(help, ResumeCommand(status.WorkflowID, status.Control))
	}
	for _, parent := range status.HeldByParents {
		help = append(help, ResumeCommand(parent.Run, HeldByParent(parent)))
	}
	return help
}

// deadLettersOf returns the command that shows the failed and cancelled iterations of an ended run.
func deadLettersOf(status *runs.Status) []string {
	failed, cancelled := 0, 0
	for _, step := range status.Steps {
		if step.Loop != nil {
			failed, cancelled = failed+step.Loop.Failed, cancelled+step.Loop.Cancelled
		}
	}
	command := fmt.Sprintf("%s dead-letters list %s", terminal.ProgramName(), terminal.ShellWord(cmp.Or(status.Origin, status.WorkflowID)))
	switch {
	case failed+cancelled == 0:
		return nil
	case cancelled > 0:
		return []string{"to see what failed or was cancelled: " + command + " --cancelled"}
	}
	return []string{"to see what failed: " + command}
}

// commandsAfterEnd returns the commands that show more about a run that failed or left iterations undone.
func commandsAfterEnd(status *runs.Status) []string {
	help := deadLettersOf(status)
	if len(help) == 0 && status.Status == interpreter.Failed {
		help = append(help, fmt.Sprintf("to see what happened: %s events %s --failed", terminal.ProgramName(), terminal.ShellWord(status.WorkflowID)))
	}
	if child := status.FailedRun(); child != "" {
		help = append(help, fmt.Sprintf("to see why a child run failed: %s status %s", terminal.ProgramName(), terminal.ShellWord(child)))
	}
	return help
}

// StartWorker returns the command that starts a worker for a task queue. flags name the server, such as " --address
// HOST:PORT", or are "".
func StartWorker(taskQueue, flags string) string {
	return "to start one: worker" + flags + " --task-queue " + terminal.ShellWord(taskQueue)
}

// startRunWorker returns the commands with which a run continues that no worker gets.
func startRunWorker(status *runs.Status) []string {
	start := StartWorker(status.TaskQueue, "")
	switch of := status.Build; {
	case of != nil && of.Pinned:
		start += " --deployment " + terminal.ShellWord(of.Deployment) + " --build " + terminal.ShellWord(of.ID)
		return []string{start, fmt.Sprintf("to move the run: %s builds move %s --to BUILD", terminal.ProgramName(), terminal.ShellWord(status.WorkflowID))}
	case status.NoCurrentBuild != "":
		return []string{fmt.Sprintf("to see the builds: %s builds", terminal.ProgramName())}
	}
	return []string{start}
}

// queueOf returns the queue that a run waits in, else the first queue in which one of its steps is stuck; nil if
// there is none.
func queueOf(status *runs.Status) *runs.QueuePosition {
	if status.Queue != nil {
		return status.Queue
	}
	for _, step := range status.Steps {
		if StuckQueue(step.Queue) != "" {
			return step.Queue
		}
	}
	return nil
}

// HelpCommands returns commands that help a run to continue, one per line.
func HelpCommands(status *runs.Status) []string {
	switch queue := queueOf(status); {
	case status.Ended():
		return commandsAfterEnd(status)
	case status.HeldBy == runs.HeldByNoWorker:
		return startRunWorker(status)
	case status.IsSilent():
		return nil // the failure says what to mend
	case len(status.HeldByParents) > 0 || status.Control.AnyPaused():
		return resumeCommands(status)
	case queue != nil && queue.Stopped:
		return []string{fmt.Sprintf("to request a slot now: %s retry-now %s", terminal.ProgramName(), terminal.ShellWord(status.WorkflowID))}
	case queue != nil && queue.NoWorker != nil:
		return []string{StartWorker(queue.NoWorker.TaskQueue, "")}
	case queue != nil && len(queue.Holders) > 0:
		return []string{fmt.Sprintf("to see the run ahead: %s status %s", terminal.ProgramName(), terminal.ShellWord(queue.Holders[0]))}
	}
	var waiting []string
	person, loops := false, false
	for _, step := range status.Steps {
		if isWaiting(step) && !slices.Contains(waiting, step.Step) {
			waiting, person = append(waiting, step.Step), person || step.HeldBy == runs.HeldByPerson
			loops = loops || step.Loop != nil
		}
	}
	if len(waiting) == 0 {
		return AnswerCommands(status)
	}
	id, of, step := terminal.ShellWord(status.WorkflowID), "", "STEP"
	if len(waiting) == 1 {
		step = terminal.ShellWord(waiting[0])
		of = " " + step
	}
	if loops {
		step += " [--index N]"
	}
	help := []string{fmt.Sprintf("to retry now: %s retry-now %s%s", terminal.ProgramName(), id, of)}
	if person {
		help[0] = fmt.Sprintf("to retry: %s retry-now %s%s", terminal.ProgramName(), id, of)
		help = append(help, fmt.Sprintf("to give up: %s skip %s %s --reason TEXT", terminal.ProgramName(), id, step))
	}
	return append(help, AnswerCommands(status)...)
}

// shownAnswers bounds the commands that a status shows for awaited answers.
const shownAnswers = 5

// AnswerCommands returns the commands that answer the attempts of a run, or that list them.
func AnswerCommands(status *runs.Status) []string {
	var help []string
	for _, step := range status.Steps {
		below := childCommands(step)
		help = append(help, below[:min(len(below), shownAnswers-len(help))]...)
		switch {
		case len(help) == shownAnswers:
		case step.Awaits != nil:
			help = append(help, "to answer: "+AnswerCommand(status.WorkflowID, step.Step, nil, step.Awaits))
		case step.Loop != nil && step.Loop.Asks && step.Loop.Running > 0 && step.EndedAt.IsZero():
			help = append(help, loopAnswerOf(status.WorkflowID, step))
		case step.Loop != nil && step.Loop.Plays && step.Loop.Running > 0 && len(step.Iterations) == 0 && len(below) == 0:
			help = append(help, fmt.Sprintf("to see its runs: %s status %s %s", terminal.ProgramName(), terminal.ShellWord(status.WorkflowID), terminal.ShellWord(step.Step)))
		}
	}
	return help
}

// childCommands returns the commands that answer or resume runs started by a step and its iterations.
func childCommands(step runs.Step) []string {
	var help []string
	found := map[string]bool{}
	add := func(children runs.ChildRuns) {
		for _, awaited := range children.Awaited {
			help = append(help, "to answer: "+AnswerCommand(awaited.Run, awaited.Step, nil, &awaited.AwaitedDetails))
		}
		for _, held := range children.Held {
			switch {
			case found[held.Run]:
			case held.Control != nil:
				found[held.Run] = true
				help = append(help, ResumeCommand(held.Run, *held.Control))
			case held.Status == interpreter.RetryPending:
				found[held.Run] = true
				help = append(help, fmt.Sprintf("to retry now: %s retry-now %s", terminal.ProgramName(), terminal.ShellWord(held.Run)))
			}
		}
	}
	for _, iteration := range step.Iterations {
		add(iteration.ChildRuns)
	}
	if len(help) == 0 {
		add(step.ChildRuns)
	}
	return help
}

// loopAnswerOf returns the command that answers the first awaiting iteration of a loop, or the command that lists
// them.
func loopAnswerOf(id string, step runs.Step) string {
	for _, iteration := range step.Iterations {
		if iteration.Awaits != nil {
			return "to answer: " + AnswerCommand(id, step.Step, &iteration.Index, iteration.Awaits)
		}
	}
	return fmt.Sprintf("to see what they await: %s status %s %s", terminal.ProgramName(), terminal.ShellWord(id), terminal.ShellWord(step.Step))
}

// writeHelp writes a command without breaking it. It is put on the next line if it does not fit after its explanation.
func writeHelp(b *strings.Builder, help string, paper terminal.Paper) {
	if text.StringWidth(help) > paper.Width {
		help = strings.Replace(help, ": ", ":\n  ", 1)
	}
	for line := range strings.SplitSeq(help, "\n") {
		b.WriteString(paper.Paint(terminal.Quiet, line) + "\n")
	}
}

// isWaiting reports whether part of a step waits for a retry or for a person.
func isWaiting(step runs.Step) bool {
	return step.Status == interpreter.RetryPending || step.Loop != nil && step.Loop.Waiting > 0 && step.EndedAt.IsZero()
}
