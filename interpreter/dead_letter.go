package interpreter

import (
	"time"

	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// DeadLetter is an iteration that ended as failed: all that is needed to know
// why, and to run it again (language.md, section dead letters).
type DeadLetter struct {
	// ExecutionID and RunID name the run that the iteration belongs to; for a
	// reprocess they are those of the run it takes up again.
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
	LastAttemptAt time.Time    `json:"last_attempt_at"`
	Error         *ErrorObject `json:"error"`
}

// value is the dead letter as expressions and sinks see it: flat, so that it is
// a row.
func (d DeadLetter) value() map[string]any {
	row := map[string]any{
		"execution_id": d.ExecutionID, "run_id": d.RunID,
		"playbook": d.Playbook, "playbook_hash": d.PlaybookHash,
		"step": d.Step, "visit": d.Visit, "index": d.Index, "element": d.Element.Data,
		"attempts": d.Attempts, "last_attempt_at": timeText(d.LastAttemptAt),
		"kind": string(d.Error.Kind), "class": string(d.Error.Class), "status": nil, "message": d.Error.Message,
		"error": d.Error.Value(),
	}
	if d.Error.Status != 0 {
		row["status"] = d.Error.Status
	}
	return row
}

// failedAt is when the last attempt of a failed call ended.
func (r CallResult) failedAt() time.Time {
	if r.Error != nil && !r.Error.At.IsZero() {
		return r.Error.At
	}
	return r.Meta.EndedAt
}

// deadLetter is the failed iteration that a result makes of a call.
func (c *CallConfig) deadLetter(result CallResult) any {
	run := c.Run
	letter := DeadLetter{
		ExecutionID: run.WorkflowID, RunID: run.RunID, Playbook: run.Playbook, PlaybookHash: c.Book.Hash,
		Step: c.Step.Name, Visit: c.Visit, Element: expression.Of(c.Scope.Element()),
		Attempts: result.Meta.Attempts, LastAttemptAt: result.failedAt(), Error: result.Error,
	}
	if c.Index != nil {
		letter.Index = *c.Index
	}
	return letter.value()
}

// deadLetterSink is where a step's failed iterations are written; nil for
// nowhere.
func deadLetterSink(step *playbook.Step) *playbook.Sink {
	if step.Loop == nil {
		return nil
	}
	return step.Loop.DeadLetter
}

// Unwritten warns of a failure that comes after, or instead of, the sinks of its
// iteration.
func Unwritten(step *playbook.Step) []string {
	if deadLetterSink(step) == nil {
		return nil
	}
	return []string{"its failure is not written to the sink of loop.dead_letter; starter dead-letters lists it"}
}
