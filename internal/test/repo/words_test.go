package repo_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// avoided are words that people would have to translate, with what to write in their
// place. They hold for documents and for texts of the program, not for comments.
var avoided = []struct{ words, instead string }{
	{`tells?|told|telling`, "shows, reports, sends, notifies, distinguishes, identifies"},
	{`go(es|ing)? on|went on|gone on`, "continues, is open, is running"},
	{`under way`, "running, open"},
	{`for good`, "permanently, always"},
	{`let it go|waits end for good`, "to resume; waits are dropped"},
	{`stands?|stood`, "is, belongs, occurs; status"},
	{`(give|gives|gave|given|giving) (it |them |one )?back`, "release, return"},
	{`doors?`, "validation, admission"},
	{`(runs?|playbooks?|others|start|starts|started) (further )?(above|below)`, "parent, child"},
	{`handed|hands|hand (over|in|out|back)`, "pass, dispatch, release"},
	{`(an?|its|their|the|of|has|have|for|next) turns?|turns? (under|of)`, "slot, queue, position"},
	{`place (%d|[0-9]+)|places? in (the|a) (queue|line|window)`, "position, slot"},
	{`who (has|have|asks?|waits?) (an?|its|the|for|is)`, "the run that has, waits, requests"},
	{`what (becomes?|became|comes?|came) of`, "what happens to, the outcome of"},
	{`(takes?|took|taken) in`, "accept, read"},
	{`in the midst`, "during"},
	{`workers?( of (the |its )?task queue %q)? (listens?|answer(s|ed)?|repl(y|ies|ied))|listen(s|ing)? (on|to) (a |the |its )?task queue`, "a worker polls a task queue; it responds to a query or an update"},
}

// kept are texts that have such a word and keep it: keys of JSON, which programs read.
var exempt = regexp.MustCompile("`told`")

// TestWordsPeopleRead: texts say what happens in plain words, and each thing by one name.
func TestWordsPeopleRead(t *testing.T) {
	t.Parallel()
	patterns := make([]*regexp.Regexp, len(avoided))
	for i, one := range avoided {
		patterns[i] = regexp.MustCompile(`(?i)\b(` + one.words + `)\b`)
	}
	check := func(place, text string) {
		text = exempt.ReplaceAllString(text, "")
		for i, pattern := range patterns {
			if found := pattern.FindString(text); found != "" {
				t.Errorf("%s: %q; write: %s", place, found, avoided[i].instead)
			}
		}
	}
	read := 0
	require.NoError(t, filepath.WalkDir("../../..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return skipped(path, entry.Name())
		}
		switch filepath.Ext(path) {
		case ".go":
			if !strings.HasSuffix(path, "_test.go") && !strings.Contains(path, "tooltest") {
				read++
				checkTexts(t, path, check)
			}
		case ".md", ".txt", ".html", ".yaml", ".yml", ".json":
			if entry.Name() != "CHANGELOG.md" {
				read++
				checkLines(t, path, check)
			}
		}
		return nil
	}))
	require.Greater(t, read, 300)
}

// skipped are folders whose texts nobody reads, or that are of their time.
func skipped(path, name string) error {
	switch {
	case name == "testdata", name == "decisions", name == "bin", name == "node_modules",
		strings.HasPrefix(name, ".") && name != "..", strings.HasSuffix(path, "internal/test"):
		return filepath.SkipDir
	}
	return nil
}

func checkLines(t *testing.T, path string, check func(place, text string)) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		check(path+":"+strconv.Itoa(n), line)
	}
}

// checkTexts checks the strings of a Go file without the tags of its fields.
func checkTexts(t *testing.T, path string, check func(place, text string)) {
	t.Helper()
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
	require.NoError(t, err)
	tags := map[*ast.BasicLit]bool{}
	ast.Inspect(file, func(node ast.Node) bool {
		if field, ok := node.(*ast.Field); ok && field.Tag != nil {
			tags[field.Tag] = true
		}
		if text, ok := node.(*ast.BasicLit); ok && text.Kind == token.STRING && !tags[text] {
			said, err := strconv.Unquote(text.Value)
			require.NoError(t, err)
			check(set.Position(text.Pos()).String(), said)
		}
		return true
	})
}

// vague are names of functions that say nothing of what they do.
var vague = regexp.MustCompile(`^([tT]ells?|[tT]old|[tT]akes?|[aA]sks?)([A-Z].*)?$`)

// TestFunctionsSayWhatTheyDo: emit, record, signal, notify and render are verbs with one
// meaning each; tell, take and ask are not.
func TestFunctionsSayWhatTheyDo(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "git", "-C", root, "grep", "-nE", `^func (\([^)]*\) )?[A-Za-z]+[[(]`, "--", "*.go", ":!*_test.go").Output()
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	require.Greater(t, len(lines), 3000)
	name := regexp.MustCompile(`func (?:\([^)]*\) )?([A-Za-z]+)`)
	for _, line := range lines {
		if match := name.FindStringSubmatch(line); match != nil && vague.MatchString(match[1]) {
			t.Errorf("%s: rename %s", line, match[1])
		}
	}
}

// oneMeaning are words that names have in one meaning each, which docs/architecture.md explains under Words. means
// matches names in that meaning, behind their folder and a point; instead is what to write for other meanings.
var oneMeaning = []struct{ word, means, instead string }{
	{
		`[kK]eep|[kK]ept`,
		`\.((Read|Reason)?Keeper|keepers?|keeperScript|KeptBy|keptBy|[kK]eptStates?|KeepsStates|keepsStateInPostgres|keptStep|loadKeptSteps|keptStepsOf|` +
			`Test\w*(Keeper|KeepsAState|KeepsStates)\w*)$|^interpreter/call\.keeps$|^internal/test/e2e\.kept$`,
		"save, store, cache, hold, record, select or preserve; only the state of a step is kept",
	},
	{
		`(^|[^eE])[tT]urn`, // and not return
		`^(activities/(attempt|hosting)|interpreter(/call|/ratelimit)?|workflows(/control|/drive)?|internal/base/meter|internal/observe/(render|runs))\.|` +
			`^(internal/test/e2e|starter)\.Test\w*Turns?\w*$`,
		"slot, page, round; only an attempt has a turn, under its rate limit",
	},
}

// TestWordsOfNames: names have the words of oneMeaning in that meaning only.
func TestWordsOfNames(t *testing.T) {
	t.Parallel()
	sources := goSources(t, func(string) bool { return true })
	for _, one := range oneMeaning {
		word, means, found := regexp.MustCompile(one.word), regexp.MustCompile(one.means), 0
		for _, file := range sources {
			for _, name := range declaredNames(file.tree) {
				switch {
				case !word.MatchString(name.Name):
				case means.MatchString(filepath.Dir(file.name) + "." + name.Name):
					found++
				default:
					t.Errorf("%s: rename %s; write: %s", file.at(name), name.Name, one.instead)
				}
			}
		}
		require.NotZero(t, found, one.word)
	}
}

// declaredNames are the names that a file declares: of functions, types, constants, variables, parameters and fields.
func declaredNames(file *ast.File) []*ast.Ident {
	var names []*ast.Ident
	addNew := func(define token.Token, targets ...ast.Expr) {
		for _, target := range targets {
			if name, ok := target.(*ast.Ident); ok && define == token.DEFINE {
				names = append(names, name)
			}
		}
	}
	ast.Inspect(file, func(node ast.Node) bool {
		switch of := node.(type) {
		case *ast.FuncDecl:
			names = append(names, of.Name)
		case *ast.TypeSpec:
			names = append(names, of.Name)
		case *ast.ValueSpec:
			names = append(names, of.Names...)
		case *ast.Field:
			names = append(names, of.Names...)
		case *ast.AssignStmt:
			addNew(of.Tok, of.Lhs...)
		case *ast.RangeStmt:
			addNew(of.Tok, of.Key, of.Value)
		}
		return true
	})
	return names
}
