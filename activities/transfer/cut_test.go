package transfer_test

import (
	"bytes"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/interpreter"
)

// TestBodiesAreCutAnywhere: wherever a connection breaks, with and without a store, the rows are those of the whole body. If the rest cannot be requested, the
// attempt fails and leaves no row.
func TestBodiesAreCutAnywhere(t *testing.T) {
	t.Parallel()
	plain := []byte("\ufeffid,name,note\r\n1,\"näme\",\"two\r\nlines\"\r\n2,\"a \"\"quoted\"\" €\",\r\n4,end,\"" + strings.Repeat("x", 60) + "\"\r\n")
	want := [][3]string{{"1", "näme", "two\r\nlines"}, {"2", "a \"quoted\" €", ""}, {"4", "end", strings.Repeat("x", 60)}}
	first, second := zipped(plain[:40]), zipped(plain[40:])
	packed := bytes.Join([][]byte{first, second}, nil)
	const gzipHead, gzipTrailer = 10, 8
	places := func(texts ...string) (all []int) {
		for _, text := range texts {
			at := bytes.Index(plain, []byte(text))
			require.Positive(t, at, text)
			all = append(all, at)
		}
		return all
	}
	for _, test := range []struct {
		name  string
		body  []byte
		coded bool // by a content encoding
		at    []int
	}{
		// in the mark, the names, quotes, a line end in quotes, a doubled quote, a character, a line end, and at the border of a part
		{"plain", plain, false, append(places("ame,", "\"näme", "\xa4me", "\nlines", "\"quoted", "\x82\xac", "\n4,end"), 1, bytesOfPart, len(plain)-1)},
		{"gzip", packed, false, []int{1, gzipHead, gzipHead + 5, len(first) - gzipTrailer, len(first) - 1, len(first), len(first) + 3, bytesOfPart, len(packed) - gzipTrailer, len(packed) - 1}},
		{"encoded", packed, true, []int{1, gzipHead, len(first) - 1, len(first), len(first) + 3, len(packed) - 1}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			tag := `"1"`
			var cutAt int
			s := newServer(t, func(_ int, w http.ResponseWriter, r *http.Request) {
				if test.coded {
					w.Header().Set("Content-Encoding", "gzip")
				}
				if r.Header.Get("Range") == "" {
					cut(w, tag, test.body, cutAt)
				}
				serve(w, r, tag, test.body)
			})
			w := newWorld(t)
			for i, at := range test.at {
				for _, stores := range []bool{false, true} {
					cutAt, tag = at, `"1"`
					w.res.Bodies = nil
					store := &bodies{}
					if stores {
						w.onWorker(store)
					}
					fields := map[string]any{"from": s.from(), "to": w.table("sqlite"), "batch": 2}
					_, err := w.move(strconv.Itoa(i)+strconv.FormatBool(stores), "sqlite", fields)
					require.NoError(t, err, at)
					require.Equal(t, want, w.rows("sqlite"), at)
					require.Empty(t, store.objects)
				}
				tag = `W/"1"` // of which a rest cannot be requested
				_, err := w.move(strconv.Itoa(i)+"weak", "sqlite", map[string]any{"from": s.from(), "to": w.table("sqlite")})
				failure := w.fails(err)
				require.Equal(t, interpreter.KindConnection, failure.Kind, "%d: %s", at, failure)
				require.Equal(t, interpreter.ClassRetryable, failure.Class)
				require.Empty(t, w.rows("sqlite"), at)
			}
		})
	}
}

// TestSlowStore: a store that takes its time delays a transfer, and changes nothing else of it.
func TestSlowStore(t *testing.T) {
	t.Parallel()
	content := orders(1, 40, "one")
	sent := make(chan struct{})
	s := newServer(t, func(n int, w http.ResponseWriter, r *http.Request) {
		serve(w, r, `"1"`, content)
		if n == 1 {
			close(sent)
		}
	})
	w, store := newWorld(t), &bodies{}
	store.onWrite = func(int) error { // each part is stored once all of the body has been sent
		<-sent
		return nil
	}
	w.onWorker(store)
	result, err := w.move("k", "sqlite", map[string]any{"from": s.from(), "to": w.table("sqlite"), "batch": 7})
	require.NoError(t, err)
	require.Equal(t, map[string]any{"rows": 40, "bytes": len(content), "batches": 6, "rejected": 0}, result.Data.Data)
	require.Equal(t, parsed(t, content), w.rows("sqlite"))
	require.Equal(t, []string{""}, s.ranges(), "a body that was not cut")
	require.Empty(t, store.objects)
}
