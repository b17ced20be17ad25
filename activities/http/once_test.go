package http_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"reprise/activities"
	"reprise/activities/tooltest"
	"reprise/internal/test/testenv"
	"reprise/interpreter"
)

// breakingServer speaks HTTP/1.1 by hand. It answers until it breaks; from
// then on it reads each request as a whole, counts it, and hangs up.
type breakingServer struct {
	url      string
	accepted atomic.Int64
	requests atomic.Int64 // that came after breaking began
	breaking atomic.Bool
	reset    bool // hangs up with RST
	// together holds the answers back until so many requests have come.
	together sync.WaitGroup
}

func newBreakingServer(t *testing.T, reset bool) *breakingServer {
	t.Helper()

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })

	s := &breakingServer{url: "http://" + listener.Addr().String(), reset: reset}

	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}

			s.accepted.Add(1)

			go s.serve(conn.(*net.TCPConn))
		}
	}()
	return s
}

func (s *breakingServer) serve(conn *net.TCPConn) {
	defer func() { _ = conn.Close() }()

	reader := bufio.NewReader(conn)

	for {
		request, err := http.ReadRequest(reader)
		if err != nil {
			return
		}

		_, _ = io.Copy(io.Discard, request.Body)

		if s.breaking.Load() {
			s.requests.Add(1)

			if s.reset {
				_ = conn.SetLinger(0)
			}
			return
		}

		if request.URL.Path == "/together" {
			s.together.Done()
			s.together.Wait()
		}

		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Type: application/json\r\n\r\n{}")
	}
}

// idle makes n connections that are kept alive.
func (s *breakingServer) idle(t *testing.T, c *activities.Catalogue, n int) {
	t.Helper()
	s.together.Add(n)

	var group errgroup.Group

	for range n {
		group.Go(func() error {
			_, err := tooltest.CallHTTP(t, c, tooltest.Input(map[string]any{"url": s.url + "/together"})(t))
			return err
		})
	}

	require.NoError(t, testenv.WaitResult(t, group.Wait, "the answers to requests at once"))
	require.EqualValues(t, n, s.accepted.Load())
}

// mirrorRedirect redirects everything, method and body kept.
func mirrorRedirect(t *testing.T, to string, count *atomic.Int64) string {
	t.Helper()

	source := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		count.Add(1)
		http.Redirect(w, r, to, http.StatusTemporaryRedirect)
	}))
	t.Cleanup(source.Close)
	return source.URL
}

func ownHTTP(t *testing.T) *activities.Catalogue {
	t.Helper()

	c := activities.NewCatalogue(activities.Resources{})
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// What broke is an outcome, for the policies to decide upon. The transport
// would by itself send again what has been sent, once per idle connection.
func TestHTTPOneAttemptIsOneRequest(t *testing.T) {
	t.Parallel()

	for _, method := range []string{"GET", "HEAD", "OPTIONS", "DELETE", "PUT", "POST", "PATCH"} {
		for _, body := range []any{nil, map[string]any{"id": 1}} {
			for _, key := range []string{"", "op-1"} {
				for _, reset := range []bool{false, true} {
					t.Run(fmt.Sprintf("%s body=%t key=%t reset=%t", method, body != nil, key != "", reset), func(t *testing.T) {
						t.Parallel()

						server, c := newBreakingServer(t, reset), ownHTTP(t)
						server.idle(t, c, 4)
						server.breaking.Store(true)

						in := tooltest.Input(map[string]any{"url": server.url, "method": method, "body": body})(t)
						in.IdempotencyKey = key
						_, err := tooltest.CallHTTP(t, c, in)
						object := tooltest.ErrorObject(t, err)

						require.EqualValues(t, 1, server.requests.Load(), "requests of one attempt")
						require.Equal(t, interpreter.KindConnection, object.Kind)
						require.Equal(t, interpreter.ClassRetryable, object.Class)
						require.Equal(t, map[bool]string{false: "eof", true: "econnreset"}[reset], object.Type, object.Message)
					})
				}
			}
		}
	}
}

// Nor is the request sent again on a new connection.
func TestHTTPOneAttemptIsOneRequestOnTheLastConnection(t *testing.T) {
	t.Parallel()

	server, c := newBreakingServer(t, false), ownHTTP(t)
	server.idle(t, c, 1)
	server.breaking.Store(true)

	_, err := tooltest.CallHTTP(t, c, tooltest.Input(map[string]any{"url": server.url})(t))
	require.Equal(t, interpreter.KindConnection, tooltest.ErrorObject(t, err).Kind)
	require.EqualValues(t, 1, server.requests.Load())
}

// A hop of a redirect is a request of its own, and is sent once too.
func TestHTTPOneRequestPerRedirect(t *testing.T) {
	t.Parallel()

	server, c := newBreakingServer(t, false), ownHTTP(t)
	server.idle(t, c, 4)
	server.breaking.Store(true)

	var redirects atomic.Int64

	source := mirrorRedirect(t, server.url+"/moved", &redirects)
	in := tooltest.Input(map[string]any{"url": source, "method": "POST"})(t)
	in.IdempotencyKey = "op-1"
	_, err := tooltest.CallHTTP(t, c, in)
	object := tooltest.ErrorObject(t, err)

	require.Equal(t, "eof", object.Type, object.Message)
	require.EqualValues(t, 1, redirects.Load())
	require.EqualValues(t, 1, server.requests.Load())
}

func TestHTTPReusesConnections(t *testing.T) {
	t.Parallel()

	server, c := newBreakingServer(t, false), ownHTTP(t)

	for _, method := range []string{"GET", "POST", "PUT", "DELETE", "GET", "POST"} {
		_, err := tooltest.CallHTTP(t, c, tooltest.Input(map[string]any{"url": server.url, "method": method})(t))
		require.NoError(t, err)
	}

	require.EqualValues(t, 1, server.accepted.Load())
}
