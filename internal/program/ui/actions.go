package ui

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"reprise/internal/base/audit"
	"reprise/internal/observe/runs"
	"reprise/internal/program/steer"
	"reprise/interpreter"
	"reprise/interpreter/source"
	"reprise/workflows/protocol"
)

// Commands of the pages besides those of package steer.
const (
	runAgain  = "run"
	reprocess = "reprocess"
)

// action is a button.
type action struct {
	Command, Name string
	First, Bad    bool // what is most likely wanted, and what cannot be undone
}

// confirmed has the commands that cannot be undone and so must be confirmed, with what each does.
var confirmed = map[string]string{
	steer.Cancel: "Running attempts are stopped, waits are dropped, and the run ends as cancelled. This cannot be undone.",
	steer.Skip:   "Whatever is waiting there fails and is not retried. This cannot be undone.",
	runAgain:     "A new run starts from the beginning, with the playbook and the input of this one.",
	reprocess:    "A new run starts. It runs the failed iterations of this run again, and nothing else.",
}

// runActions returns the buttons for a run.
func (s *Server) runActions(status *runs.Status, person Person) []action {
	if !person.Operator {
		return nil
	}
	var all []action
	switch {
	case status.Ended():
		failed := status.Origin == "" && status.DeadLetters > 0
		for _, step := range status.Steps {
			failed = failed || step.Loop != nil && step.Loop.Failed > 0
		}
		if failed && s.Reprocess != nil {
			all = append(all, action{Command: reprocess, Name: "Run failed iterations again…", First: true})
		}
		if s.Again != nil && status.Origin == "" {
			all = append(all, action{Command: runAgain, Name: "Run again…"})
		}
		return all
	case status.Control.Paused:
		all = append(all, action{Command: steer.Resume, Name: "Resume", First: true})
	default:
		all = append(all, action{Command: steer.Pause, Name: "Pause"})
	}
	if !status.Control.Paused && waitsToRetry(status) {
		all = append(all, action{Command: steer.RetryNow, Name: "Retry now"})
	}
	return append(all, action{Command: steer.Cancel, Name: "Cancel…", Bad: true})
}

// waitsToRetry reports whether part of a run waits for a retry, for a page, or for a slot in a stopped queue.
func waitsToRetry(status *runs.Status) bool {
	return status.Status == interpreter.RetryPending || status.Queue != nil && status.Queue.Stopped || slices.ContainsFunc(status.Steps, stepWaits)
}

// stepWaits reports whether part of a step waits for a retry.
func stepWaits(step runs.Step) bool {
	return !step.Status.Ended() && (step.Status == interpreter.RetryPending || step.HeldBy == runs.HeldByPerson || len(step.Held) > 0 ||
		step.Loop != nil && step.Loop.Waiting > 0)
}

// needsReason reports whether a button has an input for a reason next to it. Others ask for the reason when they are
// confirmed.
func needsReason(actions []action) bool {
	return slices.ContainsFunc(actions, func(one action) bool {
		_, asks := confirmed[one.Command]
		return !asks
	})
}

// order is the command in a form.
type order struct {
	steer.Command
	Index       string
	Concurrency string
	Rate        string
}

// readOrder parses a form.
func readOrder(form url.Values, by string) (order, error) {
	o := order{
		Command: steer.Command{Name: form.Get("command"), CommandInput: protocol.CommandInput{
			Step: form.Get("step"), Reason: strings.TrimSpace(form.Get("reason")), By: source.CutText(by, protocol.MaxSaid),
		}},
		Index: strings.TrimSpace(form.Get("index")), Concurrency: strings.TrimSpace(form.Get("max_concurrency")), Rate: strings.TrimSpace(form.Get("rate_limit")),
	}
	switch o.Name {
	case steer.Pause, steer.Resume, steer.RetryNow, steer.Skip, steer.Set, steer.Cancel, runAgain, reprocess:
	default:
		return o, &pageError{http.StatusBadRequest, "There is no such command."}
	}
	if len(o.Reason) > protocol.MaxSaid {
		return o, &pageError{http.StatusBadRequest, "The reason is too long: it may have " + strconv.Itoa(protocol.MaxSaid) + " bytes."}
	}
	if o.Index != "" && (o.Name == steer.RetryNow || o.Name == steer.Skip || o.Name == reprocess) {
		index, err := strconv.Atoi(o.Index)
		if err != nil || index < 0 || o.Step == "" {
			return o, &pageError{http.StatusBadRequest, "An iteration is named by its index: a number from 0."}
		}
		o.Command.Index = &index
	}
	if o.Name == steer.Set {
		return o.readTuned()
	}
	return o, nil
}

// readTuned parses the settings of a tune command.
func (o order) readTuned() (order, error) {
	var words []string
	if o.Concurrency != "" {
		words = append(words, steer.KeyConcurrency+"="+o.Concurrency)
	}
	if o.Rate != "" {
		words = append(words, steer.KeyRate+"="+o.Rate)
	}
	tuning, err := steer.ParseTuning(words)
	if err != nil {
		return o, &pageError{http.StatusBadRequest, toSentence(err.Error())}
	}
	o.Tuning = &tuning
	return o, nil
}

// toSentence returns a text with a capital first letter and a full stop.
func toSentence(text string) string {
	if text = strings.TrimSuffix(text, "."); text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:] + "."
}

// confirmView is the content of a page that asks for confirmation.
type confirmView struct {
	Run            runs.Found
	Command        string
	Name, What     string
	Step, Index    string
	Reason         string
	NeedsReason    bool
	Back           string
	IsDestructive  bool
	StatusOfTheRun interpreter.Status
}

// statusSentence returns what follows the name of a run in a sentence about its status.
func statusSentence(status interpreter.Status) string {
	switch status {
	case interpreter.Partial:
		return "succeeded in part"
	case interpreter.Cancelled, interpreter.Skipped:
		return "was " + status.DisplayWord()
	case interpreter.Failed, interpreter.Completed:
		return status.DisplayWord()
	case interpreter.RetryPending:
		return "waits for a retry"
	case interpreter.Awaiting:
		return "awaits an answer"
	}
	return "is " + status.DisplayWord()
}

// confirmPage asks for confirmation of a command that cannot be undone.
func (s *Server) confirmPage(w http.ResponseWriter, r *http.Request, v *visit) error {
	o, err := readOrder(r.URL.Query(), v.person.Name)
	if err != nil {
		return err
	}
	what, known := confirmed[o.Name]
	if !known {
		return &pageError{http.StatusBadRequest, "There is nothing to confirm."}
	}
	found, err := s.findRun(r)
	if err != nil {
		return err
	}
	name := map[string]string{
		steer.Cancel: "Cancel the run", steer.Skip: "Skip", runAgain: "Run again", reprocess: "Run failed iterations again",
	}[o.Name]
	if o.Name == steer.Skip {
		name = "Skip what waits in step " + o.Step
		if o.Index != "" {
			name += ", iteration " + o.Index
		}
	}
	if o.Name == reprocess && o.Step != "" {
		name = "Run failed iterations of step " + o.Step + " again"
		if o.Index != "" {
			name = "Run iteration " + o.Index + " of step " + o.Step + " again"
		}
	}
	v.frame.Title, v.frame.Section = name, "/"
	s.writePage(w, v, http.StatusOK, "confirm", confirmView{
		Run: found, Command: o.Name, Name: name, What: what, Step: o.Step, Index: o.Index, Reason: o.Reason,
		NeedsReason: o.Name == steer.Skip, Back: backLink(found.WorkflowID, o.Step),
		IsDestructive: o.Name == steer.Cancel || o.Name == steer.Skip, StatusOfTheRun: found.Status,
	})
	return nil
}

// backLink returns the page on which a command was given.
func backLink(id, step string) string {
	if step != "" {
		return stepPath(id, step)
	}
	return runPath(id)
}

// changeRun carries out the command of a form, and redirects to the page it was on. A command that cannot be undone
// must have been confirmed.
func (s *Server) changeRun(w http.ResponseWriter, r *http.Request, v *visit) error {
	id := r.PathValue("id")
	o, err := readOrder(r.PostForm, v.person.Name)
	if err != nil {
		return err
	}
	if _, ask := confirmed[o.Name]; ask && r.PostForm.Get("confirmed") != "yes" {
		query := url.Values{"command": {o.Name}}
		for name, value := range map[string]string{"step": o.Step, "index": o.Index, "reason": o.Reason, "run": r.PostForm.Get("run")} {
			if value != "" {
				query.Set(name, value)
			}
		}
		http.Redirect(w, r, runPath(id)+"/confirm?"+query.Encode(), http.StatusSeeOther)
		return nil
	}
	if o.Name == steer.Skip && o.Reason == "" {
		return &pageError{http.StatusBadRequest, "Give a reason: a skipped step counts as failed."}
	}
	found, err := s.findRun(r)
	if err != nil {
		return err
	}
	target := audit.ActionTarget{Run: found.WorkflowID, RunID: found.RunID, Step: o.Step, Index: o.Command.Index}
	var said flash
	if err := s.changes.make(v, actionOf(o.Name), target, func(*audit.ActionTarget) (outcome audit.ActionOutcome, err error) {
		said, outcome, err = s.carryOut(r.Context(), o, found)
		return outcome, err
	}); err != nil {
		return err
	}
	s.redirectTo(w, r, v, backLink(found.WorkflowID, o.Step), said)
	return nil
}

// carryOut carries out the command of a form.
func (s *Server) carryOut(ctx context.Context, o order, found runs.Found) (flash, audit.ActionOutcome, error) {
	again := map[string]func(context.Context, runs.Found, ChangedBy) (string, error){runAgain: s.Again}
	if s.Reprocess != nil {
		again[reprocess] = func(ctx context.Context, run runs.Found, said ChangedBy) (string, error) {
			return s.Reprocess(ctx, run, Only{Step: o.Step, Index: o.Command.Index}, said)
		}
	}
	start := again[o.Name]
	if o.Name != runAgain && o.Name != reprocess {
		result := s.newSender().SendOne(ctx, o.Command, found)
		return flash{Text: toSentence(result.Message), Bad: result.Failed()}, outcomeOf(result.Outcome), nil
	}
	if start == nil {
		return flash{}, audit.Refused, &pageError{http.StatusBadRequest, "Runs cannot be started here."}
	}
	id, err := start(ctx, found, ChangedBy{By: o.By, Reason: o.Reason})
	if err != nil {
		return flash{Text: toSentence(err.Error()), Bad: true}, audit.Failed, nil
	}
	return flash{Text: "Started another run:", Run: id}, audit.Done, nil
}
