package expression_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/interpreter/expression"
)

// TestParsePattern: * stands for all elements in a pattern, and is a name in a path.
func TestParsePattern(t *testing.T) {
	t.Parallel()

	all := expression.AllOf{}
	for path, want := range map[string][]any{
		"data.items":      {"data", "items"},
		"items.*.node":    {"items", all, "node"},
		"items[*].node":   {"items", all, "node"},
		"[*]":             {all},
		"*":               {all},
		"a[*][*].b[0]":    {"a", all, all, "b", 0},
		`a["*"].b`:        {"a", "*", "b"},
		`a['x.*'][*]`:     {"a", "x.*", all},
		"a*.b":            {"a*", "b"},
		"data.0[-1].*":    {"data", 0, -1, all},
		"edges[*].node.x": {"edges", all, "node", "x"},
	} {
		keys, err := expression.ParsePattern(path)
		require.NoError(t, err, path)
		require.Equal(t, want, keys, path)
	}

	for _, path := range []string{"", "a.", ".a", "a[*", "a[**]", "a..*", "a[*]b", "* *", "a.* "} {
		_, err := expression.ParsePattern(path)
		require.Error(t, err, path)
	}

	keys, err := expression.ParsePath("a.*.b")
	require.NoError(t, err)
	require.Equal(t, []any{"a", "*", "b"}, keys)

	_, err = expression.ParsePath("a[*]")
	require.Error(t, err)
}
