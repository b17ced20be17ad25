package page

import (
	"slices"

	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
	"reprise/interpreter/retry"
)

// Pages is what a call remembers of its successful pages. A restart clears everything except Matched. Part of the
// state of a call; kept in workflow history.
type Pages struct {
	Collected expression.Value `json:"collected,omitzero"`
	Collector int              `json:"collector,omitempty"` // number of the policy whose collect was used last, -1 for the step's
	Pager     int              `json:"pager,omitempty"`     // number of the policy with a page sink that paged last
	Matched   []int            `json:"matched,omitempty"`   // numbers of the policies that matched a success of the call
	PagedBy   *PagedBy         `json:"paged_by,omitempty"`
	LastPage  string           `json:"last_page,omitempty"` // digest of the previous page
	Detached  int              `json:"detached,omitempty"`  // number of elements of Collected that are only in the workflow
	LastRows  string           `json:"last_rows,omitempty"` // digest of the first and last rows of the previous page, and their number; "" for none
	SameRows  int              `json:"same_rows,omitempty"` // number of pages with the first and last rows of the page before them
	// Skipped says that the current request may have left out rows; nil if not.
	Skipped *SkippedRows `json:"skipped,omitempty"`
	// Edge is the row from which the current request continues; nil if it continues from none.
	Edge *Edge `json:"edge,omitempty"`
	// Polled says that responses of polls had rows; nil if none had.
	Polled *PolledRows `json:"polled,omitempty"`
	// End has the rows at the end of the previous page; nil if they are not compared.
	End *PageEnd `json:"end,omitempty"`
	// Fullest is the largest number of rows of a page that another one has followed.
	Fullest int `json:"fullest,omitempty"`
	// Shorter is the number of the first page that had fewer rows although another one has followed; 0 for none.
	Shorter int `json:"shorter,omitempty"`
}

// AfterRestart returns the pages of a call that restarts.
func (p *Pages) AfterRestart() Pages { return Pages{Matched: p.Matched} }

// RemoveCollected returns the data collected since the last call of RemoveCollected, and removes it.
func (p *Pages) RemoveCollected() []any {
	taken, _ := p.Collected.Data.([]any)
	p.Collected = expression.Value{}
	return taken
}

// StartSlice begins a slice: its first page is not compared with earlier pages.
func (p *Pages) StartSlice() {
	p.PagedBy, p.LastPage, p.LastRows = nil, "", ""
	if p.Skipped != nil && !p.Skipped.Reported {
		p.Skipped = nil
	}
	if p.Edge != nil && !p.Edge.Reported {
		p.Edge = nil
	}
	if p.End != nil && !p.End.Reported {
		p.End = nil
	}
}

// RecordMatches records policies that matched a success.
func (p *Pages) RecordMatches(numbers ...int) {
	p.Matched = lists.AddUnique(p.Matched, numbers...)
}

// IsRepeatedPage reports whether a page equals the previous one, and remembers it for the next comparison.
func (p *Pages) IsRepeatedPage(page any) bool {
	before := p.LastPage
	p.LastPage = expression.ShortDigest(page)
	return p.LastPage == before
}

// CompareRows counts a page that begins and ends with the rows of the page before it, whatever else they have: many answers have a time
// or an ID of their own, by which IsRepeatedPage differs. A page without rows is not compared. contribution is what
// the page contributed.
func (p *Pages) CompareRows(contribution any) {
	before := p.LastRows
	if p.LastRows = ""; !gaveNothing(contribution) {
		if rows, _ := longestList(contribution, 0); len(rows) > 0 {
			contribution = endsOf(rows)
		}
		p.LastRows = expression.ShortDigest(contribution)
	}
	if p.LastRows != "" && p.LastRows == before {
		p.SameRows++
	}
}

// NoteSize compares the rows of a page that another one follows with those of earlier pages. number is that of the page.
func (p *Pages) NoteSize(rows, number int) {
	switch {
	case rows < p.Fullest && p.Shorter == 0:
		p.Shorter = number
	case rows > p.Fullest && number > 1 && p.Shorter == 0:
		p.Shorter = 1
	}
	p.Fullest = max(p.Fullest, rows)
}

// comparedRows is how many rows at either end of a page are compared with those of the page before: another page differs in
// these, and a digest of all rows takes long.
const comparedRows = 4

// endsOf returns the rows of a page that are compared, with their number.
func endsOf(rows []any) any {
	if len(rows) <= 2*comparedRows {
		return rows
	}
	return []any{len(rows), rows[:comparedRows], rows[len(rows)-comparedRows:]}
}

// ofStep identifies the step's own collect, in place of the number of a policy.
const ofStep = -1

// Collecting has the collect sections that apply to the pages of a call.
type Collecting struct {
	Policies Policies
	// Step is used if no policy has a collect; nil for none.
	Step *playbook.Collect
}

// collectOf returns the collect with a number, nil for 0.
func (c Collecting) collectOf(number int) *playbook.Collect {
	if number == ofStep {
		return c.Step
	}
	return c.Policies.ThenOf(number).Collect
}

// collectNumber returns the number of the collect for pages that a policy matches: the policy's own, otherwise the
// step's; 0 for none.
func (c Collecting) collectNumber(number int) int {
	switch {
	case c.collectOf(number) != nil:
		return number
	case c.Step != nil:
		return ofStep
	}
	return 0
}

// UsesStrategy reports whether any collect has the strategy.
func (c Collecting) UsesStrategy(strategy playbook.Strategy) bool {
	return c.Step != nil && c.Step.Strategy == strategy || slices.ContainsFunc(c.Policies, func(policy *playbook.Policy) bool {
		return policy.Then.Collect != nil && policy.Then.Collect.Strategy == strategy
	})
}

// onlyAppends reports whether pages only append to the collected data.
func (c Collecting) onlyAppends() bool {
	return !c.UsesStrategy(playbook.Replace) && !c.UsesStrategy(playbook.Merge)
}

// CollectPage collects a page, and returns what it contributes. The collect is that of the policy that the page matched.
// The page that ends the call uses the last used collect, or the first one if none was used. reading determines
// which rows the page contributes. The error is an *playbook.EvalError.
func (p *Pages) CollectPage(
	by Collecting, decision retry.Decision, page expression.Value, reading Extraction,
) (contribution expression.Value, err error) {
	number := decision.Policy
	switch {
	case by.collectOf(number) != nil:
	case decision.Repeats():
		number = by.collectNumber(number)
	default:
		number = p.collectorNumber(by)
	}
	if number == 0 {
		added, err := reading.WholePage(page.Data)
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

// DataWith returns what would be collected if the numbered policy collected a page. If neither the policy nor its step
// has a collect, it uses the same one as for the page that ends the call. A page that cannot be collected adds
// nothing here; the error follows when it is really collected.
func (p *Pages) DataWith(by Collecting, number int, page expression.Value, reading Extraction) any {
	if number = by.collectNumber(number); number == 0 {
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

// CollectedBy returns the last used collect, otherwise that of the first policy that has one, otherwise the step's;
// nil for none.
func (p *Pages) CollectedBy(by Collecting) *playbook.Collect {
	return by.collectOf(p.collectorNumber(by))
}

// collectorNumber returns the number of the CollectedBy collect, 0 for none.
func (p *Pages) collectorNumber(by Collecting) int {
	if number := by.Policies.orFirstPolicy(p.Collector, func(then *playbook.Then) bool { return then.Collect != nil }); number != 0 {
		return number
	}
	return by.collectNumber(0)
}

// CollectedResult returns the collected data of a successful call; false if nothing is collected.
func (p *Pages) CollectedResult(by Collecting) (data any, collects bool) {
	collect := p.CollectedBy(by)
	if collect == nil {
		return nil, false
	}
	return withoutContribution(collect.Strategy, p.Collected.Data), true
}

// SinkPolicy returns the number of the policy whose page sink gets the page, 0 for none: the policy that the page
// matched or, for the page that ends the call, the policy that paged last, otherwise the first one with a page
// sink.
func (p *Pages) SinkPolicy(policies Policies, decision retry.Decision) int {
	number := decision.Policy
	switch {
	case len(policies.ThenOf(number).PageSinks) == 0 && decision.Repeats():
		return 0
	case len(policies.ThenOf(number).PageSinks) == 0:
		return policies.orFirstPolicy(p.Pager, func(then *playbook.Then) bool { return len(then.PageSinks) > 0 })
	case decision.Repeats():
		p.Pager = number
	}
	return number
}

// SinkPolicies returns the numbers of the policies whose sinks get the result of a success: every policy that pages or
// collects, or that matched a success of this call.
func (p *Pages) SinkPolicies(policies Policies) (numbers []int) {
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

// noPolicy is the Then of an outcome that no policy matched.
var noPolicy playbook.Then

// ThenOf returns the then section of the numbered policy; for 0 an empty one.
func (p Policies) ThenOf(number int) *playbook.Then {
	if number == 0 {
		return &noPolicy
	}
	return &p[number-1].Then
}

// orFirstPolicy returns number if it is set, otherwise the number of the first policy for which has is true; 0 for none.
func (p Policies) orFirstPolicy(number int, has func(*playbook.Then) bool) int {
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
