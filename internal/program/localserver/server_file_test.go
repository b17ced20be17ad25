package localserver_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/program/localserver"
)

// TestTheServerOfThisFolder changes the working directory, so it does not
// run in parallel.
func TestTheServerOfThisFolder(t *testing.T) {
	t.Chdir(t.TempDir())
	require.Empty(t, localserver.ServerFileOf("127.0.0.1:7233"))
	require.NoError(t, os.Mkdir(".reprise", 0o700))
	state := `{"address": "127.0.0.1:7233", "payload_store": "file:///somewhere", "key": "k"}`
	require.NoError(t, os.WriteFile(".reprise/dev.json", []byte(state), 0o600))
	require.Equal(t, localserver.ServerFile{Address: "127.0.0.1:7233", PayloadStore: "file:///somewhere", Key: "k"},
		localserver.ServerFileOf("127.0.0.1:7233"))
	for address, same := range map[string]bool{
		"localhost:7233": true, "[::1]:7233": true, "localhost:7234": false, "temporal.example.com:7233": false, "localhost": false, "": false,
	} {
		require.Equal(t, same, localserver.ServerFileOf(address) != localserver.ServerFile{}, address)
	}
	require.NoError(t, os.Chmod(".reprise/dev.json", 0o640)) //nolint:gosec // what others may read is refused
	require.Empty(t, localserver.ServerFileOf("127.0.0.1:7233"))
	_, err := localserver.ReadOwn(".reprise/dev.json")
	require.ErrorIs(t, err, localserver.ErrForeign)
	require.NoError(t, os.Rename(".reprise/dev.json", ".reprise/other.json"))
	require.NoError(t, os.Symlink("other.json", ".reprise/dev.json"))
	_, err = localserver.ReadOwn(".reprise/dev.json")
	require.ErrorIs(t, err, localserver.ErrForeign)
	require.NoError(t, os.Remove(".reprise/dev.json"))
	if os.Geteuid() == 0 {
		require.NoError(t, os.WriteFile(".reprise/dev.json", []byte(state), 0o600))
		require.NoError(t, os.Chown(".reprise/dev.json", 65534, -1))
		_, err = localserver.ReadOwn(".reprise/dev.json")
		require.ErrorIs(t, err, localserver.ErrForeign)
		require.NoError(t, os.Remove(".reprise/dev.json"))
	}
	require.NoError(t, os.WriteFile(".reprise/dev.json", []byte("{"), 0o600))
	require.Empty(t, localserver.ServerFileOf("127.0.0.1:7233"))
}
