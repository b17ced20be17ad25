package postgres_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/activities"
	"reprise/activities/postgres"
	"reprise/activities/tool"
	"reprise/activities/tooltest"
	"reprise/internal/base/secrets"
	"reprise/internal/test/testenv"
)

// pgStates keeps states in a new database, which is at url where it is given.
func pgStates(t testing.TB, url string) tooltest.States {
	t.Helper()
	pg := postgres.New(tool.Resources{
		Connections: activities.Connections{"main": url}, MaxResponseBytes: 64 << 20, MaxPayload: 64 << 20, Secrets: &secrets.Set{},
	})
	t.Cleanup(func() { require.NoError(t, pg.Close()) })
	return tooltest.States{Keeper: pg, Tool: "postgres", Auth: "main"}
}

func TestPostgresKeepsStates(t *testing.T) {
	t.Parallel()

	pgStates(t, testenv.Postgres(t).URL).Run(t)
}

func BenchmarkStateOfAPage(b *testing.B) { pgStates(b, testenv.Postgres(b).URL).BenchmarkPages(b) }
