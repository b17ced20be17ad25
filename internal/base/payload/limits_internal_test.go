package payload

import (
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
