package workflows

import (
	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
)

// measure gives the size of a value that is about to cross a boundary, and the
// error of one that cannot. Temporal refuses what is too large and then leaves
// the run hanging, so workflow code measures first.
func measure(ctx workflow.Context, v any, what string) (int, *interpreter.ErrorObject) {
	return interpreter.Measure(v, payloadCap(ctx), what)
}
