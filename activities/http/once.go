package http

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"syscall"
)

// errNotProcessed is the failure of a request that an HTTP/2 server has not
// taken: it reset the stream, or let the connection go.
var errNotProcessed = errors.New("the server refused the request")

// onceTransport sends each request of one attempt once. net/http repeats requests that fail on
// kept-alive connections; here policies decide about that. Only requests that certainly have
// not left this machine are repeated.
type onceTransport struct {
	base http.RoundTripper
	stop context.CancelCauseFunc // ends the context of the attempt's requests
}

// RoundTrip sends the request.
func (o *onceTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	for {
		s := &sending{stop: o.stop}
		ctx := httptrace.WithClientTrace(request.Context(), &httptrace.ClientTrace{
			GetConn:      s.wantConn,
			GotConn:      s.gotConn,
			WroteHeaders: func() { s.wroteHeaders.Store(true) },
		})
		response, err := o.base.RoundTrip(request.WithContext(ctx))
		switch {
		case err == nil:
			return response, nil
		case s.refused:
			return nil, s.brokeError()
		case !s.idle || s.maySent() || ctx.Err() != nil:
			return nil, err
		}
		// Nothing went out on an idle connection that the server had closed.
		if request, err = rewindBody(request); err != nil {
			return nil, err
		}
	}
}

// rewindBody returns the request with its body as it was.
func rewindBody(request *http.Request) (*http.Request, error) {
	if request.Body == nil || request.GetBody == nil {
		return request, nil
	}
	body, err := request.GetBody()
	if err != nil {
		return nil, err
	}
	again := request.WithContext(request.Context())
	again.Body = body
	return again, nil
}

// sending watches one request on its way. Its methods are called in turn by
// the transport, wroteHeaders from another goroutine.
type sending struct {
	stop context.CancelCauseFunc

	conn    net.Conn // nil before there is one
	wire    *wire    // what carries conn; nil where the transport is another's
	start   int64    // bytes that the wire had carried before
	idle    bool     // conn was kept alive from before
	h2      bool
	refused bool // the transport was about to send again

	wroteHeaders atomic.Bool
}

// maySent reports whether some of the request may have reached the server. An
// HTTP/2 connection carries other requests too, so its bytes say nothing.
func (s *sending) maySent() bool {
	switch {
	case s.conn == nil:
		return false
	case s.h2:
		return s.wroteHeaders.Load()
	case s.wire == nil:
		return true
	}
	return s.wire.written.Load() > s.start
}

// wantConn is called before the transport looks for a connection, again if the first one has
// failed.
func (s *sending) wantConn(string) {
	if s.maySent() {
		s.refused = true
		s.stop(errNotProcessed)
	}
}

// gotConn is called when the transport has a connection and before it writes
// to it. A connection of HTTP/1 that must not be written to is closed, as the
// end of the context alone might come too late.
func (s *sending) gotConn(info httptrace.GotConnInfo) {
	wire, h2 := unwrapWire(info.Conn)
	if s.refused && !h2 {
		_ = info.Conn.Close()
	}
	if s.refused {
		return
	}
	s.conn, s.wire, s.h2, s.idle = info.Conn, wire, h2, info.Reused || info.WasIdle
	if wire == nil {
		return
	}
	if s.idle && !h2 && wire.isStale() {
		_ = info.Conn.Close()
	}
	s.start = wire.written.Load()
}

// brokeError returns the error of a request that was not sent again.
func (s *sending) brokeError() error {
	if s.h2 {
		return errNotProcessed
	}
	cause := io.ErrUnexpectedEOF
	if s.wire != nil {
		if err := s.wire.broke.Load(); err != nil {
			cause = *err
		}
	}
	return fmt.Errorf("the connection broke before the response arrived: %w", cause)
}

// wire is a network connection that knows how much was written to it, and why it ended.
type wire struct {
	net.Conn
	written atomic.Int64
	broke   atomic.Pointer[error]
}

// dialOnWires returns a dial function whose connections are wires.
func dialOnWires(dial dialFunc) dialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &wire{Conn: conn}, nil
	}
}

// dialFunc makes a network connection.
type dialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// unwrapWire returns the wire under a connection, nil if there is none.
func unwrapWire(conn net.Conn) (w *wire, h2 bool) {
	for {
		secure, ok := conn.(*tls.Conn)
		if !ok {
			break
		}
		h2 = h2 || secure.ConnectionState().NegotiatedProtocol == "h2"
		conn = secure.NetConn()
	}
	w, _ = conn.(*wire)
	return w, h2
}

func (w *wire) Read(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
	w.recordEnd(err)
	return n, err
}

func (w *wire) Write(p []byte) (int, error) {
	n, err := w.Conn.Write(p)
	w.written.Add(int64(n))
	w.recordEnd(err)
	return n, err
}

func (w *wire) recordEnd(err error) {
	if err != nil {
		w.broke.CompareAndSwap(nil, &err)
	}
}

// isStale reports whether an idle HTTP/1 connection is useless: anything that the server sends
// on it means that it hangs up. The transport notices that too, but maybe only after a request
// was sent.
func (w *wire) isStale() bool {
	conn, ok := w.Conn.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return false
	}
	stale := false
	err = raw.Control(func(fd uintptr) {
		_, _, err := syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		stale = !errors.Is(err, syscall.EAGAIN) && !errors.Is(err, syscall.EINTR)
	})
	return stale || err != nil
}
