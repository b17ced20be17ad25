package python

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAnswersOfCompilers passes maxAnswer: the beginning is kept, and the process may write on.
func TestAnswersOfCompilers(t *testing.T) {
	t.Parallel()
	var answer limitedBuffer
	part := make([]byte, 300<<10)
	for range 5 {
		n, err := answer.Write(part)
		require.NoError(t, err)
		require.Equal(t, len(part), n)
	}
	require.Equal(t, maxAnswer, answer.Len())
}
