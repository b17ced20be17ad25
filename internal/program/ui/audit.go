package ui

import (
	"log/slog"
	"net/http"
	"strings"

	"reprise/internal/base/audit"
	"reprise/internal/base/connect"
	"reprise/internal/program/steer"
)

// changeLog writes changes by people to the audit log.
type changeLog struct {
	trail  *audit.Trail // nil for none
	logger *slog.Logger
}

// make makes a change between its lines in the audit log. change returns how it ended, and may add to the target. An
// error of change is returned as it is; a *pageError says that the log cannot be written.
func (c changeLog) make(v *visit, action audit.ActionName, target audit.ActionTarget, change func(*audit.ActionTarget) (audit.ActionOutcome, error)) error {
	end, err := c.trail.Begin(audit.LoggedAction{Actor: v.person.Name, Proof: v.person.proof, Action: action, Target: target})
	if err != nil {
		return c.unloggedError(err, "so nothing was changed")
	}
	outcome, failed := change(&target)
	switch {
	case failed != nil && connect.IsUnreachable(failed):
		outcome = audit.Unknown
	case failed != nil && outcome == audit.Done:
		outcome = audit.Failed
	}
	if err := end(target, outcome); err != nil {
		return c.unloggedError(err, "so the outcome of what you did is not in it; look at the run")
	}
	return failed
}

// deny writes to the audit log that a person may change nothing, and returns the error for the person.
func (c changeLog) deny(v *visit, r *http.Request, denied error) error {
	line := audit.LoggedAction{Actor: v.person.Name, Proof: v.person.proof, Action: audit.Change, Outcome: audit.Denied}
	switch id := r.PathValue("id"); {
	case r.PathValue("name") != "":
		line.Target.Playbook = r.PathValue("name")
	case strings.HasPrefix(r.URL.Path, "/schedules/"):
		line.Target.Schedule = id
	default:
		line.Target.Run = id
	}
	if err := c.trail.Write(line); err != nil {
		return c.unloggedError(err, "so the request was not processed")
	}
	return denied
}

// unloggedError returns the error for a person whose change cannot be logged.
func (c changeLog) unloggedError(err error, effect string) error {
	c.logger.Error("the audit log cannot be written; changes are refused", "error", err)
	return &pageError{http.StatusServiceUnavailable, "The audit log cannot be written, " + effect + "."}
}

// actionOf returns the name of a command in the audit log.
func actionOf(command string) audit.ActionName {
	switch command {
	case runAgain:
		return audit.RunAgain
	case reprocess:
		return audit.Reprocess
	}
	return audit.ActionName(strings.ReplaceAll(command, "-", "_"))
}

// outcomeOf returns the outcome of a command in the audit log.
func outcomeOf(outcome steer.CommandOutcome) audit.ActionOutcome {
	switch outcome {
	case steer.Unchanged:
		return audit.Repeated
	case steer.Refused:
		return audit.Refused
	case steer.Unknown:
		return audit.Unknown
	}
	return audit.Done
}
