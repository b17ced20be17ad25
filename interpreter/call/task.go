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

// DriveActivity is the name of the activity that hosts calls: as many attempts,
// pages and sinks of them as need no wait.
const DriveActivity = "drive"

// Task is what children of a run, and activities that host calls, know of the step; kept in
// workflow history. People read it in Temporal's UI, so the most important comes first.
type Task struct {
	Step  string           `json:"step"`
	Visit int              `json:"visit"`
	Args  expression.Value `json:"args,omitzero"` // of the route
	// Name is the name of the playbook's file, Hash the beginning of its hash, for readers.
	Name string              `json:"name"`
	Hash string              `json:"hash,omitempty"`
	Run  interpreter.RunInfo `json:"run"`
	// ID is the workflow ID of a reprocess; "" for other runs, whose ID is Run.WorkflowID.
	ID string `json:"id,omitempty"`
	// StartedAt is when that reprocess started.
	StartedAt time.Time        `json:"started_at,omitzero"`
	Data      interpreter.Data `json:"data"`
	// Limits are the operator's, as the validation recorded them.
	Limits interpreter.RunLimits `json:"limits,omitzero"`
	// Nesting describes the parent and child runs; nil if there are none.
	Nesting *Nesting `json:"nesting,omitempty"`
	// Source is the playbook, which travels as a Script.
	Source string `json:"-"`
}

// Script is the playbook of a task, and the playbooks that it names. It is the same for all
// children of a loop and would hide the rest of their input, so it travels as an argument
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
	for _, name := range playbook.SortedKeys(s.Files) {
		if file, has := other.Files[name]; !has || file != s.Files[name] {
			return false
		}
	}
	return true
}

// Began is when the run started.
func (t Task) Began() time.Time {
	if t.StartedAt.IsZero() {
		return t.Run.StartedAt
	}
	return t.StartedAt
}

// Apart takes the script out of a task that is to travel.
func (t Task) Apart() (Task, Script) {
	script := Script{Source: t.Source}
	t.Source = ""
	if t.Nesting != nil {
		nesting := *t.Nesting
		script.Files, nesting.Files = nesting.Files, nil
		t.Nesting = &nesting
	}
	return t, script
}

// With puts the script back into a task that has travelled.
func (t Task) With(script Script) Task {
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
	book, err := interpreter.Load(t.Name, t.Source)
	if err != nil {
		return nil, nil, err
	}
	step := book.Step(t.Step)
	if step == nil {
		return nil, nil, fmt.Errorf("playbook %q has no step %q", t.Name, t.Step)
	}
	return book, step, nil
}

// Snapshot is a call on its way to another host; kept in workflow history.
type Snapshot struct {
	// Index, Size and Element place the iteration; Index is nil without a loop, and Size 0 while a source gives more elements.
	Index   *int             `json:"index,omitempty"`
	Size    int              `json:"size,omitempty"`
	Element expression.Value `json:"element,omitzero"`
	// State is nil for a call that has not begun.
	State *State `json:"state,omitempty"`
	// By is the workflow ID of the one that had begun the call when it was stopped, for a
	// call that continues it and does not have its state yet.
	By string `json:"by,omitempty"`
	// Until is when the wait is over that State is in.
	Until time.Time `json:"until,omitzero"`
}

// Bare is the call without its state. It is enough to find the call in ledgers.
func (c Snapshot) Bare(call *Call) Snapshot {
	c.State, c.Until = nil, time.Time{}
	if key := call.state.Ledger; key != "" {
		c.State = &State{Ledger: key}
	}
	return c
}

// Call makes the call of the task's step, or of one iteration of it, where it
// left off. random draws from the host's stream.
func (t Task) Call(book *playbook.Playbook, step *playbook.Step, snapshot Snapshot, random func() float64) *Call {
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
		Sinks:  sink.Sinks{Policies: step.Retry, After: afterOf(step, snapshot), DeadLetter: interpreter.DeadLetterSink(step)},
		Limits: t.Limits, Random: random,
	})
	call.Load(snapshot.State)
	return call
}

// afterOf are the sinks that a call of the step, or of one iteration, writes to after the sinks of its policies.
func afterOf(step *playbook.Step, snapshot Snapshot) []*playbook.Sink {
	if snapshot.Index != nil {
		return step.Loop.Sinks
	}
	return step.Sinks
}

// DriveInput is the argument of DriveActivity, followed by the Script of its task; kept in
// workflow history.
type DriveInput struct {
	Task  Task       `json:"task"`
	Calls []Snapshot `json:"calls"`
	// Width is how many calls run at a time; with 0 they go one after the
	// other, and none begins before the one before it has ended.
	Width int `json:"width,omitempty"`
	// LoopCounts is set where the calls are iterations of a loop with a failure budget:
	// once it is spent, no call begins and begun calls are left.
	Known *interpreter.LoopCounts `json:"known,omitempty"`
	// Pages limits the activity to pages of calls that have begun; what else
	// happens is left to the workflow. See Call.Detach.
	Pages bool `json:"pages,omitempty"`
	// MostPages bounds the pages of a call that Pages fetches, beside other bounds; 0 for none.
	MostPages int `json:"most_pages,omitempty"`
	// Recall requests only what ledgers hold of the calls.
	Recall bool `json:"recall,omitempty"`
	// ControlID and ControlVersion are as in ToolInput, for all attempts.
	ControlID      string `json:"control_id,omitempty"`
	ControlVersion int    `json:"control_version,omitempty"`
}

// DriveOutput is the result of DriveActivity, in the order of its calls; kept in workflow
// history.
type DriveOutput struct {
	Calls []Driven `json:"calls"`
	// Budget is the error of the loop where its failure budget was spent here.
	Budget *interpreter.ErrorObject `json:"budget,omitempty"`
}

// Driven is what an activity has made of a call: its result, or a state in which it waits or
// leaves the rest to another activity. Both are nil if the call has not begun. Kept in workflow
// history.
type Driven struct {
	State *State `json:"state,omitempty"`
	// SeenBefore is how many bytes at the beginning of State.Seen are left out, because the workflow has them: it gave them to
	// the activity.
	SeenBefore int                     `json:"seen_before,omitempty"`
	Result     *interpreter.CallResult `json:"result,omitempty"`
	// Noted and Written are as in State, of a call with a result.
	Noted   Noted `json:"noted,omitempty"`
	Written int   `json:"written,omitempty"`
	// Outcome is the outcome of the last attempt, if State is the state before it: the two together are smaller than the state
	// after it. The next host applies it before anything else.
	Outcome *interpreter.Outcome `json:"outcome,omitempty"`
	// Made are the attempts that were made here, for display. Nil if Result already shows them.
	Made Stretches `json:"made,omitempty"`
	// Unwritten are the failed attempts of the call's sinks that were made here, for display.
	Unwritten Stretches `json:"unwritten,omitempty"`
}

// Failure is the failure of the last attempt which was made since a state, nil where it
// succeeded.
func (d Driven) Failure(since *State) *interpreter.ErrorObject {
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

// Since returns the result without the part of the state that the host has already: it sent
// that part, in before, to this activity.
func (d Driven) Since(before *State) Driven {
	if d.State == nil || before == nil || d.State.Restarts != before.Restarts { // a restart has begun to see anew
		return d
	}
	state := *d.State
	d.SeenBefore = state.Requests.Leave(before.Seen)
	d.State = &state
	return d
}

// MapOrNil gives the error of a value that is neither a map nor nil.
func MapOrNil(what string, value expression.Value) error {
	if _, isMap := value.Data.(map[string]any); !isMap && value.Data != nil {
		return fmt.Errorf("%s must be a map, not a %s", what, expression.TypeName(value.Data))
	}
	return nil
}
