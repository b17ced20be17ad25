package call

import (
	"net/http"
	"slices"
	"strings"

	"reprise/interpreter/playbook"
)

// hasSinks reports whether a step has any sink.
func hasSinks(step *playbook.Step) bool {
	inPolicies := slices.ContainsFunc(step.Retry, func(policy *playbook.Policy) bool {
		return len(policy.Then.Sinks)+len(policy.Then.PageSinks) > 0
	})
	return inPolicies || len(step.Sinks) > 0 || step.Loop != nil && (len(step.Loop.Sinks) > 0 || step.Loop.DeadLetter != nil)
}

// IsReadOnly reports whether a step only reads from servers and writes nothing.
func IsReadOnly(book *playbook.Playbook, step *playbook.Step) bool {
	if step.Action == nil {
		return true
	}
	if hasSinks(step) {
		return false
	}
	action := book.ResolveAction(step.Action)
	if inner := action.Inline; inner != nil {
		return !slices.ContainsFunc(inner.Steps, func(step *playbook.Step) bool { return !IsReadOnly(inner, step) })
	}
	if !action.ToolTraits().Requests {
		return false
	}
	method := action.Field(playbook.FieldMethod)
	if method == nil {
		return true
	}
	text, _ := method.Value.(string)
	return method.IsConstant() && (strings.EqualFold(text, http.MethodGet) || strings.EqualFold(text, http.MethodHead))
}
