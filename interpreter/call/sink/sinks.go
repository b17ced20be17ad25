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
	// After are written after the policies' own sinks if the call succeeds.
	After []*playbook.Sink
	// DeadLetter is written if the call fails; nil for none.
	DeadLetter *playbook.Sink
}

// Choice refers to one of the sinks of a call: to a sink of a policy, one in Sinks.After, or Sinks.DeadLetter. Kept
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

// SinkOf returns the sink that a choice refers to.
func (s *Sinks) SinkOf(choice Choice) *playbook.Sink {
	switch {
	case choice.After != 0:
		return s.After[choice.After-1]
	case choice.DeadLetter:
		return s.DeadLetter
	}
	then := s.Policies.ThenOf(choice.Policy)
	if choice.Page {
		return then.PageSinks[choice.Number]
	}
	return then.Sinks[choice.Number]
}

// AllSinks returns all sinks that the call may write to.
func (s *Sinks) AllSinks() []*playbook.Sink {
	var all []*playbook.Sink
	for _, policy := range s.Policies {
		all = slices.Concat(all, policy.Then.PageSinks, policy.Then.Sinks)
	}
	all = append(append(all, s.After...), s.DeadLetter)
	return slices.DeleteFunc(all, func(sink *playbook.Sink) bool { return sink == nil })
}

// ForResult returns the sinks that get a result, in order; decided is the number of the policy that ruled last. A success
// goes to the sinks of the policies that Pages.SinkPolicies returns, then to those of the loop or step. A failure goes
// to the sinks of the policy that ruled on it, then, unless the call was cancelled, to the dead letter sink.
func (s *Sinks) ForResult(result *interpreter.CallResult, pages *page.Pages, decided int) (chosen []Choice) {
	if result.Failed() {
		if result.Error.PoliciesDecide() {
			chosen = s.forPolicy(decided)
		}
		if s.DeadLetter != nil && result.Error.Kind != interpreter.KindCancelled {
			chosen = append(chosen, Choice{DeadLetter: true})
		}
		return chosen
	}
	for _, number := range pages.SinkPolicies(s.Policies) {
		chosen = append(chosen, s.forPolicy(number)...)
	}
	for i := range s.After {
		chosen = append(chosen, Choice{After: i + 1})
	}
	return chosen
}

// forPolicy returns the sinks of a policy that get the result of the call.
func (s *Sinks) forPolicy(number int) []Choice {
	return numberChoices(Choice{Policy: number}, s.Policies.ThenOf(number).Sinks)
}

// ForPage returns the sinks of a policy that get a page.
func (s *Sinks) ForPage(number int) []Choice {
	return numberChoices(Choice{Policy: number, Page: true}, s.Policies.ThenOf(number).PageSinks)
}

func numberChoices(choice Choice, sinks []*playbook.Sink) []Choice {
	all := make([]Choice, len(sinks))
	for i := range sinks {
		choice.Number = i
		all[i] = choice
	}
	return all
}

// forSuccess returns all sinks that a successful call may write to.
func (s *Sinks) forSuccess() (all []Choice) {
	for _, policy := range s.Policies {
		all = append(all, s.ForPage(policy.Number)...)
	}
	for _, policy := range s.Policies {
		all = append(all, s.forPolicy(policy.Number)...)
	}
	for i := range s.After {
		all = append(all, Choice{After: i + 1})
	}
	return all
}
