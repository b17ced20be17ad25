package call

import (
	"time"

	"reprise/interpreter"
	"reprise/interpreter/call/request"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
	"reprise/interpreter/retry"
)

// Observer receives what calls decide, in order. It changes nothing and does not affect histories: tests of
// playbooks have one, workers do not.
type Observer func(Observation)

// Observation is one decision of a call.
type Observation struct {
	Facts
	// Policies are the policies that matched an outcome, the deciding one last; none if no policy matched.
	Policies []*playbook.Policy
	// Decided says that the policies ruled on the outcome of the attempt with number Attempt, Repeats that another
	// attempt follows.
	Decided, Repeats bool
	Attempt          int
	// Error is the failure that the policies ruled on, nil for a success.
	Error *interpreter.ErrorObject
	// Why says why a matching policy does not repeat the attempt; "" if it does.
	Why string
	// Awaits is the attempt that now waits for an answer from outside, nil for none. It waits at most Limit; 0
	// means forever.
	Awaits *interpreter.AnswerTo
	Limit  time.Duration
}

// Watch sends the decisions of the call and its sinks to observer from now on; nil sends them to nobody.
func (c *Call) Watch(observer Observer) *Call {
	c.config.observer = observer
	return c
}

// showObservation sends an observation to the observer, if there is one.
func (c *Call) showObservation(seen Observation) {
	if c.config.observer != nil {
		seen.Facts = c.View().TelemetryFacts()
		c.config.observer(seen)
	}
}

// observationOf returns the observation of a ruling on an outcome.
func (c *Config) observationOf(outcome interpreter.Outcome, decision retry.Decision, attempt int) Observation {
	seen := Observation{Decided: true, Repeats: decision.Repeats(), Attempt: attempt, Error: outcome.Err, Why: decision.Why}
	for _, number := range decision.Matched {
		seen.Policies = append(seen.Policies, c.Policies[number-1])
	}
	return seen
}

// Evaluation is the evaluation of a policy's condition for an outcome, for display.
type Evaluation struct {
	Policy *playbook.Policy
	Node   *playbook.Node // the condition
	Word   string         // when or stop_when
	Holds  bool
	Parts  []expression.Part // parts of the condition with their values
	Err    error             // why it could not be evaluated; nil if it could
}

// Explain reports each condition of the call's policies that is evaluated from now on. It does not change the
// decisions: the parts of a condition are evaluated with a separate budget.
func (c *Call) Explain(report func(Evaluation)) { c.explain = report }

// reportCondition passes the result of a condition to the function given to Explain.
func (c *callConditions) reportCondition(policy *playbook.Policy, node *playbook.Node, word string, holds bool, err error) {
	if c.explain == nil {
		return
	}
	evaluated := Evaluation{Policy: policy, Node: node, Word: word, Holds: holds, Err: err}
	if node.Template != nil {
		evaluated.Parts = node.Template.Parts(c.scope, expression.DecisionBudget(c.state.StartedAt))
	}
	c.explain(evaluated)
}

// Ahead describes what a call does once its due sinks are written, for display.
type Ahead struct {
	// Attempt says that another attempt follows automatically; Wait is the wait before it, nil for none.
	Attempt bool
	Wait    *interpreter.Wait
	// Request is the request of the next page; nil if the call repeats the current request, or makes none.
	Request *request.Request
}

// DescribeAhead returns what follows in the call.
func (v View) DescribeAhead() (ahead Ahead) {
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
	ahead.Attempt, ahead.Request = s.currentHold() == nil, last.Request
	if last.Request == nil && s.RequestAttempts == 0 && s.Attempts > 0 && s.Successes > 0 {
		current := s.Request
		ahead.Request = &current
	}
	return ahead
}
