package interpreter

import (
	"errors"
	"fmt"
	"slices"

	"reprise/interpreter/playbook"
)

// Names of the workflow that counts the runs of a tree, and of its requests.
const (
	TreeWorkflow       = "TreeWorkflow"
	TreeUpdate         = "admit"
	TreeQuery          = "tree"
	AdmitActivity      = "admit-runs"
	MayStartActivity   = "may-start"
	CancelTreeActivity = "cancel-tree"
)

// Tree is a first run with all runs that start below it, at any depth. Kept in
// workflow history.
type Tree struct {
	// Root is the ID of the first run's first history, which no other run has.
	Root string `json:"root"`
	// Most bounds the runs that may start below the root run; 0 is unbounded.
	Most int `json:"most,omitempty"`
}

// WorkflowID is the ID of the workflow that counts the tree's runs.
func (t Tree) WorkflowID() string { return "reprise-tree/" + t.Root }

// Admission requests that runs may start under the first run of a tree. Kept in
// workflow history.
type Admission struct {
	Tree Tree `json:"tree"`
	// Count is how many runs are to start. A negative Count returns admissions that were not
	// used. It is 0 for a run that was admitted before.
	Count int `json:"count,omitempty"`
	// Runs are the workflow IDs of the runs that wait for those that are to start, the
	// first one first.
	Runs []string `json:"runs,omitempty"`
	// Close is the workflow ID of a run that was cancelled: no more start that it waits
	// for.
	Close string `json:"close,omitempty"`
}

// Check returns an error for a request that no run makes.
func (a Admission) Check() error {
	if a.Count == 0 && a.Close == "" || a.Tree.Most < 1 {
		return errors.New("an admission needs a count, or a run to close, and a tree with a limit")
	}
	if a.Tree.Root == "" {
		return fmt.Errorf("a tree of %d child runs of %q", a.Tree.Most, a.Tree.Root)
	}
	return nil
}

// RunStart requests that a step may start runs now. Kept in workflow history.
type RunStart struct {
	Admission
	// Attempt is the attempt that starts the run; nil if the runs start later, each by an
	// attempt that requests admission again.
	Attempt *PausedBy `json:"attempt,omitempty"`
}

// PausedBy names what can hold an attempt: the control of its run, which is known up to a
// version, and the controls of parent runs. Kept in workflow history.
type PausedBy struct {
	Run     string   `json:"run"`
	Step    string   `json:"step"`
	Version int      `json:"version,omitempty"`
	Parents []Parent `json:"parents,omitempty"`
}

// AdmissionAnswer is the answer to an Admission, or to a RunStart. Kept in workflow history.
type AdmissionAnswer struct {
	Count int `json:"count"`
	// Hold says that the run, or a parent run, is paused: nothing starts before that is
	// resumed. What was admitted stays so.
	Hold *Hold `json:"hold,omitempty"`
	// Closed says that none may start as a run that waits for them was cancelled.
	Closed bool `json:"closed,omitempty"`
}

// Census is how many runs of a tree were admitted. Kept in workflow history.
type Census struct {
	Admitted int `json:"admitted"`
	// Closed are the runs that were cancelled last.
	Closed []string `json:"closed,omitempty"`
}

// mostClosed bounds the cancelled runs that a census remembers, in the history of a tree. They
// end within minutes, and a tree may cancel any number.
const mostClosed = 100

// Admit counts runs, and says how many of those requested may start.
func (c *Census) Admit(asked Admission) AdmissionAnswer {
	if asked.Close != "" && !slices.Contains(c.Closed, asked.Close) {
		c.Closed = append(c.Closed, asked.Close)
		c.Closed = c.Closed[max(0, len(c.Closed)-mostClosed):]
	}
	if asked.Count < 0 {
		c.Admitted = max(0, c.Admitted+asked.Count)
		return AdmissionAnswer{}
	}
	if slices.ContainsFunc(asked.Runs, func(run string) bool { return slices.Contains(c.Closed, run) }) {
		return AdmissionAnswer{Closed: true}
	}
	granted := max(0, min(asked.Count, asked.Tree.Most-c.Admitted))
	c.Admitted += granted
	return AdmissionAnswer{Count: granted}
}

// Check returns an error for a state that no census can have.
func (c Census) Check() error {
	if c.Admitted < 0 || len(c.Closed) > mostClosed {
		return fmt.Errorf("%d runs admitted and %d closed", c.Admitted, len(c.Closed))
	}
	return nil
}

// CancelTree requests the cancel of all descendants of a run that was cancelled, or of a loop.
// Kept in workflow history.
type CancelTree struct {
	// Tree has no more runs start below the cancelled one; none below a loop, which starts
	// none itself by then.
	Tree Tree `json:"tree,omitzero"`
	// First is the workflow ID of the tree's first run, and Run that of the cancelled one
	// or of the loop.
	First string `json:"first"`
	Run   string `json:"run"`
}

// DetachedMemo marks runs that no step waits for, which a cancel of their parents
// leaves alone.
const DetachedMemo = "reprise_detached"

// TooManyRuns is the failure of an attempt whose run may not start: that no policy
// is asked about, as each repetition would start one more.
func (t Tree) TooManyRuns(step string) *ErrorObject {
	text := fmt.Sprintf("step %s: the top-level run has started %d child runs, at any depth, the most that %s allows",
		step, t.Most, playbook.RunsVariable)
	return &ErrorObject{
		Kind: KindPlaybook, Class: ClassFinal, Final: true, Type: "runs_limit", Message: text,
	}
}
