package payload_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	historypb "go.temporal.io/api/history/v1"
	sdkpb "go.temporal.io/api/sdk/v1"
	"go.temporal.io/sdk/converter"

	"reprise/internal/base/payload"
)

// reference is what the SDK puts into a history in place of a stored value.
func reference(t *testing.T, driver string, claim converter.StorageDriverClaim) *commonpb.Payload {
	t.Helper()
	encoded, err := converter.NewProtoJSONPayloadConverter().ToPayload(
		&sdkpb.ExternalStorageReference{DriverName: driver, ClaimData: claim.ClaimData})
	require.NoError(t, err)
	return encoded
}

// TestResolve: stored values come back into an event, and the others stay as
// they are.
func TestResolve(t *testing.T) {
	t.Parallel()
	shelf := newShelf(t)
	address, err := payload.DirectoryAddress(shelf.dir)
	require.NoError(t, err)
	store, err := payload.Open(t.Context(), address)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })

	large, small := value(`"large"`), value(`"small"`)
	stored := reference(t, shelf.driver.Name(), shelf.store(large)[0])
	event := func(payloads ...*commonpb.Payload) *historypb.HistoryEvent {
		return &historypb.HistoryEvent{Attributes: &historypb.HistoryEvent_ChildWorkflowExecutionCompletedEventAttributes{
			ChildWorkflowExecutionCompletedEventAttributes: &historypb.ChildWorkflowExecutionCompletedEventAttributes{
				Result: &commonpb.Payloads{Payloads: payloads},
			},
		}}
	}
	completed := event(small, stored)
	require.NoError(t, store.ResolveReferences(t.Context(), completed))
	result := completed.GetChildWorkflowExecutionCompletedEventAttributes().GetResult().GetPayloads()
	require.Len(t, result, 2)
	require.Equal(t, small.GetData(), result[0].GetData())
	require.Equal(t, large.GetData(), result[1].GetData())

	var none *payload.Store
	require.NoError(t, none.ResolveReferences(t.Context(), event(small)))
	require.ErrorContains(t, none.ResolveReferences(t.Context(), event(stored)), "is in the payload store")
	foreign := reference(t, "other", converter.StorageDriverClaim{})
	require.ErrorContains(t, store.ResolveReferences(t.Context(), event(foreign)), `the driver "other"`)
}
