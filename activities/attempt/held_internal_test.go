package attempt

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/converter"

	"reprise/internal/base/codec"
)

// TestUnbegunDelivery: what the codec reports of a delivery that could not be decrypted says that it has not acted.
func TestUnbegunDelivery(t *testing.T) {
	t.Parallel()
	var read heartbeatDetails
	require.NoError(t, converter.GetDefaultDataConverter().FromPayload(codec.UnbegunDelivery(), &read))
	require.Equal(t, DeliveryState{Delivery: 1}, read.State)
	require.Zero(t, read.State.nextDelivery(2, false).Acted)
	require.Equal(t, 1, DeliveryState{}.nextDelivery(2, false).Acted, "which it could not know otherwise")
}
