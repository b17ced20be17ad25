package main

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAFullDisk: however much of the schema has room, a server on a full disk names the
// disk and the file; once there is room it starts on the same file.
func TestAFullDisk(t *testing.T) {
	t.Parallel()
	for _, size := range []string{"4k", "32k", "128k", "600k"} {
		folder := t.TempDir()
		if err := syscall.Mount("tmpfs", folder, "tmpfs", 0, "size="+size); err != nil {
			t.Skipf("only who may mount file systems has one that is full: %v", err)
		}
		t.Cleanup(func() { require.NoError(t, syscall.Unmount(folder, syscall.MNT_DETACH)) })
		file := filepath.Join(folder, "state.db")
		for range 2 {
			status, stdout, stderr := runOnce(t, "--port", "0", "--headless", "--db-filename", file)
			require.Equal(t, exitError, status)
			require.Empty(t, stdout)
			require.Contains(t, stderr, "prepare database file \""+file+"\": the disk is full: make room on it", size)
		}
		require.NoError(t, syscall.Mount("tmpfs", folder, "tmpfs", syscall.MS_REMOUNT, "size=64m"))
		startProcess(t, "--port", "0", "--headless", "--db-filename", file)
	}
}
