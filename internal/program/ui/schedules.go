package ui

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"reprise/internal/base/audit"
	"reprise/internal/base/terminal"
	"reprise/internal/observe/runs"
	"reprise/internal/program/steer"
	"reprise/internal/program/timetable"
	"reprise/interpreter"
	"reprise/interpreter/lists"
	"reprise/interpreter/source"
)

// schedulesPerPage is how many schedules a page shows; each takes a call.
const schedulesPerPage = callsPerPage - 1

// shownScheduled bounds the runs of schedules that a page reads.
const shownScheduled = 100

// scheduleRow is a schedule in the list.
type scheduleRow struct {
	ID, Playbook string
	Paused       bool
	Note         string
	Times        string
	Next         []nextTime
	Last         []runRow
	Missed       string // how many times had no run, "" for none
	Actions      []action
}

// nextTime is a future time in the zone of the schedule.
type nextTime struct {
	At    time.Time
	There string // "" where the zone is UTC
}

func (s *Server) schedulesPage(w http.ResponseWriter, r *http.Request, v *visit) error {
	v.frame.Title, v.frame.Section = "Schedules", "/schedules"
	after, id := r.URL.Query().Get("after"), r.URL.Query().Get("id")
	shown := struct {
		Rows        []scheduleRow
		First, Next string // addresses of other pages, "" for none
		Note        string
		IsOne       bool // the address names one schedule
	}{IsOne: id != ""}
	var page runs.SchedulePage
	if id != "" {
		found, err := s.Runs.Schedules().Find(r.Context(), id)
		if missing, ok := errors.AsType[*runs.NoScheduleError](err); ok {
			return &pageError{http.StatusNotFound, toSentence(missing.Error())}
		}
		if err != nil {
			return err
		}
		page.Schedules, shown.First = []*runs.Schedule{found}, "/schedules"
	} else {
		var err error
		if page, err = s.Runs.Schedules().List(r.Context(), after, schedulesPerPage); err != nil {
			return err
		}
	}
	if after != "" {
		shown.First = "/schedules"
	}
	if page.Left > 0 {
		shown.Next = "/schedules?" + url.Values{"after": {page.Last}}.Encode()
	}
	started, err := s.scheduledRuns(r.Context(), page.Schedules, v.frame.At)
	if err != nil {
		shown.Note = "The last runs of schedules are not known: " + err.Error()
	}
	shown.Rows = lists.Map(page.Schedules, func(one *runs.Schedule) scheduleRow { return newScheduleRow(one, started[one.ID], v.person) })
	s.writePage(w, v, http.StatusOK, "schedules", shown)
	return nil
}

// scheduledRuns returns the runs that schedules started, newest first, by schedule ID.
func (s *Server) scheduledRuns(ctx context.Context, schedules []*runs.Schedule, now time.Time) (map[string][]runRow, error) {
	started := map[string][]runRow{}
	if len(schedules) == 0 {
		return started, nil
	}
	ids := lists.Map(schedules, func(one *runs.Schedule) string { return one.ID })
	page, err := s.Runs.Page(ctx, runs.Filter{Schedules: ids}, shownScheduled, nil)
	if err != nil {
		return started, err
	}
	slices.SortStableFunc(page.Runs, func(x, y runs.Found) int { return y.StartedAt.Compare(x.StartedAt) })
	for _, run := range page.Runs {
		const shownStarts = 5 // of a schedule
		if of := started[run.Schedule]; len(of) < shownStarts {
			started[run.Schedule] = append(of, runRow{Run: run, Path: runPath(run.WorkflowID), Status: run.Status, Started: agoText(run.StartedAt, now), Late: lateText(run, now)})
		}
	}
	return started, nil
}

func newScheduleRow(one *runs.Schedule, last []runRow, person Person) scheduleRow {
	const shownTimes = 3
	times := timetable.Read(one.Described.Schedule)
	row := scheduleRow{ID: one.ID, Playbook: one.Playbook, Times: timetable.DescribeSchedule(times), Last: last}
	if state := one.Described.Schedule.State; state != nil {
		row.Paused, row.Note = state.Paused, state.Note
	}
	zone, err := time.LoadLocation(times.Zone)
	next := one.Described.Info.NextActionTimes
	for _, at := range next[:min(len(next), shownTimes)] {
		shown := nextTime{At: at}
		if err == nil && times.Zone != time.UTC.String() && times.Zone != "" {
			shown.There = at.In(zone).Format("Mon 2 Jan 15:04") + " " + times.Zone
		}
		row.Next = append(row.Next, shown)
	}
	row.Missed = missedText(one.Described.Info.NumActionsMissedCatchupWindow, one.Described.Info.NumActionsSkippedOverlap)
	if person.Operator {
		pause := action{Command: "pause", Name: "Pause"}
		if row.Paused {
			pause = action{Command: "resume", Name: "Resume", First: true}
		}
		row.Actions = []action{pause, {Command: "trigger", Name: "Start a run now"}}
	}
	return row
}

// missedText describes how many times of a schedule had no run, and why.
func missedText(missed, skipped int) string {
	var all []string
	if missed > 0 {
		all = append(all, terminal.Count(missed, "time")+" missed: the server was away")
	}
	if skipped > 0 {
		all = append(all, terminal.Count(skipped, "time")+" skipped: the run before was open")
	}
	return strings.Join(all, "; ")
}

// changeSchedule pauses, resumes or triggers a schedule.
func (s *Server) changeSchedule(w http.ResponseWriter, r *http.Request, v *visit) error {
	found, err := s.Runs.Schedules().Find(r.Context(), r.PathValue("id"))
	if missing, ok := errors.AsType[*runs.NoScheduleError](err); ok {
		return &pageError{http.StatusNotFound, toSentence(missing.Error())}
	}
	if err != nil {
		return err
	}
	target := audit.ActionTarget{Schedule: found.ID}
	handle := s.Client.ScheduleClient().GetHandle(r.Context(), found.ID)
	by := source.CutText(v.person.Name, 200)
	note := source.CutText(r.PostForm.Get("reason"), 300)
	text := ""
	switch r.PostForm.Get("command") {
	case "pause":
		text = found.ID + " is paused. No run starts until it is resumed."
		err = s.changes.make(v, "pause", target, func(*audit.ActionTarget) (audit.ActionOutcome, error) {
			return audit.Done, handle.Pause(r.Context(), client.SchedulePauseOptions{Note: notedText(note, "by "+by)})
		})
	case "resume":
		text = found.ID + " is resumed."
		err = s.changes.make(v, "resume", target, func(*audit.ActionTarget) (audit.ActionOutcome, error) {
			return audit.Done, handle.Unpause(r.Context(), client.ScheduleUnpauseOptions{Note: notedText(note, "resumed by "+by)})
		})
	case "trigger":
		return s.triggerSchedule(w, r, v, found, interpreter.Said{By: by, Reason: note})
	default:
		return &pageError{http.StatusBadRequest, "There is no such command."}
	}
	if err != nil {
		return err
	}
	s.redirectTo(w, r, v, "/schedules", flash{Text: text})
	return nil
}

// notedText returns the text of a note followed by its author.
func notedText(note, by string) string {
	if note == "" {
		return by
	}
	return cmp.Or(note, by) + " (" + by + ")"
}

// triggerTime is how long the page waits for the run that it triggered.
const triggerTime = 5 * time.Second

// triggerSchedule makes a schedule start a run now.
func (s *Server) triggerSchedule(w http.ResponseWriter, r *http.Request, v *visit, found *runs.Schedule, said interpreter.Said) error {
	var result steer.TriggerResult
	err := s.changes.make(v, audit.Trigger, audit.ActionTarget{Schedule: found.ID}, func(target *audit.ActionTarget) (outcome audit.ActionOutcome, err error) {
		result, err = s.newSender().TriggerSchedule(r.Context(), found, enumspb.SCHEDULE_OVERLAP_POLICY_UNSPECIFIED, said, triggerTime)
		target.Run = result.WorkflowID
		if outcome = audit.Done; result.Outcome == steer.Skipped {
			outcome = audit.Refused
		}
		return outcome, err
	})
	if err != nil {
		return err
	}
	shown := flash{Run: result.WorkflowID}
	switch result.Outcome {
	case steer.Started:
		shown.Text = "A run of " + found.ID + " is started."
	case steer.Skipped:
		shown = flash{Bad: true, Text: "No run of " + found.ID + " is started: another is open, and the schedule skips then."}
	default:
		shown.Text = "A run of " + found.ID + " was requested. It is listed when it has started."
	}
	s.redirectTo(w, r, v, "/schedules", shown)
	return nil
}
