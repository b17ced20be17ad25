package payload

import (
	"context"
	"errors"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestReferencesToHugeValues passes maxBlob: a reference that others have written reserves no memory.
func TestReferencesToHugeValues(t *testing.T) {
	t.Parallel()
	claim := referenceTo([]byte("x")).toClaim("s3")
	for size, ok := range map[int]bool{0: true, maxBlob: true, maxBlob + 1: false, -1: false} {
		claim["size"] = strconv.Itoa(size)
		_, err := parseClaim(claim)
		require.Equal(t, ok, err == nil, size)
	}
}

// TestStoreThatIsAwayIsTriedOnce: one operation tries for driverPatience, and those after it only once, until one went well.
func TestStoreThatIsAwayIsTriedOnce(t *testing.T) {
	t.Parallel()
	store, tries, away := &Store{}, 0, errors.New("the share is not mounted")
	ask := func(err error) int {
		tries = 0
		require.ErrorIs(t, store.tryPatiently(t.Context(), func(ctx context.Context) error {
			tries++
			store.health.recordRead(ctx, err)
			return err
		}), err)
		return tries
	}
	require.Greater(t, ask(away), 2)
	require.Equal(t, 1, ask(away))
	require.Equal(t, 1, ask(nil))
	require.Greater(t, ask(away), 2)
}
