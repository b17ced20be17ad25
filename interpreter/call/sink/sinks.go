package sink

import (
	"slices"

	"reprise/interpreter"
	"reprise/interpreter/call/page"
	"reprise/interpreter/playbook"
)

// Sinks are the sinks that a call may write to.
type Sinks struct {
	Policies page.Policies
	// After are sinks that follow the policies' own after a success.
	After []*playbook.Sink
	// DeadLetter is written when the call has failed; nil for nowhere.
	DeadLetter *playbook.Sink
}

// Choice is one of the sinks of a call: by the number of its policy, from Sinks.After, or Sinks.DeadLetter. Kept
// with the state of a call.
type Choice struct {
	Policy int `json:"policy,omitempty"`
	// Number is the position of the sink in the list of the policy, from 0.
	Number     int  `json:"number,omitempty"`
	Page       bool `json:"page,omitempty"`
	After      int  `json:"after,omitempty"`
	DeadLetter bool `json:"dead_letter,omitempty"`
	// Do is what the sink does to its staged rows; the zero value writes rows.
	Do interpreter.StagingStep `json:"do,omitempty"`
}

// Chosen is the sink of a choice.
func (s *Sinks) Chosen(choice Choice) *playbook.Sink {
	switch {
	case choice.After != 0:
		return s.After[choice.After-1]
	case choice.DeadLetter:
		return s.DeadLetter
	}
	then := s.Policies.Then(choice.Policy)
	if choice.Page {
		return then.PageSinks[choice.Number]
	}
	return then.Sinks[choice.Number]
}

// All are all that the call may write to.
func (s *Sinks) All() []*playbook.Sink {
	var all []*playbook.Sink
	for _, policy := range s.Policies {
		all = slices.Concat(all, policy.Then.PageSinks, policy.Then.Sinks)
	}
	all = append(append(all, s.After...), s.DeadLetter)
	return slices.DeleteFunc(all, func(sink *playbook.Sink) bool { return sink == nil })
}

// Of are the sinks that a result goes to; decided is the policy that ruled last. The sinks of a success are, in
// order, from the policies that its pages choose, then from the loop or the step. A failure goes to the sink
// of the policy that ruled on it, and whatever failed the call, unless somebody cancelled it, to the one for
// dead letters.
func (s *Sinks) Of(result *interpreter.CallResult, pages *page.Pages, decided int) (chosen []Choice) {
	if result.Failed() {
		if result.Error.PoliciesDecide() {
			chosen = s.ofPolicy(decided)
		}
		if s.DeadLetter != nil && result.Error.Kind != interpreter.KindCancelled {
			chosen = append(chosen, Choice{DeadLetter: true})
		}
		return chosen
	}
	for _, number := range pages.Writers(s.Policies) {
		chosen = append(chosen, s.ofPolicy(number)...)
	}
	for i := range s.After {
		chosen = append(chosen, Choice{After: i + 1})
	}
	return chosen
}

// ofPolicy are the sinks of a policy that get the result of the call.
func (s *Sinks) ofPolicy(number int) []Choice {
	return numberChoices(Choice{Policy: number}, s.Policies.Then(number).Sinks)
}

// OfPage are the sinks of a policy that get a page.
func (s *Sinks) OfPage(number int) []Choice {
	return numberChoices(Choice{Policy: number, Page: true}, s.Policies.Then(number).PageSinks)
}

func numberChoices(choice Choice, sinks []*playbook.Sink) []Choice {
	all := make([]Choice, len(sinks))
	for i := range sinks {
		choice.Number = i
		all[i] = choice
	}
	return all
}

// ofSuccess are all sinks that a call may write to that ends well.
func (s *Sinks) ofSuccess() (all []Choice) {
	for _, policy := range s.Policies {
		all = append(all, s.OfPage(policy.Number)...)
	}
	for _, policy := range s.Policies {
		all = append(all, s.ofPolicy(policy.Number)...)
	}
	for i := range s.After {
		all = append(all, Choice{After: i + 1})
	}
	return all
}
