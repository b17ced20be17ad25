package playbook

import (
	"slices"

	"reprise/interpreter/expression"
)

// IncrementalWord is the name that a step with a state has for it.
const IncrementalWord = "incremental"

// StateHome is the sink whose destination keeps the state of a step, in the transaction of
// its rows: the last one that a call writes to when it has ended well, else the one for
// pages, if it is a table whose place no answer decides. Nil is a state that Temporal keeps.
func (pb *Playbook) StateHome(step *Step) *Sink {
	sink := step.lastSink()
	if sink == nil || sink.Action == nil {
		return nil
	}
	action := pb.Resolve(sink.Action)
	if !action.Traits().KeepsStates || action.Field("table") == nil || !FixedPlace(action, step.Retry) {
		return nil
	}
	return sink
}

// lastSink is what a call of the step writes to last when it has ended well, nil for nothing.
func (s *Step) lastSink() *Sink {
	sink := s.Sink
	if s.Loop != nil {
		sink = s.Loop.Sink
	}
	if sink != nil {
		return sink
	}
	for _, policy := range slices.Backward(s.Retry) {
		if policy.Then.Sink != nil && policy.mayFollowSuccess() {
			return policy.Then.Sink
		}
	}
	return s.pageSink()
}

// pageSink is the sink of the last policy that has one for pages, nil for none.
func (s *Step) pageSink() *Sink {
	for _, policy := range slices.Backward(s.Retry) {
		if policy.Then.PerIteration != nil {
			return policy.Then.PerIteration
		}
	}
	return nil
}

// mayFollowSuccess is false for a policy that is only for failures.
func (p *Policy) mayFollowSuccess() bool {
	if p.Then.NextCall != nil || p.Then.Collect != nil {
		return true
	}
	program, ok := p.When.program()
	return !ok || !failuresOnly(program)
}

// FixedPlace reports whether no field that says where a sink writes names what only exists
// after an attempt, of a call with these policies. A statement says itself where it writes.
func FixedPlace(sink *Action, policies []*Policy) bool {
	names := append(CollectedNames(policies), "response", "error", "this", "page", "_retry", "result", argsWord,
		"operation_key", "attempt_key", CallbackWord, IncrementalWord)
	return sink.Field(FieldStatement) == nil && !sink.Tool.Names(names...) && !sink.Auth.Names(names...) &&
		!slices.ContainsFunc(sink.Fields, func(field *Entry) bool { return field.Value.Names(names...) })
}

// CollectedNames are those of what calls with these policies collect.
func CollectedNames(policies []*Policy) []string {
	names := []string{DefaultInto}
	for _, policy := range policies {
		if collect := policy.Then.Collect; collect != nil && collect.Into != "" {
			names = append(names, collect.Into)
		}
	}
	return names
}

// StateName is the name of a step's state as far as it is known before a run: with
// the element of a loop as <element>, and templates as they are written.
func (pb *Playbook) StateName(step *Step) string {
	if state := step.Incremental.State; state != nil {
		if state.Template == nil {
			return expression.Text(state.Value)
		}
		return state.Raw
	}
	name := pb.StateGroup(step)
	if step.Loop != nil {
		name += "/<" + step.Loop.Element + ">"
	}
	return name
}

// StateGroup is the name of a step's state where the step does not say one, without the
// element of a loop.
func (pb *Playbook) StateGroup(step *Step) string {
	name := pb.Name
	if pb.State != "" {
		name = pb.State
	}
	return name + "/" + step.Name
}
