package attempt

import (
	"context"
	"slices"

	"reprise/activities/tool"
	"reprise/internal/base/audit"
	"reprise/interpreter"
)

// deniedTypes are the types of final errors of attempts that the operator's rules exclude.
var deniedTypes = []string{tool.TypeConnectionDenied, tool.TypeEgressDenied, interpreter.UnknownPlaybook}

// auditDenials writes attempts that were denied to the audit log. They have failed, so there is nothing to refuse if it
// cannot be written. Addresses are not logged: they may have values of the run.
func (r *Runner) auditDenials(run measuredFunc) measuredFunc {
	if r.Resources.Audit == nil {
		return run
	}
	return func(ctx context.Context, in interpreter.ToolInput) (interpreter.ToolResult, int, error) {
		result, size, err := run(ctx, in)
		if _, object := failureIn(err); object != nil && object.Final && slices.Contains(deniedTypes, object.Type) {
			target := audit.ActionTarget{Playbook: in.Playbook, Run: in.ControlID, RunID: in.RunID, Step: in.Step, Index: in.Index, Tool: in.Tool}
			if tool.IsConnectionName(in.Auth) {
				target.Connection = in.Auth
			}
			denied := audit.LoggedAction{Proof: audit.ProofNone, Action: audit.Attempt, Target: target, Outcome: audit.Denied, Type: object.Type}
			if err := r.Resources.Audit.Write(denied); err != nil {
				tool.Logger(ctx, r.Resources.Logger, in).Error("a denial is not in the audit log", "type", object.Type, "error", err)
			}
		}
		return result, size, err
	}
}
