package serve

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestHeadingOfAnApproval: the heading of a page is the author's, with data marked, or that of every page; never data
// alone.
func TestHeadingOfAnApproval(t *testing.T) {
	t.Parallel()
	given, err := page{Title: "Approved. Nothing is left to do", Asks: true, Message: "…"}.pageAnswer(http.StatusOK)
	require.NoError(t, err)
	require.Contains(t, string(given.body.([]byte)), "<h1>Your answer is needed</h1>")
	given, err = page{Title: "x", Asks: true, Heading: `Pay <bdi class="value">5</bdi>`}.pageAnswer(http.StatusOK)
	require.NoError(t, err)
	require.Contains(t, string(given.body.([]byte)), `<h1>Pay <bdi class="value">5</bdi></h1>`)
}
