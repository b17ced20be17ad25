package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/test/docs"
	"reprise/interpreter/expression"
)

// TestDocumentedPlaybooks runs every whole playbook of the documentation. The
// block after it is what it gives.
func TestDocumentedPlaybooks(t *testing.T) {
	t.Parallel()
	seen := 0
	for _, name := range []string{"README.md", filepath.Join("docs", "language.md")} {
		text, err := os.ReadFile(filepath.Join("..", "..", "..", name))
		require.NoError(t, err)
		for _, example := range docs.Examples(name, string(text)) {
			if !example.Is("yaml") || !example.Whole() {
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
	require.GreaterOrEqual(t, seen, 4)
}
