package workflows

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
	"reprise/interpreter/source"
)

// A step may run another playbook. The child run is a run as any other, a child of the
// workflow that makes the step's attempts: it is validated by itself, and people find,
// pause and cancel it by its own ID. Of its parent it knows only whether that holds it.

// play makes an attempt by running another playbook to its end.
func (d *driver) play(ctx workflow.Context, in interpreter.ToolInput) interpreter.Outcome {
	if d.host == nil {
		return failedOutcome(interpreter.ClassFinal, "step %s: a sink cannot run a playbook", in.Step)
	}
	task := controlsOf(ctx).task(d.host.task)
	nesting := cmp.Or(task.Nesting, &call.Nesting{})
	if nesting.Depth >= playbook.MaxNesting {
		outcome := failedOutcome(interpreter.ClassFinal, "step %s: playbooks may run each other %d deep, and this one is as deep", in.Step, playbook.MaxNesting)
		outcome.Err.Final = true
		return outcome
	}
	callee, failure := d.call.Config().Callee(in, nesting.Files)
	if failure != nil {
		return interpreter.Outcome{Err: failure}
	}
	if refused := d.admit(ctx, nesting.Tree, in.Step); refused != nil {
		return *refused
	}
	id := playID(task, in)
	if d.plays != nil {
		d.plays(id)
	}
	input := Input{
		Name: callee.Name, Source: callee.Source, Workload: callee.Workload, Strict: nesting.Strict,
		SearchAttributes: nesting.SearchAttributes, DeadLetters: nesting.DeadLetters, NextRetry: nesting.NextRetry,
		Files: nesting.Files, Partition: callee.Partition, FullRefresh: playbook.Within(in.Step, task.Run.FullRefresh),
		Called: &Called{
			Step: in.Step, Visit: in.Visit, Index: in.Index, Page: in.Page, Attempt: in.Attempt, Depth: nesting.Depth + 1,
			Tree: nesting.Tree, ScheduledAt: nesting.ScheduledAt,
			Key: in.OperationKey, Lap: task.Run.ChildLap(in.Attempt), Recall: d.recall(task, nesting, in),
		},
	}
	if !callee.Wait {
		return playDetached(ctx, id, input, in)
	}
	input.Called.Parents = controlsOf(ctx).parentsOfChild(in.Step, nesting.Queue)
	return playChild(ctx, id, input, in)
}

// playID is the workflow ID of the run that an attempt starts.
func playID(task Task, in interpreter.ToolInput) string {
	return childID(task, fmt.Sprintf("%s!%d", indexSuffix(in), in.Attempt))
}

func indexSuffix(in interpreter.ToolInput) string {
	if in.Index == nil {
		return ""
	}
	return fmt.Sprintf("/%d", *in.Index)
}

// playChild runs a playbook as a child and waits for its end, as long as the attempt
// may take.
func playChild(ctx workflow.Context, id string, input Input, in interpreter.ToolInput) interpreter.Outcome {
	scope, cancel := workflow.WithCancel(ctx)
	late, limit := false, in.Timeout()
	if limit > 0 {
		mark := interpreter.TimerMark{Call: in.Step, Index: in.Index, Limits: in.Attempt}
		after(scope, limit, mark.Summary("timeout of "+attemptSummary(in)), func(ctx workflow.Context) {
			late = true
			cancel()
			ctx, _ = workflow.NewDisconnectedContext(ctx)
			cancelTree(ctx, interpreter.CancelTree{Tree: input.Called.Tree, Run: id})
		})
	}
	to := toChild(PlaybookWorkflowName, id, in.Step, attemptSummary(in), actsOnResumes)
	to.attributes = input.attributes()
	result, err := send[Result](scope, to, input, "what step "+in.Step+" passes to the playbook that it runs")
	cancel()
	outcome, ended := endOf(id, result, err)
	switch {
	case ctx.Err() != nil:
		return interpreter.Outcome{Err: cancelledError()}
	case late && !ended:
		return failedTimeout(id, limit)
	default:
		return outcome
	}
}

// playDetached starts a playbook that continues by itself.
func playDetached(ctx workflow.Context, id string, input Input, in interpreter.ToolInput) interpreter.Outcome {
	to := toDetached(PlaybookWorkflowName, id, attemptSummary(in))
	to.attributes = input.attributes()
	started, err := send[workflow.Execution](ctx, to, input, "what step "+in.Step+" passes to the playbook that it starts")
	switch {
	case err == nil:
		return interpreter.Outcome{Data: map[string]any{"workflow_id": started.ID, "run_id": started.RunID}}
	case abandoned(ctx, err):
		return interpreter.Outcome{Err: cancelledError()}
	}
	return EndOf(id, Result{}, err)
}

// EndOf is what the end of a run comes to for the attempt that has started it.
func EndOf(id string, result Result, err error) interpreter.Outcome {
	outcome, _ := endOf(id, result, err)
	return outcome
}

// endOf is EndOf; ended is false where the run was cancelled.
func endOf(id string, result Result, err error) (outcome interpreter.Outcome, ended bool) {
	if err != nil {
		return interpreter.Outcome{Err: playError(id, err)}, !isCancelled(err)
	}
	switch result.Status {
	case interpreter.Completed, interpreter.Partial:
		outcome = interpreter.Outcome{Data: result.Result.Data, Partial: result.Status == interpreter.Partial}
		if n := len(result.Warnings); n > 0 {
			outcome.Warnings = []string{fmt.Sprintf("the playbook that it ran has %s: %s", source.Count(n, "warning"), id)}
		}
		return outcome, true
	case interpreter.Skipped: // as its playbook asks, which is no failure
		return interpreter.Outcome{Warnings: []string{fmt.Sprintf("the playbook that it ran was skipped: %s", id)}}, true
	case interpreter.Cancelled:
		return interpreter.Outcome{Err: playError(id, temporal.NewCanceledError())}, false
	}
	failure := cmp.Or(result.Error, &interpreter.ErrorObject{Class: interpreter.ClassRetryable, Message: "it says nothing of its failure"})
	return interpreter.Outcome{Err: runFailed(id, failure)}, true
}

// runFailed is the failure of a run as its step has it. Where the cause is in a child
// run further down, that run is named, and not those between.
func runFailed(id string, cause *interpreter.ErrorObject) *interpreter.ErrorObject {
	in, message, shown := id, cause.ShortMessage(), cause.Shrunk()
	if below, _ := cause.Body.Data.(map[string]any); cause.Kind == interpreter.KindPlaybook && below != nil {
		deepest, _ := below["failed_in"].(string)
		text, _ := below["cause"].(string)
		if deepest != "" && text != "" {
			in, message = deepest, text
		}
		flat := *shown
		flat.Body = expression.Value{}
		shown = &flat
	}
	text := fmt.Sprintf("the run %s failed: %s", id, message)
	if in != id {
		text = fmt.Sprintf("the run %s failed, in %s: %s", id, in, message)
	}
	return &interpreter.ErrorObject{
		Kind: interpreter.KindPlaybook, Class: cause.Class, Status: cause.Status, Final: cause.Final, Type: string(cause.Kind), Message: text,
		URL: cause.URL,
		Body: expression.Of(map[string]any{
			"workflow_id": id, "status": string(interpreter.Failed), "error": shown.Value(), "failed_in": in, "cause": message,
		}),
	}
}

// playError is the failure of a run that has given no result.
func playError(id string, err error) *interpreter.ErrorObject {
	if failure, ours := isOurs(err); ours {
		return failure
	}
	failure := &interpreter.ErrorObject{Kind: interpreter.KindPlaybook, Class: interpreter.ClassRetryable}
	var application *temporal.ApplicationError
	status := interpreter.Failed
	switch {
	case isCancelled(err):
		failure.Class, failure.Type, status = interpreter.ClassFinal, string(interpreter.KindCancelled), interpreter.Cancelled
		failure.Message = fmt.Sprintf("the run %s was cancelled", id)
	case errors.As(err, &application):
		// It was refused, and would be again.
		failure.Class, failure.Type = interpreter.ClassFinal, application.Type()
		failure.Final = application.Type() == InvalidPlaybook || application.Type() == InvalidInput
		failure.Message = fmt.Sprintf("the run %s failed: %s", id, application.Message())
	default:
		failure.Type = "child_workflow"
		failure.Message = fmt.Sprintf("the run %s ended without a result: %v", id, err)
	}
	failure.Body = expression.Of(map[string]any{"workflow_id": id, "status": string(status)})
	return failure
}

func cancelledError() *interpreter.ErrorObject { return AttemptError(temporal.NewCanceledError()) }

func failedOutcome(class interpreter.Class, format string, args ...any) interpreter.Outcome {
	return interpreter.Outcome{Err: &interpreter.ErrorObject{
		Kind: interpreter.KindPlaybook, Class: class, Message: fmt.Sprintf(format, args...),
	}}
}

func failedTimeout(id string, limit time.Duration) interpreter.Outcome {
	return interpreter.Outcome{Err: &interpreter.ErrorObject{
		Kind: interpreter.KindTimeout, Class: interpreter.ClassRetryable,
		Message: fmt.Sprintf("the run %s did not end within %s and was cancelled", id, limit),
		Body:    expression.Of(map[string]any{"workflow_id": id, "status": string(interpreter.Cancelled)}),
	}}
}

// attributes are the search attributes with which a run begins that another one
// starts.
func (in Input) attributes() []temporal.SearchAttributeUpdate {
	if !in.SearchAttributes {
		return nil
	}
	book, err := interpreter.Load(in.Name, in.Source)
	if err != nil {
		return nil // its validation refuses it
	}
	return []temporal.SearchAttributeUpdate{temporal.NewSearchAttributeKeyKeyword(PlaybookAttribute).ValueSet(book.Name)}
}

// Alone is the input of a run that no step of another one has started: the data of a
// parent run and the workers' files are left out.
func (in Input) Alone() Input {
	in.Called = nil
	files := maps.Clone(in.Files)
	maps.DeleteFunc(files, func(name, _ string) bool { return strings.HasPrefix(name, playbook.NamedScheme) })
	in.Files = files
	return in
}

// files are all playbooks that the run has of those that it names.
func (r *run) files() map[string]string {
	if len(r.Files) == 0 {
		return r.input.Files
	}
	all := maps.Clone(r.Files)
	for _, name := range playbook.SortedKeys(r.input.Files) {
		all[name] = r.input.Files[name]
	}
	return all
}

// nesting is what the tasks of a step know of the parent and child runs.
func (r *run) nesting(step *playbook.Step) *call.Nesting {
	nesting := call.Nesting{Parents: r.controls.parents}
	if called := r.input.Called; called != nil {
		nesting.Depth = called.Depth
	}
	action := r.book.Resolve(step.Action)
	if action.Traits().Plays {
		nesting.Files = interpreter.FilesOf(r.book, action, r.files())
		nesting.Strict = r.input.Strict || r.book.Strict
		nesting.SearchAttributes, nesting.DeadLetters, nesting.NextRetry = r.input.SearchAttributes, r.input.DeadLetters, r.input.NextRetry
		nesting.ScheduledAt, nesting.Before, nesting.Tree = r.Run.ScheduledAt, r.before(), r.tree()
		if r.Ticket != nil {
			nesting.Queue = r.Ticket.Queue
		}
	} else if len(nesting.Parents) == 0 {
		return nil
	}
	return &nesting
}

// called is the attempt that has started the run, with what is known of the parent runs
// by now.
func (r *run) called() *Called {
	if r.input.Called == nil {
		return nil
	}
	called := *r.input.Called
	called.Parents = r.controls.parents
	return &called
}

func (in Input) parents() []interpreter.Parent {
	if in.Called == nil {
		return nil
	}
	return in.Called.Parents
}

func parentsOf(task Task) []interpreter.Parent {
	if task.Nesting == nil {
		return nil
	}
	return task.Nesting.Parents
}

// checkCalled refuses input that only a parent run can write.
func checkCalled(ctx workflow.Context, input Input) error {
	if workflow.GetInfo(ctx).ParentWorkflowExecution != nil {
		return nil
	}
	if input.Called != nil {
		return errNotCalled
	}
	for _, name := range playbook.SortedKeys(input.Files) {
		if strings.HasPrefix(name, playbook.NamedScheme) {
			return errNotCalled
		}
	}
	return nil
}

// actsOnResumes is what a child run is signalled: that something is resumed which was
// held.
func actsOnResumes(steering Steering) bool { return steering.Resumes && steering.Settle == nil }

// parentsOfChild are the parent runs of one that a step starts.
func (c *controls) parentsOfChild(step, line string) []interpreter.Parent {
	return append(slices.Clone(c.parents), interpreter.Parent{Run: c.run, Step: step, Control: c.Of(step), Queue: line})
}

// task is a task with what is known by now of the parent runs.
func (c *controls) task(task Task) Task {
	if len(c.parents) == 0 || task.Nesting == nil {
		return task
	}
	nesting := *task.Nesting
	nesting.Parents = slices.Clone(c.parents)
	task.Nesting = &nesting
	return task
}

// IsPaused reports whether no attempt of a step may begin: its run holds it, or a parent
// run.
func (c *controls) IsPaused(step string) bool {
	return c.Control.IsPaused(step) || slices.ContainsFunc(c.parents, func(parent interpreter.Parent) bool {
		return parent.Control.IsPaused(parent.Step)
	})
}

// knows reports whether what held an attempt is known here.
func (c *controls) knows(hold interpreter.Hold) bool {
	if hold.Run == "" {
		return c.Version >= hold.Version
	}
	return slices.ContainsFunc(c.parents, func(parent interpreter.Parent) bool {
		return parent.Run == hold.Run && parent.Control.Version >= hold.Version
	})
}

// applyControl records the control of the run, or of a parent run.
func (c *controls) applyControl(steering Steering) {
	if steering.Run == "" {
		if steering.Control.Version > c.Version {
			c.Control = steering.Control
		}
		return
	}
	for i := range c.parents {
		if parent := &c.parents[i]; parent.Run == steering.Run && steering.Control.Version > parent.Control.Version {
			parent.Control = steering.Control
		}
	}
}

// listenToParent applies what the parent run passes on, of a run that has one.
func (c *controls) listenToParent(ctx workflow.Context) {
	if len(c.parents) == 0 {
		return
	}
	onSignal(ctx, ControlSignal, func(ctx workflow.Context, steering Steering) { c.apply(ctx, c.fromParent(steering)) })
}

// drainParent is drain, of a run that has a parent.
func (c *controls) drainParent(ctx workflow.Context) {
	if len(c.parents) == 0 {
		return
	}
	for steering := range arrived[Steering](workflow.GetSignalChannel(ctx, ControlSignal)) {
		c.apply(ctx, c.fromParent(steering))
	}
}

// fromParent names the run that a steering is about. A parent run decides nothing about
// the waits of this one.
func (c *controls) fromParent(steering Steering) Steering {
	if steering.Run == "" {
		steering.Run = c.parents[len(c.parents)-1].Run
	}
	return Steering{Control: steering.Control, Resumes: steering.Resumes, Run: steering.Run}
}
