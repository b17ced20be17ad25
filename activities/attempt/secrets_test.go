package attempt_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/activities"
	"reprise/activities/tooltest"
	"reprise/interpreter"
)

// An answer that went well and repeats what was sent has stars there, and stays
// as it is otherwise.
func TestAnswersThatRepeatACredentialAreMasked(t *testing.T) {
	t.Parallel()

	var heard string

	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		heard = r.Header.Get("Authorization")
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Sent", heard)
		w.Header().Set("Link", `</next?t=`+url.QueryEscape(heard)+`>; rel="next"`)
		fmt.Fprintf(w, `{"n": 12345678901234567890, "sent": %q, "name": "ana", "who": ["tok/1<23>456"]}`, heard)
	}))
	t.Cleanup(server.Close)

	c := activities.NewCatalogue(activities.Resources{Connections: activities.Connections{
		"bearer": "Bearer: tok/1<23>456", "basic": strings.Replace(server.URL, "http://", "http://ana:open-it-9@", 1), "other": "bearer:else-12345",
	}})
	call := func(auth string) interpreter.ToolResult {
		in := tooltest.Input(map[string]any{"url": server.URL + "/?t=tok%2f1%3C23%3E456"})(t)
		in.Auth = auth
		result, err := tooltest.CallHTTP(t, c, in)
		require.NoError(t, err)
		return result
	}

	result := call("bearer")
	require.Equal(t, "Bearer tok/1<23>456", heard)
	data, _ := result.Data.Data.(map[string]any)
	require.Equal(t, []any{"Bearer ***", "ana", []any{"***"}}, []any{data["sent"], data["name"], data["who"]})
	require.Equal(t, "12345678901234567890", fmt.Sprint(data["n"]))
	require.Equal(t, "Bearer ***", result.Meta.Headers["x-sent"])
	require.Equal(t, server.URL+"/next?t=Bearer+***", result.Meta.Links["next"])
	require.Equal(t, server.URL+"/?t=***", result.Meta.URL)

	result = call("basic")
	require.Equal(t, "Basic "+base64.StdEncoding.EncodeToString([]byte("ana:open-it-9")), heard)
	data, _ = result.Data.Data.(map[string]any)
	require.Equal(t, []any{"Basic ***", "ana", []any{"tok/1<23>456"}}, []any{data["sent"], data["name"], data["who"]},
		"names, and what other connections send, are data")
}

// A connection may be written in any of the ways in which people write it; what
// cannot be understood does not show in the error.
func TestConnectionsThatAreWrittenOtherwise(t *testing.T) {
	t.Parallel()

	var heard http.Header

	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { heard = r.Header }))
	t.Cleanup(server.Close)

	call := func(connection, auth string) error {
		c := activities.NewCatalogue(activities.Resources{Connections: activities.Connections{"api": connection}})
		in := tooltest.Input(map[string]any{"url": server.URL})(t)
		in.Auth = auth
		_, err := tooltest.CallHTTP(t, c, in)
		return err
	}

	for _, connection := range []string{"bearer:tok-123456", "Bearer: tok-123456", " BEARER:\ttok-123456 "} {
		require.NoError(t, call(connection, "api"))
		require.Equal(t, "Bearer tok-123456", heard.Get("Authorization"), connection)
	}

	for _, connection := range []string{"Header: X-Api-Key : tok-123456", "header:x-api-key:tok-123456"} {
		require.NoError(t, call(connection, "api"))
		require.Equal(t, "tok-123456", heard.Get("X-Api-Key"), connection)
	}

	for _, connection := range []string{
		"bearer tok-123456", "Authorization: Bearer tok-123456", "tok-123456", "bearer:", "header: tok-123456", "header:a b: tok-123456",
		"bearer:tok\n-123456", "https://ana:tok-123456@:port", "ftp://ana:tok-123456@host", "basic:ana:tok-123456",
	} {
		object := tooltest.ErrorObject(t, call(connection, "api"))
		require.True(t, object.Final, connection)
		require.Contains(t, object.Message, `connection "api" cannot be used by http`)
		require.NotContains(t, object.Message, "123456")
	}

	for _, auth := range []string{"bearer:tok-123456", "postgres://ana:tok-123456@db/app", "bearer tok-123456"} {
		object := tooltest.ErrorObject(t, call("bearer:x", auth))
		require.Contains(t, object.Message, "auth must be the name of a connection")
		require.NotContains(t, object.Message, "123456")
		require.NotContains(t, object.Message, "REPRISE_AUTH_")
	}
}

// Python has no connection of its own, and is given none; what it finds of one is
// masked all the same.
func TestErrorsOfOtherToolsTellNoSecretEither(t *testing.T) {
	t.Parallel()

	c := activities.NewCatalogue(activities.Resources{
		AllowPython: true, Connections: activities.FirstOf{activities.Connections{"api": "bearer:tok-123456"}},
	})
	t.Cleanup(func() { require.NoError(t, c.Close()) })

	_, err := tooltest.Call(t, c, "python", "python", interpreter.ToolInput{Tool: "python", Step: "score", Fields: tooltest.Fields(map[string]any{
		"code": "def main():\n    raise type('Etok-123456', (Exception,), {})('of tok' + '-123456')\n",
	})})
	object := tooltest.ErrorObject(t, err)
	require.Equal(t, "E***", object.Type)
	require.Equal(t, "E***: of ***", object.Message)
	require.NotContains(t, fmt.Sprint(object.Body.Data), "tok-123456")
}
