package call

import (
	"reprise/interpreter"
	"reprise/interpreter/call/request"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// Asked is a condition of a policy that was evaluated for an outcome, for people.
type Asked struct {
	Policy *playbook.Policy
	Node   *playbook.Node // the condition
	Word   string         // when or stop_when
	Holds  bool
	Parts  []expression.Part // with their values
	Err    error             // why it could not be evaluated; nil where it could
}

// Explain reports each condition of the call's policies that is evaluated from now on. It changes
// nothing: parts are evaluated within a budget of their own.
func (c *Call) Explain(report func(Asked)) { c.explain = report }

// report passes the result of a condition to the explanation.
func (c *callConditions) report(policy *playbook.Policy, node *playbook.Node, word string, holds bool, err error) {
	if c.call.explain == nil {
		return
	}
	asked := Asked{Policy: policy, Node: node, Word: word, Holds: holds, Err: err}
	if node.Template != nil {
		asked.Parts = node.Template.Parts(c.scope, expression.DecisionBudget(c.call.state.StartedAt))
	}
	c.call.explain(asked)
}

// Ahead is what a call comes to behind the sinks that are due, for people.
type Ahead struct {
	// Attempt says that the call comes to another attempt by itself, Wait is the wait before it, nil for none.
	Attempt bool
	Wait    *interpreter.Wait
	// Request is that of the next page; nil where the call makes the same one again, or none.
	Request *request.Request
}

// Ahead is what the call comes to.
func (c *Call) Ahead() (ahead Ahead) {
	s := &c.state
	for _, todo := range s.Todo {
		if ahead.Wait = todo.Wait; todo.Wait != nil {
			break
		}
	}
	last := s.last().Attempt
	if last == nil {
		return ahead
	}
	ahead.Attempt, ahead.Request = s.held() == nil, last.Request
	if last.Request == nil && s.RequestAttempts == 0 && s.Attempts > 0 && s.Successes > 0 {
		current := s.Request
		ahead.Request = &current
	}
	return ahead
}
