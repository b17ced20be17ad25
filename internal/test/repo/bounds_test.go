package repo_test

import (
	"go/ast"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// bound is a constant called max… or most….
type bound struct{ dir, name, doc, place string }

func (b bound) String() string { return b.dir + " " + b.name }

// qualified is how tests of other packages name an exported bound, with its package.
func (b bound) qualified() string { return path.Base(b.dir) + "." + b.name }

// near reports whether a folder is that of the bound, the one above it, one below it or that of the tests end to end.
func (b bound) near(folder string) bool {
	return folder == b.dir || folder == path.Dir(b.dir) || path.Dir(folder) == b.dir || folder == "internal/test/e2e"
}

var nameOfBound = regexp.MustCompile(`^([mM]ax|[mM]ost)([A-Z0-9]|$)`)

// boundsOf are the bounds that a file declares outside of functions. Names of variables of the environment are none.
func boundsOf(file goSource) (found []bound) {
	for _, decl := range file.tree.Decls {
		general, ok := decl.(*ast.GenDecl)
		if !ok || general.Tok != token.CONST {
			continue
		}
		for _, spec := range general.Specs {
			value := spec.(*ast.ValueSpec)
			doc := value.Doc.Text() + value.Comment.Text()
			if len(general.Specs) == 1 {
				doc += general.Doc.Text()
			}
			for _, name := range value.Names {
				if nameOfBound.MatchString(name.Name) && !strings.HasSuffix(name.Name, "Variable") {
					found = append(found, bound{path.Dir(file.name), name.Name, doc, file.at(name)})
				}
			}
		}
	}
	return found
}

// TestBoundsHaveReasons asks of each constant called max… or most… for a comment that says more than its name, and for a
// test that passes it (docs/decisions/0034-bounds.md). A test names the bounds that it passes, in its code or in its
// comment; one of another package names them with their package. testdata/bounds.txt has those that no test passes, with the reason.
func TestBoundsHaveReasons(t *testing.T) {
	t.Parallel()
	unpassed := unpassedBounds(t)
	words := regexp.MustCompile(`\w+`)
	tests := map[string]map[string]bool{} // words of the tests of a folder
	selected := map[string]bool{}         // package.Name, in any test
	for _, file := range goSources(t, isTest) {
		text, err := os.ReadFile(filepath.Join(root, file.name))
		require.NoError(t, err)
		folder := path.Dir(file.name)
		if tests[folder] == nil {
			tests[folder] = map[string]bool{}
		}
		for _, word := range words.FindAllString(strings.ToLower(string(text)), -1) {
			tests[folder][word] = true
		}
		for _, name := range regexp.MustCompile(`\w+\.M(?:ax|ost)\w*`).FindAllString(string(text), -1) {
			selected[name] = true
		}
	}
	bounds := 0
	for _, file := range goSources(t, isProgram) {
		for _, b := range boundsOf(file) {
			bounds++
			const least = 8 // words
			if words := strings.Fields(strings.ReplaceAll(b.doc, b.name, "")); len(words) < least {
				t.Errorf("%s: the comment of %s says no more than its name; say what breaks without it", b.place, b.name)
			}
			passed := selected[b.qualified()]
			for folder, words := range tests {
				passed = passed || b.near(folder) && words[strings.ToLower(b.name)]
			}
			_, listed := unpassed[b.String()]
			switch {
			case passed && listed:
				t.Errorf("%s: a test names %s; take it out of testdata/bounds.txt", b.place, b.name)
			case !passed && !listed:
				t.Errorf("%s: no test names %s; name it in the test that passes it, or write one", b.place, b.name)
			}
			delete(unpassed, b.String())
		}
	}
	require.Empty(t, unpassed, "testdata/bounds.txt has bounds that do not exist")
	require.Greater(t, bounds, 200)
}

// unpassedBounds are the bounds that no test passes, with why.
func unpassedBounds(t *testing.T) map[string]string {
	t.Helper()
	listed := map[string]string{}
	reason := ""
	for line := range strings.Lines(read(t, "internal/test/repo/testdata/bounds.txt")) {
		switch line = strings.TrimSpace(line); {
		case line == "":
		case strings.HasPrefix(line, "# "):
			reason = line
		default:
			require.NotEmpty(t, reason)
			listed[line] = reason
		}
	}
	return listed
}
