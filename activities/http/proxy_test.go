package http_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/activities"
	httptool "reprise/activities/http"
	"reprise/activities/tooltest"
)

const (
	proxyChild    = "REPRISE_TEST_PROXY_URL" // of the request that a child process makes
	proxyPassword = canary + "-proxy"
)

// TestRequestOfAProxyChild is a process of its own, as the environment is read once.
func TestRequestOfAProxyChild(t *testing.T) {
	target := os.Getenv(proxyChild)
	if target == "" {
		t.Skip("a part of TestProxiesOfTheEnvironment")
	}
	c := activities.NewCatalogue(activities.Resources{Connections: activities.Connections{"api": "bearer:" + canary + "-token"}})
	in := tooltest.Input(map[string]any{"url": target})(t)
	in.Auth = "api"
	result, err := tooltest.CallHTTP(t, c, in)
	told, _ := json.Marshal(map[string]any{"result": result.Data, "error": fmt.Sprint(err)})
	fmt.Printf("TOLD %s\n", told)
}

// viaProxy makes a request in a process with an environment, and gives what it told.
func viaProxy(t *testing.T, target string, environment ...string) string {
	t.Helper()
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestRequestOfAProxyChild$")
	child.Env = append(environment, proxyChild+"="+target)
	output, err := child.CombinedOutput()
	require.NoError(t, err, "%s", output)
	require.Contains(t, string(output), "TOLD ")
	require.NotContains(t, string(output), proxyPassword)
	require.NotContains(t, string(output), canary+"-token")
	return string(output)
}

// TestProxiesOfTheEnvironment: requests go through the proxy that the worker's
// environment names. It is told its own credentials, and of https nothing else; what
// goes wrong with it shows none.
func TestProxiesOfTheEnvironment(t *testing.T) {
	t.Parallel()
	proxy := tooltest.NewRecordingServer(t, "127.0.0.1", func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodConnect {
			w.WriteHeader(http.StatusProxyAuthRequired)
			return
		}
		fmt.Fprint(w, "by proxy")
	})
	address := strings.TrimPrefix(proxy.URL, "http://")
	with := "http://ana:" + proxyPassword + "@" + address
	login := "Proxy-Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte("ana:"+proxyPassword))
	require.Contains(t, viaProxy(t, "http://api.proxied.test/orders", "HTTP_PROXY="+with), "by proxy")
	require.Contains(t, proxy.ReceivedRequests()[0], "GET http://api.proxied.test/orders HTTP/1.1")
	require.Contains(t, proxy.ReceivedRequests()[0], login)
	told := viaProxy(t, "https://api.proxied.test/orders", "HTTPS_PROXY="+with)
	require.Contains(t, told, "Proxy Authentication Required")
	require.Contains(t, proxy.ReceivedRequests()[1], "CONNECT api.proxied.test:443")
	require.Contains(t, proxy.ReceivedRequests()[1], login)
	require.NotContains(t, proxy.ReceivedRequests()[1], canary+"-token")
	direct := tooltest.NewRecordingServer(t, "127.0.0.1", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "direct") })
	require.Contains(t, viaProxy(t, direct.URL, "HTTP_PROXY="+with), "direct", "this machine")
	require.NotContains(t, viaProxy(t, "http://api.proxied.test/", "HTTP_PROXY="+with, "NO_PROXY=.proxied.test"), "by proxy")
	require.Len(t, proxy.ReceivedRequests(), 2)
	for _, wrong := range []string{"http://ana:" + proxyPassword + "@127.0.0.1:1", "http://ana:" + proxyPassword + "%zz@" + address, "http://ana:" + proxyPassword + "@[" + address} {
		told := viaProxy(t, "http://api.proxied.test/", "HTTP_PROXY="+wrong)
		require.NotContains(t, told, "by proxy")
	}
}

// TestNamesThatMove: a name leads elsewhere from one request to the next. A connection
// that is there goes on being used; a new one goes where the name leads, and so do
// credentials, which are for the name.
func TestNamesThatMove(t *testing.T) {
	t.Parallel()
	servers := []*tooltest.RecordingServer{tooltest.NewRecordingServer(t, "127.0.0.1", nil), tooltest.NewRecordingServer(t, "127.0.0.2", nil)}
	var at atomic.Int32
	var names []string
	transport := httptool.NewTransport(func(ctx context.Context, network, address string) (net.Conn, error) {
		names = append(names, address)
		return (&net.Dialer{}).DialContext(ctx, network, servers[at.Load()].Listener.Addr().String())
	})
	c := activities.NewCatalogue(activities.Resources{
		HTTP: activities.HTTPOptions{Transport: transport}, Connections: activities.Connections{"api": "bearer:" + canary + "@http://api.moves.test"},
	})
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	ask := func(url string) error {
		in := tooltest.Input(map[string]any{"url": url})(t)
		in.Auth = "api"
		_, err := tooltest.CallHTTP(t, c, in)
		return err
	}
	require.NoError(t, ask("http://api.moves.test/1"))
	at.Store(1)
	require.NoError(t, ask("http://api.moves.test/2"))
	require.Len(t, servers[0].ReceivedRequests(), 2, "the connection is there")
	servers[0].CloseClientConnections()
	require.NoError(t, ask("http://api.moves.test/3"))
	require.Len(t, servers[1].ReceivedRequests(), 1)
	require.Contains(t, servers[1].ReceivedRequests()[0], "Host: api.moves.test")
	require.Contains(t, servers[1].ReceivedRequests()[0], "Bearer "+canary)
	require.Equal(t, []string{"api.moves.test:80", "api.moves.test:80"}, names)
	for _, elsewhere := range []string{"http://127.0.0.2/", servers[1].URL, "http://api.moves.test.:80/", "http://api.moves.test@127.0.0.2/", "http://API.moves.test:8080/"} {
		require.ErrorContains(t, ask(elsewhere), "is for http://api.moves.test", elsewhere)
	}
	require.Len(t, servers[1].ReceivedRequests(), 1)
}
