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

// This file derives the commands to the host from the state of a call, which it does not change.

// commandKind says what the host has to do next.
type commandKind int

// The kinds of commands. Each names the method with which the host reports back.
const (
	DoAttempt commandKind = iota // run the tool once, then ApplyOutcome
	DoAwait                      // wait until HasAnswer or until the deadline, then ApplyAnswer
	DoWait                       // wait durably, then EndWait
	DoHold                       // wait until a person resumes the call, then Settle or EndWait
	DoSink                       // run the sink's call to its end, then SinkDone
	DoState                      // carry out StateInput, for example claim the state of the step, then StateAnswered or StateFailed
	DoFinish                     // the call has ended
)

// Command is the next thing to do. Which fields are set depends on Kind.
type Command struct {
	Kind   commandKind
	Input  interpreter.ToolInput
	Await  await.AnswerWait
	Wait   interpreter.Wait
	Hold   interpreter.Hold
	Sink   *Call
	State  interpreter.StateInput
	Result interpreter.CallResult
}

// DueWait returns the wait that is due, nil for none. A wait for a slot under a rate limit ends at the promised
// time, however late the promise arrived.
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

// beginsToRead returns the sinks whose tables must record that the call begins to read.
func (r reader) beginsToRead(now time.Time) []interpreter.ToolInput {
	return r.stagingRound().BeginInputs(&r.config.Sinks, now)
}

// stateRequest returns the request to claim or move the state of the step, or to record the begin of reading.
func (r reader) stateRequest(pending watermark.Pending, now time.Time) interpreter.StateInput {
	if pending.Begins {
		return interpreter.StateInput{Begins: r.beginsToRead(now)}
	}
	if pending.Move != nil {
		return r.keeps.MoveRequest(r.state.Watermark, pending.Move, now)
	}
	about := r.keeps.SourceOf(r.requests.ResolvedAction(), r.requests.KeyedScope(r.requestMoment()), now)
	return r.keeps.ClaimRequest(pending, r.ledgerKey(), about, now)
}

// sinkCall builds the call of the sink that is due. It has the scope of the policy's when and then; once the call
// has ended, `this` and `error` are its final outcome.
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
	chosen := r.config.SinkOf(due.Choice)
	call := newSink(config, chosen, request.SinkWrite{
		Page: max(r.state.Successes, 1), Result: result, EveryRound: due.DeadLetter,
		State: r.sinkWrite(due.Choice), Claim: r.requestMoment().Claim, Staging: r.stagingRound().StagingOf(chosen, due.Do),
		Behind: r.state.Watermark != nil && r.state.Watermark.Behind,
	})
	call.Load(due.State)
	return call
}

// sinkWrite returns the effect of the due sink on the step's state; nil if the state is kept elsewhere.
func (r reader) sinkWrite(choice sink.Choice) *incremental.StateWrite {
	if r.keeps == nil || choice.DeadLetter {
		return nil
	}
	var move *incremental.Move
	if next := r.state.Todo[1:]; len(next) > 0 && next[0].State != nil {
		move = next[0].State.Move
	}
	return r.keeps.Write(r.state.Watermark, r.config.SinkOf(choice), move, r.state.lastTodo().End != nil, r.state.StartedAt)
}

// newSink builds the call of a sink. config is the configuration of the call or step that the sink belongs to, with
// the scope at that point.
func newSink(config Config, of *playbook.Sink, writes request.SinkWrite) *Call {
	config.Action, config.Policies = of.Action, config.Limits.SinkPolicies(config.Book, of, config.toolOf(of))
	writes.Place, writes.MapsRows = of.Place, config.Limits.MapsRows
	config.Sink = &writes
	return New(config)
}

// toolOf returns the name of the sink's tool; "" if it cannot be rendered.
func (c *Config) toolOf(sink *playbook.Sink) string {
	action := c.Book.ResolveAction(sink.Action)
	if name, literal := action.ToolName(); literal || action.Tool == nil {
		return name
	}
	name, err := action.Tool.Render(c.Scope, expression.DecisionBudget(c.Run.StartedAt))
	if err != nil {
		return "" // the attempt reports the error
	}
	return expression.Text(name)
}

// NewLoopSink builds the call of the sink of a step with a loop, which writes or stages the aggregate of the
// iterations.
func NewLoopSink(config Config, of *playbook.Sink, aggregate any) *Call {
	writes := request.SinkWrite{Page: 1, Result: aggregate, EveryRound: true}
	if config.Limits.StagesRows(config.Book, config.Step, of) {
		writes.Staging = &interpreter.Staging{ID: sink.LoopStaging(config.Run, config.Step, config.Visit, of)}
	}
	return newSink(config, of, writes)
}

// NewPublish builds the call that publishes the rows staged by a loop's iterations, or by the sink of its step.
func NewPublish(config Config, of *playbook.Sink) *Call {
	staging := interpreter.Staging{ID: sink.LoopStaging(config.Run, config.Step, config.Visit, of), Do: interpreter.StagingPublish}
	if config.Book.StagesFile(config.Step, of) {
		staging.Lap = config.Run.WholeLap()
	}
	return newSink(config, of, request.SinkWrite{Page: 1, Staging: &staging})
}
