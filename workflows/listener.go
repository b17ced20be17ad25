package workflows

import (
	"iter"
	"slices"

	"go.temporal.io/sdk/workflow"
)

// listener handles the signals of a workflow in one coroutine: the SDK runs each
// coroutine in each workflow task, whether there is anything to do for it or not.
type listener struct{ signals []handledSignal }

// handledSignal is what is done with the signals of one name.
type handledSignal struct {
	arrived func() bool
	handle  func(workflow.Context) // one that has arrived
}

// onSignal handles the signals of a name as they arrive, one after the other. Where
// signals of several names have arrived, those of the name that was given first come
// first. ctx is that of the workflow.
func onSignal[In any](ctx workflow.Context, name string, handle func(workflow.Context, In)) {
	arrived := workflow.GetSignalChannel(ctx, name)
	outboxOf(ctx).listener.add(ctx, handledSignal{
		arrived: func() bool { return arrived.Len() > 0 },
		handle: func(ctx workflow.Context) {
			var message In
			if arrived.ReceiveAsync(&message) { // what cannot be decoded is dropped
				handle(ctx, message)
			}
		},
	})
}

// arrived iterates over the signals of a channel that have arrived and were not read yet.
func arrived[In any](signals workflow.ReceiveChannel) iter.Seq[In] {
	return func(yield func(In) bool) {
		for {
			var message In
			if !signals.ReceiveAsync(&message) || !yield(message) {
				return
			}
		}
	}
}

func (l *listener) add(ctx workflow.Context, signals handledSignal) {
	l.signals = append(l.signals, signals)
	if len(l.signals) == 1 {
		workflow.Go(ctx, l.listen)
	}
}

// listen handles signals until the workflow ends, and after it was cancelled too.
func (l *listener) listen(ctx workflow.Context) {
	disconnected, _ := workflow.NewDisconnectedContext(ctx)
	for workflow.Await(disconnected, l.arrived) == nil {
		for at := 0; at < len(l.signals); at++ {
			for l.signals[at].arrived() {
				l.signals[at].handle(ctx)
			}
		}
	}
}

func (l *listener) arrived() bool {
	return slices.ContainsFunc(l.signals, func(signals handledSignal) bool { return signals.arrived() })
}
