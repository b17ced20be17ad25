package build

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCommit: an image, which is built without the repository, knows its commit as well.
func TestCommit(t *testing.T) {
	commit = "4f2c"
	t.Cleanup(func() { commit = "" })
	require.Equal(t, "4f2c", Read().Commit)
	require.Contains(t, Read().Text(), "commit        4f2c\n")
}
