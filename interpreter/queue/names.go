package queue

import (
	"fmt"
	"net/url"

	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// Names of the workflow that grants slots to the runs of one concurrency key, of its signals and queries, and of
// its activities. They are part of histories, so they never change.
const (
	WorkflowName = "ConcurrencyWorkflow"
	// RequestSignal sends it a Request.
	RequestSignal = "concurrency_request"
	// StatusQuery takes a list of Member and returns a Status; SnapshotQuery returns the Queue.
	StatusQuery   = "concurrency"
	SnapshotQuery = "concurrency_snapshot"
	// DecisionSignal sends a Decision to a run.
	DecisionSignal = "concurrency"
	// EnterActivity takes an Enter. EndedActivity takes a list of Member and returns those that have ended.
	// CancelActivity takes a Cancel. DeadlockActivity takes the workflow ID of a queue and returns its Victim.
	EnterActivity    = "concurrency_enter"
	EndedActivity    = "concurrency_look"
	CancelActivity   = "concurrency_cancel"
	DeadlockActivity = "concurrency_circle"
)

// StatePrefix is the prefix of the workflow IDs of the queues of states.
const StatePrefix = "reprise-concurrency-state/"

// Memo is the key of the Ticket of a waiting run in the memo of its workflow, for lists of runs.
const Memo = "reprise_concurrency"

// maxKey bounds the key that runs share, in bytes: it is part of a workflow ID, which Temporal limits to 1,000
// bytes.
const maxKey = 500

// Name identifies the key that runs share; kept in workflow history.
type Name struct {
	Key string `json:"key"`
	// Playbook is the playbook that the key belongs to; "" for a key that playbooks share.
	Playbook string `json:"playbook,omitempty"`
	// State says that Key is the name of a state that steps keep between runs, not a concurrency key of an author.
	State bool `json:"state,omitempty"`
}

// Describe names the key, for messages.
func (n Name) Describe() string {
	if n.State {
		return fmt.Sprintf("the state %q", n.Key)
	}
	return fmt.Sprintf("the concurrency key %q", n.Key)
}

// WorkflowID returns the workflow ID of the queue; it differs for different names, whatever characters they contain.
func (n Name) WorkflowID() string {
	id := "reprise-concurrency/" + url.PathEscape(n.Playbook) + "/" + url.PathEscape(n.Key)
	switch {
	case n.State:
		id = StatePrefix + url.PathEscape(n.Key)
	case n.Playbook == "":
		id = "reprise-concurrency-shared/" + url.PathEscape(n.Key)
	}
	return expression.BoundedID(id)
}

// NameOf renders the key of a run's queue. The error is that of the expression.
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
