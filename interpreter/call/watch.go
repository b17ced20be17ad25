package call

import (
	"time"

	"reprise/interpreter"
	"reprise/interpreter/call/request"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
	"reprise/interpreter/retry"
)

// Observer is shown what calls decide, in the order in which they do. It changes nothing
// and is part of no history: tests of playbooks have one, workers have none.
type Observer func(Observation)

// Observation is one thing that a call has decided.
type Observation struct {
	Facts
	// Policies are the policies that matched an outcome, the one that decided last; none where
	// no policy did.
	Policies []*playbook.Policy
	// Decided says that Policies ruled on the outcome of an attempt, whose number is Attempt. Repeats says that another attempt
	// follows.
	Decided, Repeats bool
	Attempt          int
	// Error is the failure that was decided about, nil for a success.
	Error *interpreter.ErrorObject
	// Why says why a matching policy does not repeat; "" if it does.
	Why string
	// Awaits is the attempt that waits for an answer from outside from now on, nil for none. It waits as long as Limit, 0
	// without an end.
	Awaits *interpreter.AnswerTo
	Limit  time.Duration
}

// Watch shows what the call decides from now on, and what its sinks do; nil is nobody.
func (c *Call) Watch(observer Observer) *Call {
	c.config.observer = observer
	return c
}

// showObservation shows what the call has decided.
func (c *Call) showObservation(seen Observation) {
	if c.config.observer != nil {
		seen.Facts = c.View().Facts()
		c.config.observer(seen)
	}
}

// observationOf is the observation of a ruling on an outcome.
func (c *Config) observationOf(outcome interpreter.Outcome, decision retry.Decision, attempt int) Observation {
	seen := Observation{Decided: true, Repeats: decision.Repeats(), Attempt: attempt, Error: outcome.Err, Why: decision.Why}
	for _, number := range decision.Matched {
		seen.Policies = append(seen.Policies, c.Policies[number-1])
	}
	return seen
}

// Evaluated is a condition of a policy that was evaluated for an outcome, for people.
type Evaluated struct {
	Policy *playbook.Policy
	Node   *playbook.Node // the condition
	Word   string         // when or stop_when
	Holds  bool
	Parts  []expression.Part // with their values
	Err    error             // why it could not be evaluated; nil where it could
}

// Explain reports each condition of the call's policies that is evaluated from now on. It changes
// nothing: parts are evaluated within a budget of their own.
func (c *Call) Explain(report func(Evaluated)) { c.explain = report }

// reportCondition passes the result of a condition to the explanation.
func (c *callConditions) reportCondition(policy *playbook.Policy, node *playbook.Node, word string, holds bool, err error) {
	if c.explain == nil {
		return
	}
	evaluated := Evaluated{Policy: policy, Node: node, Word: word, Holds: holds, Err: err}
	if node.Template != nil {
		evaluated.Parts = node.Template.Parts(c.scope, expression.DecisionBudget(c.state.StartedAt))
	}
	c.explain(evaluated)
}

// Ahead is what a call does once its due sinks are written, for people.
type Ahead struct {
	// Attempt says that another attempt follows automatically; Wait is the wait before it, nil for none.
	Attempt bool
	Wait    *interpreter.Wait
	// Request is the request of the next page; nil where the call makes the same one again, or none.
	Request *request.Request
}

// AheadOf returns what follows in the call.
func (v View) AheadOf() (ahead Ahead) {
	s := v.state
	for _, todo := range s.Todo {
		if ahead.Wait = todo.Wait; todo.Wait != nil {
			break
		}
	}
	last := s.lastTodo().Attempt
	if last == nil {
		return ahead
	}
	ahead.Attempt, ahead.Request = s.heldBy() == nil, last.Request
	if last.Request == nil && s.RequestAttempts == 0 && s.Attempts > 0 && s.Successes > 0 {
		current := s.Request
		ahead.Request = &current
	}
	return ahead
}
