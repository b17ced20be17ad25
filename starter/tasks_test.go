package main

import (
	"os"
	"path/filepath"
	"strings"
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
		script, files, _ := strings.Cut(string(text), "\n-- ")
		var commands []string
		for line := range strings.Lines(script) {
			if before, command, found := strings.Cut(line, "starter "); found && !strings.HasPrefix(line, "#") {
				require.Regexp(t, `^(exec|status \d) $`, before, "%s: %s", file, line)
				name, _, _ := strings.Cut(command, " ")
				commands = append(commands, name)
			}
		}
		const most = 6
		require.LessOrEqual(t, len(commands), most, file)
		require.Equal(t, "new", commands[0], file)
		require.Equal(t, "test", commands[len(commands)-1], file)
		for _, command := range commands {
			require.Contains(t, []string{"new", "try", "test"}, command, file)
		}
		require.Contains(t, script, "test passed", file)
		require.NotContains(t, files, "kind: Playbook", "%s begins with more than nothing", file)
	}
	scripts(t, "tasks", "API="+testenv.DemoAPI(t).URL())
}
