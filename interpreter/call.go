package interpreter

import (
	"fmt"
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
	State  CallState
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
	// Random draws from the host's deterministic stream, in [0, 1).
	Random func() float64
	// Sink is set where the call is one of a sink.
	Sink *SinkSource
}

// SinkSource is what a sink writes and where it stands.
type SinkSource struct {
	Place  string
	Page   int
	Result any
}

// CallState is the progress of a call; kept in workflow history where a call
// is carried to another run or activity.
type CallState struct {
	Phase           Phase            `json:"phase,omitempty"`
	StartedAt       time.Time        `json:"started_at,omitzero"`
	Request         Request          `json:"request"`
	Attempts        int              `json:"attempts"`
	RequestAttempts int              `json:"request_attempts"`
	Successes       int              `json:"successes"`
	Counters        Counters         `json:"counters"`
	Collected       expression.Value `json:"collected,omitzero"`
	Collector       int              `json:"collector,omitempty"` // policy whose collect was used last
	Pager           int              `json:"pager,omitempty"`     // policy with a page sink that paged last
	Matched         []int            `json:"matched,omitempty"`   // policies that matched a success
	Seen            []string         `json:"seen,omitempty"`      // fingerprints of requests made
	LastPage        string           `json:"last_page,omitempty"` // digest of the page before
	Last            LastAttempt      `json:"last"`
	Wait            *Wait            `json:"wait,omitempty"`
	Sinks           []PendingSink    `json:"sinks,omitempty"`
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

// PendingSink is a sink that has to run: by the number of its policy, or from
// CallConfig.After. Kept with CallState.
type PendingSink struct {
	Policy int  `json:"policy,omitempty"`
	Page   bool `json:"page,omitempty"`
	After  int  `json:"after,omitempty"`
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
		return Command{Kind: DoWait, Wait: *c.State.Wait}
	case PhasePage, PhaseSinks:
		return Command{Kind: DoSink, Sink: c.sinkCall(c.State.Sinks[0])}
	case PhaseStart, PhaseDone:
	}
	return Command{Kind: DoFinish, Result: *c.State.Result}
}

// start renders the first request.
func (c *Call) start(now time.Time) {
	c.State.StartedAt = now
	if err := c.prepare(now); err != nil {
		c.fail(expressionError(c.config.Book, c.where(), err), now)
		return
	}
	request, err := c.renderer(c.budget(now)).request(c.State.Request.Args.Data)
	if err != nil {
		c.fail(expressionError(c.config.Book, c.where(), err), now)
		return
	}
	request.At = now
	print, err := c.fingerprint(request)
	if err != nil {
		c.fail(expressionError(c.config.Book, c.where(), err), now)
		return
	}
	c.State.Request = request
	c.State.Seen = append(c.State.Seen, print)
	c.State.Phase = PhaseAttempt
}

// prepare renders the args and the tool's name, which the fields may use.
func (c *Call) prepare(now time.Time) error {
	budget := c.budget(now)
	scope := c.config.Scope.With(c.keys())
	name, err := c.action.Tool.Render(scope, budget)
	if err != nil {
		return err
	}
	if text, ok := name.(string); !ok || text == "" {
		return &playbook.EvalError{Pos: c.action.Tool.Pos, Message: fmt.Sprintf("tool must be the name of a tool, not %q", expression.Text(name))}
	}
	args, err := c.args(scope, budget)
	c.State.Request.Args = expression.Of(args)
	return err
}

// args renders the call's own args, which see those of the route, and lays
// those of the route over them.
func (c *Call) args(scope *Scope, budget *expression.Budget) (any, error) {
	routed := c.config.Args
	if c.action.Args == nil {
		return routed, nil
	}
	if routed != nil {
		scope = scope.With(map[string]any{"args": routed})
	}
	own, err := c.action.Args.Render(scope, budget)
	if err != nil {
		return nil, err
	}
	if _, isMap := own.(map[string]any); !isMap && own != nil && c.config.Sink == nil {
		return nil, &playbook.EvalError{
			Pos: c.action.Args.Pos, Message: "args must be a map, not " + expression.TypeName(own),
		}
	}
	if routed == nil {
		return own, nil
	}
	return expression.Merge(orEmpty(own), routed), nil
}

// renew renders again what names the keys of language.md, section keys: all
// that changes between the attempts of a request and between polls. now() stays
// what it was when the request was rendered.
func (c *Call) renew(request *Request, keys map[string]any) error {
	budget := c.budget(request.At)
	again := c.renderer(budget)
	wanted := namesKeys
	if naming(namesKeys...)(c.action.Args) {
		args, err := c.args(c.config.Scope.With(c.keys()).With(keys), budget)
		if err != nil {
			return err
		}
		request.Args = expression.Of(expression.Merge(args, request.Overlay.Args.Data))
		wanted = append([]string{"args"}, namesKeys...)
	}
	if args, isMap := request.Args.Data.(map[string]any); isMap {
		keys = withKey(keys, "args", args)
	}
	again.scope = again.scope.With(keys)
	request.Fields = clone(request.Fields, 0) // the attempt before may still be read
	return again.fields(request, naming(wanted...))
}

// fingerprint tells the requests of a call apart for the guard against
// repetition. The keys are left out of the comparison.
func (c *Call) fingerprint(request Request) (string, error) {
	none := make(map[string]any, len(namesKeys))
	for _, name := range namesKeys {
		none[name] = ""
	}
	if err := c.renew(&request, none); err != nil {
		return "", err
	}
	return request.fingerprint(), nil
}

// restore sets what is derived from State; it runs before every rendering.
func (c *Call) restore(now time.Time) {
	c.scope = c.config.Scope.With(c.keys())
	if args, isMap := c.State.Request.Args.Data.(map[string]any); isMap {
		c.scope = c.scope.With(map[string]any{"args": args})
	}
	if c.tool != "" {
		return
	}
	// A budget of its own, or a call that is carried elsewhere would pay twice.
	if name, err := c.action.Tool.Render(c.scope, c.budget(now)); err == nil {
		c.tool = expression.Text(name)
	}
}

func (c *Call) renderer(budget *expression.Budget) renderer {
	c.restore(c.State.StartedAt)
	return renderer{action: c.action, tool: c.tool, scope: c.scope, budget: budget}
}

func (c *Call) budget(now time.Time) *expression.Budget {
	return expression.NewBudget(expression.DecisionLimits, now)
}

// attempt is the command for one attempt of the request at hand.
func (c *Call) attempt(now time.Time) Command {
	if err := c.renew(&c.State.Request, c.keys()); err != nil {
		c.fail(expressionError(c.config.Book, c.where(), err), now)
		return Command{Kind: DoFinish, Result: *c.State.Result}
	}
	operation, attempt := c.operationKey(), c.attemptKey()
	request := c.State.Request
	input := ToolInput{
		Tool: c.tool, Step: c.config.Step.Name, Visit: c.config.Visit, Index: c.config.Index,
		Page: c.page(), Attempt: c.State.Attempts + 1,
		Fields: request.Fields, Params: request.Params, Auth: request.Auth,
		TimeoutSeconds: c.timeout().Seconds(),
		OperationKey:   operation, AttemptKey: attempt,
		IdempotencyKey: idempotencyKey(c.action, c.tool, c.method(), operation, attempt),
	}
	if err := c.rateLimit(&input, c.renderer(c.budget(now))); err != nil {
		c.fail(expressionError(c.config.Book, c.where(), err), now)
		return Command{Kind: DoFinish, Result: *c.State.Result}
	}
	if request.Args.Data != nil {
		input.Args = &expression.Value{Data: request.Args.Data}
	}
	if sink := c.config.Sink; sink != nil {
		input.Place = sink.Place
		if input.Args == nil && c.action.Field(fieldStatement) == nil {
			input.Result = &expression.Value{Data: sink.Result}
		}
	}
	return Command{Kind: DoAttempt, Input: input}
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

// Default time limits of one attempt (language.md, section steps).
const (
	defaultHTTPTimeout = 30 * time.Second
	defaultTimeout     = 5 * time.Minute
)

func (c *Call) timeout() time.Duration {
	switch {
	case c.action.Timeout > 0:
		return c.action.Timeout
	case c.tool == "http":
		return defaultHTTPTimeout
	}
	return defaultTimeout
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

// Waited tells that the wait is over.
func (c *Call) Waited() {
	c.State.Wait = nil
	c.State.Phase = PhaseAttempt
}

// operationKeyLength is 128 bits in hexadecimal: a sink takes a key it has
// seen, in any run, for a write already made, so two must never be the same.
const operationKeyLength = 32

// operationKey is the same for every attempt and redelivery of one request
// (language.md, section keys).
func (c *Call) operationKey() string {
	index, place := any(nil), ""
	if c.config.Index != nil {
		index = *c.config.Index
	}
	if c.config.Sink != nil {
		place = c.config.Sink.Place
	}
	return digest(c.config.Run.RunID, c.config.Step.Name, c.config.Visit, index, c.page(), place)[:operationKeyLength]
}

func (c *Call) attemptKey() string {
	return fmt.Sprintf("%s:%d", c.operationKey(), c.State.Attempts+1)
}

// keys are the names that only exist while something is sent.
func (c *Call) keys() map[string]any {
	keys := map[string]any{"operation_key": c.operationKey(), "attempt_key": c.attemptKey()}
	if c.config.Sink != nil {
		keys["result"] = c.config.Sink.Result
	}
	return keys
}
