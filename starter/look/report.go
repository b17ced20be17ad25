package look

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.temporal.io/sdk/client"

	"reprise/internal/base/exitcode"
	"reprise/internal/base/terminal"
	"reprise/internal/observe/ending"
	"reprise/internal/observe/render"
	"reprise/internal/program/start"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/starter/cli"
	"reprise/starter/load"
	"reprise/starter/session"
	"reprise/workflows/protocol"
)

// document is the JSON output of run.
type document struct {
	WorkflowID string                `json:"workflow_id"`
	RunID      string                `json:"run_id"`
	Status     interpreter.Status    `json:"status"`
	Result     expression.Value      `json:"result"`
	Steps      []protocol.StepRecord `json:"steps"`
	Warnings   []string              `json:"warnings"`
	// Rows are the rows that the run wrote, by table; nil if none were counted.
	Rows     *interpreter.Rows        `json:"rows,omitempty"`
	Error    *interpreter.ErrorObject `json:"error,omitempty"`
	Problems []load.Problem           `json:"problems,omitempty"` // of a playbook that was refused
	// ProblemsTotal also counts the problems that Problems leaves out.
	ProblemsTotal int    `json:"problems_total,omitempty"`
	Link          string `json:"link,omitempty"` // to the run in the web UI
}

// Error kinds of this program, in addition to those of runs.
const (
	kindInvalid  interpreter.Kind = "invalid_playbook"
	kindNoServer interpreter.Kind = "no_server"
	kindUsage    interpreter.Kind = "usage"
	kindNoResult interpreter.Kind = "no_result"
	kindStart    interpreter.Kind = "start"
)

// statusUnknown is the status of a run that may have started or ended without our knowledge.
const statusUnknown interpreter.Status = "unknown"

// refusalDocument returns the document of a run that did not start, as far as is known.
func refusalDocument(err error) document {
	failure := &interpreter.ErrorObject{Kind: kindStart, Class: interpreter.ClassFinal, Message: err.Error()}
	doc := document{Status: interpreter.Failed, Error: failure, Steps: []protocol.StepRecord{}, Warnings: []string{}}
	switch cli.StatusOf(err) {
	case exitcode.NoServer:
		failure.Kind = kindNoServer
	case exitcode.Usage:
		failure.Kind = kindUsage
	}
	if unsure, ok := errors.AsType[*start.UnsureError](err); ok {
		doc.Status, doc.WorkflowID = statusUnknown, unsure.WorkflowID
	}
	if invalid, ok := errors.AsType[*load.ProblemsError](err); ok {
		failure.Kind, doc.Problems, doc.ProblemsTotal = kindInvalid, invalid.Problems, invalid.Total
	}
	return doc
}

// unfinishedDocument returns the document of a run that is no longer followed.
func unfinishedDocument(s *session.Session, run client.WorkflowRun) document {
	return document{
		WorkflowID: run.GetID(), RunID: run.GetRunID(), Status: interpreter.Running,
		Steps: []protocol.StepRecord{}, Warnings: []string{}, Link: s.RunLink(run.GetID(), run.GetRunID()),
	}
}

// ReportStart prints the IDs of a run that is not followed.
func ReportStart(streams cli.Streams, s *session.Session, run client.WorkflowRun, output string) error {
	link := s.PageOf(run.GetID(), run.GetRunID())
	if output == "json" {
		return terminal.PrintJSON(streams.Out, unfinishedDocument(s, run))
	}
	_, _ = fmt.Fprintf(streams.Out, "workflow ID: %s\nrun ID:      %s\n", run.GetID(), run.GetRunID())
	if link != "" {
		_, _ = fmt.Fprintf(streams.Out, "page:        %s\n", link)
	}
	return nil
}

// reportEnd prints how a run ended and gives the exit status.
func reportEnd(a *cli.App, s *session.Session, run client.WorkflowRun, end outcome, options FollowOptions) error {
	result := end.knownResult()
	if options.Output == "json" {
		result.Warnings = slices.Concat(a.Warnings, result.Warnings)
		link := ""
		if !s.Ends {
			link = s.RunLink(run.GetID(), run.GetRunID())
		}
		doc := document{
			WorkflowID: run.GetID(), RunID: run.GetRunID(), Status: result.Status, Result: result.Result,
			Steps: cli.OrEmpty(result.Steps), Warnings: cli.OrEmpty(result.Warnings), Error: result.Error, Link: link, Rows: result.Rows,
		}
		if err := terminal.PrintJSON(a.Out, doc); err != nil {
			return err
		}
	} else {
		ctx, cancel := context.WithTimeout(a.Interrupts.Now, queryTimeout)
		render.PrintReport(a.Out, outcomeOf(ctx, s, run, result), terminal.PaperOf(a.Out))
		cancel()
		if !s.Ends {
			HintNext(a.Streams, s, run, result)
		}
	}
	switch ending := result.Status.Ending(); {
	case options.SkipFails && result.Status == interpreter.Skipped:
		return cli.WithStatus(exitcode.Failed, cli.ErrSaid)
	case ending == interpreter.Good: // or skipped as its playbook requires
		return nil
	case ending == interpreter.Mixed:
		return cli.WithStatus(exitcode.Partial, cli.ErrSaid)
	}
	if result.Status == statusUnknown {
		if options.Output == "json" {
			a.Notef("starter: %s", result.Error.Message)
		}
		if s.Server == nil {
			a.Notef("The run may still be open.")
			printHints(a.Streams, s, run)
		}
		return cli.WithStatus(exitcode.NoServer, cli.ErrSaid)
	}
	if errors.Is(end.err, ending.ErrRefused) {
		return cli.WithStatus(exitcode.Usage, cli.ErrSaid)
	}
	return cli.WithStatus(exitcode.Failed, cli.ErrSaid)
}

// knownResult returns the result of a run, with statusUnknown if it is not known.
func (o outcome) knownResult() protocol.Result {
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

// outcomeOf returns how a run ended, how long it took and, if something failed, its playbook, as far as the server
// responds. It reads child runs while ctx lasts.
func outcomeOf(ctx context.Context, s *session.Session, run client.WorkflowRun, result protocol.Result) render.EndedRun {
	outcome := render.EndedRun{WorkflowID: run.GetID(), Result: result, Whole: wholeCommand(s, run.GetID())}
	if result.Status == statusUnknown {
		return outcome
	}
	readChild := ending.ChildReader(ctx, s.Runs())
	outcome.ReadChild = func(failure *interpreter.ErrorObject) *render.EndedRun {
		child := readChild(failure)
		if child != nil {
			child.Whole = wholeCommand(s, child.WorkflowID)
		}
		return child
	}
	found, err := s.Runs().Find(ctx, run.GetID(), run.GetRunID())
	if err != nil {
		return outcome
	}
	if found.Ended() {
		outcome.Took = found.EndedAt.Sub(found.StartedAt)
	}
	if result.Error != nil || slices.ContainsFunc(result.Steps, func(r protocol.StepRecord) bool { return r.Loop != nil && len(r.Loop.Errors) > 0 }) {
		outcome.Book, _ = s.Runs().Playbook(ctx, found)
	}
	return outcome
}

// wholeCommand returns the command that prints all of how a run ended; "" if the server ends with this command.
func wholeCommand(s *session.Session, workflowID string) string {
	if s.Ends {
		return ""
	}
	return fmt.Sprintf("%s follow %s --output json%s", terminal.ProgramName(), terminal.ShellWord(workflowID), s.Flags)
}

// HintNext prints what to do after a run that did not succeed: how to reprocess iterations, or how to see what
// happened.
func HintNext(streams cli.Streams, s *session.Session, run client.WorkflowRun, result protocol.Result) {
	if hintDeadLetters(streams, s, run, result) || result.Status != interpreter.Failed {
		return
	}
	streams.Advisef("To see what happened: %s events %s --failed%s", terminal.ProgramName(), terminal.ShellWord(run.GetID()), s.Flags)
}

// hintDeadLetters prints how to reprocess the iterations that did not succeed; it returns false if there are none.
// The result of a terminated run does not say whether there are any.
func hintDeadLetters(streams cli.Streams, s *session.Session, run client.WorkflowRun, result protocol.Result) bool {
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
	streams.Advisef("To run the %s again: %s dead-letters reprocess %s%s%s", what, terminal.ProgramName(), terminal.ShellWord(run.GetID()), flag, s.Flags)
	return true
}

// ReportRefusal prints the document of a run that did not start, if the output is JSON, and returns the error.
func ReportRefusal(streams cli.Streams, err error, output string) error {
	if err != nil && output == "json" && !errors.Is(err, cli.ErrSaid) {
		return errors.Join(terminal.PrintJSON(streams.Out, refusalDocument(err)), err)
	}
	return err
}
