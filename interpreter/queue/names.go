package queue

import (
	"fmt"
	"net/url"

	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// Names of the workflow that gives the runs of one concurrency key their turns, of
// its signals and queries, and of the activities for it. They are part of histories, so they
// never change.
const (
	WorkflowName = "ConcurrencyWorkflow"
	// RequestSignal carries a Request to it.
	RequestSignal = "concurrency_request"
	// StatusQuery gives for a list of Run a Status, SnapshotQuery the Queue.
	StatusQuery   = "concurrency"
	SnapshotQuery = "concurrency_snapshot"
	// DecisionSignal carries a Decision to a run.
	DecisionSignal = "concurrency"
	// EnterActivity accepts an Enter, EndedActivity gives those of a list of Run that have
	// ended, CancelActivity accepts a Cancel, DeadlockActivity gives for the workflow ID of a
	// queue its Victim.
	EnterActivity    = "concurrency_enter"
	EndedActivity    = "concurrency_look"
	CancelActivity   = "concurrency_cancel"
	DeadlockActivity = "concurrency_circle"
)

// StatePrefix is the prefix of the workflow IDs of the queues of states.
const StatePrefix = "reprise-concurrency-state/"

// Memo is the key under which a run that waits for its turn keeps its Ticket in
// the memo of its workflow, where lists of runs see it.
const Memo = "reprise_concurrency"

// maxKey bounds the key that runs share, in bytes: it is part of a workflow ID, of which
// Temporal accepts 1,000 bytes.
const maxKey = 500

// Name is the key that runs share; kept in workflow history.
type Name struct {
	Key string `json:"key"`
	// Playbook is the playbook that the key belongs to; "" is a key that playbooks share.
	Playbook string `json:"playbook,omitempty"`
	// State says that Key is the name of a state that steps keep between runs, which no key of
	// an author is.
	State bool `json:"state,omitempty"`
}

// Describe names what runs share.
func (n Name) Describe() string {
	if n.State {
		return fmt.Sprintf("the state %q", n.Key)
	}
	return fmt.Sprintf("the concurrency key %q", n.Key)
}

// ID is the workflow ID of the WorkflowName. Different names have different
// ones, whatever they hold.
func (n Name) ID() string {
	id := "reprise-concurrency/" + url.PathEscape(n.Playbook) + "/" + url.PathEscape(n.Key)
	switch {
	case n.State:
		id = StatePrefix + url.PathEscape(n.Key)
	case n.Playbook == "":
		id = "reprise-concurrency-shared/" + url.PathEscape(n.Key)
	}
	return expression.BoundedID(id)
}

// NameOf renders the key of a run's queue. The error is that of an expression.
func NameOf(book *playbook.Playbook, scope expression.Scope, budget *expression.Budget) (Name, error) {
	name, node := Name{Playbook: book.Name}, book.Concurrency.Name()
	if book.Concurrency.Shared != nil {
		name.Playbook = ""
	}
	value, err := node.RenderKey(scope, budget)
	if err != nil {
		return name, err
	}
	problem := ""
	switch value.(type) {
	case []any, map[string]any:
		problem = "must be text, not a " + expression.TypeName(value)
	default:
		name.Key = expression.Text(value)
	}
	switch {
	case problem != "":
	case name.Key == "":
		problem = "must not be empty"
	case len(name.Key) > maxKey:
		problem = fmt.Sprintf("is %d bytes long; at most %d are allowed", len(name.Key), maxKey)
	default:
		return name, nil
	}
	return name, &playbook.EvalError{Pos: node.Pos, Message: "the name of concurrency " + problem}
}

// Enter is the argument of EnterActivity; kept in workflow history.
type Enter struct {
	Name    Name    `json:"name"`
	Request Request `json:"request"`
}

// Cancel is the argument of CancelActivity; kept in workflow history.
type Cancel struct {
	Member
	Reason string `json:"reason"`
}
