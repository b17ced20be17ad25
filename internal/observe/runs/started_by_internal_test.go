package runs

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"

	"reprise/interpreter"
	"reprise/workflows/protocol"
)

// TestStartedBy: of the runs of a schedule that has been triggered only those were triggered that the time of a
// trigger started; the others have its memo as well.
func TestStartedBy(t *testing.T) {
	t.Parallel()
	pack := func(v any) *commonpb.Payload {
		payload, err := converter.GetDefaultDataConverter().ToPayload(v)
		require.NoError(t, err)
		return payload
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	said := interpreter.Said{By: "ana", Reason: "again"}
	memo := &commonpb.Memo{Fields: map[string]*commonpb.Payload{
		protocol.TriggersMemo: pack(map[string]interpreter.Said{protocol.TriggerKey(at): said}),
	}}
	fields := func(at time.Time) map[string]*commonpb.Payload {
		return map[string]*commonpb.Payload{protocol.ScheduledAttribute: pack(at)}
	}
	require.Equal(t, said, startedBy(memo, fields(at)))
	require.Equal(t, said, startedBy(memo, fields(at.In(time.FixedZone("", 3600)))))
	require.Zero(t, startedBy(memo, fields(at.Add(time.Second))))
	require.Zero(t, startedBy(memo, nil))
	require.Zero(t, startedBy(nil, fields(at)))
	memo.Fields[protocol.StartedByMemo] = pack("bo")
	require.Equal(t, "bo", startedBy(memo, nil).By)
}
