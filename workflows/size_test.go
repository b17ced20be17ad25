package workflows_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"

	"reprise/interpreter"
	"reprise/workflows/protocol"
)

// TestCountedIsConverted: what is counted is what Temporal's data converter
// writes, of what every workflow of the stored histories was given and gave.
func TestCountedIsConverted(t *testing.T) {
	t.Parallel()
	compared := map[string]int{}
	for _, name := range slices.Sorted(maps.Keys(stored)) {
		for _, history := range load(t, name) {
			for _, event := range history.History.Events {
				for _, payloads := range []*commonpb.Payloads{
					event.GetWorkflowExecutionStartedEventAttributes().GetInput(),
					event.GetWorkflowExecutionCompletedEventAttributes().GetResult(),
				} {
					if payloads != nil {
						compare(t, history.Type, event.EventId == 1, payloads)
						compared[history.Type]++
					}
				}
			}
		}
	}
	for _, name := range []string{
		protocol.PlaybookWorkflowName, protocol.LoopWorkflowName, protocol.CallsWorkflowName,
	} {
		require.NotZero(t, compared[name], name)
	}
}

// compare reads what a workflow of the type was given, or gave, and writes it again.
func compare(t *testing.T, workflow string, given bool, payloads *commonpb.Payloads) {
	t.Helper()
	into, known := map[string][2]any{
		protocol.PlaybookWorkflowName: {&protocol.Result{}, &protocol.Input{}},
		protocol.LoopWorkflowName:     {&interpreter.LoopResult{}, &protocol.LoopInput{}},
		protocol.CallsWorkflowName:    {&protocol.CallsOutput{}, &protocol.CallsInput{}},
	}[workflow]
	if !known {
		return
	}
	value := into[0]
	if given {
		value = into[1]
	}
	require.NoError(t, converter.GetDefaultDataConverter().FromPayloads(payloads, value))
	written, err := converter.GetDefaultDataConverter().ToPayloads(value)
	require.NoError(t, err)
	require.Equal(t, len(written.Payloads[0].Data), interpreter.EncodedSize(value), "%s", written.Payloads[0].Data)
}
