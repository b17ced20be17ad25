package tooltest

import (
	"archive/zip"
	"compress/gzip"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/program/demoapi"
)

// StartAPI starts a demo API of the test's own.
func StartAPI(t *testing.T) (*demoapi.Server, string) {
	t.Helper()
	api := demoapi.New(demoapi.Options{})
	url, err := api.Start(t.Context(), "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = api.Close() })
	return api, url
}

// RefusingURL returns the URL of a port of this machine that refuses every connection until the test has ended. It is
// the near end of an open connection: no other process is given it, as it would be the port of a server that was closed.
func RefusingURL(t *testing.T) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	holder, err := new(net.Dialer).DialContext(t.Context(), "tcp", listener.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = holder.Close() })
	return "http://" + holder.LocalAddr().String()
}

// AnsweringServer returns a server whose answers are all made by one function.
func AnsweringServer(t *testing.T, answer http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	return server.URL
}

// RecordingServer is a server that keeps every byte it was sent.
type RecordingServer struct {
	*httptest.Server
	Answer http.HandlerFunc // nil answers 200

	mu   sync.Mutex
	seen []string
}

// NewRecordingServer listens on a loopback address.
func NewRecordingServer(t *testing.T, address string, answer http.HandlerFunc) *RecordingServer {
	t.Helper()
	w := &RecordingServer{Answer: answer}
	w.Server = httptest.NewUnstartedServer(w)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", address+":0")
	require.NoError(t, err)
	require.NoError(t, w.Listener.Close())
	w.Listener = listener
	w.Start()
	t.Cleanup(w.Close)
	return w
}

// ServeHTTP keeps the request.
func (w *RecordingServer) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	dump, err := httputil.DumpRequest(r, true)
	if err != nil {
		dump = []byte(err.Error())
	}
	w.mu.Lock()
	w.seen = append(w.seen, string(dump))
	w.mu.Unlock()
	if w.Answer != nil {
		w.Answer(out, r)
	}
}

// ReceivedRequests returns the requests that have come.
func (w *RecordingServer) ReceivedRequests() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string{}, w.seen...)
}

// RedirectTo answers with a redirect, and remembers nothing.
func RedirectTo(status int, target func() string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", target())
		w.WriteHeader(status)
	}
}

// Gzip returns a text as gzip.
func Gzip(text string) string {
	var b strings.Builder
	w := gzip.NewWriter(&b)
	_, _ = io.WriteString(w, text)
	_ = w.Close()
	return b.String()
}

// Zip returns an archive of files, each with its name and its text.
func Zip(t testing.TB, files ...[2]string) string {
	t.Helper()
	var b strings.Builder
	w := zip.NewWriter(&b)
	for _, file := range files {
		member, err := w.Create(file[0])
		require.NoError(t, err)
		_, err = io.WriteString(member, file[1])
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return b.String()
}
