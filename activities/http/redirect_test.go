package http_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/activities"
	"reprise/activities/tooltest"
	"reprise/interpreter"
)

// TestHTTPRedirectsOfOtherMethods: a request arrives as it was made, or is an error. Only the server of a 303 asks for a GET.
func TestHTTPRedirectsOfOtherMethods(t *testing.T) {
	t.Parallel()
	for _, place := range []string{"http", "http.write", "webhook"} {
		for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE"} {
			for status, want := range map[int]string{301: "", 302: "", 303: "GET ", 307: method + ` {"q":1}`, 308: method + ` {"q":1}`} {
				t.Run(fmt.Sprint(place, method, status), func(t *testing.T) {
					t.Parallel()
					server, received := redirecting(t, status, "/there")
					fields := map[string]any{"url": server.URL + "/here?key=1", "method": method, "body": map[string]any{"q": 1}}
					in := tooltest.Input(fields)(t)
					if place == "webhook" {
						in = tooltest.Input(map[string]any{"on_start": fields})(t)
						in.Sends = "on_start"
					}
					in.Result = tooltest.Value("unused: the sink has a body")
					_, err := tooltest.Call(t, activities.DefaultCatalogue(), place, strings.TrimSuffix(place, ".write"), in)
					if want != "" {
						require.NoError(t, err)
						require.Equal(t, []string{want}, received())
						return
					}
					object := tooltest.ErrorObject(t, err)
					require.Equal(t, []any{interpreter.ClassFinal, "redirect"}, []any{object.Class, object.Type})
					require.Equal(t, fmt.Sprintf("%s %s/here redirects (HTTP %d) to %s/there, and following it would send a GET without the body; "+
						"use that URL", method, server.URL, status, server.URL), object.Message)
					require.Empty(t, received())
				})
			}
		}
	}
}

// TestHTTPNotesDoubtfulAnswers: a redirect that loses the query, a body that is missing, and elements that are lists in some places are noted.
func TestHTTPNotesDoubtfulAnswers(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/lost":
			http.Redirect(w, r, "/there", http.StatusFound)
		case "/kept":
			http.Redirect(w, r, "/there?"+r.URL.RawQuery, http.StatusFound)
		case "/empty":
		case "/mixed":
			w.Header().Set("Content-Type", "application/xml")
			_, _ = io.WriteString(w, "<r><i><t>a</t><u>1</u></i><i><t>a</t><t>b</t><u>2</u></i><i/></r>")
		case "/none":
			w.WriteHeader(http.StatusNoContent)
		default:
			_, _ = io.WriteString(w, "[]")
		}
	}))
	t.Cleanup(server.Close)
	for of, says := range map[string]string{
		"GET /lost?since=1": " redirects to " + server.URL + "/there without the query",
		"GET /mixed":        "/mixed has t once in some elements i, where it is a value, and several times in others, where it is a list; to make it a list in all, write xml: {lists: [i/t]}",
		"GET /lost":         "", "GET /kept?since=1": "", "GET /none": "", "POST /empty": "", "GET /there?since=1": "",
		"GET /empty": "returned HTTP 200 with an empty body, which counts as no rows, although its Content-Type is application/json",
	} {
		method, path, _ := strings.Cut(of, " ")
		in := tooltest.Input(map[string]any{"url": server.URL + path, "method": method})(t)
		result, err := tooltest.Call(t, activities.DefaultCatalogue(), "http", "http", in)
		require.NoError(t, err, of)
		require.Equal(t, says == "", len(result.Meta.Notes) == 0, "%s: %v", of, result.Meta.Notes)
		require.Contains(t, strings.Join(result.Meta.Notes, ""), says)
	}
}

// redirecting answers each path but one by a redirect to that one, and gives what came there.
func redirecting(t *testing.T, status int, to string) (server *httptest.Server, received func() []string) {
	t.Helper()
	var mu sync.Mutex
	var all []string
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != to {
			w.Header().Set("Location", to)
			w.WriteHeader(status)
			return
		}
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		all = append(all, r.Method+" "+string(body))
	}))
	t.Cleanup(server.Close)
	return server, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return all
	}
}

// TestHTTPRedirectWithoutAddress: what a redirect has as its body is no answer, unless the author reads redirects.
func TestHTTPRedirectWithoutAddress(t *testing.T) {
	t.Parallel()
	for status, says := range map[int]string{
		300: "HTTP 300, a redirect with no single location", 301: "redirects (HTTP 301) without a Location header", 305: "HTTP 305, a redirect",
		307: "redirects (HTTP 307) without a Location header", 399: "HTTP 399, a redirect",
	} {
		server := tooltest.AnsweringServer(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, "moved")
		})
		_, err := tooltest.CallHTTP(t, activities.DefaultCatalogue(), tooltest.Input(map[string]any{"url": server})(t))
		require.Equal(t, "redirect", tooltest.ErrorObject(t, err).Type)
		require.ErrorContains(t, err, says)
		result, err := tooltest.CallHTTP(t, activities.DefaultCatalogue(), tooltest.Input(map[string]any{"url": server, "follow_redirects": false})(t))
		require.NoError(t, err)
		require.Equal(t, "moved", result.Data.Data)
	}
}

// TestHTTPAddressesBelowAConnection: relative addresses begin below the connection's path, and those of a next_call at the request
// before it.
func TestHTTPAddressesBelowAConnection(t *testing.T) {
	t.Parallel()
	server := tooltest.NewRecordingServer(t, "127.0.0.1", nil)
	for _, test := range []struct {
		base, url string
		next      bool
		want      string // "" for an error
	}{
		{base: "/base/v3", url: "items", want: "/base/v3/items"},
		{base: "/base/v3", url: "/items", want: "/base/v3/items"},
		{base: "/base/v3/", url: "items", want: "/base/v3/items"},
		{base: "/base/v3/", url: "/items", want: "/base/v3/items"},
		{base: "/base/v3", url: "./items", want: "/base/v3/items"},
		{base: "/base/v3", url: "items/?a=1", want: "/base/v3/items/?a=1"},
		{base: "/base/v3", url: "?a=1", want: "/base/v3?a=1"},
		{base: "/base/v3", url: "/", want: "/base/v3/"},
		{base: "/base/v3", url: "/?a=1", want: "/base/v3/?a=1"},
		{base: "/base/v3", url: "a/../items", want: "/base/v3/items"},
		{base: "/base/v3", url: "/items:export", want: "/base/v3/items:export"},
		{base: "/a%2Fb", url: "/c%2Fd", want: "/a%2Fb/c%2Fd"},
		{base: "", url: "items", want: "/items"},
		{base: "/", url: "/items", want: "/items"},
		{base: "/base/v3", url: "../v2/items"},
		{base: "/base/v3", url: "/../../items"},
		{base: "/base/v3", url: "HOST/other", want: "/other"},
		{base: "/base/v3", url: "/base/v3/items?page=2", next: true, want: "/base/v3/items?page=2"},
		{base: "/base/v3", url: "./items?page=2", next: true, want: "/base/v3/items?page=2"},
		{base: "/base/v3", url: "./../v2/items", next: true, want: "/base/v2/items"},
	} {
		for name, connection := range map[string]string{
			"bearer": "bearer:T@" + server.URL + test.base,
			"header": "header:X-Key: T@" + server.URL + test.base,
			"basic":  strings.Replace(server.URL, "http://", "http://u:p@", 1) + test.base,
		} {
			c := activities.NewCatalogue(activities.Resources{Connections: activities.Connections{"api": connection}})
			in := tooltest.Input(map[string]any{"url": strings.Replace(test.url, "HOST", server.URL, 1)})(t)
			in.Auth, in.NextURL = "api", test.next
			before := len(server.ReceivedRequests())
			_, err := tooltest.CallHTTP(t, c, in)
			if test.want == "" {
				require.ErrorContains(t, err, "which is outside "+server.URL+"/base/v3", "%s %+v", name, test)
				require.Len(t, server.ReceivedRequests(), before)
				continue
			}
			require.NoError(t, err, "%s %+v", name, test)
			require.Contains(t, server.ReceivedRequests()[before], "GET "+test.want+" HTTP/1.1", "%s %+v", name, test)
			require.NoError(t, c.Close())
		}
	}
}
