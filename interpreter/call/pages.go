package call

import (
	"slices"

	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
	"reprise/interpreter/retry"
)

// Pages is what a call keeps of its successes since it began or was restarted; part of State.
type Pages struct {
	Collected expression.Value `json:"collected,omitzero"`
	Collector int              `json:"collector,omitempty"` // policy whose collect was used last
	Pager     int              `json:"pager,omitempty"`     // policy with a page sink that paged last
	Matched   []int            `json:"matched,omitempty"`   // policies that matched a success
	PagedBy   *PagedBy         `json:"paged_by,omitempty"`
	LastPage  string           `json:"last_page,omitempty"` // digest of the page before
}

// match notes policies that matched a success.
func (p *Pages) match(numbers ...int) {
	for _, number := range numbers {
		if !slices.Contains(p.Matched, number) {
			p.Matched = append(p.Matched, number)
		}
	}
}

// pageRepeats reports whether a page is the one before, and notes it for the one that
// follows.
func (p *Pages) pageRepeats(page any) bool {
	before := p.LastPage
	p.LastPage = expression.Hash(page)
	return p.LastPage == before
}

// addPage collects a page where it belongs, and gives what it contributes: by the policy it
// matched, and the page that ends the call by the collect used last, else the first. keep
// leaves rows out of what it contributes; nil takes all.
func (p *Pages) addPage(
	config *Config, decision retry.Decision, page expression.Value, keep func(any) any,
) (contribution expression.Value, err error) {
	number := decision.Policy
	if config.then(number).Collect == nil {
		number = 0
		if !decision.Repeats() {
			number = p.collector(config)
		}
	}
	if number == 0 {
		return kept(page, keep), nil
	}
	how := config.then(number).Collect
	sum, added, err := collect(how, p.Collected.Data, page.Data, keep)
	if err != nil {
		return page, &playbook.EvalError{Pos: how.Pos, Message: err.Error()}
	}
	p.Collector, p.Collected = number, expression.Of(sum)
	return expression.Of(added), nil
}

// collector is the policy whose collect was used last, else the first that has one;
// 0 for none.
func (p *Pages) collector(config *Config) int {
	return config.usedLast(p.Collector, func(then *playbook.Then) bool { return then.Collect != nil })
}

// pageSink has the page written before anything else happens: by the policy it
// matched, and the page that ends the call by the policy that paged last, else the
// first that has such a sink.
func (p *Pages) pageSink(config *Config, decision retry.Decision) []Todo {
	number := decision.Policy
	switch {
	case config.then(number).PerIteration == nil && decision.Repeats():
		return nil
	case config.then(number).PerIteration == nil:
		if number = config.usedLast(p.Pager, func(then *playbook.Then) bool { return then.PerIteration != nil }); number == 0 {
			return nil
		}
	case decision.Repeats():
		p.Pager = number
	}
	return []Todo{{Sink: &pendingSink{Policy: number, Page: true}}}
}

// sinksOf are the sinks that a result goes to; decided is the policy that was asked
// last. Those of a success are, in order, of every policy that pages or collects, or
// that matched a success of this call, then those that stand on the loop or the step.
// A failure goes to the sink of the policy that was asked about it, and whatever failed
// the call, unless somebody cancelled it, to the one for dead letters.
func (p *Pages) sinksOf(config *Config, result *interpreter.CallResult, decided int) []Todo {
	var todo []Todo
	add := func(sink pendingSink) { todo = append(todo, Todo{Sink: &sink}) }
	if result.Failed() {
		if result.Error.PoliciesDecide() && config.then(decided).Sink != nil {
			add(pendingSink{Policy: decided})
		}
		if config.DeadLetter != nil && result.Error.Kind != interpreter.KindCancelled {
			add(pendingSink{DeadLetter: true})
		}
		return todo
	}
	for _, policy := range config.Policies {
		then := &policy.Then
		if then.Sink != nil && (then.NextCall != nil || then.Collect != nil || slices.Contains(p.Matched, policy.Number)) {
			add(pendingSink{Policy: policy.Number})
		}
	}
	for i := range config.After {
		add(pendingSink{After: i + 1})
	}
	return todo
}
