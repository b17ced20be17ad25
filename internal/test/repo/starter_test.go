package repo_test

import (
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// floorsOfStarter are the packages of the command, each with the ones that it may import: those before it.
var floorsOfStarter = []string{
	"cli", "wording", "session", "load", "launch", "help", "look", "deadletters", "runpage", "execute",
	"schedule", "state", "auth", "answer", "control", "author", "builds", "operate", "mcpserver",
}

// TestFloorsOfStarter: a package of commands imports only those before it, and main puts them together.
func TestFloorsOfStarter(t *testing.T) {
	t.Parallel()
	const starter = "starter/"
	found := map[string]bool{}
	for _, file := range goSources(t, isCode) {
		floor, is := strings.CutPrefix(path.Dir(file.name), starter)
		if !is {
			continue
		}
		at := slices.Index(floorsOfStarter, floor)
		require.GreaterOrEqual(t, at, 0, "%s: name its package in floorsOfStarter", file.name)
		found[floor] = true
		for _, spec := range file.tree.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			require.NoError(t, err)
			if below, is := strings.CutPrefix(imported, "reprise/"+starter); is {
				require.Less(t, slices.Index(floorsOfStarter, below), at, "%s imports %s, which comes after it", file.name, below)
			}
		}
	}
	require.Len(t, found, len(floorsOfStarter))
	document := read(t, "docs/architecture.md")
	for _, floor := range floorsOfStarter {
		require.Contains(t, document, "\n| `"+floor+"`", "the table of starter in docs/architecture.md")
	}
}
