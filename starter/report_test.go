package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLinkEscapesWhatIDsMayHold(t *testing.T) {
	t.Parallel()
	s := &session{ui: "http://ui", namespace: "a b"}
	require.Equal(t, "http://ui/namespaces/a%20b/workflows/run%2F1%231/id/history", s.link("run/1#1", "id"))
	require.Empty(t, (&session{}).link("run", "id"))
}
