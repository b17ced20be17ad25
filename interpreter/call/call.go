package call

import (
	"time"

	"reprise/interpreter"
	"reprise/interpreter/call/await"
	"reprise/interpreter/call/page"
	"reprise/interpreter/call/request"
	"reprise/interpreter/call/sink"
	"reprise/interpreter/call/watermark"
	"reprise/interpreter/expression"
	"reprise/interpreter/incremental"
	"reprise/interpreter/playbook"
	"reprise/interpreter/ratelimit"
	"reprise/interpreter/retry"
)

// Call is the machine behind every call of a tool: from the first attempt to
// the final outcome, sinks included (docs/concepts/attempts.md). It decides
// and never acts: Next says what its host has to do, and the host reports back with
// Attempted, Waited or SinkDone (report.go). Every host drives the same machine. All of
// its progress is in its State, which no other package writes; the next command is the head
// of State.Todo. A host reads a View, and keeps a Snapshot, from which Load continues.
type Call struct {
	config   Config
	requests request.Builder
	keeps    *watermark.StatefulStep // nil where the step keeps no state between runs
	// stopped is the state of the call when it was cancelled.
	stopped *State
	// refused is the failure that a policy has made of the last answer, nil for none.
	refused *interpreter.ErrorObject
	// explain receives the conditions that were evaluated; nil for none. See Explain.
	explain func(Evaluated)
	state   State
}

// Config is what a call is made of; none of it changes while it runs.
type Config struct {
	request.Source
	sink.Sinks
	Limits interpreter.RunLimits
	// Random draws from the host's deterministic stream, in [0, 1); nil leaves jitter out.
	Random func() float64
	// witness observes what the call decides; nil for none.
	witness Witness
}

// State is the progress of a call; kept in workflow history where a call
// continues in another history or activity. The parts of it that have a package of their own
// are flat in JSON.
type State struct {
	// Todo is what is still to do, in this order; empty where the call has not
	// begun. It is replaced and never changed in place, so that a copy of the state
	// stays as it is.
	Todo             []Todo                 `json:"todo,omitempty"`
	StartedAt        time.Time              `json:"started_at,omitzero"`
	request.Requests                        // the one at hand, and those made
	Attempts         int                    `json:"attempts"`
	RequestAttempts  int                    `json:"request_attempts"`
	Lost             int                    `json:"lost,omitempty"`     // how often the request has lost its workers
	Restarts         int                    `json:"restarts,omitempty"` // the fields below are of the round since the last one
	Successes        int                    `json:"successes"`
	Counters         retry.Counters         `json:"counters"`
	page.Pages                              // what came of the successes
	Last             lastAttempt            `json:"last"`
	Turn             *ratelimit.Reservation `json:"turn,omitempty"`    // that the next attempt waits for, or comes back for
	Written          int                    `json:"written,omitempty"` // sinks that are done
	await.Answers                           // to the current attempt
	Noted            Noted                  `json:"noted,omitempty"`   // what ledgers hold of the call
	Ledger           string                 `json:"ledger,omitempty"`  // key under which they do, "" for the call's own
	Recalls          bool                   `json:"recalls,omitempty"` // they may hold more, and have to be read first
	// Watermark is nil before the call has claimed the state of its step, and where that keeps none.
	Watermark *watermark.Watermark `json:"incremental,omitempty"`
	// Incomplete says that the call ends without having read all: its end moves no watermark, and
	// publishes nothing.
	Incomplete bool `json:"incomplete,omitempty"`
	// LeftOut is what sinks did not get that are done.
	LeftOut *interpreter.RowCounts `json:"left_out,omitempty"`
	// Warnings are those of the result to come, until Todo has it.
	Warnings []string `json:"warnings,omitempty"`
}

// lastAttempt is the outcome of the attempt before; kept with State.
type lastAttempt struct {
	Data         expression.Value         `json:"data,omitzero"`
	Meta         interpreter.ToolMeta     `json:"meta,omitzero"`
	Error        *interpreter.ErrorObject `json:"error,omitempty"`
	Contribution expression.Value         `json:"contribution,omitzero"`
	Policy       int                      `json:"policy,omitempty"`
	Partial      bool                     `json:"partial,omitempty"` // see Outcome
	Warnings     []string                 `json:"warnings,omitempty"`
}

// commandKind says what a host has to do next.
type commandKind int

// The commands of a call to its host.
const (
	DoAttempt commandKind = iota // run the tool once, then Attempted
	DoAwait                      // wait until HasAnswer, or until its time is over, then ApplyAnswer
	DoWait                       // wait durably, then Waited
	DoHold                       // wait until people resume it, then Released
	DoSink                       // run the sink's call to its end, then SinkDone
	DoState                      // claim or move the state that the step keeps, then StateAnswered or StateFailed
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

// New prepares a call. It renders nothing yet, so it cannot fail.
func New(config Config) *Call {
	call := &Call{config: config, requests: request.NewBuilder(config.Source), state: State{Counters: retry.NewCounters(len(config.Policies))}}
	call.state.Counters.Limits = config.Limits
	call.keeps = watermark.StepOf(&call.config.Source, config.Policies, len(config.After) > 0)
	return call
}

// Config is what the call was made of. It is not to be changed.
func (c *Call) Config() *Config { return &c.config }

// Load restores the state that another host has left; nil leaves it at its beginning.
func (c *Call) Load(state *State) {
	if state != nil {
		c.state = *state
	}
}

// Next says what to do now. The same state always gives the same command.
func (c *Call) Next(now time.Time) Command {
	if !c.Begun() {
		c.start(now)
	}
	switch head := c.state.head(); {
	case head.Attempt != nil:
		input, err := c.requests.Input(&c.state.Requests, c.moment(), now)
		if err != nil {
			c.failBy(c.config.Where(), err, now)
			return c.Next(now)
		}
		if err := c.question().Fault(); err != nil {
			c.attempted(interpreter.Outcome{Err: &interpreter.ErrorObject{Kind: interpreter.KindTool, Class: interpreter.ClassFinal, Final: true, Message: err.Error()}}, now)
			return c.Next(now)
		}
		input.Turn = c.state.Turn
		if input.Place == "" && input.Page == 1 && input.Attempt == 1 {
			input.Sinks = c.config.sinkConnections()
		}
		return Command{Kind: DoAttempt, Input: input}
	case head.Await != nil:
		return Command{Kind: DoAwait, Await: *head.Await}
	case head.Wait != nil:
		return Command{Kind: DoWait, Wait: *c.DueWait(now)}
	case head.Hold != nil:
		return Command{Kind: DoHold, Hold: *head.Hold}
	case head.Sink != nil:
		return Command{Kind: DoSink, Sink: c.sinkCall(*head.Sink)}
	case head.State != nil:
		return Command{Kind: DoState, State: c.stateRequest(*head.State, now)}
	default:
		return Command{Kind: DoFinish, Result: *head.End}
	}
}

// DueWait is the wait that is due, nil for none. For a turn it ends when that was
// promised, however long the promise took to arrive.
func (c *Call) DueWait(now time.Time) *interpreter.Wait {
	head := c.state.head().Wait
	if head == nil {
		return nil
	}
	wait := *head
	if wait.Reason == interpreter.ReasonTurn && c.state.Turn != nil {
		wait.Delay = max(c.state.Turn.At.Sub(now), 0)
	}
	return &wait
}

// results makes what the decisions of the call come to.
func (c *Call) results() results {
	return results{config: &c.config, state: &c.state, scope: c.policyScope}
}

// moment is how far the call has come, for what renders its requests.
func (c *Call) moment() request.Moment {
	s := &c.state
	moment := request.Moment{StartedAt: s.StartedAt, Page: c.state.page(&c.config), Attempts: s.Attempts, Lost: s.Lost, Restarts: s.Restarts}
	if c.keeps != nil {
		moment.Claim, moment.Incremental = s.Watermark.Claim(s.Restarts), c.keeps.Names(s.Watermark)
	}
	return moment
}

// stateRequest is the request to claim or move the state of the step.
func (c *Call) stateRequest(pending watermark.Pending, now time.Time) interpreter.StateInput {
	if pending.Move != nil {
		return c.keeps.Move(c.state.Watermark, pending.Move, now)
	}
	about := c.keeps.About(c.requests.Action(), c.requests.Keyed(c.moment()), now)
	return c.keeps.Claim(pending, c.ledgerKey(), about, now)
}

// sinkCall is the call of a sink that is due. Its scope is that of when and then, with
// `this` being the call's own envelope once it has ended.
func (c *Call) sinkCall(due pendingSink) *Call {
	config, scope, result := c.config, c.policyScope(), c.state.Last.Contribution.Data
	if ended := c.Result(); !due.Page {
		scope = scope.With(map[string]any{"this": ended.Envelope(), "error": ended.Error.Value()})
		switch {
		case due.DeadLetter:
			result = sink.DeadLetterRow(&c.config.Source, *ended)
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
	chosen := c.config.Chosen(due.Choice)
	call := newSink(config, chosen, request.SinkWrite{
		Page: max(c.state.Successes, 1), Result: result, EveryRound: due.DeadLetter,
		State: c.sinkWrite(due.Choice), Claim: c.moment().Claim, Staging: c.round().Staging(chosen, due.Do),
	})
	call.Load(due.State)
	return call
}

// sinkWrite is what the sink that is due does to the state of the step; nil where it writes elsewhere.
func (c *Call) sinkWrite(choice sink.Choice) *incremental.StateWrite {
	if c.keeps == nil || choice.DeadLetter {
		return nil
	}
	var move *incremental.Move
	if next := c.state.Todo[1:]; len(next) > 0 && next[0].State != nil {
		move = next[0].State.Move
	}
	return c.keeps.Write(c.state.Watermark, c.config.Chosen(choice), move, c.state.last().End != nil, c.state.StartedAt)
}

// round is the call as what it stages knows it.
func (c *Call) round() sink.Round {
	return sink.Round{Source: &c.config.Source, LedgerKey: c.ledgerKey, Restarts: c.state.Restarts}
}

// newSink is the call of a sink. config is that of the call or step the sink belongs to, with the scope at
// that point.
func newSink(config Config, of *playbook.Sink, writes request.SinkWrite) *Call {
	config.Action, config.Policies = of.Action, of.Action.Retry
	writes.Place = of.Place
	config.Sink = &writes
	return New(config)
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
