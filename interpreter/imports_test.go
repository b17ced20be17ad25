package interpreter_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "reprise"

// running are the packages that a run needs. Rewriting files is none of it.
var running = []string{
	"interpreter/source", "interpreter/credential", "interpreter/expression", "interpreter/statement", "interpreter/incremental", "interpreter/partition", "interpreter/playbook", "interpreter/playbook/check", "interpreter/queue", "interpreter/ratelimit", "interpreter/login",
	"interpreter", "interpreter/tree", "interpreter/mailbox", "interpreter/service", "interpreter/retry", "interpreter/call",
	"interpreter/call/request", "interpreter/call/page", "interpreter/call/sink", "interpreter/call/watermark", "interpreter/call/await",
}

// everywhere is what every package may import, as it may the standard library.
const everywhere = "interpreter/lists"

// layers is the order of docs/architecture.md: a package imports packages that
// stand above it in this list and no others of this module.
var layers = []struct {
	dir     string
	imports []string
	reason  string
}{
	{everywhere, nil, "what slices has no function for knows nothing of this module"},
	{
		"interpreter/source", nil,
		"positions and diagnostics are the leaf that everything else speaks in",
	},
	{
		"interpreter/credential", nil,
		"what secrets look like is decided by texts alone",
	},
	{
		"interpreter/expression",
		[]string{"interpreter/source"},
		"an expression knows nothing of playbooks, so that it can be tested and bounded alone",
	},
	{
		"interpreter/statement",
		[]string{"interpreter/source", "interpreter/expression"},
		"SQL with templates is a kind of template and knows nothing of playbooks",
	},
	{
		"interpreter/yamltree",
		[]string{"interpreter/source"},
		"a tree of YAML says where things stand, and nothing of what they mean",
	},
	{
		"interpreter/incremental",
		[]string{"interpreter/expression"},
		"which rows are new is decided by cursors alone, whatever reads and writes them",
	},
	{
		"interpreter/login",
		[]string{"interpreter/expression"},
		"which token is the newest is decided by numbers and times, whoever exchanges it",
	},
	{
		"interpreter/cron",
		[]string{"interpreter/expression"},
		"when a schedule is due is decided by its text, its zone and a time",
	},
	{
		"interpreter/partition",
		[]string{"interpreter/expression"},
		"which partitions there are, and which are done, is decided by times and keys alone",
	},
	{
		"interpreter/playbook",
		[]string{"interpreter/source", "interpreter/credential", "interpreter/expression", "interpreter/statement", "interpreter/incremental", "interpreter/partition", "interpreter/cron", "interpreter/yamltree"},
		"what the author wrote is read without knowing how it is run",
	},
	{
		"interpreter/playbook/check",
		[]string{"interpreter/source", "interpreter/credential", "interpreter/expression", "interpreter/statement", "interpreter/incremental", "interpreter/partition", "interpreter/cron", "interpreter/playbook"},
		"what is wrong is decided by the model, the catalogue of tools and limits, and changes none of them",
	},
	{
		"interpreter/migrate",
		[]string{"interpreter/source", "interpreter/expression", "interpreter/yamltree", "interpreter/playbook"},
		"the text of a file is rewritten with what the language says of its older forms",
	},
	{
		"interpreter/queue",
		[]string{"interpreter/expression", "interpreter/playbook"},
		"which run has its turn is decided by values alone, and nothing that runs steps takes part in it",
	},
	{
		"interpreter/ratelimit",
		nil,
		"who sends when is decided by numbers and times alone",
	},
	{
		"interpreter",
		[]string{"interpreter/source", "interpreter/expression", "interpreter/statement", "interpreter/incremental", "interpreter/partition", "interpreter/playbook", "interpreter/ratelimit"},
		"what travels, scopes, loops and the graph know no call; what waits and what acts is above them",
	},
	{
		"interpreter/tree",
		[]string{"interpreter/playbook", "interpreter"},
		"how many runs may start is decided by a count and a limit, whoever starts them",
	},
	{
		"interpreter/mailbox",
		[]string{"interpreter/expression", "interpreter"},
		"which mailbox stores an answer is decided by its address alone, whoever delivers it",
	},
	{
		"interpreter/service",
		[]string{"interpreter/partition", "interpreter/queue", "interpreter/login", "interpreter", "interpreter/tree", "interpreter/mailbox"},
		"the list of what services do is above all of them, so that none knows the others",
	},
	{
		"interpreter/retry",
		[]string{"interpreter/playbook", "interpreter/ratelimit", "interpreter"},
		"policies decide about an outcome by counters and times, whatever call it is of",
	},
	{
		"interpreter/call/request",
		[]string{"interpreter/source", "interpreter/expression", "interpreter/statement", "interpreter/incremental", "interpreter/playbook", "interpreter/ratelimit", "interpreter"},
		"a request is made of a step, its scope and the page that is due, whatever comes of it",
	},
	{
		"interpreter/call/page",
		[]string{"interpreter/expression", "interpreter/playbook", "interpreter/retry"},
		"what is collected of a page is decided by the page and the policies, wherever it came from",
	},
	{
		"interpreter/call/await",
		[]string{"interpreter/expression", "interpreter/playbook", "interpreter", "interpreter/call/request"},
		"an answer is checked against the request alone, and knows nothing of what follows it",
	},
	{
		"interpreter/call/sink",
		[]string{"interpreter/expression", "interpreter/playbook", "interpreter", "interpreter/call/request", "interpreter/call/page"},
		"which sinks are written to is decided by results and policies, and how by the sink's own call",
	},
	{
		"interpreter/call/watermark",
		[]string{"interpreter/expression", "interpreter/incremental", "interpreter/playbook", "interpreter", "interpreter/call/request", "interpreter/call/page"},
		"where a watermark goes is decided by the rows of pages and the end of the call, wherever it is kept",
	},
	{
		"interpreter/call",
		[]string{
			"interpreter/source", "interpreter/credential", "interpreter/expression", "interpreter/statement", "interpreter/incremental", "interpreter/playbook", "interpreter/ratelimit",
			"interpreter", "interpreter/tree", "interpreter/retry",
			"interpreter/call/request", "interpreter/call/page", "interpreter/call/await", "interpreter/call/sink", "interpreter/call/watermark",
		},
		"a call is decided alone: no graph, no queue and no host takes part in it",
	},
	{
		"internal/base/meter",
		running,
		"what is counted has names and knows nothing of who counts it, or where it goes",
	},
	{
		"internal/base/callback",
		slices.Concat(running, []string{"internal/base/seal"}),
		"a token is the address of an attempt, sealed; who makes it and who reads it share nothing else",
	},
	{
		"internal/base/bookshelf",
		slices.Concat(running, []string{"internal/base/regular"}),
		"a folder of playbooks is files, and what they may be called",
	},
	{
		"workflows",
		slices.Concat(running, []string{"internal/base/meter"}),
		"workflows call tools by name, so that no tool's code is part of what a replay runs",
	},
	{
		"activities",
		slices.Concat(running, []string{"internal/base/secrets", "internal/base/seal", "internal/base/keyring", "internal/base/callback", "internal/base/bookshelf", "internal/base/meter", "internal/base/answers", "internal/base/slots", "internal/base/heartbeat", "internal/base/visibility", "internal/base/connect", "internal/base/connection", "internal/base/sleep", "internal/base/private", "internal/base/egress", "internal/base/bucket", "internal/base/known", "internal/base/audit", "internal/base/awskeys"}),
		"tools know the boundary structs, what connections are, what masks and seals secrets and makes tokens, where playbooks are found by name, how answers are given and how many at a time, how an activity shows that it is alive, how runs are listed, what the server's errors mean, how to wait, which files are the programs' own, which addresses may be reached, how object stores are opened, how denials reach the audit log, with which keys requests to AWS are signed, and nothing of the workflows that call them",
	},
}

// groups are the folders of internal/, the programs, and what Temporal runs: a package
// of a group imports packages of its own group and of those named here.
var groups = []struct {
	dir     string
	imports []string
	reason  string
}{
	{"internal/base", []string{"interpreter"}, "what everything else stands on knows no workflow, tool or run"},
	{"internal/observe", []string{"internal/base", "interpreter", "workflows"}, "reading runs needs what workflows keep, and starts nothing"},
	{
		"internal/program",
		[]string{"internal/base", "internal/observe", "interpreter", "workflows", "activities"},
		"a program is put together from the rest, and a command is none of it",
	},
	{
		"starter",
		[]string{"internal/base", "internal/observe", "internal/program", "interpreter", "workflows", "activities", "playbooks"},
		"commands have what tests need nowhere",
	},
	{
		"worker",
		[]string{"internal/base", "internal/program", "internal/observe/census", "workflows", "activities"},
		"a worker runs playbooks and looks at none, but for the figures of its metrics",
	},
}

// yamlReaders are the packages that know YAML.
var yamlReaders = []string{"interpreter/yamltree", "interpreter/playbook", "interpreter/migrate"}

const yamlReason = "what decides knows the model, of which YAML is one way to write it"

// forbidden are imports that no package under interpreter may have.
var forbidden = []struct {
	prefix string
	except []string // the packages that may
	reason string
}{
	{"go.temporal.io/", nil, "the interpreter is plain Go; the workflows are its Temporal shell"},
	{"google.golang.org/", nil, "the interpreter sends nothing over a wire"},
	{"github.com/jackc/", nil, "the interpreter reaches no database"},
	{"modernc.org/", nil, "the interpreter reaches no database"},
	{"database/sql", nil, "the interpreter reaches no database"},
	{"os", nil, "a decision depends on its arguments alone, or a replay would decide otherwise"},
	{"net", nil, "the interpreter does no input or output"},
	{"io/ioutil", nil, "the interpreter does no input or output"},
	{"syscall", nil, "the interpreter does no input or output"},
	{"log", nil, "the interpreter does no input or output; what happened is in its results"},
	{"math/rand", nil, "random numbers are passed in, from the workflow's deterministic stream"},
	{"crypto/rand", nil, "random numbers are passed in, from the workflow's deterministic stream"},
	{"gopkg.in/yaml", yamlReaders, yamlReason},
	{"go.yaml.in/yaml", yamlReaders, yamlReason},
}

// harmless are packages below a forbidden one that only parse text. Of
// net/http that holds for the names in httpNames.
var harmless = []string{"net/url", "net/http"}

// httpNames are what the interpreter may use of net/http: words and parsers.
var httpNames = []string{"ParseTime", "CanonicalHeaderKey", "StatusText"}

// clock are the functions of package time that read the clock or the machine.
var clock = []string{
	"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTicker", "NewTimer", "Local", "LoadLocation",
}

// sourceFile is a Go file that is part of the build, tests left out.
type sourceFile struct {
	dir, name string
	tree      *ast.File
}

// goFiles parses the files of a folder of the module and, if deep, of those
// below it.
func goFiles(t *testing.T, root string, deep bool) []sourceFile {
	t.Helper()

	var files []sourceFile

	err := filepath.WalkDir(filepath.Join("..", root), func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}

		dir := path.Clean(strings.TrimPrefix(filepath.ToSlash(filepath.Dir(name)), "../"))

		switch {
		case entry.IsDir() && (entry.Name() == "testdata" || !deep && name != filepath.Join("..", root)):
			return filepath.SkipDir
		case entry.IsDir(), !strings.HasSuffix(name, ".go"), strings.HasSuffix(name, "_test.go"):
			return nil
		}

		tree, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		files = append(files, sourceFile{dir: dir, name: filepath.Base(name), tree: tree})
		return err
	})
	require.NoError(t, err)
	return files
}

func imports(t *testing.T, file sourceFile) []string {
	t.Helper()

	var paths []string

	for _, spec := range file.tree.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		require.NoError(t, err)

		paths = append(paths, imported)
	}
	return paths
}

// within reports whether an import is prefix or lies below it.
func within(imported, prefix string) bool {
	return imported == prefix || strings.HasPrefix(imported, strings.TrimSuffix(prefix, "/")+"/") ||
		strings.HasPrefix(prefix, "gopkg.in/") && strings.HasPrefix(imported, prefix+".")
}

// testGear is what tests of tools share. It imports what they need, and no program imports it.
const testGear = "activities/tooltest"

func TestImportOrder(t *testing.T) {
	t.Parallel()

	for _, layer := range layers {
		if _, err := os.Stat(filepath.Join("..", layer.dir)); err != nil {
			require.ErrorIs(t, err, fs.ErrNotExist)
			t.Errorf("the folder %s is gone; take it out of this list", layer.dir)
		}

		for _, file := range goFiles(t, layer.dir, layer.dir != "interpreter") {
			if file.dir == testGear {
				continue
			}

			for _, imported := range imports(t, file) {
				dir, ours := strings.CutPrefix(imported, module+"/")
				if !ours || dir == everywhere || dir == layer.dir || within(dir, layer.dir) && layer.dir != "interpreter" {
					continue
				}

				require.Contains(t, layer.imports, dir, "%s/%s imports %s: %s", file.dir, file.name, imported, layer.reason)
			}
		}
	}
}

func TestGroups(t *testing.T) {
	t.Parallel()

	for _, group := range groups {
		files := goFiles(t, group.dir, true)
		require.NotEmpty(t, files, "the folder %s is gone; take it out of this list", group.dir)

		for _, file := range files {
			for _, imported := range imports(t, file) {
				dir, ours := strings.CutPrefix(imported, module+"/")
				allowed := func(prefix string) bool { return within(dir, prefix) }

				if ours && !within(dir, group.dir) && !slices.ContainsFunc(group.imports, allowed) {
					t.Errorf("%s/%s imports %s: %s", file.dir, file.name, imported, group.reason)
				}
			}
		}
	}
}

// TestEveryPackageHasALayer keeps a new package under interpreter from
// escaping TestImportOrder.
func TestEveryPackageHasALayer(t *testing.T) {
	t.Parallel()

	for _, file := range goFiles(t, "interpreter", true) {
		known := slices.ContainsFunc(layers, func(l struct {
			dir     string
			imports []string
			reason  string
		},
		) bool {
			return l.dir == file.dir
		})
		require.True(t, known, "give %s a place in the list of layers", file.dir)
	}
}

func TestPure(t *testing.T) {
	t.Parallel()

	files := goFiles(t, "interpreter", true)
	require.Greater(t, len(files), 20, "the packages were not found")

	for _, file := range files {
		for _, imported := range imports(t, file) {
			for _, rule := range forbidden {
				if within(imported, rule.prefix) && !slices.Contains(rule.except, file.dir) && !slices.Contains(harmless, imported) {
					t.Errorf("%s/%s imports %s: %s", file.dir, file.name, imported, rule.reason)
				}
			}
		}

		for _, found := range impure(file.tree) {
			t.Errorf("%s/%s: %s", file.dir, file.name, found)
		}
	}
}

// TestOnlyWhatServesAuthorsRewrites keeps what rewrites files out of whatever runs
// playbooks: it may change without a thought of histories.
func TestOnlyWhatServesAuthorsRewrites(t *testing.T) {
	t.Parallel()

	importers := map[string]bool{}

	for _, file := range goFiles(t, ".", true) {
		for _, rewrites := range []string{"/interpreter/migrate", "/internal/program/mend"} {
			if slices.Contains(imports(t, file), module+rewrites) {
				importers[file.dir] = true
			}
		}
	}

	require.Equal(t, map[string]bool{"starter/author": true, "internal/program/mend": true, "internal/program/lsp": true}, importers)
}

// seam are the names of interpreter/playbook that interpreter/migrate uses:
// reading, a little of the model, and what the older forms are.
var seam = []string{
	"Decode", "OlderVersion", "Version",
	"FieldWorkflow", "Node", "NoticeTool", "Playbook", "RequestFields", "Step", "TraitsOf",
	"CurrentSpelling", "OlderLabel", "OlderPages", "OlderRequest", "OlderRetry", "Pagination", "PaginationOf", "StyleList",
	"CodeElementInStepSink", "CodeLegacyRetry", "CodeNotMigrated",
}

// TestSeamOfMigrate keeps the seam narrow: what migrate knows of the language
// by itself would not follow when the language changes.
func TestSeamOfMigrate(t *testing.T) {
	t.Parallel()

	used := map[string]bool{}

	for _, file := range goFiles(t, "interpreter/migrate", false) {
		ast.Inspect(file.tree, func(n ast.Node) bool {
			if selector, ok := n.(*ast.SelectorExpr); ok {
				if pkg, ok := selector.X.(*ast.Ident); ok && pkg.Name == "playbook" {
					used[selector.Sel.Name] = true
				}
			}
			return true
		})
	}

	require.ElementsMatch(t, seam, slices.Collect(maps.Keys(used)))
}

// TestYAMLReaders also proves that the rule above still finds YAML.
func TestYAMLReaders(t *testing.T) {
	t.Parallel()

	var readers []string

	for _, file := range goFiles(t, "interpreter", true) {
		for _, imported := range imports(t, file) {
			if within(imported, "gopkg.in/yaml") && !slices.Contains(readers, file.dir) {
				readers = append(readers, file.dir)
			}
		}
	}

	require.ElementsMatch(t, yamlReaders, readers)
}

// impure finds uses of the clock and goroutines, which no import shows.
func impure(tree *ast.File) []string {
	var found []string

	ast.Inspect(tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			found = append(found, "starts a goroutine; a replay must run in one")
		case *ast.SelectorExpr:
			pkg, ok := n.X.(*ast.Ident)

			switch name := n.Sel.Name; {
			case !ok:
			case pkg.Name == "time" && slices.Contains(clock, name):
				found = append(found, fmt.Sprintf("uses time.%s; times are passed in, so that a replay sees the same ones", name))
			case pkg.Name == "http" && !slices.Contains(httpNames, name) &&
				!strings.HasPrefix(name, "Status") && !strings.HasPrefix(name, "Method"):
				found = append(found, fmt.Sprintf("uses http.%s; the interpreter sends nothing", name))
			}
		}
		return true
	})
	return found
}

func TestImpureIsFound(t *testing.T) {
	t.Parallel()

	tree, err := parser.ParseFile(token.NewFileSet(), "x.go", `package x
import "time"
func f() { go f(); _ = time.Now(); _ = time.Second; _ = http.Get; _ = http.StatusOK }`, 0)
	require.NoError(t, err)
	require.Len(t, impure(tree), 3)
	require.True(t, within("net/http", "net"))
	require.True(t, within("gopkg.in/yaml.v3", "gopkg.in/yaml"))
	require.True(t, within("go.temporal.io/sdk/workflow", "go.temporal.io/"))
	require.False(t, within("nets", "net"))
}
