package runs

import (
	"slices"

	commonpb "go.temporal.io/api/common/v1"
	historypb "go.temporal.io/api/history/v1"

	"reprise/workflows"
)

// unsent is a notice that failed, and the event that said so.
type unsent struct {
	call  callID
	by    int64
	event Event
}

// retried says that a notice that failed is made again.
func (p *projector) retried(notice callID) {
	for i, failed := range slices.Backward(p.unsent) {
		if failed.call == notice {
			p.unsent = slices.Delete(p.unsent, i, i+1)
			return
		}
	}
}

// pendingNotices are the notices of a run that continues with an input.
func (p *projector) pendingNotices(input *commonpb.Payloads) ([]workflows.UnsentNotice, error) {
	var continued struct {
		State struct {
			Unsent []workflows.UnsentNotice `json:"unsent"`
		} `json:"state"`
	}
	err := p.decode(p.workflowID, input, &continued)
	return continued.State.Unsent, err
}

// failedNotices adds the notices that were not sent. No step fails with them, so nothing else
// shows it. last is the last event of the history.
func (p *projector) failedNotices(last *historypb.HistoryEvent) error {
	if continued := last.GetWorkflowExecutionContinuedAsNewEventAttributes(); continued != nil && len(p.unsent) > 0 {
		notices, err := p.pendingNotices(continued.GetInput())
		if err != nil {
			return err
		}
		for _, notice := range notices {
			p.retried(callID{index: -1, sink: notice.Place})
		}
	}
	for _, failed := range p.unsent {
		if failed.by < p.decided {
			p.add(failed.by, "", failed.event)
		}
	}
	return nil
}
