package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.temporal.io/sdk/client"

	"reprise/internal/base/terminal"
	"reprise/internal/observe/ending"
	"reprise/internal/observe/render"
	"reprise/internal/program/start"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/workflows/protocol"
)

// document is what `run --output json` prints.
type document struct {
	WorkflowID string                `json:"workflow_id"`
	RunID      string                `json:"run_id"`
	Status     interpreter.Status    `json:"status"`
	Result     expression.Value      `json:"result"`
	Steps      []protocol.StepRecord `json:"steps"`
	Warnings   []string              `json:"warnings"`
	// Rows is what the run did to data, by tables; nil where nothing was counted.
	Rows     *interpreter.Rows        `json:"rows,omitempty"`
	Error    *interpreter.ErrorObject `json:"error,omitempty"`
	Problems []problem                `json:"problems,omitempty"` // of a playbook that was refused
	// ProblemsTotal counts those that are not among Problems too.
	ProblemsTotal int    `json:"problems_total,omitempty"`
	Link          string `json:"link,omitempty"` // to the run in the web UI
}

// Kinds of errors that only this program has, beside those of runs.
const (
	kindInvalid  interpreter.Kind = "invalid_playbook"
	kindNoServer interpreter.Kind = "no_server"
	kindUsage    interpreter.Kind = "usage"
	kindNoResult interpreter.Kind = "no_result"
	kindStart    interpreter.Kind = "start"
)

// statusUnknown is the status of a run of which we do not know how it ended, or
// whether it began.
const statusUnknown interpreter.Status = "unknown"

// refusal is the document of a run that did not start, as far as we know.
func refusal(err error) document {
	failure := &interpreter.ErrorObject{Kind: kindStart, Class: interpreter.ClassFinal, Message: err.Error()}
	doc := document{Status: interpreter.Failed, Error: failure, Steps: []protocol.StepRecord{}, Warnings: []string{}}
	switch statusOf(err) {
	case exitNoServer:
		failure.Kind = kindNoServer
	case exitUsage:
		failure.Kind = kindUsage
	}
	if unsure, ok := errors.AsType[*start.UnsureError](err); ok {
		doc.Status, doc.WorkflowID = statusUnknown, unsure.WorkflowID
	}
	if invalid, ok := errors.AsType[*invalidError](err); ok {
		failure.Kind, doc.Problems, doc.ProblemsTotal = kindInvalid, invalid.problems, invalid.total
	}
	return doc
}

// unfinished is the document of a run that is no longer followed.
func (s *session) unfinished(run client.WorkflowRun) document {
	return document{
		WorkflowID: run.GetID(), RunID: run.GetRunID(), Status: interpreter.Running,
		Steps: []protocol.StepRecord{}, Warnings: []string{}, Link: s.link(run.GetID(), run.GetRunID()),
	}
}

// reportStart prints the IDs of a run that is not followed.
func (a *app) reportStart(s *session, run client.WorkflowRun, output string) error {
	link := s.pageOf(run.GetID(), run.GetRunID())
	if output == "json" {
		return terminal.PrintJSON(a.Out, s.unfinished(run))
	}
	_, _ = fmt.Fprintf(a.Out, "workflow ID: %s\nrun ID:      %s\n", run.GetID(), run.GetRunID())
	if link != "" {
		_, _ = fmt.Fprintf(a.Out, "page:        %s\n", link)
	}
	return nil
}

// report prints how a run ended and gives the exit status.
func (a *app) report(s *session, run client.WorkflowRun, end outcome, output string) error {
	result := end.known()
	if output == "json" {
		result.Warnings = slices.Concat(a.warnings, result.Warnings)
		link := ""
		if !s.ends {
			link = s.link(run.GetID(), run.GetRunID())
		}
		doc := document{
			WorkflowID: run.GetID(), RunID: run.GetRunID(), Status: result.Status, Result: result.Result,
			Steps: orEmpty(result.Steps), Warnings: orEmpty(result.Warnings), Error: result.Error, Link: link, Rows: result.Rows,
		}
		if err := terminal.PrintJSON(a.Out, doc); err != nil {
			return err
		}
	} else {
		render.Report(a.Out, a.outcomeOf(s, run, result), terminal.PaperOf(a.Out))
		if !s.ends {
			a.hintNext(s, run, result)
		}
	}
	switch result.Status.Ending() {
	case interpreter.Good: // or skipped as its playbook requires
		return nil
	case interpreter.Mixed:
		return withStatus(exitPartial, errSaid)
	}
	if result.Status == statusUnknown {
		if output == "json" {
			a.notef("starter: %s", result.Error.Message)
		}
		if s.server == nil {
			a.notef("The run may still be open.")
			a.hints(s, run)
		}
		return withStatus(exitNoServer, errSaid)
	}
	if errors.Is(end.err, ending.ErrRefused) {
		return withStatus(exitUsage, errSaid)
	}
	return withStatus(exitFailed, errSaid)
}

// known is the result of a run as far as it is known.
func (o outcome) known() protocol.Result {
	result := o.result
	if o.err == nil {
		return result
	}
	result.Status = statusUnknown
	result.Error = &interpreter.ErrorObject{Kind: kindNoServer, Class: interpreter.ClassFinal, Message: "how the run ended is unknown: " + o.err.Error()}
	if errors.Is(o.err, ending.ErrNoResult) || errors.Is(o.err, ending.ErrRefused) {
		result.Status, result.Error.Kind, result.Error.Message = interpreter.Failed, kindNoResult, o.err.Error()
	}
	return result
}

func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// outcomeOf is how a run has ended, with how long it took and, where something failed, its playbook:
// as far as the server knows.
func (a *app) outcomeOf(s *session, run client.WorkflowRun, result protocol.Result) render.EndedRun {
	outcome := render.EndedRun{WorkflowID: run.GetID(), Result: result}
	if result.Status == statusUnknown {
		return outcome
	}
	ctx, cancel := context.WithTimeout(a.interrupts.now, queryTimeout)
	defer cancel()
	found, err := s.runs().Find(ctx, run.GetID(), run.GetRunID())
	if err != nil {
		return outcome
	}
	if found.Ended() {
		outcome.Took = found.EndedAt.Sub(found.StartedAt)
	}
	if result.Error != nil || slices.ContainsFunc(result.Steps, func(r protocol.StepRecord) bool { return r.Loop != nil && len(r.Loop.Errors) > 0 }) {
		outcome.Book, _ = s.runs().Playbook(ctx, found)
	}
	return outcome
}

// hintNext prints what helps a run on that has not ended well: how to run the iterations again
// that did not succeed, or where to see what happened.
func (a *app) hintNext(s *session, run client.WorkflowRun, result protocol.Result) {
	if a.hintDeadLetters(s, run, result) || result.Status != interpreter.Failed {
		return
	}
	a.advisef("To see what happened: %s events %s --failed%s", terminal.Program(), terminal.ShellWord(run.GetID()), s.flags)
}

// hintDeadLetters prints how to run the iterations again that did not succeed; false where there
// are none. Where a run was terminated, its result does not say whether there are any.
func (a *app) hintDeadLetters(s *session, run client.WorkflowRun, result protocol.Result) bool {
	var failed, cancelled int
	for _, record := range result.Steps {
		if record.Loop != nil {
			failed, cancelled = failed+record.Loop.Stats.Failed, cancelled+record.Loop.Stats.Cancelled
		}
	}
	what, flag := "failed iterations", ""
	switch {
	case failed+cancelled == 0:
		return false
	case failed == 0:
		what, flag = "cancelled iterations", " --cancelled"
	case cancelled > 0:
		what, flag = "failed and cancelled iterations", " --cancelled"
	}
	a.advisef("To run the %s again: %s dead-letters reprocess %s%s%s", what, terminal.Program(), terminal.ShellWord(run.GetID()), flag, s.flags)
	return true
}
