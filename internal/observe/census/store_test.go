package census_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/base/meter"
	"reprise/internal/base/payload"
	"reprise/internal/observe/census"
	"reprise/internal/test/testenv"
)

// readings takes the readings of one metric, and a log.
type readings struct {
	mu  sync.Mutex
	up  float64
	log bytes.Buffer
}

func (r *readings) Set(m *meter.Metric, value float64, _ ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if m == meter.StoreUp {
		r.up = value
	}
}
func (*readings) Age(*meter.Metric, time.Time, time.Time, ...string) {}
func (*readings) Clear(*meter.Metric, ...string)                     {}

func (r *readings) Write(line []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.log.Write(line)
}

func (r *readings) read() (up float64, log string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.up, r.log.String()
}

// TestStoreIsWatched: the log and the metric say that the payload store is away, and that it is back, without any run.
func TestStoreIsWatched(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "payloads")
	address, err := payload.DirectoryAddress(dir)
	require.NoError(t, err)
	store, err := payload.Open(t.Context(), address)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	require.NoError(t, os.Rename(dir, dir+".away"))
	seen := &readings{up: -1}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go census.WatchStore(ctx, store, seen, slog.New(slog.NewTextHandler(seen, nil)), 20*time.Millisecond)
	awaitReading := func(want float64, line string) {
		require.Eventually(t, func() bool {
			up, log := seen.read()
			return up == want && bytes.Contains([]byte(log), []byte(line))
		}, testenv.Within(10*time.Second), 10*time.Millisecond)
	}
	awaitReading(0, `level=ERROR msg="the payload store fails: runs that need large values wait until it works" payload_store=`+store.Name())
	require.NoError(t, errors.Join(os.Rename(dir+".away", dir)))
	awaitReading(1, `level=WARN msg="the payload store works again" payload_store=`+store.Name())
	_, log := seen.read()
	require.Equal(t, 2, bytes.Count([]byte(log), []byte("\n")), log)

	census.WatchStore(t.Context(), nil, seen, slog.New(slog.DiscardHandler), time.Second) // returns
}
