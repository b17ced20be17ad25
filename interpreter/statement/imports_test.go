package statement_test

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestImports keeps the package pure: workflow code renders statements, so it
// must decide alike on every replay, without clock, chance or input.
func TestImports(t *testing.T) {
	t.Parallel()

	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	require.NotEmpty(t, files)

	allowed := map[string]bool{
		"encoding/json": true, "errors": true, "fmt": true, "math": true, "regexp": true, "slices": true, "sort": true,
		"strconv": true, "strings": true, "unicode": true, "reprise/interpreter/expression": true,
	}

	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}

		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		require.NoError(t, err)

		for _, spec := range file.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			require.NoError(t, err)
			require.True(t, allowed[path], "%s imports %s: the package takes values and gives values, and leans on expression only", name, path)
		}
	}
}
