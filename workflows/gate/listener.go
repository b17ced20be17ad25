package gate

import (
	"iter"
	"slices"

	"go.temporal.io/sdk/workflow"
)

// listener handles all signals of a workflow in one coroutine, because the SDK runs every coroutine in every
// workflow task, whether it has work or not.
type listener struct{ signals []handledSignal }

// handledSignal is a signal with its handler.
type handledSignal struct {
	arrived func() bool
	handle  func(workflow.Context) // handles one signal that has arrived
}

// HandleSignal registers the handler of a signal. Signals of one name are handled one after the other, in order of
// arrival. If signals of several names arrive in one task, those of the name registered first are handled first.
// ctx must be the context of the workflow itself: that of a branch may be cancelled.
func HandleSignal[In any](ctx workflow.Context, name string, handle func(workflow.Context, In)) {
	arrived := workflow.GetSignalChannel(ctx, name)
	OutboxOf(ctx).listener.addSignal(ctx, handledSignal{
		arrived: func() bool { return arrived.Len() > 0 },
		handle: func(ctx workflow.Context) {
			var message In
			if arrived.ReceiveAsync(&message) { // a signal that cannot be decoded is dropped
				handle(ctx, message)
			}
		},
	})
}

// ArrivedSignals iterates over the signals that have arrived on a channel, without waiting for more.
func ArrivedSignals[In any](signals workflow.ReceiveChannel) iter.Seq[In] {
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

// listenAlways handles signals until the workflow ends, even after it was cancelled.
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
