package workflows

import (
	"cmp"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/call"
)

// Everything that leaves a workflow leaves it here: send gives something to an activity
// or a child, continueAsNew to the workflow's own next history. Temporal refuses what
// is too large in a way that leaves the run hanging, and ends a run that sends too much
// at once, so both measure first. Nothing else may call what they call.

// destination is where something is sent.
type destination struct {
	kind    destinationKind
	name    string        // of the activity or workflow
	summary string        // what Temporal's UI shows beside it
	details string        // and below that
	limit   time.Duration // of an activity
	tries   int32         // of an activity; 0 is mostDeliveries
	id      string        // of a child
	// reports says that the details of a failure, or of a cancel, are what has been
	// done until then.
	reports bool
	// acts reports whether a child has to act on what people say, and step is the one
	// that it is for.
	acts func(Steering) bool
	step string
	// urgent says that an activity goes before all others that wait for a worker.
	urgent bool
	// attributes are search attributes that a child begins with.
	attributes []temporal.SearchAttributeUpdate
}

type destinationKind int

const (
	isActivity destinationKind = iota
	isLocal                    // an activity in the same worker
	isChild
	isDetached // a child whose end is not awaited: its result is its workflow.Execution
)

// toTool is an activity that makes one attempt. Its failure is an ErrorObject.
func toTool(name string, limit time.Duration, summary string) destination {
	return destination{name: name, limit: limit, summary: summary}
}

// toHost is an activity that makes many attempts, and reports its progress.
func toHost(name string, limit time.Duration, summary string) destination {
	return destination{name: name, limit: limit, summary: summary, reports: true}
}

// toLocal is an activity in the same worker. Its input is not in history.
func toLocal(name string, limit time.Duration, summary string) destination {
	return destination{kind: isLocal, name: name, limit: limit, summary: summary}
}

// toChild is a child workflow with an ID for a step, which reports its progress. acts
// says which requests of people it is signalled.
func toChild(name, id, step, summary string, acts func(Steering) bool) destination {
	return destination{kind: isChild, name: name, id: id, step: step, summary: summary, reports: true, acts: acts}
}

// toDetached is a child workflow that continues by itself, whatever becomes of this
// one.
func toDetached(name, id, summary string) destination {
	return destination{kind: isDetached, name: name, id: id, summary: summary}
}

// signal sends a signal to a workflow. Within a run its outcome is not awaited: a
// workflow that has ended need not be signalled.
func signal(ctx workflow.Context, id, name string, message any) workflow.Future {
	return workflow.SignalExternalWorkflow(ctx, id, "", name, message)
}

// signalChild is signal for a child. It waits until the child has begun.
func signalChild(ctx workflow.Context, child workflow.ChildWorkflowFuture, name string, message any) workflow.Future {
	return child.SignalChildWorkflow(ctx, name, message)
}

// send gives input to an activity or a child and waits for its result, which may also
// be the details of a failure. what is the input in words. The error is an
// *interpreter.ErrorObject where the input is too large, that of ctx where ctx was
// cancelled before anything was sent, and else that of Temporal.
func send[Out any](ctx workflow.Context, to destination, input any, what string) (out Out, err error) {
	sent, err := start(ctx, to, input, what)
	if err != nil {
		return out, err
	}
	return receive[Out](ctx, sent)
}

// sent is an activity or a child that was started, whose result is not received yet.
type sent struct {
	to     destination
	result workflow.Future
	// started is the start of a child by the server; nil of an activity.
	started workflow.Future
	steered *steered // a child that people steer
	task    int      // number of the workflow task that has started it
}

// hasStarted reports whether the server has started a child, or never will.
func (s *sent) hasStarted() bool { return s.started.IsReady() }

// hasResult reports whether receive returns at once.
func (s *sent) hasResult() bool { return s.result.IsReady() }

// start gives input to an activity or a child, once the workflow task has room for that.
// The error is one of those of send, of what was not sent.
func start(ctx workflow.Context, to destination, input any, what string) (*sent, error) {
	s := &sent{to: to}
	args := []any{input}
	if to.kind != isLocal {
		var size int
		var failure *interpreter.ErrorObject
		if args, size, failure = travelling(ctx, input, what); failure != nil {
			return nil, failure
		}
		if err := ctx.Err(); to.kind == isDetached && err != nil {
			return nil, err
		}
		if to.kind == isChild {
			s.steered = controlsOf(ctx).steer(to)
		}
		task, err := admit(ctx, size)
		if err != nil {
			s.ended(ctx)
			return nil, err
		}
		s.task = task
	}
	if to.kind == isDetached {
		ctx, _ = workflow.NewDisconnectedContext(ctx) // which would cancel it with this workflow
	}
	ctx = to.options(ctx)
	switch to.kind {
	case isLocal:
		s.result = workflow.ExecuteLocalActivity(ctx, to.name, args...)
	case isChild, isDetached:
		child := workflow.ExecuteChildWorkflow(ctx, to.name, args...)
		s.started, s.result = child.GetChildWorkflowExecution(), child
		if to.kind == isDetached {
			s.result = s.started
		} else {
			s.steered.starts(ctx, child)
		}
	default:
		s.result = workflow.ExecuteActivity(ctx, to.name, args...)
	}
	return s, nil
}

// receive waits for a result; see send.
func receive[Out any](ctx workflow.Context, s *sent) (out Out, err error) {
	err = s.result.Get(ctx, &out)
	if err != nil && s.to.reports && DetailsOf(err, &out) {
		err = nil
	}
	s.ended(ctx)
	if s.to.kind != isLocal {
		outboxOf(ctx).taskEnded(s.task) // what it has started is over
	}
	return out, err
}

// ended has a child signalled no more.
func (s *sent) ended(ctx workflow.Context) {
	if s.steered != nil {
		controlsOf(ctx).ends(s.steered)
	}
}

// parted is an input with a task, whose script travels as an argument of its own.
type parted interface {
	apart() (rest any, script call.Script)
}

// travelling are the arguments that carry an input, and how many bytes of them go
// through Temporal itself. They are encoded here, once. The error is that of an input
// that is too large.
func travelling(ctx workflow.Context, input any, what string) (args []any, bytes int, failure *interpreter.ErrorObject) {
	o, total, throughTemporal := outboxOf(ctx), 0, 0
	if parted, is := input.(parted); is {
		rest, script := parted.apart()
		sent := o.pack(script)
		input, total, throughTemporal = rest, sent.size, o.limits.InlineScriptSize(sent.size)
		args = []any{sent.value}
	}
	sent := encode(input)
	failure = interpreter.CheckSize(total+sent.size, o.limits.PayloadCap(), what)
	return append([]any{sent.value}, args...), o.limits.InlineSize(sent.size) + throughTemporal, failure
}

// recordMarker writes something small into the history, for its readers.
func recordMarker(ctx workflow.Context, mark any) {
	workflow.SideEffect(ctx, func(workflow.Context) any { return mark })
}

// continueAsNew ends a workflow's history: next is the error with which it continues as
// new, with input. failure is set instead where the input is too large to be taken
// along; what is the input in words.
func continueAsNew(ctx workflow.Context, name string, input any, what string) (failure *interpreter.ErrorObject, next error) {
	args, _, failure := travelling(ctx, input, what)
	if failure != nil {
		return failure, nil
	}
	return nil, workflow.NewContinueAsNewError(ctx, name, args...)
}

// orFailure is the end of a workflow that continues as new, or fails where it cannot.
func orFailure(failure *interpreter.ErrorObject, next error) error {
	if failure != nil {
		return failure
	}
	return next
}

const (
	// heartbeatTimeout is how long a lost worker stays unnoticed.
	heartbeatTimeout = 10 * time.Second
	// mostDeliveries ends what would be delivered for ever, such as the
	// activity of a tool that no worker has. How often an attempt may be lost is
	// less; the activity counts that, because only it knows which of its
	// deliveries may have acted.
	mostDeliveries = 1000
)

// options are those of whatever is sent there. Temporal's own retry of an activity
// only delivers one again when its worker was lost or returned it.
func (d destination) options(ctx workflow.Context) workflow.Context {
	switch d.kind {
	case isLocal:
		return workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{
			StartToCloseTimeout: d.limit, Summary: d.summary,
		})
	case isChild, isDetached:
		options := workflow.ChildWorkflowOptions{
			WorkflowID: d.id, WaitForCancellation: true, StaticSummary: d.summary, StaticDetails: d.details,
		}
		if d.kind == isDetached {
			options.ParentClosePolicy = enumspb.PARENT_CLOSE_POLICY_ABANDON
			options.Memo = map[string]any{interpreter.DetachedMemo: true}
		}
		if len(d.attributes) > 0 {
			options.TypedSearchAttributes = temporal.NewSearchAttributes(d.attributes...)
		}
		return workflow.WithChildOptions(ctx, options)
	}
	var priority temporal.Priority
	if d.urgent {
		priority.PriorityKey = 1
	}
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: d.limit,
		Priority:            priority,
		HeartbeatTimeout:    heartbeatTimeout,
		WaitForCancellation: true,
		Summary:             d.summary,
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval: time.Second, BackoffCoefficient: 1, MaximumAttempts: cmp.Or(d.tries, mostDeliveries),
		},
	})
}
