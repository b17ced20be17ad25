package http_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/activities"
	"reprise/activities/tooltest"
)

// guarded is an API that accepts one password at a time.
type guarded struct {
	*tooltest.RecordingServer

	password atomic.Value
}

func newGuarded(t *testing.T, given func(*http.Request) string) *guarded {
	t.Helper()

	g := &guarded{}
	g.RecordingServer = tooltest.NewRecordingServer(t, "127.0.0.1", func(w http.ResponseWriter, r *http.Request) {
		if got := given(r); got != g.password.Load() {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, "you sent ", got)
		}
	})
	return g
}

// TestASecretThatChangesIsSentWithinTheAttempt sets environment variables, so it does not run in parallel.
func TestASecretThatChangesIsSentWithinTheAttempt(t *testing.T) {
	for name, kind := range map[string]struct {
		settings string
		given    func(*http.Request) string
	}{
		"bearer": {`"bearer": %s`, func(r *http.Request) string { return r.Header.Get("Authorization")[len("Bearer "):] }},
		"basic":  {`"basic": {"user": "ana", "password": %s}`, func(r *http.Request) string { _, p, _ := r.BasicAuth(); return p }},
		"query":  {`"query": {"api_key": %s}`, func(r *http.Request) string { return r.URL.Query().Get("api_key") }},
		"header": {`"headers": {"X-Key": %s, "X-Account": "acme"}`, func(r *http.Request) string { return r.Header.Get("X-Key") }},
	} {
		t.Run(name, func(t *testing.T) {
			api := newGuarded(t, kind.given)
			const variable = "TEST_ROTATING_SECRET"
			set := func(value string) { t.Setenv(variable, value) }
			set(canary + "-one")
			api.password.Store(canary + "-one")
			c := withTokens(t, fmt.Sprintf(`{`+kind.settings+`, "host": %q}`, `{"from": "env", "name": "`+variable+`"}`, api.URL))

			send := func() error {
				_, err := tooltest.CallHTTP(t, c, tokenInput(t, "/x"))
				return err
			}

			require.NoError(t, send())
			require.Len(t, api.ReceivedRequests(), 1)

			api.password.Store(canary + "-two")
			object := tooltest.ErrorObject(t, send())
			require.Equal(t, 401, object.Status)
			require.Len(t, api.ReceivedRequests(), 2, "what has not changed is not sent again")
			requireNoCanary(t, object)

			set(canary + "-two")
			require.NoError(t, send())
			require.Len(t, api.ReceivedRequests(), 4, "refused, and sent once more with the new secret")
			require.Contains(t, api.ReceivedRequests()[3], "\r\n\r\ntext")
			require.Contains(t, api.ReceivedRequests()[3], "Idempotency-Key: op-1")

			require.NoError(t, send())
			require.Len(t, api.ReceivedRequests(), 5)

			set(canary + "-three")
			api.password.Store("nobody has it")
			object = tooltest.ErrorObject(t, send())
			require.Equal(t, 401, object.Status)
			require.Len(t, api.ReceivedRequests(), 7, "once per attempt")
			requireNoCanary(t, object)
		})
	}
}

// A secret of a file that is nowhere is a final error with its name and path.
func TestASecretThatIsNowhere(t *testing.T) {
	t.Parallel()

	api := tooltest.NewRecordingServer(t, "127.0.0.1", nil)
	folder := t.TempDir()
	c := activities.NewCatalogue(activities.Resources{
		SecretsDirectory: folder, Connections: activities.Connections{"api": `{"bearer": {"from": "file", "path": "shop"}, "host": "` + api.URL + `"}`},
	})
	t.Cleanup(func() { require.NoError(t, c.Close()) })

	_, err := tooltest.CallHTTP(t, c, tokenInput(t, "/"))
	object := tooltest.ErrorObject(t, err)
	require.True(t, object.Final)
	require.Equal(t, "secret_missing", object.Type)
	require.Equal(t, `connection "api": file shop: no such secret`, object.Message)

	require.NoError(t, os.Mkdir(filepath.Join(folder, "shop"), 0o700))
	_, err = tooltest.CallHTTP(t, c, tokenInput(t, "/"))
	object = tooltest.ErrorObject(t, err)
	require.False(t, object.Final)
	require.Equal(t, "secret_store", object.Type)
	require.EqualValues(t, "connection", object.Kind)

	require.NoError(t, os.Remove(filepath.Join(folder, "shop")))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "shop"), []byte(canary+"\n"), 0o600))
	_, err = tooltest.CallHTTP(t, c, tokenInput(t, "/"))
	require.NoError(t, err)
	require.Contains(t, api.ReceivedRequests()[0], "Authorization: Bearer "+canary+"\r\n")
}
