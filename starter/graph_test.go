package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/base/exitcode"
	"reprise/starter/cli"
)

func TestGraphOfAFileWithProblems(t *testing.T) {
	t.Parallel()
	var out, errs bytes.Buffer
	streams := cli.Streams{In: strings.NewReader("workflow: 1"), Out: &out, Err: &errs}
	require.Equal(t, exitcode.Failed, Main(t.Context(), []string{"graph", "-"}, streams))
	require.Empty(t, out.String())
	require.Contains(t, errs.String(), "stdin:1")
	require.Equal(t, exitcode.Usage, Main(t.Context(), []string{"graph", "nowhere.yaml"}, streams))
	require.Equal(t, exitcode.Usage, Main(t.Context(), []string{"graph", "-", "--format", "svgg"}, streams))
	require.Contains(t, errs.String(), `did you mean "svg"?`)
}
