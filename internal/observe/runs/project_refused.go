package runs

import (
	"strings"

	"reprise/workflows"
)

// refusedMark makes a failure of the last attempt of a call, as a policy has of its
// answer.
func (p *projector) refusedMark(mark workflows.RefusedMark) {
	at := p.waiter(mark.Refused, mark.Index)
	if last := p.calls[at]; last != nil {
		last.failure = mark.Error
	}
	for i := len(p.events) - 1; i >= 0; i-- {
		event := &p.events[i]
		if event.Event == ActionCompleted && event.Step == at.step && event.Visit == at.visit && indexOr(event.Index) == at.index &&
			event.Sink == "" && event.Attempt == mark.Attempt {
			event.key = strings.Replace(event.key, "/"+ActionCompleted+"/", "/"+ActionError+"/", 1)
			event.Event, event.Error = ActionError, mark.Error
			return
		}
	}
}
