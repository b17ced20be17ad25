package python_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/activities"
	"reprise/activities/python"
	"reprise/interpreter/playbook/check"
	"reprise/interpreter/source"
)

const codeThatDoesNotCompile = `apiVersion: reprise/v1
kind: Playbook
metadata: {name: p}
workflow:
  - step: start
    tool: python
    code: |
      def main():
          return 1
    next: broken
  - step: broken
    tool: python
    code: |
      def main():
          retrun 1
    next: cut
  - step: cut
    tool: python
    code: "def main():\n  return ("
`

func TestCodeThatDoesNotCompile(t *testing.T) {
	t.Parallel()

	file := source.NewFile("p.yaml", []byte(codeThatDoesNotCompile))

	for name, catalogue := range map[string]*activities.Catalogue{
		"a worker that runs code":        activities.NewCatalogue(activities.Resources{AllowPython: true}),
		"those who only check playbooks": activities.DefaultCatalogue(),
	} {
		_, found := check.Validate(file, catalogue, check.Options{})
		require.Len(t, found, 2, name)
		require.Equal(t, check.CodeCodeSyntax, found[0].Code)
		require.Equal(t, 15, found[0].Pos.Line)
		require.Contains(t, found[0].Message, "the code does not compile: invalid syntax")
		require.Equal(t, 19, found[1].Pos.Line)
		require.Contains(t, found[1].Message, "was never closed")
	}
}

// TestCompileIsBounded: without a Python that may be used, or with one that
// hangs or says nonsense, nothing is said and the check ends.
func TestCompileIsBounded(t *testing.T) {
	t.Parallel()

	marker := filepath.Join(t.TempDir(), "was_here")
	script := func(text string) string {
		path := filepath.Join(t.TempDir(), "python")
		require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o755))
		return path
	}

	for name, res := range map[string]activities.Resources{
		"not there": {AllowPython: true, PythonCommand: "/nowhere/python9"},
		"hangs":     {AllowPython: true, PythonCommand: script("exec sleep 600")},
		"nonsense":  {AllowPython: true, PythonCommand: script("echo '[1, 2]'")},
		"fails":     {AllowPython: true, PythonCommand: script("echo '[null, null, null]'; exit 3")},
		"endless":   {AllowPython: true, PythonCommand: script("exec yes '" + strings.Repeat("x", 100) + "'")},
		"off":       {PythonCommand: script("touch " + marker)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			_, found := check.Validate(source.NewFile("p.yaml", []byte(codeThatDoesNotCompile)),
				activities.NewCatalogue(res), check.Options{})
			require.Empty(t, found)
			require.NoFileExists(t, marker)
		})
	}
}

// TestCodesCompileOnce: a playbook that is run again and again starts a Python for its
// check once, and for codes that do not compile each time: Python may be another by then.
func TestCodesCompileOnce(t *testing.T) {
	t.Parallel()

	starts := filepath.Join(t.TempDir(), "starts")
	command := filepath.Join(t.TempDir(), "python")
	require.NoError(t, os.WriteFile(command, []byte("#!/bin/sh\necho >>"+starts+"\nexec python3 \"$@\"\n"), 0o755))
	count := func() int {
		written, _ := os.ReadFile(starts)
		return len(written)
	}

	whole := []string{"def main(): return 1", "def main(): return 2"}
	for range 3 {
		require.Equal(t, []*check.CodeProblem{nil, nil}, python.CompileCodes(command, whole))
	}
	require.Equal(t, 1, count())
	for range 2 {
		problems := python.CompileCodes(command, []string{whole[1], "def main(: return 3", "def main(): return 4"})
		require.Nil(t, problems[0])
		require.Equal(t, 1, problems[1].Line)
		require.Nil(t, problems[2])
	}
	require.Equal(t, 3, count())
}
