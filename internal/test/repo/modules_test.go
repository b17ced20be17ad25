package repo_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// versions gives the modules that a program is made of. Those that stand in for
// others have no version.
func versions(t *testing.T, dir, program string) map[string]string {
	t.Helper()
	cmd := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{if not .Replace}}{{.Path}} {{.Version}}{{end}}{{end}}", program)
	cmd.Dir = filepath.Join(root, dir)
	output, err := cmd.Output()
	require.NoError(t, err)
	found := map[string]string{}
	for line := range strings.Lines(string(output)) {
		if path, version, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			found[path] = version
		}
	}
	require.Greater(t, len(found), 30)
	return found
}

// TestModulesShareVersions: what starter and devserver both need is compiled
// once only if both ask for the same version of it, and that is most of what a
// first build compiles.
func TestModulesShareVersions(t *testing.T) {
	t.Parallel()
	ours := versions(t, ".", "./starter")
	shared := 0
	for path, version := range versions(t, "devserver", ".") {
		if mine, both := ours[path]; both {
			require.Equal(t, mine, version, "%s: go get it in both modules", path)
			shared++
		}
	}
	require.Greater(t, shared, 30)
}
