package regular_test

import (
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/base/regular"
)

// TestOnlyFilesAreOpened: what could keep a reader waiting is refused, be it named or behind a link.
func TestOnlyFilesAreOpened(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	at := func(name string) string { return filepath.Join(folder, name) }
	require.NoError(t, os.WriteFile(at("file"), []byte("text"), 0o600))
	require.NoError(t, syscall.Mkfifo(at("pipe"), 0o600))
	require.NoError(t, os.Symlink("pipe", at("link")))
	listener, err := net.Listen("unix", at("socket"))
	require.NoError(t, err)
	defer func() { _ = listener.Close() }()
	root, err := os.OpenRoot(folder)
	require.NoError(t, err)
	defer func() { _ = root.Close() }()

	data, err := regular.Read(at("file"))
	require.NoError(t, err)
	require.Equal(t, "text", string(data))
	for _, name := range []string{"pipe", "link", "socket"} {
		_, err := regular.Read(at(name))
		require.Error(t, err, name)
		_, err = regular.OpenIn(root, name)
		require.Error(t, err, name)
	}
	_, err = regular.Read("/dev/zero")
	require.ErrorContains(t, err, "not a regular file")
	_, err = regular.Read(at("none"))
	require.ErrorIs(t, err, os.ErrNotExist)
}
