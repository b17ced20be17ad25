package look

import (
	"fmt"
	"io"
	"strings"

	"reprise/internal/base/terminal"
	"reprise/internal/observe/render"
	"reprise/internal/observe/runs"
	"reprise/starter/cli"
)

// watchScreen shows the status of a run repeatedly.
type watchScreen struct {
	out   io.Writer
	paper terminal.Paper
	live  *liveProgress // nil where it is not shown while it is written
	last  string
}

func newWatchScreen(streams cli.Streams) *watchScreen {
	screen := &watchScreen{out: streams.Out, paper: terminal.PaperOf(streams.Out)}
	if terminal.IsTerminal(streams.Out) {
		screen.live = &liveProgress{w: terminal.FileOf(streams.Out), width: screen.paper.Width}
	}
	return screen
}

func (w *watchScreen) showStatus(status *runs.Status) {
	if w.live != nil && !status.Ended() {
		var b strings.Builder
		render.PrintStatus(&b, status, terminal.Paper{Width: w.paper.Width - 1})
		var lines []line
		for text := range strings.Lines(b.String()) {
			lines = append(lines, line{text: strings.TrimRight(text, "\n")})
		}
		w.live.showLines(lines)
		return
	}
	if w.live != nil {
		w.live.close()
	}
	if changed := changeOf(status); changed != w.last {
		w.last = changed
		render.PrintStatus(w.out, status, w.paper)
	}
}

// changeOf returns a text that differs whenever a status deserves another line in a log; elapsed time alone does not.
func changeOf(status *runs.Status) string {
	var b strings.Builder
	fmt.Fprint(&b, status.Status, status.HeldBy, status.Control.Version, status.Cancel != nil, status.Late)
	for _, parent := range status.HeldByParents {
		fmt.Fprint(&b, parent.Run, parent.Control.Version)
	}
	if status.Queue != nil {
		fmt.Fprint(&b, status.Queue.Position, render.StuckQueue(status.Queue))
	}
	if status.Slot != nil {
		fmt.Fprint(&b, status.Slot.Waiting)
	}
	for _, step := range status.Steps {
		fmt.Fprint(&b, "\n", step.Step, step.Visit, step.Status, step.Attempt, step.HeldBy, render.StuckQueue(step.Queue))
		if step.Awaits != nil {
			fmt.Fprint(&b, step.Awaits.Progress())
		}
		if step.Loop != nil {
			fmt.Fprint(&b, step.Loop.Success, step.Loop.Failed, step.Loop.Running, step.Loop.Waiting, step.Loop.Awaiting)
		}
	}
	return b.String()
}
