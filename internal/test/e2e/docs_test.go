package e2e_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/test/docs"
	"reprise/interpreter/expression"
)

// TestDocumentedPlaybooks runs every whole playbook of the documentation. The
// block after it is what it gives. Recipes have a test of their own.
func TestDocumentedPlaybooks(t *testing.T) {
	t.Parallel()
	seen := 0
	pages, err := docs.WrittenExamples(filepath.Join("..", "..", ".."))
	require.NoError(t, err)
	for name, blocks := range pages {
		if name == "docs/how-to/test-a-playbook.md" { // its own test runs that
			continue
		}
		for _, example := range blocks {
			if !example.Is("yaml") || !example.Whole() || strings.Contains(example.Text, "{name: "+recipePrefix) {
				continue
			}
			seen++
			require.True(t, example.Next.Is("json"), "%s:%d: no result follows", name, example.Line)
			t.Run(fmt.Sprintf("%s:%d", filepath.Base(name), example.Line), func(t *testing.T) {
				t.Parallel()
				want, err := expression.Decode([]byte(example.Next.Text))
				require.NoError(t, err)
				w := newWorld(t)
				w.work()
				result, err := w.run(example.Text, nil)
				require.NoError(t, err)
				require.EqualValues(t, "completed", result.Status, "%+v", result.Error)
				require.Equal(t, want, result.Result.Data)
			})
		}
	}
	require.GreaterOrEqual(t, seen, 10)
}
