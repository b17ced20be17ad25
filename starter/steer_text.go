package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"

	"reprise/internal/runs"
	"reprise/interpreter"
	"reprise/interpreter/playbook"
	"reprise/workflows"
)

// steerWriter writes answers for eyes as they come, a line for each run that only a
// terminal breaks: what was not done to the standard error.
func (a *app) steerWriter(o *order) func(answer) {
	return func(answer answer) {
		if o.output == "json" {
			return
		}
		to, said := a.Out, answer.Message
		switch answer.Outcome {
		case outcomeRefused:
			to, said = a.Err, "refused: "+said
		case outcomeUnknown:
			to, said = a.Err, "no answer: "+said
		}
		said = visible(answer.WorkflowID) + ": " + oneLine(said, 2000) + "\n"
		if isTerminal(to) {
			var b strings.Builder
			writeWrapped(&b, said, paperOf(to).width)
			said = b.String()
		}
		_, _ = io.WriteString(to, said)
	}
}

// done says how a run stands after a command.
func (o *order) done(told answer) string {
	what, standing := "", *told.Standing
	if o.Index != nil {
		what = fmt.Sprintf("step %s[%d] ", o.Step, *o.Index)
	} else if o.Step != "" {
		what = "step " + o.Step + " "
	}
	switch o.update {
	case workflows.PauseUpdate:
		if standing.Changed {
			return what + "paused; no other attempt begins"
		}
		return what + "was paused already" + since(standing.Control.Holder(o.Step), time.Now())
	case workflows.ResumeUpdate:
		return o.resumed(what, standing)
	case workflows.SetUpdate:
		return what + "from now on with " + tuningText(standing.Control.Tuned(o.Step))
	}
	if told.Queue != nil && o.update == workflows.RetryNowUpdate && standing.Ended == 1 {
		return "asks again for its turn"
	}
	verb := "tried again now"
	if o.update == workflows.SkipUpdate {
		verb = "given up"
	}
	switch n := *told.Waits; {
	case n > 0 && told.WaitsMore:
		return fmt.Sprintf("%s%s: at least %s ended", what, verb, counted(n, "wait"))
	case n > 0:
		return fmt.Sprintf("%s%s: %s ended", what, verb, counted(n, "wait"))
	case standing.Told && told.WaitsMore:
		return fmt.Sprintf("%s%s: what waits there, if anything does", what, verb)
	case standing.Told:
		return fmt.Sprintf("%s%s: nothing waited there", what, verb)
	}
	return what + "nothing waited any more"
}

func (o *order) resumed(what string, standing workflows.Standing) string {
	text := what + "goes on"
	if !standing.Changed {
		text = what + "was not paused"
	}
	if held := pausedText(standing.Control, time.Now()); held != "" {
		text += "; still " + held
	}
	return text
}

// tuningText is what people have set for a step.
func tuningText(tuning interpreter.Tuning) string {
	var parts []string
	if tuning.MaxConcurrency > 0 {
		parts = append(parts, fmt.Sprintf("%s=%d", keyConcurrency, tuning.MaxConcurrency))
	}
	if rate := tuning.Rate; rate != nil {
		parts = append(parts, fmt.Sprintf("%s=%d/%s", keyRate, rate.Requests, perText(rate.PerSeconds)))
	}
	return strings.Join(parts, " ")
}

// perText is the time of a rate.
func perText(seconds float64) string {
	switch seconds {
	case 1:
		return "s"
	case 60:
		return "m"
	case 3600:
		return "h"
	}
	return time.Duration(seconds * float64(time.Second)).String()
}

// parseTuning reads what is to be set.
func parseTuning(words []string) (interpreter.Tuning, error) {
	var tuning interpreter.Tuning
	if len(words) == 0 {
		return tuning, usageError("say what is to be set: %s=N or %s=20/s", keyConcurrency, keyRate)
	}
	given := map[string]bool{}
	for _, word := range words {
		key, value, found := strings.Cut(word, "=")
		if !found {
			return tuning, usageError("%q is no KEY=VALUE, expected such as %s=5 or %s=20/s", word, keyConcurrency, keyRate)
		}
		if err := choice("the key", key, []string{keyConcurrency, keyRate}); err != nil {
			return tuning, err
		}
		if given[key] {
			return tuning, usageError("%s is given twice", key)
		}
		given[key] = true
		if key == keyRate {
			rate, err := parseRate(value)
			if err != nil {
				return tuning, err
			}
			tuning.Rate = &rate
			continue
		}
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 || n > playbook.MaxConcurrencyLimit {
			return tuning, usageError("%s=%s: expected a number from 1 to %d", key, value, playbook.MaxConcurrencyLimit)
		}
		tuning.MaxConcurrency = n
	}
	return tuning, nil
}

// What can be set.
const (
	keyConcurrency = "max_concurrency"
	keyRate        = "rate_limit"
)

// longestRate is the longest time that a rate may be told over.
const longestRate = 24 * time.Hour

// parseRate reads a rate such as 20/s, 100/m or 5/30s.
func parseRate(text string) (interpreter.Rate, error) {
	count, per, found := strings.Cut(text, "/")
	if per != "" && !strings.ContainsAny(per[:1], "0123456789") {
		per = "1" + per
	}
	requests, err := strconv.Atoi(count)
	period, unreadable := time.ParseDuration(per)
	if !found || err != nil || unreadable != nil || requests < 1 || period <= 0 || period > longestRate {
		return interpreter.Rate{}, usageError("%s=%s: expected attempts in a time of at most a day, such as 20/s, 100/m, 5/h or 10/30s", keyRate, text)
	}
	return interpreter.Rate{Requests: requests, PerSeconds: period.Seconds()}, nil
}

// pausedText says what people hold of a run, since when, who and why; "" for
// nothing. now says whether a time needs its day.
func pausedText(control interpreter.Control, now time.Time) string {
	if control.Paused {
		return "paused" + since(control.Held[""], now)
	}
	texts := make([]string, len(control.Steps))
	for i, step := range control.Steps {
		texts[i] = "step " + visible(step) + " paused" + since(control.Held[step], now)
	}
	return strings.Join(texts, "; ")
}

// since is when something was said, who did and why.
func since(said interpreter.Said, now time.Time) string {
	if said.At.IsZero() {
		return saidText(said)
	}
	return " since " + clock(said.At, now) + saidText(said)
}

// saidText is who said something, and why.
func saidText(said interpreter.Said) string {
	text := ""
	if said.By != "" {
		text = " by " + oneLine(said.By, 100)
	}
	if said.Reason != "" {
		text += ": " + oneLine(said.Reason, 200)
	}
	return text
}

// holding is what a run above has paused of what another one depends on: all, or the
// step that has started it.
func holding(above runs.Held) interpreter.Control {
	control := *above.Control
	if !control.Paused {
		control.Steps = []string{above.Step}
	}
	return control
}

// letsGo is the command that lets go on what is held.
func letsGo(id string, control interpreter.Control) string {
	command := program() + " resume " + shellWord(id)
	if !control.Paused && len(control.Steps) == 1 {
		command += " --step " + shellWord(control.Steps[0])
	}
	return "to let it go on: " + command
}

// lettingGo are the commands that let a run go on which is paused, or held by runs above.
func lettingGo(status *runs.Status) []string {
	var help []string
	if status.Control.HoldsAny() {
		help = append(help, letsGo(status.WorkflowID, status.Control))
	}
	for _, above := range status.Above {
		help = append(help, letsGo(above.Run, holding(above)))
	}
	return help
}

// deadLettersOf is the command that shows what loops of a run that has ended have left.
func deadLettersOf(status *runs.Status) []string {
	failed, cancelled := 0, 0
	for _, step := range status.Steps {
		if step.Loop != nil {
			failed, cancelled = failed+step.Loop.Failed, cancelled+step.Loop.Cancelled
		}
	}
	command := fmt.Sprintf("%s dead-letters list %s", program(), shellWord(cmp.Or(status.Origin, status.WorkflowID)))
	switch {
	case failed+cancelled == 0:
		return nil
	case cancelled > 0:
		return []string{"to see what failed or was cancelled: " + command + " --cancelled"}
	}
	return []string{"to see what failed: " + command}
}

// helpOf are the commands that would help a run on, one a line.
func helpOf(status *runs.Status) []string {
	switch queue := status.Queue; {
	case status.Ended():
		return deadLettersOf(status)
	case status.HeldBy == runs.HeldByNoWorker:
		return []string{"to start one: worker --task-queue " + shellWord(status.TaskQueue)}
	case len(status.Above) > 0 || status.Control.HoldsAny():
		return lettingGo(status)
	case queue != nil && queue.Stopped:
		return []string{fmt.Sprintf("to ask for its turn now: %s retry-now %s", program(), shellWord(status.WorkflowID))}
	case queue != nil && len(queue.Holders) > 0:
		return []string{fmt.Sprintf("to see who has a turn: %s status %s", program(), shellWord(queue.Holders[0]))}
	}
	var waiting []string
	person, loops := false, false
	for _, step := range status.Steps {
		if waits(step) && !slices.Contains(waiting, step.Step) {
			waiting, person = append(waiting, step.Step), person || step.HeldBy == runs.HeldByPerson
			loops = loops || step.Loop != nil
		}
	}
	if len(waiting) == 0 {
		return answersOf(status)
	}
	id, of, step := shellWord(status.WorkflowID), "", "STEP"
	if len(waiting) == 1 {
		step = shellWord(waiting[0])
		of = " --step " + step
	}
	if loops {
		step += " [--index N]"
	}
	help := []string{fmt.Sprintf("to wait no longer: %s retry-now %s%s", program(), id, of)}
	if person {
		help[0] = fmt.Sprintf("to try again: %s retry-now %s%s", program(), id, of)
		help = append(help, fmt.Sprintf("to give up: %s skip %s %s --reason TEXT", program(), id, step))
	}
	return append(help, answersOf(status)...)
}

// mostAnswersSaid bounds the commands that a status names for what awaits an answer.
const mostAnswersSaid = 5

// answersOf are the commands that answer what a run awaits, or show it.
func answersOf(status *runs.Status) []string {
	var help []string
	for _, step := range status.Steps {
		below := belowOf(step)
		help = append(help, below[:min(len(below), mostAnswersSaid-len(help))]...)
		switch {
		case len(help) == mostAnswersSaid:
		case step.Awaits != nil:
			help = append(help, "to answer: "+answerCommand(status.WorkflowID, step.Step, nil, step.Awaits))
		case step.Loop != nil && step.Loop.Asks && step.Loop.Running > 0 && step.EndedAt.IsZero():
			help = append(help, loopAnswerOf(status.WorkflowID, step))
		case step.Loop != nil && step.Loop.Plays && step.Loop.Running > 0 && len(step.Iterations) == 0 && len(below) == 0:
			help = append(help, fmt.Sprintf("to look into its runs: %s status %s --step %s", program(), shellWord(status.WorkflowID), shellWord(step.Step)))
		}
	}
	return help
}

// belowOf are the commands that help the runs on that a step and its iterations have
// started.
func belowOf(step runs.Step) []string {
	var help []string
	found := map[string]bool{}
	take := func(under runs.Under) {
		for _, asked := range under.Below {
			help = append(help, "to answer: "+answerCommand(asked.Run, asked.Step, nil, &asked.Awaiting))
		}
		for _, held := range under.Held {
			switch {
			case found[held.Run]:
			case held.Control != nil:
				found[held.Run] = true
				help = append(help, letsGo(held.Run, *held.Control))
			case held.Status == interpreter.RetryPending:
				found[held.Run] = true
				help = append(help, fmt.Sprintf("to wait no longer: %s retry-now %s", program(), shellWord(held.Run)))
			}
		}
	}
	for _, iteration := range step.Iterations {
		take(iteration.Under)
	}
	if len(help) == 0 {
		take(step.Under)
	}
	return help
}

// loopAnswerOf is the command that answers the first iteration of a loop which awaits
// that, or shows them.
func loopAnswerOf(id string, step runs.Step) string {
	for _, iteration := range step.Iterations {
		if iteration.Awaits != nil {
			return "to answer: " + answerCommand(id, step.Step, &iteration.Index, iteration.Awaits)
		}
	}
	return fmt.Sprintf("to see what they await: %s status %s --step %s", program(), shellWord(id), shellWord(step.Step))
}

// writeHelp keeps a command in one piece, on a line of its own where it does not
// fit behind what it is for.
func writeHelp(b *strings.Builder, help string, width int) {
	if text.StringWidth(help) > width {
		help = strings.Replace(help, ": ", ":\n  ", 1)
	}
	b.WriteString(help + "\n")
}

// waits reports whether something of a step waits for a retry or for a person.
func waits(step runs.Step) bool {
	return step.Status == interpreter.RetryPending || step.Loop != nil && step.Loop.Waiting > 0 && step.EndedAt.IsZero()
}

// shellWord is a text as one word of a shell.
func shellWord(text string) string {
	if text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:@%+=,", r)
	}) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
