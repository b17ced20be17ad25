package sqlite_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/activities"
	"reprise/activities/sqlite"
	"reprise/activities/tool"
	"reprise/activities/tooltest"
	"reprise/internal/base/secrets"
)

// liteStates keeps states in a new file.
func liteStates(t testing.TB) tooltest.States {
	t.Helper()
	lite := sqlite.New(tool.Resources{
		Connections: activities.Connections{"main": "sqlite:sub/states.db"}, Directory: t.TempDir(), MaxResponseBytes: 64 << 20, MaxPayload: 64 << 20, Secrets: &secrets.Masker{},
	})
	t.Cleanup(func() { require.NoError(t, lite.Close()) })
	return tooltest.States{Keeper: lite, Tool: "sqlite", Auth: "main"}
}

func TestSQLiteKeepsStates(t *testing.T) {
	t.Parallel()

	liteStates(t).Run(t)
}

func BenchmarkStateOfAPage(b *testing.B) { liteStates(b).BenchmarkPages(b) }
