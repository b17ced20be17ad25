// Package tree counts the runs of a tree, a first run with all its descendants, and decides how many more may start.
package tree

import (
	"errors"
	"fmt"
	"slices"

	"reprise/interpreter"
	"reprise/interpreter/playbook"
)

// Names of the workflow that counts the runs of a tree, of its update and its query, and of the activities that reach
// it. They are part of histories, so they never change.
const (
	WorkflowName = "TreeWorkflow"
	// AdmitUpdate takes an Admission and returns an AdmissionAnswer.
	AdmitUpdate = "admit"
	// CensusQuery returns a Census.
	CensusQuery = "tree"
	// AdmitActivity and MayStartActivity take a RunStart and return an AdmissionAnswer. CancelActivity takes a
	// CancelRequest.
	AdmitActivity    = "admit-runs"
	MayStartActivity = "may-start"
	CancelActivity   = "cancel-tree"
)

// Tree is a first run with all its descendants. Kept in workflow history.
type Tree struct {
	// Root is the run ID of the first run's first history, which is unique.
	Root string `json:"root"`
	// Most bounds the descendants of the root run; 0 is unbounded.
	Most int `json:"most,omitempty"`
}

// WorkflowID returns the ID of the workflow that counts the tree's runs.
func (t Tree) WorkflowID() string { return "reprise-tree/" + t.Root }

// Admission is a request for permission to start runs in a tree. It is stored in workflow history.
type Admission struct {
	Tree Tree `json:"tree"`
	// Count is the number of runs to start. A negative Count returns unused admissions. It is 0 for a run that was
	// admitted before.
	Count int `json:"count,omitempty"`
	// Runs are the workflow IDs of the runs that wait for those to be started, outermost first.
	Runs []string `json:"runs,omitempty"`
	// Close is the workflow ID of a run that was cancelled: no further run that it would wait for may start.
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

// RunStart asks whether a step may start runs now. Kept in workflow history.
type RunStart struct {
	Admission
	// Attempt is the attempt that starts the run; nil if the runs start later, each by an attempt that asks again.
	Attempt *interpreter.PausedBy `json:"attempt,omitempty"`
}

// AdmissionAnswer is the result of an Admission, or of a RunStart. Kept in workflow history.
type AdmissionAnswer struct {
	Count int `json:"count"` // of runs that may start
	// Hold says that the run, or a parent run, is paused: nothing may start before it is resumed. Admitted runs
	// stay admitted.
	Hold *interpreter.Hold `json:"hold,omitempty"`
	// Closed says that none may start because a run that waits for them was cancelled.
	Closed bool `json:"closed,omitempty"`
}

// Census counts the admitted runs of a tree. Kept in workflow history.
type Census struct {
	Admitted int `json:"admitted"` // and not returned
	// Closed are the runs that were cancelled most recently.
	Closed []string `json:"closed,omitempty"`
}

// mostClosed bounds the cancelled runs that a census remembers, in the history of a tree. They end within minutes,
// and a tree may cancel any number.
const mostClosed = 100

// AdmitRuns counts the requested runs, and returns how many of them may start.
func (c *Census) AdmitRuns(asked Admission) AdmissionAnswer {
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

// CancelRequest requests the cancel of all descendants of a run that was cancelled, or of a loop. Kept in workflow
// history.
type CancelRequest struct {
	// Tree is set for a cancelled run: no further runs may start below it. It is zero for a loop, which starts none
	// by then.
	Tree Tree `json:"tree,omitzero"`
	// First is the workflow ID of the tree's first run, and Run that of the cancelled run, or of the loop.
	First string `json:"first"`
	Run   string `json:"run"`
}

// DetachedMemo marks runs that no step waits for, and which are not cancelled with their parents.
const DetachedMemo = "reprise_detached"

// TooManyRuns returns the failure of an attempt that may not start a run. It is final, because each retry would
// start another run.
func (t Tree) TooManyRuns(step string) *interpreter.ErrorObject {
	text := fmt.Sprintf("step %s: the top-level run has started %d child runs, at any depth, the most that %s allows",
		step, t.Most, playbook.RunsVariable)
	return &interpreter.ErrorObject{
		Kind: interpreter.KindPlaybook, Class: interpreter.ClassFinal, Final: true, Type: "runs_limit", Message: text,
	}
}
