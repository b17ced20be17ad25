package gate

import (
	"iter"
	"slices"

	"go.temporal.io/sdk/workflow"
)

// listener handles the signals of a workflow in one coroutine: the SDK runs each
// coroutine in each workflow task, whether there is anything to do for it or not.
type listener struct{ signals []handledSignal }

// handledSignal is the name of a signal with its handler.
type handledSignal struct {
	arrived func() bool
	handle  func(workflow.Context) // one that has arrived
}

// OnSignal registers the handler of a signal. Signals of one name are handled one after the
// other, as they arrive. If signals of several names arrive in one task, signals of the name
// registered first are handled first. ctx has to be the workflow's own: the context of a branch may be
// cancelled.
func OnSignal[In any](ctx workflow.Context, name string, handle func(workflow.Context, In)) {
	arrived := workflow.GetSignalChannel(ctx, name)
	OutboxOf(ctx).listener.addSignal(ctx, handledSignal{
		arrived: func() bool { return arrived.Len() > 0 },
		handle: func(ctx workflow.Context) {
			var message In
			if arrived.ReceiveAsync(&message) { // what cannot be decoded is dropped
				handle(ctx, message)
			}
		},
	})
}

// Arrived iterates over the signals that have arrived on a channel, and does not wait for more.
func Arrived[In any](signals workflow.ReceiveChannel) iter.Seq[In] {
	return func(yield func(In) bool) {
		for {
			var message In
			if !signals.ReceiveAsync(&message) || !yield(message) {
				return
			}
		}
	}
}

func (l *listener) addSignal(ctx workflow.Context, signals handledSignal) {
	l.signals = append(l.signals, signals)
	if len(l.signals) == 1 {
		workflow.Go(ctx, l.listenAlways)
	}
}

// listenAlways handles signals until the workflow ends, and after it was cancelled too.
func (l *listener) listenAlways(ctx workflow.Context) {
	disconnected, _ := workflow.NewDisconnectedContext(ctx)
	for workflow.Await(disconnected, l.hasArrived) == nil {
		for at := 0; at < len(l.signals); at++ {
			for l.signals[at].arrived() {
				l.signals[at].handle(ctx)
			}
		}
	}
}

func (l *listener) hasArrived() bool {
	return slices.ContainsFunc(l.signals, func(signals handledSignal) bool { return signals.arrived() })
}
