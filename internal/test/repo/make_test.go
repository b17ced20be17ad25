package repo_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	// target is a line of the Makefile that defines one.
	target = regexp.MustCompile(`(?m)^([a-z][a-zA-Z0-9/-]*):(?:[^=]|$)`)
	// command is a use of make in a document: in code marks, or at the start of
	// a line.
	command = regexp.MustCompile("(?m)(?:`|^\\s*(?:\\$ )?)make ([a-z][a-zA-Z0-9/-]*)\\b")
)

func makeTargets(t *testing.T) map[string]bool {
	t.Helper()
	targets := map[string]bool{}
	for _, match := range target.FindAllStringSubmatch(read(t, "Makefile"), -1) {
		targets[match[1]] = true
	}
	require.True(t, targets["help"])
	return targets
}

func documents(t *testing.T) []string {
	t.Helper()
	var names []string
	for _, pattern := range []string{"*.md", "docs/*.md", ".ci/run", "scripts/*"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		require.NoError(t, err)
		for _, path := range found {
			name, err := filepath.Rel(root, path)
			require.NoError(t, err)
			names = append(names, name)
		}
	}
	require.Subset(t, names, []string{"CONTRIBUTING.md", filepath.Join(".ci", "run")})
	return names
}

func TestMakeTargetsInDocumentsExist(t *testing.T) {
	t.Parallel()
	targets := makeTargets(t)
	named := 0
	for _, document := range documents(t) {
		text := read(t, document)
		if filepath.Ext(document) == ".md" {
			text = proseJoined(text)
		}
		for _, match := range command.FindAllStringSubmatch(text, -1) {
			require.True(t, targets[match[1]], "%s says make %s, which the Makefile does not have", document, match[1])
			named++
		}
	}
	require.NotZero(t, named)
}

// proseJoined joins the lines outside code blocks, where a line may begin with
// the verb.
func proseJoined(markdown string) string {
	const fence = "```"
	parts := strings.Split(markdown, fence)
	for i := 0; i < len(parts); i += 2 {
		parts[i] = strings.ReplaceAll(parts[i], "\n", " ")
	}
	return strings.Join(parts, fence)
}

func TestProseIsNoCommand(t *testing.T) {
	t.Parallel()
	text := proseJoined("what would\nmake every `make a`\n```sh\nmake b\n```\nmake haste\n")
	var named []string
	for _, match := range command.FindAllStringSubmatch(text, -1) {
		named = append(named, match[1])
	}
	require.Equal(t, []string{"a", "b"}, named)
}

func TestMakeListsItsTargetsByDefault(t *testing.T) {
	t.Parallel()
	output, err := exec.Command("make", "-C", root).CombinedOutput()
	require.NoError(t, err, string(output))
	for _, name := range []string{"demo", "build", "test", "lint", "fmt", "golden", "fuzz", "clean"} {
		require.Regexp(t, `(?m)^  make `+name+` +\S`, string(output))
	}
}

// TestContinuousIntegrationRunsTheDocumentedCommands wants the pipeline to call
// what a reader of the documents would type.
func TestContinuousIntegrationRunsTheDocumentedCommands(t *testing.T) {
	t.Parallel()
	pipeline, contributing := read(t, filepath.Join(".ci", "run")), read(t, "CONTRIBUTING.md")
	for _, line := range []string{"make lint", "make test"} {
		require.Contains(t, pipeline, line)
		require.Contains(t, contributing, line)
	}
}

func TestScriptsParseAndStopAtErrors(t *testing.T) {
	t.Parallel()
	scripts := []string{filepath.Join(".ci", "run")}
	found, err := filepath.Glob(filepath.Join(root, "scripts", "*"))
	require.NoError(t, err)
	for _, path := range found {
		if filepath.Ext(path) != ".md" {
			scripts = append(scripts, filepath.Join("scripts", filepath.Base(path)))
		}
	}
	for _, script := range scripts {
		path := filepath.Join(root, script)
		output, err := exec.Command("bash", "-n", path).CombinedOutput()
		require.NoError(t, err, "%s: %s", script, output)
		if script == filepath.Join("scripts", "tools") {
			continue // sourced by the others
		}
		text := read(t, script)
		require.True(t, strings.HasPrefix(text, "#!/usr/bin/env bash\n"), script)
		require.Contains(t, text, "\nset -euo pipefail\n", script)
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.NotZero(t, info.Mode()&0o100, "%s is not executable", script)
	}
}

// TestToolVersionsArePinned keeps checks from changing by themselves.
func TestToolVersionsArePinned(t *testing.T) {
	t.Parallel()
	lines := regexp.MustCompile(`(?m)^[A-Z_]+='(.*)'$`).FindAllStringSubmatch(read(t, "scripts/tools"), -1)
	require.Len(t, lines, 5)
	for _, line := range lines {
		require.Regexp(t, `^go run \S+@v\d+\.\d+\.\d+$`, line[1])
	}
}
