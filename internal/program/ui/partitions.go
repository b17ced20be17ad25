package ui

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.temporal.io/sdk/client"

	"reprise/internal/base/audit"
	"reprise/internal/base/terminal"
	"reprise/internal/observe/render"
	"reprise/internal/observe/runs"
	"reprise/internal/program/backfill"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
	"reprise/interpreter/partition"
	"reprise/interpreter/playbook"
)

// Sizes in the calendar of partitions, in units of its drawing.
const (
	cellStep = 12
	cellSize = 10
	// calendarLines bounds the lines of a calendar.
	calendarLines = 60
	// shownRanges bounds the listed ranges of partitions with one status.
	shownRanges = 10
)

// partitionStatus maps statuses of partitions to the statuses of runs with the same colour.
var partitionStatus = map[partition.Status]interpreter.Status{
	partition.Done: interpreter.Completed, partition.Running: interpreter.Running, partition.Failed: interpreter.Failed,
	partition.Stale: interpreter.Partial, partition.Missing: interpreter.Pending,
}

// calendar shows the statuses of a playbook's partitions.
type calendar struct {
	Tally   string
	Problem string // why that is not known, "" where it is
	Width   int
	Lines   []calendarLine
	Left    int // earlier lines
	Legend  []calendarCell
	Ruler   []rulerMark // above the lines
	Running []link      // open runs of partitions
	// Named lists the missing, failed and stale partitions, by status.
	Named []string
	// Missing is the number of partitions that a backfill would run, and MissingKind what they are.
	Missing     int
	MissingKind string
	CanBackfill bool
}

// calendarLine is a day, month, year or decade of partitions.
type calendarLine struct {
	Label, Title string
	Cells        []calendarCell
}

// rulerMark numbers the cells below it: those of a month by their days.
type rulerMark struct{ X, Number int }

// newRuler numbers the columns of a calendar of days, months, hours or weeks; nil for others.
func newRuler(columns int) (marks []rulerMark) {
	const hours, days, months, weeks = 25, 31, 12, 53
	first, step := 1, 0
	switch columns {
	case hours:
		first, step = 0, 6
	case days, weeks:
		step = 7
	case months:
		step = 1
	}
	for at := 0; step > 0 && at < columns; at += step {
		marks = append(marks, rulerMark{X: cellStep * at, Number: first + at})
	}
	return marks
}

// calendarCell is a partition.
type calendarCell struct {
	X      int
	Status partition.Status
	Of     interpreter.Status
	Key    string
	Title  string
	Path   string // of the run that is open or has failed, "" for none
}

// Hollow says to draw the cell hollow: the partition is missing.
func (c calendarCell) Hollow() bool { return c.Status == partition.Missing }

// Half says to fill half of the cell: the partition is stale, so it has to run again.
func (c calendarCell) Half() bool { return c.Status == partition.Stale }

// Crossed reports whether the partition's run failed.
func (c calendarCell) Crossed() bool { return c.Status == partition.Failed }

// Right returns the x coordinate of the cell's right edge.
func (c calendarCell) Right() int { return c.X + cellSize }

// calendarOf reads the statuses of a playbook's partitions; nil if it has none. Failed ones link to their run if it is in list.
func (s *Server) calendarOf(ctx context.Context, book *playbook.Playbook, list []runs.Found, person Person, now time.Time) *calendar {
	if book.Partitions == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, glanceTime)
	defer cancel()
	matrix, err := backfill.Read(ctx, s.Client, book, now)
	if err != nil {
		s.Logger.Warn("what is done of partitions could not be read", "playbook", book.Name, "error", err)
		return &calendar{Problem: "A worker reads the status of the partitions, and none has responded."}
	}
	view := newCalendar(matrix)
	view.linkFailed(list)
	view.CanBackfill = person.Operator && s.Library.Backfill != nil && view.Missing > 0
	return view
}

// newCalendar lays out partitions.
func newCalendar(matrix *backfill.Matrix) *calendar {
	view := &calendar{Tally: matrix.Tally(), Width: cellStep * matrix.Columns(), Missing: len(matrix.SelectKeys(backfill.OnlyMissing))}
	view.Ruler = newRuler(matrix.Columns())
	lines := matrix.Lines()
	view.Left = max(0, len(lines)-calendarLines)
	for _, line := range lines[view.Left:] {
		view.Lines = append(view.Lines, newCalendarLine(line))
	}
	for _, status := range partition.Statuses {
		if n := matrix.Counts[status]; n > 0 {
			view.Legend = append(view.Legend, calendarCell{Status: status, Of: partitionStatus[status], Title: fmt.Sprintf("%d %s", n, status)})
		}
	}
	for _, status := range []partition.Status{partition.Missing, partition.Failed, partition.Stale} {
		if ranges, more := matrix.Ranges(status, shownRanges); len(ranges) > 0 {
			text := strings.ToUpper(string(status)[:1]) + string(status)[1:] + ": " + strings.Join(ranges, ", ")
			if more > 0 {
				text += fmt.Sprintf(" and %d more", more)
			}
			view.Named = append(view.Named, text)
		}
	}
	view.MissingKind = "missing"
	if failed := matrix.Counts[partition.Failed]; failed > 0 {
		view.MissingKind = "failed"
		if failed < view.Missing {
			view.MissingKind = "missing and failed"
		}
	}
	for _, row := range matrix.Rows {
		if row.Run != "" && len(view.Running) < shownNeeds {
			view.Running = append(view.Running, link{row.Key, runPath(row.Run)})
		}
	}
	return view
}

// linkFailed links failed partitions to the newest of their runs in a list.
func (c *calendar) linkFailed(list []runs.Found) {
	failed := map[string]string{}
	for _, run := range slices.Backward(list) {
		if run.Partition != "" && run.Status == interpreter.Failed {
			failed[run.Partition] = runPath(run.WorkflowID)
		}
	}
	for _, line := range c.Lines {
		for i := range line.Cells {
			if cell := &line.Cells[i]; cell.Status == partition.Failed {
				cell.Path = failed[cell.Key]
			}
		}
	}
}

func newCalendarLine(line backfill.CalendarLine) calendarLine {
	drawn, counts := calendarLine{Label: line.Label}, map[partition.Status]int{}
	for i, row := range line.Rows {
		cell := calendarCell{X: cellStep * (line.Indent + i), Status: row.Status, Of: partitionStatus[row.Status], Key: row.Key, Title: row.Key + ": " + string(row.Status)}
		if row.Run != "" {
			cell.Path = runPath(row.Run)
		}
		counts[row.Status]++
		drawn.Cells = append(drawn.Cells, cell)
	}
	var said []string
	for _, status := range partition.Statuses {
		if counts[status] > 0 {
			said = append(said, fmt.Sprintf("%d %s", counts[status], status))
		}
	}
	drawn.Title = line.Label + ": " + strings.Join(said, ", ")
	return drawn
}

// runNames names the child runs of a run: those of a backfill by the partition, others by their workflow IDs.
type runNames struct {
	run, playbook string
	keys          []any // of the partitions, by the index of the iteration
}

// newRunNames reads which partitions a backfill runs; of other runs it makes no call.
func newRunNames(ctx context.Context, reader *runs.Reader, run runs.Found) runNames {
	of, isBackfill := strings.CutSuffix(run.Playbook, backfill.Suffix)
	if !isBackfill {
		return runNames{}
	}
	names := runNames{run: run.WorkflowID, playbook: of}
	if input, err := reader.Input(ctx, run.WorkflowID, run.LastRunID()); err == nil { // without it the IDs are shown
		workload, _ := input.Workload.Data.(map[string]any)
		names.keys, _ = workload["keys"].([]any)
	}
	return names
}

// NameOf returns by what people know a child run.
func (n runNames) NameOf(id string) string {
	parts := ofChild.FindStringSubmatch(id)
	if parts == nil || parts[1] != n.run {
		return id
	}
	index, err := strconv.Atoi(parts[3])
	if err != nil || index >= len(n.keys) {
		return id
	}
	return render.PartitionTitle(n.playbook, expression.Text(n.keys[index]))
}

const (
	// partitionField is the name of the form field with the key of a run's partition.
	partitionField = "partition"
	// offeredKeys bounds the partitions that a form offers; of a longer list people type a key.
	offeredKeys = 200
)

// partitionInput is the field of a form for the partition of a run.
type partitionInput struct {
	Keys     []string // what people choose from; nil if they type a key
	Chosen   string
	Required bool
	Example  string // a key in the empty field
	Note     string
}

// partitionInputOf returns the field for the partition of a run, with what was typed; nil for a playbook without partitions.
func partitionInputOf(book *playbook.Playbook, typed url.Values, now time.Time) *partitionInput {
	if book.Partitions == nil {
		return nil
	}
	field := &partitionInput{Chosen: typed.Get(partitionField)}
	if book.Partitions.IsList() {
		all, _ := book.Partitions.CompletePartitions(now) // of a list it does not fail
		field.Required, field.Example = true, all[0].Key
		field.Note = "The playbook has " + terminal.Count(len(all), "partition") + "; the run loads the one with this key."
		if len(all) <= offeredKeys {
			field.Keys, field.Note = lists.Map(all, func(p partition.Partition) string { return p.Key }), ""
		}
		return field
	}
	newest, err := book.RunPartition("", now)
	if err != nil {
		field.Note = toSentence(err.Error())
		return field
	}
	field.Example = newest.Key
	field.Note = "If the field is empty, the run loads " + newest.Key + ", the last complete partition."
	return field
}

// freshness is how old the data loaded by a playbook is.
type freshness struct {
	Text, Path string
	Late       bool
}

// freshOf returns when a run of a playbook last completed, and whether another should have since, according to its
// schedule; nil if none of the listed runs completed.
func (s *Server) freshOf(ctx context.Context, book *playbook.Playbook, list []runs.Found, now time.Time) *freshness {
	for _, run := range list {
		if !run.Ended() || run.Status.Ending() != interpreter.Good {
			continue
		}
		if times := s.timesOf(ctx, book, list); times != nil {
			return newFreshness(run, *times, now)
		}
		return freshWithin(run, book, now)
	}
	return nil
}

// expectedTimes are the times of a schedule before and after now.
type expectedTimes struct {
	due, next time.Time // zero for none
	// within is how long a run may take: the playbook's expectation or, without one, the time until the schedule's
	// next run.
	within time.Duration
}

// timesOf returns the times of a playbook's schedule, nil if it has none. The schedule is the one that started a run
// in list, else the one with the playbook's name.
func (s *Server) timesOf(ctx context.Context, book *playbook.Playbook, list []runs.Found) *expectedTimes {
	id := book.Name
	for _, run := range list {
		if run.Schedule != "" {
			id = run.Schedule
			break
		}
	}
	found, err := s.Runs.Schedules().Find(ctx, id)
	if err != nil || found.Playbook != book.Name {
		return nil
	}
	times := newExpectedTimes(found.Described.Info, book.Expect)
	return &times
}

func newExpectedTimes(info client.ScheduleInfo, expect time.Duration) expectedTimes {
	times := expectedTimes{within: expect}
	if next := info.NextActionTimes; len(next) > 0 {
		times.next = next[0]
	}
	if recent := info.RecentActions; len(recent) > 0 {
		times.due = recent[len(recent)-1].ScheduleTime
	}
	if expect == 0 && !times.due.IsZero() && !times.next.IsZero() {
		times.within = times.next.Sub(times.due)
	}
	return times
}

// newFreshness judges the age of data by a schedule: it is not fresh if no run has completed since the last time that
// was due, and more time has passed than a run may take.
func newFreshness(run runs.Found, times expectedTimes, now time.Time) *freshness {
	fresh := &freshness{Path: runPath(run.WorkflowID), Text: "Fresh: " + agoText(run.EndedAt, now)}
	if !times.due.IsZero() && run.EndedAt.Before(times.due) && now.Sub(times.due) > times.within {
		fresh.Late = true
		fresh.Text = "Not fresh: " + agoText(run.EndedAt, now) + "; no run has completed since the one due " + agoText(times.due, now)
	}
	if times.next.After(now) {
		fresh.Text += ", next run in " + terminal.Duration(times.next.Sub(now).Round(time.Minute))
	}
	return fresh
}

// freshWithin judges the age of data by the schedule in the playbook, if no schedule on the server runs it.
func freshWithin(run runs.Found, book *playbook.Playbook, now time.Time) *freshness {
	fresh := &freshness{Path: runPath(run.WorkflowID), Text: "Fresh: " + agoText(run.EndedAt, now)}
	if book.Schedule == nil || book.Schedule.Every == 0 {
		return fresh
	}
	within := book.Schedule.Every + book.Expect
	if fresh.Late = now.Sub(run.EndedAt) > within; fresh.Late {
		fresh.Text = "Not fresh: " + agoText(run.EndedAt, now)
	}
	fresh.Text += ", expected within " + playbook.DurationText(within)
	return fresh
}

// runMissing starts a run for the missing partitions of a playbook.
func (s *Server) runMissing(w http.ResponseWriter, r *http.Request, v *visit) error {
	name, book, err := s.readBook(r)
	if err != nil {
		return err
	}
	if s.Library.Backfill == nil || book.Playbook == nil || book.Invalid || book.Playbook.Partitions == nil {
		return &pageError{http.StatusConflict, "The playbook has problems or no partitions, so it cannot be backfilled."}
	}
	id := ""
	err = s.changes.make(v, audit.Backfill, audit.ActionTarget{Playbook: name}, func(target *audit.ActionTarget) (audit.ActionOutcome, error) {
		var failed error
		id, failed = s.Library.Backfill(r.Context(), name, ChangedBy{By: v.person.Name, Reason: strings.TrimSpace(r.PostForm.Get("reason"))})
		target.Run = id
		return audit.Done, failed
	})
	if _, unlogged := errors.AsType[*pageError](err); unlogged {
		return err
	}
	if err != nil {
		return &pageError{http.StatusConflict, toSentence(terminal.Shorten(err.Error(), 500))}
	}
	s.redirectTo(w, r, v, runPath(id), flash{Text: "The backfill has started."})
	return nil
}
