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
	"reprise/interpreter/ratelimit"
	"reprise/interpreter/retry"
)

// Call is the machine behind every call of a tool: from the first attempt to
// the final outcome, sinks included (docs/concepts/attempts.md). It decides
// and never acts: Next says what its host has to do, and the host reports back with
// ApplyOutcome, EndWait or SinkDone (report.go). Every host drives the same machine. All of
// its progress is in its State, which no other package writes; the next command is the head
// of State.Todo. A host reads a View, and keeps a Snapshot, from which Load continues.
type Call struct {
	config   Config
	requests request.Builder
	keeps    *watermark.StatefulStep // nil if the step keeps no state between runs
	// stopped is the state of the call when it was cancelled.
	stopped *State
	// refused is the failure that a policy's fail made of the last answer; nil if none did.
	refused *interpreter.ErrorObject
	// othersWait is the number of seconds that all calls under the same rate limit must pause, read by a policy's
	// retry_after from the last outcome; nil for no pause.
	othersWait *float64
	// noted says that the tool gave notes on the answer that is being applied.
	noted bool
	// cutBy is the limit of the host at which EndHere ended the call; "" for none.
	cutBy string
	// explain receives each evaluated condition; nil if nobody asked. See Explain.
	explain func(Evaluation)
	state   State
}

// Config is the fixed input of a call; it does not change while the call runs.
type Config struct {
	request.Source
	sink.Sinks
	Limits interpreter.RunLimits
	// Random returns numbers in [0, 1) from the host's deterministic source; nil disables jitter.
	Random func() float64
	// observer is notified of what the call decides; may be nil.
	observer Observer
}

// State is the progress of a call; kept in workflow history where a call continues in another history or activity.
// Embedded parts are flat in its JSON.
type State struct {
	// Todo lists what remains to be done, in order; it is empty before the call begins. The list is replaced, not
	// modified, so that copies of the state are not affected.
	Todo             []Todo                 `json:"todo,omitempty"`
	StartedAt        time.Time              `json:"started_at,omitzero"`
	request.Requests                        // the current request, and fingerprints of all made
	Attempts         int                    `json:"attempts"`
	RequestAttempts  int                    `json:"request_attempts"`
	Lost             int                    `json:"lost,omitempty"`     // how often an attempt of the request has lost its worker
	Restarts         int                    `json:"restarts,omitempty"` // the fields below are about the time since the last restart
	Successes        int                    `json:"successes"`
	Counters         retry.Counters         `json:"counters"`
	page.Pages                              // what the successful attempts returned
	Last             lastAttempt            `json:"last"`
	Turn             *ratelimit.Reservation `json:"turn,omitempty"`    // a reserved slot under the rate limit: the next attempt waits for it, or uses it
	Written          int                    `json:"written,omitempty"` // how many sinks have returned, successful or not
	await.Answers                           // to the current attempt
	Noted            LedgerUse              `json:"noted,omitempty"`   // whether ledgers have entries of the call
	Ledger           string                 `json:"ledger,omitempty"`  // key of those entries, "" for the call's own key
	Recalls          bool                   `json:"recalls,omitempty"` // ledgers may have further entries, which must be read before the call continues
	// Watermark is how far the call has read, and moved, the state of its step. It is nil until the call has
	// claimed the state, and always if the step keeps none.
	Watermark *watermark.Watermark `json:"incremental,omitempty"`
	// Incomplete says that the call ends before it has read everything: it moves no watermark and publishes
	// nothing.
	Incomplete bool `json:"incomplete,omitempty"`
	// LeftOut counts values and rows that the sinks so far did not write because they were discarded or rejected.
	LeftOut *interpreter.RowCounts `json:"left_out,omitempty"`
	// Excluded counts the rows of all pages that `where` excluded.
	Excluded int `json:"excluded,omitempty"`
	// Unmatched says which member that `where` names all its rows lack; nil before the first row.
	Unmatched *unmatchedWhere `json:"unmatched,omitempty"`
	// Total is the largest number of rows that a page has stated, 0 if none did.
	Total int `json:"total,omitempty"`
	// Rows counts what the call and its sinks did to data so far; nil if nothing was counted.
	Rows *interpreter.Rows `json:"rows,omitempty"`
	// Warnings are collected here until Todo has the call's result, which then holds them.
	Warnings []string `json:"warnings,omitempty"`
}

// lastAttempt is the outcome of the last attempt, for `this`, `error` and the next request. It is kept with State.
type lastAttempt struct {
	Data         expression.Value         `json:"data,omitzero"`
	Meta         interpreter.ToolMeta     `json:"meta,omitzero"`
	Error        *interpreter.ErrorObject `json:"error,omitempty"`
	Contribution expression.Value         `json:"contribution,omitzero"`
	// ContributionAt is the path of Contribution in Data, "" for all of it. It replaces Contribution in snapshots, which
	// would otherwise have the rows of the page twice.
	ContributionAt *string  `json:"contribution_at,omitempty"`
	Policy         int      `json:"policy,omitempty"`
	Partial        bool     `json:"partial,omitempty"`   // see Outcome
	Partition      string   `json:"partition,omitempty"` // see Outcome
	Counts         bool     `json:"counts,omitempty"`    // its worker counts rows
	Warnings       []string `json:"warnings,omitempty"`
	Excluded       int      `json:"excluded,omitempty"` // rows of the page that `where` excluded
	Noted          bool     `json:"noted,omitempty"`    // the tool gave notes on it, which are among the call's warnings
}

// New prepares a call. It renders nothing yet, so it cannot fail.
func New(config Config) *Call {
	call := &Call{config: config, requests: request.NewBuilder(config.Source), state: State{Counters: retry.NewCounters(len(config.Policies))}}
	call.state.Counters.Limits = config.Limits
	call.keeps = watermark.StepOf(&call.config.Source, config.Policies, len(config.After) > 0)
	return call
}

// Config returns the configuration of the call, which must not be changed.
func (c *Call) Config() *Config { return &c.config }

// Load restores a state that another host returned; nil leaves the call at its beginning.
func (c *Call) Load(state *State) {
	if state != nil {
		c.setState(*state)
	}
}

// Next returns the command that is due. The same state always gives the same command.
func (c *Call) Next(now time.Time) Command {
	if !c.state.hasBegun() {
		c.startCall(now)
	}
	switch head := c.state.nextTodo(); {
	case head.Attempt != nil:
		input, err := c.requests.AttemptInput(&c.state.Requests, c.newReader().requestMoment(), now)
		if err != nil {
			c.failBy(c.config.CallPlace(), err, now)
			return c.Next(now)
		}
		if err := c.newReader().peopleQuestion().ApprovalError(); err != nil {
			c.decideAttempt(interpreter.Outcome{Err: &interpreter.ErrorObject{Kind: interpreter.KindTool, Class: interpreter.ClassFinal, Final: true, Message: err.Error()}}, now)
			return c.Next(now)
		}
		input.Turn = c.state.Turn
		if input.Place == "" && input.Page == 1 && input.Attempt == 1 {
			input.Sinks = c.config.sinkConnections(now)
		}
		return Command{Kind: DoAttempt, Input: input}
	case head.Await != nil:
		return Command{Kind: DoAwait, Await: *head.Await}
	case head.Wait != nil:
		return Command{Kind: DoWait, Wait: *c.View().DueWait(now)}
	case head.Hold != nil:
		return Command{Kind: DoHold, Hold: *head.Hold}
	case head.Sink != nil:
		return Command{Kind: DoSink, Sink: c.newReader().sinkCall(*head.Sink)}
	case head.State != nil:
		return Command{Kind: DoState, State: c.newReader().stateRequest(*head.State, now)}
	default:
		return Command{Kind: DoFinish, Result: *head.End}
	}
}
