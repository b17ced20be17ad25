package reference_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"reprise/activities"
	"reprise/internal/base/egress"
	"reprise/internal/program/host"
	"reprise/internal/program/playtest"
	"reprise/internal/program/reference"
	"reprise/internal/program/serve"
	"reprise/internal/test/samples"
	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
	"reprise/interpreter/playbook/check"
	"reprise/interpreter/source"
)

// folder is one with the files that examples name.
func folder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	const mode = 0o600
	for name, text := range map[string]string{
		"score.yaml":          reference.WholePlaybook("- {step: score}"),
		"score_north.yaml":    reference.WholePlaybook("- {step: score}"),
		"score_south.yaml":    reference.WholePlaybook("- {step: score}"),
		"users.yaml":          usersBook,
		"daily.yaml":          strings.Replace(usersBook, "workflow:", "partitions: {every: day, start: 2025-01-01}\nworkflow:", 1),
		"each.yaml":           eachBook,
		"release.yaml":        releaseBook,
		"fetch.recorded.yaml": "playbook: users.yaml\nanswers:\n  fetch:\n    - {status: 200, body: {data: []}}\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), mode))
	}
	return dir
}

// The playbooks that the examples of tests are of.
const (
	usersBook = `apiVersion: reprise/v1
kind: Playbook
metadata: {name: users}
workload: {api: "https://api.test"}
workflow:
  - step: fetch
    tool: http
    url: "{{ api }}/users"
    retry:
      - when: error.class == 'retryable'
        then: {max_attempts: 3}
      - when: response.has_more
        then: {next_call: {params: {page: 2}}, collect: {path: data}}
    sink: {tool: file, path: users.jsonl, args: "{{ result }}"}
output: "{{ len(fetch) }} users"
`
	eachBook = `apiVersion: reprise/v1
kind: Playbook
metadata: {name: each}
workload: {api: "https://api.test"}
workflow:
  - step: fetch
    loop: {in: [1, 2], iterator: id, mode: parallel}
    tool: http
    url: "{{ api }}/users/{{ id }}"
`
	releaseBook = `apiVersion: reprise/v1
kind: Playbook
metadata: {name: release}
workflow:
  - {step: read, tool: postgres, auth: pg_main, statement: SELECT id FROM users, next: ask}
  - step: ask
    tool: approval
    message: Load the rows?
    next: [{when: "{{ result.option == 'approve' }}", then: import}, {else: stop}]
  - {step: import, tool: webhook, timeout: 12h, on_start: {url: "https://etl.test/imports", body: {callback: "{{ callback.url }}"}}}
  - {step: stop}
`
)

// codesOf are the codes of what is found in a playbook in a folder.
func codesOf(dir, text string) []string {
	return lists.Map(diagnosticsOf(dir, text), func(d source.Diagnostic) string { return d.Code })
}

// diagnosticsOf are the diagnostics of a playbook in a folder.
func diagnosticsOf(dir, text string) source.Diagnostics {
	limits, _ := activities.LimitsFromEnv(func(string) (string, bool) { return "", false })
	name := filepath.Join(dir, "example.yaml")
	files := check.NewFiles(func(name string) ([]byte, error) {
		return os.ReadFile(filepath.Join(dir, filepath.Base(strings.TrimPrefix(name, playbook.NamedScheme))))
	})
	_, found := check.Validate(source.NewFile(name, []byte(text)), activities.DefaultCatalogue(), check.Options{Limits: limits, Files: files, Now: reference.ExampleTime})
	return found
}

// TestCodesAreExplained: each code has a reason, an example that has it, and one that has it no longer. What an author
// reads about the wrong example is in testdata/messages.txt.
func TestCodesAreExplained(t *testing.T) {
	t.Parallel()
	r, dir := reference.New(activities.DefaultCatalogue()), folder(t)
	var messages strings.Builder
	for _, code := range check.DiagnosticCodes() {
		entry, found := r.EntryOf(reference.OfCode, code.Code)
		require.True(t, found, code.Code)
		require.NotEqual(t, strings.TrimSuffix(entry.Doc, " "), entry.Doc+" ", code.Code)
		if reason := unshown[code.Code]; reason != "" {
			require.Empty(t, entry.Wrong, "%s: %s", code.Code, reason)
			continue
		}
		diagnostics := diagnosticsOf(dir, reference.WholePlaybook(entry.Wrong))
		reported := lists.Map(diagnostics, func(d source.Diagnostic) string { return d.Code })
		if entry.Wrong == "" {
			assert.Fail(t, "a code without an example",
				"codes.txt needs a wrong example of %s: \"# %s\", why, \"-- wrong\" with a playbook that has it, \"-- right\" with one that does not", code.Code, code.Code)
		} else {
			assert.Contains(t, reported, code.Code,
				"nothing reports %s about the wrong example in codes.txt: a rule of interpreter/playbook/check is called if allRules (rules.go) lists it", code.Code)
		}
		assert.Empty(t, codesOf(dir, reference.WholePlaybook(entry.Right)), "the right example of %s in codes.txt", code.Code)
		fmt.Fprintf(&messages, "# %s\n", code.Code)
		for _, d := range diagnostics {
			fmt.Fprintf(&messages, "%s\n", strings.ReplaceAll(d.String(), dir+"/", ""))
		}
		messages.WriteString("\n")
	}
	samples.Golden(t, "messages", messages.String())
}

// unshown are the codes without an example, and why.
var unshown = map[string]string{
	"code-syntax":      "a worker with Python compiles the code",
	"encoding":         "a page is UTF-8",
	"not-migrated":     "starter migrate reports it",
	"sink-only":        "no tool of the catalogue is",
	"too-deep":         "it takes a thousand levels",
	"too-large":        "it takes thousands of characters",
	"too-many-aliases": "it takes thousands of aliases",
	"too-many-steps":   "it takes thousands of steps",
}

// TestWordsHaveExamples: each key, field and name has an example that has it, and that nothing is
// found in.
func TestWordsHaveExamples(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	for _, entry := range reference.New(activities.DefaultCatalogue()).Entries() {
		switch entry.Kind {
		case reference.OfKey, reference.OfField:
			_, word, _ := cutLast(entry.Name)
			if !assert.Regexp(t, `^"?`+word+`"?: `, strings.ReplaceAll(entry.Snippet, "\n", " "),
				"%s has no example: write one under \"-- %s\" in %s (its kind gives no value)", entry.Name, word, exampleFiles[entry.Kind]) {
				continue
			}
			fallthrough
		case reference.OfName, reference.OfTool:
			if assert.NotEmpty(t, entry.Example, entry.Name) {
				assert.Contains(t, entry.Example, entry.Snippet[:strings.Index(entry.Snippet+"\n", "\n")], entry.Name)
				assert.Empty(t, codesOf(dir, reference.WholePlaybook(entry.Example)), "%s:\n%s", entry.Name, entry.Example)
			}
			if entry.Kind == reference.OfName {
				assert.Contains(t, entry.Example, entry.Name)
			}
		case reference.OfFunction:
			checkFunction(t, entry)
		default:
		}
	}
}

// exampleFiles are the files that have the examples of words and of fields of tools.
var exampleFiles = map[reference.Kind]string{reference.OfKey: "examples.txt", reference.OfField: "fields.txt"}

func cutLast(path string) (before, last string, found bool) {
	i := strings.LastIndexByte(path, '.')
	if i < 0 {
		return "", path, false
	}
	return path[:i], path[i+1:], true
}

// checkFunction: the example of a function gives what it says.
func checkFunction(t *testing.T, entry reference.Entry) {
	t.Helper()
	if assert.NotEmpty(t, entry.Example, "%s has no example: write a call and its result in functions.txt", entry.Name) {
		checkCall(t, entry.Example)
	}
}

// checkCall evaluates a call of functions.txt and compares its result.
func checkCall(t *testing.T, line string) {
	t.Helper()
	call, want, found := strings.Cut(line, " => ")
	require.True(t, found, line)
	program, problems := expression.Compile(call)
	require.Empty(t, problems, call)
	value, err := program.Eval(expression.MapScope{}, expression.NewBudget(expression.DecisionLimits, time.Date(2026, 1, 31, 6, 0, 0, 0, time.UTC)))
	require.NoError(t, err, call)
	wanted, err := expression.Decode([]byte(want))
	require.NoError(t, err, call)
	require.Equal(t, wanted, value, call)
}

// TestCallsOfFunctions: each call in functions.txt gives the result behind it. The first call of a function is its
// example; the others are its edge cases.
func TestCallsOfFunctions(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("functions.txt")
	require.NoError(t, err)
	calls := strings.Split(strings.TrimSpace(string(text)), "\n")
	for _, call := range calls {
		checkCall(t, call)
	}
	require.Greater(t, len(calls), 70)
}

// TestTestKeysHaveExamples: each word of files of tests has an example, whose tests pass.
func TestTestKeysHaveExamples(t *testing.T) {
	t.Parallel()
	for _, entry := range reference.New(activities.DefaultCatalogue()).Entries() {
		if entry.Kind != reference.OfTestKey || !assert.NotEmpty(t, entry.Example, entry.Name) {
			continue
		}
		dir := folder(t)
		book := strings.TrimPrefix(strings.Split(entry.Example, "\n")[0], "playbook: ")
		path := filepath.Join(dir, strings.TrimSuffix(book, ".yaml")+playbook.TestSuffix)
		require.NoError(t, os.WriteFile(path, []byte(entry.Example+"\n"), 0o600))
		suite, err := playtest.Load(path)
		if !assert.NoError(t, err, "%s:\n%s", entry.Name, entry.Example) {
			continue
		}
		for _, test := range suite.Tests.Tests {
			for _, failure := range suite.Run(test, playtest.Options{}).Failures {
				assert.Fail(t, failure.Text(path), "%s:\n%s", entry.Name, entry.Example)
			}
		}
	}
}

// TestFilesAreRead: the programs read the examples of files.
func TestFilesAreRead(t *testing.T) {
	t.Parallel()
	r := reference.New(activities.DefaultCatalogue())
	readers := map[string]func(path string) error{
		"connections.yaml": func(path string) error { _, err := host.ReadConnections(path); return err },
		"egress.yaml":      func(path string) error { _, err := host.ReadEgress(path, egress.RemotePolicy()); return err },
		"rate-limits.yaml": func(path string) error { _, err := host.RateLimits(path); return err },
		"callers.yaml":     func(path string) error { _, err := serve.OpenCallers(path); return err },
	}
	hashes := strings.NewReplacer("HASH", strings.Repeat("a", 64), "OTHER", strings.Repeat("b", 64))
	for _, name := range r.NamesOf(reference.OfFile) {
		entry, _ := r.EntryOf(reference.OfFile, name)
		path := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.WriteFile(path, []byte(hashes.Replace(entry.Example)), 0o600))
		require.NoError(t, readers[name](path), name)
	}
}

// TestEverythingHasAnEntry: keys, tools, fields and functions are found by what people type.
func TestEverythingHasAnEntry(t *testing.T) {
	t.Parallel()
	r := reference.New(activities.DefaultCatalogue())
	for question, want := range map[string]string{
		"retry.then.max_wait": "max_wait", "max_wait": "max_wait", "then.max_wait": "max_wait", "http": "http", "http.url": "http.url", "hard_delete": "postgres.hard_delete", "schema_contract": "postgres.schema_contract", "len": "len", "len()": "len",
		"loop.in": "collection", "unknown-name": "unknown-name", "partial_success": "partial_success", "4": "4", "exit 4": "4", "response": "response",
		"tests.answers": "tests.answers", "REPRISE_SECRET_KEY": "REPRISE_SECRET_KEY", "reprise_runs_total": "reprise_runs_total", "RepriseStatus": "RepriseStatus",
	} {
		found := r.Find(question)
		require.NotEmpty(t, found, question)
		require.True(t, slices.ContainsFunc(found, func(e reference.Entry) bool { return strings.HasSuffix(e.Name, want) }), question)
	}
	for _, entry := range r.Entries() {
		require.NotEmpty(t, entry.Doc, entry.Name)
		require.NotEmpty(t, r.Find(entry.Name), entry.Name)
		require.NotEmpty(t, entry.Markdown(), entry.Name)
		for _, name := range entry.Related {
			require.NotEmpty(t, r.Find(name), "%s is related to %s", entry.Name, name)
		}
	}
	require.Empty(t, r.Find("nothing.of.this"))
	require.Equal(t, "retry.then.max_wait", r.Suggest("retry.then.max_wiat"))
	require.Equal(t, "http", r.Suggest("htpp"))
}

// TestListingsAreExplained: whatever a listing names, an entry explains: names, the ends of names of fields, accepted
// values and members.
func TestListingsAreExplained(t *testing.T) {
	t.Parallel()
	r := reference.New(activities.DefaultCatalogue())
	for _, entry := range r.Entries() {
		for _, word := range append(slices.Clone(entry.Words), entry.Name) {
			assert.NotEmpty(t, r.Find(word), "%s of %s", word, entry.Name)
		}
		if _, end, nested := strings.Cut(entry.Name, "."); nested && (entry.Kind == reference.OfField || entry.Kind == reference.OfTestKey) {
			assert.NotEmpty(t, r.Find(end), entry.Name)
		}
	}
	for question, want := range map[string]string{
		"csv.delimiter": "file.csv.delimiter", "upsert": "postgres.mode", "policies.NAME.then.collect": "retry.then.collect", "policies.api.when": "retry.when", "watermark": "incremental",
	} {
		found := r.Find(question)
		require.NotEmpty(t, found, question)
		require.True(t, slices.ContainsFunc(found, func(e reference.Entry) bool { return e.Name == want }), "%s: %s", question, found[0].Name)
	}
	require.Empty(t, r.Find("nothing_of_the_kind"))
}
