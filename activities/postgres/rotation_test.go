package postgres_test

import (
	"context"
	"crypto/rand"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/activities"
	"reprise/activities/tooltest"
	"reprise/internal/base/connection"
	"reprise/internal/test/testenv"
)

// TestAPasswordThatChanges sets environment variables, so it does not run in parallel.
func TestAPasswordThatChanges(t *testing.T) {
	db := testenv.Postgres(t)
	user := "ana_" + strings.ToLower(rand.Text()[:10])
	db.Exec(t, "CREATE ROLE "+user+" LOGIN PASSWORD 'first-5ecret'")
	t.Cleanup(func() { db.Exec(t, "DROP ROLE "+user) })
	address, err := url.Parse(db.URL)
	require.NoError(t, err)
	address.User = url.User(user)

	const variable = "TEST_ROTATING_PASSWORD"
	t.Setenv(variable, "first-5ecret")
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "pg"), []byte("first-5ecret\n"), 0o600))
	store := &storedLogin{user: user, password: "first-5ecret"}
	catalogue := activities.NewCatalogue(activities.Resources{SecretsDirectory: folder, SecretStores: map[string]connection.SecretStore{"vault": store}, Connections: activities.Connections{
		"env":   `{"url": "` + address.String() + `", "password": {"from": "env", "name": "` + variable + `"}}`,
		"vault": `{"url": "` + strings.Replace(address.String(), user+"@", "", 1) + `", "user": {"from": "vault", "path": "database/creds/shop", "field": "user"}, "password": {"from": "vault", "path": "database/creds/shop", "field": "password"}}`,
		"file":  `{"url": "` + address.String() + `", "password": {"from": "file", "path": "pg"}}`,
	}})
	t.Cleanup(func() { require.NoError(t, catalogue.Close()) })

	query := func(connection string) error {
		in := tooltest.Input(map[string]any{"statement": "SELECT current_user AS who"})(t)
		in.Auth = connection
		result, err := tooltest.Call(t, catalogue, "postgres", "postgres", in)
		if err == nil {
			require.Equal(t, []any{map[string]any{"who": user}}, result.Data.Data)
		}
		return err
	}
	change := func(password string) {
		db.Exec(t, "ALTER ROLE "+user+" PASSWORD '"+password+"'; SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '"+user+"'")
	}

	require.NoError(t, query("env"))
	require.NoError(t, query("file"))
	require.NoError(t, query("vault"))

	change("second-5ecret")
	object := tooltest.ErrorObject(t, query("env"))
	for object.Type == "57P01" { // each connection that was kept notices its end with its next statement
		object = tooltest.ErrorObject(t, query("env"))
	}
	require.Equal(t, "28P01", object.Type)
	require.NotContains(t, object.Message, "5ecret")

	t.Setenv(variable, "second-5ecret")
	require.NoError(t, query("env"), "the value that is kept is refused, and read again")
	require.NoError(t, os.WriteFile(filepath.Join(folder, "pg"), []byte("second-5ecret\n"), 0o600))
	require.NoError(t, query("file"))
	store.password = "second-5ecret"
	require.NoError(t, query("vault"))
	require.NoError(t, catalogue.Close())
	require.True(t, store.closed)
}

// storedLogin is a user and a password in a store.
type storedLogin struct {
	user, password string
	closed         bool
}

func (s *storedLogin) FetchSecret(context.Context, connection.SecretSource) (connection.StoredSecret, error) {
	return connection.StoredSecret{Value: `{"user": "` + s.user + `", "password": "` + s.password + `"}`}, nil
}

func (s *storedLogin) Close(context.Context) error {
	s.closed = true
	return nil
}
