package call

import (
	"fmt"
	"time"

	"reprise/interpreter"
	"reprise/interpreter/call/request"
	"reprise/interpreter/call/sink"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// DriveActivity is the name of the activity that hosts calls: it makes as many of their attempts, pages and sinks
// as need no wait.
const DriveActivity = "drive"

// Task is what the children of a run, and the activities that host calls, know about the step; kept in workflow
// history. People read it in Temporal's UI, so the most important fields come first.
type Task struct {
	Step  string           `json:"step"`
	Visit int              `json:"visit"`
	Args  expression.Value `json:"args,omitzero"` // args of the route
	// Name is the name of the playbook's file, Hash the first characters of its hash, both for display.
	Name string              `json:"name"`
	Hash string              `json:"hash,omitempty"`
	Run  interpreter.RunInfo `json:"run"`
	// ID is the workflow ID of a reprocess; "" for other runs, which have Run.WorkflowID.
	ID string `json:"id,omitempty"`
	// StartedAt is when that reprocess started.
	StartedAt time.Time        `json:"started_at,omitzero"`
	Data      interpreter.Data `json:"data"`
	// Limits are the operator's limits, as the check at the start of the run recorded them.
	Limits interpreter.RunLimits `json:"limits,omitzero"`
	// Nesting describes the parent and child runs; nil if there are none.
	Nesting *Nesting `json:"nesting,omitempty"`
	// Source is the text of the playbook, which travels in a Script.
	Source string `json:"-"`
}

// Script holds the playbook of a task and the playbooks that it names. All children of a loop share it, and it
// would hide the rest of their input in Temporal's UI, so it is a separate argument, which the payload store stores
// once. Kept in workflow history.
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
	for _, name := range playbook.SortedKeys(s.Files) {
		if file, has := other.Files[name]; !has || file != s.Files[name] {
			return false
		}
	}
	return true
}

// StartTime returns when the run, or the reprocess, started.
func (t Task) StartTime() time.Time {
	if t.StartedAt.IsZero() {
		return t.Run.StartedAt
	}
	return t.StartedAt
}

// SplitScript splits a task into its parts for travel: the task without its script, and the script.
func (t Task) SplitScript() (Task, Script) {
	script := Script{Source: t.Source}
	t.Source = ""
	if t.Nesting != nil {
		nesting := *t.Nesting
		script.Files, nesting.Files = nesting.Files, nil
		t.Nesting = &nesting
	}
	return t, script
}

// WithScript returns the task with the script restored.
func (t Task) WithScript(script Script) Task {
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

// LoadStep compiles the task's playbook and finds its step.
func (t Task) LoadStep() (*playbook.Playbook, *playbook.Step, error) {
	book, err := interpreter.LoadPlaybook(t.Name, t.Source)
	if err != nil {
		return nil, nil, err
	}
	step := book.Step(t.Step)
	if step == nil {
		return nil, nil, fmt.Errorf("playbook %q has no step %q", t.Name, t.Step)
	}
	return book, step, nil
}

// Snapshot is a call sent to another host; kept in workflow history.
type Snapshot struct {
	// Index, Size and Element describe the iteration. Index is nil without a loop, and Size is 0 while the number
	// of elements is unknown because a source still provides more.
	Index   *int             `json:"index,omitempty"`
	Size    int              `json:"size,omitempty"`
	Element expression.Value `json:"element,omitzero"`
	// State is nil if the call has not begun.
	State *State `json:"state,omitempty"`
	// By is set for a call that continues a stopped one whose state it does not have yet: the ID of the workflow
	// that began it.
	By string `json:"by,omitempty"`
	// Until is the end of the wait that State is in.
	Until time.Time `json:"until,omitzero"`
}

// WithoutState returns the call without its state, which suffices to find it in ledgers.
func (c Snapshot) WithoutState(call *Call) Snapshot {
	c.State, c.Until = nil, time.Time{}
	if key := call.state.Ledger; key != "" {
		c.State = &State{Ledger: key}
	}
	return c
}

// BuildCall builds the call of the task's step, or of one of its iterations, with the progress of the snapshot. random
// returns numbers in [0, 1) from the host's deterministic source.
func (t Task) BuildCall(book *playbook.Playbook, step *playbook.Step, snapshot Snapshot, random func() float64) *Call {
	scope := interpreter.NewScope(book, t.Run, t.Data)
	if snapshot.Index != nil {
		scope = scope.WithElement(step.Loop.Element, snapshot.Element.Data, interpreter.ElementPosition{Index: *snapshot.Index, Size: snapshot.Size})
	}
	if args := t.Args.Data; args != nil {
		scope = scope.With(map[string]any{"args": args})
	}
	call := New(Config{
		Source: request.Source{
			Book: book, Run: t.Run, Step: step, Action: step.Action, Visit: t.Visit, Index: snapshot.Index, Scope: scope, Args: t.Args.Data,
		},
		Sinks:  sink.Sinks{Policies: step.Retry, After: sinksAfterPolicies(step, snapshot), DeadLetter: interpreter.DeadLetterSink(step)},
		Limits: t.Limits, Random: random,
	})
	call.Load(snapshot.State)
	return call
}

// sinksAfterPolicies returns the sinks that a call of the step, or of one iteration, writes after those of its policies.
func sinksAfterPolicies(step *playbook.Step, snapshot Snapshot) []*playbook.Sink {
	if snapshot.Index != nil {
		return step.Loop.Sinks
	}
	return step.Sinks
}

// DriveInput is the first argument of DriveActivity, followed by the Script of its task; kept in workflow history.
type DriveInput struct {
	Task  Task       `json:"task"`
	Calls []Snapshot `json:"calls"`
	// Width is the number of calls that run at the same time. With 0 they run one after the other, each only once
	// the previous one has ended.
	Width int `json:"width,omitempty"`
	// Known is set if the calls are iterations of a loop with a failure budget: once the budget is spent, no
	// further call begins, and calls that have begun are left as they are.
	Known *interpreter.LoopCounts `json:"known,omitempty"`
	// Pages limits the activity to fetching pages for calls that have begun; the workflow does everything else. See
	// View.CanDetachPages.
	Pages bool `json:"pages,omitempty"`
	// MostPages is an additional bound on the pages that the activity fetches for a call if Pages is set; 0 for
	// none.
	MostPages int `json:"most_pages,omitempty"`
	// Recall limits the activity to reading what ledgers hold of the calls.
	Recall bool `json:"recall,omitempty"`
	// ControlID and ControlVersion are as in ToolInput, and apply to all attempts.
	ControlID      string `json:"control_id,omitempty"`
	ControlVersion int    `json:"control_version,omitempty"`
}

// DriveOutput is the result of DriveActivity, in the order of its calls; kept in workflow history.
type DriveOutput struct {
	Calls []Driven `json:"calls"`
	// Budget is the error of the loop if its failure budget was spent in this activity.
	Budget *interpreter.ErrorObject `json:"budget,omitempty"`
}

// Driven is the progress that an activity has made with a call: its result, or a state in which it waits or is left
// to another activity. Both are nil if the call has not begun. Kept in workflow history.
type Driven struct {
	State *State `json:"state,omitempty"`
	// SeenBefore is the number of bytes omitted from the beginning of State.Seen, because the workflow sent them to
	// the activity.
	SeenBefore int                     `json:"seen_before,omitempty"`
	Result     *interpreter.CallResult `json:"result,omitempty"`
	// Noted and Written are as in State, for a call with a result.
	Noted   LedgerUse `json:"noted,omitempty"`
	Written int       `json:"written,omitempty"`
	// Outcome is the outcome of the last attempt, if State is the state before it: the two together are smaller
	// than the state after it. The next host applies it first.
	Outcome *interpreter.Outcome `json:"outcome,omitempty"`
	// Made are the attempts made in this activity, for display; nil if Result already shows them.
	Made Stretches `json:"made,omitempty"`
	// Unwritten are the failed attempts of the call's sinks made in this activity, for display.
	Unwritten Stretches `json:"unwritten,omitempty"`
}

// LastFailure returns the failure of the last attempt made after the state since; nil if it succeeded.
func (d Driven) LastFailure(since *State) *interpreter.ErrorObject {
	switch {
	case d.Result != nil:
		return d.Result.Error
	case d.Outcome != nil:
		return d.Outcome.Err
	case d.State == nil || since != nil && since.Attempts == d.State.Attempts:
		return nil
	}
	return d.State.Last.Error
}

// WithoutKnown returns the result without the part of the state that the host already has because it sent that part, in
// before, to this activity.
func (d Driven) WithoutKnown(before *State) Driven {
	if d.State == nil || before == nil || d.State.Restarts != before.Restarts { // a restart has begun to see anew
		return d
	}
	state := *d.State
	d.SeenBefore = state.Requests.DropKnown(before.Seen)
	d.State = &state
	return d
}

// MapOrNil returns an error if a value is neither a map nor nil; what names it in the message.
func MapOrNil(what string, value expression.Value) error {
	if _, isMap := value.Data.(map[string]any); !isMap && value.Data != nil {
		return fmt.Errorf("%s must be a map, not a %s", what, expression.TypeName(value.Data))
	}
	return nil
}
