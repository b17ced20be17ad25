package main

import (
	"bufio"
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestQuestionsOfNew: who has no flags is asked until the description is known; empty answers are defaults.
func TestQuestionsOfNew(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		answers string
		want    newOptions
	}{
		{"\n\n\n\n", newOptions{style: "page", sink: "sqlite"}},
		{"soap\nstyle\ncursor\nfile\nuser_id\n", newOptions{style: "cursor", sink: "file", each: "user_id"}},
		{"curl\ncurl https://a.test \\\n  -H 'a: b'\nnone\n\n", newOptions{curl: "curl https://a.test \\\n  -H 'a: b'", sink: "none"}},
		{"openapi\napi.json\nlistUsers\n\n\n", newOptions{openapi: "api.json", operation: "listUsers", sink: "sqlite"}},
	} {
		var shown bytes.Buffer
		q := &prompter{in: bufio.NewReader(strings.NewReader(row.answers)), out: &shown}
		got := newOptions{}
		require.NoError(t, q.source(&got))
		require.NoError(t, q.rest(&got))
		require.Equal(t, row.want, got)
		require.Contains(t, shown.String(), "[style]: ")
	}
	q := &prompter{in: bufio.NewReader(strings.NewReader("")), out: &bytes.Buffer{}}
	require.ErrorContains(t, q.source(&newOptions{}), "no answer")
}
