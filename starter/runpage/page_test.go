package runpage

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestProblemsHaveNoSecrets: who may only look reads no password that stands in the file.
func TestProblemsHaveNoSecrets(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"literal": "apiVersion: reprise/v1\nkind: Playbook\nmetadata: {name: literal}\nworkload: {api_key: hunter2}\nworkflow:\n  - {step: a, tool: http, url: 'https://api.test', headers: {X-Api-Key: hunter2}}\n",
		"broken":  "apiVersion: reprise/v1\nkind: Playbook\nmetadata: {name: broken}\nworkload: {api_key: hunter2, x: ]}\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name+".yaml"), []byte(text), 0o600))
		read, err := readBook(dir, name, nil)
		require.NoError(t, err)
		require.NotEmpty(t, read.Found)
		for _, one := range read.Found {
			shown := shownProblem(one, read.Book)
			require.NotContains(t, shown, "hunter2")
			require.Contains(t, shown, name+".yaml:")
		}
	}
}
