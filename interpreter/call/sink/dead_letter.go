package sink

import (
	"time"

	"reprise/interpreter"
	"reprise/interpreter/call/request"
	"reprise/interpreter/expression"
)

// DeadLetter is an iteration that ended as failed: all that is needed to know
// why, and to run it again (docs/concepts/loops.md#failed-iterations).
type DeadLetter struct {
	// ExecutionID and RunID name the run that the iteration belongs to; for a
	// reprocess they belong to the run it takes up again.
	ExecutionID  string           `json:"execution_id"`
	RunID        string           `json:"run_id"`
	Playbook     string           `json:"playbook"`
	PlaybookHash string           `json:"playbook_hash"`
	Step         string           `json:"step"`
	Visit        int              `json:"visit"`
	Index        int              `json:"index"`
	Element      expression.Value `json:"element"`
	Attempts     int              `json:"attempts"`
	// LastAttemptAt is when the last attempt ended, or where none was made when
	// the iteration did.
	LastAttemptAt time.Time                `json:"last_attempt_at"`
	Error         *interpreter.ErrorObject `json:"error"`
}

// exprValue is the dead letter as expressions and sinks see it: flat, so that it is
// a row.
func (d DeadLetter) exprValue() map[string]any {
	row := map[string]any{
		"execution_id": d.ExecutionID, "run_id": d.RunID,
		"playbook": d.Playbook, "playbook_hash": d.PlaybookHash,
		"step": d.Step, "visit": d.Visit, "index": d.Index, "element": d.Element.Data,
		"attempts": d.Attempts, "last_attempt_at": expression.TimeText(d.LastAttemptAt),
		"kind": string(d.Error.Kind), "class": string(d.Error.Class), "status": nil, "message": d.Error.Message,
		"error": d.Error.Value(),
	}
	if d.Error.Status != 0 {
		row["status"] = d.Error.Status
	}
	return row
}

// DeadLetterRow is the failed iteration that a result makes of a call, as sinks and expressions see it.
func DeadLetterRow(source *request.Source, result interpreter.CallResult) map[string]any {
	run := source.Run
	letter := DeadLetter{
		ExecutionID: run.WorkflowID, RunID: run.RunID, Playbook: run.Playbook, PlaybookHash: source.Book.Hash,
		Step: source.Step.Name, Visit: source.Visit, Element: expression.Of(source.Scope.Element()),
		Attempts: result.Meta.Attempts, LastAttemptAt: result.FailedAt(), Error: result.Error,
	}
	if source.Index != nil {
		letter.Index = *source.Index
	}
	return letter.exprValue()
}
