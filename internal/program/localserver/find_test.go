package localserver_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	common "go.temporal.io/api/common/v1"

	"reprise/internal/program/localserver"
)

func execution(workflowID, runID string) *common.WorkflowExecution {
	return &common.WorkflowExecution{WorkflowId: workflowID, RunId: runID}
}

// program puts an executable file into a folder.
func program(t *testing.T, folder, name string) string {
	t.Helper()
	require.NoError(t, os.MkdirAll(folder, 0o750))
	path := filepath.Join(folder, name)
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"), 0o700))
	return path
}

// TestFindOrder changes the environment and the working directory, so it does
// not run in parallel.
func TestFindOrder(t *testing.T) {
	root := t.TempDir()
	t.Chdir(root)
	t.Setenv("PATH", filepath.Join(root, "path"))
	t.Setenv(localserver.BinaryVariable, "")

	_, err := localserver.Find()
	require.ErrorIs(t, err, localserver.ErrNotFound)
	require.ErrorContains(t, err, "--address")

	built := program(t, filepath.Join(root, "bin"), "devserver")
	_, err = localserver.Find()
	require.ErrorIs(t, err, localserver.ErrNotFound, "not a checkout of this module")

	require.NoError(t, os.WriteFile("go.mod", []byte("module reprise\n"), 0o600))
	found, err := localserver.Find()
	require.NoError(t, err)
	require.Equal(t, built, found)

	official := program(t, filepath.Join(root, "path"), "temporal")
	found, err = localserver.Find()
	require.NoError(t, err)
	require.Equal(t, official, found)

	chosen := program(t, root, "mine")
	t.Setenv(localserver.BinaryVariable, chosen)
	found, err = localserver.Find()
	require.NoError(t, err)
	require.Equal(t, chosen, found)

	t.Setenv(localserver.BinaryVariable, filepath.Join(root, "missing"))
	_, err = localserver.Find()
	require.ErrorIs(t, err, localserver.ErrNotFound)
	require.ErrorContains(t, err, localserver.BinaryVariable)
}
