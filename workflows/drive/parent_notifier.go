package drive

import (
	"slices"

	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/interpreter/playbook"
	"reprise/workflows/gate"
	"reprise/workflows/protocol"
)

// WaitsForPeople returns the news that a call waits for people because its attempts are used up; false for other
// waits.
func WaitsForPeople(machine *call.Call, wait *interpreter.Wait, visit int) (call.News, bool) {
	if wait == nil || wait.Reason != interpreter.ReasonPerson {
		return call.News{}, false
	}
	return call.News{
		Event: playbook.EventPaused, Step: machine.Config().Step.Name, Visit: visit, Index: machine.Config().Index, Status: interpreter.RetryPending,
		Attempts: machine.View().Attempts, Error: machine.View().Failure.ShrunkError(), Reason: wait.Summary,
	}, true
}

// ParentNotifier passes news from a child of a run to its parent workflow, which sends the notices.
type ParentNotifier struct {
	Book      *playbook.Playbook
	Once      bool // pass each event on once, not for each iteration
	signalled []string
}

// NotifyParent sends news to the parent workflow, if the playbook has notices of the event.
func (n *ParentNotifier) NotifyParent(ctx workflow.Context, news call.News) {
	parent := workflow.GetInfo(ctx).ParentWorkflowExecution
	if parent == nil || !n.Book.HasNotice(news.Event) || n.Once && slices.Contains(n.signalled, news.Event) {
		return
	}
	n.signalled = append(n.signalled, news.Event)
	gate.SignalWorkflow(ctx, parent.ID, protocol.NewsSignal, news)
}

// HasNewsOfChildren reports whether the playbook has notices of events in children of a run.
func HasNewsOfChildren(book *playbook.Playbook) bool {
	return book.HasNotice(playbook.EventPaused) || book.HasNotice(playbook.EventExhausted)
}

// ForwardNews passes the news of this workflow's children on to its parent.
func (n *ParentNotifier) ForwardNews(ctx workflow.Context) {
	if HasNewsOfChildren(n.Book) {
		gate.HandleSignal(ctx, protocol.NewsSignal, n.NotifyParent)
	}
}
