package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"golang.org/x/sync/errgroup"

	"reprise/internal/base/connect"
	"reprise/internal/base/terminal"
	"reprise/internal/observe/render"
	"reprise/internal/observe/runs"
	"reprise/workflows"
)

const (
	// sendsAtOnce is how many runs a command is sent to at the same time.
	sendsAtOnce = 10
	// sendPatience is how long a run may take to answer: only its worker answers.
	sendPatience = 10 * time.Second
)

// Outcomes of a command.
const (
	outcomeDone      = "done"
	outcomeUnchanged = "unchanged" // it was so already
	outcomeRefused   = "refused"
	outcomeUnknown   = "unknown" // no worker answered
)

// steerResult is what a run made of a command.
type steerResult struct {
	runs.Found
	Outcome  string                   `json:"outcome,omitempty"` // "" where nothing was sent
	Message  string                   `json:"message,omitempty"`
	Standing *workflows.CommandResult `json:"standing,omitempty"`
	// Waits is how many waits the command has ended; those in loops were counted right
	// before. WaitsMore says that there may have been others. Nil is of commands that end none.
	Waits     *int `json:"waits,omitempty"`
	WaitsMore bool `json:"waits_more,omitempty"`
	// Above are the parent runs that hold it none the less, of a command that resumes
	// something.
	Above []runs.Held `json:"held_above,omitempty"`
}

// settles reports whether the command ends waits.
func (o *steering) settles() bool {
	return o.update == workflows.RetryNowUpdate || o.update == workflows.SkipUpdate
}

func (a steerResult) failed() bool { return a.Outcome == outcomeRefused || a.Outcome == outcomeUnknown }

func isQueryError(err error) bool { return errors.As(err, new(*runs.QueryError)) }

// findAll finds runs by their IDs.
func (a *app) findAll(ctx context.Context, s *session, ids []string) ([]runs.Found, error) {
	found, failures := make([]runs.Found, len(ids)), make([]error, len(ids))
	var group errgroup.Group
	group.SetLimit(sendsAtOnce)
	for i, id := range ids {
		group.Go(func() error {
			found[i], failures[i] = s.runs().Find(ctx, id, "")
			return nil
		})
	}
	_ = group.Wait()
	var each []runs.Found
	known := map[string]bool{}
	for i, run := range found {
		if failures[i] != nil {
			err := a.findError(s, failures[i])
			if len(ids) > 1 && statusOf(err) == exitUsage {
				return nil, usageError("%w; no run was told anything", err)
			}
			return nil, err
		}
		if !known[run.WorkflowID] {
			known[run.WorkflowID] = true
			each = append(each, run)
		}
	}
	return each, nil
}

// sendAll sends a command to runs, some at a time. each gets the results as they
// come, one at a time; they are returned in the order of the runs.
func (s *session) sendAll(ctx context.Context, o *steering, meant []runs.Found, each func(steerResult)) []steerResult {
	t := &steerer{session: s, options: o, workers: map[string]int{}}
	answers := make([]steerResult, len(meant))
	var group errgroup.Group
	var one sync.Mutex
	group.SetLimit(sendsAtOnce)
	for i, run := range meant {
		group.Go(func() error {
			answers[i] = t.send(ctx, run)
			one.Lock()
			defer one.Unlock()
			each(answers[i])
			return nil
		})
	}
	_ = group.Wait()
	return answers
}

// steerer sends a command to runs.
type steerer struct {
	session *session
	options *steering
	mu      sync.Mutex
	workers map[string]int // that listen, by task queue
}

// send sends the command to one run, and describes what came of it.
func (t *steerer) send(ctx context.Context, run runs.Found) steerResult {
	result := steerResult{Found: run, Outcome: outcomeRefused}
	if run.Ended() {
		result.Message = fmt.Sprintf("it has ended (%s), so there is nothing to %s; %s list --status running shows the runs that go on",
			run.Status, t.options.name, terminal.Program())
		return result
	}
	if t.options.update == "" {
		return t.cancel(ctx, result)
	}
	workers, err := t.listening(ctx, run.TaskQueue)
	switch {
	case err != nil:
		result.Outcome, result.Message = outcomeUnknown, "it was told nothing: "+err.Error()
		return result
	case workers == 0:
		result.Message = fmt.Sprintf("no worker polls its task queue %q, so nobody takes the command and nothing was changed; "+
			"start one with worker --task-queue %s, and say it again", run.TaskQueue, terminal.ShellWord(run.TaskQueue))
		return result
	}
	waits, whole := 0, true
	if t.options.settles() {
		waits, whole = t.session.runs().Waits(ctx, run, t.options.Step, t.options.Index, t.options.update == workflows.SkipUpdate)
	}
	standing, err := t.update(ctx, run)
	if err != nil {
		result.Outcome, result.Message = t.refusal(ctx, run, err)
		return result
	}
	result.Outcome, result.Standing = outcomeDone, &standing
	if t.options.settles() {
		result.settled(waits, whole)
	}
	if nothing := result.Waits != nil && *result.Waits == 0 && !result.WaitsMore; nothing || !standing.Changed {
		result.Outcome, standing.Changed = outcomeUnchanged, false
	}
	result.Message = t.options.done(result)
	if t.options.update == workflows.ResumeUpdate || t.options.update == workflows.RetryNowUpdate {
		result.Above, _ = t.session.runs().HeldByParents(ctx, run) // the command has had its effect
	}
	for _, parent := range result.Above {
		result.Message += fmt.Sprintf("; still held by the run %s above: %s (%s)", terminal.Visible(parent.Run),
			render.Paused(render.Held(parent), time.Now()), render.ResumeCommand(parent.Run, render.Held(parent)))
	}
	return result
}

// settled records how many waits a command has ended, of which those in loops were
// counted before; whole is false where that was not all of them.
func (a *steerResult) settled(waits int, whole bool) {
	if waits = max(waits, a.Standing.Ended); !a.Standing.Signalled {
		waits, whole = a.Standing.Ended, true
	}
	a.Waits, a.WaitsMore = &waits, !whole
}

// listening counts the workers of a task queue, which is described once.
func (t *steerer) listening(ctx context.Context, queue string) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if workers, known := t.workers[queue]; known {
		return workers, nil
	}
	workers, err := t.session.runs().Workers(ctx, queue)
	if err == nil {
		t.workers[queue] = workers
	}
	return workers, err
}

// update sends the command to the run that was found, not to another one that has
// its ID by now.
func (t *steerer) update(ctx context.Context, run runs.Found) (workflows.CommandResult, error) {
	ctx, cancel := context.WithTimeout(ctx, sendPatience)
	defer cancel()
	var standing workflows.CommandResult
	handle, err := t.session.client.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
		WorkflowID: run.WorkflowID, FirstExecutionRunID: run.RunID, UpdateName: t.options.update,
		Args: []any{t.options.Command}, WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	if err != nil {
		return standing, err
	}
	return standing, handle.Get(ctx, &standing)
}

// refusal says why an update came to nothing, and what would work.
func (t *steerer) refusal(ctx context.Context, run runs.Found, err error) (outcome, message string) {
	var refused *temporal.ApplicationError
	switch {
	case ctx.Err() != nil:
		return outcomeUnknown, "left before it answered; " + t.statusHint(run)
	case connect.UpdateTimedOut(err):
		return outcomeUnknown, fmt.Sprintf("no worker of its task queue %q has answered within %s; is one running? worker --task-queue %s "+
			"starts one. The command may take effect when one answers; %s", run.TaskQueue, sendPatience, terminal.ShellWord(run.TaskQueue), t.statusHint(run))
	case connect.UpdateEnded(err):
		return outcomeRefused, "it has ended meanwhile; " + t.statusHint(run)
	case errors.As(err, &refused) && strings.HasPrefix(refused.Message(), "unknown update "):
		return outcomeRefused, fmt.Sprintf("its worker is of an older build, which takes no such command; put a worker of this build in its "+
			"place, or end the run with %s cancel %s", terminal.Program(), terminal.ShellWord(run.WorkflowID))
	case errors.As(err, &refused):
		return outcomeRefused, refused.Message()
	}
	return outcomeRefused, err.Error()
}

func (t *steerer) statusHint(run runs.Found) string {
	return fmt.Sprintf("%s status %s tells where it is", terminal.Program(), terminal.ShellWord(run.WorkflowID))
}

// cancel requests the cancel of a run.
func (t *steerer) cancel(ctx context.Context, result steerResult) steerResult {
	run := result.Found
	_, err := t.session.client.WorkflowService().RequestCancelWorkflowExecution(ctx, &workflowservice.RequestCancelWorkflowExecutionRequest{
		Namespace: t.session.namespace, WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: run.WorkflowID},
		FirstExecutionRunId: run.RunID, RequestId: uuid.NewString(), Identity: t.options.By, Reason: t.options.Reason,
	})
	was := fmt.Sprintf("%s for %s", run.Status, terminal.Duration(time.Since(run.StartedAt)))
	if run.Playbook != "" {
		was = terminal.Visible(run.Playbook) + ", " + was
	}
	switch {
	case connect.CancelRequested(err):
		result.Outcome, result.Message = outcomeUnchanged, "it was being cancelled already"
	case connect.NotFound(err):
		result.Message = "it has ended meanwhile; " + t.statusHint(run)
	case err != nil:
		result.Outcome, result.Message = outcomeUnknown, "cancel it: "+err.Error()
	default:
		result.Outcome, result.Message = outcomeDone, fmt.Sprintf("cancelling (%s)", was)
		if workers, err := t.listening(ctx, run.TaskQueue); err == nil && workers == 0 {
			result.Message += fmt.Sprintf("; no worker polls its task queue %q, so it ends when one starts", run.TaskQueue)
		}
	}
	return result
}
