package e2e_test

import (
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/base/egress"
	"reprise/internal/test/testenv"
	"reprise/interpreter"
)

// listenAt serves a text at a loopback address, and counts who connects. port "0" is any.
func listenAt(t *testing.T, host, port, text string) (at string, accepted *atomic.Int64) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", net.JoinHostPort(host, port))
	require.NoError(t, err)
	accepted = &atomic.Int64{}
	server := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Connection", "close")
			fmt.Fprint(w, text)
		}),
		ConnState: func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				accepted.Add(1)
			}
		},
	}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	return listener.Addr().String(), accepted
}

// TestEgress: an attempt to an address that the operator's rules exclude ends its call at once, whatever the policies say; a name
// that leads there from the second look on is no way around them. What a connection names is reached.
func TestEgress(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	inside, accepted := listenAt(t, "127.0.0.1", "0", "inside")
	_, port, err := net.SplitHostPort(inside)
	require.NoError(t, err)
	listenAt(t, "127.0.0.2", port, "outside")
	policy, err := egress.Parse(map[string]any{"allow": []any{"127.0.0.2"}}, egress.RemotePolicy())
	require.NoError(t, err)
	policy.Resolver = testenv.NewNameServer(t, func(_ string, n int) []string {
		if n == 1 {
			return []string{"127.0.0.2"}
		}
		return []string{"127.0.0.1"}
	})
	w.resources.Egress = policy
	w.connected["ours"] = "http://" + inside
	w.work()
	result := w.ends("failed", book(`
  - step: first
    tool: http
    url: "http://moves.test:{{ port }}/"
    next: second
  - step: second
    tool: http
    url: "http://moves.test:{{ port }}/"
    retry: [{when: "error is defined", then: {max_attempts: 5, delay: 10ms}}]
`), map[string]any{"port": port})
	require.Equal(t, []any{interpreter.KindConnection, interpreter.ClassFinal, "egress_denied"}, []any{result.Error.Kind, result.Error.Class, result.Error.Type})
	require.Equal(t, "GET http://moves.test:"+port+"/: the worker may not connect to moves.test:"+port+" (127.0.0.1), an address of this machine or a private network; "+
		"to permit it, add \"moves.test:"+port+"\" to allow in the worker's egress file (--egress, REPRISE_EGRESS), or name the host in a connection that the step uses", result.Error.Message)
	require.Equal(t, 1, result.Error.Attempt)
	require.Zero(t, accepted.Load())
	require.Equal(t, "inside", w.completes(book(`
  - step: named
    tool: http
    auth: ours
    url: /
output: "{{ named }}"
`), nil))
	require.EqualValues(t, 1, accepted.Load())
}
