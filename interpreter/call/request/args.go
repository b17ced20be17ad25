package request

import (
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// StepArgs returns the args of a step outside its iterations, laid over routed, the args of the route. Args that
// depend on the element of a loop or on an attempt are not rendered.
func StepArgs(step *playbook.Step, routed any, scope *interpreter.Scope, budget *expression.Budget) (any, error) {
	if step.Action == nil || step.Action.Args == nil ||
		(step.Loop != nil && step.Action.Args.UsesAny(step.Loop.Element, "_loop")) {
		return routed, nil
	}
	if step.Action.Args.UsesAny(namesKeys...) {
		return routed, nil
	}
	// Secret args are not known here, and no expression may use them.
	secret := deferring{book: scope.Playbook(), scope: scope, budget: budget, in: interpreter.InArgs}
	args, err := secret.renderValue(step.Action.Args)
	if err != nil {
		return nil, err
	}
	if routed == nil {
		return args, nil
	}
	return expression.MergeMaps(expression.MapOrEmpty(args), routed), nil
}
