package sqltool

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/interpreter/playbook"
)

// TestChildrenAreNested: tables of children may be in each other as deep as mostNested, and no deeper.
func TestChildrenAreNested(t *testing.T) {
	t.Parallel()
	keys, depth := childKeys(mostNested), 0
	for keys != nil {
		depth++
		at := slices.IndexFunc(keys, func(key playbook.Field) bool { return key.Name == "children" })
		if at < 0 {
			break
		}
		keys = keys[at].Each
	}
	require.Equal(t, mostNested, depth)
}
