package private_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/base/private"
)

// TestNames: ours have endings that no playbook's file has, on file systems of any kind.
func TestNames(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]bool{
		".reprise": true, ".Reprise/x": true, "a/.REPRISE/b": true, "rows.csv.reprise": true, "rows.csv.reprise.new": true, "state/t.db.key": true,
		"state/t.sqlite.secret-key": true, "t.callback-port": true, "rows.csv": false, "reprise/a": false, "keys/a.json": false, "a.key": false, "": false,
	} {
		require.Equal(t, want, private.InPath(path), path)
	}
}

// TestFilesByAnyName: a file is told by what it is, not by its name.
func TestFilesByAnyName(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	put := func(name string) string {
		path := filepath.Join(folder, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, nil, 0o600))
		return path
	}
	dev, connections, other := put(".reprise/dev.json"), put("etc/c.yaml"), put("rows.csv")
	value := put("payloads/ab/cd")
	for link, target := range map[string]string{"soft": dev, "hard.yaml": connections} {
		if link == "soft" {
			require.NoError(t, os.Symlink(target, filepath.Join(folder, link)))
		} else {
			require.NoError(t, os.Link(target, filepath.Join(folder, link)))
		}
	}
	require.NoError(t, os.Link(dev, filepath.Join(folder, "hard.json")))
	require.NoError(t, os.Link(value, filepath.Join(folder, "hard.value")))
	files := private.Places{Directory: folder, Paths: []string{connections, filepath.Join(folder, "payloads"), filepath.Join(folder, "new.yaml")}}
	for name, want := range map[string]bool{
		"hard.json": true, "hard.yaml": true, "hard.value": true, ".reprise": true, "payloads": true, "etc/c.yaml": true, "rows.csv": false, "etc": false,
	} {
		info, err := os.Stat(filepath.Join(folder, name))
		require.NoError(t, err)
		require.Equal(t, want, files.Has(info), name)
	}
	info, err := os.Stat(filepath.Join(folder, "soft"))
	require.NoError(t, err)
	require.True(t, files.ContainsFile(info))
	require.False(t, files.IsNamed(info))
	put("t.db.key")
	require.True(t, private.IsServerDatabase(filepath.Join(folder, "t.db")))
	require.True(t, private.IsServerDatabase(filepath.Join(folder, "t.db-wal")))
	require.False(t, private.IsServerDatabase(other))
	require.True(t, files.NamesPath(filepath.Join(folder, "etc", "..", "new.yaml")))
	require.False(t, files.NamesPath(other))
}
