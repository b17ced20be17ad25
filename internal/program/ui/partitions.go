package ui

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"reprise/internal/base/terminal"
	"reprise/internal/observe/runs"
	"reprise/internal/program/backfill"
	"reprise/interpreter"
	"reprise/interpreter/partition"
	"reprise/interpreter/playbook"
)

// Sizes of the calendar of partitions, in units of its drawing.
const (
	cellStep = 12
	cellSize = 10
	// calendarLines bounds the lines of a calendar.
	calendarLines = 60
)

// partitionStatus is the status of runs whose colour a partition has.
var partitionStatus = map[partition.Status]interpreter.Status{
	partition.Done: interpreter.Completed, partition.Running: interpreter.Running, partition.Failed: interpreter.Failed,
	partition.Stale: interpreter.Partial, partition.Missing: interpreter.Pending,
}

// calendar is what became of the partitions of a playbook.
type calendar struct {
	Tally   string
	Problem string // why that is not known, "" where it is
	Width   int
	Lines   []calendarLine
	Left    int // earlier lines
	Legend  []calendarCell
	Running []link // open runs of partitions
	// Missing is how many partitions a backfill would run.
	Missing     int
	CanBackfill bool
}

// calendarLine is a day, month, year or decade.
type calendarLine struct {
	Label, Title string
	Cells        []calendarCell
}

// calendarCell is a partition.
type calendarCell struct {
	X      int
	Status partition.Status
	Of     interpreter.Status
	Title  string
	Path   string // of the open run, "" for none
}

// Hollow says that nothing is there.
func (c calendarCell) Hollow() bool { return c.Status == partition.Missing }

// Half says that it has to be done again.
func (c calendarCell) Half() bool { return c.Status == partition.Stale }

// Crossed says that its run has failed.
func (c calendarCell) Crossed() bool { return c.Status == partition.Failed }

// Right is where it ends.
func (c calendarCell) Right() int { return c.X + cellSize }

// calendarOf reads what became of the partitions of a playbook; nil for one that has none.
func (s *Server) calendarOf(ctx context.Context, book *playbook.Playbook, person Person, now time.Time) *calendar {
	if book.Partitions == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, glanceTime)
	defer cancel()
	matrix, err := backfill.Read(ctx, s.Client, book, now)
	if err != nil {
		s.Logger.Warn("what is done of partitions could not be read", "playbook", book.Name, "error", err)
		return &calendar{Problem: "The status of its partitions is read by a worker, and none has responded."}
	}
	view := newCalendar(matrix)
	view.CanBackfill = person.Operator && s.Library.Backfill != nil && view.Missing > 0
	return view
}

// newCalendar draws partitions.
func newCalendar(matrix *backfill.Matrix) *calendar {
	view := &calendar{Tally: matrix.Tally(), Width: cellStep * matrix.Columns(), Missing: len(matrix.Select(backfill.OnlyMissing))}
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
	for _, row := range matrix.Rows {
		if row.Run != "" && len(view.Running) < shownNeeds {
			view.Running = append(view.Running, link{row.Key, runPath(row.Run)})
		}
	}
	return view
}

func newCalendarLine(line backfill.CalendarLine) calendarLine {
	drawn, counts := calendarLine{Label: line.Label}, map[partition.Status]int{}
	for i, row := range line.Rows {
		cell := calendarCell{X: cellStep * (line.Indent + i), Status: row.Status, Of: partitionStatus[row.Status], Title: row.Key + ": " + string(row.Status)}
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

// freshness is how old the data is that a playbook loads.
type freshness struct {
	Text, Path string
	Late       bool
}

// freshOf says when a run of a playbook has completed last, and how soon another should, as its schedule and `expect` say; nil
// where none of the listed runs has completed.
func (s *Server) freshOf(ctx context.Context, book *playbook.Playbook, list []runs.Found, now time.Time) *freshness {
	for _, run := range list {
		if !run.Ended() || run.Status.Ending() != interpreter.Good {
			continue
		}
		return newFreshness(run, s.expected(ctx, book, list), now)
	}
	return nil
}

func newFreshness(run runs.Found, within time.Duration, now time.Time) *freshness {
	age := now.Sub(run.EndedAt)
	fresh := &freshness{Path: runPath(run.WorkflowID), Late: within > 0 && age > within, Text: "Fresh: " + ago(run.EndedAt, now)}
	if fresh.Late {
		fresh.Text = "Not fresh: " + ago(run.EndedAt, now)
	}
	if within > 0 {
		fresh.Text += ", expected within " + playbook.DurationText(within)
	}
	return fresh
}

// expected is within which time after a run the next one should complete: as long as the schedule has between two times, and
// what `expect` gives a run; 0 where no schedule is known.
func (s *Server) expected(ctx context.Context, book *playbook.Playbook, list []runs.Found) time.Duration {
	if book.Schedule != nil && book.Schedule.Every > 0 {
		return book.Schedule.Every + book.Expect
	}
	for _, run := range list {
		if run.Schedule == "" {
			continue
		}
		found, err := s.Runs.Schedules().Find(ctx, run.Schedule)
		if err != nil { // it was deleted
			return 0
		}
		return longestGap(found.Described.Info.NextActionTimes, book.Expect)
	}
	return 0
}

// longestGap is the longest time between two that follow each other, and more; 0 for fewer than two.
func longestGap(times []time.Time, more time.Duration) time.Duration {
	var longest time.Duration
	for i := 1; i < len(times); i++ {
		longest = max(longest, times[i].Sub(times[i-1]))
	}
	if longest == 0 {
		return 0
	}
	return longest + more
}

// runMissing starts a run for the partitions of a playbook that are missing.
func (s *Server) runMissing(w http.ResponseWriter, r *http.Request, v *visit) error {
	name, book, err := s.book(r)
	if err != nil {
		return err
	}
	if s.Library.Backfill == nil || book.Playbook == nil || book.Invalid || book.Playbook.Partitions == nil {
		return &pageError{http.StatusConflict, "The playbook has problems or no partitions, so no backfill of it starts."}
	}
	id, err := s.Library.Backfill(r.Context(), name, ChangedBy{By: v.person.Name, Reason: strings.TrimSpace(r.PostForm.Get("reason"))})
	if err != nil {
		return &pageError{http.StatusConflict, sentence(terminal.Shorten(err.Error(), 500))}
	}
	s.turnTo(w, r, v, runPath(id), flash{Text: "The backfill has started."})
	return nil
}
