package call

import (
	"fmt"
	"slices"
	"strings"

	"reprise/interpreter"
	"reprise/interpreter/playbook"
)

// sinkCall is the call of a pending sink. Its scope is that of when and then, with
// `this` being the call's own envelope once it has ended.
func (c *Call) sinkCall(pending pendingSink) *Call {
	config, scope, result := c.config, c.policyScope(), c.state.Last.Contribution.Data
	if ended := c.Result(); !pending.Page {
		scope = scope.With(map[string]any{"this": ended.Envelope(), "error": ended.Error.Value()})
		switch {
		case pending.DeadLetter:
			result = c.config.deadLetter(*ended)
		case ended.Failed():
			result = ended.Error.Collected.Data
		default:
			result = ended.Data.Data
		}
	}
	if pending.Do != "" {
		result = nil
	}
	config.Scope, config.Args, config.After, config.DeadLetter = scope, nil, nil, nil
	sink := c.config.pendingSink(pending)
	call := NewSink(config, sink, max(c.state.Successes, 1), result)
	call.config.Sink.state, call.config.Sink.claim = c.sinkState(pending), c.claim()
	call.stage(c.staging(sink, pending.Do))
	call.Load(pending.State)
	if pending.DeadLetter {
		return call.EveryRound()
	}
	return call
}

// pendingSink is the sink that one stands for.
func (c *Config) pendingSink(pending pendingSink) *playbook.Sink {
	switch {
	case pending.After != 0:
		return c.After[pending.After-1]
	case pending.DeadLetter:
		return c.DeadLetter
	}
	then := c.Policies[pending.Policy-1].Then
	if pending.Page {
		return then.PerIteration
	}
	return then.Sink
}

// sinkError wraps the failure of a sink.
func sinkError(place string, cause *interpreter.ErrorObject) *interpreter.ErrorObject {
	failure := *cause
	if failure.Kind != interpreter.KindCancelled && failure.Kind != interpreter.KindIncremental {
		failure.Kind = interpreter.KindSink
	}
	if prefix := "sink " + place + ": "; !strings.HasPrefix(cause.Message, prefix) {
		failure.Message = prefix + cause.Message
	}
	return &failure
}

// NewSink is the call of a sink that writes result. config is that of the
// call or step the sink belongs to, with the scope at that point.
func NewSink(config Config, sink *playbook.Sink, page int, result any) *Call {
	config.Action, config.Policies = sink.Action, sink.Action.Retry
	config.Sink = &sinkSource{Place: sink.Place, Page: page, Result: result}
	return New(config)
}

// EveryRound says of a sink's call that what a reprocess writes is not what its
// run has written, but comes beside it: the aggregate of its own iterations, or
// their failures.
func (c *Call) EveryRound() *Call {
	c.config.Sink.everyRound = true
	return c
}

// WithSink is the result of a step behind its sink. What the step gave stays in the result of
// one whose sink failed.
func WithSink(result interpreter.CallResult, sink *playbook.Sink, written interpreter.CallResult) interpreter.CallResult {
	result.Warnings = slices.Concat(result.Warnings, written.Warnings)
	if written.Failed() {
		result.Status, result.Error = interpreter.StatusError, sinkError(sink.Place, written.Error)
		return result
	}
	result.Meta.LeftOut = result.Meta.LeftOut.Plus(written.Meta.LeftOut)
	result.Warnings = append(result.Warnings, leftOutWarnings(sink.Place, written.Meta.LeftOut)...)
	return result
}

// showLeftOut completes the result with what tables did not get, behind all sinks.
func (c *Call) showLeftOut(result *interpreter.CallResult) {
	result.Meta.LeftOut = c.state.LeftOut.Plus(c.state.Last.Meta.LeftOut)
	if c.config.Sink == nil {
		result.Warnings = append(result.Warnings, leftOutWarnings(c.config.where(), result.Meta.LeftOut)...)
	}
}

// leftOutWarnings say what tables did not get.
func leftOutWarnings(where string, left *interpreter.RowCounts) (warnings []string) {
	if left == nil {
		return nil
	}
	for _, some := range []struct {
		n         int
		one, many string
	}{
		{left.DiscardedValues, "1 value was discarded (schema_contract)", "%d values were discarded (schema_contract)"},
		{left.DiscardedRows, "1 row was discarded (schema_contract)", "%d rows were discarded (schema_contract)"},
		{
			left.RejectedRows, "1 row was refused by the database, and is in the table of rejected",
			"%d rows were refused by the database, and are in the table of rejected",
		},
	} {
		switch {
		case some.n == 1:
			warnings = append(warnings, where+": "+some.one)
		case some.n > 1:
			warnings = append(warnings, fmt.Sprintf("%s: "+some.many, where, some.n))
		}
	}
	return warnings
}
