package ui_test

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/program/ui"
)

// key is that of the link to the pages.
const key = "the-key-of-the-link"

// nowhere is a page that needs no server of Temporal.
const nowhere = "/nowhere"

// visits answers a request from an address.
func visits(server *ui.Server, from string, request *http.Request) (status int, body string) {
	request.RemoteAddr, request.Host = from, "runs.example"
	answer := httptest.NewRecorder()
	server.ServeHTTP(answer, request)
	return answer.Code, answer.Body.String()
}

// TestUserHeader: a name counts from a proxy that is trusted, and from nobody else.
func TestUserHeader(t *testing.T) {
	t.Parallel()
	const header = "X-Forwarded-User"
	server := ui.New(ui.Options{Access: ui.Access{
		UserHeader: header, Proxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/24")}, Hosts: []string{"runs.example"},
	}})
	for name, row := range map[string]struct {
		from  string
		names []string
		who   string // "" for nobody
	}{
		"proxy":                {"10.0.0.7:4000", []string{"ada"}, "ada"},
		"proxy over IPv6":      {"[::ffff:10.0.0.7]:4000", []string{"ada"}, "ada"},
		"another machine":      {"10.0.1.7:4000", []string{"ada"}, ""},
		"no name":              {"10.0.0.7:4000", nil, ""},
		"two names":            {"10.0.0.7:4000", []string{"ada", "eve"}, ""},
		"a name without end":   {"10.0.0.7:4000", []string{strings.Repeat("a", 201)}, ""},
		"a name that is blank": {"10.0.0.7:4000", []string{"  "}, ""},
	} {
		request := httptest.NewRequest(http.MethodGet, nowhere, nil)
		request.Header[header] = row.names
		status, body := visits(server, row.from, request)
		if row.who == "" {
			require.Equal(t, http.StatusUnauthorized, status, name)
			require.Contains(t, body, "You are not signed in.", name)
			continue
		}
		require.Equal(t, http.StatusNotFound, status, name)
		require.Contains(t, body, "<bdi>"+row.who+"</bdi></span>", name)
	}
}

// TestReadOnly: with --read-only an operator is a viewer, who presses nothing.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	for _, readOnly := range []bool{false, true} {
		server := ui.New(ui.Options{Access: ui.Access{
			Holder: func(token string) (ui.Person, bool) { return ui.Person{Name: "ada", Operator: true}, token == "hers" },
			Hosts:  []string{"runs.example"}, ReadOnly: readOnly,
		}})
		signedIn := func(method, path string, form url.Values) *http.Request {
			request := httptest.NewRequest(method, path, strings.NewReader(form.Encode()))
			request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			request.AddCookie(&http.Cookie{Name: "reprise_web", Value: "hers"})
			return request
		}
		_, body := visits(server, "10.0.0.7:4000", signedIn(http.MethodGet, nowhere, nil))
		require.Equal(t, readOnly, strings.Contains(body, "<bdi>ada</bdi> (viewer)"), "%s", body)
		token := regexp.MustCompile(`name="token" value="([^"]+)"`).FindStringSubmatch(body)
		require.NotNil(t, token, "%s", body)
		for _, path := range []string{"/runs/nightly/do", "/inbox/nightly", "/schedules/nightly"} {
			form := url.Values{"token": {token[1]}, "command": {"none"}, "step": {""}}
			if readOnly {
				status, body := visits(server, "10.0.0.7:4000", signedIn(http.MethodPost, path, form))
				require.Equal(t, http.StatusForbidden, status, path)
				require.Contains(t, body, "You can see runs here, but not change them.", path)
			}
		}
		if !readOnly { // the command of the form is looked at then
			status, body := visits(server, "10.0.0.7:4000", signedIn(http.MethodPost, "/runs/nightly/do", url.Values{"token": {token[1]}, "command": {"none"}}))
			require.Equal(t, http.StatusBadRequest, status)
			require.Contains(t, body, "There is no such command.")
		}
	}
}

// TestADefectOfAPage: a page that panics is an error, and not a connection that is cut.
func TestADefectOfAPage(t *testing.T) {
	t.Parallel()
	server := ui.New(ui.Options{
		Access:  ui.Access{Key: key, Owner: "ada", Hosts: []string{"runs.example"}},
		Library: &ui.Library{Names: func() []string { panic("not a folder") }},
	})
	request := httptest.NewRequest(http.MethodGet, "/playbooks", nil)
	request.AddCookie(&http.Cookie{Name: "reprise_web", Value: key})
	status, body := visits(server, "10.0.0.7:4000", request)
	require.Equal(t, http.StatusInternalServerError, status)
	require.Contains(t, body, "The page has a defect: not a folder.")
}
