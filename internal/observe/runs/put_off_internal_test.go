package runs

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/converter"

	"reprise/interpreter"
)

// TestLargeResultsAreNotDecoded passes maxPutOff: only a small result can be that of an attempt that was put off.
func TestLargeResultsAreNotDecoded(t *testing.T) {
	t.Parallel()
	for padding, want := range map[int]bool{0: true, maxPutOff / 2: true, maxPutOff: false} {
		result, err := converter.GetDefaultDataConverter().ToPayloads(map[string]any{"put_off": interpreter.PutOff{}, "x": strings.Repeat("x", padding)})
		require.NoError(t, err)
		require.Equal(t, want, wasPutOff(result), padding)
	}
}
