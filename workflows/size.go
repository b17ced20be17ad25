package workflows

import (
	"encoding/json"
	"fmt"
	"slices"

	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/expression"
)

// measure gives the size of a value that is about to cross a boundary, and the
// error of one that cannot. Temporal refuses what is too large and then leaves
// the run hanging, so workflow code measures first.
func measure(ctx workflow.Context, v any, what string) (int, *interpreter.ErrorObject) {
	size, most := encodedSize(v), payloadCap(ctx)
	if size <= most {
		return size, nil
	}
	return size, &interpreter.ErrorObject{
		Kind: interpreter.KindPayloadTooLarge, Class: interpreter.ClassFinal,
		Message: fmt.Sprintf("%s is %d bytes, more than the %d that a payload may have; "+
			"write rows away with a sink instead of returning them", what, size, most),
	}
}

func encodedSize(v any) int {
	encoded, err := json.Marshal(v)
	if err != nil {
		return 0 // the data converter reports it
	}
	return len(encoded)
}

// fitLoop makes sure that a loop's result crosses the boundary. What failed
// iterations had collected is left out first; a loop whose results are too
// large fails and says so.
func fitLoop(ctx workflow.Context, result *interpreter.LoopResult, step string) {
	most := payloadCap(ctx)
	if encodedSize(result) <= most {
		return
	}
	for i := range result.Errors {
		result.Errors[i].Error = slim(result.Errors[i].Error)
	}
	_, failure := measure(ctx, result, "the result of loop "+step)
	if failure == nil {
		return
	}
	result.Results = make([]expression.Value, len(result.Results))
	result.Budget = failure
	if encodedSize(result) > most {
		cutErrors(result, step, most)
	}
}

// cutErrors keeps as many errors of a loop as surely fit; the stats still
// count all of them.
func cutErrors(result *interpreter.LoopResult, step string, most int) {
	size, all := 0, len(result.Errors)
	for i, failure := range result.Errors {
		if size += encodedSize(failure); size > most/2 {
			result.Errors = result.Errors[:i]
			break
		}
	}
	result.Warnings = []string{fmt.Sprintf("step %s: of %d errors only the first %d to happen are kept; "+
		"see the child workflows for the others", step, all, len(result.Errors))}
}

// maxFailureDetails is what Temporal surely keeps of a failure's details.
const maxFailureDetails = 100_000

// trimmed leaves bulky data out of an error that has to travel in details.
func trimmed(failure *interpreter.ErrorObject) *interpreter.ErrorObject {
	if failure == nil || encodedSize(failure) <= maxFailureDetails {
		return failure
	}
	return slim(failure)
}

// bulky is the size of data, in bytes, from which it is left out of an error that
// has to be small.
const bulky = 2000

// slim is an error without its bulky data: what was collected, the body, or both.
// Headers go first: a loop may have many errors with a few of them each.
func slim(failure *interpreter.ErrorObject) *interpreter.ErrorObject {
	if failure == nil {
		return nil
	}
	small := *failure
	small.Headers = nil
	if encodedSize(small) <= bulky {
		return &small
	}
	small.Message = cut(small.Message)
	parts := []struct {
		value *expression.Value
		note  string
	}{
		{&small.Collected, " (what was collected is too large to be kept)"},
		{&small.Body, " (the body is too large to be kept)"},
	}
	if encodedSize(small.Body) > encodedSize(small.Collected) {
		slices.Reverse(parts)
	}
	for _, part := range parts {
		if encodedSize(small.Collected)+encodedSize(small.Body) > bulky {
			*part.value = expression.Value{}
			small.Message += part.note
		}
	}
	return &small
}

func cut(text string) string {
	const most = 2000
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}
