package playbook_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/interpreter/playbook"
	"reprise/interpreter/playbook/check"
	"reprise/interpreter/source"
)

var update = flag.Bool("update", false, "rewrite the expected texts in testdata")

// TestGoldenErrors compares what a bad playbook's author sees, letter by
// letter. Every file must have at least one error.
func TestGoldenErrors(t *testing.T) {
	t.Parallel()
	golden(t, "testdata/err", func(t *testing.T, found source.Diagnostics) {
		require.True(t, found.HasErrors(), "no error was found")
	})
}

// TestGoldenWarnings is the same for playbooks that may run.
func TestGoldenWarnings(t *testing.T) {
	t.Parallel()
	golden(t, "testdata/warn", func(t *testing.T, found source.Diagnostics) {
		require.NotEmpty(t, found, "no warning was found")
		require.False(t, found.HasErrors(), found.Error())
	})
}

// TestGoldenClean checks that good playbooks get no message at all.
func TestGoldenClean(t *testing.T) {
	t.Parallel()
	for _, path := range inputs(t, "testdata/ok") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			_, found, text := validate(t, path)
			require.Empty(t, found, text)
		})
	}
}

func golden(t *testing.T, dir string, check func(*testing.T, source.Diagnostics)) {
	t.Helper()
	for _, path := range inputs(t, dir) {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".yaml"), func(t *testing.T) {
			t.Parallel()
			_, found, text := validate(t, path)
			check(t, found)
			out := strings.TrimSuffix(path, ".yaml") + ".out"
			if *update {
				require.NoError(t, os.WriteFile(out, []byte(text), 0o644))
			}
			want, err := os.ReadFile(out)
			require.NoError(t, err, "write it with -update")
			require.Equal(t, string(want), text)
		})
	}
}

func inputs(t *testing.T, dir string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	return paths
}

// testLimits are the defaults of a worker.
var testLimits = playbook.Limits{MaxRetries: playbook.DefaultMaxRetriesLimit, MaxDelay: playbook.DefaultMaxDelayLimit}

// testNow is the time of day of the tests, where partitions depend on it.
var testNow = time.Date(2026, time.November, 1, 0, 0, 0, 0, time.UTC)

func knownZone(name string) error {
	_, err := time.LoadLocation(name)
	return err
}

func validate(t *testing.T, path string) (*playbook.Playbook, source.Diagnostics, string) {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	file := source.NewFile(filepath.Base(path), data)
	options, tools := check.Options{Limits: testLimits, Zone: knownZone, Now: testNow}, testTools
	if strings.HasPrefix(file.Name, "playbook_") {
		tools = withPlaybooks
		options.Files = check.NewFiles(func(name string) ([]byte, error) { return os.ReadFile(filepath.Join(filepath.Dir(path), name)) })
	}
	pb, found := check.Validate(file, tools, options)
	return pb, found, file.FormatAll(found)
}
