package workflows

import (
	"time"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/call"
)

// maxTaskBytes bounds what one workflow task may start. The commands of a task
// travel in one message, and Temporal terminates a run whose message is over
// 4 MB, however small each command is.
const maxTaskBytes = 1_500_000

// outbox counts the bytes that the current workflow task starts, and knows
// how large a value may be. Another task has begun when the history is longer, and, where
// tests skip time and no history grows, when what the one before has started is over. The listener of the workflow's signals is kept with it.
type outbox struct {
	listener listener
	limits   interpreter.RunLimits
	length   int
	task     int // number of the current one
	bytes    int
	waiting  bool
	script   *packed // that was sent last
}

// encoded is a value as Temporal's data converter writes it.
type encoded struct {
	value any // which the converter takes as it is
	size  int // in bytes, as JSON
}

// encode writes a value, with metadata beside it. A value that cannot be encoded stays
// as it is: the converter reports the error.
func encode(value any, metadata ...string) encoded {
	payload, err := converter.GetDefaultDataConverter().ToPayload(value)
	if err != nil {
		return encoded{value: value}
	}
	for _, name := range metadata {
		payload.Metadata[name] = []byte("1")
	}
	return encoded{value: converter.NewRawValue(payload), size: len(payload.GetData())}
}

// packed is a script as it travels.
type packed struct {
	call.Script
	encoded
}

// pack encodes a script, once for all children that get the same. The payload store
// knows it by its mark.
func (o *outbox) pack(script call.Script) *packed {
	if last := o.script; last == nil || !last.Equal(script) {
		o.script = &packed{Script: script, encoded: encode(script, interpreter.ScriptMark)}
	}
	return o.script
}

type outboxKey struct{}

// withOutbox gives a workflow its outbox; every workflow does so first. The
// limits come from history, so that a replay decides the same.
func withOutbox(ctx workflow.Context, limits interpreter.RunLimits) workflow.Context {
	return workflow.WithValue(ctx, outboxKey{}, &outbox{limits: limits})
}

func outboxOf(ctx workflow.Context) *outbox {
	return ctx.Value(outboxKey{}).(*outbox) // withOutbox put it there
}

// payloadCap is how many bytes of JSON may cross a boundary in this run.
func payloadCap(ctx workflow.Context) int { return outboxOf(ctx).limits.PayloadCap() }

// taskBytes is how many bytes of a task travel through Temporal itself.
func (o *outbox) taskBytes(task Task) int {
	task, script := task.Apart()
	return o.limits.InlineSize(interpreter.EncodedSize(task)) + o.limits.InlineScriptSize(o.pack(script).size)
}

// admit returns once size bytes may go through Temporal: at once, or in a later
// workflow task when this one carries enough. task numbers the one that starts them. The error
// is that of a cancelled ctx.
func admit(ctx workflow.Context, size int) (task int, err error) {
	o := outboxOf(ctx)
	for !o.hasRoom(ctx, size) {
		if err := o.waitForTask(ctx); err != nil {
			return o.task, err
		}
	}
	o.bytes += size
	return o.task, nil
}

func (o *outbox) hasRoom(ctx workflow.Context, size int) bool {
	if length := workflow.GetInfo(ctx).GetCurrentHistoryLength(); length != o.length {
		o.length = length
		o.taskEnded(o.task)
	}
	return o.bytes == 0 || o.bytes+size <= maxTaskBytes
}

// taskEnded begins to count for the next task, unless it has begun: several things that one task
// has started may be over.
func (o *outbox) taskEnded(task int) {
	if o.task == task {
		o.task, o.bytes = task+1, 0
	}
}

// waitForTask waits for another workflow task. One short timer brings it for all that
// wait.
func (o *outbox) waitForTask(ctx workflow.Context) error {
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
