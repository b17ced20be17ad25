package try

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestBoundsOfExchanges passes maxSeen and maxSeenRequest: what is beyond them is counted, and not kept.
func TestBoundsOfExchanges(t *testing.T) {
	t.Parallel()
	of := &exchange{}
	body := &seenBody{io.NopCloser(bytes.NewReader(make([]byte, maxSeen+100))), of}
	_, err := io.Copy(io.Discard, body)
	require.NoError(t, err)
	require.Equal(t, maxSeen, of.content.Len())
	require.EqualValues(t, maxSeen+100, of.size)

	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://x", strings.NewReader(strings.Repeat("x", maxSeenRequest+100)))
	require.NoError(t, err)
	require.Len(t, bodyOf(request), maxSeenRequest)
}
