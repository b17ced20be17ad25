package workflows

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
)

// The updates with which people steer a run (docs/how-to/steer-a-run.md).
// Each takes a Command and answers with a CommandResult; any SDK can send them. They
// are part of histories, so their names never change.
const (
	PauseUpdate    = "pause"
	ResumeUpdate   = "resume"
	RetryNowUpdate = "retry_now"
	SkipUpdate     = "skip"
	SetUpdate      = "set"
)

// CommandInput is the argument of the updates; kept in workflow history. Which fields
// are read depends on the update.
type CommandInput struct {
	// Step is the one that is meant; "" is the run.
	Step string `json:"step,omitempty"`
	// Index is the iteration of the step's loop; nil is all that wait.
	Index *int `json:"index,omitempty"`
	// Reason and By say why, and who.
	Reason string `json:"reason,omitempty"`
	By     string `json:"by,omitempty"`
	// Tuning is what SetUpdate sets.
	Tuning *interpreter.Tuning `json:"tuning,omitempty"`
}

// CommandResult is the control of a run after a command: the answer to an update.
type CommandResult struct {
	// Changed is false where it was so already.
	Changed bool                `json:"changed"`
	Control interpreter.Control `json:"control"`
	// Ended is how many waits the command has ended in the run's own history. Those in
	// loops are ended by the loops, and Signalled says that there are some.
	Ended     int  `json:"ended,omitempty"`
	Signalled bool `json:"signalled,omitempty"`
}

// serveUpdates sets the handlers of all updates of the run: commands of people, and answers.
func (r *run) serveUpdates(ctx workflow.Context) error {
	for _, update := range []struct {
		name  string
		check func(CommandInput) error
		do    func(workflow.Context, CommandInput) (CommandResult, error)
	}{
		{PauseUpdate, r.checkPause, r.pause},
		{ResumeUpdate, r.checkResume, r.resume},
		{RetryNowUpdate, r.checkRetryNow, r.retryNow},
		{SkipUpdate, r.checkSkip, r.skip},
		{SetUpdate, r.checkSet, r.set},
	} {
		check := func(command CommandInput) error {
			return cmp.Or(r.checkRoom(update.name, command), update.check(command))
		}
		if err := onUpdate(ctx, r.controls, &r.controls.commands, update.name, check, update.do); err != nil {
			return err
		}
	}
	return r.controls.serveAnswers(ctx)
}

// mostCommands is how many commands and answers a history of a run accepts before it
// refuses commands, which it does until it has continued as new. A pause and a resume
// of the whole run are refused after mostUrgent.
const (
	mostCommands = 2 * manyUpdates
	mostUrgent   = 3 * manyUpdates
)

// checkRoom refuses a command for which the run's history has no room. A run continues as
// new between its steps only, and Temporal would refuse all commands at some point.
func (r *run) checkRoom(update string, command CommandInput) error {
	most, urgent := mostCommands, "pause and resume of the whole run, and its cancel, are still possible"
	if command.Step == "" && (update == PauseUpdate || update == ResumeUpdate) {
		most, urgent = mostUrgent, "its cancel is still possible"
	}
	if r.controls.updates < most {
		return nil
	}
	return fmt.Errorf("the run has taken %d commands and answers since it last continued as new, which it does when %s has ended; until then %s",
		r.controls.updates, cmp.Or(strings.Join(r.runningSteps(), " and "), "what is running"), urgent)
}

// MaxSaid bounds the texts of a command, in bytes: they are in memos, summaries and
// messages.
const MaxSaid = 500

// commanded finds the step of a command, nil where it means the run.
func (r *run) commanded(command CommandInput) (*playbook.Step, error) {
	if len(command.Reason) > MaxSaid || len(command.By) > MaxSaid {
		return nil, fmt.Errorf("reason and by may have %d bytes each", MaxSaid)
	}
	if command.Step == "" {
		if command.Index != nil {
			return nil, errors.New("an index needs the step whose iteration it is")
		}
		return nil, nil
	}
	step := r.book.Step(command.Step)
	switch {
	case step == nil:
		return nil, fmt.Errorf("the playbook has no step %q; its steps are %s", command.Step, strings.Join(r.stepNames(), ", "))
	case command.Index != nil && step.Loop == nil:
		return nil, fmt.Errorf("step %s has no loop, so it has no iteration %d; leave the index out", step.Name, *command.Index)
	case command.Index != nil && *command.Index < 0:
		return nil, fmt.Errorf("iterations are counted from 0, so there is no iteration %d", *command.Index)
	}
	return step, nil
}

func (r *run) stepNames() []string {
	return lists.Map(r.book.Steps, func(step *playbook.Step) string { return step.Name })
}

func (r *run) checkPause(command CommandInput) error {
	step, err := r.commanded(command)
	if err != nil || step == nil {
		return err // a pause of all of it always has room
	}
	if step.Action == nil {
		return fmt.Errorf("step %s calls no tool, so there is nothing to hold; pause the run, or a step that calls one", step.Name)
	}
	return cmp.Or(r.ahead(step), r.checkSize(command, CommandInput.pauses))
}

// ahead refuses a step of which nothing is to come.
func (r *run) ahead(step *playbook.Step) error {
	for _, record := range slices.Backward(r.records) {
		if record.Step == step.Name && record.EndedAt.IsZero() {
			return nil
		}
	}
	if r.Routing.Visits[step.Name] > 0 {
		return fmt.Errorf("step %s has ended; running: %s", step.Name, cmp.Or(strings.Join(r.runningSteps(), ", "), "nothing"))
	}
	return nil
}

// runningSteps are the names of the steps that have begun and not ended.
func (r *run) runningSteps() []string {
	var names []string
	for _, record := range r.records {
		if record.EndedAt.IsZero() && !slices.Contains(names, record.Step) {
			names = append(names, record.Step)
		}
	}
	return names
}

func (r *run) checkResume(command CommandInput) error {
	step, err := r.commanded(command)
	switch {
	case err != nil || step == nil:
		return err
	case r.controls.Paused:
		return fmt.Errorf("the run is paused, not step %s alone; resume the run", step.Name)
	}
	return nil
}

// checkRetryNow refuses where nothing waits, or where what waits is held anyway.
func (r *run) checkRetryNow(command CommandInput) error {
	if err := r.checkSettle(command); err != nil {
		return err
	}
	switch {
	case r.controls.Paused:
		return errors.New("the run is paused, so nothing is tried now; resume it first")
	case command.Step != "" && r.controls.IsPaused(command.Step):
		return fmt.Errorf("step %s is paused, so nothing of it is tried now; resume it first", command.Step)
	}
	return nil
}

func (r *run) checkSkip(command CommandInput) error {
	if command.Step == "" {
		return errors.New("say which step is meant: what is skipped fails")
	}
	return r.checkSettle(command)
}

// checkSettle refuses where nothing waits. Only a loop knows which of its iterations
// wait.
func (r *run) checkSettle(command CommandInput) error {
	step, err := r.commanded(command)
	if err != nil {
		return err
	}
	settlement := ItemSettlement{Step: command.Step, Index: command.Index}
	for _, wait := range r.controls.waits { // also the moves of a step that has ended
		if settlement.Means(wait.step, wait.index) {
			return nil
		}
	}
	if step != nil {
		if !slices.Contains(r.runningSteps(), step.Name) {
			return fmt.Errorf("step %s is not running, so nothing of it waits; running: %s",
				step.Name, cmp.Or(strings.Join(r.runningSteps(), ", "), "nothing"))
		}
		if err := r.checkIndex(step, command.Index); err != nil {
			return err
		}
	}
	if step == nil && r.Ticket.Waits() || len(r.waitingTurns(command)) > 0 {
		return nil
	}
	if len(r.controls.children) > 0 && (step == nil || step.Loop != nil || r.isInChild(step)) {
		return nil
	}
	return fmt.Errorf("nothing waits: %s", r.doing(step))
}

// checkIndex refuses an iteration that the loop of a step does not have.
func (r *run) checkIndex(step *playbook.Step, index *int) error {
	if index == nil {
		return nil
	}
	for _, record := range slices.Backward(r.records) {
		if record.Step == step.Name && record.Loop != nil && r.input.Reprocess == nil && *index >= record.Loop.Stats.Total {
			return fmt.Errorf("step %s has %d iterations, 0 to %d, and no iteration %d",
				step.Name, record.Loop.Stats.Total, record.Loop.Stats.Total-1, *index)
		}
	}
	return nil
}

// isInChild reports whether the call of a step continues in a child workflow.
func (r *run) isInChild(step *playbook.Step) bool {
	return slices.ContainsFunc(r.records, func(record *StepRecord) bool {
		return record.Step == step.Name && record.Call != "" && record.EndedAt.IsZero()
	})
}

// doing says what a step is doing that does not wait, or all of them.
func (r *run) doing(step *playbook.Step) string {
	for _, record := range r.records {
		if call := r.live[record]; call != nil && (step == nil || record.Step == step.Name) {
			if call.View().AwaitedDetails() != nil {
				return fmt.Sprintf("step %s awaits an answer; %s", record.Step, answerCommand(r.id, record.Step, nil, call.View().AwaitedDetails()))
			}
			return fmt.Sprintf("attempt %d of step %s is running", call.View().Attempt, record.Step)
		}
	}
	return "no attempt is due"
}

func (r *run) checkSet(command CommandInput) error {
	step, err := r.commanded(command)
	switch {
	case err != nil:
		return err
	case step == nil || command.Index != nil:
		return errors.New("what is set is set for a step; say which")
	case command.Tuning == nil || *command.Tuning == (interpreter.Tuning{}):
		return errors.New("nothing is set; max_concurrency and rate can be")
	case step.Action == nil:
		return fmt.Errorf("step %s calls no tool, so there is nothing to set", step.Name)
	case command.Tuning.MaxConcurrency != 0 && (step.Loop == nil || step.Loop.Mode != playbook.Parallel):
		return fmt.Errorf("step %s has no parallel loop, so there is no max_concurrency to set", step.Name)
	}
	if r.book.Resolve(step.Action).Traits().Plays && command.Tuning.Rate != nil {
		return fmt.Errorf("step %s runs another playbook, whose steps have limits of their own; set the rate limit of those, in its run", step.Name)
	}
	return cmp.Or(command.Tuning.Check(), r.ahead(step), r.checkSize(command, CommandInput.tunes))
}

func (r *run) pause(ctx workflow.Context, command CommandInput) (CommandResult, error) {
	result, err := r.change(ctx, command, false, CommandInput.pauses)
	if err == nil && result.Changed {
		r.notifyPaused(ctx, command)
	}
	return result, err
}

func (r *run) resume(ctx workflow.Context, command CommandInput) (CommandResult, error) {
	return r.change(ctx, command, true, CommandInput.resumes)
}

func (r *run) set(ctx workflow.Context, command CommandInput) (CommandResult, error) {
	return r.change(ctx, command, false, CommandInput.tunes)
}

// Each function applies a command to the control of a run; false where nothing changes.

func (c CommandInput) pauses(control *interpreter.Control) bool  { return control.Pause(c.Step) }
func (c CommandInput) resumes(control *interpreter.Control) bool { return control.Resume(c.Step) }

func (c CommandInput) tunes(control *interpreter.Control) bool {
	control.Tune(c.Step, *c.Tuning)
	return true
}

// changed is the control of the run after a command; false where that is nothing new.
func (r *run) changed(
	command CommandInput, at time.Time, changes func(CommandInput, *interpreter.Control) bool,
) (control interpreter.Control, changed bool) {
	control = r.controls.Control
	if changed = changes(command, &control); changed {
		control.Record(interpreter.Said{Reason: command.Reason, By: command.By, At: at})
	}
	return control, changed
}

// checkSize refuses a command with which the run would keep too much of them.
func (r *run) checkSize(command CommandInput, changes func(CommandInput, *interpreter.Control) bool) error {
	control, changed := r.changed(command, r.Run.StartedAt, changes)
	if !changed {
		return nil
	}
	return control.CheckSize()
}

// change changes the control of the run: it is written where attempts see it, and
// passed on to the workflows that have to act.
func (r *run) change(
	ctx workflow.Context, command CommandInput, resumes bool, changes func(CommandInput, *interpreter.Control) bool,
) (CommandResult, error) {
	control, changed := r.changed(command, workflow.Now(ctx), changes)
	if !changed {
		return CommandResult{Control: control}, nil
	}
	if err := workflow.UpsertMemo(ctx, map[string]any{interpreter.ControlMemo: control}); err != nil {
		return CommandResult{}, fmt.Errorf("write the memo: %w", err)
	}
	r.publishOpen(ctx, control)
	_, signalled := r.controls.apply(ctx, Steering{Control: control, Resumes: resumes})
	r.describe(ctx)
	return CommandResult{Changed: true, Control: control, Signalled: signalled}, nil
}

func (r *run) retryNow(ctx workflow.Context, command CommandInput) (CommandResult, error) {
	if command.Step == "" && r.Ticket.Waits() { // for its turn, and no step has begun
		r.requestsTurn = true
		return CommandResult{Changed: true, Control: r.controls.Control, Ended: 1}, nil
	}
	return r.settle(ctx, command, false)
}

func (r *run) skip(ctx workflow.Context, command CommandInput) (CommandResult, error) {
	return r.settle(ctx, command, true)
}

// settle ends waits: the items are tried again now, or skipped.
func (r *run) settle(ctx workflow.Context, command CommandInput, skip bool) (CommandResult, error) {
	settlement := interpreter.Settlement{Skip: skip, Reason: command.Reason, By: command.By}
	turns := r.settleTurns(command, settlement)
	ended, signalled := r.controls.apply(ctx, Steering{Control: r.controls.Control, Settle: &ItemSettlement{
		Step: command.Step, Index: command.Index, Settlement: settlement,
	}})
	ended += turns
	return CommandResult{Changed: ended > 0 || signalled, Control: r.controls.Control, Ended: ended, Signalled: signalled}, nil
}

// actsOnStep is what the loop or the call of a step is signalled: all that changes the
// run, and decisions about that step.
func actsOnStep(name string) func(Steering) bool {
	return func(steering Steering) bool {
		return steering.Settle == nil || steering.Settle.Step == "" || steering.Settle.Step == name
	}
}
