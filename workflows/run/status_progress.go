package run

import (
	"reprise/interpreter"
	"reprise/interpreter/retry"
	"reprise/workflows/protocol"
)

// completeProgress adds to the progress of a run what is not in the records.
func (s *status) completeProgress(progress *protocol.Progress) {
	progress.Control, progress.Late, progress.Ticket, progress.States = s.controls.Control, s.late(), s.queues.currentTicket(), s.queues.queuedVisits()
	progress.ValidationWarnings = s.ValidationWarnings
	progress.Rows = s.Rows
	for _, parent := range s.controls.Parents {
		progress.Parents = append(progress.Parents, interpreter.Parent{Run: parent.Run, Step: parent.Step})
	}
	for i, record := range s.records {
		shown := &progress.Steps[i]
		step := s.book.Step(record.Step)
		if step == nil || step.Action == nil || !record.EndedAt.IsZero() {
			continue
		}
		if s.controls.IsPaused(step.Name) && step.Loop != nil {
			shown.Status = interpreter.Paused
		}
		var failure *interpreter.ErrorObject
		if call := s.live[record]; call != nil {
			view := call.View()
			failure, shown.Incremental, shown.Rows = view.Failure, view.Incremental().Record(), view.Rows()
		}
		shown.CompleteForDisplay(retry.MostAttempts(step, s.Limits), failure)
	}
	if s.input.Reprocess != nil {
		return
	}
	for _, step := range s.book.Steps {
		if s.routing.Visits[step.Name] == 0 {
			progress.Pending = append(progress.Pending, step.Name)
		}
	}
}
