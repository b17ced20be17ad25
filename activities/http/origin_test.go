package http_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/activities"
	"reprise/activities/tooltest"
	"reprise/interpreter"
	"reprise/interpreter/expression"
)

// The canaries are looked for in all that a host received.
const (
	canary      = "canary-5ecret"
	canaryBody  = "canary-b0dy"
	canaryQuery = "canary-query"
)

// secretHeaders are what an author sends that is for one host.
func secretHeaders() map[string]any {
	return map[string]any{
		"X-Author": canary, "Cookie": "a=" + canary, "Referer": "https://x.test/" + canary, "Accept": "text/" + canary,
	}
}

// forms are the connections that can be for any host, and what they send.
var forms = map[string]string{
	"bearer": "bearer:" + canary, "header": "header:X-Api-Key: " + canary,
}

func TestHTTPCredentialsGoToTheHostOfTheFirstRequest(t *testing.T) {
	t.Parallel()

	first, other := tooltest.NewRecordingServer(t, "127.0.0.1", nil), tooltest.NewRecordingServer(t, "127.0.0.2", nil)
	c := activities.NewCatalogue(activities.Resources{Connections: activities.Connections(forms)})
	t.Cleanup(func() { require.NoError(t, c.Close()) })

	localhost := strings.Replace(first.URL, "127.0.0.1", "localhost", 1)

	for name := range forms {
		for _, kind := range []string{"http", "http.write"} {
			send := func(url, origin string) (interpreter.ToolResult, error) {
				in := tooltest.Input(map[string]any{"url": url, "headers": secretHeaders(), "body": canaryBody, "method": "POST"})(t)
				in.Auth, in.Origin = name, origin
				return tooltest.Call(t, c, kind, "http", in)
			}

			_, err := send(first.URL+"/2", strings.ToUpper(first.URL[:4])+first.URL[4:])
			require.NoError(t, err)

			for origin, target := range map[string]string{
				first.URL: other.URL, localhost: other.URL, strings.Replace(other.URL, "http", "https", 1): other.URL,
				"http://127.0.0.2:1": other.URL,
			} {
				_, err := send(target+"/page?x="+canaryQuery, origin)
				object := tooltest.ErrorObject(t, err)

				require.True(t, object.Final, "%s to %s", origin, target)
				require.Equal(t, interpreter.ClassFinal, object.Class)
				require.Contains(t, object.Message, "the call started at "+origin)
				require.Contains(t, object.Message, "are not sent to "+target)
				require.Contains(t, object.Message, "add the host to the connection")
				require.Contains(t, object.Message, "remove auth")
				require.NotContains(t, object.Message, canary)
				require.NotContains(t, object.Message, canaryQuery)
			}
		}
	}

	require.Empty(t, other.ReceivedRequests())
	require.Len(t, first.ReceivedRequests(), 2*len(forms))
	require.Contains(t, strings.Join(first.ReceivedRequests(), ""), canary)
}

func TestHTTPConnectionsNameTheirHost(t *testing.T) {
	t.Parallel()

	home, other := tooltest.NewRecordingServer(t, "127.0.0.1", nil), tooltest.NewRecordingServer(t, "127.0.0.2", nil)
	c := activities.NewCatalogue(activities.Resources{Connections: activities.Connections{
		"bearer": "bearer:" + canary + "@" + home.URL,
		"header": "header:X-Api-Key: ana@" + canary + "@" + home.URL + "/v1/",
		"basic":  strings.Replace(home.URL, "http://", "http://ana:"+canary+"@", 1),
		"tls":    "bearer:" + canary + "@" + strings.Replace(other.URL, "http://", "https://", 1),
	}})
	t.Cleanup(func() { require.NoError(t, c.Close()) })

	send := func(name, url, origin string) error {
		in := tooltest.Input(map[string]any{"url": url})(t)
		in.Auth, in.Origin = name, origin
		_, err := tooltest.CallHTTP(t, c, in)
		return err
	}

	for _, name := range []string{"bearer", "header", "basic"} {
		require.NoError(t, send(name, home.URL+"/x", ""))
		require.NoError(t, send(name, home.URL+"/x", other.URL), "the connection says where its credentials go")
		require.NoError(t, send(name, "patients", ""))

		object := tooltest.ErrorObject(t, send(name, other.URL+"/x", other.URL))
		require.True(t, object.Final)
		require.Contains(t, object.Message, fmt.Sprintf("connection %q is for %s, and its credentials are not sent to %s", name, home.URL, other.URL))
		require.NotContains(t, object.Message, canary)
	}

	require.True(t, tooltest.ErrorObject(t, send("tls", other.URL, other.URL)).Final, "never in clear text")
	require.Empty(t, other.ReceivedRequests())

	seen := strings.Join(home.ReceivedRequests(), "")
	require.Contains(t, seen, "Authorization: Bearer "+canary+"\r\n")
	require.Contains(t, seen, "X-Api-Key: ana@"+canary+"\r\n")
	require.Contains(t, seen, "GET /v1/patients HTTP/1.1")
}

// What stands behind the last @ must be a host, or nobody knows what was meant.
func TestHTTPConnectionsWithADoubtfulHostAreRefused(t *testing.T) {
	t.Parallel()

	server := tooltest.NewRecordingServer(t, "127.0.0.1", nil)

	for _, raw := range []string{
		"bearer:" + canary + "@https://", "bearer:" + canary + "@https://ana:pw@api.test", "bearer:@https://api.test",
		"bearer:" + canary + "@http://api.test?x=1", "header:X: " + canary + "@https://a b", "header:X:@https://api.test", "https://api.test?key=" + canary, "https://ann:" + canary + "@api.test/v1?x=1", "https://api.test/#" + canary,
		"bearer:" + canary + "@HTTPS://api.test#x",
	} {
		c := activities.NewCatalogue(activities.Resources{Connections: activities.Connections{"api": raw}})
		in := tooltest.Input(map[string]any{"url": server.URL})(t)
		in.Auth = "api"
		_, err := tooltest.CallHTTP(t, c, in)
		object := tooltest.ErrorObject(t, err)

		require.True(t, object.Final, raw)
		require.Contains(t, object.Message, "cannot be used by http", raw)
		require.NotContains(t, object.Message, canary)
	}

	require.Empty(t, server.ReceivedRequests())
}

func TestHTTPRedirectsToAnotherHostCarryNothing(t *testing.T) {
	t.Parallel()

	for _, status := range []int{301, 302, 303, 307, 308} {
		for name := range forms {
			for _, relative := range []bool{false, true} {
				t.Run(fmt.Sprint(status, name, relative), func(t *testing.T) {
					t.Parallel()

					other := tooltest.NewRecordingServer(t, "127.0.0.2", nil)
					first := tooltest.NewRecordingServer(t, "127.0.0.1", tooltest.RedirectTo(status, func() string {
						if relative {
							return strings.TrimPrefix(other.URL, "http:") + "/taken"
						}
						return other.URL + "/taken"
					}))

					c := activities.NewCatalogue(activities.Resources{Connections: activities.Connections(forms)})
					t.Cleanup(func() { require.NoError(t, c.Close()) })

					headers := secretHeaders()
					headers["Host"] = canary + ".test"

					in := tooltest.Input(map[string]any{"url": first.URL + "/?x=" + canaryQuery, "headers": headers, "method": "DELETE"})(t)
					if status < 303 {
						in.Fields["method"] = expression.Of("GET")
					}
					in.Auth, in.Origin, in.IdempotencyKey = name, first.URL, "op-"+canary
					_, err := tooltest.CallHTTP(t, c, in)
					require.NoError(t, err)

					in = tooltest.Input(map[string]any{"url": first.URL + "/?x=" + canaryQuery, "headers": headers})(t)
					in.Auth, in.Origin, in.IdempotencyKey = name, first.URL, "op-"+canary
					in.Result = tooltest.Value(canaryBody)
					_, err = tooltest.Call(t, c, "http.write", "http", in)

					if status < 303 {
						object := tooltest.ErrorObject(t, err)
						require.Equal(t, "redirect", object.Type)
						require.Contains(t, object.Message, "POST "+first.URL+"/ redirects (HTTP ")
						require.NotContains(t, object.Message, "canary")
						require.Len(t, other.ReceivedRequests(), 1)
					} else if status >= 307 {
						object := tooltest.ErrorObject(t, err)
						require.Equal(t, []any{interpreter.KindHTTP, interpreter.ClassFinal, "redirects"}, []any{object.Kind, object.Class, object.Type})
						require.Contains(t, object.Message, "would send the body from POST "+first.URL+"/ to "+other.URL)
						require.NotContains(t, object.Message, "canary")
						require.Len(t, other.ReceivedRequests(), 1)
					} else {
						require.NoError(t, err)
						require.Len(t, other.ReceivedRequests(), 2)
					}

					seen := strings.Join(other.ReceivedRequests(), "")
					require.Contains(t, seen, "/taken HTTP/1.1")
					require.NotContains(t, seen, "canary")
					require.NotContains(t, seen, "Referer")
					require.Contains(t, seen, "Host: "+strings.TrimPrefix(other.URL, "http://"))
					require.Contains(t, seen, "Accept: application/json")
					require.Contains(t, seen, "User-Agent: reprise")
				})
			}
		}
	}
}

// A host that sends the request back may not choose what is asked there with
// the credentials.
func TestHTTPRedirectsThatComeBackCarryNothing(t *testing.T) {
	t.Parallel()

	var first, other *tooltest.RecordingServer

	first = tooltest.NewRecordingServer(t, "127.0.0.1", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			http.Redirect(w, r, other.URL, http.StatusFound)
		}
	})
	other = tooltest.NewRecordingServer(t, "127.0.0.2", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, first.URL+"/admin", http.StatusFound)
	})

	c := activities.NewCatalogue(activities.Resources{Connections: activities.Connections(forms)})
	t.Cleanup(func() { require.NoError(t, c.Close()) })

	in := tooltest.Input(map[string]any{"url": first.URL, "headers": secretHeaders()})(t)
	in.Auth = "header"
	_, err := tooltest.CallHTTP(t, c, in)
	require.NoError(t, err)

	seen := first.ReceivedRequests()
	require.Len(t, seen, 2)
	require.Contains(t, seen[0], canary)
	require.Contains(t, seen[1], "GET /admin")
	require.NotContains(t, seen[1], "canary")
}

// On the way to the same host everything stays.
func TestHTTPRedirectsWithinAHostRepeatTheRequest(t *testing.T) {
	t.Parallel()

	server := tooltest.NewRecordingServer(t, "127.0.0.1", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			http.Redirect(w, r, "/moved", http.StatusTemporaryRedirect)
		}
	})

	c := activities.NewCatalogue(activities.Resources{Connections: activities.Connections(forms)})
	t.Cleanup(func() { require.NoError(t, c.Close()) })

	in := tooltest.Input(map[string]any{"url": server.URL, "method": "POST", "body": canaryBody, "headers": map[string]any{"X-Author": "mine"}})(t)
	in.Auth, in.IdempotencyKey = "header", "op-1"
	_, err := tooltest.CallHTTP(t, c, in)
	require.NoError(t, err)

	moved := server.ReceivedRequests()[1]
	for _, repeated := range []string{"POST /moved", "X-Api-Key: " + canary, "X-Author: mine", "Idempotency-Key: op-1", canaryBody} {
		require.Contains(t, moved, repeated)
	}
}

func TestHTTPRedirectsToOtherSchemesAreFinal(t *testing.T) {
	t.Parallel()

	for _, location := range []string{"ftp://" + canary + ".test/x", "file:///etc/passwd", "javascript:alert(1)", "http:///x"} {
		server := tooltest.NewRecordingServer(t, "127.0.0.1", tooltest.RedirectTo(http.StatusFound, func() string { return location }))
		_, err := tooltest.CallHTTP(t, activities.DefaultCatalogue(), tooltest.Input(map[string]any{"url": server.URL})(t))
		object := tooltest.ErrorObject(t, err)

		require.Equal(t, []any{interpreter.KindHTTP, interpreter.ClassFinal, "redirects"}, []any{object.Kind, object.Class, object.Type}, location)
		require.Contains(t, object.Message, "a URL that is not http or https")
		require.NotContains(t, object.Message, canary)
	}
}

// From https to http is another host: nothing of the request is sent in clear
// text.
func TestHTTPRedirectsToClearTextCarryNothing(t *testing.T) {
	t.Parallel()

	clear := tooltest.NewRecordingServer(t, "127.0.0.1", nil)
	secure := httptest.NewTLSServer(tooltest.RedirectTo(http.StatusFound, func() string { return clear.URL }))
	t.Cleanup(secure.Close)

	c := activities.NewCatalogue(activities.Resources{
		Connections: activities.Connections(forms), HTTP: activities.HTTPOptions{Transport: secure.Client().Transport},
	})
	in := tooltest.Input(map[string]any{"url": secure.URL + "/?" + canaryQuery, "headers": secretHeaders()})(t)
	in.Auth, in.Origin = "bearer", secure.URL
	_, err := tooltest.CallHTTP(t, c, in)
	require.NoError(t, err)

	require.Len(t, clear.ReceivedRequests(), 1)
	require.NotContains(t, clear.ReceivedRequests()[0], "canary")
}
