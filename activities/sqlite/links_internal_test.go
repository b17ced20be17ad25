package sqlite

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/activities/tool"
	"reprise/interpreter"
)

// TestLinksThatTakeThePlaceOfFolders: a file is opened by the name that was checked. Where a part of that has become a link meanwhile, SQLite
// would follow it.
func TestLinksThatTakeThePlaceOfFolders(t *testing.T) {
	t.Parallel()

	base, outside := t.TempDir(), t.TempDir()
	sqlite := New(tool.Resources{Directory: base})
	t.Cleanup(func() { require.NoError(t, sqlite.Close()) })
	find := func(path string) string {
		at, err := sqlite.filePath(t.Context(), interpreter.ToolInput{Step: "a", Auth: "sqlite:" + path})
		require.NoError(t, err)
		return at
	}
	open := func(at string, readOnly bool) error {
		file, err := openFileAt(t.Context(), at, readOnly)
		if file != nil {
			require.NoError(t, file.closeFile())
		}
		return err
	}
	at := find("folder/rows.db")
	require.NoError(t, open(at, false))
	require.NoError(t, os.Symlink("folder", filepath.Join(base, "other")))
	require.NoError(t, os.Symlink("later.db", filepath.Join(base, "folder", "soon.db")))
	require.Equal(t, at, find("other/rows.db"), "a file has one name")
	require.Equal(t, find("folder/later.db"), find("other/soon.db"), "one that is not there yet, too")
	require.NoError(t, open(find("other/soon.db"), false))

	require.NoError(t, os.Rename(filepath.Join(base, "folder"), filepath.Join(outside, "folder")))
	require.NoError(t, os.Symlink(filepath.Join(outside, "folder"), filepath.Join(base, "folder")))
	for _, readOnly := range []bool{false, true} {
		require.ErrorContains(t, open(at, readOnly), "was removed or replaced")
	}
	_, err := sqlite.filePath(t.Context(), interpreter.ToolInput{Step: "a", Auth: "sqlite:folder/rows.db"})
	require.ErrorContains(t, err, "leads out of the worker's directory through a symbolic link")
}
