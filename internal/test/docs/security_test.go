package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSecurityNamesItsTests: each line of the table of who can do what has tests, and they are there.
func TestSecurityNamesItsTests(t *testing.T) {
	t.Parallel()
	there := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && (strings.HasPrefix(entry.Name(), ".") && path != root || entry.Name() == "bin") {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		for _, found := range declared.FindAllStringSubmatch(string(text), -1) {
			there[found[1]] = true
		}
		return err
	}))
	_, table, found := strings.Cut(read(t, "docs/concepts/security.md"), "\n## Who can do what\n")
	require.True(t, found)
	lines := 0
	named := regexp.MustCompile("`(Test\\w+)`")
	for line := range strings.Lines(table) {
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|---") || strings.HasPrefix(line, "| who |") {
			continue
		}
		lines++
		tests := named.FindAllStringSubmatch(line, -1)
		require.NotEmpty(t, tests, "no test holds the line %s", line)
		for _, test := range tests {
			require.True(t, there[test[1]], "there is no %s, which the line names: %s", test[1], line)
		}
	}
	require.Greater(t, lines, 12)
}
