package serve

import (
	"errors"
	"net/http"
	"strings"

	"reprise/internal/base/audit"
	"reprise/internal/base/connect"
	"reprise/interpreter"
)

// beginAction writes to the audit log that an action begins. It must not be performed if there is an error. end writes
// how it ended, and returns the error of the action, or that of the log.
func (s *Server) beginAction(of audit.LoggedAction) (end func(audit.ActionTarget, audit.ActionOutcome, error) error, err error) {
	write, err := s.Audit.Begin(of)
	if err != nil {
		return nil, s.unloggedProblem(err, "so nothing was done")
	}
	return func(target audit.ActionTarget, outcome audit.ActionOutcome, failed error) error {
		if failed != nil {
			outcome = failureOutcome(failed)
		}
		if err := write(target, outcome); err != nil {
			return s.unloggedProblem(err, "so the outcome of the request is not in it; repeat the request to learn the outcome")
		}
		return failed
	}, nil
}

// logDenial writes to the audit log that a known client may not do something, and returns the problem for the client.
// Unknown clients are only in the log of requests: they could fill the disk.
func (s *Server) logDenial(of audit.LoggedAction, denied error) error {
	of.Outcome, of.Type = audit.Denied, problemWord(denied)
	if err := s.Audit.Write(of); err != nil {
		return s.unloggedProblem(err, "so the request was not processed")
	}
	return denied
}

// unloggedProblem returns the problem for a request that cannot be logged.
func (s *Server) unloggedProblem(err error, effect string) error {
	s.Logger.Error("the audit log cannot be written; requests that belong in it are refused", "error", err)
	return newProblem(http.StatusServiceUnavailable, "audit-log", "the audit log cannot be written, %s; see the log of starter serve", effect).
		withHeader("Retry-After", "10")
}

// failureOutcome returns the outcome of an action that failed.
func failureOutcome(err error) audit.ActionOutcome {
	var known *Problem
	switch {
	case problemWord(err) == unansweredWord:
		return audit.Unknown
	case errors.As(err, &known) && known.Status < http.StatusInternalServerError:
		return audit.Refused
	case errors.As(err, &known):
		return audit.Failed
	case connect.IsUnreachable(err):
		return audit.Unknown
	}
	return audit.Failed
}

// problemWord returns the last part of a problem's type, such as not-found.
func problemWord(err error) string {
	var known *Problem
	if !errors.As(err, &known) {
		return ""
	}
	return known.Type[strings.LastIndexByte(known.Type, ':')+1:]
}

// action returns the line about the start of a run.
func (o startRequest) action() audit.LoggedAction {
	return audit.LoggedAction{Actor: o.actor, Proof: o.proof, Action: audit.Start, Target: audit.ActionTarget{Playbook: o.Playbook}}
}

// answerAction returns the line about an answer. Its token proves only that somebody was given the link.
func answerAction(workflowID string, given interpreter.Answer) audit.LoggedAction {
	return audit.LoggedAction{
		Actor: given.By, Proof: audit.ClaimedBy(given.By), Action: audit.Answer,
		Target: audit.ActionTarget{Run: workflowID, Step: given.Step, Index: given.Index},
	}
}

// answerOutcome returns the outcome of an answer that was not refused.
func answerOutcome(reply answer) audit.ActionOutcome {
	body, _ := reply.body.(callbackAnswer)
	switch {
	case body.Repeated:
		return audit.Repeated
	case !body.Accepted:
		return audit.Stored
	}
	return audit.Done
}

// logChangedFiles writes to the audit log when a file of the operator has changed.
func (s *Server) logChangedFiles() {
	changed := func(what string, err error) {
		if err := s.Audit.WriteChange(what, err); err != nil {
			s.Logger.Error("a change of a file is not in the audit log", "file", what, "error", err)
		}
	}
	if s.Audit == nil {
		return
	}
	s.Callers.OnChange(changed)
	if notifies, ok := s.Secrets.(interface{ OnChange(func(string, error)) }); ok {
		notifies.OnChange(changed)
	}
}
