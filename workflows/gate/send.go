// Package gate is the entry and exit of a workflow. Everything that leaves passes through Send and Start, which
// send input to an activity or a child, or through ContinueAsNew. Temporal rejects input that is too large in a way
// that leaves the run hanging, and ends a run that sends too much at once, so these functions measure first;
// nothing else may call the SDK functions that they use. HandleSignal handles what arrives. The rest is what every
// workflow needs of the SDK: its log, metrics, random numbers, and texts for Temporal's UI.
package gate

import (
	"cmp"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/interpreter/tree"
	"reprise/workflows/protocol"
)

// Recipient is an activity or a child workflow that Send and Start can start, with its timeouts and a summary for
// Temporal's UI. ToTool and the functions after it make one.
type Recipient struct {
	kind    recipientKind
	name    string        // of the activity or workflow type
	summary string        // what Temporal's UI shows beside it
	Details string        // a longer text that the UI shows for a child
	limit   time.Duration // timeout of an activity
	Tries   int32         // maximum deliveries of an activity; 0 is MostDeliveries
	ID      string        // workflow ID of a child
	// reports is set if the details of a failure or cancel contain a partial result.
	reports bool
	// Acts reports whether a child has to obey a command; Step is the step that the child works for.
	Acts func(protocol.Steering) bool
	Step string
	// Urgent gives an activity Temporal's highest priority, so that workers run it before others of the task queue.
	Urgent bool
	// Attributes are the initial search attributes of a child.
	Attributes []temporal.SearchAttributeUpdate
	// Memo is the initial memo of a child, nil for none.
	Memo map[string]any
}

type recipientKind int

const (
	isActivity recipientKind = iota
	isLocal                  // an activity in the same worker
	isChild
	isDetached // a child whose end is not awaited: its result is its workflow.Execution
)

// ToTool returns an activity that makes one attempt. Its failure is an ErrorObject.
func ToTool(name string, limit time.Duration, summary string) Recipient {
	return Recipient{name: name, limit: limit, summary: summary}
}

// ToHost returns an activity that makes many attempts, and reports partial results.
func ToHost(name string, limit time.Duration, summary string) Recipient {
	return Recipient{name: name, limit: limit, summary: summary, reports: true}
}

// ToLocal returns an activity in the same worker. Its input is not in history.
func ToLocal(name string, limit time.Duration, summary string) Recipient {
	return Recipient{kind: isLocal, name: name, limit: limit, summary: summary}
}

// ToChild returns a child workflow that works for a step and reports partial results. acts selects the steerings
// that are passed on to it.
func ToChild(name, id, step, summary string, acts func(protocol.Steering) bool) Recipient {
	return Recipient{kind: isChild, name: name, ID: id, Step: step, summary: summary, reports: true, Acts: acts}
}

// ToDetached returns a child workflow that continues when this workflow ends.
func ToDetached(name, id, summary string) Recipient {
	return Recipient{kind: isDetached, name: name, ID: id, summary: summary}
}

// SignalWorkflow sends a signal to a workflow. Callers do not wait for its delivery: a workflow that has ended need not be
// signalled.
func SignalWorkflow(ctx workflow.Context, id, name string, message any) workflow.Future {
	return workflow.SignalExternalWorkflow(ctx, id, "", name, message)
}

// signalChild sends a signal to a child. It waits until the child has begun.
func signalChild(ctx workflow.Context, child workflow.ChildWorkflowFuture, name string, message any) workflow.Future {
	return child.SignalChildWorkflow(ctx, name, message)
}

// Send starts an activity or a child with input and waits for its result, which may also be a partial result in the
// details of a failure. what describes the input in messages. The error is an *interpreter.ErrorObject if the input
// is too large, ctx.Err() if ctx was cancelled before anything was sent, and otherwise Temporal's error.
func Send[Out any](ctx workflow.Context, to Recipient, input any, what string) (out Out, err error) {
	sent, err := Start(ctx, to, input, what)
	if err != nil {
		return out, err
	}
	return ReceiveResult[Out](ctx, sent)
}

// Handle is an activity or child that was started and whose result was not received yet.
type Handle struct {
	to     Recipient
	result workflow.Future
	// started resolves when the server has started the child; nil for an activity.
	started workflow.Future
	steered *SteeredChild // set if commands of people are passed on to the child
	task    int           // number of the workflow task that started it
}

// HasStarted reports whether the server has started the child or has rejected its start.
func (s *Handle) HasStarted() bool { return s.started.IsReady() }

// HasResult reports whether ReceiveResult returns at once.
func (s *Handle) HasResult() bool { return s.result.IsReady() }

// Start starts an activity or a child, once the workflow task has room for the input. Errors are those of Send
// about input that was not sent.
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
		ctx, _ = workflow.NewDisconnectedContext(ctx) // a cancel of this workflow must not cancel it
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

// ReceiveResult waits for the result of a handle. Errors are those of Send about input that was sent.
func ReceiveResult[Out any](ctx workflow.Context, s *Handle) (out Out, err error) {
	err = s.result.Get(ctx, &out)
	if err != nil && s.to.reports && protocol.DecodeDetails(err, &out) {
		err = nil
	}
	s.stopSignals(ctx)
	if s.to.kind != isLocal {
		OutboxOf(ctx).taskEnded(s.task) // the task that started it has ended
	}
	return out, err
}

// stopSignals stops signals to the child.
func (s *Handle) stopSignals(ctx workflow.Context) {
	if s.steered != nil {
		ChildrenOf(ctx).StopSteering(s.steered)
	}
}

// scriptCarrier is an input that contains a task with a script, which is sent as an argument of its own.
type scriptCarrier interface {
	SplitScript() (rest any, script call.Script)
}

// encodeInput encodes an input as arguments of an activity or child. bytes is the size of the part that is sent
// through Temporal itself rather than the payload store. failure is set if the input is too large.
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

// RecordMarker records a small value in the history, for programs that read histories.
func RecordMarker(ctx workflow.Context, mark any) {
	workflow.SideEffect(ctx, func(workflow.Context) any { return mark })
}

// ContinueAsNew returns the error, next, with which a workflow returns in order to continue as new with input. If
// the input is too large, it sets failure instead; what describes the input in the message.
func ContinueAsNew(ctx workflow.Context, name string, input any, what string) (failure *interpreter.ErrorObject, next error) {
	args, _, failure := encodeInput(ctx, input, what)
	if failure != nil {
		return failure, nil
	}
	return nil, workflow.NewContinueAsNewError(ctx, name, args...)
}

// FailureOr returns failure if it is set, else next, for a workflow that tries to continue as new.
func FailureOr(failure *interpreter.ErrorObject, next error) error {
	if failure != nil {
		return failure
	}
	return next
}

// MostDeliveries bounds the deliveries of an activity, which would otherwise continue forever if no worker has its
// tool. For attempts that lost their worker the activity itself applies a smaller bound, because only it knows
// which deliveries may have acted.
const MostDeliveries = 1000

// sendOptions adds the options of the recipient to the context. Temporal's retries of an activity only redeliver it
// when its worker was lost or returned it.
func (d Recipient) sendOptions(ctx workflow.Context) workflow.Context {
	switch d.kind {
	case isLocal:
		return workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{
			StartToCloseTimeout: d.limit, Summary: d.summary,
		})
	case isChild, isDetached:
		options := workflow.ChildWorkflowOptions{
			WorkflowID: d.ID, WaitForCancellation: true, StaticSummary: d.summary, StaticDetails: d.Details, Memo: d.Memo,
		}
		if d.kind == isDetached {
			options.ParentClosePolicy = enumspb.PARENT_CLOSE_POLICY_ABANDON
			options.Memo = map[string]any{tree.DetachedMemo: true}
			//workflowcheck:ignore a memo is a map
			for key, value := range d.Memo {
				options.Memo[key] = value
			}
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
