package ui

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"reprise/internal/observe/runs"
	"reprise/internal/program/steer"
	"reprise/interpreter"
	"reprise/interpreter/lists"
	"reprise/interpreter/source"
)

// schedulesPerPage is how many schedules the page shows; each takes a call.
const schedulesPerPage = callsPerPage

// scheduleRow is a schedule.
type scheduleRow struct {
	ID, Playbook string
	Paused       bool
	Note         string
	Next         []string
	Last         []link
	Actions      []action
}

func (s *Server) schedulesPage(w http.ResponseWriter, r *http.Request, v *visit) error {
	v.frame.Title, v.frame.Section = "Schedules", "/schedules"
	after := r.URL.Query().Get("after")
	page, err := s.Runs.Schedules(r.Context(), after, schedulesPerPage)
	if err != nil {
		return err
	}
	shown := struct {
		Rows        []scheduleRow
		First, Next string // addresses of other pages, "" for none
	}{}
	if after != "" {
		shown.First = "/schedules"
	}
	if page.Left > 0 {
		shown.Next = "/schedules?" + url.Values{"after": {page.Last}}.Encode()
	}
	shown.Rows = lists.Map(page.Schedules, func(one *runs.Schedule) scheduleRow { return newScheduleRow(one, v.person) })
	s.write(w, v, http.StatusOK, "schedules", shown)
	return nil
}

func newScheduleRow(one *runs.Schedule, person Person) scheduleRow {
	const mostTimes = 3
	row := scheduleRow{ID: one.ID, Playbook: one.Playbook}
	if state := one.Described.Schedule.State; state != nil {
		row.Paused, row.Note = state.Paused, state.Note
	}
	next := one.Described.Info.NextActionTimes
	for _, at := range next[:min(len(next), mostTimes)] {
		row.Next = append(row.Next, at.UTC().Format("2006-01-02 15:04:05 UTC"))
	}
	recent := one.Described.Info.RecentActions
	for i := len(recent) - 1; i >= max(0, len(recent)-mostTimes); i-- {
		if started := recent[i].StartWorkflowResult; started != nil {
			row.Last = append(row.Last, link{Name: recent[i].ActualTime.UTC().Format("2006-01-02 15:04:05 UTC"), Path: runPath(started.WorkflowID)})
		}
	}
	if person.Operator {
		pause := action{Command: "pause", Name: "Pause"}
		if row.Paused {
			pause = action{Command: "resume", Name: "Resume", First: true}
		}
		row.Actions = []action{pause, {Command: "trigger", Name: "Start a run now"}}
	}
	return row
}

// changeSchedule pauses, resumes or triggers a schedule.
func (s *Server) changeSchedule(w http.ResponseWriter, r *http.Request, v *visit) error {
	found, err := s.Runs.Schedule(r.Context(), r.PathValue("id"))
	if missing, ok := errors.AsType[*runs.NoScheduleError](err); ok {
		return &pageError{http.StatusNotFound, sentence(missing.Error())}
	}
	if err != nil {
		return err
	}
	handle := s.Client.ScheduleClient().GetHandle(r.Context(), found.ID)
	by := source.Cut(v.person.Name, 200)
	note := source.Cut(r.PostForm.Get("reason"), 300)
	text := ""
	switch r.PostForm.Get("command") {
	case "pause":
		text = found.ID + " is paused. No run starts until it is resumed."
		err = handle.Pause(r.Context(), client.SchedulePauseOptions{Note: noted(note, "by "+by)})
	case "resume":
		text = found.ID + " is resumed."
		err = handle.Unpause(r.Context(), client.ScheduleUnpauseOptions{Note: noted(note, "resumed by "+by)})
	case "trigger":
		return s.trigger(w, r, found, interpreter.Said{By: by, Reason: note})
	default:
		return &pageError{http.StatusBadRequest, "There is no such command."}
	}
	if err != nil {
		return err
	}
	turnTo(w, r, "/schedules", flash{Text: text})
	return nil
}

// noted is a note with who left it.
func noted(note, by string) string {
	if note == "" {
		return by
	}
	return cmp.Or(note, by) + " (" + by + ")"
}

// triggerTime is how long the page waits for the run that it has triggered.
const triggerTime = 5 * time.Second

// trigger has a schedule start a run now.
func (s *Server) trigger(w http.ResponseWriter, r *http.Request, found *runs.Schedule, said interpreter.Said) error {
	result, err := s.sender().Trigger(r.Context(), found, enumspb.SCHEDULE_OVERLAP_POLICY_UNSPECIFIED, said, triggerTime)
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
	turnTo(w, r, "/schedules", shown)
	return nil
}
