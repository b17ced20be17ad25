package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const root = "../../.."

// TestPatchesApply: each still breaks something in the code as it is, and leaves
// the code itself alone.
func TestPatchesApply(t *testing.T) {
	t.Parallel()
	all, err := allMutants()
	require.NoError(t, err)
	require.NotEmpty(t, all)
	absolute, err := filepath.Abs(root)
	require.NoError(t, err)
	for _, m := range all {
		dir := t.TempDir()
		before := map[string][]byte{}
		require.NotEmpty(t, m.patchedFiles(), m.name)
		for _, name := range m.patchedFiles() {
			before[name], err = os.ReadFile(filepath.Join(root, name))
			require.NoError(t, err, m.name)
		}
		overlay, err := m.applyPatch(t.Context(), absolute, dir)
		require.NoError(t, err)
		text, err := os.ReadFile(overlay)
		require.NoError(t, err)
		for name, was := range before {
			is, err := os.ReadFile(filepath.Join(root, name))
			require.NoError(t, err)
			require.True(t, bytes.Equal(was, is), "%s was changed", name)
			changed, err := os.ReadFile(filepath.Join(dir, name))
			require.NoError(t, err)
			require.False(t, bytes.Equal(was, changed), "%s does not change %s", m.name, name)
			require.Contains(t, string(text), filepath.Join(absolute, name))
		}
	}
}

// TestMutantsAreLookedFor: each says what it breaks, and names tests that there
// are: at least one that runs the real thing, and one of chaos; or, where what is broken needs no disturbance,
// another one with real servers; or, where a rule of the language is, one of the oracle; or, where that of a
// transaction is, one with a PostgreSQL server.
func TestMutantsAreLookedFor(t *testing.T) {
	t.Parallel()
	all, err := allMutants()
	require.NoError(t, err)
	for _, m := range all {
		require.NotEmpty(t, m.breaks, m.name)
		real := false
		named := m.tests
		if m.chaos != "" {
			named = append(named, test{"internal/test/chaos", m.chaos})
		}
		language, transaction := false, false
		for _, each := range named {
			require.True(t, exists(t, each), "%s: there is no test %s", m.name, each)
			real = real || each.folder == "internal/test/e2e"
			language = language || each.folder == "internal/test/oracle"
			transaction = transaction || each.folder == "activities/postgres"
		}
		if m.chaos == "" {
			require.True(t, language || transaction || real, "%s: neither chaos, the oracle nor a test with real servers has to notice", m.name)
			continue
		}
		require.True(t, real, "%s: no test with real servers", m.name)
		require.Contains(t, []string{"TestChaos", "TestMoving", "TestMovingChildRuns", "TestIncremental"}, m.chaos, m.name)
	}
}

// exists looks for the function of a test.
func exists(t *testing.T, named test) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, named.folder, "*_test.go"))
	require.NoError(t, err)
	function := regexp.MustCompile(`(?m)^func ` + named.functionName() + `\(t \*testing\.T\)`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		if function.Match(text) {
			return true
		}
	}
	return false
}

// TestPatchThatNoLongerApplies says what to do.
func TestPatchThatNoLongerApplies(t *testing.T) {
	t.Parallel()
	m, err := parseMutant("old", []byte("Breaks something.\n\ntest: internal/test/e2e TestX/a_b\nchaos: TestChaos\n\n"+
		"--- a/go.mod\n+++ b/go.mod\n@@ -1,1 +1,1 @@\n-module another\n+module broken\n"))
	require.NoError(t, err)
	require.Equal(t, "Breaks something.", m.breaks)
	require.Equal(t, []test{{"internal/test/e2e", "TestX/a_b"}}, m.tests)
	require.Equal(t, "^TestX$/^a_b$", m.tests[0].runPattern())
	require.Equal(t, []string{"go.mod"}, m.patchedFiles())
	_, err = m.applyPatch(t.Context(), root, t.TempDir())
	require.ErrorContains(t, err, "old.patch does not apply any more")
	_, err = parseMutant("empty", []byte("Breaks nothing.\n"))
	require.Error(t, err)
}

// TestFollow: chaos ends with the first round that fails.
func TestFollow(t *testing.T) {
	t.Parallel()
	const said = "\x16=== RUN   TestChaos\n=== RUN   TestChaos/01_a\n    --- PASS: TestChaos/01_a (1.00s)\n" +
		"\x16    --- FAIL: TestChaos/02_b (1.00s)\n    --- PASS: TestChaos/03_c (1.00s)\n"
	made, ran := followTest(strings.NewReader(said), test{"internal/test/chaos", "TestChaos"}, true)
	require.True(t, ran)
	require.True(t, made.failed)
	require.Equal(t, 1, made.passed)
	made, ran = followTest(strings.NewReader(said), test{"internal/test/chaos", "TestMoving"}, true)
	require.False(t, ran || made.failed)
}

func TestWrap(t *testing.T) {
	t.Parallel()
	for _, line := range wrapText(strings.Repeat("word ", 50)) {
		require.LessOrEqual(t, len(line), 78)
	}
	require.Len(t, wrapText(strings.Repeat("word ", 50)), 4)
}
