package repo_test

import (
	"go/ast"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
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

// goName is an exported name of Go in a document, maybe behind its package or type.
var goName = regexp.MustCompile("`(?:[A-Za-z]+\\.)?([A-Z][a-z]+[A-Za-z]*)`")

// TestNamesInTheArchitectureExist: a type or function that the document names is in the code.
func TestNamesInTheArchitectureExist(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "git", "-C", root, "grep", "-hoE", "[A-Z][a-z]+[A-Za-z]*", "--", "*.go").Output()
	require.NoError(t, err)
	code := map[string]bool{}
	for name := range strings.FieldsSeq(string(out)) {
		code[name] = true
	}
	all := goName.FindAllStringSubmatch(read(t, filepath.Join("docs", "architecture.md")), -1)
	require.Greater(t, len(all), 40)
	for _, match := range all {
		require.True(t, code[match[1]], "nothing in the code is named %s", match[1])
	}
}

// nameInFile is a name of Go behind the file in which a document says that it is.
var nameInFile = regexp.MustCompile("`(?:[a-z_]+/)*([a-z_]+\\.go)` \\(`([A-Za-z]+)`")

// TestNamesAreInTheirFiles: a name that the architecture or a recipe gives beside a file is declared there.
func TestNamesAreInTheirFiles(t *testing.T) {
	t.Parallel()
	declared := map[string]bool{}
	for _, file := range goSources(t, func(string) bool { return true }) {
		for _, each := range file.tree.Decls {
			if function, ok := each.(*ast.FuncDecl); ok {
				declared[path.Base(file.name)+" "+function.Name.Name] = true
			}
		}
	}
	all := nameInFile.FindAllStringSubmatch(read(t, filepath.Join("docs", "architecture.md"))+read(t, "CONTRIBUTING.md"), -1)
	require.NotEmpty(t, all)
	for _, match := range all {
		require.True(t, declared[match[1]+" "+match[2]], "%s declares no %s", match[1], match[2])
	}
}

var (
	// pathIn is a path of a file in a document, maybe with a star.
	pathIn = regexp.MustCompile("`([a-zA-Z0-9_*.-]+/[a-zA-Z0-9_*./-]*\\.[a-z]+)`")
	// testIn is a test that a document names.
	testIn = regexp.MustCompile("`(Test[A-Z][A-Za-z]+)`")
)

// TestContributingNamesWhatExists: whoever adds something finds the files and the tests
// that CONTRIBUTING.md, and the pages beside the rooms, name.
func TestContributingNamesWhatExists(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "git", "-C", root, "grep", "-hoE", "^func Test[A-Za-z]+", "--", "*_test.go").Output()
	require.NoError(t, err)
	tests := strings.Split(string(out), "\n")
	var document string
	for _, page := range []string{
		"CONTRIBUTING.md", "scripts/README.md", "internal/test/README.md", "internal/test/chaos/README.md", "internal/test/oracle/README.md",
		"internal/test/mutants/README.md", "internal/program/playtest/README.md", "activities/tool/README.md",
	} {
		document += read(t, page)
	}
	paths, names := pathIn.FindAllStringSubmatch(document, -1), testIn.FindAllStringSubmatch(document, -1)
	require.Greater(t, len(paths), 20)
	require.Greater(t, len(names), 15)
	for _, match := range paths {
		if strings.Contains(match[1], "NAME") {
			continue
		}
		found, err := filepath.Glob(filepath.Join(root, match[1]))
		require.NoError(t, err)
		require.NotEmpty(t, found, match[1])
	}
	for _, match := range names {
		require.True(t, slices.Contains(tests, "func "+match[1]), "no test is named %s", match[1])
	}
}

// goFence is a piece of Go in a document.
var goFence = regexp.MustCompile("(?s)```go\n(.*?)```")

// TestCodeInContributingIsOurs: a piece of code that CONTRIBUTING.md shows is in the repository as it is there.
func TestCodeInContributingIsOurs(t *testing.T) {
	t.Parallel()
	pieces := goFence.FindAllStringSubmatch(read(t, "CONTRIBUTING.md"), -1)
	require.NotEmpty(t, pieces)
	for _, piece := range pieces {
		for line := range strings.Lines(piece[1]) {
			err := exec.CommandContext(t.Context(), "git", "-C", root, "grep", "-qF", "--untracked", "-e", strings.TrimSpace(line), "--", "*.go").Run()
			require.NoError(t, err, "no Go file has this line of CONTRIBUTING.md, copy it anew: %s", line)
		}
	}
}

// TestFirstPagesAreShort: who comes to the project reads them whole, and of CHANGELOG.md what is new in a version. A change that is not
// released yet is in the section of a version with a number, and has no line for each commit.
func TestFirstPagesAreShort(t *testing.T) {
	t.Parallel()
	for page, most := range map[string]int{"CONTRIBUTING.md": 1200, "SECURITY.md": 600, "README.md": 900} {
		words := len(strings.Fields(read(t, page)))
		require.LessOrEqual(t, words, most, "%s has %d words", page, words)
	}
	changes := read(t, "CHANGELOG.md")
	require.NotContains(t, strings.ToLower(changes), "unreleased")
	for _, version := range strings.Split(changes, "\n## ")[1:] {
		name, _, _ := strings.Cut(version, "\n")
		require.LessOrEqual(t, len(strings.Fields(version)), 700, "words about %s", name)
	}
}
