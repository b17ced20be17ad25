package session

import (
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/observe/runs"
)

func TestLinkEscapesWhatIDsMayHold(t *testing.T) {
	t.Parallel()
	s := &Session{UI: "http://ui", Namespace: "a b"}
	require.Equal(t, "http://ui/namespaces/a%20b/workflows/run%2F1%231/id/history", s.RunLink("run/1#1", "id"))
	require.Empty(t, (&Session{}).RunLink("run", "id"))
}

// TestLinkToRuns: the link to all runs has the filter that list uses, in the way a browser reads it.
func TestLinkToRuns(t *testing.T) {
	t.Parallel()
	link, err := url.Parse((&Session{UI: "http://127.0.0.1:8233", Namespace: "night shift"}).RunsLink())
	require.NoError(t, err)
	require.Equal(t, "/namespaces/night%20shift/workflows", link.EscapedPath())
	require.Equal(t, runs.OwnRuns, link.Query().Get("query"))
	require.Equal(t, "http://127.0.0.1:8250/?key=a", (&Session{UI: "http://127.0.0.1:8233", pageLink: "http://127.0.0.1:8250/?key=a"}).RunsLink(), "the page of runs is shorter")
	require.Empty(t, (&Session{}).RunsLink())
}
