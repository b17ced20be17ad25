package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"reprise/internal/runs"
	"reprise/interpreter"
)

// writeStatus shows where a run is. The tables hold what is short; what there is
// more to say of a step stands below them.
func writeStatus(w io.Writer, status *runs.Status, paper paper) {
	var b strings.Builder
	b.WriteString(headOf(status) + "\n")
	if held := pausedText(status.Control, status.At); held != "" {
		writeWrapped(&b, held, paper.width)
	}
	for _, above := range status.Above {
		writeWrapped(&b, "held by the run "+visible(above.Run)+" above: "+pausedText(holding(above), status.At), paper.width)
	}
	if said := status.Cancel; said != nil {
		writeWrapped(&b, cancelText(*said, status), paper.width)
	}
	if status.Late && !status.Ended() {
		writeWrapped(&b, "late: it takes longer than the playbook expects", paper.width)
	}
	if status.Queue != nil {
		writeWrapped(&b, queueText(status.Queue, status.At), paper.width)
	}
	if turn := status.Turn; turn != nil && turn.Waiting > 0 {
		writeWrapped(&b, turnText(turn), paper.width)
	}
	if len(status.Steps) > 0 {
		b.WriteString(statesTable(status, paper.width) + "\n")
	}
	for _, step := range status.Steps {
		for _, said := range toldOf(step, status.At) {
			writeWrapped(&b, stepLabel(step)+": "+said, paper.width)
		}
	}
	for i := range status.Steps {
		writeIterations(&b, &status.Steps[i], status.At, paper.width)
	}
	if status.Error != nil {
		writeWrapped(&b, "error: "+visible(status.Error.Message), paper.width)
	}
	for _, note := range status.Notes {
		writeWrapped(&b, "note: "+visible(note), paper.width)
	}
	for _, warning := range status.Warnings {
		for _, line := range wrapped("warning: "+visible(warning), paper.width) {
			b.WriteString(paper.warning(line) + "\n")
		}
	}
	for _, help := range helpOf(status) {
		writeHelp(&b, help, paper.width)
	}
	_, _ = io.WriteString(w, b.String())
}

// headOf is the run in a line.
func headOf(status *runs.Status) string {
	name := visible(status.WorkflowID)
	if status.Playbook != "" {
		name += " (" + visible(status.Playbook) + ")"
	}
	if status.Origin != "" {
		name += ", iterations of " + visible(status.Origin) + " again"
	}
	if status.Ended() {
		return fmt.Sprintf("%s: %s after %s, at %s", name, status.Status, roughly(status.EndedAt.Sub(status.StartedAt)),
			status.EndedAt.Local().Format(time.DateTime))
	}
	return fmt.Sprintf("%s: %s for %s", name, status.Status, roughly(status.At.Sub(status.StartedAt)))
}

// cancelText says who has cancelled a run, and why.
func cancelText(said interpreter.Said, status *runs.Status) string {
	if status.Ended() {
		return "cancelled at " + said.At.Local().Format(time.DateTime) + saidText(said)
	}
	return "is being cancelled" + since(said, status.At)
}

// queueText says what a run waits for that has not got its turn.
func queueText(queue *runs.Queue, now time.Time) string {
	said := "waits for its turn under the concurrency key " + visible(queue.Name.Key)
	if queue.Place > 0 {
		said += fmt.Sprintf(", place %d", queue.Place)
	}
	said += ", for " + roughly(now.Sub(queue.Since))
	if len(queue.Holders) > 0 {
		said += "; who has a turn: " + visible(strings.Join(queue.Holders, ", "))
	}
	if more := queue.Running - len(queue.Holders); more > 0 && len(queue.Holders) > 0 {
		said += fmt.Sprintf(" and %d more", more)
	}
	if queue.Stopped {
		said += "; the workflow " + visible(queue.Line) + ", which gives the turns, was ended: it begins again when a run asks for its turn"
	}
	return said
}

// turnText says how many runs wait for the turn that a run has.
func turnText(turn *runs.Turn) string {
	said := "has a turn"
	if turn.Running > 1 {
		said = fmt.Sprintf("has one of %d turns", turn.Running)
	}
	said += " under the concurrency key " + visible(turn.Name.Key)
	return said + "; behind it: " + counted(turn.Waiting, "run")
}

func stepLabel(step runs.Step) string {
	if step.Visit > 1 {
		return fmt.Sprintf("%s#%d", step.Step, step.Visit)
	}
	return step.Step
}

// statesTable is the steps. With the longest states it takes 55 columns beside
// their names.
func statesTable(status *runs.Status, width int) string {
	const fixed, least = 55, 8
	rows := newTable("step", "state", "attempt", "next retry", "time")
	for _, step := range status.Steps {
		rows.AppendRow(table.Row{
			text.Snip(stepLabel(step), max(width-fixed, least), "…"), step.Status, stepAttempt(step),
			nextOf(step.Item, status.At), tookOf(step, status),
		})
	}
	return rows.Render()
}

func tookOf(step runs.Step, status *runs.Status) string {
	switch {
	case step.StartedAt.IsZero():
		return ""
	case step.EndedAt.IsZero():
		return roughly(status.At.Sub(step.StartedAt))
	}
	return roughly(step.EndedAt.Sub(step.StartedAt))
}

// stepAttempt is that of a step's own call; a loop counts those of all iterations.
func stepAttempt(step runs.Step) string {
	if step.Loop != nil {
		return ""
	}
	return attemptOf(step.Item)
}

// attemptOf is the attempt, and how many there are where it goes on.
func attemptOf(item runs.Item) string {
	switch {
	case item.Attempt == 0:
		return ""
	case item.MaxAttempts > 1 && item.Pages == 0:
		return fmt.Sprintf("%d/%d", item.Attempt, max(item.MaxAttempts, item.Attempt))
	}
	return fmt.Sprint(item.Attempt)
}

// nextOf is when the next retry is due.
func nextOf(item runs.Item, now time.Time) string {
	switch left := item.NextRetryAt.Sub(now); {
	case item.NextRetryAt.IsZero():
		return ""
	case left < time.Second/2:
		return "due"
	default:
		return "in " + roughly(left.Round(time.Second))
	}
}

// toldOf is what there is to say of a step beside the table.
func toldOf(step runs.Step, now time.Time) []string {
	var said []string
	if step.Loop != nil {
		said = append(said, countsOf(step))
	}
	if step.Child != "" && step.EndedAt.IsZero() {
		said = append(said, "runs "+visible(step.Child))
	}
	if len(step.Iterations) == 0 {
		said = append(said, underText(step.Under, "", now)...)
	}
	if step.Awaits != nil {
		said = append(append(said, awaitedText(step.Awaits, now)), askedText(step.Awaits)...)
	} else if held := heldOf(step.Item); held != "" {
		said = append(said, held)
	}
	if step.Error != nil && step.Status != interpreter.Completed {
		said = append(said, errorOf(step.Error))
	}
	if step.Handled {
		said = append(said, "a route took the failure on")
	}
	return said
}

// underText says what holds the runs below; the run that is known already has no name
// there.
func underText(under runs.Under, known string, now time.Time) []string {
	in := func(run string) string {
		if run == known {
			return ""
		}
		return visible(run) + ", "
	}
	var said []string
	for _, asked := range under.Below {
		said = append(said, in(asked.Run)+placeText(asked.To())+" "+awaitedText(&asked.Awaiting, now))
	}
	for _, held := range under.Held {
		said = append(said, in(held.Run)+heldText(held, now))
	}
	return said
}

// heldText is what holds a run below, or a step of it.
func heldText(held runs.Held, now time.Time) string {
	switch {
	case held.Queue != nil:
		return queueText(held.Queue, now)
	case held.Control != nil:
		return pausedText(*held.Control, now)
	}
	line := placeText(interpreter.AnswerTo{Step: held.Step, Visit: held.Visit}) + " " + itemText(held.Item, now)
	if held.Error != nil {
		line += ": " + errorOf(held.Error)
	}
	return line
}

// itemText is a state, its attempt and when the next one is due.
func itemText(item runs.Item, now time.Time) string {
	line := string(item.Status)
	if attempt := attemptOf(item); attempt != "" {
		line += ", attempt " + attempt
	}
	if next := nextOf(item, now); next != "" {
		line += ", " + next
	}
	if item.HeldBy == runs.HeldByPerson {
		line += ", waits for a person"
	}
	return line
}

// countsOf is a loop in words; what is zero and no news is left out.
func countsOf(step runs.Step) string {
	c, waitFor := step.Loop, "waiting for a retry"
	switch step.HeldBy {
	case runs.HeldByPause:
		waitFor = "waiting"
	case runs.HeldByPerson:
		waitFor = "waiting for a person"
	case runs.HeldByRateLimit:
		waitFor = "waiting for their turns"
	}
	parts := []string{fmt.Sprintf("%d/%d done", c.Done(), c.Total)}
	for _, part := range []struct {
		n    int
		what string
	}{
		{c.Failed, "failed"},
		{c.Truncated, "truncated"},
		{c.Cancelled, "cancelled"},
		{c.Waiting, waitFor},
		{c.Awaiting, "awaiting an answer"},
		{max(0, c.Running-c.Awaiting), "running"},
		{c.Pending, "pending"},
	} {
		if part.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", part.n, part.what))
		}
	}
	told := strings.Join(parts, ", ")
	if c.PerSecond > 0 {
		told += "; " + pace(c.PerSecond)
	}
	if c.Left > 0 {
		told += ", about " + roughly(time.Duration(c.Left*float64(time.Second)).Round(time.Second)) + " left"
	}
	return told
}

// pace is a throughput in the unit that gives a readable number.
func pace(perSecond float64) string {
	switch {
	case perSecond >= 1:
		return fmt.Sprintf("%.1f/s", perSecond)
	case perSecond >= 1.0/60:
		return fmt.Sprintf("%.1f/min", perSecond*60)
	}
	return fmt.Sprintf("%.1f/h", perSecond*3600)
}

// heldOf says what holds an item.
func heldOf(item runs.Item) string {
	switch item.HeldBy {
	case runs.HeldByWait:
		if item.Waiting == "" {
			return "waits for a retry"
		}
		return "waits: " + visible(item.Waiting)
	case runs.HeldByPause:
		return "" // its state says it
	case runs.HeldByRateLimit:
		return "held by a rate limit: " + visible(item.Waiting)
	}
	return visible(item.Waiting)
}

func errorOf(failure *interpreter.ErrorObject) string {
	return fmt.Sprintf("%s, %s: %s", failure.Class, failure.Kind, oneLine(failure.Message, 300))
}

// mostIterations bounds the iterations of a step that are listed for eyes.
const mostIterations = 100

// writeIterations lists iterations of a step, each in a line that fits.
func writeIterations(b *strings.Builder, step *runs.Step, now time.Time, width int) {
	if len(step.Iterations) == 0 {
		return
	}
	fmt.Fprintf(b, "iterations of %s:\n", stepLabel(*step))
	shown := step.Iterations[:min(len(step.Iterations), mostIterations)]
	for _, iteration := range shown {
		line := fmt.Sprintf("[%d] %s", iteration.Index, itemText(iteration.Item, now))
		if iteration.Awaits != nil {
			line += ", " + awaitedText(iteration.Awaits, now)
			if asks := cmp.Or(oneLine(iteration.Awaits.Progress(), 300), oneLine(iteration.Awaits.Question(), 300)); asks != "" {
				line += ": " + asks
			}
		} else if iteration.Error != nil {
			line += ": " + errorOf(iteration.Error)
		} else if held := heldOf(iteration.Item); held != "" {
			line += ": " + held
		} else if iteration.Child != "" && iteration.Status == interpreter.Running {
			line += ", runs " + visible(iteration.Child)
		}
		b.WriteString(text.Snip("  "+oneLine(line, 2*width), width, "…") + "\n")
		for _, said := range underText(iteration.Under, iteration.Child, now) {
			b.WriteString(text.Snip("      "+oneLine(said, 2*width), width, "…") + "\n")
		}
	}
	if left := step.Left + len(step.Iterations) - len(shown); left > 0 {
		fmt.Fprintf(b, "  and %d more; --output json tells of %d\n", left, len(step.Iterations))
	}
}

// writeWrapped writes a line, on several where it is too long.
func writeWrapped(b *strings.Builder, said string, width int) {
	for _, line := range wrapped(said, width) {
		b.WriteString(line + "\n")
	}
}

// wrapped are the lines of a text that is broken at a width.
func wrapped(said string, width int) (lines []string) {
	for line := range strings.Lines(text.WrapSoft(said, width)) {
		lines = append(lines, strings.TrimRight(line, " \n"))
	}
	return lines
}

// watchScreen shows a status again and again.
type watchScreen struct {
	out   io.Writer
	paper paper
	live  *liveProgress // nil where nobody sees it as it is written
	last  string
}

func newWatchScreen(streams Streams) *watchScreen {
	screen := &watchScreen{out: streams.Out, paper: paperOf(streams.Out)}
	if isTerminal(streams.Out) {
		screen.live = &liveProgress{w: fileOf(streams.Out), width: screen.paper.width}
	}
	return screen
}

func (w *watchScreen) show(status *runs.Status) {
	if w.live != nil && !status.Ended() {
		var b strings.Builder
		writeStatus(&b, status, paper{width: w.paper.width - 1})
		var lines []line
		for text := range strings.Lines(b.String()) {
			lines = append(lines, line{text: strings.TrimRight(text, "\n")})
		}
		w.live.show(lines)
		return
	}
	if w.live != nil {
		w.live.close()
	}
	if changed := changeOf(status); changed != w.last {
		w.last = changed
		writeStatus(w.out, status, w.paper)
	}
}

// changeOf is what makes a status worth another look in a log: not the time that
// has passed.
func changeOf(status *runs.Status) string {
	var b strings.Builder
	fmt.Fprint(&b, status.Status, status.HeldBy, status.Control.Version, status.Cancel != nil, status.Late)
	for _, above := range status.Above {
		fmt.Fprint(&b, above.Run, above.Control.Version)
	}
	if status.Queue != nil {
		fmt.Fprint(&b, status.Queue.Place)
	}
	if status.Turn != nil {
		fmt.Fprint(&b, status.Turn.Waiting)
	}
	for _, step := range status.Steps {
		fmt.Fprint(&b, "\n", step.Step, step.Visit, step.Status, step.Attempt, step.HeldBy)
		if step.Awaits != nil {
			fmt.Fprint(&b, step.Awaits.Progress())
		}
		if step.Loop != nil {
			fmt.Fprint(&b, step.Loop.Success, step.Loop.Failed, step.Loop.Running, step.Loop.Waiting, step.Loop.Awaiting)
		}
	}
	return b.String()
}
