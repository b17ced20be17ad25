// Package gate is where everything leaves a workflow and arrives in it. Send gives something to an activity or a
// child, ContinueAsNew to the workflow's own next history: Temporal refuses what is too large in a way that leaves the
// run hanging, and ends a run that sends too much at once, so both measure first. Nothing else may call what they
// call. OnSignal handles what arrives. The rest is what every workflow needs of the SDK: its log, metrics, random
// numbers, and texts for Temporal's UI.
package gate

import (
	"cmp"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/workflows/protocol"
)

// Recipient is an activity or a child workflow to which Send and Start pass input. It has
// timeouts, and a summary for Temporal's UI. ToTool and the functions after it make one.
type Recipient struct {
	kind    recipientKind
	name    string        // of the activity or workflow
	summary string        // what Temporal's UI shows beside it
	Details string        // and below that
	limit   time.Duration // of an activity
	Tries   int32         // of an activity; 0 is MostDeliveries
	ID      string        // of a child
	// reports is set if the details of a failure, or of a cancel, hold what was done until
	// then.
	reports bool
	// Acts returns whether a child has to obey a command, and Step is the step that the command
	// is for.
	Acts func(protocol.Steering) bool
	Step string
	// Urgent gives an activity the highest of Temporal's priorities, so that workers take it
	// before others of the task queue.
	Urgent bool
	// Attributes are the search attributes with which a child starts.
	Attributes []temporal.SearchAttributeUpdate
}

type recipientKind int

const (
	isActivity recipientKind = iota
	isLocal                  // an activity in the same worker
	isChild
	isDetached // a child whose end is not awaited: its result is its workflow.Execution
)

// ToTool is an activity that makes one attempt. Its failure is an ErrorObject.
func ToTool(name string, limit time.Duration, summary string) Recipient {
	return Recipient{name: name, limit: limit, summary: summary}
}

// ToHost is an activity that makes many attempts, and reports its progress.
func ToHost(name string, limit time.Duration, summary string) Recipient {
	return Recipient{name: name, limit: limit, summary: summary, reports: true}
}

// ToLocal is an activity in the same worker. Its input is not in history.
func ToLocal(name string, limit time.Duration, summary string) Recipient {
	return Recipient{kind: isLocal, name: name, limit: limit, summary: summary}
}

// ToChild is a child workflow with an ID for a step, which reports its progress. acts
// says which requests of people it is signalled.
func ToChild(name, id, step, summary string, acts func(protocol.Steering) bool) Recipient {
	return Recipient{kind: isChild, name: name, ID: id, Step: step, summary: summary, reports: true, Acts: acts}
}

// ToDetached is a child workflow that continues when this workflow ends.
func ToDetached(name, id, summary string) Recipient {
	return Recipient{kind: isDetached, name: name, ID: id, summary: summary}
}

// Signal sends a signal to a workflow. Within a run its outcome is not awaited: a
// workflow that has ended need not be signalled.
func Signal(ctx workflow.Context, id, name string, message any) workflow.Future {
	return workflow.SignalExternalWorkflow(ctx, id, "", name, message)
}

// signalChild is Signal for a child. It waits until the child has begun.
func signalChild(ctx workflow.Context, child workflow.ChildWorkflowFuture, name string, message any) workflow.Future {
	return child.SignalChildWorkflow(ctx, name, message)
}

// Send gives input to an activity or a child and waits for its result, which may also
// be the details of a failure. what is the input in words. The error is an
// *interpreter.ErrorObject if the input is too large, ctx.Err() if ctx was
// cancelled before anything was sent, and otherwise Temporal's error.
func Send[Out any](ctx workflow.Context, to Recipient, input any, what string) (out Out, err error) {
	sent, err := Start(ctx, to, input, what)
	if err != nil {
		return out, err
	}
	return Receive[Out](ctx, sent)
}

// Handle is an activity or a child that was started and whose result was not received yet.
type Handle struct {
	to     Recipient
	result workflow.Future
	// started resolves when the server has started the child; nil for an activity.
	started workflow.Future
	steered *SteeredChild // a child that people steer
	task    int           // number of the workflow task that has started it
}

// HasStarted reports whether the start of a child is settled: the server has started it, or has refused to.
func (s *Handle) HasStarted() bool { return s.started.IsReady() }

// HasResult reports whether Receive returns at once.
func (s *Handle) HasResult() bool { return s.result.IsReady() }

// Start gives input to an activity or a child, once the workflow task has room for that.
// The error is as of Send, for the results that were not sent.
func Start(ctx workflow.Context, to Recipient, input any, what string) (*Handle, error) {
	s := &Handle{to: to}
	args := []any{input}
	if to.kind != isLocal {
		var size int
		var failure *interpreter.ErrorObject
		if args, size, failure = encodeInput(ctx, input, what); failure != nil {
			return nil, failure
		}
		if err := ctx.Err(); to.kind == isDetached && err != nil {
			return nil, err
		}
		if to.kind == isChild {
			s.steered = ChildrenOf(ctx).SteerChild(to)
		}
		task, err := admitBytes(ctx, size)
		if err != nil {
			s.stopSignals(ctx)
			return nil, err
		}
		s.task = task
	}
	if to.kind == isDetached {
		ctx, _ = workflow.NewDisconnectedContext(ctx) // which would cancel it with this workflow
	}
	ctx = to.sendOptions(ctx)
	switch to.kind {
	case isLocal:
		s.result = workflow.ExecuteLocalActivity(ctx, to.name, args...)
	case isChild, isDetached:
		child := workflow.ExecuteChildWorkflow(ctx, to.name, args...)
		s.started, s.result = child.GetChildWorkflowExecution(), child
		if to.kind == isDetached {
			s.result = s.started
		} else {
			s.steered.recordStart(ctx, child)
		}
	default:
		s.result = workflow.ExecuteActivity(ctx, to.name, args...)
	}
	return s, nil
}

// Receive waits for a result; its errors are as of Send.
func Receive[Out any](ctx workflow.Context, s *Handle) (out Out, err error) {
	err = s.result.Get(ctx, &out)
	if err != nil && s.to.reports && protocol.DetailsOf(err, &out) {
		err = nil
	}
	s.stopSignals(ctx)
	if s.to.kind != isLocal {
		OutboxOf(ctx).taskEnded(s.task) // what it has started is over
	}
	return out, err
}

// stopSignals stops signals to the child.
func (s *Handle) stopSignals(ctx workflow.Context) {
	if s.steered != nil {
		ChildrenOf(ctx).StopSteering(s.steered)
	}
}

// scriptCarrier is an input whose task has a script. The script is sent as an argument of its
// own.
type scriptCarrier interface {
	SplitScript() (rest any, script call.Script)
}

// encodeInput encodes an input as the arguments of an activity or child, and returns how many bytes of them go through Temporal itself,
// not through the payload store. failure is set if the input is too large to be sent.
func encodeInput(ctx workflow.Context, input any, what string) (args []any, bytes int, failure *interpreter.ErrorObject) {
	o, total, throughTemporal := OutboxOf(ctx), 0, 0
	if parted, is := input.(scriptCarrier); is {
		rest, script := parted.SplitScript()
		sent := o.packScript(script)
		input, total, throughTemporal = rest, sent.size, o.Limits.InlineScriptSize(sent.size)
		args = []any{sent.value}
	}
	sent := encodeValue(input)
	failure = interpreter.CheckSize(total+sent.size, o.Limits.PayloadCap(), what)
	return append([]any{sent.value}, args...), o.Limits.InlineSize(sent.size) + throughTemporal, failure
}

// RecordMarker records a small value in the history for programs that read it.
func RecordMarker(ctx workflow.Context, mark any) {
	workflow.SideEffect(ctx, func(workflow.Context) any { return mark })
}

// ContinueAsNew ends the history of a workflow. The workflow returns next, an error by which Temporal continues it as new with input.
// failure is set instead if the input is too large; what names it in that message.
func ContinueAsNew(ctx workflow.Context, name string, input any, what string) (failure *interpreter.ErrorObject, next error) {
	args, _, failure := encodeInput(ctx, input, what)
	if failure != nil {
		return failure, nil
	}
	return nil, workflow.NewContinueAsNewError(ctx, name, args...)
}

// FailureOr returns next, with which a workflow continues as new, or else its failure.
func FailureOr(failure *interpreter.ErrorObject, next error) error {
	if failure != nil {
		return failure
	}
	return next
}

// MostDeliveries bounds how often Temporal delivers an activity. Without it, the activity
// of a tool that no worker has would be delivered forever. The activity itself counts how
// often an attempt has lost its worker, which has a smaller bound, because only it knows
// which deliveries may have acted.
const MostDeliveries = 1000

// sendOptions are the options of whatever is sent there. Temporal's own retry of an activity
// only delivers one again when its worker was lost or returned it.
func (d Recipient) sendOptions(ctx workflow.Context) workflow.Context {
	switch d.kind {
	case isLocal:
		return workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{
			StartToCloseTimeout: d.limit, Summary: d.summary,
		})
	case isChild, isDetached:
		options := workflow.ChildWorkflowOptions{
			WorkflowID: d.ID, WaitForCancellation: true, StaticSummary: d.summary, StaticDetails: d.Details,
		}
		if d.kind == isDetached {
			options.ParentClosePolicy = enumspb.PARENT_CLOSE_POLICY_ABANDON
			options.Memo = map[string]any{interpreter.DetachedMemo: true}
		}
		if len(d.Attributes) > 0 {
			options.TypedSearchAttributes = temporal.NewSearchAttributes(d.Attributes...)
		}
		return workflow.WithChildOptions(ctx, options)
	}
	var priority temporal.Priority
	if d.Urgent {
		priority.PriorityKey = 1
	}
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: d.limit,
		Priority:            priority,
		HeartbeatTimeout:    OutboxOf(ctx).Limits.HeartbeatTimeout(),
		WaitForCancellation: true,
		Summary:             d.summary,
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval: time.Second, BackoffCoefficient: 1, MaximumAttempts: cmp.Or(d.Tries, MostDeliveries),
		},
	})
}
