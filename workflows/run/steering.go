package run

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
	"reprise/workflows/control"
	"reprise/workflows/gate"
	"reprise/workflows/protocol"
)

// steering is the part of a run that handles commands of people.
type steering struct {
	*frame
	*visits
	queues  queueControl
	routing *interpreter.Routing
	// paused sends the notices of a pause, describe updates the displayed status of the run, and publish the search
	// attribute.
	paused   func(workflow.Context, protocol.CommandInput)
	describe func(workflow.Context)
	publish  func(workflow.Context, interpreter.Control)
}

// queueControl is what commands can do with the slots of a run.
type queueControl interface {
	// isWaitingForSlot reports whether the run waits for its slot, and requestAgain makes it repeat the request.
	isWaitingForSlot() bool
	requestAgain()
	// waitingVisits returns how many of the visits that a command applies to wait for the state of their step, and
	// settle ends their waits.
	waitingVisits(command protocol.CommandInput) int
	settleTickets(command protocol.CommandInput, settlement interpreter.Settlement) (ended int)
}

// serveUpdates sets the handlers of all updates of the run: commands of people, and answers.
func (s *steering) serveUpdates(ctx workflow.Context) error {
	for _, update := range []struct {
		name  string
		check func(protocol.CommandInput) error
		do    func(workflow.Context, protocol.CommandInput) (protocol.CommandResult, error)
	}{
		{protocol.PauseUpdate, s.checkPause, s.pauseStep},
		{protocol.ResumeUpdate, s.checkResume, s.resumeStep},
		{protocol.RetryNowUpdate, s.checkRetryNow, s.retryNow},
		{protocol.SkipUpdate, s.checkSkip, s.skipWaits},
		{protocol.SetUpdate, s.checkSet, s.setTuning},
	} {
		check := func(command protocol.CommandInput) error {
			return cmp.Or(s.checkRoom(update.name, command), update.check(command))
		}
		if err := control.HandleUpdate(ctx, s.controls, &s.controls.Commands, update.name, check, update.do); err != nil {
			return err
		}
	}
	return s.controls.ServeAnswers(ctx)
}

const (
	// mostCommands is the number of commands and answers after which a history refuses further commands, until the
	// run has continued as new. Temporal rejects all updates of a history that has 2,000 of them, even those that
	// pause or resume the run.
	mostCommands = 2 * gate.ManyUpdates
	// mostUrgent is the number after which a history also refuses to pause and resume the whole run.
	mostUrgent = 3 * gate.ManyUpdates
)

// checkRoom returns an error if the run's history has no room for a command. A run continues as new only between
// its steps, and Temporal would at some point reject all commands.
func (s *steering) checkRoom(update string, command protocol.CommandInput) error {
	most, urgent := mostCommands, "the whole run can still be paused, resumed and cancelled"
	if command.Step == "" && (update == protocol.PauseUpdate || update == protocol.ResumeUpdate) {
		most, urgent = mostUrgent, "it can still be cancelled"
	}
	if s.controls.Updates < most {
		return nil
	}
	return fmt.Errorf("the run has accepted %d commands and answers since it last continued as new, which it does when %s has ended; until then, %s",
		s.controls.Updates, cmp.Or(strings.Join(s.runningSteps(), " and "), "what is running"), urgent)
}

// commandedStep returns the step of a command, nil if it is for the whole run.
func (s *steering) commandedStep(command protocol.CommandInput) (*playbook.Step, error) {
	if len(command.Reason) > protocol.MaxSaid || len(command.By) > protocol.MaxSaid {
		return nil, fmt.Errorf("reason and by may have at most %d bytes each", protocol.MaxSaid)
	}
	if command.Step == "" {
		if command.Index != nil {
			return nil, errors.New("an index needs a step")
		}
		return nil, nil
	}
	step := s.book.Step(command.Step)
	switch {
	case step == nil:
		return nil, fmt.Errorf("the playbook has no step %q; its steps are %s", command.Step, strings.Join(s.stepNames(), ", "))
	case step.IsSource():
		return nil, fmt.Errorf("the source of a loop is steered with its step; write %s", playbook.LoopStep(step.Name))
	case command.Index != nil && step.Loop == nil:
		return nil, fmt.Errorf("step %s has no loop, so it has no iteration %d; omit the index", step.Name, *command.Index)
	case command.Index != nil && *command.Index < 0:
		return nil, fmt.Errorf("iterations are numbered from 0, so there is no iteration %d", *command.Index)
	}
	return step, nil
}

func (s *steering) stepNames() []string {
	return lists.Map(s.book.Steps, func(step *playbook.Step) string { return step.Name })
}

func (s *steering) checkPause(command protocol.CommandInput) error {
	step, err := s.commandedStep(command)
	if err != nil || step == nil {
		return err // a pause of all of it always has room
	}
	if step.Action == nil {
		return fmt.Errorf("step %s does not call a tool, so it cannot be paused; pause the run, or a step that calls a tool", step.Name)
	}
	return cmp.Or(s.checkAhead(step), s.checkSize(command, protocol.CommandInput.ApplyPause))
}

// checkAhead returns an error for a step that will not run any more.
func (s *steering) checkAhead(step *playbook.Step) error {
	for _, record := range slices.Backward(s.records) {
		if record.Step == step.Name && record.EndedAt.IsZero() {
			return nil
		}
	}
	if s.routing.Visits[step.Name] > 0 {
		return fmt.Errorf("step %s has ended; running: %s", step.Name, cmp.Or(strings.Join(s.runningSteps(), ", "), "nothing"))
	}
	return nil
}

func (s *steering) checkResume(command protocol.CommandInput) error {
	step, err := s.commandedStep(command)
	switch {
	case err != nil || step == nil:
		return err
	case s.controls.Paused:
		return fmt.Errorf("the whole run is paused, not only step %s; resume the run", step.Name)
	}
	return nil
}

// checkRetryNow returns an error if nothing waits, or if what waits is paused.
func (s *steering) checkRetryNow(command protocol.CommandInput) error {
	if err := s.checkSettle(command); err != nil {
		return err
	}
	switch {
	case s.controls.Paused:
		return errors.New("the run is paused; resume it first")
	case command.Step != "" && s.controls.IsPaused(command.Step):
		return fmt.Errorf("step %s is paused; resume it first", command.Step)
	}
	return nil
}

func (s *steering) checkSkip(command protocol.CommandInput) error {
	if command.Step == "" {
		return errors.New("name the step that should fail")
	}
	return s.checkSettle(command)
}

// checkSettle returns an error if nothing waits. For a loop it cannot be known which iterations wait.
func (s *steering) checkSettle(command protocol.CommandInput) error {
	step, err := s.commandedStep(command)
	if err != nil {
		return err
	}
	settlement := protocol.ItemSettlement{Step: command.Step, Index: command.Index}
	for _, wait := range s.controls.Waits { // including the moves of an ended step
		if settlement.IsAbout(wait.Step, wait.Index) {
			return nil
		}
	}
	if step != nil {
		if !slices.Contains(s.runningSteps(), step.Name) {
			return fmt.Errorf("step %s is not running, so it is not waiting; running: %s",
				step.Name, cmp.Or(strings.Join(s.runningSteps(), ", "), "nothing"))
		}
		if err := s.checkIndex(step, command.Index); err != nil {
			return err
		}
	}
	if step == nil && s.queues.isWaitingForSlot() || s.queues.waitingVisits(command) > 0 {
		return nil
	}
	if len(s.controls.Children) > 0 && (step == nil || step.Loop != nil || s.isInChild(step)) {
		return nil
	}
	return fmt.Errorf("nothing waits: %s", s.doingText(step))
}

// checkIndex returns an error for an iteration that the loop of a step does not have.
func (s *steering) checkIndex(step *playbook.Step, index *int) error {
	if index == nil {
		return nil
	}
	for _, record := range slices.Backward(s.records) {
		if record.Step == step.Name && record.Loop != nil && !record.Loop.Open && s.input.Reprocess == nil && *index >= record.Loop.Stats.Total {
			return fmt.Errorf("step %s has %d iterations, 0 to %d, and no iteration %d",
				step.Name, record.Loop.Stats.Total, record.Loop.Stats.Total-1, *index)
		}
	}
	return nil
}

// doingText describes what a step that does not wait is doing; for nil, what all of them are.
func (s *steering) doingText(step *playbook.Step) string {
	for _, record := range s.records {
		if call := s.live[record]; call != nil && (step == nil || record.Step == step.Name) {
			if call.View().AwaitedDetails() != nil {
				return fmt.Sprintf("step %s awaits an answer; %s", record.Step, gate.AnswerCommand(s.id, record.Step, nil, call.View().AwaitedDetails()))
			}
			return fmt.Sprintf("attempt %d of step %s is running", call.View().Attempt, record.Step)
		}
	}
	return "no attempt is due"
}

func (s *steering) checkSet(command protocol.CommandInput) error {
	step, err := s.commandedStep(command)
	switch {
	case err != nil:
		return err
	case step == nil || command.Index != nil:
		return errors.New("name the step that the setting is for")
	case command.Tuning == nil || *command.Tuning == (interpreter.Tuning{}):
		return errors.New("the command sets nothing; it can set max_concurrency and rate")
	case step.Action == nil:
		return fmt.Errorf("step %s does not call a tool, so there is nothing to set", step.Name)
	case command.Tuning.MaxConcurrency != 0 && (step.Loop == nil || step.Loop.Mode != playbook.Parallel):
		return fmt.Errorf("step %s has no parallel loop, so there is no max_concurrency to set", step.Name)
	}
	if s.book.ResolveAction(step.Action).ToolTraits().Plays && command.Tuning.Rate != nil {
		return fmt.Errorf("step %s runs another playbook, whose steps have their own limits; set their rate limits in that run", step.Name)
	}
	return cmp.Or(command.Tuning.Check(), s.checkAhead(step), s.checkSize(command, protocol.CommandInput.ApplyTuning))
}

func (s *steering) pauseStep(ctx workflow.Context, command protocol.CommandInput) (protocol.CommandResult, error) {
	result, err := s.changeControl(ctx, command, false, protocol.CommandInput.ApplyPause)
	if err == nil && result.Changed {
		s.paused(ctx, command)
	}
	return result, err
}

func (s *steering) resumeStep(ctx workflow.Context, command protocol.CommandInput) (protocol.CommandResult, error) {
	return s.changeControl(ctx, command, true, protocol.CommandInput.ApplyResume)
}

func (s *steering) setTuning(ctx workflow.Context, command protocol.CommandInput) (protocol.CommandResult, error) {
	return s.changeControl(ctx, command, false, protocol.CommandInput.ApplyTuning)
}

// changedControl returns the control of the run after a command; false if the command changes nothing.
func (s *steering) changedControl(
	command protocol.CommandInput, at time.Time, changes func(protocol.CommandInput, *interpreter.Control) bool,
) (control interpreter.Control, changed bool) {
	control = s.controls.Control
	if changed = changes(command, &control); changed {
		control.RecordSaid(interpreter.Said{Reason: command.Reason, By: command.By, At: at})
	}
	return control, changed
}

// checkSize returns an error if, after a command, the run's pauses and settings would exceed the size of its memo.
func (s *steering) checkSize(command protocol.CommandInput, changes func(protocol.CommandInput, *interpreter.Control) bool) error {
	control, changed := s.changedControl(command, s.Run.StartedAt, changes)
	if !changed {
		return nil
	}
	return control.CheckSize()
}

// changeControl changes the control of the run, stores it in the memo, where attempts read it, and sends it to the
// child workflows that have to act.
func (s *steering) changeControl(
	ctx workflow.Context, command protocol.CommandInput, resumes bool, changes func(protocol.CommandInput, *interpreter.Control) bool,
) (protocol.CommandResult, error) {
	control, changed := s.changedControl(command, workflow.Now(ctx), changes)
	if !changed {
		return protocol.CommandResult{Control: control}, nil
	}
	if err := workflow.UpsertMemo(ctx, map[string]any{interpreter.ControlMemo: control}); err != nil {
		return protocol.CommandResult{}, fmt.Errorf("write the memo: %w", err)
	}
	s.publish(ctx, control)
	_, signalled := s.controls.Apply(ctx, protocol.Steering{Control: control, Resumes: resumes})
	s.describe(ctx)
	return protocol.CommandResult{Changed: true, Control: control, Signalled: signalled}, nil
}

func (s *steering) retryNow(ctx workflow.Context, command protocol.CommandInput) (protocol.CommandResult, error) {
	if command.Step == "" && s.queues.isWaitingForSlot() { // for its slot, and no step has begun
		s.queues.requestAgain()
		return protocol.CommandResult{Changed: true, Control: s.controls.Control, Ended: 1}, nil
	}
	return s.settleWaits(ctx, command, false)
}

func (s *steering) skipWaits(ctx workflow.Context, command protocol.CommandInput) (protocol.CommandResult, error) {
	return s.settleWaits(ctx, command, true)
}

// settleWaits ends the waits that a command applies to: the calls are retried now, or skipped.
func (s *steering) settleWaits(ctx workflow.Context, command protocol.CommandInput, skip bool) (protocol.CommandResult, error) {
	settlement := interpreter.Settlement{Skip: skip, Reason: command.Reason, By: command.By}
	settled := s.queues.settleTickets(command, settlement)
	ended, signalled := s.controls.Apply(ctx, protocol.Steering{Control: s.controls.Control, Settle: &protocol.ItemSettlement{
		Step: command.Step, Index: command.Index, Settlement: settlement,
	}})
	ended += settled
	return protocol.CommandResult{Changed: ended > 0 || signalled, Control: s.controls.Control, Ended: ended, Signalled: signalled}, nil
}

// actsOnStep returns a filter for what the loop or the call of a step is signalled: changes of control, and
// decisions about that step.
func actsOnStep(name string) func(protocol.Steering) bool {
	return func(steering protocol.Steering) bool {
		return steering.Settle == nil || steering.Settle.Step == "" || steering.Settle.Step == name
	}
}
