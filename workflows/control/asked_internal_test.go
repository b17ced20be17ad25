package control

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/workflows/protocol"
)

// TestQuestionsAreForgotten: of the questions to people the newest are remembered, and not more of them than fit into the next history.
func TestQuestionsAreForgotten(t *testing.T) {
	t.Parallel()
	var c Controls
	for i := range maxAsked + 2 {
		c.rememberAsked(protocol.AskedQuestion{Key: strconv.Itoa(i), Message: "Load?"})
	}
	require.Len(t, c.Asked, maxAsked)
	require.Nil(t, c.askedQuestion("1"))
	require.NotNil(t, c.askedQuestion("2"))
	require.Nil(t, c.askedQuestion(""), "an address without a key names no attempt")
	c.rememberAsked(protocol.AskedQuestion{Key: "long", Message: strings.Repeat("x", maxAskedBytes)})
	require.Len(t, c.Asked, 1)
	c.rememberAsked(protocol.AskedQuestion{Key: "longer", Message: strings.Repeat("x", maxAskedBytes+1)})
	require.Empty(t, c.Asked)
}
