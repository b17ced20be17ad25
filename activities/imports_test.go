package activities_test

import (
	"encoding/json"
	"errors"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/activities"
	"reprise/interpreter/playbook"
)

// forbidden says what activities must not import, and why.
var forbidden = map[string]string{
	"reprise/workflows": "tools are called by name; a tool that knew a workflow could not be replaced, " +
		"and a change of a tool could alter the commands of running workflows",
	"reprise/starter": "tools run in workers, which have no command line",
	"reprise/worker":  "a worker binds tools, not the other way round",
}

// root is the package that has the catalogue, and what its packages are called after.
const root = "reprise/activities"

// shared are the packages that tools build on, with those of them that each may
// import. Every other folder is a tool.
var shared = map[string][]string{
	"tool": {}, "memory": {"tool"}, "keeper": {"tool"}, "sqltool": {"memory", "tool"}, "format": {"memory", "tool"},
	"attempt": {"keeper", "memory", "tool"}, "hosting": {"attempt", "keeper", "tool"},
}

// importing are the packages of this folder with what they import.
func importing(t *testing.T) map[string][]string {
	t.Helper()

	out, err := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Imports", root+"/...").Output()
	require.NoError(t, err)

	all := map[string][]string{}
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var found struct {
			ImportPath string
			Imports    []string
		}

		err := decoder.Decode(&found)
		if errors.Is(err, io.EOF) {
			return all
		}

		require.NoError(t, err)
		all[found.ImportPath] = found.Imports
	}
}

// toolFolders are the folders that have a tool.
func toolFolders(t *testing.T) []string {
	t.Helper()

	entries, err := os.ReadDir(".")
	require.NoError(t, err)

	var names []string
	for _, entry := range entries {
		if _, isShared := shared[entry.Name()]; entry.IsDir() && !isShared && entry.Name() != "tooltest" {
			names = append(names, entry.Name())
		}
	}

	require.NotEmpty(t, names)
	return names
}

func TestActivitiesImportNothingAboveThem(t *testing.T) {
	t.Parallel()

	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", root+"/...").Output()
	require.NoError(t, err)

	for line := range strings.Lines(string(out)) {
		path := strings.TrimSpace(line)
		for above, reason := range forbidden {
			require.False(t, path == above || strings.HasPrefix(path, above+"/"), "activities import %s: %s", path, reason)
		}
	}
}

// TestToolsImportNoTool: a tool is replaced, or read, without another one, and the
// contract does not know who keeps it.
func TestToolsImportNoTool(t *testing.T) {
	t.Parallel()

	for path, imports := range importing(t) {
		name := strings.TrimPrefix(path, root+"/")
		if path == root || name == "tooltest" {
			continue
		}

		may, isShared := shared[name]
		if !isShared {
			may = []string{"format", "memory", "sqltool", "tool"}
		}

		for _, imported := range imports {
			if imported != root && !strings.HasPrefix(imported, root+"/") {
				continue
			}

			require.Contains(t, may, strings.TrimPrefix(imported, root+"/"),
				"%s imports %s: a tool knows the contract and what tools share, no other tool, and nothing of those that make its attempts", path, imported)
		}
	}
}

// testsOf is the text of the tests in a folder.
func testsOf(t *testing.T, folder string) string {
	t.Helper()

	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	require.NoError(t, err)

	var all strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		all.Write(text)
	}
	return all.String()
}

// TestEachFolderIsATool: what has a folder is in the catalogue, and has passed the
// suite of all tools.
func TestEachFolderIsATool(t *testing.T) {
	t.Parallel()

	c := activities.DefaultCatalogue()
	for _, name := range toolFolders(t) {
		require.Contains(t, c.Names(), name, "folder %s: the tool stands in builtIn of catalogue.go", name)

		if playbook.TraitsOf(name).InWorkflow {
			continue // the tests of workflows make its attempts
		}

		tests := testsOf(t, name)
		require.Contains(t, tests, "tooltest.Run(t, tooltest.Suite{", "folder %s: a test of the tool calls tooltest.Run", name)
		if activities.HasLedger(c, name) {
			require.Contains(t, tests, "Ledgers: []tooltest.LedgerCase{", "folder %s: the suite of a ledger has Ledgers, the ways in which it writes with notes", name)
		}
	}
}

// The SDK's internals hold the workflow side, so its package is looked for in
// the imports that stand in the files and not among all dependencies.
func TestActivitiesUseNoWorkflowAPI(t *testing.T) {
	t.Parallel()

	var files []string
	require.NoError(t, filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
			files = append(files, path)
		}
		return err
	}))
	require.NotEmpty(t, files)

	for _, name := range files {
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
