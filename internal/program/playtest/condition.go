package playtest

import (
	"strings"
	"time"

	"reprise/interpreter/expression"
)

// conditionOf returns the condition that an expected value is; nil if it is a value to compare.
func conditionOf(wanted string) *expression.Template {
	text := strings.TrimSpace(wanted)
	if !strings.HasPrefix(text, "{{") || !strings.HasSuffix(text, "}}") {
		return nil
	}
	condition, problems := expression.ParseCondition(text)
	if len(problems) > 0 {
		return nil
	}
	return condition
}

// conditionHolds reports whether an actual value fulfils a condition. The condition refers to it as value, and to the
// members of a map by their names. A condition that fails to evaluate is not fulfilled.
func conditionHolds(condition *expression.Template, got any) bool {
	scope := expression.MapScope{}
	for name, member := range expression.MapOf(got) {
		scope[name] = member
	}
	scope["value"] = got
	result, err := condition.Render(scope, expression.NewBudget(expression.DecisionLimits, time.Time{}))
	return err == nil && expression.Truthy(result)
}
