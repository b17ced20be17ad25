package repo_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// goSource is a Go file of this module.
type goSource struct {
	name string
	set  *token.FileSet
	tree *ast.File
}

func (s goSource) at(node ast.Node) string {
	return s.name + ":" + strconv.Itoa(s.set.Position(node.Pos()).Line)
}

// goSources parses the Go files whose names the function accepts.
func goSources(t *testing.T, accept func(name string) bool) []goSource {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "git", "-C", root, "ls-files", "--cached", "--others", "--exclude-standard", "*.go").Output()
	require.NoError(t, err)
	var all []goSource
	for name := range strings.FieldsSeq(string(out)) {
		if strings.HasPrefix(name, "devserver/") || !accept(name) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, name))
		if os.IsNotExist(err) {
			continue // deleted, and git does not know yet
		}
		require.NoError(t, err)
		set := token.NewFileSet()
		tree, err := parser.ParseFile(set, name, text, parser.ParseComments|parser.SkipObjectResolution)
		require.NoError(t, err)
		all = append(all, goSource{name, set, tree})
	}
	require.Greater(t, len(all), 100)
	return all
}

func isCode(name string) bool { return !strings.HasSuffix(name, "_test.go") }

func isTest(name string) bool { return !isCode(name) }

// mannered are words that comments would use in a meaning of their own, with what to write in
// their place.
var mannered = []struct{ words, instead string }{
	{`tells?|told|telling`, "reports, says, signals, sends, distinguishes"},
	{`hand(s|ed)? (over|in|out|back|on)|handed`, "pass, dispatch, release"},
	{`go(es|ing)? on|went on`, "continues, is open, is running"},
	{`under way`, "running, open"},
	{`in the midst|for good`, "during; permanently"},
	{`(gives?|gave|given|giving) (it |them |one )?back`, "release, return"},
	{`doors?`, "validation, admission"},
	{`stands?|stood`, "is, belongs, wraps"},
}

// standsFor is the one meaning that "stands" has in English and in comments alike.
var standsFor = regexp.MustCompile(`(?i)\bstands? (for|in for|reports)\b|stand-in`)

// whoFirst is a sentence whose subject is a clause about nobody in particular.
var whoFirst = regexp.MustCompile(`(?:^|[.;] )(Who|Whoever|Whose) [a-z]`)

// TestCommentsArePlain: a comment is a sentence with a subject, in words of the trade.
func TestCommentsArePlain(t *testing.T) {
	t.Parallel()
	patterns := make([]*regexp.Regexp, len(mannered))
	for i, one := range mannered {
		patterns[i] = regexp.MustCompile(`(?i)\b(` + one.words + `)\b`)
	}
	for _, file := range goSources(t, isCode) {
		for _, group := range file.tree.Comments {
			text := standsFor.ReplaceAllString(strings.Join(strings.Fields(group.Text()), " "), "")
			for i, pattern := range patterns {
				if found := pattern.FindString(text); found != "" {
					t.Errorf("%s: a comment has %q; write: %s", file.at(group), found, mannered[i].instead)
				}
			}
			if strings.Contains("\n"+group.Text(), "\n||") {
				t.Errorf("%s: a line of a comment begins with ||: remove it", file.at(group))
			}
			if found := whoFirst.FindString(text); found != "" {
				t.Errorf("%s: a sentence begins with %q; name its subject", file.at(group), found)
			}
		}
	}
}

// searched are the files that look for words in sentences, and why. Most are texts of others, which
// have no other form: errors of SQLite, the file system, the YAML parser and libraries.
var searched = map[string]string{
	"activities/file/file.go":                "the standard library has no error for a path that escapes its root",
	"activities/sqlite/sqlite.go":            "the standard library has no error for a path that escapes its root",
	"activities/sqlite/state.go":             "SQLite has one code for all errors of SQL",
	"activities/sqlite/table.go":             "SQLite has one code for all errors of SQL",
	"internal/base/connect/connect.go":       "gRPC has no code for an address without a server",
	"internal/base/bucket/bucket.go":         "gocloud has no error for a scheme without a driver",
	"internal/observe/render/verdict.go":     "the message of an error begins with its step, which the verdict has named before",
	"internal/program/steer/send.go":         "the SDK has no type for an update that a worker does not know",
	"internal/test/testenv/browser_linux.go": "chromium says its address in a line of text",
	"interpreter/call/sink/written.go":       "the message of an error may begin with its sink already, and no sink is named twice",
	"interpreter/playbook/parse.go":          "yaml.v3 has errors as text",
}

// searches are the functions that look for a text within another one.
var searches = regexp.MustCompile(`^(Contains|HasPrefix|HasSuffix|Cut|CutPrefix|CutSuffix|TrimPrefix|TrimSuffix|Index|Replace|ReplaceAll|Split|SplitN)$`)

// sentence is what may hold one: an error, a message, a summary, what is waited for.
var sentence = regexp.MustCompile(`(?i)(message|summary|waiting|cause|stalled|hint|reason|why|warning|note|failure|err)$`)

// TestOwnTextsAreNotParsed: what a program knows of a wait, an error or a hint is a field, and nothing
// reads it back from the English in which people read it.
func TestOwnTextsAreNotParsed(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	files := goSources(t, func(name string) bool { return isCode(name) && !strings.HasPrefix(name, "activities/tooltest/") })
	texts := textConstants(files)
	for _, file := range files {
		ast.Inspect(file.tree, func(node ast.Node) bool {
			call, ok := node.(*ast.CallExpr)
			if !ok || len(call.Args) < 2 || !isSearch(call) || !isSentence(call.Args[0]) || !texts.hasWords(file, call.Args[1]) {
				return true
			}
			if searched[file.name] == "" {
				t.Errorf("%s: a sentence is searched for words; carry what they say as a field", file.at(call))
			}
			used[file.name] = true
			return true
		})
	}
	for name := range searched {
		if !used[name] {
			t.Errorf("%s searches no text any more; take it off the list", name)
		}
	}
}

func isSearch(call *ast.CallExpr) bool {
	of, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	name, ok := of.X.(*ast.Ident)
	return ok && name.Name == "strings" && searches.MatchString(of.Sel.Name)
}

// isSentence reports whether an expression is one by its name, or the text of an error.
func isSentence(of ast.Expr) bool {
	switch of := of.(type) {
	case *ast.Ident:
		return sentence.MatchString(of.Name)
	case *ast.SelectorExpr:
		return sentence.MatchString(of.Sel.Name)
	case *ast.CallExpr:
		method, ok := of.Fun.(*ast.SelectorExpr)
		return ok && len(of.Args) == 0 && (method.Sel.Name == "Error" || method.Sel.Name == "Message")
	}
	return false
}

// constants are texts with words in them that have a name, each as the package and the name.
type constants map[string]bool

// textConstants are those of the files. A text that is composed counts by its pieces.
func textConstants(files []goSource) constants {
	found := constants{}
	for _, file := range files {
		ast.Inspect(file.tree, func(node ast.Node) bool {
			switch node := node.(type) {
			case *ast.ValueSpec:
				for i, value := range node.Values {
					found.add(file, node.Names[i], value)
				}
			case *ast.AssignStmt:
				for i, value := range node.Rhs {
					if name, ok := node.Lhs[i].(*ast.Ident); ok && node.Tok == token.DEFINE {
						found.add(file, name, value)
					}
				}
			}
			return true
		})
	}
	return found
}

// add adds the name of a value that is a literal, or one behind the other.
func (c constants) add(file goSource, name *ast.Ident, value ast.Expr) {
	switch value.(type) {
	case *ast.BasicLit, *ast.BinaryExpr:
		if c.hasWords(file, value) {
			c[file.tree.Name.Name+"."+name.Name] = true
		}
	}
}

// words are two words or more, or one with a space at both ends.
var words = regexp.MustCompile(`[A-Za-z]{2,} [a-z]|^ ?[a-z]+ $`)

// hasWords reports whether an expression of a file has a literal of two words or more in it, or the
// name of one.
func (c constants) hasWords(file goSource, of ast.Expr) bool {
	found := false
	ast.Inspect(of, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.BasicLit:
			text, _ := strconv.Unquote(node.Value)
			found = found || node.Kind == token.STRING && words.MatchString(text)
		case *ast.SelectorExpr:
			name, ok := node.X.(*ast.Ident)
			found = found || ok && c[name.Name+"."+node.Sel.Name]
			return false
		case *ast.Ident:
			found = found || c[file.tree.Name.Name+"."+node.Name]
		}
		return true
	})
	return found
}

// TestLimitsOfTestsScale: a limit on real work is testenv.Within, which grows with the load of
// the machine, and no number of seconds.
func TestLimitsOfTestsScale(t *testing.T) {
	t.Parallel()
	for _, file := range goSources(t, isTest) {
		ast.Inspect(file.tree, func(node ast.Node) bool {
			call, ok := node.(*ast.CallExpr)
			if !ok {
				return true
			}
			if limit := limitOf(call); limit != nil && isDuration(limit) && !unscaled[file.name] {
				t.Errorf("%s: the limit does not grow with the load of the machine; write testenv.Within(…)", file.at(call))
			}
			return true
		})
	}
}

// unscaled are tests whose limit is a share of a wait that they see given up, and no time for work.
var unscaled = map[string]bool{"internal/base/sleep/sleep_test.go": true}

// limitOf is the argument of a call that bounds real work, nil where it bounds none.
func limitOf(call *ast.CallExpr) ast.Expr {
	of, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return nil
	}
	switch of.Sel.Name {
	case "Eventually", "Eventuallyf", "EventuallyWithT":
		return call.Args[2]
	case "SetTestTimeout":
		return call.Args[0]
	case "Less", "LessOrEqual":
		if taken, ok := call.Args[1].(*ast.CallExpr); ok && len(call.Args) > 2 {
			since, ok := taken.Fun.(*ast.SelectorExpr)
			if ok && since.Sel.Name == "Since" {
				return call.Args[2]
			}
		}
	}
	return nil
}

// isDuration reports whether an expression is a number of units, such as 10*time.Second or time.Minute.
func isDuration(of ast.Expr) bool {
	switch of := of.(type) {
	case *ast.BinaryExpr:
		return isDuration(of.X) || isDuration(of.Y)
	case *ast.SelectorExpr:
		name, ok := of.X.(*ast.Ident)
		return ok && name.Name == "time"
	}
	return false
}

// TestWaitsOfTestsEnd: what runs on the goroutine of a test waits for others with a limit. A bare
// receive, or the Wait of a group or a process, hangs the suite when what it waits for has failed.
func TestWaitsOfTestsEnd(t *testing.T) {
	t.Parallel()
	for _, file := range goSources(t, isTest) {
		for _, declared := range file.tree.Decls {
			of, ok := declared.(*ast.FuncDecl)
			if !ok || of.Body == nil || !isOfATest(of) {
				continue
			}
			for _, wait := range endlessWaits(of.Body) {
				t.Errorf("%s: it waits without a limit; write testenv.Receive, Returned or Wait", file.at(wait))
			}
		}
	}
}

// isOfATest reports whether a function has a testing.T or the like, or is a helper of one.
func isOfATest(of *ast.FuncDecl) (found bool) {
	for _, given := range of.Type.Params.List {
		ast.Inspect(given.Type, func(node ast.Node) bool {
			name, ok := node.(*ast.Ident)
			found = found || ok && name.Name == "testing"
			return true
		})
	}
	for _, statement := range of.Body.List {
		if first, ok := statement.(*ast.ExprStmt); ok {
			found = found || methodOf(first.X) == "Helper"
		}
	}
	return found
}

// methodOf is the name of the method or function of a package that an expression calls.
func methodOf(node ast.Node) string {
	if call, ok := node.(*ast.CallExpr); ok {
		if of, ok := call.Fun.(*ast.SelectorExpr); ok {
			return of.Sel.Name
		}
	}
	return ""
}

// endlessWaits are the waits without a limit that a function makes itself. What it gives to others,
// or starts, is another goroutine's, but for subtests and cleanups.
func endlessWaits(body ast.Node) (found []ast.Node) {
	ast.Inspect(body, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.FuncLit:
			return false
		case *ast.SelectStmt:
			for _, one := range node.Body.List {
				for _, statement := range one.(*ast.CommClause).Body {
					found = append(found, endlessWaits(statement)...)
				}
			}
			return false
		case *ast.UnaryExpr:
			of, ok := node.X.(*ast.SelectorExpr)
			if node.Op == token.ARROW && (!ok || of.Sel.Name != "C") { // a ticker ticks
				found = append(found, node)
			}
		case *ast.CallExpr:
			switch method := methodOf(node); {
			case method == "Wait" && len(node.Args) == 0:
				found = append(found, node)
			case (method == "Run" || method == "Cleanup") && len(node.Args) > 0:
				if inner, ok := node.Args[len(node.Args)-1].(*ast.FuncLit); ok {
					found = append(found, endlessWaits(inner.Body)...)
				}
			}
		}
		return true
	})
	return found
}
