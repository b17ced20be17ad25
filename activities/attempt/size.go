package attempt

import (
	"reprise/interpreter"
	"reprise/interpreter/expression"
)

// sizeOfResult is how many bytes of JSON a result takes, or why it cannot be written as JSON. Its data, which can be
// thousands of rows, is walked once.
func sizeOfResult(result interpreter.ToolResult) (int, error) {
	data, err := result.Data.EncodedSize()
	if err != nil {
		data, err = interpreter.CountEncoded(result.Data) // whose error says where
	}
	if err != nil || result.Data.IsZero() {
		return interpreter.EncodedSize(result), err
	}
	result.Data = expression.Value{}
	around := interpreter.EncodedSize(result) + len(`"data":`)
	if !result.Meta.IsZero() {
		around += len(`,`)
	}
	return around + data, nil
}
