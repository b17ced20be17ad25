package interpreter

import (
	"time"

	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// Call is the machine behind every call of a tool: from the first attempt to
// the final outcome, sinks included (language.md, section calls). It decides
// and never acts: Next says what its host has to do, and the host answers with
// Attempted, Waited or SinkDone. Every host drives the same machine; all of
// its progress is in State.
type Call struct {
	config CallConfig
	action *playbook.Action
	tool   string
	scope  *Scope // with args
	// operation is the operation key that was asked for last.
	operation pageKey
	State     CallState
}

// CallConfig is what a call is made of; none of it changes while it runs.
type CallConfig struct {
	Book     *playbook.Playbook
	Run      RunInfo
	Step     *playbook.Step
	Action   *playbook.Action
	Policies []*playbook.Policy
	Visit    int
	Index    *int // iteration, nil without a loop
	Scope    *Scope
	Args     any // args of the route, laid over the step's
	Limits   RunLimits
	// After are sinks that follow the policies' own after a success.
	After []*playbook.Sink
	// DeadLetter is written when the call has failed; nil for nowhere.
	DeadLetter *playbook.Sink
	// Random draws from the host's deterministic stream, in [0, 1).
	Random func() float64
	// Sink is set where the call is one of a sink.
	Sink *SinkSource
}

// SinkSource is what a sink writes and where it stands.
type SinkSource struct {
	Place      string
	Page       int
	Result     any
	everyRound bool // see Call.EveryRound
}

// CallState is the progress of a call; kept in workflow history where a call
// is carried to another run or activity.
type CallState struct {
	Phase           Phase            `json:"phase,omitempty"`
	StartedAt       time.Time        `json:"started_at,omitzero"`
	Request         Request          `json:"request"`
	Attempts        int              `json:"attempts"`
	RequestAttempts int              `json:"request_attempts"`
	Lost            int              `json:"lost,omitempty"`     // how often the request has lost its workers
	Restarts        int              `json:"restarts,omitempty"` // the fields below are of the round since the last one
	Successes       int              `json:"successes"`
	Counters        Counters         `json:"counters"`
	Collected       expression.Value `json:"collected,omitzero"`
	Collector       int              `json:"collector,omitempty"` // policy whose collect was used last
	Pager           int              `json:"pager,omitempty"`     // policy with a page sink that paged last
	Matched         []int            `json:"matched,omitempty"`   // policies that matched a success
	Seen            Fingerprints     `json:"seen,omitempty"`      // of requests made
	PagedBy         *PagedBy         `json:"paged_by,omitempty"`
	LastPage        string           `json:"last_page,omitempty"` // digest of the page before
	Last            LastAttempt      `json:"last"`
	Wait            *Wait            `json:"wait,omitempty"`
	Turn            *Turn            `json:"turn,omitempty"` // that the next attempt waits for, or comes back for
	Sinks           []PendingSink    `json:"sinks,omitempty"`
	Written         int              `json:"written,omitempty"`  // sinks that are done
	Detached        int              `json:"detached,omitempty"` // elements of Collected that stayed with the workflow
	// Sink is how far the first of Sinks has come, where the call was carried
	// while it waited.
	Sink *CallState `json:"sink,omitempty"`
	// DeadLettered says that the sink for failed calls has had its turn.
	DeadLettered bool `json:"dead_lettered,omitempty"`
	// Warnings are those of the result to come.
	Warnings []string `json:"warnings,omitempty"`
	// After holds what follows once the page's sink has been written.
	After  *AfterPage  `json:"after,omitempty"`
	Result *CallResult `json:"result,omitempty"`
}

// Phase says what the machine waits for.
type Phase string

// The phases of a call.
const (
	PhaseStart   Phase = ""
	PhaseAttempt Phase = "attempt"
	PhasePage    Phase = "page_sink"
	PhaseWait    Phase = "wait"
	PhaseSinks   Phase = "sinks"
	PhaseDone    Phase = "done"
)

// LastAttempt is the outcome of the attempt before; kept with CallState.
type LastAttempt struct {
	Data         expression.Value `json:"data,omitzero"`
	Meta         ToolMeta         `json:"meta,omitzero"`
	Error        *ErrorObject     `json:"error,omitempty"`
	Contribution expression.Value `json:"contribution,omitzero"`
	Policy       int              `json:"policy,omitempty"`
}

// Wait is a pause before the next attempt; kept with CallState.
type Wait struct {
	Delay   time.Duration `json:"delay"`
	Reason  string        `json:"reason"`
	Summary string        `json:"summary"`
}

// PendingSink is a sink that has to run: by the number of its policy, from
// CallConfig.After, or CallConfig.DeadLetter. Kept with CallState.
type PendingSink struct {
	Policy     int  `json:"policy,omitempty"`
	Page       bool `json:"page,omitempty"`
	After      int  `json:"after,omitempty"`
	DeadLetter bool `json:"dead_letter,omitempty"`
}

// AfterPage is what follows a page's sink: another request, or the end. Kept
// with CallState.
type AfterPage struct {
	Request *Request    `json:"request,omitempty"`
	Result  *CallResult `json:"result,omitempty"`
}

// CommandKind says what a host has to do next.
type CommandKind int

// What a call can ask of its host.
const (
	DoAttempt CommandKind = iota // run the tool once, then Attempted
	DoWait                       // wait durably, then Waited
	DoSink                       // run the sink's call to its end, then SinkDone
	DoFinish                     // the call has ended
)

// Command is the next thing to do. Which fields are set depends on Kind.
type Command struct {
	Kind   CommandKind
	Input  ToolInput
	Wait   Wait
	Sink   *Call
	Result CallResult
}

// NewCall prepares a call. It renders nothing yet, so it cannot fail.
func NewCall(config CallConfig) *Call {
	call := &Call{config: config, State: CallState{Counters: NewCounters(len(config.Policies))}}
	call.State.Counters.Limits = config.Limits
	call.action = config.Book.Resolve(config.Action)
	return call
}

// Next says what to do now. The same state always gives the same command.
func (c *Call) Next(now time.Time) Command {
	if c.State.Phase == PhaseStart {
		c.start(now)
	}
	switch c.State.Phase {
	case PhaseAttempt:
		return c.attempt(now)
	case PhaseWait:
		return Command{Kind: DoWait, Wait: c.wait(now)}
	case PhasePage, PhaseSinks:
		sink := c.sinkCall(c.State.Sinks[0])
		if c.State.Sink != nil {
			sink.State = *c.State.Sink
		}
		return Command{Kind: DoSink, Sink: sink}
	case PhaseStart, PhaseDone:
	}
	return Command{Kind: DoFinish, Result: *c.State.Result}
}

// method is the HTTP method of the request: sinks write, so theirs is POST.
func (c *Call) method() string {
	if method, ok := c.State.Request.Fields[fieldMethod]; ok {
		return expression.Text(method.Data)
	}
	if c.config.Sink != nil {
		return "POST"
	}
	return "GET"
}

// Attempt is the number of the attempt under way, else of the last one.
func (c *Call) Attempt() int {
	if c.State.Phase == PhaseStart || c.State.Phase == PhaseAttempt {
		return c.State.Attempts + 1
	}
	return c.State.Attempts
}

func timeoutOf(action *playbook.Action, tool string) time.Duration {
	if action.Timeout > 0 {
		return action.Timeout
	}
	return playbook.DefaultTimeout(tool)
}

// page is the page under way: successes so far + 1; a sink's is its origin's.
func (c *Call) page() int {
	if c.config.Sink != nil {
		return c.config.Sink.Page
	}
	return c.State.Successes + 1
}

// where names the call in messages.
func (c *Call) where() string {
	if c.config.Sink != nil {
		return "sink " + c.config.Sink.Place
	}
	return "step " + c.config.Step.Name
}

// WaitedUntil tells that the call has waited elsewhere, for a time that was to
// end at due. What is left of it is still waited for.
func (c *Call) WaitedUntil(due, now time.Time) {
	if left := due.Sub(now); left > 0 {
		rest := *c.State.Wait
		rest.Delay = left
		c.State.Wait = &rest
		return
	}
	c.Waited()
}

// Waited tells that the wait is over.
func (c *Call) Waited() {
	c.State.Wait = nil
	c.State.Phase = PhaseAttempt
}
