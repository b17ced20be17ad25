package playbook_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/interpreter/playbook/check"
	"reprise/interpreter/source"
)

// A mistake that beginners make is a playbook of testdata/mistakes. Its first two
// lines state the place of the mistake and the words that a message has to name for
// its fix; the golden file beside it holds what is said.
const (
	leastMistakes = 80
	leastFixes    = 70
)

// TestMistakes compares what is said of each mistake, and counts how often the place is
// right and the fix is named.
func TestMistakes(t *testing.T) {
	t.Parallel()
	paths := inputs(t, "testdata/mistakes")
	require.GreaterOrEqual(t, len(paths), leastMistakes)
	places, fixes := 0, 0
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".yaml")
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		file := source.NewFile(filepath.Base(path), data)
		_, found := check.Validate(file, withPlaybooks, check.Options{Limits: testLimits, Zone: knownZone, Now: testNow})
		text := file.FormatAll(found)
		out := strings.TrimSuffix(path, ".yaml") + ".out"
		if *update {
			require.NoError(t, os.WriteFile(out, []byte(text), 0o644))
		}
		want, err := os.ReadFile(out)
		require.NoError(t, err, "write it with -update")
		require.Equal(t, string(want), text)
		place, words := mistake(t, string(data))
		said, ok := saidAt(found, place)
		if !ok {
			t.Logf("%s: nothing is said of %s\n%s", name, place, text)
			continue
		}
		places++
		if missing := missingWords(said, words); missing != "" {
			t.Logf("%s: the message does not name %q\n%s", name, missing, said)
			continue
		}
		fixes++
	}
	t.Logf("of %d mistakes the place is right in %d and the fix is named in %d", len(paths), places, fixes)
	require.Equal(t, len(paths), places)
	require.GreaterOrEqual(t, fixes, leastFixes)
}

// mistake reads the place and the words of the fix.
func mistake(t *testing.T, text string) (place string, words []string) {
	t.Helper()
	lines := strings.SplitN(text, "\n", 3)
	require.Len(t, lines, 3)
	place, ok := strings.CutPrefix(lines[0], "# place: ")
	require.True(t, ok)
	fix, ok := strings.CutPrefix(lines[1], "# fix: ")
	require.True(t, ok)
	return place, strings.Split(fix, " | ")
}

func saidAt(found source.Diagnostics, place string) (string, bool) {
	for _, one := range found {
		if fmt.Sprintf("%d:%d", one.Pos.Line, one.Pos.Column) == place {
			return one.Message + "\n" + one.Note, true
		}
	}
	return "", false
}

func missingWords(said string, words []string) string {
	for _, word := range words {
		if !strings.Contains(said, word) {
			return word
		}
	}
	return ""
}
