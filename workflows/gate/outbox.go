package gate

import (
	"time"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/workflows/protocol"
)

// maxTaskBytes bounds what one workflow task may start. The commands of a task
// travel in one message, and Temporal terminates a run whose message is over
// 4 MB, however small each command is.
const maxTaskBytes = 1_500_000

// Outbox counts the bytes that the current workflow task starts, and knows
// how large a value may be. Another task has begun when the history is longer, and, where
// tests skip time and no history grows, when what the one before has started is over. The listener of the workflow's signals is kept with it.
type Outbox struct {
	listener listener
	Limits   interpreter.RunLimits
	length   int
	task     int // number of the current one
	bytes    int
	waiting  bool
	script   *packedScript // that was sent last
}

// encodedValue is a value as Temporal's data converter writes it.
type encodedValue struct {
	value any // which the converter takes as it is
	size  int // in bytes, as JSON
}

// encodeValue encodes a value with metadata. If it cannot be encoded, the value is kept and the
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

// packedScript is a script in the encoded form in which it is sent.
type packedScript struct {
	call.Script
	encodedValue
}

// packScript encodes a script once, so that all children that need it are sent the same bytes. Its
// metadata marks it for the payload store.
func (o *Outbox) packScript(script call.Script) *packedScript {
	if last := o.script; last == nil || !last.Equal(script) {
		o.script = &packedScript{Script: script, encodedValue: encodeValue(script, interpreter.ScriptMark)}
	}
	return o.script
}

type outboxKey struct{}

// WithOutbox gives a workflow its outbox; every workflow does so first. The
// limits come from history, so that a replay decides the same.
func WithOutbox(ctx workflow.Context, limits interpreter.RunLimits) workflow.Context {
	return (&Outbox{Limits: limits}).With(ctx)
}

// With puts the outbox into another context of the same workflow.
func (o *Outbox) With(ctx workflow.Context) workflow.Context {
	return workflow.WithValue(ctx, outboxKey{}, o)
}

// OutboxOf returns the outbox that WithOutbox has put into the workflow's context.
func OutboxOf(ctx workflow.Context) *Outbox {
	return ctx.Value(outboxKey{}).(*Outbox) // WithOutbox put it there
}

// PayloadCap is how many bytes of JSON may cross a boundary in this run.
func PayloadCap(ctx workflow.Context) int { return OutboxOf(ctx).Limits.PayloadCap() }

// TaskBytes returns how many of a task's bytes pass through Temporal itself and not through the
// payload store.
func (o *Outbox) TaskBytes(task protocol.Task) int {
	task, script := task.Apart()
	return o.Limits.InlineSize(interpreter.EncodedSize(task)) + o.Limits.InlineScriptSize(o.packScript(script).size)
}

// admitBytes waits until size more bytes fit into what the current workflow task sends: it returns at once, or in a later task. task is
// the number of the task that it returns in, for taskEnded. The error is ctx's, if that was cancelled meanwhile; then nothing may be sent.
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

// taskEnded says that something which was started in a task is over, so a later task has begun and its bytes are counted from
// zero. Further reports about the same task change nothing.
func (o *Outbox) taskEnded(task int) {
	if o.task == task {
		o.task, o.bytes = task+1, 0
	}
}

// waitForTask waits for another workflow task. One short timer brings it for all that
// wait.
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
