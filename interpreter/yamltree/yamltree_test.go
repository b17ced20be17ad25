package yamltree_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"

	"reprise/interpreter/source"
	"reprise/interpreter/yamltree"
)

func TestParse(t *testing.T) {
	t.Parallel()

	root, err := yamltree.Parse([]byte("a: 1\nb: [x, {c: y}]\n"))
	require.NoError(t, err)

	top := root.Content[0]
	require.Equal(t, 2, yamltree.IndexOf(top, "b"))
	require.Equal(t, -1, yamltree.IndexOf(top, "c"))
	require.Equal(t, source.Position{Line: 2, Column: 4}, yamltree.PositionOf(yamltree.KeyValues(top)["b"]))

	_, err = yamltree.Parse([]byte("a: 1\n---\nb: 2\n"))
	require.ErrorIs(t, err, yamltree.ErrSeveralDocuments)

	_, err = yamltree.Parse([]byte("a: [1\n"))
	require.Error(t, err)
}

// TestResolved checks that a copy has no aliases, has comments where they are
// asked for, and shares nothing with the tree.
func TestResolved(t *testing.T) {
	t.Parallel()

	root, err := yamltree.Parse([]byte("a: &x {b: 1} # one\nc: *x\n"))
	require.NoError(t, err)

	plain := yamltree.WithoutAliases(root.Content[0], false)
	require.Equal(t, "a: {b: 1}\nc: {b: 1}\n", yamltree.EncodeNode(plain))

	plain.Content[1].Content[1].Value = "2"
	require.Equal(t, "a: {b: 1} # one\nc: {b: 1} # one\n", yamltree.EncodeNode(yamltree.WithoutAliases(root.Content[0], true)))
}

// TestResolvedIsBounded passes MaxDepth: what is nested deeper is left out.
func TestResolvedIsBounded(t *testing.T) {
	t.Parallel()
	deep := &yaml.Node{Kind: yaml.ScalarNode, Value: "x"}
	for range 2 * yamltree.MaxDepth {
		deep = &yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{deep}}
	}
	levels := 0
	for n := yamltree.WithoutAliases(deep, false); len(n.Content) > 0; n = n.Content[0] {
		levels++
	}
	require.Equal(t, yamltree.MaxDepth+1, levels)
}
