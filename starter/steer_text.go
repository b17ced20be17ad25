package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"reprise/internal/base/terminal"
	"reprise/internal/observe/render"
	"reprise/workflows"
)

// steerWriter writes answers for eyes as they come, a line for each run that only a
// terminal breaks: what was not done to the standard error.
func (a *app) steerWriter(o *steering) func(steerResult) {
	return func(answer steerResult) {
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
		said = terminal.Visible(answer.WorkflowID) + ": " + terminal.Shorten(said, 2000) + "\n"
		if terminal.IsTerminal(to) {
			var b strings.Builder
			terminal.WriteWrapped(&b, said, terminal.PaperOf(to).Width)
			said = b.String()
		}
		_, _ = io.WriteString(to, said)
	}
}

// done describes a run after a command.
func (o *steering) done(result steerResult) string {
	what, standing := "", *result.Standing
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
		return what + "was paused already" + render.Since(standing.Control.PausedBy(o.Step), time.Now())
	case workflows.ResumeUpdate:
		return o.resumed(what, standing)
	case workflows.SetUpdate:
		return what + "from now on with " + tuningText(standing.Control.Tuned(o.Step))
	}
	if result.Queue != nil && o.update == workflows.RetryNowUpdate && standing.Ended == 1 {
		return "asks again for its turn"
	}
	verb := "tried again now"
	if o.update == workflows.SkipUpdate {
		verb = "given up"
	}
	switch n := *result.Waits; {
	case n > 0 && result.WaitsMore:
		return fmt.Sprintf("%s%s: at least %s ended", what, verb, terminal.Count(n, "wait"))
	case n > 0:
		return fmt.Sprintf("%s%s: %s ended", what, verb, terminal.Count(n, "wait"))
	case standing.Signalled && result.WaitsMore:
		return fmt.Sprintf("%s%s: what waits there, if anything does", what, verb)
	}
	if what != "" {
		what = "in " + what
	}
	return strings.TrimSuffix("nothing waits "+what, " ") + ", so nothing was changed"
}

func (o *steering) resumed(what string, standing workflows.CommandResult) string {
	text := what + "goes on"
	if !standing.Changed {
		text = what + "was not paused"
	}
	if held := render.Paused(standing.Control, time.Now()); held != "" {
		text += "; still " + held
	}
	return text
}
