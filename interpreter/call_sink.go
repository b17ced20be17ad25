package interpreter

import (
	"slices"
	"strings"
	"time"

	"reprise/interpreter/playbook"
)

// sinkCall is the call of a pending sink.
func (c *Call) sinkCall(pending PendingSink) *Call {
	sink := c.pendingSink(pending)
	scope, result, page := c.sinkScope(pending), c.State.Last.Contribution.Data, max(c.State.Successes, 1)
	switch {
	case pending.Page:
	case pending.DeadLetter:
		result = c.deadLetter()
	case c.State.Result.Failed():
		result = c.State.Result.Error.Collected.Data
	default:
		result = c.State.Result.Data.Data
	}
	config := c.config
	config.Scope, config.Args, config.After, config.DeadLetter = scope, nil, nil, nil
	call := NewSinkCall(config, sink, page, result)
	if pending.DeadLetter {
		return call.EveryRound()
	}
	return call
}

func (c *Call) pendingSink(pending PendingSink) *playbook.Sink {
	switch {
	case pending.After != 0:
		return c.config.After[pending.After-1]
	case pending.DeadLetter:
		return c.config.DeadLetter
	}
	then := c.config.Policies[pending.Policy-1].Then
	if pending.Page {
		return then.PerIteration
	}
	return then.Sink
}

// sinkScope is the scope of when and then, with `this` being the call's own
// envelope once it has ended.
func (c *Call) sinkScope(pending PendingSink) *Scope {
	scope := c.policyScope()
	if pending.Page || c.State.Result == nil {
		return scope
	}
	return scope.With(map[string]any{
		"this": c.State.Result.Envelope(), "error": c.State.Result.Error.Value(),
	})
}

// SinkDone takes the result of the sink's call. The first sink that fails ends
// the rest and fails the call; a call that had failed already keeps its own
// error.
func (c *Call) SinkDone(result CallResult, now time.Time) {
	pending := c.State.Sinks[0]
	c.State.Sinks, c.State.Sink = c.State.Sinks[1:], nil
	c.warn(result.Warnings...)
	if result.Failed() {
		c.sinkFailed(pending, result, now)
		return
	}
	c.State.Written++
	if c.State.Phase == PhasePage {
		c.resume(now)
		return
	}
	c.enterSinks()
}

func (c *Call) sinkFailed(pending PendingSink, result CallResult, now time.Time) {
	failure := sinkError(c.pendingSink(pending).Place, result.Error)
	after := c.State.After
	c.State.Sinks, c.State.Wait, c.State.After = nil, nil, nil
	if c.State.Result != nil && c.State.Result.Failed() {
		c.State.Result.Warnings = append(c.State.Result.Warnings, failure.Message)
		c.enterSinks()
		return
	}
	if after != nil && after.Result != nil && after.Result.Failed() {
		after.Result.Warnings = append(after.Result.Warnings, failure.Message)
		c.State.Result = after.Result
		c.enterSinks()
		return
	}
	before := CallResult{}
	if ended := c.State.Result; ended != nil {
		before = *ended
	} else if after != nil && after.Result != nil {
		before.Warnings = after.Result.Warnings
	}
	c.fail(failure, now)
	c.State.Result.Data = before.Data // what the call gave stays, as with the loops
	if before.Warnings != nil {
		c.State.Result.Warnings = before.Warnings
	}
}

// sinkError wraps the failure of a sink.
func sinkError(place string, cause *ErrorObject) *ErrorObject {
	failure := *cause
	if failure.Kind != KindCancelled {
		failure.Kind = KindSink
	}
	if prefix := "sink " + place + ": "; !strings.HasPrefix(cause.Message, prefix) {
		failure.Message = prefix + cause.Message
	}
	return &failure
}

// NewSinkCall is the call of a sink that writes result. config is that of the
// call or step the sink belongs to, with the scope at that point.
func NewSinkCall(config CallConfig, sink *playbook.Sink, page int, result any) *Call {
	config.Action, config.Policies = sink.Action, sink.Action.Retry
	config.Sink = &SinkSource{Place: sink.Place, Page: page, Result: result}
	return NewCall(config)
}

// EveryRound says of a sink's call that what a reprocess writes is not what its
// run has written, but comes beside it: the aggregate of its own iterations, or
// their failures.
func (c *Call) EveryRound() *Call {
	c.config.Sink.everyRound = true
	return c
}

// WithSinkFailure turns the result of a step whose sink failed into a failure.
// What the step gave stays in the result.
func WithSinkFailure(result CallResult, sink *playbook.Sink, written CallResult) CallResult {
	failed := result
	failed.Status = StatusError
	failed.Error = sinkError(sink.Place, written.Error)
	failed.Warnings = slices.Concat(result.Warnings, written.Warnings)
	return failed
}
