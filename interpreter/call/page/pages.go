package page

import (
	"slices"

	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
	"reprise/interpreter/retry"
)

// Pages is what a call remembers of its successful pages; except for Matched, a restart clears
// it. Part of the state of a call; kept in workflow history.
type Pages struct {
	Collected expression.Value `json:"collected,omitzero"`
	Collector int              `json:"collector,omitempty"` // policy whose collect was used last, -1 for the step's
	Pager     int              `json:"pager,omitempty"`     // policy with a page sink that paged last
	Matched   []int            `json:"matched,omitempty"`   // policies that matched a success of the call
	PagedBy   *PagedBy         `json:"paged_by,omitempty"`
	LastPage  string           `json:"last_page,omitempty"` // digest of the page before
	Detached  int              `json:"detached,omitempty"`  // elements of Collected that stayed with the workflow
}

// Restarted are the pages of a call that begins again.
func (p *Pages) Restarted() Pages { return Pages{Matched: p.Matched} }

// RemoveCollected returns what was collected since the last time, and keeps nothing of it.
func (p *Pages) RemoveCollected() []any {
	taken, _ := p.Collected.Data.([]any)
	p.Collected = expression.Value{}
	return taken
}

// Slice makes the next page the first of a slice: it is not compared with earlier pages.
func (p *Pages) Slice() { p.PagedBy, p.LastPage = nil, "" }

// Match notes policies that matched a success.
func (p *Pages) Match(numbers ...int) {
	p.Matched = lists.Add(p.Matched, numbers...)
}

// Repeats reports whether a page is the one before, and notes it for the one that
// follows.
func (p *Pages) Repeats(page any) bool {
	before := p.LastPage
	p.LastPage = expression.Hash(page)
	return p.LastPage == before
}

// ofStep is the number of the step's own collect, where a policy's would be.
const ofStep = -1

// Collecting says by what the pages of a call are collected.
type Collecting struct {
	Policies Policies
	// Step serves where no policy has a collect; nil for none.
	Step *playbook.Collect
}

// collectOf is the collect with a number, nil for 0.
func (c Collecting) collectOf(number int) *playbook.Collect {
	if number == ofStep {
		return c.Step
	}
	return c.Policies.Then(number).Collect
}

// ofPolicy is what collects the pages that a policy matches: its own collect, else the step's; 0 for neither.
func (c Collecting) ofPolicy(number int) int {
	switch {
	case c.collectOf(number) != nil:
		return number
	case c.Step != nil:
		return ofStep
	}
	return 0
}

// Uses reports whether pages are collected by a strategy.
func (c Collecting) Uses(strategy playbook.Strategy) bool {
	return c.Step != nil && c.Step.Strategy == strategy || slices.ContainsFunc(c.Policies, func(policy *playbook.Policy) bool {
		return policy.Then.Collect != nil && policy.Then.Collect.Strategy == strategy
	})
}

// onlyAppends reports whether pages only add to what was collected.
func (c Collecting) onlyAppends() bool { return !c.Uses(playbook.Replace) && !c.Uses(playbook.Merge) }

// Add collects a page where it belongs, and gives what it contributes: by the policy it
// matched, and the page that ends the call by the collect used last, else the first. reading
// says which rows it contributes. The error is an *playbook.EvalError.
func (p *Pages) Add(
	by Collecting, decision retry.Decision, page expression.Value, reading Extraction,
) (contribution expression.Value, err error) {
	number := decision.Policy
	switch {
	case by.collectOf(number) != nil:
	case decision.Repeats():
		number = by.ofPolicy(number)
	default:
		number = p.collectorNumber(by)
	}
	if number == 0 {
		added, err := reading.Whole(page.Data)
		if err != nil {
			return page, err
		}
		return expression.Of(added), nil
	}
	sum, added, err := collectPage(by.collectOf(number), p.Collected.Data, page.Data, reading)
	if err != nil {
		return page, err
	}
	p.Collector, p.Collected = number, expression.Of(sum)
	return expression.Of(added), nil
}

// With returns what would be collected if the numbered policy collected a page; if neither the policy nor its step
// collects, as for the page that ends the call. What cannot be collected adds nothing: it fails when it really has to
// be collected.
func (p *Pages) With(by Collecting, number int, page expression.Value, reading Extraction) any {
	if number = by.ofPolicy(number); number == 0 {
		number = p.collectorNumber(by)
	}
	if number == 0 {
		return p.Collected.Data
	}
	sum, _, err := collectPage(by.collectOf(number), p.Collected.Data, page.Data, reading)
	if err != nil {
		return p.Collected.Data
	}
	return sum
}

// CollectedBy is the collect that was used last, else the first policy's that has one, else the step's; nil for none.
func (p *Pages) CollectedBy(by Collecting) *playbook.Collect {
	return by.collectOf(p.collectorNumber(by))
}

// collectorNumber is the number of CollectedBy, 0 for none.
func (p *Pages) collectorNumber(by Collecting) int {
	if number := by.Policies.usedLast(p.Collector, func(then *playbook.Then) bool { return then.Collect != nil }); number != 0 {
		return number
	}
	return by.ofPolicy(0)
}

// Result returns the collected data of a successful call; false if nothing is collected.
func (p *Pages) Result(by Collecting) (data any, collects bool) {
	collect := p.CollectedBy(by)
	if collect == nil {
		return nil, false
	}
	return nothingCollected(collect.Strategy, p.Collected.Data), true
}

// WrittenBy is the policy whose sink gets the page, before anything else happens: the one it
// matched, and of the page that ends the call the policy that paged last, else the
// first that has such a sink. It is 0 for none.
func (p *Pages) WrittenBy(policies Policies, decision retry.Decision) int {
	number := decision.Policy
	switch {
	case len(policies.Then(number).PageSinks) == 0 && decision.Repeats():
		return 0
	case len(policies.Then(number).PageSinks) == 0:
		return policies.usedLast(p.Pager, func(then *playbook.Then) bool { return len(then.PageSinks) > 0 })
	case decision.Repeats():
		p.Pager = number
	}
	return number
}

// Writers are the policies whose sinks get the result of a success: in order, every policy that
// pages or collects, or that matched a success of this call.
func (p *Pages) Writers(policies Policies) (numbers []int) {
	for _, policy := range policies {
		then := &policy.Then
		if len(then.Sinks) > 0 && (then.NextCall != nil || then.Collect != nil || slices.Contains(p.Matched, policy.Number)) {
			numbers = append(numbers, policy.Number)
		}
	}
	return numbers
}

// Policies are the policies of the call whose pages they are.
type Policies []*playbook.Policy

// noPolicy is what a call does that no policy matched.
var noPolicy playbook.Then

// Then returns the then of the numbered policy; nil for 0.
func (p Policies) Then(number int) *playbook.Then {
	if number == 0 {
		return &noPolicy
	}
	return &p[number-1].Then
}

// usedLast is the policy, of the ones that have something, which was used last, else
// the first of them; 0 for none.
func (p Policies) usedLast(number int, has func(*playbook.Then) bool) int {
	if number != 0 {
		return number
	}
	for _, policy := range p {
		if has(&policy.Then) {
			return policy.Number
		}
	}
	return 0
}
