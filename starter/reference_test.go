package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/test/docs"
	"reprise/internal/test/samples"
	"reprise/starter/cli"
)

// TestGoldenCommands: docs/reference/commands.md says what the commands say.
func TestGoldenCommands(t *testing.T) {
	t.Parallel()
	const page = "../docs/reference/commands.md"
	want := docs.Commands("commands", newRoot(&cli.App{}))
	if samples.Update() {
		require.NoError(t, docs.WriteFile(page, want))
	}
	got, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Equal(t, want, string(got), "run make reference")
}
