package main

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/test/testenv"
)

// TestTasks: from nothing to a tested playbook, each in at most six commands.
func TestTasks(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("testdata", "script", "tasks", "*.txtar"))
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(files), 10)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		commands := regexp.MustCompile(`(?m)^(?:exec|status \d) starter (\w+)`).FindAllStringSubmatch(string(text), -1)
		const most = 6
		require.LessOrEqual(t, len(commands), most, file)
		for _, command := range commands {
			require.Contains(t, []string{"new", "try", "test"}, command[1], file)
		}
		require.Contains(t, string(text), "test passed", file)
	}
	scripts(t, "tasks", "API="+testenv.DemoAPI(t).URL())
}
