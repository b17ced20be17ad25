package gate

import (
	"time"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/workflows/protocol"
)

// maxTaskBytes bounds the input that one workflow task sends. The commands of a task travel in one message, and
// Temporal terminates a run whose message exceeds 4 MB, however small each command is.
const maxTaskBytes = 1_500_000

// Outbox counts the bytes that the current workflow task sends, and knows the maximum size of a value. A new task
// has begun when the history is longer or, in tests that skip time and have no growing history, when something
// started in the previous task has ended. It also has the listener of the workflow's signals.
type Outbox struct {
	listener listener
	Limits   interpreter.RunLimits
	length   int
	task     int // number of the current task
	bytes    int
	waiting  bool
	script   *packedScript // the script that was sent last
}

// encodedValue is a value in the form of Temporal's data converter.
type encodedValue struct {
	value any // accepted by the converter unchanged
	size  int // in bytes, as JSON
}

// encodeValue encodes a value, with metadata. A value that cannot be encoded is kept as it is, so that the
// converter reports the error.
func encodeValue(value any, metadata ...string) encodedValue {
	payload, err := converter.GetDefaultDataConverter().ToPayload(value)
	if err != nil {
		return encodedValue{value: value}
	}
	for _, name := range metadata {
		payload.Metadata[name] = []byte("1")
	}
	return encodedValue{value: converter.NewRawValue(payload), size: len(payload.GetData())}
}

// packedScript is a script in its encoded form.
type packedScript struct {
	call.Script
	encodedValue
}

// packScript encodes a script once, so that all children that need it get the same bytes. Its metadata marks it for
// the payload store.
func (o *Outbox) packScript(script call.Script) *packedScript {
	if last := o.script; last == nil || !last.Equal(script) {
		o.script = &packedScript{Script: script, encodedValue: encodeValue(script, interpreter.ScriptMark)}
	}
	return o.script
}

type outboxKey struct{}

// WithOutbox adds an outbox to the context; every workflow calls it first. The limits come from history, so that a
// replay decides the same.
func WithOutbox(ctx workflow.Context, limits interpreter.RunLimits) workflow.Context {
	return (&Outbox{Limits: limits}).With(ctx)
}

// With adds the outbox to another context of the same workflow.
func (o *Outbox) With(ctx workflow.Context) workflow.Context {
	return workflow.WithValue(ctx, outboxKey{}, o)
}

// OutboxOf returns the outbox that WithOutbox added to the context.
func OutboxOf(ctx workflow.Context) *Outbox {
	return ctx.Value(outboxKey{}).(*Outbox) // WithOutbox put it there
}

// PayloadCap returns the largest size, in bytes of JSON, of a value that this run may send or return.
func PayloadCap(ctx workflow.Context) int { return OutboxOf(ctx).Limits.PayloadCap() }

// TaskBytes returns how many bytes of a task are sent through Temporal itself rather than the payload store.
func (o *Outbox) TaskBytes(task protocol.Task) int {
	task, script := task.SplitScript()
	return o.Limits.InlineSize(interpreter.EncodedSize(task)) + o.Limits.InlineScriptSize(o.packScript(script).size)
}

// admitBytes waits until size more bytes fit into the current workflow task: it returns at once, or in a later
// task. task is the number of the task in which it returns, for taskEnded. If ctx is cancelled meanwhile, it
// returns ctx's error, and nothing may be sent.
func admitBytes(ctx workflow.Context, size int) (task int, err error) {
	o := OutboxOf(ctx)
	for !o.hasRoom(ctx, size) {
		if err := o.waitForTask(ctx); err != nil {
			return o.task, err
		}
	}
	o.bytes += size
	return o.task, nil
}

func (o *Outbox) hasRoom(ctx workflow.Context, size int) bool {
	if length := workflow.GetInfo(ctx).GetCurrentHistoryLength(); length != o.length {
		o.length = length
		o.taskEnded(o.task)
	}
	return o.bytes == 0 || o.bytes+size <= maxTaskBytes
}

// taskEnded records that something started in a task has ended, so that a later task has begun and its bytes are
// counted from zero. Further calls for the same task do nothing.
func (o *Outbox) taskEnded(task int) {
	if o.task == task {
		o.task, o.bytes = task+1, 0
	}
}

// waitForTask waits for another workflow task, which one short timer triggers for all waiting callers.
func (o *Outbox) waitForTask(ctx workflow.Context) error {
	if o.waiting {
		return workflow.Await(ctx, func() bool { return !o.waiting })
	}
	o.waiting = true
	defer func() { o.waiting = false }()
	task := o.task
	err := workflow.NewTimerWithOptions(ctx, time.Millisecond, workflow.TimerOptions{
		Summary: "much data at once: the rest follows in another workflow task",
	}).Get(ctx, nil)
	if err == nil {
		o.taskEnded(task)
	}
	return err
}
