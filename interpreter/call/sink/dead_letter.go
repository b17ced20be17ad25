package sink

import (
	"time"

	"reprise/interpreter"
	"reprise/interpreter/call/request"
	"reprise/interpreter/expression"
)

// DeadLetter describes a failed iteration: why it failed, and what is needed to run it again
// (docs/concepts/loops.md#failed-iterations).
type DeadLetter struct {
	// ExecutionID and RunID identify the run of the iteration; in a reprocess, the run that is reprocessed.
	ExecutionID  string           `json:"execution_id"`
	RunID        string           `json:"run_id"`
	Playbook     string           `json:"playbook"`
	PlaybookHash string           `json:"playbook_hash"`
	Step         string           `json:"step"`
	Visit        int              `json:"visit"`
	Index        int              `json:"index"`
	Element      expression.Value `json:"element"`
	Attempts     int              `json:"attempts"`
	// LastAttemptAt is when the last attempt ended, or when the iteration ended if it made none.
	LastAttemptAt time.Time                `json:"last_attempt_at"`
	Error         *interpreter.ErrorObject `json:"error"`
}

// exprValue returns the dead letter for expressions and sinks: flat, so that it is a row.
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

// DeadLetterRow returns the dead letter of a failed iteration, for expressions and sinks.
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
