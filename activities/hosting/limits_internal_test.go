package hosting

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/interpreter/expression"
)

// TestHeartbeatsAreBounded passes maxProgressBytes and maxPagesProgress: what does not fit is left out, and a lost worker costs
// that again.
func TestHeartbeatsAreBounded(t *testing.T) {
	t.Parallel()
	for pages, most := range map[bool]int{false: maxProgressBytes, true: maxPagesProgress} {
		p := newProgress(t.Context(), call.DriveInput{Calls: make([]call.Snapshot, 3), Pages: pages})
		for i := range 3 {
			p.setDriven(i, call.Driven{Result: &interpreter.CallResult{Data: expression.Of(strings.Repeat("x", most*2/5))}})
		}
		encoded, err := json.Marshal(p.progressSnapshot())
		require.NoError(t, err)
		require.Greater(t, len(encoded), most*4/5)
		require.LessOrEqual(t, len(encoded), most+1000)
	}
}

// TestHeartbeatsOfManyCalls passes mostMade: the calls behind so many stretches have none in a heartbeat.
func TestHeartbeatsOfManyCalls(t *testing.T) {
	t.Parallel()
	p := newProgress(t.Context(), call.DriveInput{})
	for i := range mostMade + 5 {
		p.showAttempt(call.Doing{Call: i, Made: call.Stretches{{}}})
	}
	open := p.openAttempts()
	require.Len(t, open, mostMade+5)
	require.NotEmpty(t, open[mostMade-1].Made)
	require.Empty(t, open[mostMade].Made)
}
