package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestGraphOfAFileWithProblems(t *testing.T) {
	t.Parallel()
	var out, errs bytes.Buffer
	streams := Streams{In: strings.NewReader("workflow: 1"), Out: &out, Err: &errs}
	require.Equal(t, exitFailed, Main(t.Context(), []string{"graph", "-"}, streams))
	require.Empty(t, out.String())
	require.Contains(t, errs.String(), "stdin:1")
	require.Equal(t, exitUsage, Main(t.Context(), []string{"graph", "nowhere.yaml"}, streams))
	require.Equal(t, exitUsage, Main(t.Context(), []string{"graph", "-", "--format", "svgg"}, streams))
	require.Contains(t, errs.String(), `did you mean "svg"?`)
}
