// Package render formats runs for people at a terminal: tables and texts of their status, events, figures and
// results, and commands that help them to continue.
package render

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/jedib0t/go-pretty/v6/table"

	"reprise/internal/base/terminal"
	"reprise/internal/observe/runs"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/incremental"
	"reprise/interpreter/lists"
)

// buildText describes the build that a run is on.
func buildText(of runs.Build, ended bool) string {
	text := "build " + terminal.EscapeInvisible(of.ID) + " of deployment " + terminal.EscapeInvisible(of.Deployment)
	if of.Pinned && !ended {
		return text + ", to which the run is pinned"
	}
	return text
}

// PrintStatus prints the status of a run. Short facts are in tables; more about each step follows below.
func PrintStatus(w io.Writer, status *runs.Status, paper terminal.Paper) {
	var b strings.Builder
	terminal.WriteWrapped(&b, headOf(status, paper), paper.Width)
	if of := status.Build; of != nil {
		terminal.WriteWrapped(&b, buildText(*of, status.Ended()), paper.Width)
	}
	if held := DescribePaused(status.Control, status.At); held != "" {
		terminal.WriteWrapped(&b, held, paper.Width)
	}
	for _, parent := range status.HeldByParents {
		terminal.WriteWrapped(&b, "held by the parent run "+terminal.EscapeInvisible(parent.Run)+": "+DescribePaused(HeldByParent(parent), status.At), paper.Width)
	}
	if said := status.Cancel; said != nil && status.Ended() {
		terminal.WriteWrapped(&b, "cancelled at "+terminal.Time(said.At)+Attribution(*said), paper.Width)
	} else if said != nil {
		terminal.WriteWrapped(&b, "is being cancelled"+SinceText(*said, status.At), paper.Width)
	}
	if status.Late && !status.Ended() {
		terminal.WriteWrapped(&b, lateText(status), paper.Width)
	}
	if status.Queue != nil {
		terminal.WriteWrapped(&b, queueText(status.Queue, status.At), paper.Width)
	}
	if status.Stalled != "" {
		terminal.WriteWrapped(&b, "waits: "+terminal.EscapeInvisible(status.Stalled), paper.Width)
	}
	if slot := status.Slot; slot != nil && slot.Waiting > 0 {
		terminal.WriteWrapped(&b, slotText(slot), paper.Width)
	}
	writeSteps(&b, status, paper)
	if said := rowsOfRun(status); said != "" {
		terminal.WriteWrapped(&b, "rows: "+said, paper.Width)
	}
	for _, activity := range status.Activities {
		if !activity.Running && (status.Stalled != "" || activity.Type == interpreter.StateActivity) {
			continue // what it waits for is said
		}
		if said := activityText(activity, status.At); said != "" {
			terminal.WriteWrapped(&b, said, paper.Width)
		}
	}
	for i := range status.Steps {
		writeIterations(&b, &status.Steps[i], endOf(status), status.At, paper)
	}
	for _, note := range status.Notes {
		terminal.WriteWrapped(&b, "note: "+terminal.EscapeInvisible(note), paper.Width)
	}
	writeWarnings(&b, "warning: ", GroupWarnings(status.FurtherWarnings), paper)
	writeWarnings(&b, "validation: ", status.ValidationWarnings, paper)
	writeCause(&b, status, paper)
	for _, help := range HelpCommands(status) {
		writeHelp(&b, help, paper)
	}
	_, _ = io.WriteString(w, b.String())
}

// writeSteps writes the table of the steps, and below it the details of each step that do not fit in.
func writeSteps(b *strings.Builder, status *runs.Status, paper terminal.Paper) {
	steps := foldSteps(status, paper)
	if len(steps) > 0 {
		b.WriteString(statesTable(steps, status, paper) + "\n")
	}
	if len(steps) < len(status.Steps) {
		terminal.WriteWrapped(b, fmt.Sprintf("%d steps, of which those with equal statuses share a row; all: %s status %s | cat",
			len(status.Steps), terminal.ProgramName(), terminal.ShellWord(status.WorkflowID)), paper.Width)
	}
	cause := status.Error
	for _, row := range steps {
		step := row.step
		if row.of > 1 {
			continue
		}
		for _, said := range stepDetails(step, endOf(status), status.At, paper) {
			terminal.WriteWrapped(b, stepLabel(step)+": "+said, paper.Width)
		}
		switch {
		case cause != nil && mentionsError(step, cause): // the status ends with it
		case hasFailed(step):
			writeFailure(b, stepLabel(step)+" failed", step.Item, paper)
		case step.HeldBy == runs.HeldByPerson && step.Error != nil:
			writeEnds(b, step.Error, paper, false) // a person decides by it
		}
	}
}

func writeWarnings(b *strings.Builder, head string, warnings []string, paper terminal.Paper) {
	for _, warning := range warnings {
		for _, line := range terminal.WrapText(head+terminal.EscapeInvisible(warning), paper.Width) {
			b.WriteString(paper.PaintWarning(line) + "\n")
		}
	}
}

// mentionsError reports whether a step's failure is the one that failed the run.
func mentionsError(step runs.Step, failure *interpreter.ErrorObject) bool {
	return hasFailed(step) && step.Error.Message == failure.Message
}

// hasFailed reports whether a step has ended with a failure to show.
func hasFailed(step runs.Step) bool {
	return step.Status.Ended() && step.Error != nil && step.Status != interpreter.Completed
}

// writeCause writes why a run failed: the failed step, its error, and the first and last lines of the error's body.
func writeCause(b *strings.Builder, status *runs.Status, paper terminal.Paper) {
	if status.Error == nil {
		return
	}
	i := slices.IndexFunc(status.Steps, func(step runs.Step) bool { return mentionsError(step, status.Error) })
	if i < 0 {
		writeFailure(b, "error", runs.Item{Error: status.Error}, paper)
		return
	}
	step := status.Steps[i]
	item := step.Item
	if step.Loop != nil {
		item.Attempt = 0 // those of all its iterations
	}
	writeFailure(b, stepLabel(step)+" failed", item, paper)
}

// writeFailure writes an error with its attempts, and both ends of its body.
func writeFailure(b *strings.Builder, head string, item runs.Item, paper terminal.Paper) {
	line := head + ": " + messageOf(item.Error, paper)
	if item.Attempt > 0 {
		line += " (" + terminal.Count(item.Attempt, "attempt") + ")"
	}
	terminal.WriteWrapped(b, line, paper.Width)
	writeEnds(b, item.Error, paper, true)
}

// writeEnds writes both ends of an error's body. isWhole says that the error has all lines that were kept, so that those
// between are counted; that of an open step has fewer.
func writeEnds(b *strings.Builder, failure *interpreter.ErrorObject, paper terminal.Paper, isWhole bool) {
	for i, said := range firstAndLastLines(failure, paper) {
		if i == 1 && !isWhole && strings.HasPrefix(said, "… ") {
			said = "…"
		}
		b.WriteString(terminal.HangingLine("  ", said, paper.Width))
	}
}

// LastLine is the last line of what a failure came with, on which a traceback or a long response names the cause; "" for
// none, and where the message has it.
func LastLine(failure *interpreter.ErrorObject) string {
	ends := firstAndLastLines(failure, terminal.Paper{Width: terminal.Unbounded})
	if len(ends) == 0 || strings.Contains(failure.Message, strings.TrimSpace(ends[len(ends)-1])) {
		return ""
	}
	return strings.TrimSpace(ends[len(ends)-1])
}

// firstAndLastLines returns the first and last lines of an error's body, and how many lines are in between. For a child run it
// returns nil: the message suffices.
func firstAndLastLines(failure *interpreter.ErrorObject, paper terminal.Paper) []string {
	if failure.Kind == interpreter.KindPlaybook || failure.Body.Data == nil {
		return nil
	}
	body := bodyText(failure.Body.Data)
	if strings.HasPrefix(body, "{") || strings.HasPrefix(body, "[") { // JSON, which bodyText lays out
		body = expression.Text(failure.Body.Data)
	}
	lines := lists.Filter(strings.Split(body, "\n"), func(line string) bool { return strings.TrimSpace(line) != "" })
	if len(lines) == 0 {
		return nil
	}
	shown := []string{shortenLine(lines[0], paper)}
	if between := len(lines) - 2; between > 0 {
		shown = append(shown, "… "+terminal.Count(between, "line"))
	}
	if len(lines) > 1 {
		shown = append(shown, shortenLine(lines[len(lines)-1], paper))
	}
	return shown
}

// shownOfLine bounds a shown line of a body, in columns.
const shownOfLine = 300

// shortenLine returns a line; on a terminal, the middle of a long line is left out.
func shortenLine(line string, paper terminal.Paper) string {
	if !paper.IsBounded() {
		return line
	}
	return terminal.ShortenMiddle(terminal.OneLine(line), shownOfLine)
}

// lateText describes how long a late run has been open, and how long it was expected to take.
func lateText(status *runs.Status) string {
	if late := latenessText(status.Found); late != "" {
		return late + ": expected within " + terminal.Duration(status.Expect)
	}
	return "late: running for " + terminal.Duration(status.At.Sub(status.StartedAt))
}

// runName returns a run's ID with its playbook, if that is known.
func runName(id, playbook string) string {
	if playbook == "" {
		return terminal.EscapeInvisible(id)
	}
	return terminal.EscapeInvisible(id) + " (" + terminal.EscapeInvisible(playbook) + ")"
}

// headOf describes the run in one line.
func headOf(status *runs.Status, paper terminal.Paper) string {
	shown := stateText(status.Found, paper)
	name := runName(status.WorkflowID, status.Playbook)
	if status.Partition != "" {
		name += ", partition " + terminal.EscapeInvisible(status.Partition)
	}
	if status.Origin != "" {
		name += ", iterations of " + terminal.EscapeInvisible(status.Origin) + " again"
	}
	if status.Ended() {
		return fmt.Sprintf("%s: %s after %s, at %s", name, shown, terminal.Duration(status.EndedAt.Sub(status.StartedAt)), terminal.Time(status.EndedAt))
	}
	line := fmt.Sprintf("%s: %s", name, shown)
	if !status.Since.IsZero() {
		line += " for " + terminal.Duration(status.At.Sub(status.Since))
	}
	return line + ", started " + terminal.Duration(status.At.Sub(status.StartedAt)) + " ago"
}

// queueText describes the queue that a run waits in.
func queueText(queue *runs.QueuePosition, now time.Time) string {
	return "queued for " + terminal.Duration(now.Sub(queue.Since)) + " " + strings.Join(QueueTexts(queue, now), "; ")
}

// QueueTexts describes the key under which a run is queued, and what it waits for. The texts do not change while that
// stays the same.
func QueueTexts(queue *runs.QueuePosition, now time.Time) []string {
	texts := []string{"under the concurrency key " + terminal.EscapeInvisible(queue.Name.Key)}
	if queue.Position > 0 {
		texts[0] += fmt.Sprintf(", position %d", queue.Position)
	}
	var holders []string
	for i, id := range queue.Holders {
		holder := terminal.EscapeInvisible(id)
		if i < len(queue.HoldersSince) {
			holder += " since " + terminal.ClockText(queue.HoldersSince[i], now)
		}
		holders = append(holders, holder)
	}
	if len(holders) > 0 {
		running := "running: " + strings.Join(holders, ", ")
		if more := queue.Running - len(holders); more > 0 {
			running += fmt.Sprintf(" and %d more", more)
		}
		texts = append(texts, running)
	}
	if stuck := StuckQueue(queue); stuck != "" {
		texts = append(texts, stuck)
	}
	return texts
}

// StuckQueue describes why the next run of a queue gets no slot; "" if nothing is known to block it. queue may be
// nil.
func StuckQueue(queue *runs.QueuePosition) string {
	if queue == nil {
		return ""
	}
	switch unpolled := queue.NoWorker; {
	case queue.Stopped:
		return "the workflow " + terminal.EscapeInvisible(queue.WorkflowID) + ", which keeps the queue, was ended: it starts again when a run requests a slot"
	case unpolled != nil && unpolled.WorkflowID == queue.WorkflowID:
		return fmt.Sprintf("no run gets a slot: no worker of the queue's task queue %q responds", unpolled.TaskQueue)
	case unpolled != nil:
		return fmt.Sprintf("%s makes no progress: no worker on task queue %q responds", terminal.EscapeInvisible(unpolled.WorkflowID), unpolled.TaskQueue)
	}
	return ""
}

// slotText describes the slot that a run has, and how many runs are queued for it.
func slotText(slot *runs.QueueSlot) string {
	said := "has a slot"
	if slot.Running > 1 {
		said = fmt.Sprintf("has one of %d slots", slot.Running)
	}
	return said + " under the concurrency key " + terminal.EscapeInvisible(slot.Name.Key) + "; queued behind it: " + terminal.Count(slot.Waiting, "run")
}

func stepLabel(step runs.Step) string {
	if step.Visit > 1 {
		return fmt.Sprintf("%s#%d", step.Step, step.Visit)
	}
	return step.Step
}

// statesTable returns a table of the steps with their status. Columns that do not fit are left out: the attempts
// first, then the time, then the next retry.
func statesTable(steps []stepRow, status *runs.Status, paper terminal.Paper) string {
	states := itemTable[stepRow]{title: "step", columns: []itemColumn[stepRow]{
		{"status", 0, func(row stepRow) string { return stateCell(row.step.Status, row.step.HeldBy, paper) }},
		{"attempt", 1, func(row stepRow) string { return StepAttempt(row.step) }},
		{"next retry", 3, func(row stepRow) string { return nextOf(row.step.Item, status.At) }},
		{"time", 2, func(row stepRow) string { return tookOf(row.step, status) }},
	}}
	rendered, _ := states.fitTable(steps, lists.Map(steps, func(row stepRow) string { return row.label }), paper)
	return rendered
}

// filledTable returns a table without the columns that are empty in all rows.
func filledTable(head table.Row, rows []table.Row) table.Writer {
	filled := make([]bool, len(head))
	for i := range head {
		filled[i] = slices.ContainsFunc(rows, func(row table.Row) bool { return row[i] != "" })
	}
	some := func(row table.Row) table.Row {
		var cells table.Row
		for i, cell := range row {
			if filled[i] {
				cells = append(cells, cell)
			}
		}
		return cells
	}
	shown := terminal.NewTable(some(head)...)
	for _, row := range rows {
		shown.AppendRow(some(row))
	}
	return shown
}

func tookOf(step runs.Step, status *runs.Status) string {
	switch {
	case step.StartedAt.IsZero():
		return ""
	case step.EndedAt.IsZero():
		return terminal.Duration(status.At.Sub(step.StartedAt))
	}
	return terminal.Duration(step.EndedAt.Sub(step.StartedAt))
}

// StepAttempt returns the attempt of a step's own call; "" for a loop.
func StepAttempt(step runs.Step) string {
	if step.Loop != nil {
		return ""
	}
	return attemptOf(step.Item)
}

// attemptOf returns the number of the running or next attempt, else of the last one, with the maximum: "2 of 8".
func attemptOf(item runs.Item) string {
	n := item.Attempt
	if item.Status == interpreter.RetryPending && !item.NextRetryAt.IsZero() {
		n++
	}
	switch {
	case n == 0:
		return ""
	case item.MaxAttempts > 1 && item.Pages == 0:
		return fmt.Sprintf("%d of %d", n, max(item.MaxAttempts, n))
	}
	return fmt.Sprint(n)
}

// nextOf describes when the next retry is due.
func nextOf(item runs.Item, now time.Time) string {
	switch left := item.NextRetryAt.Sub(now); {
	case item.NextRetryAt.IsZero():
		return ""
	case left < time.Second/2:
		return "due"
	default:
		return "in " + terminal.Duration(left.Round(time.Second))
	}
}

// quietActivity is how long an activity may show no progress before its worker is shown.
const quietActivity = 10 * time.Second

// activityText describes which worker runs an activity that has run for a while without progress, or was delivered
// again; "" for others.
func activityText(activity runs.PendingActivity, now time.Time) string {
	last := activity.Since
	if activity.Progress.After(last) {
		last = activity.Progress
	}
	if activity.Since.IsZero() || activity.Deliveries < 2 && now.Sub(last) < quietActivity {
		return ""
	}
	text := "activity " + terminal.OneLine(activity.Type)
	if activity.Step != "" {
		text += " of step " + terminal.OneLine(activity.Step)
	}
	if activity.Running {
		text += " is running on worker " + terminal.OneLine(activity.Worker) + " since " + terminal.ClockText(activity.Since, now)
	} else {
		text += " waits to be delivered again; worker " + terminal.OneLine(activity.Worker) + " had it at " + terminal.ClockText(activity.Since, now)
	}
	if !activity.Progress.IsZero() {
		text += ", without an answer or a write for " + terminal.Duration(now.Sub(activity.Progress).Round(time.Second))
	}
	if activity.Deliveries > 1 {
		text += fmt.Sprintf("; delivery %d", activity.Deliveries)
		if activity.LastFailure != "" {
			text += ", as the last one ended with: " + terminal.Shorten(activity.LastFailure, 200)
		}
	}
	return text
}

// stepDetails describes a step in addition to the table.
func stepDetails(step runs.Step, end endMove, now time.Time, paper terminal.Paper) []string {
	var said []string
	if step.Loop != nil {
		said = append(said, CountsText(step))
		said = append(said, waitsText(step, now)...)
	}
	if read := step.Incremental; read != nil {
		said = append(said, readText(read, end))
	}
	said = append(said, rowsOfStep(step)...)
	if step.Child != "" && step.EndedAt.IsZero() {
		said = append(said, "runs "+terminal.EscapeInvisible(step.Child))
	}
	if len(step.Iterations) == 0 {
		said = append(said, childRunsText(step.ChildRuns, "", now, paper)...)
	}
	if step.Awaits != nil {
		said = append(append(said, DescribeAwaited(step.Awaits, now)), AwaitedText(step.Awaits)...)
	} else if held := waitText(step.Item, now, paper); held != "" && (step.Waiting != "" || len(step.Waits) == 0) {
		said = append(said, held)
	}
	if stuck := StuckQueue(step.Queue); stuck != "" {
		said = append(said, stuck)
	}
	if step.Handled {
		said = append(said, "a route handled the failure")
	}
	return said
}

// readText describes how far a step has read that keeps a state, or a loop whose iterations do. end says what the end
// of the run does with the state.
func readText(read *runs.IncrementalStatus, end endMove) string {
	end.to = read.MovesTo
	read = movedRead(read, end)
	behind := ""
	if read.Behind != nil {
		behind = BehindText(read.Type, *read.Behind)
	}
	rows, state, at := countedRows(read.Rows), terminal.OneLine(read.State), cursorText(read.Watermark)
	outcome := end.describeOutcome("which move")
	switch {
	case read.States > 1 && outcome != "":
		return fmt.Sprintf("read %s; has %d states, %s", rows, read.States, outcome)
	case outcome != "":
		return fmt.Sprintf("read %s from %s; watermark %s is at %s, %s", rows, cursorText(read.From), state, at, end.describeOutcome("and moves to "+cursorText(end.to)))
	case read.States > 1 && read.Type == incremental.Token:
		return fmt.Sprintf("read %s; has %d states", rows, read.States)
	case read.States > 1 && behind != "":
		return fmt.Sprintf("read %s; has %d states, the one farthest behind is %s: at %s, %s behind", rows, read.States, state, at, behind)
	case read.States > 1:
		return fmt.Sprintf("read %s; has %d states, the lowest is %s: at %s", rows, read.States, state, at)
	case behind != "":
		behind = ", " + behind + " behind"
	}
	return fmt.Sprintf("read %s from %s; watermark %s is at %s%s", rows, cursorText(read.From), state, at, behind)
}

// endOf returns what the end of a run does with the states of steps that write nothing.
func endOf(status *runs.Status) endMove {
	return endMove{run: status.Status, warned: len(status.Warnings) > 0}
}

// countedRows formats a number of rows.
func countedRows(n int) string {
	return strings.Replace(terminal.Count(n, "row"), strconv.Itoa(n), humanize.Comma(int64(n)), 1)
}

// movedRead returns the state of a step, with the moved watermark if the end of the run has moved it.
func movedRead(read *runs.IncrementalStatus, end endMove) *runs.IncrementalStatus {
	if !end.hasMoved() {
		return read
	}
	moved := *read
	moved.Watermark, moved.Behind = end.to, nil
	return &moved
}

// BehindText describes how far behind a watermark is. For dates, seconds are shown as days.
func BehindText(as incremental.CursorType, seconds float64) string {
	if as == incremental.Date {
		return terminal.Count(int(seconds/(24*time.Hour).Seconds()), "day")
	}
	return terminal.Duration(time.Duration(min(seconds*float64(time.Second), math.MaxInt64-1024)))
}

// childRunsText describes what holds the child runs. The run that the caller names already is not named again.
func childRunsText(children runs.ChildRuns, known string, now time.Time, paper terminal.Paper) []string {
	in := func(run string) string {
		if run == known {
			return ""
		}
		return terminal.EscapeInvisible(run) + ", "
	}
	said := lists.Map(children.Awaited, func(awaited runs.AwaitedAttempt) string {
		return in(awaited.Run) + AttemptName(awaited.AttemptAddress()) + " " + DescribeAwaited(&awaited.AwaitedDetails, now)
	})
	for _, held := range children.Held {
		said = append(said, in(held.Run)+heldText(held, now, paper))
	}
	return said
}

// heldText describes what holds a child run, or a step of it.
func heldText(held runs.ChildWait, now time.Time, paper terminal.Paper) string {
	switch {
	case held.Queue != nil:
		return queueText(held.Queue, now)
	case held.Control != nil:
		return DescribePaused(*held.Control, now)
	}
	line := AttemptName(interpreter.AnswerTo{Step: held.Step, Visit: held.Visit}) + " " + itemText(held.Item, now)
	if held.Error != nil {
		line += ": " + messageOf(held.Error, paper)
	}
	return line
}

// itemText describes a status, its attempt and when the next one is due; for an attempt that awaits its answer, since
// when.
func itemText(item runs.Item, now time.Time) string {
	line := cmp.Or(heldWord(item.Status, item.HeldBy), string(item.Status))
	switch {
	case item.Status == interpreter.Awaiting && item.Awaits != nil:
		line = DescribeAwaited(item.Awaits, now)
	case item.Awaits != nil:
		line += ", " + DescribeAwaited(item.Awaits, now)
	}
	if attempt := attemptOf(item); attempt != "" {
		line += ", attempt " + attempt
	}
	if next := nextOf(item, now); next != "" {
		line += ", " + next
	}
	return line
}

// CountsText describes the iterations of a loop in words, without zeros.
func CountsText(step runs.Step) string {
	c, waitFor := step.Loop, "waiting to retry"
	switch step.HeldBy {
	case runs.HeldByPause:
		waitFor = "waiting"
	case runs.HeldByPerson:
		waitFor = PeopleNeeded(c.Waiting)
	case runs.HeldByState:
		waitFor = "waiting for a state"
	case runs.HeldByRateLimit:
		waitFor = "waiting for the rate limit"
	}
	stats := interpreter.LoopStats{Total: c.Total, Success: c.Success, Failed: c.Failed, Cancelled: c.Cancelled}
	line := stats.TextSoFar(c.Open)
	if c.Unknown > 0 { // so it is not known either what is still to do
		known := stats
		known.Total = c.Success + c.Failed + c.Cancelled
		line = fmt.Sprintf("at least %s of %d", strings.TrimSuffix(known.ProgressText(), fmt.Sprintf(" of %d", known.Total)), c.Total)
	}
	line += AmongText([]StatusCount{
		{c.Unknown, "unknown"},
		{c.Truncated, "truncated"},
		{c.Waiting, waitFor},
		{c.Awaiting, "awaiting an answer"},
		{max(0, c.Running-c.Awaiting), "running"},
		{c.Pending, "pending"},
	})
	if c.Source != nil && c.Source.Waiting != "" {
		line += "; its source: " + c.Source.Waiting
	}
	if c.PerSecond > 0 {
		line += "; " + paceText(c.PerSecond)
	}
	if c.Left > 0 {
		line += ", about " + terminal.Duration(time.Duration(c.Left*float64(time.Second)).Round(time.Second)) + " left"
	}
	return line
}

// StatusCount is the number of iterations with a status.
type StatusCount struct {
	N    int
	What string
}

// AmongText lists, in brackets, how many iterations of a loop have each status, without zeros.
func AmongText(parts []StatusCount) string {
	var some []string
	for _, part := range parts {
		if part.N > 0 {
			some = append(some, fmt.Sprintf("%d %s", part.N, part.What))
		}
	}
	if len(some) == 0 {
		return ""
	}
	return " (" + strings.Join(some, ", ") + ")"
}

// paceText formats a throughput in a unit that gives a readable number.
func paceText(perSecond float64) string {
	switch {
	case perSecond >= 1:
		return fmt.Sprintf("%.1f/s", perSecond)
	case perSecond >= 1.0/60:
		return fmt.Sprintf("%.1f/min", perSecond*60)
	}
	return fmt.Sprintf("%.1f/h", perSecond*3600)
}

// heldOf describes what holds an item.
func heldOf(item runs.Item, now time.Time) string {
	waiting := terminal.EscapeInvisible(item.Waiting)
	timed := item.Phrase != nil && !item.NextRetryAt.IsZero()
	if timed {
		waiting = item.Phrase.PhraseUntil(nextOf(item, now))
	}
	switch item.HeldBy {
	case runs.HeldByWait, runs.HeldByState:
		switch {
		case waiting == "":
			return "waits to retry"
		case timed:
			return waiting
		}
		return "waits: " + waiting
	case runs.HeldByPause:
		return "" // its status says it
	case runs.HeldByRateLimit:
		return "held by a rate limit: " + waiting
	}
	return waiting
}

// waitText describes what holds an open item, and why its last attempt failed: "attempt 2 of 8 in 9m46s: HTTP 500
// from GET …".
func waitText(item runs.Item, now time.Time, paper terminal.Paper) string {
	held := heldOf(item, now)
	if item.Error == nil || item.Status.Ended() {
		return held
	}
	if item.HeldBy == runs.HeldByWait && item.Phrase != nil && !item.NextRetryAt.IsZero() {
		held = item.Phrase.What + " " + nextOf(item, now)
		if item.Error.RetryAfter != nil {
			held += ", as the server requested"
		}
		return held + ": " + messageOf(item.Error, paper)
	}
	failed := fmt.Sprintf("attempt %d failed: %s", max(item.Error.Attempt, 1), messageOf(item.Error, paper))
	if held == "" {
		return failed
	}
	return held + "; " + failed
}

// messageOf returns the message of an error, shortened on a terminal.
func messageOf(failure *interpreter.ErrorObject, paper terminal.Paper) string {
	return paper.Shorten(failure.Message, shownMessage)
}

// shownMessage bounds an error's message in a status, in characters.
const shownMessage = 300

// shownIterations bounds the listed iterations of a step.
const shownIterations = 100

// writeIterations lists iterations of a step; at a terminal, failed ones with the same cause together.
func writeIterations(b *strings.Builder, step *runs.Step, end endMove, now time.Time, paper terminal.Paper) {
	if len(step.Iterations) == 0 {
		return
	}
	fmt.Fprintf(b, "iterations of %s:\n", stepLabel(*step))
	groups := groupsByIndex(step.Iterations, paper)
	left, cut, lines := step.Left, false, 0
	for i := range step.Iterations {
		iteration := &step.Iterations[i]
		group, isGrouped := groups[iteration.Index]
		if isGrouped && group == nil {
			continue // it is in the group of an earlier one
		}
		if lines++; lines > shownIterations {
			left += max(len(group), 1)
			continue
		}
		if isGrouped {
			cut = writeGroup(b, group, "failed", paper) || cut
			continue
		}
		writeIteration(b, iteration, end, now, paper)
	}
	switch {
	case left > 0:
		fmt.Fprintf(b, "  and %d more; --output json has %d\n", left, len(step.Iterations))
	case cut:
		b.WriteString("  --output json has all of them\n")
	}
}

// groupsByIndex returns groups of at least two iterations that failed for the same cause, by the index of the first; the indexes of the
// others have nil. Iterations with lines of their own, such as their watermark, are in no group, and pipes have no groups.
func groupsByIndex(all []runs.Iteration, paper terminal.Paper) map[int][]failedIteration {
	groups := map[int][]failedIteration{}
	if !paper.IsBounded() {
		return groups
	}
	var failed []failedIteration
	for i := range all {
		if one := &all[i]; one.Status == interpreter.Failed && one.Error != nil && one.Awaits == nil && one.Incremental == nil && len(one.Awaited)+len(one.Held) == 0 {
			failed = append(failed, failedIteration{index: one.Index, element: knownElement(one, paper), attempts: one.Attempt, failure: one.Error})
		}
	}
	for _, group := range groupFailures(failed) {
		if len(group) == 1 {
			continue
		}
		for _, one := range group {
			groups[one.index] = nil
		}
		groups[group[0].index] = group
	}
	return groups
}

// knownElement returns the element of a failed iteration of an ended run, with secrets masked; "" for others.
func knownElement(iteration *runs.Iteration, paper terminal.Paper) string {
	if iteration.Element.Data == nil {
		return ""
	}
	return shortElement(MaskSecrets(iteration.Element.Data), paper)
}

func writeIteration(b *strings.Builder, iteration *runs.Iteration, end endMove, now time.Time, paper terminal.Paper) {
	line := fmt.Sprintf("[%d] ", iteration.Index)
	if element := knownElement(iteration, paper); element != "" {
		line += element + ": "
	}
	line += itemText(iteration.Item, now)
	if iteration.Awaits != nil {
		if asks := cmp.Or(paper.Shorten(iteration.Awaits.Progress(), shownMessage), paper.Shorten(iteration.Awaits.Question(), shownMessage)); asks != "" {
			line += ": " + asks
		}
	} else if iteration.Error != nil {
		line += ": " + messageOf(iteration.Error, paper)
	} else if held := heldOf(iteration.Item, now); held != "" {
		line += ": " + held
	} else if iteration.Child != "" && iteration.Status == interpreter.Running {
		line += ", runs " + terminal.EscapeInvisible(iteration.Child)
	}
	b.WriteString(terminal.HangingLine("  ", line, paper.Width))
	var details []string
	if read := iteration.Incremental; read != nil {
		details = append(details, readText(read, end))
	}
	for _, said := range append(details, childRunsText(iteration.ChildRuns, iteration.Child, now, paper)...) {
		b.WriteString(terminal.HangingLine("      ", said, paper.Width))
	}
}

// styles maps tones to styles of a terminal.
var styles = map[interpreter.Tone]terminal.Style{
	interpreter.ToneBad: terminal.Bad, interpreter.ToneWarning: terminal.Warning, interpreter.ToneGood: terminal.Good, interpreter.ToneActive: terminal.Active,
	interpreter.ToneAsks: terminal.Asks, interpreter.ToneHeld: terminal.Held, interpreter.ToneQuiet: terminal.Quiet,
}

// styleOf returns the style of a status on a terminal; plain if the status is unknown.
func styleOf(status interpreter.Status) terminal.Style {
	info, _ := status.Info()
	return styles[info.Colour.Tone]
}
