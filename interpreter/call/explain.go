package call

import (
	"reprise/interpreter"
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
		asked.Parts = node.Template.Parts(c.scope, decisionBudget(c.call.state.StartedAt))
	}
	c.call.explain(asked)
}

// NextWait is the wait that comes behind the sinks that are due, nil for none.
func (c *Call) NextWait() *interpreter.Wait {
	for _, todo := range c.state.Todo {
		if todo.Wait != nil {
			return todo.Wait
		}
	}
	return nil
}

// NextRequest is the request of the next page; false where the call makes the same one again, or none.
func (c *Call) NextRequest() (Request, bool) {
	last := c.state.last().Attempt
	switch {
	case last == nil:
		return Request{}, false
	case last.Request != nil:
		return *last.Request, true
	}
	return c.state.Request, c.state.RequestAttempts == 0 && c.state.Attempts > 0 && c.state.Successes > 0
}

// MakesAttempt reports whether the call comes to another attempt by itself.
func (c *Call) MakesAttempt() bool { return c.state.last().Attempt != nil && c.state.held() == nil }
