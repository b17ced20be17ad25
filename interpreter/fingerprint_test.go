package interpreter_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/interpreter"
)

// TestFingerprintsOfOlderHistories: they were a list of texts.
func TestFingerprintsOfOlderHistories(t *testing.T) {
	t.Parallel()
	var state interpreter.CallState
	require.NoError(t, json.Unmarshal([]byte(`{"seen": ["0011223344556677", "8899aabbccddeeff"]}`), &state))
	want := interpreter.Fingerprints{0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff}
	require.Equal(t, want, state.Seen)

	text, err := json.Marshal(state)
	require.NoError(t, err)
	require.Contains(t, string(text), `"seen":"ABEiM0RVZneImaq7zN3u/w=="`)
	var again interpreter.CallState
	require.NoError(t, json.Unmarshal(text, &again))
	require.Equal(t, want, again.Seen)

	for _, wrong := range []string{`{"seen": 1}`, `{"seen": ["xyz"]}`, `{"seen": "?"}`} {
		require.ErrorContains(t, json.Unmarshal([]byte(wrong), &state), "decode fingerprints")
	}
}
