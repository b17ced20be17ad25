package interpreter_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/interpreter"
	"reprise/interpreter/expression"
)

// TestCountedAtItsEdges: the values that are written in a way of their own.
func TestCountedAtItsEdges(t *testing.T) {
	t.Parallel()
	var none *interpreter.ErrorObject
	far := time.Date(12_000, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, v := range map[string]any{
		"nothing": nil, "nil pointer": none, "nil list": []interpreter.LoopError(nil), "empty list": []interpreter.LoopError{},
		"nil map": map[string]int(nil), "free": expression.Of([]any{1}), "nothing free": expression.Value{}, "text": "<\xff>",
		"large": expression.Of(strings.Repeat("é<", 100_000)), "fields left out": interpreter.CallState{},
		"records": []struct {
			A any `json:"a"`
		}{{nil}, {none}, {expression.Of(nil)}, {[]any{}}},
	} {
		encoded, err := json.Marshal(v)
		require.NoError(t, err, name)
		require.Equal(t, len(encoded), interpreter.EncodedSize(v), name)
	}
	for name, v := range map[string]any{
		"a year of five digits": interpreter.CallMeta{StartedAt: far}, "no number": expression.Of(math.Inf(1)), "a function": func() {},
	} {
		_, err := interpreter.CountEncoded(v)
		require.Error(t, err, name)
	}
}
