package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestALogFileThatIsMovedAwayBeginsAgain, as tools do that rotate logs.
func TestALogFileThatIsMovedAwayBeginsAgain(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log")
	require.NoError(t, os.WriteFile(path, []byte("before\n"), 0o600))
	file, err := openLogFile(path)
	require.NoError(t, err)
	defer file.close()
	write := func(text string) {
		file.checked = time.Time{} // long ago
		_, err := file.Write([]byte(text))
		require.NoError(t, err)
	}
	write("one\n")
	require.NoError(t, os.Rename(path, path+".1"))
	write("two\n")
	require.NoError(t, os.Remove(path))
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	write("three\n")
	for name, want := range map[string]string{path + ".1": "before\none\n", path: "three\n"} {
		got, err := os.ReadFile(name)
		require.NoError(t, err)
		require.Equal(t, want, string(got))
	}
}
