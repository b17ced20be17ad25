package main

import (
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/observe/runs"
)

// TestLinkToRuns: the link to all runs has the filter that list uses, in the way a browser reads it.
func TestLinkToRuns(t *testing.T) {
	t.Parallel()
	link, err := url.Parse((&session{ui: "http://127.0.0.1:8233", namespace: "night shift"}).runsLink())
	require.NoError(t, err)
	require.Equal(t, "/namespaces/night%20shift/workflows", link.EscapedPath())
	require.Equal(t, runs.OwnRuns, link.Query().Get("query"))
	require.Empty(t, (&session{}).runsLink())
}
