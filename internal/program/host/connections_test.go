package host_test

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/program/host"
)

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "connections.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// TestConnectionsComeFromTheFileThenTheEnvironment sets environment variables,
// so it does not run in parallel.
func TestConnectionsComeFromTheFileThenTheEnvironment(t *testing.T) {
	t.Setenv("REPRISE_AUTH_CLINIC", "postgres://environment")
	t.Setenv("REPRISE_AUTH_OTHER", "postgres://other")
	connections, err := host.ReadConnections(write(t, "clinic: postgres://file\n"))
	require.NoError(t, err)
	for name, wanted := range map[string]string{"clinic": "postgres://file", "other": "postgres://other"} {
		url, ok := connections.Connection(name)
		require.True(t, ok, name)
		require.Equal(t, wanted, url)
	}
	_, ok := connections.Connection("nobody")
	require.False(t, ok)

	connections, err = host.ReadConnections("")
	require.NoError(t, err)
	url, _ := connections.Connection("clinic")
	require.Equal(t, "postgres://environment", url)
}

// TestConnectionsCanBeOAuth2Clients reads both forms of a connection.
func TestConnectionsCanBeOAuth2Clients(t *testing.T) {
	t.Parallel()
	connections, err := host.ReadConnections(write(t, `
clinic: postgres://file
orders:
  oauth2: {token_url: "https://login.test/token", client_id: ana, client_secret: hunter2000, scopes: [a, b]}
`))
	require.NoError(t, err)
	text, ok := connections.Connection("orders")
	require.True(t, ok)
	require.JSONEq(t, `{"oauth2": {"token_url": "https://login.test/token", "client_id": "ana", "client_secret": "hunter2000", "scopes": ["a", "b"]}}`, text)

	_, err = host.ReadConnections(write(t, "orders: {oauth2: {token_url: 'https://login.test', client_id: ana, client_secret: 2000}}\n"))
	require.ErrorContains(t, err, `connection "orders" must have oauth2.client_secret, as text`)
}

func TestErrorsOfConnectionsShowNoSecret(t *testing.T) {
	t.Parallel()
	const secret = "hunter2000"
	for name, text := range map[string]string{
		"a list":       "- postgres://u:" + secret + "@h/d\n",
		"not text":     "clinic: {uri: " + secret + "}\n",
		"oauth2":       "clinic: {oauth2: {" + secret + ": " + secret + ", client_secret: " + secret + "}}\n",
		"oauth2 word":  "clinic: {oauth2: {token_url: 'https://h', client_id: x, client_secret: " + secret + ", " + secret + ": 1}}\n",
		"broken":       "clinic: 'postgres://u:" + secret + "\n",
		"twice":        "a: " + secret + "\n" + "a: " + secret + "\n",
		"no name":      "postgres://u:" + secret + "@h/d:\n",
		"a token":      "tok:\n" + secret + ":\n",
		"two colons":   "api: Bearer: " + secret + "\n",
		"not indented": "api:\nBearer: [" + secret + "]\n",
		"a tab":        "api:\t'" + secret + "\n\tx",
		"secret twice": secret + ": a\n" + secret + ": b\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := host.ReadConnections(write(t, text))
			require.ErrorContains(t, err, "read the connections")
			require.ErrorContains(t, err, "connections.yaml")
			require.NotContains(t, err.Error(), secret)
		})
	}
	_, err := host.ReadConnections(filepath.Join(t.TempDir(), "none.yaml"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

// TestErrorsOfConnectionsHaveTheirPlace reads maps with a mistake.
func TestErrorsOfConnectionsHaveTheirPlace(t *testing.T) {
	t.Parallel()
	for text, says := range map[string]string{
		"a: bearer:x\nshop:\n  query: {api_key: K}\n  hots: https://api.test\n": `connections.yaml:4:3: connection "shop" has an unknown key (did you mean host?), expected one of`,
		"shop:\n  basic:\n    user: ana\n    password: 5\n":                     `connections.yaml:4:5: connection "shop" must have text as basic.password`,
		"shop:\n  basic: {password: x}\n":                                       `connections.yaml:2:3: connection "shop" must have basic.user, as text`,
		"shop: https://api.test/?api_key=K\n":                                   `connections.yaml:1:1: connection "shop" is a URL with a query string, which is not sent; to send a key in the query of each request, write a map: {query: {NAME: KEY}, host: https://HOST}`,
	} {
		_, err := host.ReadConnections(write(t, text))
		require.ErrorContains(t, err, says)
	}
}

// TestConnectionsAreReadAgainWhenTheirFileChanges keeps what was read where the file is broken, and logs that once.
func TestConnectionsAreReadAgainWhenTheirFileChanges(t *testing.T) {
	t.Parallel()
	path := write(t, "clinic: postgres://first\n")
	connections, err := host.ReadConnections(path)
	require.NoError(t, err)
	var log bytes.Buffer
	connections.(interface{ LogTo(logger *slog.Logger) }).LogTo(slog.New(slog.NewTextHandler(&log, nil)))
	requireURL := func(wanted string) {
		t.Helper()
		url, _ := connections.Connection("clinic")
		require.Equal(t, wanted, url)
	}
	requireURL("postgres://first")
	require.NoError(t, os.WriteFile(path, []byte("clinic: postgres://second\nshop: bearer:x\n"), 0o600))
	requireURL("postgres://second")
	_, known := connections.Connection("shop")
	require.True(t, known)
	require.Empty(t, log.String())
	require.NoError(t, os.WriteFile(path, []byte("clinic: {berer: hunter2000}\n"), 0o600))
	requireURL("postgres://second")
	requireURL("postgres://second")
	require.Equal(t, 1, strings.Count(log.String(), "what was read before stays"))
	require.Contains(t, log.String(), "connections.yaml:1:10")
	require.NotContains(t, log.String(), "hunter2000")
	require.NoError(t, os.Remove(path))
	requireURL("postgres://second")
	requireURL("postgres://second")
	require.Equal(t, 2, strings.Count(log.String(), "what was read before stays"))
	require.NoError(t, os.WriteFile(path, []byte("clinic: postgres://third\n"), 0o600))
	requireURL("postgres://third")
}

// TestVariablesAreCheckedAtTheStart sets environment variables, so it does not run in parallel.
func TestVariablesAreCheckedAtTheStart(t *testing.T) {
	const secret = "hunter2000"
	for value, says := range map[string]string{
		"":                                    "",
		"postgres://u:" + secret + "@h/d?x=1": "",
		`{"bearer": "` + secret + `"}`:        "",
		`{"bearer": "` + secret + `"`:         "the variable REPRISE_AUTH_SHOP begins with { and is not JSON",
		`{"berer": "` + secret + `"}`:         "the variable REPRISE_AUTH_SHOP has an unknown key (did you mean bearer?)",
		"https://h.test/?key=" + secret:       "the variable REPRISE_AUTH_SHOP is a URL with a query string, which is not sent",
	} {
		t.Setenv("REPRISE_AUTH_SHOP", value)
		_, err := host.ReadConnections("")
		if says == "" {
			require.NoError(t, err, value)
			continue
		}
		require.ErrorContains(t, err, says)
		require.NotContains(t, err.Error(), secret)
	}
}
