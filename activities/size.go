package activities

import (
	"reprise/interpreter"
	"reprise/interpreter/expression"
)

// The data of a result can be thousands of rows, and is walked once for both sizes.

// resultSize is how many bytes a result takes: its data, and all of it.
type resultSize struct{ data, all int }

// sizeOfResult gives the error of a result that cannot be written.
func sizeOfResult(result interpreter.ToolResult) (resultSize, error) {
	data, err := result.Data.EncodedSize()
	if err != nil {
		data, err = interpreter.CountEncoded(result.Data) // whose error says where
	}
	if err != nil || result.Data.IsZero() {
		return resultSize{data: data, all: interpreter.EncodedSize(result)}, err
	}
	result.Data = expression.Value{}
	around := interpreter.EncodedSize(result) + len(`"data":`)
	if !result.Meta.IsZero() {
		around += len(`,`)
	}
	return resultSize{data: data, all: around + data}, nil
}
