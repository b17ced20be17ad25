package steer

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

	"reprise/internal/base/connect"
	"reprise/internal/base/terminal"
	"reprise/internal/observe/render"
	"reprise/internal/observe/runs"
	"reprise/workflows/protocol"
)

// pollers are the workers of a task queue that get runs of a build.
type pollers struct {
	queue string
	build runs.Build
}

// sending is one command that is being sent to runs.
type sending struct {
	*Dispatcher

	command Command
	mu      sync.Mutex
	workers map[pollers]runs.Workers
}

// sendTo sends the command to one run, and describes the result.
func (s *sending) sendTo(ctx context.Context, run runs.Found) Result {
	result := Result{Found: run, Outcome: Refused}
	if run.Ended() {
		result.Message = fmt.Sprintf("the run has ended (%s), so there is nothing to %s; %s list --status running shows running ones",
			run.Status, s.command.Name, terminal.ProgramName())
		return result
	}
	if s.command.Name == Cancel {
		return s.cancelRun(ctx, result)
	}
	workers, err := s.findWorkers(ctx, run)
	switch {
	case err != nil:
		result.Outcome, result.Message = Unknown, "nothing was sent: "+err.Error()
		return result
	case workers.Count == 0 && (run.Build != nil || workers.Deployment != ""):
		result.Message = fmt.Sprintf("%s, so nothing was changed; %s", workers.AbsenceReason(run), workers.Remedy(run))
		return result
	case workers.Count == 0:
		result.Message = fmt.Sprintf("no worker polls the run's task queue %q, so nothing was changed; "+
			"start one with worker --task-queue %s and repeat the command", run.TaskQueue, terminal.ShellWord(run.TaskQueue))
		return result
	}
	waits, whole := 0, true
	if s.command.endsWaits() {
		waits, whole = s.Runs.CountWaits(ctx, run, s.command.Step, s.command.Index, s.command.Name == Skip)
	}
	reply, err := s.updateRun(ctx, run)
	if err != nil {
		result.Outcome, result.Message = s.explainRefusal(ctx, run, err)
		return result
	}
	result.Outcome, result.Reply = Done, &reply
	if s.command.endsWaits() {
		result.addSettled(waits, whole)
	}
	if nothing := result.Waits != nil && *result.Waits == 0 && !result.WaitsMore; nothing || !reply.Changed {
		result.Outcome, reply.Changed = Unchanged, false
	}
	result.Message = s.command.describeResult(result)
	if result.Outcome == Unchanged && s.command.Name == RetryNow {
		result.Message += s.awaitedText(ctx, run)
	}
	if s.command.Name == Resume || s.command.Name == RetryNow {
		result.HeldByParents, _ = s.Runs.HeldByParents(ctx, run) // the command has had its effect
	}
	for _, parent := range result.HeldByParents {
		result.Message += fmt.Sprintf("; still held by its parent run %s: %s (%s)", terminal.EscapeInvisible(parent.Run),
			render.DescribePaused(render.HeldByParent(parent), time.Now()), render.ResumeCommand(parent.Run, render.HeldByParent(parent)))
	}
	return result
}

// awaitedText describes which iterations of a run await an answer, for a command that found no waits to end.
func (s *sending) awaitedText(ctx context.Context, run runs.Found) string {
	status, err := s.Runs.Status(ctx, run, time.Now())
	if err != nil {
		return "" // the command has been answered; this is help
	}
	for i := range status.Steps {
		step := &status.Steps[i]
		s.Runs.AddIterations(ctx, status, step)
		if loop := step.Loop; loop != nil && loop.Awaiting > 0 && (s.command.Step == "" || s.command.Step == step.Step) {
			text := fmt.Sprintf("; %s of step %s await an answer", terminal.Count(loop.Awaiting, "iteration"), step.Step)
			if loop.Awaiting == 1 {
				text = fmt.Sprintf("; 1 iteration of step %s awaits an answer", step.Step)
			}
			return strings.Join(append([]string{text}, render.AnswerCommands(status)...), "; ")
		}
	}
	return ""
}

// addSettled records how many waits a command ended. Those in loops were counted before. whole is false if the count
// is incomplete.
func (r *Result) addSettled(waits int, whole bool) {
	if waits = max(waits, r.Reply.Ended); !r.Reply.Signalled {
		waits, whole = r.Reply.Ended, true
	}
	r.Waits, r.WaitsMore = &waits, !whole
}

// findWorkers finds the workers that get a run. Those of a task queue and build are described only once.
func (s *sending) findWorkers(ctx context.Context, run runs.Found) (runs.Workers, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := pollers{queue: run.TaskQueue}
	if run.Build != nil {
		of.build = *run.Build
	}
	if workers, known := s.workers[of]; known {
		return workers, nil
	}
	workers, err := s.Runs.WorkersOf(ctx, run)
	if err == nil {
		s.workers[of] = workers
	}
	return workers, err
}

// updateRun sends the command to the run that was found, even if another run has its ID by now.
func (s *sending) updateRun(ctx context.Context, run runs.Found) (protocol.CommandResult, error) {
	ctx, cancel := context.WithTimeout(ctx, sendPatience)
	defer cancel()
	var reply protocol.CommandResult
	err := connect.SendUpdate(ctx, s.Client, client.UpdateWorkflowOptions{
		WorkflowID: run.WorkflowID, FirstExecutionRunID: run.RunID, UpdateName: updates[s.command.Name], Args: []any{s.command.CommandInput},
	}, &reply)
	return reply, err
}

// explainRefusal describes why an update had no effect, and what to do.
func (s *sending) explainRefusal(ctx context.Context, run runs.Found, err error) (outcome CommandOutcome, message string) {
	var refused *temporal.ApplicationError
	switch {
	case ctx.Err() != nil:
		return Unknown, "interrupted before the run responded; " + statusHint(run)
	case connect.UpdateTimedOut(err):
		if silence := s.Runs.Silence(ctx, run, err); silence.HeldBy != runs.HeldByNoWorker {
			return Unknown, silence.Text(run, "") + ". The command may still take effect once that works; " + statusHint(run)
		}
		return Unknown, fmt.Sprintf("no worker on task queue %q responded within %s; start one with worker --task-queue %s. "+
			"The command may still take effect then; %s", run.TaskQueue, sendPatience, terminal.ShellWord(run.TaskQueue), statusHint(run))
	case connect.IsUnreachable(err):
		return Unknown, "the Temporal server did not respond. The command may still take effect; " + statusHint(run)
	case connect.UpdateEnded(err):
		return Refused, "the run ended in the meantime; " + statusHint(run)
	case errors.As(err, &refused) && strings.HasPrefix(refused.Message(), "unknown update "):
		return Refused, fmt.Sprintf("the run's worker is an older build that does not know this command; upgrade the worker, "+
			"or end the run with %s cancel %s", terminal.ProgramName(), terminal.ShellWord(run.WorkflowID))
	case errors.As(err, &refused):
		return Refused, refused.Message()
	}
	if silence := s.Runs.Silence(ctx, run, err); silence.HeldBy != runs.HeldByNoWorker {
		return Refused, silence.Text(run, "") + ". Nothing was changed; repeat the command once that works"
	}
	return Refused, err.Error()
}

func statusHint(run runs.Found) string {
	return fmt.Sprintf("%s status %s shows its status", terminal.ProgramName(), terminal.ShellWord(run.WorkflowID))
}

// cancelRun requests the cancellation of a run.
func (s *sending) cancelRun(ctx context.Context, result Result) Result {
	run := result.Found
	_, err := s.Client.WorkflowService().RequestCancelWorkflowExecution(ctx, &workflowservice.RequestCancelWorkflowExecutionRequest{
		Namespace: s.Namespace, WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: run.WorkflowID},
		FirstExecutionRunId: run.RunID, RequestId: uuid.NewString(), Identity: s.command.By, Reason: s.command.Reason,
	})
	was := fmt.Sprintf("%s, started %s", run.Status, terminal.Ago(run.StartedAt, time.Now()))
	if run.Playbook != "" {
		was = terminal.EscapeInvisible(run.Playbook) + ", " + was
	}
	switch {
	case connect.CancelRequested(err):
		result.Outcome, result.Message = Unchanged, "its cancellation was already requested"
	case connect.IsNotFound(err):
		result.Message = "the run ended in the meantime; " + statusHint(run)
	case err != nil:
		result.Outcome, result.Message = Unknown, "request its cancellation: "+err.Error()
	default:
		result.Outcome, result.Message = Done, fmt.Sprintf("cancelling (%s)", was)
		if workers, err := s.findWorkers(ctx, run); err == nil && workers.Count == 0 {
			result.Message += fmt.Sprintf("; no worker polls its task queue %q, so it will end once one starts", run.TaskQueue)
		}
	}
	return result
}
