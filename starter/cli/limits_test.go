package cli_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/starter/cli"
	"reprise/workflows/protocol"
)

// TestBoundsOfInput passes mostRead and protocol.MaxSaid.
func TestBoundsOfInput(t *testing.T) {
	t.Parallel()
	const mostRead = 64 << 20
	for size, says := range map[int]string{mostRead: "", mostRead + 1: "it is larger than 64 MiB"} {
		data, err := cli.ReadBounded(bytes.NewReader(make([]byte, size)))
		if says == "" {
			require.NoError(t, err)
			require.Len(t, data, size)
		} else {
			require.EqualError(t, err, says)
		}
	}
	require.NoError(t, cli.CheckNote("note", strings.Repeat("x", protocol.MaxSaid)))
	require.ErrorContains(t, cli.CheckNote("note", strings.Repeat("x", protocol.MaxSaid+1)), "--note has 501 bytes; at most 500 are kept")
}
