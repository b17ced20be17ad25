package activities_test

import "reprise/interpreter/expression"

func value(v any) *expression.Value {
	wrapped := expression.Of(v)

	return &wrapped
}
