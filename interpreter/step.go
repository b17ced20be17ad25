package interpreter

import (
	"time"

	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// EndScope returns the scope of vars, next and a step's own sinks once the step has ended.
func EndScope(scope *Scope, args any, result CallResult) *Scope {
	names := map[string]any{
		"result": result.Data.Data,
		"this":   result.Envelope(),
		"error":  result.Error.Value(),
	}
	if result.Failed() {
		names["response"] = nil
	} else {
		names["response"] = result.Data.Data
	}
	if args != nil {
		names["args"] = args
	}
	return scope.With(names)
}

// RenderVars returns vars with the evaluated vars of a step, each of which can use the previous ones.
func RenderVars(step *playbook.Step, vars any, scope *Scope, budget *expression.Budget) (any, error) {
	merged := expression.MapOrEmpty(vars)
	for _, entry := range step.Vars {
		value, err := entry.Value.Render(scope.With(map[string]any{"vars": merged}), budget)
		if err != nil {
			return nil, err
		}
		merged = withKey(merged, entry.Key, value)
	}
	return merged, nil
}

// withKey returns a copy of a map with one member set. The value replaces an earlier one, without merging.
func withKey(m any, key string, value any) map[string]any {
	copied := playbook.CloneMap(expression.MapOf(m), 1)
	copied[key] = value
	return copied
}

// EvalCollection evaluates the collection of a loop; see LoopElements.
func EvalCollection(loop *playbook.Loop, scope *Scope, budget *expression.Budget) ([]any, error) {
	value, err := loop.Collection.Render(scope, budget)
	if err != nil {
		return nil, err
	}
	elements, err := LoopElements(value)
	if err != nil {
		return nil, &playbook.EvalError{Pos: loop.Collection.Pos, Message: err.Error()}
	}
	return elements, nil
}

// ExpressionFailure returns the failed result of something outside a call whose expression failed.
func ExpressionFailure(book *playbook.Playbook, where string, err error, now time.Time) CallResult {
	return CallResult{
		Status: StatusError, Error: ExpressionError(book, where, err),
		Meta: CallMeta{StartedAt: now, EndedAt: now},
	}
}
