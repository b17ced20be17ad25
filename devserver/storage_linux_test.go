package main

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFullDisk: it is called by its name, and leaves nothing that would be taken for
// the tables of others.
func TestFullDisk(t *testing.T) {
	folder := t.TempDir()
	if err := syscall.Mount("tmpfs", folder, "tmpfs", 0, "size=128k"); err != nil {
		t.Skipf("no file system can be mounted: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(folder, syscall.MNT_DETACH)) })
	file := filepath.Join(folder, "state.db")
	for range 2 {
		_, err := openStorage(file)
		require.ErrorContains(t, err, "the disk is full")
		left, err := os.ReadDir(folder)
		require.NoError(t, err)
		require.Empty(t, left)
	}
	require.NoError(t, syscall.Mount("tmpfs", folder, "tmpfs", syscall.MS_REMOUNT, "size=64m"))
	_, err := openStorage(file)
	require.NoError(t, err)
}
