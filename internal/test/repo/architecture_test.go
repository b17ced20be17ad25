package repo_test

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// named is a Go file that a document names.
var named = regexp.MustCompile("`((?:[a-z0-9_]+/)*[a-z0-9_]+\\.go)`")

// TestFilesInTheArchitectureExist: whoever reads of a file finds it, and every folder
// of code below internal/ is named.
func TestFilesInTheArchitectureExist(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "git", "-C", root, "ls-files", "--cached", "--others", "--exclude-standard", "*.go").Output()
	require.NoError(t, err)
	document, files := read(t, filepath.Join("docs", "architecture.md")), "/"+strings.ReplaceAll(string(out), "\n", "\n/")
	all := named.FindAllStringSubmatch(document, -1)
	require.Greater(t, len(all), 30)
	for _, match := range all {
		require.Contains(t, files, "/"+match[1]+"\n")
	}
	for name := range strings.SplitSeq(files, "\n/") {
		if folder := strings.Split(strings.TrimPrefix(name, "/"), "/"); folder[0] == "internal" {
			require.Regexp(t, "\\b"+folder[1]+"\\b", document, "the folder internal/%s", folder[1])
		}
	}
}
