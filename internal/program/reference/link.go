package reference

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
)

// Folder is where the pages of the reference are.
const Folder = "docs/reference/"

// Page is one of the reference.
type Page struct {
	Name  string // of the file, without .md
	Title string
	About string // one sentence
}

// Pages are those of the reference in the order of reading.
func Pages() []Page {
	return []Page{
		{"playbook", "Playbook", "The keys at the top of a playbook, with `metadata`, `concurrency`, `partitions`, `workbook`, `policies` and notices."},
		{"step", "Step", "The keys of a step, with `tool`, `rate_limit` and `next`."},
		{"retry", "Retry, pages and polls", "The keys of `retry`: what an attempt that failed, or a page that has a next one, leads to."},
		{"loop", "Loop", "The keys of `loop`, with its failure budget, thresholds and dead letters."},
		{"sinks", "Sinks", "The keys of `sink`. The fields of its tool are beside them."},
		{"incremental", "Incremental", "The keys of `incremental`: what a step keeps between runs."},
		{"tools", "Tools", "What a step can call, and what a sink writes with."},
		{"expressions", "Expressions", "The names and functions that expressions have."},
		{"tests", "Test files", "The keys of a file of tests, such as `users_test.yaml`."},
		{"diagnostics", "Diagnostics", "What `starter validate` reports, each with a wrong and a right playbook."},
		{"statuses", "Statuses", "What the status of a run, a step or an iteration means."},
		{"events", "Events", "What `starter events` prints of a run."},
		{"commands", "Commands of starter", "Each command of `starter` with its flags."},
		{"worker", "Flags of worker", "The flags of `worker`, with the variables that set them."},
		{"http-api", "HTTP API", "The requests that `starter serve` answers."},
		{"configuration", "Variables and files", "The environment variables and files that the programs read."},
		{"metrics", "Metrics", "What a worker counts, for Prometheus and OpenTelemetry."},
		{"search-attributes", "Search attributes", "What Temporal's list filters find runs by."},
		{"exit-codes", "Exit codes", "What the commands exit with."},
	}
}

// pages are the names of the pages that have the sections of the language.
var pages = map[string]string{
	"metadata": "playbook", "concurrency": "playbook", "partitions": "playbook", "workbook": "playbook", "notify": "playbook", "expect": "playbook",
	"on_failure": "playbook", "step": "step", "tool": "step", "rate_limit": "step", "next": "step", "loop": "loop", "incremental": "incremental",
	"retry": "retry", "sink": "sinks",
}

// pagesOf are those that have all entries of a kind.
var pagesOf = map[Kind]string{
	OfTool: "tools", OfField: "tools", OfName: "expressions", OfFunction: "expressions", OfTestKey: "tests", OfCode: "diagnostics", OfStatus: "statuses",
	OfEvent: "events", OfAttribute: "search-attributes", OfMetric: "metrics", OfVariable: "configuration", OfFile: "configuration", OfExit: "exit-codes",
}

// PageOf is the name of the page that has an entry.
func PageOf(e Entry) string {
	if e.Kind != OfKey {
		return pagesOf[e.Kind]
	}
	head, _, nested := strings.Cut(e.Name, ".")
	if !nested {
		return "playbook"
	}
	return pages[head]
}

// PageOfSection is the name of the page that has a section of the language.
func PageOfSection(section string) string {
	path := paths[section]
	if strings.HasPrefix(section, "test") {
		return pagesOf[OfTestKey]
	}
	head, _, _ := strings.Cut(path, ".")
	return cmp.Or(pages[head], "playbook")
}

// linkOf is where the reference has an entry.
func linkOf(e Entry) string { return Folder + PageOf(e) + ".md#" + Anchor(e.Label()) }

// OfDiagnostic is the file and heading that explain a diagnostic.
func OfDiagnostic(code string) string { return linkOf(Entry{Kind: OfCode, Name: code}) }

// Label is the heading of an entry in the reference. That of a function has brackets, as names may be spelt alike.
func (e Entry) Label() string {
	switch e.Kind {
	case OfFunction:
		return e.Name + "()"
	case OfName, OfTestKey, OfKey, OfTool, OfField, OfCode, OfStatus, OfEvent, OfAttribute, OfMetric, OfVariable, OfFile, OfExit:
	}
	return e.Heading()
}

// Anchor is that of a heading, as code forges make it.
func Anchor(heading string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(heading) {
		switch {
		case r == ' ':
			b.WriteByte('-')
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			b.WriteRune(r)
		}
	}
	return b.String()
}

// concepts are the headings that explain what keys are for, by the paths of keys: the longest one
// that an entry begins with counts.
var concepts = map[string]string{
	"metadata.schedule": "docs/language.md#schedule", "metadata.triggers": "docs/language.md#triggers", "concurrency": "docs/language.md#concurrency",
	"partitions": "docs/language.md#partitions", "workbook": "docs/language.md#workbook", "policies": "docs/language.md#policies",
	"notify": "docs/language.md#notify", "on_success": "docs/language.md#on_success", "on_failure": "docs/language.md#on_success",
	"expect": "docs/language.md#expect", "state": "docs/language.md#names-of-states", "workload": "docs/language.md#playbook", "output": "docs/language.md#results",
	"timeout": "docs/language.md#timeout", "strict": "docs/language.md#statuses", "step": "docs/language.md#step", "step.loop": "docs/language.md#loop",
	"step.secret": "docs/language.md#secret", "step.vars": "docs/language.md#vars", "step.join": "docs/language.md#join", "step.next": "docs/language.md#next",
	"step.args": "docs/language.md#args", "step.auth": "docs/language.md#connections", "step.timeout": "docs/language.md#timeout",
	"step.idempotency": "docs/language.md#attempts-and-keys", "step.sink": "docs/language.md#sinks", "step.incremental": "docs/language.md#incremental",
	"step.retry": "docs/language.md#retry", "step.rate_limit": "docs/language.md#rate_limit", "tool": "docs/language.md#tool", "rate_limit": "docs/language.md#rate_limit",
	"next": "docs/language.md#next", "loop": "docs/language.md#loop", "loop.dead_letter": "docs/language.md#dead-letters", "incremental": "docs/language.md#incremental",
	"retry": "docs/language.md#retry", "retry.then": "docs/language.md#then", "retry.then.max_wait": "docs/language.md#requested-waits",
	"retry.then.retry_after": "docs/language.md#fail", "retry.then.fail": "docs/language.md#fail", "retry.then.class": "docs/language.md#fail",
	"retry.then.type": "docs/language.md#fail", "retry.then.ignore": "docs/language.md#ignore", "retry.then.result": "docs/language.md#ignore",
	"retry.then.restart": "docs/language.md#restart", "retry.then.next_call": "docs/language.md#next_call", "retry.then.collect": "docs/language.md#collect",
	"retry.then.per_iteration": "docs/language.md#per_iteration", "retry.then.on_exhausted": "docs/language.md#exhausted",
	"retry.then.allow_repeat": "docs/language.md#guards", "retry.then.end_on_repeat": "docs/language.md#guards", "sink": "docs/language.md#sink",
}

// conceptsOf are the headings that explain all entries of a kind.
var conceptsOf = map[Kind]string{
	OfTool: "docs/language.md#calls", OfField: "docs/language.md#calls", OfName: "docs/language.md#names", OfFunction: "docs/language.md#expressions",
	OfTestKey: "docs/testing.md", OfCode: "docs/language.md#diagnostics", OfStatus: "docs/language.md#statuses", OfEvent: "docs/operations.md#events",
	OfAttribute: "docs/operations.md#in-the-web-ui", OfMetric: "docs/operations.md#metrics-and-traces", OfVariable: "docs/operations.md#variables", OfFile: "docs/operations.md#connections-and-secrets",
	OfExit: "docs/language.md#exit-codes",
}

// conceptOf is the heading that explains an entry, "" for none.
func conceptOf(e Entry) string {
	if e.Kind != OfKey {
		return conceptsOf[e.Kind]
	}
	for path := e.Name; path != ""; {
		if found := concepts[path]; found != "" {
			return found
		}
		before, _, nested := cutLast(path)
		if !nested {
			break
		}
		path = before
	}
	return ""
}

// families are the words that are read together.
var families = [][]string{
	{"retry.then.max_attempts", "retry.then.max_elapsed", "retry.then.on_exhausted"},
	{"retry.then.delay", "retry.then.initial_delay", "retry.then.max_delay", "retry.then.backoff", "retry.then.backoff_multiplier", "retry.then.jitter"},
	{"retry.then.max_wait", "retry.then.retry_after", "step.rate_limit"},
	{"retry.then.fail", "retry.then.class", "retry.then.type", "retry.then.retry_after"},
	{"retry.then.ignore", "retry.then.result"},
	{"retry.then.next_call", "retry.then.collect", "retry.then.per_iteration", "retry.then.sink", "retry.then.pages_per_activity"},
	{"retry.then.allow_repeat", "retry.then.end_on_repeat"},
	{"retry.then.restart", "step.incremental"},
	{"step.sink", "loop.sink", "retry.then.sink", "retry.then.per_iteration.sink", "loop.dead_letter.sink"},
	{"loop.mode", "loop.max_concurrency", "loop.batch", "step.rate_limit"},
	{"loop.failure_budget", "loop.thresholds", "loop.dead_letter", "strict"},
	{"incremental.cursor_path", "incremental.token", "incremental.initial_value", "incremental.type"},
	{"incremental.lag", "incremental.range_start", "incremental.row_order", "incremental.key"},
	{"state", "incremental.state", "incremental.on_conflict"},
	{"policies", "retry.use"},
	{"workbook", "workbook.name"},
	{"timeout", "step.timeout", "expect.within"},
	{"on_success", "on_failure", "notify", "step.on_success", "step.on_failure"},
	{"metadata.schedule", "partitions", "step.incremental"},
	{"step.next", "step.join", "next.when", "next.else"},
	{"step.vars", "output"},
}

// relatedTo are the names of entries that are read together with one.
func relatedTo(e Entry) []string {
	var names []string
	for _, family := range families {
		if e.Kind == OfKey && slices.Contains(family, e.Name) {
			names = append(names, family...)
		}
	}
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(name string) bool { return name == e.Name })
}

// PathOfSection is the path of a section, "" for the top of a file.
func PathOfSection(section string) string { return paths[section] }
