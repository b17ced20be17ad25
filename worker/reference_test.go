package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/test/docs"
	"reprise/internal/test/samples"
)

// TestGoldenFlags: docs/reference/worker.md says what worker --help says.
func TestGoldenFlags(t *testing.T) {
	t.Parallel()
	const page = "../docs/reference/worker.md"
	command, _ := newCommand()
	want := docs.Commands("worker", command)
	if samples.Update() {
		require.NoError(t, docs.WriteFile(page, want))
	}
	got, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Equal(t, want, string(got), "run make golden")
}
