package session

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/base/seal"
	"reprise/internal/test/testenv"
)

// TestSecretKeysOfALocalServer sets an environment variable, so it does not run in parallel.
func TestSecretKeysOfALocalServer(t *testing.T) {
	t.Setenv(seal.Variable, "")
	one, err := secretKeys("")
	require.NoError(t, err)
	two, err := secretKeys("")
	require.NoError(t, err)
	require.NotEqual(t, one.IDs(), two.IDs(), "a server in memory has a key of its own")

	db := filepath.Join(t.TempDir(), "state", "dev.db")
	ids := make([][]string, 8)
	var all sync.WaitGroup
	for i := range ids {
		all.Go(func() {
			keys, err := secretKeys(db)
			if err == nil {
				ids[i] = keys.IDs()
			}
		})
	}
	testenv.Wait(t, all.Wait, "the keys")
	for _, found := range ids {
		require.Len(t, found, 1)
		require.Equal(t, ids[0], found, "who begins at once has one key")
	}
	info, err := os.Stat(db + ".secret-key")
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	left, err := os.ReadDir(filepath.Dir(db))
	require.NoError(t, err)
	require.Len(t, left, 1, "nothing else is left")

	require.NoError(t, os.WriteFile(db+".secret-key", []byte("short\n"), 0o600))
	_, err = secretKeys(db)
	require.ErrorContains(t, err, ".secret-key: REPRISE_SECRET_KEY: key 1 is too short")

	given := seal.NewKey()
	t.Setenv(seal.Variable, given)
	keys, err := secretKeys(db)
	require.NoError(t, err)
	wanted, err := seal.Parse(given)
	require.NoError(t, err)
	require.Equal(t, wanted.IDs(), keys.IDs(), "the environment comes first")
}
