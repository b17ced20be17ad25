package ui_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/program/ui"
)

// atSocket serves requests at a socket, and gives it.
func atSocket(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "ui-") // short enough for a socket
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	listener, err := net.Listen("unix", filepath.Join(folder, "ui"))
	require.NoError(t, err)
	serving := &http.Server{Handler: handler} //nolint:gosec // of the test's own
	go func() { _ = serving.Serve(listener) }()
	t.Cleanup(func() { _ = serving.Close() })
	return listener.Addr().String()
}

// TestTemporalUIIsTheOwners: it can do whatever the server can, so it is for who has started the page, and for
// no operator, no viewer and no page elsewhere.
func TestTemporalUIIsTheOwners(t *testing.T) {
	t.Parallel()
	socket := atSocket(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("X-Frame-Options", "SAMEORIGIN")
		_, _ = w.Write([]byte("temporal got " + r.Method + " " + r.RequestURI + " " + string(body) + r.Header.Get("Cookie")))
	})
	server := func(access ui.Access) *ui.Server {
		access.Hosts = []string{"runs.example"}
		return ui.New(ui.Options{Access: access, Temporal: ui.AtSocket(socket)})
	}
	holder := func(token string) (ui.Person, bool) {
		return ui.Person{Name: "ada", Operator: true, Owner: true}, token == "hers"
	}
	owner := ui.Access{Key: key, Owner: "ada"}
	const path = "/temporal/namespaces/default/workflows/a%2Fb%23..%2F%2Fc?query=x"
	for name, row := range map[string]struct {
		access  ui.Access
		cookie  string
		method  string
		headers map[string]string
		host    string
		status  int
		says    string
	}{
		"owner":                         {access: owner, cookie: key, status: http.StatusOK, says: "temporal got GET " + path},
		"owner writes":                  {access: owner, cookie: key, method: http.MethodPost, status: http.StatusOK, says: "temporal got POST " + path + " {}"},
		"owner from a page of Temporal": {access: owner, cookie: key, method: http.MethodPost, headers: map[string]string{"Sec-Fetch-Site": "same-origin", "Origin": "http://runs.example"}, status: http.StatusOK, says: "temporal got POST"},
		"owner by a link elsewhere":     {access: owner, cookie: key, headers: map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, status: http.StatusOK, says: "temporal got GET"},
		"nobody":                        {access: owner, status: http.StatusUnauthorized, says: "Open the link that starter printed."},
		"nobody writes":                 {access: owner, method: http.MethodPost, status: http.StatusUnauthorized, says: "Open the link that starter printed."},
		"a wrong key":                   {access: owner, cookie: key + "x", status: http.StatusUnauthorized, says: "Open the link"},
		"read-only":                     {access: ui.Access{Key: key, Owner: "ada", ReadOnly: true}, cookie: key, status: http.StatusForbidden, says: "It is for the person who has started this page."},
		"read-only writes":              {access: ui.Access{Key: key, Owner: "ada", ReadOnly: true}, cookie: key, method: http.MethodPost, status: http.StatusForbidden, says: "It is for the person who has started this page."},
		"operator with a token":         {access: ui.Access{Holder: holder}, cookie: "hers", status: http.StatusForbidden, says: "It is for the person who has started this page."},
		"form of another site":          {access: owner, cookie: key, method: http.MethodPost, headers: map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Origin": "http://evil.example"}, status: http.StatusForbidden, says: "Pages of other sites"},
		"page of another port":          {access: owner, cookie: key, headers: map[string]string{"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "no-cors"}, status: http.StatusForbidden, says: "Pages of other sites"},
		"older browser":                 {access: owner, cookie: key, method: http.MethodPost, headers: map[string]string{"Origin": "http://evil.example"}, status: http.StatusForbidden, says: "Pages of other sites"},
		"a name that leads here":        {access: owner, cookie: key, host: "evil.example", status: http.StatusMisdirectedRequest, says: "does not accept the host name"},
	} {
		method, body := http.MethodGet, ""
		if row.method != "" {
			method, body = row.method, "{}"
		}
		request := httptest.NewRequest(method, path, strings.NewReader(body))
		request.Host, request.RemoteAddr = "runs.example", "10.0.0.7:4000"
		if row.host != "" {
			request.Host = row.host
		}
		if row.cookie != "" {
			request.AddCookie(&http.Cookie{Name: "reprise_web", Value: row.cookie})
		}
		for header, value := range row.headers {
			request.Header.Set(header, value)
		}
		answer := httptest.NewRecorder()
		server(row.access).ServeHTTP(answer, request)
		require.Equal(t, row.status, answer.Code, "%s: %s", name, answer.Body)
		require.Contains(t, answer.Body.String(), row.says, name)
		require.NotContains(t, answer.Body.String(), "reprise_web", name)
		if row.status == http.StatusOK {
			require.Equal(t, []string{"SAMEORIGIN"}, answer.Header().Values("X-Frame-Options"), "it has frames of its own")
		}
	}
	for access, shown := range map[*ui.Access]bool{&owner: true, {Key: key, ReadOnly: true}: false} {
		request := httptest.NewRequest(http.MethodGet, nowhere, nil)
		request.AddCookie(&http.Cookie{Name: "reprise_web", Value: key})
		_, page := visits(server(*access), "10.0.0.7:4000", request)
		require.Equal(t, shown, strings.Contains(page, `href="/temporal/"`), "%s", page)
	}
}

// TestRequestsToTemporalAreBounded passes mostToTemporal: the page forwards what anybody with its key sends.
func TestRequestsToTemporalAreBounded(t *testing.T) {
	t.Parallel()
	const mostToTemporal = 8 << 20
	socket := atSocket(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = fmt.Fprintf(w, "%d bytes", len(body))
	})
	server := ui.New(ui.Options{Access: ui.Access{Key: key, Owner: "ada", Hosts: []string{"runs.example"}}, Temporal: ui.AtSocket(socket)})
	for size, status := range map[int]int{mostToTemporal: http.StatusOK, mostToTemporal + 1: http.StatusBadGateway} {
		request := httptest.NewRequest(http.MethodPost, "/temporal/api", strings.NewReader(strings.Repeat("x", size)))
		request.Host, request.RemoteAddr = "runs.example", "10.0.0.7:4000"
		request.AddCookie(&http.Cookie{Name: "reprise_web", Value: key})
		answer := httptest.NewRecorder()
		server.ServeHTTP(answer, request)
		require.Equal(t, status, answer.Code, answer.Body)
	}
}

// TestTheLinkHasTheQuery: the key leaves the address, and nothing else does.
func TestTheLinkHasTheQuery(t *testing.T) {
	t.Parallel()
	server := ui.New(ui.Options{Access: ui.Access{Key: key, Hosts: []string{"runs.example"}}, Temporal: ui.AtSocket("/nowhere/ui")})
	for path, to := range map[string]string{
		"/?key=" + key: `0; url=/"`,
		"/temporal/namespaces/d/workflows?query=a%3Db&key=" + key: `0; url=/temporal/namespaces/d/workflows?query=a%3Db"`,
	} {
		_, page := visits(server, "10.0.0.7:4000", httptest.NewRequest(http.MethodGet, "http://runs.example"+path, nil))
		require.Contains(t, page, to, path)
		require.NotContains(t, page, key)
	}
}
