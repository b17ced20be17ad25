package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPostgresURLs: what the server cannot connect to is an error that does not quote the password.
func TestPostgresURLs(t *testing.T) {
	t.Parallel()
	conf, err := parsePostgres("postgres://user:pass%2Fword@127.0.0.1/temporal?sslmode=disable")
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1:5432", conf.ConnectAddr)
	require.Equal(t, "temporal", conf.DatabaseName)
	require.Equal(t, "user", conf.User)
	require.Equal(t, "pass/word", conf.Password)
	require.Equal(t, map[string]string{"sslmode": "disable"}, conf.ConnectAttributes)
	for _, test := range []struct{ url, problem string }{
		{"mysql://user:hunter2@127.0.0.1/temporal", "is not a URL of PostgreSQL"},
		{"postgres://user:hunter2@127.0.0.1:port/temporal", "is not a URL of PostgreSQL"},
		{"postgres://user:hunter2@127.0.0.1", "has no name of a database"},
		{"postgres://user:hunter2@127.0.0.1/Temporal", "has no name of a database in lower case"},
		{"postgres:///temporal", "has no host"},
	} {
		_, err := parsePostgres(test.url)
		require.ErrorContains(t, err, test.problem)
		require.NotContains(t, err.Error(), "hunter2")
	}
	opts := options{postgres: "postgres://127.0.0.1/temporal", dbFile: "state.db"}
	require.ErrorContains(t, opts.readEnvironment(func(string) string { return "" }), "two places for the same state")
	opts = options{dbFile: "state.db"}
	require.ErrorContains(t, opts.readEnvironment(func(name string) string {
		return map[string]string{postgresVariable: "postgres://127.0.0.1/temporal"}[name]
	}), "two places for the same state")
}
