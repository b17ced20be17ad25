package reference

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
)

// Folder is the folder of the reference's pages.
const Folder = "docs/reference/"

// Page is a page of the reference.
type Page struct {
	Name  string // of the file, without .md
	Title string
	About string // one sentence
}

// Pages returns the pages of the reference in reading order.
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

// pages maps sections of the language to pages.
var pages = map[string]string{
	"metadata": "playbook", "concurrency": "playbook", "partitions": "playbook", "workbook": "playbook", "notify": "playbook", "expect": "playbook",
	"on_failure": "playbook", "step": "step", "tool": "step", "rate_limit": "step", "next": "step", "loop": "loop", "incremental": "incremental",
	"retry": "retry", "sink": "sinks",
}

// pagesOf maps kinds to the pages that list all their entries.
var pagesOf = map[Kind]string{
	OfTool: "tools", OfField: "tools", OfName: "expressions", OfFunction: "expressions", OfTestKey: "tests", OfCode: "diagnostics", OfStatus: "statuses",
	OfEvent: "events", OfAttribute: "search-attributes", OfMetric: "metrics", OfVariable: "configuration", OfFile: "configuration", OfExit: "exit-codes",
}

// PageOf returns the name of the page with an entry.
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

// PageOfSection returns the name of the page with a section of the language.
func PageOfSection(section string) string {
	path := paths[section]
	if strings.HasPrefix(section, "test") {
		return pagesOf[OfTestKey]
	}
	head, _, _ := strings.Cut(path, ".")
	return cmp.Or(pages[head], "playbook")
}

// linkOf returns the link to an entry in the reference.
func linkOf(e Entry) string { return Folder + PageOf(e) + ".md#" + AnchorOf(e.Label()) }

// OfDiagnostic returns the file and heading that explain a diagnostic.
func OfDiagnostic(code string) string { return linkOf(Entry{Kind: OfCode, Name: code}) }

// Label returns the heading of an entry in the reference. That of a function has parentheses, because other entries
// may have the same name.
func (e Entry) Label() string {
	switch e.Kind {
	case OfFunction:
		return e.Name + "()"
	case OfName, OfTestKey, OfKey, OfTool, OfField, OfCode, OfStatus, OfEvent, OfAttribute, OfMetric, OfVariable, OfFile, OfExit:
	}
	return e.Heading()
}

// AnchorOf returns the anchor of a heading, as code forges generate it.
func AnchorOf(heading string) string {
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

// concepts maps paths of keys to the headings that explain them. An entry uses the heading of the longest matching
// prefix of its path.
var concepts = map[string]string{
	"metadata.schedule": "docs/how-to/schedule.md", "metadata.triggers": "docs/how-to/call-from-outside.md", "concurrency": "docs/concepts/concurrency.md",
	"partitions": "docs/concepts/state.md#partitions", "workbook": "docs/concepts/runs.md#workbook-and-named-policies", "policies": "docs/concepts/runs.md#workbook-and-named-policies",
	"notify": "docs/concepts/runs.md#notices", "on_success": "docs/concepts/runs.md#notices", "on_failure": "docs/concepts/runs.md#notices",
	"expect": "docs/concepts/runs.md#notices", "state": "docs/concepts/state.md#names-of-states", "workload": "docs/concepts/runs.md", "output": "docs/concepts/runs.md#results",
	"timeout": "docs/concepts/limits.md#limits-of-a-run", "strict": "docs/concepts/runs.md#how-a-run-ends", "step": "docs/concepts/runs.md", "step.loop": "docs/concepts/loops.md",
	"step.secret": "docs/concepts/security.md#secret-results", "step.vars": "docs/concepts/runs.md#results", "step.join": "docs/concepts/runs.md#routes", "step.next": "docs/concepts/runs.md#routes",
	"step.args": "docs/concepts/runs.md#routes", "step.auth": "docs/concepts/security.md#connections", "step.timeout": "docs/concepts/limits.md#limits-of-a-run",
	"step.idempotency": "docs/concepts/keys.md", "step.sink": "docs/concepts/written-once.md", "sink.fields": "docs/concepts/written-once.md#the-shape-of-rows", "sink.exclude": "docs/concepts/written-once.md#the-shape-of-rows", "step.rows": "docs/concepts/rows.md", "step.where": "docs/concepts/rows.md", "step.incremental": "docs/concepts/state.md#what-a-run-reads",
	"step.retry": "docs/concepts/attempts.md", "step.rate_limit": "docs/concepts/waits.md#rate-limits", "tool": "docs/concepts/runs.md", "rate_limit": "docs/concepts/waits.md#rate-limits",
	"next": "docs/concepts/runs.md#routes", "loop": "docs/concepts/loops.md", "loop.dead_letter": "docs/concepts/loops.md#failed-iterations", "incremental": "docs/concepts/state.md#what-a-run-reads",
	"incremental.key": "docs/concepts/state.md#rows-that-are-read-again", "incremental.state": "docs/concepts/state.md#names-of-states", "incremental.on_conflict": "docs/concepts/state.md#one-run-at-a-time",
	"loop.batch": "docs/concepts/loops.md#batches", "retry": "docs/concepts/attempts.md#how-a-policy-is-chosen", "retry.then": "docs/concepts/attempts.md#how-a-policy-is-chosen",
	"retry.then.max_attempts": "docs/concepts/attempts.md#counting", "retry.then.max_elapsed": "docs/concepts/attempts.md#exhausted",
	"retry.then.delay": "docs/concepts/waits.md#between-attempts", "retry.then.initial_delay": "docs/concepts/waits.md#between-attempts",
	"retry.then.max_delay": "docs/concepts/waits.md#between-attempts", "retry.then.backoff": "docs/concepts/waits.md#between-attempts",
	"retry.then.backoff_multiplier": "docs/concepts/waits.md#between-attempts", "retry.then.jitter": "docs/concepts/waits.md#between-attempts",
	"retry.then.sink": "docs/concepts/written-once.md#where-to-put-a-sink", "retry.then.pages_per_activity": "docs/concepts/attempts.md#pages",
	"retry.then.max_wait":    "docs/concepts/waits.md#waits-requested-by-the-server",
	"retry.then.retry_after": "docs/concepts/waits.md#waits-requested-by-the-server", "retry.then.fail": "docs/concepts/attempts.md#failures-in-responses", "retry.then.class": "docs/concepts/attempts.md#failures-in-responses",
	"retry.then.type": "docs/concepts/attempts.md#failures-in-responses", "retry.then.ignore": "docs/concepts/attempts.md#failures-to-ignore", "retry.then.result": "docs/concepts/attempts.md#failures-to-ignore",
	"retry.then.restart": "docs/concepts/attempts.md#starting-over", "retry.then.next_call": "docs/concepts/attempts.md#pages", "retry.then.collect": "docs/concepts/attempts.md#pages", "retry.then.collect.merge_by": "docs/concepts/rows.md#rows-from-two-requests",
	"retry.then.per_iteration": "docs/concepts/written-once.md#where-to-put-a-sink", "retry.then.on_exhausted": "docs/concepts/attempts.md#exhausted",
	"retry.then.allow_repeat": "docs/concepts/attempts.md#repeated-pages", "retry.then.end_on_repeat": "docs/concepts/attempts.md#repeated-pages", "sink": "docs/concepts/written-once.md",
	"loop.source": "docs/concepts/loops.md#elements-from-a-source",
}

// conceptsOf maps kinds to the headings that explain all their entries.
var conceptsOf = map[Kind]string{
	OfTool: "docs/concepts/attempts.md", OfField: "docs/concepts/attempts.md", OfName: "docs/concepts/expressions.md#names", OfFunction: "docs/concepts/expressions.md",
	OfTestKey: "docs/how-to/test-a-playbook.md", OfCode: "", OfStatus: "docs/concepts/runs.md#how-a-run-ends", OfEvent: "docs/how-to/look-at-a-run.md",
	OfAttribute: "docs/how-to/look-at-a-run.md#temporals-web-ui", OfMetric: "docs/how-to/read-metrics.md", OfVariable: "docs/how-to/deploy.md", OfFile: "docs/how-to/secrets.md",
	OfExit: "docs/concepts/runs.md#how-a-run-ends",
}

// conceptOf returns the heading that explains an entry; "" if there is none.
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

// families are the keys that belong together.
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
	{"incremental.cursor_path", "incremental.token", "incremental.initial_value", "incremental.type", "incremental.format"},
	{"incremental.lag", "incremental.range_start", "incremental.row_order", "incremental.key", "incremental.step", "incremental.until"},
	{"state", "incremental.state", "incremental.on_conflict"},
	{"policies", "retry.use"},
	{"workbook", "workbook.name"},
	{"timeout", "step.timeout", "expect.within"},
	{"on_success", "on_failure", "notify", "step.on_success", "step.on_failure"},
	{"metadata.schedule", "partitions", "step.incremental"},
	{"step.next", "step.join", "next.when", "next.else"},
	{"step.vars", "output"},
}

// relatedTo returns the names of related entries.
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

// PathOfSection returns the path of a section; "" for the top level of a file.
func PathOfSection(section string) string { return paths[section] }
