package steer

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/converter"

	"reprise/interpreter"
	"reprise/workflows/protocol"
)

// TestAddTrigger: the memo of a schedule's action has the last triggers, each for its time, and keeps what else
// is there.
func TestAddTrigger(t *testing.T) {
	t.Parallel()
	action := &workflowpb.NewWorkflowExecutionInfo{Memo: &commonpb.Memo{Fields: map[string]*commonpb.Payload{"vouch": {Data: []byte("x")}}}}
	said := func(i int) interpreter.Said { return interpreter.Said{By: "ana", Reason: fmt.Sprint(i)} }
	key := func(i int) string { return fmt.Sprintf("2026-01-01T00:00:%02dZ", i) }
	for i := range mostTriggers + 5 {
		recorded, err := addTrigger(action, key(i), said(i))
		require.NoError(t, err)
		require.False(t, recorded)
		recorded, err = addTrigger(action, key(i), said(i))
		require.NoError(t, err)
		require.True(t, recorded, "it is there already")
	}
	var triggers map[string]interpreter.Said
	require.NoError(t, converter.GetDefaultDataConverter().FromPayload(action.Memo.Fields[protocol.TriggersMemo], &triggers))
	require.Len(t, triggers, mostTriggers)
	require.Equal(t, said(5), triggers[key(5)])
	require.Equal(t, []byte("x"), action.Memo.Fields["vouch"].Data)
	recorded, err := addTrigger(&workflowpb.NewWorkflowExecutionInfo{}, key(1), said(1))
	require.NoError(t, err)
	require.False(t, recorded)
}
