package http_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/activities"
	"reprise/activities/tooltest"
)

// TestEscapesOfAPath: what an author escapes stays escaped, whatever else in the path has to be escaped for them (RFC 3986, section 2.4).
func TestEscapesOfAPath(t *testing.T) {
	t.Parallel()
	sent := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent = r.RequestURI
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(server.Close)
	c := activities.NewCatalogue(activities.Resources{MaxResponseBytes: 1 << 20})
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	for _, test := range []struct{ url, want string }{
		{"/files/a%2Fb", "/files/a%2Fb"},
		{"/files/my report/a%2Fb", "/files/my%20report/a%2Fb"},
		{"/files/é/a%2Fb", "/files/%C3%A9/a%2Fb"},
		{"/files/a b%20c%2fd", "/files/a%20b%20c%2fd"},
		{"/a b(1)/%2e", "/a%20b(1)/%2e"},
		{`/a"b\c|d/%2F`, "/a%22b%5Cc%7Cd/%2F"},
		{"/a;b=1/c,d/x y/%3B", "/a;b=1/c,d/x%20y/%3B"},
	} {
		_, err := tooltest.CallHTTP(t, c, tooltest.Input(map[string]any{"url": server.URL + test.url})(t))
		require.NoError(t, err, test.url)
		require.Equal(t, test.want, sent)
	}
}
