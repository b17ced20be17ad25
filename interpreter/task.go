package interpreter

import (
	"fmt"
	"slices"
	"time"

	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// DriveActivity is the name of the activity that hosts calls: as many attempts,
// pages and sinks of them as need no wait.
const DriveActivity = "drive"

// Task is what the children of a run and the activities that host calls are told of
// the step; kept in workflow history. People read it in Temporal's UI, so what
// matters most comes first.
type Task struct {
	Step  string           `json:"step"`
	Visit int              `json:"visit"`
	Args  expression.Value `json:"args,omitzero"` // of the route
	// Name is that of the playbook's file, Hash the beginning of its hash, for readers.
	Name string  `json:"name"`
	Hash string  `json:"hash,omitempty"`
	Run  RunInfo `json:"run"`
	// ID is the workflow ID of the run, where that is not Run.WorkflowID: of a
	// reprocess.
	ID   string `json:"id,omitempty"`
	Data Data   `json:"data"`
	// Limits are the operator's, as the door recorded them.
	Limits RunLimits `json:"limits,omitzero"`
	// Nesting is what the task knows of runs above and below; nil where there are
	// none.
	Nesting *Nesting `json:"nesting,omitempty"`
	// Source is the playbook. It travels as a Script, and as a part of the task only in
	// runs that began under earlier builds.
	Source string `json:"source,omitempty"`
}

// Script is the playbook of a task, and those that it names. It is the same for all
// children of a loop and would hide what they are told, so it travels as an argument
// of its own, which the payload store keeps once. Kept in workflow history.
type Script struct {
	Source string `json:"source"`
	// Files are Nesting.Files.
	Files map[string]string `json:"files,omitempty"`
}

// Equal reports whether two scripts are the same.
func (s Script) Equal(other Script) bool {
	if s.Source != other.Source || len(s.Files) != len(other.Files) {
		return false
	}
	for _, name := range sortedKeys(s.Files) {
		if file, has := other.Files[name]; !has || file != s.Files[name] {
			return false
		}
	}
	return true
}

// ScriptMark is the name of the metadata of a value that is a script. ScriptsAbove is
// the size in bytes from which the payload store takes one, far below that of other
// values: it is written once and referred to by every child. Histories depend on it.
const (
	ScriptMark   = "reprise-script"
	ScriptsAbove = 4 << 10
)

// Apart takes the script out of a task that is to travel. It is nil where the run
// began under a build that knew of none: a replay sends what was sent.
func (t Task) Apart() (Task, *Script) {
	if !t.Limits.Apart {
		return t, nil
	}
	script := Script{Source: t.Source}
	t.Source = ""
	if t.Nesting != nil {
		nesting := *t.Nesting
		script.Files, nesting.Files = nesting.Files, nil
		t.Nesting = &nesting
	}
	return t, &script
}

// With puts the script back into a task that has travelled. One without a source is
// none: the task has its own.
func (t Task) With(script Script) Task {
	if script.Source == "" {
		return t
	}
	t.Source = script.Source
	if len(script.Files) > 0 {
		var nesting Nesting
		if t.Nesting != nil {
			nesting = *t.Nesting
		}
		nesting.Files = script.Files
		t.Nesting = &nesting
	}
	return t
}

// Load compiles the task's playbook and finds its step.
func (t Task) Load() (*playbook.Playbook, *playbook.Step, error) {
	book, err := Load(t.Name, t.Source)
	if err != nil {
		return nil, nil, err
	}
	step := book.Step(t.Step)
	if step == nil {
		return nil, nil, fmt.Errorf("playbook %q has no step %q", t.Name, t.Step)
	}
	return book, step, nil
}

// Carried is a call on its way to another host; kept in workflow history.
type Carried struct {
	// Index, Size and Element place the iteration; Index is nil without a loop.
	Index   *int             `json:"index,omitempty"`
	Size    int              `json:"size,omitempty"`
	Element expression.Value `json:"element,omitzero"`
	// State is nil for a call that has not begun.
	State *CallState `json:"state,omitempty"`
	// Until is when the wait of State is over.
	Until time.Time `json:"until,omitzero"`
}

// Bare is the call without how far it has come.
func (c Carried) Bare() Carried {
	c.State, c.Until = nil, time.Time{}
	return c
}

// Call makes the call of the task's step, or of one iteration of it, where it
// left off. random draws from the host's stream.
func (t Task) Call(book *playbook.Playbook, step *playbook.Step, carried Carried, random func() float64) *Call {
	scope, after := NewScope(book, t.Run, t.Data), step.Sink
	if carried.Index != nil {
		after = step.Loop.Sink
		scope = scope.WithElement(step.Loop.Element, carried.Element.Data, Position{Index: *carried.Index, Size: carried.Size})
	}
	if args := t.Args.Data; args != nil {
		scope = scope.With(map[string]any{"args": args})
	}
	call := NewCall(CallConfig{
		Book: book, Run: t.Run, Step: step, Action: step.Action, Policies: step.Retry, Visit: t.Visit,
		Index: carried.Index, Scope: scope, Args: t.Args.Data, Limits: t.Limits, After: listed(after),
		DeadLetter: deadLetterSink(step), Random: random,
	})
	if carried.State != nil {
		call.State = *carried.State
	}
	return call
}

func listed(sink *playbook.Sink) []*playbook.Sink {
	if sink == nil {
		return nil
	}
	return []*playbook.Sink{sink}
}

// DriveInput is the argument of DriveActivity, with the Script of its task behind it;
// kept in workflow history.
type DriveInput struct {
	Task  Task      `json:"task"`
	Calls []Carried `json:"calls"`
	// Width is how many calls go on at a time; with 0 they go one after the
	// other, and none begins before the one before it has ended.
	Width int `json:"width,omitempty"`
	// Known is set where the calls are iterations of a loop with a failure budget:
	// once it is spent, no call begins and those under way are left.
	Known *Known `json:"known,omitempty"`
	// Pages asks for nothing but pages of calls that are under way; what else
	// happens is handed back. See Call.Detach.
	Pages bool `json:"pages,omitempty"`
	// ControlID and ControlVersion are those of ToolInput, for all attempts.
	ControlID      string `json:"control_id,omitempty"`
	ControlVersion int    `json:"control_version,omitempty"`
}

// DriveOutput is what DriveActivity gives, in the order of its calls; kept in
// workflow history.
type DriveOutput struct {
	Calls []Driven `json:"calls"`
	// Budget is the error of the loop where its failure budget was spent here.
	Budget *ErrorObject `json:"budget,omitempty"`
}

// Driven is how far a call has come: to its result, or to a state in which it
// waits or leaves the rest to another activity. Both are nil where it has not
// begun. Kept in workflow history.
type Driven struct {
	State *CallState `json:"state,omitempty"`
	// SeenBefore is how many bytes of State.Seen are left out: those that the call
	// was handed over with.
	SeenBefore int         `json:"seen_before,omitempty"`
	Result     *CallResult `json:"result,omitempty"`
	// Noted is CallState.Noted of a call with a result.
	Noted Noted `json:"noted,omitempty"`
	// Outcome is that of an attempt which State has not taken in yet.
	Outcome *Outcome `json:"outcome,omitempty"`
	// Made are the attempts made here, for those who look; nil where Result says enough.
	Made Stretches `json:"made,omitempty"`
	// Unwritten are the attempts of its sinks that failed here, for the same.
	Unwritten Stretches `json:"unwritten,omitempty"`
}

// Bounds of what one activity fetches of a call (language.md, section
// next_call), so that what a lost worker costs stays small.
const (
	DefaultPagesPerActivity = 50
	maxBytesPerActivity     = 1 << 20
	maxTimePerActivity      = 20 * time.Second
)

// Chunk bounds what one activity does for one call.
type Chunk struct {
	started  time.Time
	restarts int
	pages    int // successes before, of the round with that many restarts
	bytes    int
}

// NewChunk begins to count.
func (c *Call) NewChunk(now time.Time) Chunk {
	return Chunk{started: now, restarts: c.State.Restarts, pages: c.State.Successes}
}

// Add counts a page's size.
func (k *Chunk) Add(bytes int) { k.bytes += bytes }

// Full reports whether the rest of the call's pages belongs to another activity.
func (k *Chunk) Full(c *Call, now time.Time) bool {
	pages := c.State.Successes
	if c.State.Restarts == k.restarts {
		pages -= k.pages
	}
	return pages >= c.pagesPerActivity() || k.bytes >= maxBytesPerActivity ||
		now.Sub(k.started) >= maxTimePerActivity
}

// pagesPerActivity is what the policy that paged last says.
func (c *Call) pagesPerActivity() int {
	if pages := c.config.then(c.State.Last.Policy).PagesPerActivity; pages > 0 {
		return pages
	}
	return DefaultPagesPerActivity
}

// InWorkflow reports whether a workflow has to make the attempts of the call.
func (c *Call) InWorkflow() bool { return playbook.TraitsOf(c.toolName()).InWorkflow }

// toolName is the name of the call's tool, "" where it cannot be known.
func (c *Call) toolName() string {
	if c.tool != "" {
		return c.tool
	}
	if name, literal := c.action.ToolName(); literal {
		return name
	}
	name, err := c.action.Tool.Render(c.config.Scope, decisionBudget(c.State.StartedAt))
	if err != nil {
		return ""
	}
	return expression.Text(name)
}

// Detachable reports whether pages may be fetched apart from what was collected
// before: not where an expression looks at it, or where pages do more than
// append to it.
func (c *Call) Detachable() bool {
	if !c.config.appends() || c.InWorkflow() {
		return false
	}
	collected := naming(c.config.collectedNames()...)
	for _, node := range c.config.Book.CallNodes(c.config.Step) {
		if collected(node) {
			return false
		}
	}
	return true
}

// Detach gives the call's state without what it has collected, so that
// thousands of pages do not travel with every further page.
func (c *Call) Detach() CallState {
	state := c.Snapshot()
	if list, isList := state.Collected.Data.([]any); isList {
		state.Collected, state.Detached = expression.Of([]any{}), len(list)
	}
	return state
}

// Attach takes the state of a detached call back, and an outcome that it has
// not taken in yet.
func (c *Call) Attach(driven Driven, now time.Time) {
	before := c.State
	c.State = *driven.State
	c.State.Detached = 0
	c.State.Seen = slices.Concat(before.Seen[:min(driven.SeenBefore, len(before.Seen))], c.State.Seen)
	added, _ := c.State.Collected.Data.([]any)
	if collected, isList := before.Collected.Data.([]any); isList {
		c.State.Collected = expression.Of(append(collected, added...))
	}
	if driven.Outcome != nil {
		c.Attempted(*driven.Outcome, now)
	}
}

// Handed leaves out of a detached call's state what its host has at hand, before
// it goes back there.
func (d Driven) Handed(before *CallState) Driven {
	if d.State == nil || before == nil {
		return d
	}
	state := *d.State
	d.SeenBefore = len(before.Seen)
	state.Seen = state.Seen[d.SeenBefore:]
	d.State = &state
	return d
}

// Snapshot is the state at this moment; the call may go on. Between a page and
// the next attempt it leaves the page out where nothing will look at it again:
// a failure that succeeds may end with it.
func (c *Call) Snapshot() CallState {
	state := c.State
	if state.head().Attempt != nil && !slices.ContainsFunc(c.config.Policies, failsWell) {
		state.Last = lastAttempt{Meta: state.Last.Meta, Policy: state.Last.Policy}
	}
	state.Counters.Policies = slices.Clone(state.Counters.Policies)
	return state
}

func failsWell(policy *playbook.Policy) bool {
	return policy.Then.OnExhausted == playbook.ExhaustedSucceed || policy.Then.Ignore
}
