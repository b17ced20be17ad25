package call

import (
	"time"

	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/incremental"
	"reprise/interpreter/playbook"
	"reprise/interpreter/ratelimit"
	"reprise/interpreter/retry"
)

// Call is the machine behind every call of a tool: from the first attempt to
// the final outcome, sinks included (docs/concepts/attempts.md). It decides
// and never acts: Next says what its host has to do, and the host reports back with
// Attempted, Waited or SinkDone (decide.go). Every host drives the same machine. All of
// its progress is in its State, which no other package writes; the next command is the head
// of State.Todo. A host reads a View, and keeps a Snapshot, from which Load continues.
type Call struct {
	config Config
	action *playbook.Action
	tool   string
	scope  *interpreter.Scope // with args
	// operation is the operation key of the last request.
	operation pageKey
	// stopped is the state of the call when it was cancelled.
	stopped *State
	// refused is the failure that a policy has made of the last answer, nil for none.
	refused *interpreter.ErrorObject
	// explain receives the conditions that were evaluated; nil for none. See Explain.
	explain func(Asked)
	state   State
}

// Config is what a call is made of; none of it changes while it runs.
type Config struct {
	Book     *playbook.Playbook
	Run      interpreter.RunInfo
	Step     *playbook.Step
	Action   *playbook.Action
	Policies []*playbook.Policy
	Visit    int
	Index    *int // iteration, nil without a loop
	Scope    *interpreter.Scope
	Args     any // args of the route, laid over the step's
	Limits   interpreter.RunLimits
	// After are sinks that follow the policies' own after a success.
	After []*playbook.Sink
	// DeadLetter is written when the call has failed; nil for nowhere.
	DeadLetter *playbook.Sink
	// Random draws from the host's deterministic stream, in [0, 1); nil leaves jitter out.
	Random func() float64
	// witness observes what the call decides; nil for none.
	witness Witness
	// Sink is set where the call is one of a sink.
	Sink *sinkSource
}

// sinkSource is what a sink writes, and of which step or page.
type sinkSource struct {
	Place      string
	Page       int
	Result     any
	everyRound bool               // see Call.EveryRound
	state      *incremental.Write // see interpreter.ToolInput
	claim      string             // see Call.claim
	staging    *interpreter.Staging
	// says is what is written in place of Result where the author does not say what;
	// nil is Result.
	says any
}

// State is the progress of a call; kept in workflow history where a call
// continues in another history or activity.
type State struct {
	// Todo is what is still to do, in this order; empty where the call has not
	// begun. It is replaced and never changed in place, so that a copy of the state
	// stays as it is.
	Todo            []Todo                `json:"todo,omitempty"`
	StartedAt       time.Time             `json:"started_at,omitzero"`
	Request         Request               `json:"request"`
	Attempts        int                   `json:"attempts"`
	RequestAttempts int                   `json:"request_attempts"`
	Lost            int                   `json:"lost,omitempty"`     // how often the request has lost its workers
	Restarts        int                   `json:"restarts,omitempty"` // the fields below are of the round since the last one
	Successes       int                   `json:"successes"`
	Counters        retry.Counters        `json:"counters"`
	Pages                                 // flat in JSON
	Seen            Fingerprints          `json:"seen,omitempty"` // of requests made
	Last            lastAttempt           `json:"last"`
	Turn            *ratelimit.Turn       `json:"turn,omitempty"`     // that the next attempt waits for, or comes back for
	Written         int                   `json:"written,omitempty"`  // sinks that are done
	Detached        int                   `json:"detached,omitempty"` // elements of Collected that stayed with the workflow
	Answer          *interpreter.Answer   `json:"answer,omitempty"`   // to the current attempt, not applied yet
	Reported        *interpreter.Reported `json:"reported,omitempty"` // how far what is awaited has come
	Noted           Noted                 `json:"noted,omitempty"`    // what ledgers hold of the call
	Ledger          string                `json:"ledger,omitempty"`   // key under which they do, "" for the call's own
	Recalls         bool                  `json:"recalls,omitempty"`  // they may hold more, and have to be read first
	// Incremental is nil before the call has claimed the state of its step, and where that keeps none.
	Incremental *Incremental `json:"incremental,omitempty"`
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
	Await  Awaited
	Wait   interpreter.Wait
	Hold   interpreter.Hold
	Sink   *Call
	State  interpreter.StateInput
	Result interpreter.CallResult
}

// New prepares a call. It renders nothing yet, so it cannot fail.
func New(config Config) *Call {
	call := &Call{config: config, state: State{Counters: retry.NewCounters(len(config.Policies))}}
	call.state.Counters.Limits = config.Limits
	call.action = config.Book.Resolve(config.Action)
	return call
}

// View is how far a call has come, for its host.
type View struct {
	StartedAt time.Time
	// Attempts are those that were made of the call, RequestAttempts of its request.
	Attempts, RequestAttempts int
	Pages                     int
	Written                   int // sinks that are done
	Noted                     Noted
	// Failure is that of the last attempt, or of a poll that waits for people; nil for none.
	// Last is that of the last attempt alone.
	Failure, Last *interpreter.ErrorObject
	// Reported is how far what is awaited has come, nil where nobody has said.
	Reported *interpreter.Reported
}

// View is how far the call has come.
func (c *Call) View() View {
	s := &c.state
	return View{
		StartedAt: s.StartedAt, Attempts: s.Attempts, RequestAttempts: s.RequestAttempts, Pages: s.Successes,
		Written: s.Written, Noted: s.Noted, Failure: s.Failure(), Last: s.Last.Error, Reported: s.Reported,
	}
}

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
		input, err := c.attempt(now)
		if err != nil {
			c.fail(interpreter.ExpressionError(c.config.Book, c.config.where(), err), now)
			return c.Next(now)
		}
		if err := c.question().fault(); err != nil {
			c.attempted(interpreter.Outcome{Err: &interpreter.ErrorObject{Kind: interpreter.KindTool, Class: interpreter.ClassFinal, Final: true, Message: err.Error()}}, now)
			return c.Next(now)
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

// Begun reports whether anything of the call has happened.
func (c *Call) Begun() bool { return len(c.state.Todo) > 0 }

// Finished reports whether the call has ended.
func (c *Call) Finished() bool { return c.state.head().End != nil }

// Result is what the call ends with, nil where that is not known yet. A sink that
// is due may still change it.
func (c *Call) Result() *interpreter.CallResult { return c.state.last().End }

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

// Step is the name of the call's step, and Index that of the iteration, nil without
// a loop.
func (c *Call) Step() string { return c.config.Step.Name }

// Index is that of the iteration, nil without a loop.
func (c *Call) Index() *int { return c.config.Index }

// Place is the step of the call, or the place of the sink.
func (c *Call) Place() string { return c.config.place() }

// SinkDue reports whether a sink comes next that has not begun.
func (c *Call) SinkDue() bool {
	sink := c.state.head().Sink
	return sink != nil && sink.State == nil
}

// TurnsPage reports whether the call is about to fetch another page without a
// wait, one that may travel with others: its sink for the page before included,
// unless that has begun, and the move of its state.
func (c *Call) TurnsPage() bool {
	if c.config.Sink != nil || c.state.Successes == 0 || c.pagesPerActivity() == 1 {
		return false
	}
	behind := c.state.Todo
	if c.SinkDue() {
		behind = behind[1:]
	}
	if len(behind) > 0 && behind[0].State != nil {
		behind = behind[1:]
	}
	if len(behind) == len(c.state.Todo) && c.state.RequestAttempts > 0 {
		return false
	}
	return len(behind) == 1 && behind[0].Attempt != nil
}

// Beyond reports whether the call has come further than a state it had: it has
// made an attempt, something else comes next, or its sink has begun.
func (c *Call) Beyond(before State) bool {
	head, was := c.state.head(), before.head()
	return c.state.Attempts != before.Attempts || c.state.Written != before.Written ||
		(head.Attempt == nil) != (was.Attempt == nil) || head.Sink != nil && head.Sink.State != nil
}

// method is the HTTP method of the request: sinks write and webhooks start
// something, so theirs is POST.
func (c *Call) method() string {
	fields := c.state.Request.Fields
	if request, ok := fields[playbook.FieldOnStart]; ok {
		if method := expression.Member(request.Data, playbook.FieldMethod); method != nil {
			return expression.Text(method)
		}
		return "POST"
	}
	if method, ok := fields[playbook.FieldMethod]; ok {
		return expression.Text(method.Data)
	}
	if c.config.Sink != nil {
		return "POST"
	}
	return "GET"
}

// Attempt is the number of the current attempt, else of the last one.
func (c *Call) Attempt() int {
	if head := c.state.head(); !c.Begun() || head.Attempt != nil || head.Await != nil {
		return c.state.Attempts + 1
	}
	return c.state.Attempts
}

func timeoutOf(action *playbook.Action, tool string) time.Duration {
	if action.Timeout > 0 {
		return action.Timeout
	}
	return playbook.TraitsOf(tool).Timeout
}

// page is the current page: successes so far + 1; a sink's is its origin's.
func (c *Call) page() int {
	if c.config.Sink != nil {
		return c.config.Sink.Page
	}
	return c.state.Successes + 1
}

// where names the call in messages.
func (c *Config) where() string {
	if c.Sink != nil {
		return "sink " + c.Sink.Place
	}
	return "step " + c.Step.Name
}

// Verdict is what was decided about the last attempt; nil where that
// succeeded, where its failure was made a success, where it waits for its turn or
// its answer, and where it was not made because the run is paused.
func (c *Call) Verdict() *Verdict {
	failure := c.state.Last.Error
	if hold := c.state.held(); failure == nil || c.state.Turn != nil || c.Awaited() != nil || hold != nil && !hold.Exhausted {
		return nil
	}
	verdict := &Verdict{
		Where: c.config.where(), Step: c.config.Step.Name, Visit: c.config.Visit, Index: c.config.Index,
		Error: failure, Ended: c.Result() != nil,
	}
	if c.config.Sink != nil {
		verdict.Sink = c.config.Sink.Place
	}
	if verdict.Ended || c.state.RequestAttempts > 0 {
		verdict.OperationKey = c.operationKey()
	}
	if !verdict.Ended {
		verdict.Retry = max(c.state.RequestAttempts, 1) // a restart has begun to count again
	}
	switch {
	case verdict.Ended:
	case c.state.head().Wait != nil:
		verdict.Next = c.state.head().Wait.Summary
	case c.state.held() != nil:
		verdict.Next = "people decide"
	default:
		verdict.Next = "another attempt at once"
	}
	return verdict
}
