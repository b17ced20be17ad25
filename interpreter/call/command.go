package call

import (
	"time"

	"reprise/interpreter"
	"reprise/interpreter/call/await"
	"reprise/interpreter/call/request"
	"reprise/interpreter/call/sink"
	"reprise/interpreter/call/watermark"
	"reprise/interpreter/expression"
	"reprise/interpreter/incremental"
	"reprise/interpreter/playbook"
)

// This file has the commands of a call to its host, and what the state makes them of. None of it changes the call.

// commandKind is the kind of thing that a host has to do next.
type commandKind int

// The commands of a call to its host.
const (
	DoAttempt commandKind = iota // run the tool once, then Attempted
	DoAwait                      // wait until HasAnswer, or until its time is over, then ApplyAnswer
	DoWait                       // wait durably, then Waited
	DoHold                       // wait until people resume it, then Released
	DoSink                       // run the sink's call to its end, then SinkDone
	DoState                      // what StateInput says, such as to claim the state that the step keeps, then StateAnswered or StateFailed
	DoFinish                     // the call has ended
)

// Command is the next thing to do. Which fields are set depends on Kind.
type Command struct {
	Kind   commandKind
	Input  interpreter.ToolInput
	Await  await.Awaited
	Wait   interpreter.Wait
	Hold   interpreter.Hold
	Sink   *Call
	State  interpreter.StateInput
	Result interpreter.CallResult
}

// DueWait is the wait that is due, nil for none. For a turn it ends when that was
// promised, however long the promise took to arrive.
func (v View) DueWait(now time.Time) *interpreter.Wait {
	head := v.state.nextTodo().Wait
	if head == nil {
		return nil
	}
	wait := *head
	if wait.Reason == interpreter.ReasonTurn && v.state.Turn != nil {
		wait.Delay = max(v.state.Turn.At.Sub(now), 0)
	}
	return &wait
}

// beginsToRead are the sinks of the call whose tables have to know that it begins to read.
func (r reader) beginsToRead(now time.Time) []interpreter.ToolInput {
	return r.stagingRound().Begins(&r.config.Sinks, now)
}

// stateRequest is the request to claim or move the state of the step, or to begin.
func (r reader) stateRequest(pending watermark.Pending, now time.Time) interpreter.StateInput {
	if pending.Begins {
		return interpreter.StateInput{Begins: r.beginsToRead(now)}
	}
	if pending.Move != nil {
		return r.keeps.Move(r.state.Watermark, pending.Move, now)
	}
	about := r.keeps.About(r.requests.Action(), r.requests.Keyed(r.requestMoment()), now)
	return r.keeps.Claim(pending, r.ledgerKey(), about, now)
}

// sinkCall makes the call of the sink that is due. Its scope is that of the policy's when and
// then; `this` is the call's own envelope once the call has ended.
func (r reader) sinkCall(due pendingSink) *Call {
	config, scope, result := *r.config, r.policyScope(), r.state.Last.Contribution.Data
	if ended := r.state.lastTodo().End; !due.Page {
		scope = scope.With(map[string]any{"this": ended.Envelope(), "error": ended.Error.Value()})
		switch {
		case due.DeadLetter:
			result = sink.DeadLetterRow(&r.config.Source, *ended)
		case ended.Failed():
			result = ended.Error.Collected.Data
		default:
			result = ended.Data.Data
		}
	}
	if due.Do != "" {
		result = nil
	}
	config.Scope, config.Args, config.After, config.DeadLetter = scope, nil, nil, nil
	chosen := r.config.Chosen(due.Choice)
	call := newSink(config, chosen, request.SinkWrite{
		Page: max(r.state.Successes, 1), Result: result, EveryRound: due.DeadLetter,
		State: r.sinkWrite(due.Choice), Claim: r.requestMoment().Claim, Staging: r.stagingRound().Staging(chosen, due.Do),
	})
	call.Load(due.State)
	return call
}

// sinkWrite returns what the due sink does to the step's state; nil if the state is kept elsewhere.
func (r reader) sinkWrite(choice sink.Choice) *incremental.StateWrite {
	if r.keeps == nil || choice.DeadLetter {
		return nil
	}
	var move *incremental.Move
	if next := r.state.Todo[1:]; len(next) > 0 && next[0].State != nil {
		move = next[0].State.Move
	}
	return r.keeps.Write(r.state.Watermark, r.config.Chosen(choice), move, r.state.lastTodo().End != nil, r.state.StartedAt)
}

// newSink is the call of a sink. config is the configuration of the call or step the sink belongs to, with the scope at
// that point.
func newSink(config Config, of *playbook.Sink, writes request.SinkWrite) *Call {
	config.Action, config.Policies = of.Action, config.Limits.SinkPolicies(config.Book, of, config.toolOf(of))
	writes.Place, writes.MapsRows = of.Place, config.Limits.MapsRows
	config.Sink = &writes
	return New(config)
}

// toolOf is the tool of a sink, "" where it cannot be known.
func (c *Config) toolOf(sink *playbook.Sink) string {
	action := c.Book.Resolve(sink.Action)
	if name, literal := action.ToolName(); literal || action.Tool == nil {
		return name
	}
	name, err := action.Tool.Render(c.Scope, expression.DecisionBudget(c.Run.StartedAt))
	if err != nil {
		return "" // the attempt says so
	}
	return expression.Text(name)
}

// NewLoopSink is the call of the sink on a step with a loop, which writes the aggregate of its iterations, or stages it.
func NewLoopSink(config Config, of *playbook.Sink, aggregate any) *Call {
	writes := request.SinkWrite{Page: 1, Result: aggregate, EveryRound: true}
	if config.Book.Stages(of) {
		writes.Staging = &interpreter.Staging{ID: sink.LoopStaging(config.Run, config.Step, config.Visit, of)}
	}
	return newSink(config, of, writes)
}

// NewPublish is the call that publishes what the iterations of a loop have staged, or the sink on its step.
func NewPublish(config Config, of *playbook.Sink) *Call {
	id := sink.LoopStaging(config.Run, config.Step, config.Visit, of)
	return newSink(config, of, request.SinkWrite{Page: 1, Staging: &interpreter.Staging{ID: id, Do: interpreter.StagingPublish}})
}
