package bookshelf_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/base/bookshelf"
)

func TestRead(t *testing.T) {
	t.Parallel()
	folder, outside := t.TempDir(), t.TempDir()
	write := func(path, text string) { require.NoError(t, os.WriteFile(path, []byte(text), 0o600)) }
	write(filepath.Join(folder, "nightly.yaml"), "text")
	write(filepath.Join(folder, ".hidden.yaml"), "hidden")
	write(filepath.Join(folder, "plain.txt"), "no playbook")
	write(filepath.Join(outside, "other.yaml"), "outside")
	require.NoError(t, os.Mkdir(filepath.Join(folder, "dir.yaml"), 0o700))
	require.NoError(t, os.Symlink(filepath.Join(outside, "other.yaml"), filepath.Join(folder, "link.yaml")))
	require.NoError(t, os.Symlink("../"+filepath.Base(outside)+"/other.yaml", filepath.Join(folder, "relative.yaml")))
	require.NoError(t, os.Symlink("nightly.yaml", filepath.Join(folder, "inside.yaml")))
	require.NoError(t, syscall.Mkfifo(filepath.Join(folder, "pipe.yaml"), 0o600))
	write(filepath.Join(folder, "large.yaml"), strings.Repeat("#", 1<<20+1))

	for _, name := range []string{"nightly", "inside"} {
		text, err := bookshelf.Read(folder, name)
		require.NoError(t, err, name)
		require.Equal(t, "text", string(text), name)
	}
	for _, name := range []string{
		"", ".", "..", ".hidden", "absent", "nightly.yaml", "plain", "dir", "link", "relative", "pipe",
		"../" + filepath.Base(outside) + "/other", filepath.Join(outside, "other"), "a/b", `a\b`, "nightly\x00", "nightly\n", "nïghtly",
		strings.Repeat("a", 101),
	} {
		_, err := bookshelf.Read(folder, name)
		require.ErrorIs(t, err, bookshelf.ErrUnknown, "%q", name)
	}
	write(filepath.Join(folder, "nightly_test.yaml"), "its tests")
	write(filepath.Join(folder, "nightly.yaml"), "apiVersion: reprise/v1\n")
	write(filepath.Join(folder, "unfinished.yaml"), "workflow: [\n")
	write(filepath.Join(folder, "connections.yaml"), "pg_main: postgres://db.test/clinic\n")
	require.Equal(t, []string{"inside", "large", "nightly", "unfinished"}, bookshelf.PlaybookNames(folder))
	for _, name := range []string{"nightly", "large", "unfinished", "inside", "connections", "absent", "link", "pipe", "a/b", ".hidden", "nightly.yaml", ""} {
		require.Equal(t, slices.Contains(bookshelf.PlaybookNames(folder), name), bookshelf.HasPlaybook(folder, name), name)
	}
	_, err := bookshelf.Read(folder, "large")
	require.ErrorContains(t, err, "large.yaml is 1048577 bytes long; a playbook has at most 1048576")
	_, err = bookshelf.Read(filepath.Join(folder, "gone"), "nightly")
	require.ErrorContains(t, err, "open the folder of playbooks")
	require.NotErrorIs(t, err, bookshelf.ErrUnknown)
}
