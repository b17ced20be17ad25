package sleep_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/base/sleep"
)

func TestFor(t *testing.T) {
	t.Parallel()
	gone := errors.New("the client is gone")
	ended, end := context.WithCancelCause(t.Context())
	end(gone)

	began := time.Now()
	require.ErrorIs(t, sleep.For(ended, time.Hour), gone)
	require.Less(t, time.Since(began), time.Minute, "it does not wait for the hour")
	require.NoError(t, sleep.For(t.Context(), time.Millisecond))
	require.GreaterOrEqual(t, time.Since(began), time.Millisecond)
	require.NoError(t, sleep.For(ended, 0), "nothing is waited for")
}
