package activities

import (
	"encoding/json"
	"slices"

	"reprise/interpreter"
	"reprise/interpreter/expression"
)

// Sizes are those of the JSON that Temporal is given. The data, which can be
// thousands of rows, is counted and not written; the little around it is.

// resultSize is how many bytes a result takes: its data, and all of it.
type resultSize struct{ data, all int }

// sizeOfResult gives the error of a result that cannot be written.
func sizeOfResult(result interpreter.ToolResult) (resultSize, error) {
	data, canonical := expression.Size(result.Data.Data)
	if !canonical {
		encoded, err := json.Marshal(result)
		return resultSize{data: len(encoded), all: len(encoded)}, err
	}
	if result.Data.IsZero() {
		return resultSize{data: data, all: sizeOf(result)}, nil
	}
	result.Data = expression.Value{}
	around := sizeOf(result) + len(`"data":`)
	if !result.Meta.IsZero() {
		around += len(`,`)
	}
	return resultSize{data: data, all: around + data}, nil
}

func sizeOf(v any) int {
	encoded, err := json.Marshal(v)
	if err != nil {
		return 0
	}
	return len(encoded)
}

// surelyFits reports whether the output takes at most some bytes: its data is
// counted, and more than enough for the names of the fields that hold it.
func surelyFits(output interpreter.DriveOutput, most int) bool {
	light := interpreter.DriveOutput{Calls: slices.Clone(output.Calls)}
	taken := 0
	for i := range light.Calls {
		taken += lighten(&light.Calls[i])
	}
	return taken+sizeOf(light) <= most
}

// lighten takes the data out of a copy and gives what it takes as JSON, or more.
func lighten(driven *interpreter.Driven) (bytes int) {
	take := func(v *expression.Value) {
		const name = 20 // of the field, with what separates it
		if size, ok := expression.Size(v.Data); ok {
			*v = expression.Value{}
			bytes += size + name
		}
	}
	if driven.State != nil {
		state := *driven.State
		take(&state.Collected)
		take(&state.Last.Data)
		take(&state.Last.Contribution)
		driven.State = &state
	}
	if driven.Result != nil {
		result := *driven.Result
		take(&result.Data)
		driven.Result = &result
	}
	if driven.Outcome != nil {
		outcome := *driven.Outcome
		data := expression.Of(outcome.Data)
		take(&data)
		outcome.Data = data.Data
		driven.Outcome = &outcome
	}
	return bytes
}
