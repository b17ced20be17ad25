package host_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/base/egress"
	"reprise/internal/program/host"
)

// TestEgressFile: mistakes have their place, and what a file does not say is as usual.
func TestEgressFile(t *testing.T) {
	t.Parallel()
	for text, says := range map[string]string{
		"private: deny\nalow: [10.0.0.0/8]\n":            `:2:1: unknown key "alow" (did you mean allow?)`,
		"allow:\n  - 10.0.0.0/8\n  - https://api.test\n": ":3:5: allow has an entry that is not a range, an address or a host",
		"private: maybe\n":                               ":1:1: private must be allow or deny",
		"- 10.0.0.0/8\n":                                 "must be a map of private, public, allow and deny",
		"allow: [":                                       "read the egress file: ",
		"":                                               "the file is empty; it has private, public, allow and deny",
		"# nothing\n":                                    "the file is empty",
	} {
		_, err := host.ReadEgress(write(t, text), egress.RemotePolicy())
		require.ErrorContains(t, err, "read the egress file", "%q", text)
		require.ErrorContains(t, err, says, text)
	}
	_, err := host.ReadEgress(filepath.Join(t.TempDir(), "none.yaml"), egress.RemotePolicy())
	require.ErrorIs(t, err, os.ErrNotExist)
	for _, text := range []string{"allow: [10.2.0.0/16]", "allow:\n", "{}"} {
		local, err := host.ReadEgress(write(t, text), egress.LocalPolicy())
		require.NoError(t, err)
		require.NoError(t, local.CheckProxied("127.0.0.1:80", egress.NoConnection))
		remote, err := host.ReadEgress(write(t, text), egress.RemotePolicy())
		require.NoError(t, err)
		require.Error(t, remote.CheckProxied("127.0.0.1:80", egress.NoConnection))
	}
}
