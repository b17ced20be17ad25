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

	"reprise/internal/connect"
	"reprise/internal/render"
	"reprise/internal/runs"
	"reprise/internal/terminal"
	"reprise/workflows"
)

const (
	// telling is how many runs are told at once.
	telling = 10
	// tellPatience is how long a run may take to answer: its worker answers, or
	// nobody.
	tellPatience = 10 * time.Second
)

// What came of a command.
const (
	outcomeDone      = "done"
	outcomeUnchanged = "unchanged" // it was so already
	outcomeRefused   = "refused"
	outcomeUnknown   = "unknown" // nobody answered
)

// answer is what a run made of a command.
type answer struct {
	runs.Found
	Outcome  string              `json:"outcome,omitempty"` // "" where it was told nothing
	Message  string              `json:"message,omitempty"`
	Standing *workflows.Standing `json:"standing,omitempty"`
	// Waits is how many waits the command has ended; those in loops were counted right
	// before. WaitsMore says that there may have been others. Nil is of commands that end none.
	Waits     *int `json:"waits,omitempty"`
	WaitsMore bool `json:"waits_more,omitempty"`
	// Above are the runs above that hold it none the less, of a command that lets something
	// go on.
	Above []runs.Held `json:"held_above,omitempty"`
}

// settles reports whether the command ends waits.
func (o *order) settles() bool {
	return o.update == workflows.RetryNowUpdate || o.update == workflows.SkipUpdate
}

func (a answer) failed() bool { return a.Outcome == outcomeRefused || a.Outcome == outcomeUnknown }

func isQueryError(err error) bool { return errors.As(err, new(*runs.QueryError)) }

// findAll finds runs by their IDs.
func (a *app) findAll(ctx context.Context, s *session, ids []string) ([]runs.Found, error) {
	found, failures := make([]runs.Found, len(ids)), make([]error, len(ids))
	var group errgroup.Group
	group.SetLimit(telling)
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

// tellAll tells runs a command, some at a time. each takes the answers as they
// come, one at a time; they are returned in the order of the runs.
func (s *session) tellAll(ctx context.Context, o *order, meant []runs.Found, each func(answer)) []answer {
	t := &teller{session: s, order: o, workers: map[string]int{}}
	answers := make([]answer, len(meant))
	var group errgroup.Group
	var one sync.Mutex
	group.SetLimit(telling)
	for i, run := range meant {
		group.Go(func() error {
			answers[i] = t.tell(ctx, run)
			one.Lock()
			defer one.Unlock()
			each(answers[i])
			return nil
		})
	}
	_ = group.Wait()
	return answers
}

// teller tells runs a command.
type teller struct {
	session *session
	order   *order
	mu      sync.Mutex
	workers map[string]int // that listen, by task queue
}

// tell tells one run, and puts into words what came of it.
func (t *teller) tell(ctx context.Context, run runs.Found) answer {
	told := answer{Found: run, Outcome: outcomeRefused}
	if run.Ended() {
		told.Message = fmt.Sprintf("it has ended (%s), so there is nothing to %s; %s list --status running shows the runs that go on",
			run.Status, t.order.name, terminal.Program())
		return told
	}
	if t.order.update == "" {
		return t.cancel(ctx, told)
	}
	workers, err := t.listening(ctx, run.TaskQueue)
	switch {
	case err != nil:
		told.Outcome, told.Message = outcomeUnknown, "it was told nothing: "+err.Error()
		return told
	case workers == 0:
		told.Message = fmt.Sprintf("no worker polls its task queue %q, so nobody takes the command and nothing was changed; "+
			"start one with worker --task-queue %s, and say it again", run.TaskQueue, terminal.ShellWord(run.TaskQueue))
		return told
	}
	waits, whole := 0, true
	if t.order.settles() {
		waits, whole = t.session.runs().Waits(ctx, run, t.order.Step, t.order.Index, t.order.update == workflows.SkipUpdate)
	}
	standing, err := t.update(ctx, run)
	if err != nil {
		told.Outcome, told.Message = t.refusal(ctx, run, err)
		return told
	}
	told.Outcome, told.Standing = outcomeDone, &standing
	if t.order.settles() {
		told.settled(waits, whole)
	}
	if nothing := told.Waits != nil && *told.Waits == 0 && !told.WaitsMore; nothing || !standing.Changed {
		told.Outcome = outcomeUnchanged
	}
	told.Message = t.order.done(told)
	if t.order.update == workflows.ResumeUpdate || t.order.update == workflows.RetryNowUpdate {
		told.Above, _ = t.session.runs().Above(ctx, run) // the command has had its effect
	}
	for _, above := range told.Above {
		told.Message += fmt.Sprintf("; still held by the run %s above: %s (%s)", terminal.Visible(above.Run),
			render.Paused(render.Held(above), time.Now()), render.ResumeCommand(above.Run, render.Held(above)))
	}
	return told
}

// settled notes how many waits a command has ended, of which those in loops were
// counted before; whole is false where that was not all of them.
func (a *answer) settled(waits int, whole bool) {
	if waits = max(waits, a.Standing.Ended); !a.Standing.Told {
		waits, whole = a.Standing.Ended, true
	}
	a.Waits, a.WaitsMore = &waits, !whole
}

// listening counts the workers of a task queue, which is asked about once.
func (t *teller) listening(ctx context.Context, queue string) (int, error) {
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
func (t *teller) update(ctx context.Context, run runs.Found) (workflows.Standing, error) {
	ctx, cancel := context.WithTimeout(ctx, tellPatience)
	defer cancel()
	var standing workflows.Standing
	handle, err := t.session.client.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
		WorkflowID: run.WorkflowID, FirstExecutionRunID: run.RunID, UpdateName: t.order.update,
		Args: []any{t.order.Command}, WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	if err != nil {
		return standing, err
	}
	return standing, handle.Get(ctx, &standing)
}

// refusal says why an update came to nothing, and what would work.
func (t *teller) refusal(ctx context.Context, run runs.Found, err error) (outcome, message string) {
	var refused *temporal.ApplicationError
	switch {
	case ctx.Err() != nil:
		return outcomeUnknown, "left before it answered; " + t.look(run)
	case connect.UpdateTimedOut(err):
		return outcomeUnknown, fmt.Sprintf("no worker of its task queue %q has answered within %s; is one running? worker --task-queue %s "+
			"starts one. The command may take effect when one answers; %s", run.TaskQueue, tellPatience, terminal.ShellWord(run.TaskQueue), t.look(run))
	case connect.UpdateEnded(err):
		return outcomeRefused, "it has ended meanwhile; " + t.look(run)
	case errors.As(err, &refused) && strings.HasPrefix(refused.Message(), "unknown update "):
		return outcomeRefused, fmt.Sprintf("its worker is of an older build, which takes no such command; put a worker of this build in its "+
			"place, or end the run with %s cancel %s", terminal.Program(), terminal.ShellWord(run.WorkflowID))
	case errors.As(err, &refused):
		return outcomeRefused, refused.Message()
	}
	return outcomeRefused, err.Error()
}

func (t *teller) look(run runs.Found) string {
	return fmt.Sprintf("%s status %s tells where it is", terminal.Program(), terminal.ShellWord(run.WorkflowID))
}

// cancel asks the server to cancel a run.
func (t *teller) cancel(ctx context.Context, told answer) answer {
	run := told.Found
	_, err := t.session.client.WorkflowService().RequestCancelWorkflowExecution(ctx, &workflowservice.RequestCancelWorkflowExecutionRequest{
		Namespace: t.session.namespace, WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: run.WorkflowID},
		FirstExecutionRunId: run.RunID, RequestId: uuid.NewString(), Identity: t.order.By, Reason: t.order.Reason,
	})
	was := fmt.Sprintf("%s for %s", run.Status, terminal.Duration(time.Since(run.StartedAt)))
	if run.Playbook != "" {
		was = terminal.Visible(run.Playbook) + ", " + was
	}
	switch {
	case connect.CancelRequested(err):
		told.Outcome, told.Message = outcomeUnchanged, "it was being cancelled already"
	case connect.NotFound(err):
		told.Message = "it has ended meanwhile; " + t.look(run)
	case err != nil:
		told.Outcome, told.Message = outcomeUnknown, "cancel it: "+err.Error()
	default:
		told.Outcome, told.Message = outcomeDone, fmt.Sprintf("cancelling (%s)", was)
		if workers, err := t.listening(ctx, run.TaskQueue); err == nil && workers == 0 {
			told.Message += fmt.Sprintf("; no worker polls its task queue %q, so it ends when one starts", run.TaskQueue)
		}
	}
	return told
}
