package playbook_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// obeyedHere are fields of the model that this package obeys alone, and why.
var obeyedHere = map[string]string{
	"Playbook.APIVersion": "it decides which spellings are read",
	"Playbook.OnSuccess":  "Notices gives the notices of an event",
	"Playbook.OnFailure":  "Notices gives the notices of an event",
	"Step.OnSuccess":      "Notices gives the notices of an event",
	"Step.OnFailure":      "Notices gives the notices of an event",
	"Notice.On":           "Notices gives the notices of an event",
	"Policy.Lent":         "From names it in messages",
}

// TestEachFieldOfTheModelIsObeyed: what a word sets is read by what obeys it. A word that is decoded,
// documented and checked, and changes nothing, has a field that is missed here.
func TestEachFieldOfTheModelIsObeyed(t *testing.T) {
	t.Parallel()

	read := selectedOutside(t)
	files := token.NewFileSet()
	fields := 0
	ofModel := func(node ast.Node) bool {
		declared, ok := node.(*ast.TypeSpec)
		if !ok {
			return true
		}
		structure, ok := declared.Type.(*ast.StructType)
		if !ok {
			return false
		}
		for _, field := range structure.Fields.List {
			for _, name := range field.Names {
				whole := declared.Name.Name + "." + name.Name
				if !name.IsExported() || strings.HasSuffix(name.Name, "Pos") {
					continue // of the package itself, or for messages
				}
				fields++
				if obeyedHere[whole] == "" && !read[name.Name] {
					t.Errorf("%s: nothing outside this package reads %s, so the word that sets it changes nothing; "+
						"CONTRIBUTING names the packages in which a word is obeyed", files.Position(name.Pos()), whole)
				}
			}
		}
		return false
	}
	for _, name := range []string{"model.go", "decode_retry.go"} {
		file, err := parser.ParseFile(files, name, nil, 0)
		require.NoError(t, err)
		ast.Inspect(file, ofModel)
	}
	require.Greater(t, fields, 100)
}

// selectedOutside are the names that code outside this package selects: x.Name.
func selectedOutside(t *testing.T) map[string]bool {
	t.Helper()

	names := map[string]bool{}
	for _, folder := range []string{"activities", "internal", "interpreter", "starter", "worker", "workflows"} {
		require.NoError(t, filepath.WalkDir(filepath.Join("../..", folder), func(path string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case entry.IsDir() && (entry.Name() == "testdata" || path == filepath.Join("../..", "internal/test")),
				entry.IsDir() && path == filepath.Join("../..", "interpreter/playbook"):
				return fs.SkipDir
			case entry.IsDir(), !strings.HasSuffix(path, ".go"), strings.HasSuffix(path, "_test.go"):
				return nil
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(node ast.Node) bool {
				if selected, ok := node.(*ast.SelectorExpr); ok {
					names[selected.Sel.Name] = true
				}
				return true
			})
			return nil
		}))
	}
	return names
}
