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

// TestID: only what identifies a build is its ID.
func TestID(t *testing.T) {
	t.Parallel()
	const commit = "711dd460deadbeef711dd460deadbeef711dd460"
	for want, info := range map[string]Info{
		"v0.1.0-711dd460dead":                  {Reprise: "v0.1.0", Commit: commit},
		"711dd460dead":                         {Reprise: "(devel)", Commit: commit},
		"v0.1.1-0.20261129205456-711dd460dead": {Reprise: "v0.1.1-0.20261129205456-711dd460dead", Commit: commit},
	} {
		require.Equal(t, want, info.ID())
	}
	for _, info := range []Info{{Reprise: "v0.1.0"}, {Reprise: "v0.1.0", Commit: commit, Modified: true}, {Reprise: "unknown", Commit: commit}} {
		require.Empty(t, info.ID())
	}
}
