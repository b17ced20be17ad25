package steer

import (
	"fmt"
	"strings"
	"time"

	"reprise/internal/base/terminal"
	"reprise/internal/observe/render"
	"reprise/workflows/protocol"
)

// describeResult describes the result of a command.
func (c Command) describeResult(result Result) string {
	what, reply := "", *result.Reply
	if c.Index != nil {
		what = fmt.Sprintf("step %s[%d] ", c.Step, *c.Index)
	} else if c.Step != "" {
		what = "step " + c.Step + " "
	}
	switch c.Name {
	case Pause:
		if reply.Changed {
			return what + "paused; no new attempts start"
		}
		return what + "already paused" + render.SinceText(reply.Control.PausedBy(c.Step), time.Now())
	case Resume:
		return c.resumedText(what, reply)
	case Set:
		return what + "now has " + TuningText(reply.Control.TuningOf(c.Step))
	}
	if result.Queue != nil && c.Name == RetryNow && reply.Ended == 1 {
		return "its slot was requested again"
	}
	return c.settledText(what, result)
}

// settledText describes which waits a command ended.
func (c Command) settledText(what string, result Result) string {
	verb := "retried now"
	if c.Name == Skip {
		verb = "skipped"
	}
	switch n := *result.Waits; {
	case n > 0 && result.WaitsMore:
		return fmt.Sprintf("%s%s: at least %s ended", what, verb, terminal.Count(n, "wait"))
	case n > 0:
		return fmt.Sprintf("%s%s: %s ended", what, verb, terminal.Count(n, "wait"))
	case result.Reply.Signalled && result.WaitsMore:
		return fmt.Sprintf("%s%s: anything that waits there", what, verb)
	}
	if what != "" {
		what = "in " + what
	}
	return strings.TrimSuffix("nothing waits "+what, " ") + ", so nothing was changed"
}

func (c Command) resumedText(what string, reply protocol.CommandResult) string {
	text := what + "resumed"
	if !reply.Changed {
		text = what + "was not paused"
	}
	if held := render.DescribePaused(reply.Control, time.Now()); held != "" {
		text += "; still " + held
	}
	return text
}
