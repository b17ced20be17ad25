package docs_test

import (
	"flag"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/activities"
	"reprise/internal/program/docsite"
	"reprise/internal/program/host"
	"reprise/internal/program/reference"
	"reprise/internal/test/docs"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/migrate"
	"reprise/interpreter/playbook/check"
	"reprise/interpreter/source"
)

var update = flag.Bool("update", false, "write the generated parts of the documentation")

// root is the top of the repository, seen from this package.
const root = "../../.."

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	require.NoError(t, err)
	return string(text)
}

func TestGolden(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(root, "docs")
	if *update {
		require.NoError(t, docs.WritePages(dir, activities.DefaultCatalogue()))
	}
	pages, err := docs.GeneratedPages(dir, activities.DefaultCatalogue())
	require.NoError(t, err)
	for name, want := range pages {
		wanted, lines := strings.Split(want, "\n"), strings.Split(read(t, filepath.Join("docs", name)), "\n")
		for i := range min(len(wanted), len(lines)) {
			require.Equal(t, wanted[i], lines[i], "docs/%s:%d is out of date: run make reference", name, i+1)
		}
		require.Len(t, lines, len(wanted), "docs/%s is out of date: run make reference", name)
	}
}

// elsewhere are the pages whose playbooks are files of one another: other tests run them.
var elsewhere = []string{"docs/tutorial.md", "docs/how-to/test-a-playbook.md"}

func examples(t *testing.T) []*docs.Example {
	t.Helper()
	pages, err := docs.WrittenExamples(root)
	require.NoError(t, err)
	var all []*docs.Example
	for name, found := range pages {
		require.Equal(t, strings.Count("\n"+read(t, name), "\n```"), 2*len(found), "%s: a block is not closed", name)
		if !slices.Contains(elsewhere, name) {
			all = append(all, found...)
		}
	}
	const least = 120
	require.Greater(t, len(all), least)
	return all
}

func TestExamplesAreValid(t *testing.T) {
	t.Parallel()
	for _, example := range examples(t) {
		if !example.Is("yaml") {
			continue
		}
		file := source.NewFile(example.File+":"+strconv.Itoa(example.Line), []byte(example.Playbook()))
		options := check.Options{}
		if !example.Whole() {
			options.Workload = docs.ExampleWorkload()
		}
		_, found := check.Validate(file, activities.DefaultCatalogue(), options)
		require.Empty(t, found, "%s", file.FormatAll(found))
	}
}

// TestInvalidExamples: an invalid example stands before the message that it
// causes.
func TestInvalidExamples(t *testing.T) {
	t.Parallel()
	seen := 0
	for _, example := range examples(t) {
		if !example.Is("yaml", "invalid") {
			continue
		}
		seen++
		require.True(t, example.Next.Is("text"), "%s:%d: no message follows", example.File, example.Line)
		name, _, _ := strings.Cut(example.Next.Text, ":")
		file := source.NewFile(name, []byte(example.Text))
		_, found := check.Validate(file, activities.DefaultCatalogue(), check.Options{})
		require.Equal(t, file.FormatAll(found), example.Next.Text, "%s:%d", example.File, example.Next.Line)
	}
	require.Positive(t, seen)
}

// connectionsFile finds the files of connections that pages write.
var connectionsFile = regexp.MustCompile(`(?s)cat > connections\.yaml <<'EOF'\n(.*?\n)EOF\n`)

// TestConnectionsOfPages: the worker reads what pages write as connections. A certificate is left out there.
func TestConnectionsOfPages(t *testing.T) {
	t.Parallel()
	seen := 0
	for page, text := range ownPages(t) {
		for _, found := range connectionsFile.FindAllStringSubmatch(text, -1) {
			file := filepath.Join(t.TempDir(), "connections.yaml")
			require.NoError(t, os.WriteFile(file, []byte(strings.ReplaceAll(found[1], "PEM", "{from: file, path: pem}")), 0o600))
			_, err := host.ReadConnections(file)
			require.NoError(t, err, page)
			seen++
		}
	}
	require.Positive(t, seen)
}

// TestOlderExamples: an older form stands before what migrate makes of it.
func TestOlderExamples(t *testing.T) {
	t.Parallel()
	seen := 0
	for _, example := range examples(t) {
		if !example.Is("yaml", "older") {
			continue
		}
		seen++
		require.True(t, example.Next.Is("yaml"), "%s:%d: nothing follows", example.File, example.Line)
		migrated := migrate.MigrateFile(source.NewFile(example.File, []byte(example.Playbook())))
		require.Empty(t, migrated.Problems)
		require.Equal(t, example.Next.Playbook(), string(migrated.Text), "%s:%d", example.File, example.Next.Line)
	}
	require.Positive(t, seen)
}

// conditionRow is a row of the table of conditions.
var conditionRow = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| .* \\|$")

// TestConditions: what the table says matches failures does so, and nothing
// else does.
func TestConditions(t *testing.T) {
	t.Parallel()
	_, rows, found := strings.Cut(read(t, "docs/concepts/attempts.md"), "| `when` | matches |\n|---|---|\n")
	require.True(t, found)
	rows, _, _ = strings.Cut(rows, "\n\n")
	failure := expression.MapScope{
		"error": map[string]any{"class": "retryable", "status": 503, "kind": "timeout", "type": "40001", "headers": map[string]any{"x-error-code": "17"}},
		"this":  map[string]any{"meta": map[string]any{}},
	}
	success := expression.MapScope{
		"response": map[string]any{"paging": map[string]any{"hasMore": true}, "status": "pending", "ok": false},
		"this":     map[string]any{"meta": map[string]any{"links": map[string]any{"next": "https://example.com/2"}}},
	}
	conditions := conditionRow.FindAllStringSubmatch(rows, -1)
	require.Len(t, conditions, strings.Count(rows, "\n")+1)
	for _, condition := range conditions {
		program, problems := expression.Compile(condition[1])
		require.Empty(t, problems, condition[1])
		ofFailures := strings.Contains(condition[1], "error") && !strings.Contains(condition[1], "not defined")
		for scope, want := range map[*expression.MapScope]bool{&failure: ofFailures, &success: !ofFailures} {
			value, err := program.Eval(*scope, expression.NewBudget(expression.DecisionLimits, time.Time{}))
			require.NoError(t, err, condition[1])
			require.Equal(t, want, expression.Truthy(value), condition[1])
		}
	}
}

func TestExpressionExamples(t *testing.T) {
	t.Parallel()
	seen := 0
	for _, example := range examples(t) {
		if !example.Is("text", "expressions") {
			continue
		}
		for _, line := range strings.Split(strings.TrimSpace(example.Text), "\n") {
			seen++
			text, want, found := strings.Cut(line, "=>")
			require.True(t, found, line)
			program, problems := expression.Compile(strings.TrimSpace(text))
			require.Empty(t, problems, line)
			value, err := program.Eval(expression.MapScope{}, expression.NewBudget(expression.DecisionLimits, time.Time{}))
			require.NoError(t, err, line)
			wanted, err := expression.Decode([]byte(want))
			require.NoError(t, err, line)
			require.Equal(t, wanted, value, line)
		}
	}
	require.Positive(t, seen)
}

// anchor is what GitHub makes of a heading.
func anchor(heading string) string {
	plain := notInAnchor.ReplaceAllString(strings.ToLower(heading), "")
	return strings.ReplaceAll(strings.TrimSpace(plain), " ", "-")
}

var (
	notInAnchor = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
	headingLine = regexp.MustCompile(`(?m)^#{1,6} (.+)$`)
	anchorTag   = regexp.MustCompile(`<a id="([^"]+)">`)
	link        = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	fencedBlock = regexp.MustCompile("(?ms)^```.*?^```$")
)

func anchors(markdown string) []string {
	var all []string
	for _, match := range headingLine.FindAllStringSubmatch(fencedBlock.ReplaceAllString(markdown, ""), -1) {
		all = append(all, anchor(match[1]))
	}
	for _, match := range anchorTag.FindAllStringSubmatch(markdown, -1) {
		all = append(all, match[1])
	}
	return all
}

// TestLinks: every link between the pages leads somewhere.
func TestLinks(t *testing.T) {
	t.Parallel()
	pages := markdownPages(t)
	require.Greater(t, len(pages), 50)
	for page, known := range pages {
		if strings.HasPrefix(page, reference.Folder) {
			require.Len(t, slices.Compact(slices.Sorted(slices.Values(known))), len(known), "%s has a heading twice", page)
		}
		for _, match := range link.FindAllStringSubmatch(fencedBlock.ReplaceAllString(read(t, page), ""), -1) {
			checkLink(t, pages, page, match[1])
		}
	}
}

// markdownPages are the anchors of all documents by their paths in the repository.
func markdownPages(t *testing.T) map[string][]string {
	t.Helper()
	pages := map[string][]string{"README.md": anchors(read(t, "README.md")), "CONTRIBUTING.md": anchors(read(t, "CONTRIBUTING.md"))}
	require.NoError(t, filepath.WalkDir(filepath.Join(root, "docs"), func(path string, _ os.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".md" {
			return err
		}
		name, err := filepath.Rel(root, path)
		pages[filepath.ToSlash(name)] = anchors(read(t, name))
		return err
	}))
	return pages
}

func checkLink(t *testing.T, pages map[string][]string, page, target string) {
	t.Helper()
	if strings.Contains(target, "://") {
		return
	}
	file, fragment, _ := strings.Cut(target, "#")
	linked := page
	if file != "" {
		linked = path.Join(path.Dir(page), file)
		_, err := os.Stat(filepath.Join(root, linked))
		require.NoError(t, err, "%s links to %s", page, target)
	}
	if fragment != "" {
		require.True(t, slices.Contains(pages[linked], fragment), "%s links to %s, and %s has no such heading; if it is generated, run make reference", page, target, linked)
	}
}

// documentNamed is a document that a Go file names in a text for people, with its heading.
var documentNamed = regexp.MustCompile(`docs/[a-z/-]+\.md(?:#[\p{L}\p{N}_-]+)?`)

// TestDocumentsNamedInCode: what Go files name of the documents, in texts and comments, is there.
func TestDocumentsNamedInCode(t *testing.T) {
	t.Parallel()
	pages, named := markdownPages(t), 0
	eachGoFile(t, func(name, text string) {
		for _, target := range documentNamed.FindAllString(text, -1) {
			named++
			checkLink(t, pages, "README.md", target) // as from the root of the repository
		}
	})
	require.Greater(t, named, 50)
	for _, entry := range reference.New(activities.DefaultCatalogue()).Entries() {
		checkLink(t, pages, "README.md", entry.Link)
		if entry.Concept != "" {
			checkLink(t, pages, "README.md", entry.Concept)
		}
	}
}

// eachGoFile gives the Go files of the programs, without their tests.
func eachGoFile(t *testing.T, visit func(name, text string)) {
	t.Helper()
	for _, dir := range []string{"activities", "interpreter", "workflows", "starter", "worker", "internal"} {
		require.NoError(t, filepath.WalkDir(filepath.Join(root, dir), func(path string, _ os.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			visit(path, string(text))
			return err
		}))
	}
}

// TestPagesHaveNoSeams: what two changes made to one place is one text again. No long
// line of a page that people write stands in it twice, and each table has its head.
func TestPagesHaveNoSeams(t *testing.T) {
	t.Parallel()
	pages, err := docs.WrittenPages(root)
	require.NoError(t, err)
	for _, page := range append(pages, "CONTRIBUTING.md", "docs/architecture.md") {
		first, before, table := map[string]int{}, "", 0
		for i, line := range strings.Split(fencedBlock.ReplaceAllStringFunc(read(t, page), blank), "\n") {
			if len(line) >= 60 {
				require.Zero(t, first[line], "%s:%d says again what line %d says: %s", page, i+1, first[line], line)
				first[line] = i + 1
			}

			if table++; !strings.HasPrefix(line, "|") {
				table = 0
			}
			if table == 2 {
				require.Contains(t, line, "|--", "%s:%d: a table has a head", page, i+1)
			}
			if strings.HasPrefix(line, "#") && i > 0 {
				require.Empty(t, before, "%s:%d: an empty line stands before a heading", page, i+1)
			}
			before = line
		}
	}
}

// blank keeps the lines of a text and nothing of what is in them.
func blank(text string) string { return strings.Repeat("\n", strings.Count(text, "\n")) }

// TestCodesAreExplained: every code that a message ends with has its anchor.
func TestCodesAreExplained(t *testing.T) {
	t.Parallel()
	known := anchors(read(t, "docs/reference/diagnostics.md"))
	for _, code := range check.DiagnosticCodes() {
		require.True(t, slices.Contains(known, code.Code), "docs/reference/diagnostics.md lacks %s: run make reference", code.Code)
	}
}

var (
	variable = regexp.MustCompile(`REPRISE_[A-Z][A-Z_]*[A-Z]`)
	// connectionVariable begins those whose end the user chooses.
	connectionVariable = "REPRISE_AUTH"
)

// TestVariablesAreDocumented: whatever the programs read from the environment
// is in the documentation, and nothing else.
func TestVariablesAreDocumented(t *testing.T) {
	t.Parallel()
	read := variables(t, ".go", "activities", "interpreter", "internal", "starter", "worker", "workflows")
	documented := variables(t, ".md", "docs")
	require.Greater(t, len(read), 10)
	require.Equal(t, read, documented, "read by the programs, and named in docs/")
	var listed []string
	for _, name := range reference.New(activities.DefaultCatalogue()).NamesOf(reference.OfVariable) {
		if strings.HasPrefix(name, "REPRISE_") && !strings.HasPrefix(name, connectionVariable) {
			listed = append(listed, name)
		}
	}
	slices.Sort(listed)
	require.Equal(t, read, listed, "read by the programs, and in internal/program/reference/programs.go")
}

// variables are those that the files below some folders name, sorted.
func variables(t *testing.T, ext string, dirs ...string) []string {
	t.Helper()
	found := map[string]bool{}
	for _, dir := range dirs {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, _ os.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ext || strings.HasSuffix(path, "_test.go") || strings.HasSuffix(filepath.Dir(path), "program/reference") {
				return err
			}
			text, err := os.ReadFile(path)
			for _, name := range variable.FindAllString(string(text), -1) {
				if !strings.HasPrefix(name, connectionVariable) {
					found[name] = true
				}
			}
			return err
		})
		require.NoError(t, err)
	}
	return slices.Sorted(maps.Keys(found))
}

// TestPictureOfStatuses: the picture of architecture.md has the statuses of the table, and
// arrows into and out of each as its row says.
func TestPictureOfStatuses(t *testing.T) {
	t.Parallel()
	page := read(t, "docs/architecture.md")
	_, picture, found := strings.Cut(page, "stateDiagram-v2\n")
	require.True(t, found)
	picture, _, _ = strings.Cut(picture, "```")
	into, out := map[string]bool{}, map[string]bool{}
	for _, arrow := range regexp.MustCompile(`(?m)^\s*(\S+) --> (\w+)`).FindAllStringSubmatch(picture, -1) {
		out[arrow[1]], into[arrow[2]] = true, true
	}
	delete(out, "[*]")
	delete(out, "open")
	for _, info := range interpreter.Statuses() {
		name := string(info.Status)
		require.True(t, into[name], "no arrow leads to %s", name)
		require.Equal(t, info.Ending == interpreter.Open, out[name], "arrows that leave %s", name)
		delete(into, name)
		delete(out, name)
	}
	require.Empty(t, into, "no row of the table of statuses")
	require.Empty(t, out, "no row of the table of statuses")
}

// TestDiagramsAreDrawn: each diagram has its drawing, and each drawing its diagram.
func TestDiagramsAreDrawn(t *testing.T) {
	t.Parallel()
	diagrams, err := docs.MermaidBlocks(root)
	require.NoError(t, err)
	wanted := map[string]bool{}
	for _, one := range diagrams {
		wanted[docsite.PicturePath(one.Text)] = true
		require.FileExists(t, filepath.Join(root, docsite.PicturePath(one.Text)), "%s:%d: go run ./internal/test/docs/diagrams", one.File, one.Line)
	}
	drawn, err := filepath.Glob(filepath.Join(root, "docs/pictures/*.svg"))
	require.NoError(t, err)
	require.Len(t, drawn, len(wanted), "drawings without a diagram")
	require.Greater(t, len(drawn), 5)
}
