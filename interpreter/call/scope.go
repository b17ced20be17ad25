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

// policyScope holds the names of when and then for the last outcome.
func (r reader) policyScope() *interpreter.Scope {
	scope, last, number := r.requests.Scope(&r.state.Request, r.requestMoment()), r.state.Last, r.state.lastPage(r.config)-r.state.Watermark.PagesBefore()
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

// answerScope is the scope of a policy's conditions, and of its fail: the page at hand is among the pages that were
// collected, as the policy adds it.
func (r reader) answerScope(scope *interpreter.Scope, budget *expression.Budget, policy *playbook.Policy, nodes ...*playbook.Node) *interpreter.Scope {
	names := r.config.collectedNames()
	named := slices.ContainsFunc(nodes, func(node *playbook.Node) bool { return node.Names(names...) })
	if !named || r.state.Last.Error != nil || r.config.Sink != nil {
		return scope
	}
	collected := r.state.Pages.With(r.config.collectingOf(), policy.Number, r.state.Last.Data, r.rowSelection(budget).pageExtraction())
	with := make(map[string]any, len(names))
	for _, name := range names {
		with[name] = collected
	}
	return scope.With(with)
}

// collectingOf says by what pages are collected. A sink has none.
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

// collectedNames are the names of what was collected.
func (c *Config) collectedNames() []string {
	if c.Sink != nil {
		return []string{playbook.DefaultInto}
	}
	return c.Step.CollectedNames()
}

// resultEnvelope is the last outcome as the result of a call.
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

// incrementalSection is the step's section, nil for calls that keep no state.
func (c *Config) incrementalSection() *playbook.Incremental {
	if c.Sink != nil {
		return nil
	}
	return c.Step.Incremental
}

// callConditions evaluates conditions in the scope of one outcome, which is
// made for the first of them.
type callConditions struct {
	reader

	explain func(Evaluated) // see Call.Explain
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

// RetryAfter is the wait that the policy's retry_after gives.
func (c *callConditions) RetryAfter(policy *playbook.Policy) (wait time.Duration, unread string, err error) {
	if c.scope == nil {
		c.scope = c.policyScope()
	}
	value, err := policy.Then.RetryAfter.Render(c.scope, c.budget)
	if err != nil {
		return 0, "", inPolicy(policy, "then.retry_after", err)
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
	result, err := node.Truth(c.answerScope(c.scope, c.budget, policy, node), c.budget)
	c.reportCondition(policy, node, word, result, err)
	return result, inPolicy(policy, word, err)
}

// inPolicy has an error of an expression name its place in the policy.
func inPolicy(policy *playbook.Policy, word string, err error) error {
	if eval, ok := errors.AsType[*playbook.EvalError](err); ok {
		return &playbook.EvalError{
			Pos: eval.Pos, Message: fmt.Sprintf("retry[%d].%s%s: %s", policy.Number, word, policy.From(), eval.Message),
		}
	}
	return err
}
