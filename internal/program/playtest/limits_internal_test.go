package playtest

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestBodiesOfRequestsAreBounded passes maxRequestBody: a test remembers each request.
func TestBodiesOfRequestsAreBounded(t *testing.T) {
	t.Parallel()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://x", strings.NewReader(strings.Repeat("x", maxRequestBody+10)))
	require.NoError(t, err)
	seen, err := describeRequest(request)
	require.NoError(t, err)
	require.Equal(t, largeBody, seen["body"])
}
