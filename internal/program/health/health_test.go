package health_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/program/health"
	"reprise/internal/test/testenv"
)

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	response, err := http.Get(url)
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(body)
}

// TestProbes: a program is alive from the beginning, ready when it takes work and has what it needs, and not ready while
// it stops. Why it is not is said without the error, which may name addresses.
func TestProbes(t *testing.T) {
	t.Parallel()
	s, err := health.Listen(t.Context(), "127.0.0.1:0", slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	t.Cleanup(s.Close)
	var away atomic.Bool
	s.AddDependency(&health.Dependency{Reason: "the store does not answer", Check: func(context.Context) error {
		if away.Load() {
			return errors.New("dial tcp 10.0.0.1:5432")
		}
		return nil
	}})
	live := func() {
		status, body := get(t, s.URL()+"/livez")
		require.Equal(t, http.StatusOK, status)
		require.JSONEq(t, `{"status": "ok"}`, body)
	}
	unready := func(reason string) {
		t.Helper()
		live()
		status, body := get(t, s.URL()+"/readyz")
		require.Equal(t, http.StatusServiceUnavailable, status)
		require.JSONEq(t, `{"status": "unavailable", "reason": "`+reason+`"}`, body)
	}
	unready("it is starting")
	s.SetReady()
	status, _ := get(t, s.URL()+"/readyz")
	require.Equal(t, http.StatusOK, status)
	away.Store(true)
	require.Eventually(t, func() bool {
		status, _ := get(t, s.URL()+"/readyz")
		return status != http.StatusOK
	}, testenv.Within(20*time.Second), 50*time.Millisecond)
	unready("the store does not answer")
	s.SetDraining()
	unready("it is stopping")
}

// TestChecksAreReused: probes that come often check once a second.
func TestChecksAreReused(t *testing.T) {
	t.Parallel()
	var made atomic.Int32
	check := &health.Dependency{Check: func(context.Context) error { made.Add(1); return io.EOF }}
	for range 20 {
		require.ErrorIs(t, check.Err(t.Context()), io.EOF)
	}
	require.LessOrEqual(t, made.Load(), int32(10), "also on a busy machine")
}

func TestNoAddress(t *testing.T) {
	t.Parallel()
	s, err := health.Listen(t.Context(), "", nil)
	require.NoError(t, err)
	s.AddDependency(nil)
	s.SetReady()
	s.SetDraining()
	require.Empty(t, s.URL())
	s.Close()
	_, err = health.Listen(t.Context(), "nowhere", slog.New(slog.DiscardHandler))
	require.ErrorContains(t, err, `open the health address "nowhere"`)
}
