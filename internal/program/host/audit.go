package host

import (
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/workflow"

	"reprise/internal/base/audit"
	"reprise/interpreter"
	"reprise/interpreter/incremental"
	"reprise/interpreter/login"
	"reprise/workflows/protocol"
)

// auditing writes to the audit log what people and programs ask of the workflows of a worker. Replays are not logged; a
// workflow task that is repeated, because its worker was lost, may be logged again. What cannot be logged is refused:
// updates are rejected, and runs do not begin until the log can be written. Cancels and signals cannot be refused.
type auditing struct {
	interceptor.WorkerInterceptorBase
	trail  *audit.Trail
	logger *slog.Logger
}

// auditors returns the interceptors of an audit log; none for nil.
func auditors(trail *audit.Trail, logger *slog.Logger) []interceptor.WorkerInterceptor {
	if trail == nil {
		return nil
	}
	return []interceptor.WorkerInterceptor{&auditing{trail: trail, logger: logger}}
}

// InterceptWorkflow wraps each workflow.
func (a *auditing) InterceptWorkflow(_ workflow.Context, next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	return &auditedWorkflow{WorkflowInboundInterceptorBase: interceptor.WorkflowInboundInterceptorBase{Next: next}, auditing: a}
}

type auditedWorkflow struct {
	interceptor.WorkflowInboundInterceptorBase
	*auditing
}

// ExecuteWorkflow logs that a run begins, and its cancel. A run that cannot be logged waits: the panic fails the workflow
// task, which the server repeats.
func (w *auditedWorkflow) ExecuteWorkflow(ctx workflow.Context, in *interceptor.ExecuteWorkflowInput) (any, error) {
	info := workflow.GetInfo(ctx)
	if info.WorkflowType.Name != protocol.PlaybookWorkflowName {
		return w.Next.ExecuteWorkflow(ctx, in)
	}
	if !workflow.IsReplaying(ctx) && info.ContinuedExecutionRunID == "" {
		actor := starterOf(ctx)
		line := audit.LoggedAction{
			Actor: actor, Proof: audit.ClaimedBy(actor), Action: audit.Start, Outcome: audit.Begun, Target: targetOf(info),
		}
		line.Target.Playbook = playbookOf(in.Args)
		if err := w.trail.Write(line); err != nil {
			w.logger.Error("a run does not begin, because the audit log cannot be written", "workflow_id", info.WorkflowExecution.ID, "error", err)
			panic(fmt.Sprintf("the run does not begin: %v", err))
		}
	}
	workflow.Go(ctx, func(ctx workflow.Context) {
		ctx.Done().Receive(ctx, nil)
		if errors.Is(ctx.Err(), workflow.ErrCanceled) && !workflow.IsReplaying(ctx) {
			w.writeAnyway(audit.LoggedAction{Proof: audit.ProofNone, Action: audit.Cancel, Outcome: audit.Accepted, Target: targetOf(info)})
		}
	})
	return w.Next.ExecuteWorkflow(ctx, in)
}

// ValidateUpdate logs an update of a person, and rejects it if it cannot be logged. It is called once, before the update
// is in the history.
func (w *auditedWorkflow) ValidateUpdate(ctx workflow.Context, in *interceptor.UpdateInput) error {
	err := w.Next.ValidateUpdate(ctx, in)
	line, audited := updateAction(workflow.GetInfo(ctx), in)
	if !audited {
		return err
	}
	if line.Outcome = audit.Accepted; err != nil {
		line.Outcome = audit.Refused
		w.writeAnyway(line)
		return err
	}
	if err := w.trail.Write(line); err != nil {
		w.logger.Error("a command is refused, because the audit log cannot be written", "action", line.Action, "error", err)
		return fmt.Errorf("the worker refuses what it cannot log: %w", audit.ErrUnwritable)
	}
	return nil
}

// ExecuteUpdate logs an accepted update that failed after all.
func (w *auditedWorkflow) ExecuteUpdate(ctx workflow.Context, in *interceptor.UpdateInput) (any, error) {
	result, err := w.Next.ExecuteUpdate(ctx, in)
	if line, audited := updateAction(workflow.GetInfo(ctx), in); audited && err != nil && !workflow.IsReplaying(ctx) {
		line.Outcome = audit.Refused
		w.writeAnyway(line)
	}
	return result, err
}

// HandleSignal logs an answer that a mailbox delivers.
func (w *auditedWorkflow) HandleSignal(ctx workflow.Context, in *interceptor.HandleSignalInput) error {
	var answer interpreter.Answer
	if in.SignalName == protocol.AnswerSignal && !workflow.IsReplaying(ctx) && converter.GetDefaultDataConverter().FromPayloads(in.Arg, &answer) == nil &&
		answer.Verb != interpreter.AnswerProgress {
		line := answerLine(workflow.GetInfo(ctx), answer)
		line.Outcome = audit.Accepted
		w.writeAnyway(line)
	}
	return w.Next.HandleSignal(ctx, in)
}

// writeAnyway logs what cannot be refused, or was refused already.
func (a *auditing) writeAnyway(line audit.LoggedAction) {
	if err := a.trail.Write(line); err != nil {
		a.logger.Error("an action is not in the audit log", "action", line.Action, "outcome", line.Outcome, "workflow_id", line.Target.Run, "error", err)
	}
}

func targetOf(info *workflow.Info) audit.ActionTarget {
	return audit.ActionTarget{Run: info.WorkflowExecution.ID, RunID: info.WorkflowExecution.RunID}
}

// starterOf returns who started a run: its parent, its schedule, or the name in its memo, which its client chose; "" if
// it has none.
func starterOf(ctx workflow.Context) string {
	info := workflow.GetInfo(ctx)
	if info.ParentWorkflowExecution != nil {
		return "run " + info.ParentWorkflowExecution.ID
	}
	fields := info.Memo.GetFields()
	var request struct{ Caller string }
	if converter.GetDefaultDataConverter().FromPayload(fields[protocol.RequestMemo], &request) == nil && request.Caller != "" {
		return request.Caller
	}
	var name string
	if converter.GetDefaultDataConverter().FromPayload(fields[protocol.StartedByMemo], &name) == nil && name != "" {
		return name
	}
	if match := scheduledID.FindStringSubmatch(info.WorkflowExecution.ID); match != nil {
		return "schedule " + match[1]
	}
	return ""
}

// playbookOf returns the file name of a run's playbook.
func playbookOf(args []any) string {
	if len(args) == 0 {
		return ""
	}
	switch in := args[0].(type) {
	case protocol.Input:
		return in.Name
	case *protocol.Input:
		return in.Name
	}
	return ""
}

// commandUpdates are the updates of people that steer runs. Their actions have the same names.
var commandUpdates = []string{protocol.PauseUpdate, protocol.ResumeUpdate, protocol.RetryNowUpdate, protocol.SkipUpdate, protocol.SetUpdate}

// updateAction returns the line about an update; audited is false for those of programs, and for progress reports.
func updateAction(info *workflow.Info, in *interceptor.UpdateInput) (line audit.LoggedAction, audited bool) {
	if len(in.Args) == 0 {
		return line, false
	}
	line.Target = targetOf(info)
	by := ""
	switch arg := plainArg(in.Args[0]).(type) {
	case protocol.CommandInput:
		if !slices.Contains(commandUpdates, in.Name) {
			return line, false
		}
		by, line.Action, line.Target.Step, line.Target.Index = arg.By, audit.ActionName(in.Name), arg.Step, arg.Index
	case interpreter.Answer:
		line = answerLine(info, arg)
		return line, arg.Verb != interpreter.AnswerProgress
	case login.BeginRequest:
		by, line.Action, line.Target.Connection = arg.By, audit.Login, arg.Connection
	case login.FinishRequest:
		by, line.Action, line.Target.Connection = arg.By, audit.LoginProof, arg.Connection
	case login.LogoutRequest:
		by, line.Action = arg.By, audit.Logout // the workflow ID has the connection
	case incremental.StateChange:
		by, line.Action, line.Target.State = arg.By, audit.SetState, arg.Name
	case incremental.Removal:
		by, line.Action, line.Target.State = arg.By, audit.PruneStates, arg.States[0].Name
		if more := len(arg.States) - 1; more > 0 { // the history of each state has its removal
			line.Target.State += fmt.Sprintf(" and %d more", more)
		}
	default:
		return line, false
	}
	line.Actor, line.Proof = by, audit.ClaimedBy(by)
	return line, true
}

// answerLine returns the line about an answer to an attempt of a workflow.
func answerLine(info *workflow.Info, given interpreter.Answer) audit.LoggedAction {
	target := targetOf(info)
	target.Step, target.Index = given.Step, given.Index
	return audit.LoggedAction{Actor: given.By, Proof: audit.ClaimedBy(given.By), Action: audit.Answer, Target: target}
}

// plainArg returns an argument without the pointer that the SDK may pass.
func plainArg(arg any) any {
	if value := reflect.ValueOf(arg); value.Kind() == reflect.Pointer && !value.IsNil() {
		return value.Elem().Interface()
	}
	return arg
}
