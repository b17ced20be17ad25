package run

import (
	"fmt"
	"slices"

	"reprise/interpreter"
	"reprise/workflows/control"
	"reprise/workflows/drive"
	"reprise/workflows/protocol"
)

// answeredElsewhere returns an error that names the workflow which accepts an answer to a call outside the run's
// own history: one that makes a step's call in place of the run, or an iteration of its loop. It returns nil if the
// run knows no such attempt.
func (r *run) answeredElsewhere(to interpreter.AnswerTo) error {
	over := false
	for _, record := range slices.Backward(r.records) {
		switch {
		case record.Step != to.Step || to.Visit != 0 && to.Visit != record.Visit:
		case !record.EndedAt.IsZero():
			over = true
		case record.Loop != nil:
			return r.answeredInLoop(record, to.Index)
		case record.Call != "":
			return control.AnswerElsewhereError(record.Call)
		}
	}
	if over {
		return drive.StepOverError(to.Step)
	}
	return nil
}

// answeredInLoop returns an error that names the workflow which accepts an answer to an iteration.
func (r *run) answeredInLoop(record *protocol.StepRecord, index *int) error {
	size := record.Loop.Stats.Total
	if index == nil {
		return &interpreter.AnswerError{Type: interpreter.AnswerRefused, Message: fmt.Sprintf(
			"step %s is a loop with %d iterations; name one by its index", record.Step, size)}
	}
	var chosen *protocol.Subset
	if r.input.Reprocess != nil {
		chosen = &r.input.Reprocess.Loops[r.Reprocessed].Subset
		size = chosen.Size
	}
	task := protocol.Task{ID: r.id, Step: record.Step, Visit: record.Visit}
	id, found := protocol.IterationID(task, r.book.Step(record.Step).Loop, size, chosen, *index)
	if !found {
		return &interpreter.AnswerError{Type: interpreter.AnswerUnknown, Message: fmt.Sprintf(
			"step %s has no iteration %d here", record.Step, *index)}
	}
	return control.AnswerElsewhereError(id)
}
