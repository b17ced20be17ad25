package http_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"reprise/activities"
	httptool "reprise/activities/http"
	"reprise/activities/tooltest"
	"reprise/interpreter"
)

// http2Server speaks HTTP/2 by hand: it answers the first request of its first
// connection, and breaks says what becomes of every other.
type http2Server struct {
	url      string
	roots    *x509.CertPool
	config   *tls.Config
	accepted atomic.Int64
	requests atomic.Int64 // after the first
	breaks   func(f *http2.Framer, stream uint32) (goOn bool)
}

func newHTTP2Server(t *testing.T, breaks func(*http2.Framer, uint32) bool) *http2Server {
	t.Helper()

	certified := httptest.NewUnstartedServer(nil)
	certified.StartTLS()
	t.Cleanup(certified.Close)

	s := &http2Server{roots: x509.NewCertPool(), breaks: breaks}
	s.roots.AddCert(certified.Certificate())
	s.config = &tls.Config{Certificates: certified.TLS.Certificates, NextProtos: []string{"h2"}}

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })

	s.url = "https://" + listener.Addr().String()

	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}

			go s.serve(tls.Server(conn, s.config), s.accepted.Add(1) == 1)
		}
	}()
	return s
}

func (s *http2Server) serve(conn net.Conn, first bool) {
	defer conn.Close()

	preface := make([]byte, len(http2.ClientPreface))
	if _, err := io.ReadFull(conn, preface); err != nil {
		return
	}

	f := http2.NewFramer(conn, conn)
	_ = f.WriteSettings()

	for {
		frame, err := f.ReadFrame()
		if err != nil {
			return
		}

		switch frame := frame.(type) {
		case *http2.SettingsFrame:
			if !frame.IsAck() {
				_ = f.WriteSettingsAck()
			}
		case *http2.HeadersFrame:
			if first {
				first = false

				answerHTTP2(f, frame.StreamID)

				continue
			}

			s.requests.Add(1)

			if !s.breaks(f, frame.StreamID) {
				return
			}
		}
	}
}

func answerHTTP2(f *http2.Framer, stream uint32) {
	var block bytes.Buffer

	encoder := hpack.NewEncoder(&block)
	_ = encoder.WriteField(hpack.HeaderField{Name: ":status", Value: "200"})
	_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: block.Bytes(), EndHeaders: true, EndStream: true})
}

// What an HTTP/2 server does not answer is not sent again, whatever the server
// says of it. The transport would repeat some without an end.
func TestHTTP2OneAttemptIsOneRequest(t *testing.T) {
	t.Parallel()

	reset := func(code http2.ErrCode) func(*http2.Framer, uint32) bool {
		return func(f *http2.Framer, stream uint32) bool {
			_ = f.WriteRSTStream(stream, code)
			return true
		}
	}

	for name, breaks := range map[string]func(*http2.Framer, uint32) bool{
		"refused":        reset(http2.ErrCodeRefusedStream),
		"protocol error": reset(http2.ErrCodeProtocol),
		"cancelled":      reset(http2.ErrCodeCancel),
		"hung up":        func(*http2.Framer, uint32) bool { return false },
		"taken, then let go": func(f *http2.Framer, stream uint32) bool {
			_ = f.WriteGoAway(stream, http2.ErrCodeNo, nil)
			return false
		},
		"let go": func(f *http2.Framer, _ uint32) bool {
			_ = f.WriteGoAway(0, http2.ErrCodeNo, nil)
			return true
		},
	} {
		for _, method := range []string{"GET", "POST", "DELETE"} {
			t.Run(name+" "+method, func(t *testing.T) {
				t.Parallel()

				server := newHTTP2Server(t, breaks)
				transport := httptool.NewTransport((&net.Dialer{}).DialContext)
				transport.TLSClientConfig = &tls.Config{RootCAs: server.roots}

				c := activities.NewCatalogue(activities.Resources{HTTP: activities.HTTPOptions{Transport: transport}})
				t.Cleanup(func() { require.NoError(t, c.Close()) })

				in := tooltest.Input(map[string]any{"url": server.url, "method": method, "body": map[string]any{"id": 1}})(t)
				in.IdempotencyKey = "op-1"
				_, err := tooltest.CallHTTP(t, c, in)
				require.NoError(t, err)

				_, err = tooltest.CallHTTP(t, c, in)
				require.EqualValues(t, 1, server.requests.Load(), "%v", err)

				object := tooltest.ErrorObject(t, err)
				require.Equal(t, interpreter.KindConnection, object.Kind)
				require.Equal(t, interpreter.ClassRetryable, object.Class)
			})
		}
	}
}
