package call

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"reprise/interpreter"
	"reprise/interpreter/call/page"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// policyScope returns the scope of when and then for the last outcome.
func (r reader) policyScope() *interpreter.Scope {
	scope, last, number := r.requests.RequestScope(&r.state.Request, r.requestMoment()), r.state.Last, r.state.lastPage(r.config)-r.state.Watermark.PagesBefore()
	names := map[string]any{
		"error":              last.Error.Value(),
		"this":               r.state.resultEnvelope(),
		playbook.DefaultInto: r.state.Collected.Data,
		"_retry": map[string]any{
			"page": number, "index": number, "attempt": r.state.RequestAttempts,
			"count": r.state.Attempts, "policy": last.Policy,
		},
	}
	if last.Error == nil {
		names["response"], names["page"] = last.Data.Data, last.Data.Data
	} else {
		names["response"], names["page"] = nil, nil
	}
	for _, name := range r.config.collectedNames()[1:] {
		names[name] = r.state.Collected.Data
	}
	return scope.With(names)
}

// answerScope returns the scope of a policy's conditions and its fail, in which the collected data includes the
// current page, as that policy would collect it.
func (r reader) answerScope(scope *interpreter.Scope, budget *expression.Budget, policy *playbook.Policy, nodes ...*playbook.Node) *interpreter.Scope {
	names := r.config.collectedNames()
	named := slices.ContainsFunc(nodes, func(node *playbook.Node) bool { return node.UsesAny(names...) })
	if !named || r.state.Last.Error != nil || r.config.Sink != nil {
		return scope
	}
	collected := r.state.Pages.DataWith(r.config.collectingOf(), policy.Number, r.state.Last.Data, r.rowSelection(budget).pageExtraction())
	with := make(map[string]any, len(names))
	for _, name := range names {
		with[name] = collected
	}
	return scope.With(with)
}

// collectingOf returns the collect sections that apply to the pages. A sink has none.
func (c *Config) collectingOf() page.Collecting {
	by := page.Collecting{Policies: c.Policies}
	switch {
	case c.Sink != nil:
	case c.Limits.CollectsRows:
		by.Step = c.Step.PagesCollect()
	default:
		by.Step = c.Step.Collect
	}
	return by
}

// collectedNames returns the names of the collected data in expressions.
func (c *Config) collectedNames() []string {
	if c.Sink != nil {
		return []string{playbook.DefaultInto}
	}
	return c.Step.CollectedNames()
}

// resultEnvelope returns the last outcome as `this` in expressions.
func (s *State) resultEnvelope() map[string]any {
	last := interpreter.CallResult{Status: interpreter.StatusSuccess, Data: s.Last.Data, Meta: s.callMeta(time.Time{})}
	if s.Last.Partial {
		last.Status = interpreter.Partial
	}
	if s.Last.Error != nil {
		last.Status, last.Data, last.Error = interpreter.StatusError, expression.Value{}, s.Last.Error
	}
	return last.Envelope()
}

// incrementalSection returns the step's incremental section; nil for sinks, and for steps without one.
func (c *Config) incrementalSection() *playbook.Incremental {
	if c.Sink != nil {
		return nil
	}
	return c.Step.Incremental
}

// callConditions evaluates conditions in the scope of one outcome, which is built for the first of them.
type callConditions struct {
	reader

	explain func(Evaluation) // see Call.Explain
	scope   *interpreter.Scope
	budget  *expression.Budget
	now     time.Time
}

func (c *callConditions) When(policy *playbook.Policy) (bool, error) {
	return c.evaluateTruth(policy, policy.When, "when")
}

func (c *callConditions) StopWhen(policy *playbook.Policy) (bool, error) {
	return c.evaluateTruth(policy, policy.StopWhen, "stop_when")
}

// RetryAfter returns the wait from the policy's retry_after; unread says why its value is not a wait.
func (c *callConditions) RetryAfter(policy *playbook.Policy) (wait time.Duration, unread string, err error) {
	if c.scope == nil {
		c.scope = c.policyScope()
	}
	value, err := policy.Then.RetryAfter.Render(c.scope, c.budget)
	if err != nil {
		return 0, "", atPolicy(policy, "then.retry_after", err)
	}
	headers := c.state.Last.Meta.Headers
	if c.state.Last.Error != nil {
		headers = c.state.Last.Error.Headers
	}
	wait, unread = interpreter.ReadWait(value, headers, c.now)
	return wait, unread, nil
}

func (c *callConditions) evaluateTruth(policy *playbook.Policy, node *playbook.Node, word string) (bool, error) {
	if c.scope == nil {
		c.scope = c.policyScope()
	}
	result, err := node.EvalCondition(c.answerScope(c.scope, c.budget, policy, node), c.budget)
	c.reportCondition(policy, node, word, result, err)
	return result, atPolicy(policy, word, err)
}

// atPolicy adds the place in the policy to an error of an expression.
func atPolicy(policy *playbook.Policy, word string, err error) error {
	if eval, ok := errors.AsType[*playbook.EvalError](err); ok {
		return &playbook.EvalError{
			Pos: eval.Pos, Message: fmt.Sprintf("retry[%d].%s%s: %s", policy.Number, word, policy.OriginText(), eval.Message),
		}
	}
	return err
}
