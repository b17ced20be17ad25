package playtest

import (
	"strings"
	"time"

	"reprise/interpreter/expression"
)

// conditionOf returns the condition that an expected value is; nil for one that is compared.
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

// conditionHolds reports whether a condition holds over what was got: that is value, and the members of a map have their names. One
// that cannot be evaluated does not hold.
func conditionHolds(condition *expression.Template, got any) bool {
	scope := expression.MapScope{}
	for name, member := range expression.MapOf(got) {
		scope[name] = member
	}
	scope["value"] = got
	result, err := condition.Render(scope, expression.NewBudget(expression.DecisionLimits, time.Time{}))
	return err == nil && expression.Truthy(result)
}
