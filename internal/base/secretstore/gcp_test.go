package secretstore_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/base/connection"
	"reprise/internal/base/secretstore"
)

// TestSecretsOfGCP reads secrets by the names that people write, from a server that answers as the documentation of the
// REST API says (projects.secrets.versions.access).
func TestSecretsOfGCP(t *testing.T) {
	t.Parallel()
	versions := map[string]string{
		"/v1/projects/own/secrets/shop/versions/latest:access":                          `{"user": "ana", "password": "first"}`,
		"/v1/projects/own/secrets/shop/versions/3:access":                               `{"user": "ana", "password": "third"}`,
		"/v1/projects/example.com:other/secrets/text/versions/latest:access":            "of another project",
		"/v1/projects/other/locations/europe-west3/secrets/text/versions/latest:access": "of a region",
		"/v1/projects/own/secrets/bytes/versions/latest:access":                         "\xff\xfe",
		"/v1/projects/own/secrets/empty/versions/latest:access":                         "",
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		value, has := versions[r.URL.Path]
		switch {
		case r.Header.Get("Authorization") != "Bearer "+canary:
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, `{"error": {"code": 401, "status": "UNAUTHENTICATED", "message": "`+r.Header.Get("Authorization")+`"}}`)
		case r.URL.Path == "/v1/projects/own/secrets/closed/versions/latest:access":
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `{"error": {"code": 403, "status": "PERMISSION_DENIED", "message": "`+canary+`"}}`)
		case r.URL.Path == "/v1/projects/own/secrets/odd/versions/latest:access":
			w.WriteHeader(http.StatusNotFound) // of a proxy that does not know the path
		case !has:
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"error": {"code": 404, "status": "NOT_FOUND", "message": "`+canary+`"}}`)
		default:
			fmt.Fprintf(w, `{"name": "x", "payload": {"data": %q}}`, base64.StdEncoding.EncodeToString([]byte(value)))
		}
	}))
	t.Cleanup(server.Close)
	lookup := func(name string) (string, bool) {
		if name != "CLOUDSDK_API_ENDPOINT_OVERRIDES_SECRETMANAGER" {
			return "", false
		}
		return server.URL, true
	}
	sources := func(token, project string) *connection.Sources {
		return &connection.Sources{Now: time.Now, Stores: map[string]connection.SecretStore{"gcp": secretstore.NewSecretManager(lookup, token, project)}}
	}
	own := sources(canary, "own")
	for _, row := range []struct{ name, field, value, problem string }{
		{name: "shop", field: "password", value: "first"},
		{name: "secrets/shop/versions/3", field: "password", value: "third"},
		{name: "projects/example.com:other/secrets/text", value: "of another project"},
		{name: "projects/other/locations/europe-west3/secrets/text", value: "of a region"},
		{name: "nowhere", problem: "Google secret nowhere"},
		{name: "shop/versions/9", problem: "Google secret shop/versions/9"},
		{name: "closed", problem: "Google refuses it: PERMISSION_DENIED"},
		{name: "odd", problem: "Google answered with status 404"},
		{name: "bytes", problem: "the secret has no text"},
		{name: "empty", problem: "the secret has no text"},
		{name: "projects/../secrets/x", problem: "the name must be SECRET or projects/PROJECT/secrets/SECRET"},
	} {
		value, err := own.Read(connection.SecretSource{From: "gcp", Name: row.name, Field: row.field, Refresh: time.Minute}, false)
		if row.problem == "" {
			require.NoError(t, err, row.name)
			require.Equal(t, row.value, value)
			continue
		}
		require.ErrorContains(t, err, row.problem, row.name)
		require.NotContains(t, err.Error(), canary)
		missing := row.name == "nowhere" || row.name == "shop/versions/9"
		require.Equal(t, missing, errors.Is(err, connection.ErrMissing), row.name)
		require.Equal(t, !missing, errors.Is(err, connection.ErrUnreadable), row.name)
	}
	_, err := sources("old", "own").Read(connection.SecretSource{From: "gcp", Name: "shop", Refresh: time.Minute}, false)
	require.ErrorContains(t, err, "Google refuses it: UNAUTHENTICATED")
	_, err = sources(canary, "").Read(connection.SecretSource{From: "gcp", Name: "shop", Refresh: time.Minute}, false)
	require.ErrorContains(t, err, "there is no project: set GOOGLE_CLOUD_PROJECT, or write projects/PROJECT/secrets/shop")
}
