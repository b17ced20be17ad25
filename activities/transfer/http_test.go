package transfer_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/interpreter"
)

// server is a source of one file that misbehaves as each request says.
type server struct {
	*httptest.Server
	mu       sync.Mutex
	requests []*http.Request
	answer   func(n int, w http.ResponseWriter, r *http.Request)
}

func newServer(t *testing.T, answer func(n int, w http.ResponseWriter, r *http.Request)) *server {
	s := &server{answer: answer}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.requests = append(s.requests, r.Clone(r.Context()))
		n := len(s.requests)
		s.mu.Unlock()
		s.answer(n, w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// ranges are those that were requested, "" for all of the file.
func (s *server) ranges() (all []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.requests {
		all = append(all, r.Header.Get("Range"))
	}
	return all
}

// serve answers as a good server does.
func serve(w http.ResponseWriter, r *http.Request, tag string, content []byte) {
	w.Header().Set("Etag", tag)
	w.Header().Set("Content-Type", "text/csv")
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
}

// cut sends the head of an answer and a part of its body, and closes the connection.
func cut(w http.ResponseWriter, tag string, content []byte, part int) {
	w.Header().Set("Etag", tag)
	w.Header().Set("Content-Type", "text/csv")
	w.Header().Set("Content-Length", fmt.Sprint(len(content)))
	send(w, content[:part])
}

// send sends a part of a body, and closes the connection.
func send(w http.ResponseWriter, part []byte) {
	_, _ = w.Write(part)
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

// from are the fields of a source.
func (s *server) from() map[string]any {
	return map[string]any{"tool": "http", "url": s.URL + "/orders"}
}

// TestBodiesAreContinued: a body that is cut is continued where that is safe, and begins anew where it is another one.
func TestBodiesAreContinued(t *testing.T) {
	t.Parallel()
	one, two := orders(1, 40, "one"), orders(1, 30, "two")
	for name, test := range map[string]struct {
		answer func(n int, w http.ResponseWriter, r *http.Request)
		want   []byte // nil where it fails
		ranges []string
		says   string
		kind   interpreter.Kind
	}{
		"whole": {func(_ int, w http.ResponseWriter, r *http.Request) { serve(w, r, `"1"`, one) }, one, []string{""}, "", ""},
		"cut three times": {func(n int, w http.ResponseWriter, r *http.Request) {
			if n == 1 {
				cut(w, `"1"`, one, 100)
			}
			if n < 4 {
				w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", 100*(n-1), len(one)-1, len(one)))
				w.Header().Set("Etag", `"1"`)
				w.Header().Set("Content-Length", fmt.Sprint(len(one)-100*(n-1)))
				w.WriteHeader(http.StatusPartialContent)
				send(w, one[100*(n-1):100*n])
			}
			serve(w, r, `"1"`, one)
		}, one, []string{"", "bytes=100-", "bytes=200-", "bytes=300-"}, "", ""},
		"200 to a Range": {func(n int, w http.ResponseWriter, r *http.Request) {
			if n == 1 {
				cut(w, `"1"`, one, 300)
			}
			r.Header.Del("Range")
			serve(w, r, `"1"`, one)
		}, one, []string{"", "bytes=300-"}, "", ""},
		"changed, as If-Range says": {func(n int, w http.ResponseWriter, r *http.Request) {
			if n == 1 {
				cut(w, `"1"`, one, 300)
			}
			serve(w, r, `"2"`, two)
		}, two, []string{"", "bytes=300-"}, "", ""},
		"206 of another": {func(n int, w http.ResponseWriter, r *http.Request) {
			if n == 1 {
				cut(w, `"1"`, one, 300)
			}
			r.Header.Del("If-Range")
			serve(w, r, `"2"`, two)
		}, two, []string{"", "bytes=300-", ""}, "", ""},
		"no validator": {func(_ int, w http.ResponseWriter, _ *http.Request) { cut(w, `W/"1"`, one, 300) }, nil, []string{""}, "cut short", interpreter.KindConnection},
		"shorter than it says": {func(n int, w http.ResponseWriter, _ *http.Request) {
			if n == 1 {
				cut(w, `"1"`, append(one, "x"...), len(one))
			}
			w.WriteHeader(http.StatusRequestedRangeNotSatisfiable)
		}, nil, nil, "cut short", interpreter.KindConnection},
		// mostBodies of the http tool
		"another one each time": {func(n int, w http.ResponseWriter, _ *http.Request) { cut(w, fmt.Sprintf(`"%d"`, n), one, 300) }, nil, nil, "the body changed 3 times", interpreter.KindConnection},
		// mostStalls of the http tool
		"never a byte more": {func(n int, w http.ResponseWriter, _ *http.Request) {
			if n == 1 {
				cut(w, `"1"`, one, 300)
			}
			w.Header().Set("Content-Range", fmt.Sprintf("bytes 300-%d/%d", len(one)-1, len(one)))
			w.Header().Set("Etag", `"1"`)
			w.Header().Set("Content-Length", fmt.Sprint(len(one)-300))
			w.WriteHeader(http.StatusPartialContent)
			send(w, nil)
		}, nil, []string{"", "bytes=300-", "bytes=300-", "bytes=300-"}, "cut short", interpreter.KindConnection},
		"gone":        {func(_ int, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusGone) }, nil, []string{""}, "HTTP 410", interpreter.KindHTTP},
		"two members": {func(_ int, w http.ResponseWriter, r *http.Request) { serve(w, r, `"1"`, zipped(one[:77], one[77:])) }, one, []string{""}, "", ""},
		"a truncated member": {func(_ int, w http.ResponseWriter, r *http.Request) {
			packed := zipped(one)
			serve(w, r, `"1"`, packed[:len(packed)-20])
		}, nil, []string{""}, "ends too soon", interpreter.KindHTTP},
		"a content encoding": {func(_ int, w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			w.Header().Set("Content-Type", "text/csv")
			_, _ = w.Write(zipped(one))
		}, one, []string{""}, "", ""},
		"a bomb": {func(_ int, w http.ResponseWriter, r *http.Request) {
			serve(w, r, `"1"`, zipped([]byte("id,name\n1,"), bytes.Repeat([]byte("a"), 5<<20)))
		}, nil, []string{""}, "larger than the limit", interpreter.KindPayloadTooLarge},
		"a bomb of lines": {func(_ int, w http.ResponseWriter, r *http.Request) {
			serve(w, r, `"1"`, zipped([]byte("id,name\n"), bytes.Repeat([]byte("\n"), 5<<20)))
		}, nil, []string{""}, "larger than the limit", interpreter.KindPayloadTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, s := newWorld(t), newServer(t, test.answer)
			to := w.table("sqlite")
			_, err := w.move("k", "sqlite", map[string]any{"from": s.from(), "to": to, "batch": 7})
			if test.ranges != nil {
				require.Equal(t, test.ranges, s.ranges())
			}
			if test.want == nil {
				failure := w.fails(err)
				require.Equal(t, test.kind, failure.Kind)
				require.Contains(t, failure.Error(), test.says)
				require.NotContains(t, failure.Error(), w.dir)
				return
			}
			require.NoError(t, err)
			require.Equal(t, parsed(t, test.want), w.rows("sqlite"))
		})
	}
}

// TestSourcesThatChange: between two workers the source has become another one. It is read anew where that leaves no row twice,
// and is an error else; never are there rows of two.
func TestSourcesThatChange(t *testing.T) {
	t.Parallel()
	one, two := orders(1, 40, "one"), orders(5, 30, "two")
	for _, mode := range []string{"insert", "insert_or_ignore", "upsert", "replace"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.put("orders.csv", one)
			to := with(w.table("sqlite"), map[string]any{"mode": mode, "key": "id"})
			fields := map[string]any{"from": map[string]any{"tool": "file", "path": "orders.csv"}, "to": to, "batch": 10}
			_, err := w.attempt("k", &mortal{Ledger: w.sql["sqlite"], at: 3}, "sqlite", fields)
			require.ErrorIs(t, err, errDied)
			w.put("orders.csv", two)
			result, err := w.move("k", "sqlite", fields)
			if strings.HasPrefix(mode, "insert") {
				failure := w.fails(err)
				require.Equal(t, "source_changed", failure.Type)
				require.Equal(t, interpreter.ClassFinal, failure.Class)
				require.Equal(t, parsed(t, one)[:30], w.rows("sqlite"))
				return
			}
			require.NoError(t, err)
			require.Equal(t, map[string]any{"rows": 26, "bytes": len(two), "batches": 3, "rejected": 0}, result.Data.Data)
			want := parsed(t, two)
			if mode == "upsert" { // rows that are gone from the source stay, as for every upsert
				want = append(parsed(t, one)[:4:4], want...)
			}
			require.Equal(t, want, w.rows("sqlite"))
		})
	}
}
