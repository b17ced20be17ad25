package interpreter_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/interpreter"
)

// TestWarningsThatRepeatAnError: a loop that has failed says once what has, whatever its record has room for; one whose
// sink or failure budget has failed, and one that has not failed, warns of it.
func TestWarningsThatRepeatAnError(t *testing.T) {
	t.Parallel()
	const another, warning = "another", "step fetch: 2 of 4 iterations failed (50%)"
	all := []string{another, warning, warning}
	for name, c := range map[string]struct {
		failure *interpreter.ErrorObject
		want    []string
	}{
		"of the loop":   {&interpreter.ErrorObject{Kind: interpreter.KindLoop}, []string{another, warning}},
		"of its budget": {&interpreter.ErrorObject{Kind: interpreter.KindLoop, Type: "FailureBudgetExceeded"}, all},
		"of its sink":   {&interpreter.ErrorObject{Kind: interpreter.KindSink}, all},
		"none":          {nil, all},
	} {
		record := stepWith("fetch", 1, interpreter.Failed)
		record.Error, record.Loop = c.failure, &interpreter.LoopRecord{Warning: 2}
		result := interpreter.RunResult{Steps: []interpreter.StepRecord{record}, Warnings: all}
		require.Equal(t, c.want, result.FurtherWarnings(), name)
	}
}
