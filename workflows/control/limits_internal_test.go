package control

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/workflows/protocol"
)

// TestNewestAnswersAreRemembered passes maxAnswered.
func TestNewestAnswersAreRemembered(t *testing.T) {
	t.Parallel()
	c := &Controls{}
	for i := range maxAnswered + 3 {
		c.rememberAnswer(protocol.AcceptedAnswer{Key: fmt.Sprint(i)})
	}
	require.Len(t, c.Answered, maxAnswered)
	require.Equal(t, "3", c.Answered[0].Key)
	require.Equal(t, fmt.Sprint(maxAnswered+2), c.Answered[maxAnswered-1].Key)
}
