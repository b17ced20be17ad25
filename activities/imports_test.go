package activities_test

import (
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// forbidden says what activities must not import, and why.
var forbidden = map[string]string{
	"reprise/workflows": "tools are called by name; a tool that knew a workflow could not be replaced, " +
		"and a change of a tool could alter the commands of running workflows",
	"reprise/starter": "tools run in workers, which have no command line",
	"reprise/worker":  "a worker binds tools, not the other way round",
}

func TestActivitiesImportNothingAboveThem(t *testing.T) {
	t.Parallel()

	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "reprise/activities/...").Output()
	require.NoError(t, err)

	for line := range strings.Lines(string(out)) {
		reason, found := forbidden[strings.TrimSpace(line)]
		require.False(t, found, "activities import %s: %s", strings.TrimSpace(line), reason)
	}
}

// The SDK's internals hold the workflow side, so its package is looked for in
// the imports that stand in the files and not among all dependencies.
func TestActivitiesUseNoWorkflowAPI(t *testing.T) {
	t.Parallel()

	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	require.NotEmpty(t, files)

	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}

		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		require.NoError(t, err)

		for _, spec := range file.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			require.NoError(t, err)
			require.NotContains(t, path, "go.temporal.io/sdk/workflow",
				"%s: an activity has a context of its own; workflow code in it would run outside the replayed history", name)
			require.NotContains(t, path, "go.temporal.io/sdk/worker",
				"%s: who registers activities with a worker is the worker's own business", name)
		}
	}
}
