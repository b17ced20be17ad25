package transfer_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	activityhttp "reprise/activities/http"
	"reprise/activities/tool"
	"reprise/interpreter"
)

// bodies is the store of several workers, in parts of a few bytes.
type bodies struct {
	mu      sync.Mutex
	objects map[string][]byte
	writes  int
	// onWrite is called after each write, with its number; an error is that of the write.
	onWrite func(n int) error
}

const bytesOfPart = 100

func (*bodies) PartBytes() int64 { return bytesOfPart }

func (b *bodies) WriteObject(_ context.Context, key string, content []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.objects == nil {
		b.objects = map[string][]byte{}
	}
	b.objects[key] = bytes.Clone(content)
	if b.writes++; b.onWrite != nil {
		return b.onWrite(b.writes)
	}
	return nil
}

func (b *bodies) ReadObject(_ context.Context, key string) ([]byte, bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	content, found := b.objects[key]
	return content, found, nil
}

func (b *bodies) RemoveObjects(_ context.Context, prefix string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for key := range b.objects {
		if strings.HasPrefix(key, prefix) {
			delete(b.objects, key)
		}
	}
	return nil
}

// onWorker lets the next attempt be made by another worker, with a store.
func (w *world) onWorker(store *bodies) {
	w.res.Bodies = store
	w.web = activityhttp.New(w.res, nil)
}

// progressing is the host of an attempt that counts what is permanently done.
type progressing struct {
	tool.Attempt

	parts, batches int
}

func (*progressing) Begin(context.Context) error            { return nil }
func (*progressing) MarkAnswered()                          {}
func (*progressing) MarkReceiving(context.Context)          {}
func (*progressing) Propagate(context.Context, http.Header) {}

func (p *progressing) MarkProgress(_ context.Context, done *interpreter.HostedStep) {
	if done == nil {
		p.parts++
	} else {
		p.batches++
	}
}

// TestLandedPartsAreProgress: each part of a body that is stored is progress, as each batch is. A load whose workers are lost one after the other while the body
// is downloaded does not look like a request that crashes its workers.
func TestLandedPartsAreProgress(t *testing.T) {
	t.Parallel()
	content := orders(1, 40, "one")
	w := newWorld(t)
	s := newServer(t, func(_ int, w http.ResponseWriter, r *http.Request) { serve(w, r, `"1"`, content) })
	w.onWorker(&bodies{})
	host := &progressing{}
	_, err := w.attemptIn(tool.WithAttempt(t.Context(), host), "k", &mortal{Ledger: w.sql["sqlite"]}, "sqlite", map[string]any{"from": s.from(), "to": w.table("sqlite")}, nil)
	require.NoError(t, err)
	require.Equal(t, (len(content)+bytesOfPart-1)/bytesOfPart, host.parts)
	require.Equal(t, 1, host.batches)
}

// TestLandedBodiesOutliveWorkers: whatever a worker was lost at while it downloads, another one requests only what is not stored yet. Once all is stored,
// batches need no request. At the end nothing is left in the store.
func TestLandedBodiesOutliveWorkers(t *testing.T) {
	t.Parallel()
	content := orders(1, 40, "one")
	parts := (len(content) + bytesOfPart - 1) / bytesOfPart
	for at := 1; at <= parts+2; at++ { // the head, each part, and the head that says that all are there
		w, store := newWorld(t), &bodies{}
		s := newServer(t, func(_ int, w http.ResponseWriter, r *http.Request) { serve(w, r, `"1"`, content) })
		fields := map[string]any{"from": s.from(), "to": w.table("sqlite"), "batch": 7}
		lost, lose := context.WithCancel(t.Context())
		store.onWrite = func(n int) error {
			if n == at {
				lose()
			}
			return lost.Err()
		}
		w.onWorker(store)
		_, err := w.attemptIn(lost, "k", &mortal{Ledger: w.sql["sqlite"]}, "sqlite", fields, nil)
		require.ErrorIs(t, err, context.Canceled, at)
		store.onWrite = nil
		w.onWorker(store)
		_, err = w.attempt("k", &mortal{Ledger: w.sql["sqlite"], at: 3}, "sqlite", fields)
		require.ErrorIs(t, err, errDied)
		w.onWorker(store)
		result, err := w.move("k", "sqlite", fields)
		require.NoError(t, err)
		require.Equal(t, map[string]any{"rows": 40, "bytes": len(content), "batches": 6, "rejected": 0}, result.Data.Data)
		require.Equal(t, parsed(t, content), w.rows("sqlite"))
		require.Empty(t, store.objects)
		asked := s.ranges()
		require.LessOrEqual(t, len(asked), 2, at)
		if at > 2 && at <= parts {
			require.Regexp(t, `^bytes=[1-9]\d*00-$`, asked[1], at)
		}
	}
}

// TestLandedBodiesOfOthers: a body that is another one now is downloaded from its beginning; one that cannot be told from others is not continued; one that
// cannot be read is not used again; without a store that works, the disk of the worker is enough.
func TestLandedBodiesOfOthers(t *testing.T) {
	t.Parallel()
	one, two := orders(1, 40, "one"), orders(1, 30, "two")
	for name, test := range map[string]struct {
		tags    [2]string
		bodies  [2][]byte
		broken  bool
		want    []byte
		ranges  []string
		stopsAt int
	}{
		"another":         {tags: [2]string{`"1"`, `"2"`}, bodies: [2][]byte{one, two}, want: two, ranges: []string{"", "bytes=300-"}, stopsAt: 4},
		"no validator":    {tags: [2]string{`W/"1"`, `W/"1"`}, bodies: [2][]byte{one, two}, want: two, ranges: []string{"", ""}, stopsAt: 4},
		"a broken store":  {tags: [2]string{`"1"`, `"1"`}, bodies: [2][]byte{one, one}, broken: true, want: one, ranges: []string{""}},
		"cut when packed": {tags: [2]string{`"1"`, `"1"`}, bodies: [2][]byte{zipped(one)[:450], zipped(one)}, want: one, ranges: []string{"", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, store := newWorld(t), &bodies{}
			lost, lose := context.WithCancel(t.Context())
			defer lose()
			s := newServer(t, func(n int, w http.ResponseWriter, r *http.Request) {
				serve(w, r, test.tags[min(n, 2)-1], test.bodies[min(n, 2)-1])
			})
			fields := map[string]any{"from": s.from(), "to": w.table("sqlite")}
			store.onWrite = func(n int) error {
				if test.broken {
					return errors.New("the store is full")
				}
				if n == test.stopsAt {
					lose()
				}
				return lost.Err()
			}
			w.onWorker(store)
			_, err := w.attemptIn(lost, "k", &mortal{Ledger: w.sql["sqlite"]}, "sqlite", fields, nil)
			if !test.broken {
				require.Error(t, err)
				store.onWrite = nil
				w.onWorker(store)
				_, err = w.move("k", "sqlite", fields)
			}
			require.NoError(t, err)
			require.Equal(t, test.ranges, s.ranges())
			require.Equal(t, parsed(t, test.want), w.rows("sqlite"))
			if !test.broken {
				require.Empty(t, store.objects)
			}
		})
	}
}
