package http_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/activities"
	httptool "reprise/activities/http"
	"reprise/activities/tooltest"
	"reprise/internal/test/testenv"
)

// lateConn is a connection whose reader is slow: after the first answer it
// hears nothing more until the connection is closed.
type lateConn struct {
	*net.TCPConn

	reads  atomic.Int64
	once   sync.Once
	closed chan struct{} // by the first Close
	// atEnd is what the reader hears then. Where it is io.EOF, the first Close
	// returns when the reader has given the connection up, with the second.
	atEnd error
	gone  chan struct{}
}

func (c *lateConn) Read(p []byte) (int, error) {
	if c.reads.Add(1) == 1 {
		return c.TCPConn.Read(p)
	}

	<-c.closed
	return 0, c.atEnd
}

func (c *lateConn) Close() error {
	first := false
	c.once.Do(func() { first = true; close(c.closed) })

	switch {
	case !first:
		select {
		case <-c.gone:
		default:
			close(c.gone)
		}
		return net.ErrClosed
	case errors.Is(c.atEnd, io.EOF):
		err := c.TCPConn.Close()
		<-c.gone
		return err
	}
	return c.TCPConn.Close()
}

// hangUpServer answers one request per connection and says nothing of hanging
// up after it.
func hangUpServer(t *testing.T) (url string, requests *atomic.Int64) {
	t.Helper()

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })

	requests = &atomic.Int64{}

	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}

			request, err := http.ReadRequest(bufio.NewReader(conn))
			if err == nil {
				_, _ = io.Copy(io.Discard, request.Body)

				requests.Add(1)

				_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Type: application/json\r\n\r\n{}")
			}

			_ = conn.Close()
		}
	}()
	return "http://" + listener.Addr().String(), requests
}

// hungUp reports whether the other side's end of the connection has arrived.
func hungUp(t *testing.T, conn *net.TCPConn) bool {
	t.Helper()

	raw, err := conn.SyscallConn()
	require.NoError(t, err)

	ended := false

	require.NoError(t, raw.Control(func(fd uintptr) {
		n, _, err := syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		ended = n == 0 && err == nil
	}))
	return ended
}

// A server that hangs up while the connection is idle has not seen the next
// request: it goes out on another connection, whatever its method, also where
// the transport has not noticed yet.
func TestHTTPIdleConnectionThatTheServerClosed(t *testing.T) {
	t.Parallel()

	for name, atEnd := range map[string]error{"unnoticed": net.ErrClosed, "noticed meanwhile": io.EOF} {
		for _, method := range []string{"GET", "POST"} {
			t.Run(name+" "+method, func(t *testing.T) {
				t.Parallel()

				url, requests := hangUpServer(t)

				var conns []*lateConn

				transport := httptool.NewTransport(func(ctx context.Context, network, address string) (net.Conn, error) {
					conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
					if err != nil {
						return nil, err
					}

					conns = append(conns, &lateConn{
						TCPConn: conn.(*net.TCPConn), atEnd: atEnd,
						closed: make(chan struct{}), gone: make(chan struct{}),
					})
					return conns[len(conns)-1], nil
				})
				c := activities.NewCatalogue(activities.Resources{HTTP: activities.HTTPOptions{Transport: transport}})
				in := tooltest.Input(map[string]any{"url": url, "method": method, "body": "x"})(t)

				for sent := 1; sent <= 3; sent++ {
					_, err := tooltest.CallHTTP(t, c, in)
					require.NoError(t, err)
					require.EqualValues(t, sent, requests.Load())
					require.Len(t, conns, sent)
					require.Eventually(t, func() bool { return hungUp(t, conns[sent-1].TCPConn) }, testenv.Within(10*time.Second), time.Millisecond)
				}
			})
		}
	}
}
