package playbook

import "slices"

// key is one word that a section of a playbook accepts.
type key struct {
	name    string
	aliases []string // other spellings, in every version
	older   []string // spellings of noetl.io/v1 only
	doc     string
	later   bool   // known to the language, but refused until it is there
	warned  string // the one of older that draws a warning
}

// section is a map of a playbook with known keys. This one table serves
// decoding, the suggestions for misspelt keys, and docs/language.md.
type section struct {
	name string // as messages and the documentation call it
	keys []key
	open bool // other keys are fields of the tool
	// fields renames fields of tools as noetl.io/v1 spells them.
	fields map[string]string
}

// olderFields are the fields of tools that noetl.io/v1 spells otherwise.
var olderFields = map[string]string{
	"endpoint": "url",
	"payload":  "body",
	"command":  "statement",
	"query":    "statement",
}

var playbookSection = &section{name: "playbook", keys: []key{
	{name: "apiVersion", doc: "`reprise/v1`, or `noetl.io/v1` with its spellings"},
	{name: "kind", doc: "`Playbook`"},
	{name: "metadata", doc: "name, description and labels"},
	{name: "timeout", doc: "time limit of the whole run, counted from its first start"},
	{name: "strict", doc: "with `true` a run in which an iteration failed is at best `partial_success`"},
	{name: "workload", doc: "inputs and their defaults; constants"},
	{name: "output", doc: "the run's result; default: the result of the step that ended last"},
	{name: "workbook", doc: "named calls that steps use with `tool: workbook`"},
	{name: "workflow", doc: "the list of steps"},
}}

var metadataSection = &section{name: "metadata", keys: []key{
	{name: "name", doc: "the playbook's name"},
	{name: "description", doc: "what it is for"},
	{name: "labels", doc: "a map of texts"},
}}

// callKeys are the words that every call of a tool accepts beside its fields.
var callKeys = []key{
	{name: "args", doc: "values handed to the tool; a sink writes them in place of the result"},
	{name: "auth", doc: "name of a connection that the worker knows"},
	{name: "timeout", doc: "time limit of one attempt"},
	{name: "idempotency", doc: "`operation`, `attempt` or `none`: which key the tool sends"},
}

// saveWord is what noetl.io/v1 calls a sink.
var saveWord = []string{"save"}

var stepSection = &section{
	name: "step", open: true, fields: olderFields,
	keys: append([]key{
		{name: "step", doc: "the step's name"},
		{name: "desc", doc: "a note for readers"},
		{name: "tool", older: []string{"type"}, doc: "the tool to call; a step without one is a router"},
		{name: "loop", doc: "run the step once per element"},
		{name: "retry", doc: "policies asked after every attempt"},
		{name: "sink", older: saveWord, warned: "save", doc: "where the step's result is written"},
		{name: "vars", doc: "values set when the step succeeds"},
		{name: "next", doc: "the steps that follow"},
		{name: "join", doc: "`all`: wait for every branch that can reach the step"},
		{name: "on_success", later: true},
		{name: "on_failure", later: true},
		{name: "secret", doc: "`true`: the result is encrypted, and only fields of later calls may use it"},
		{name: "rate_limit", doc: "how often the step may send, shared by everyone who sends to the same key"},
	}, callKeys...),
}

var sinkSection = &section{
	name: "sink", open: true, fields: olderFields,
	keys: append([]key{
		{name: "tool", older: []string{"type", "storage"}, doc: "the tool that writes"},
		{name: "retry", doc: "policies for the sink's own failures"},
		{name: "args", older: []string{"data"}, doc: callKeys[0].doc},
	}, callKeys[1:]...),
}

var workbookSection = &section{
	name: "workbook entry", open: true, fields: olderFields,
	keys: append([]key{
		{name: "name", doc: "the name that steps use"},
		{name: "desc", doc: "a note for readers"},
		{name: "tool", older: []string{"type"}, doc: "the tool to call"},
	}, callKeys...),
}

var toolSection = &section{
	name: "tool", open: true, fields: olderFields,
	keys: append([]key{
		{name: "kind", older: []string{"type"}, doc: "the tool's name, where its fields are grouped under `tool`"},
	}, callKeys...),
}

var loopSection = &section{name: "loop", keys: []key{
	{name: "collection", aliases: []string{"in"}, doc: "a list, or a map (sorted by key, elements `{key, value}`)"},
	{name: "element", aliases: []string{"iterator"}, doc: "name of the element in expressions; default `item`"},
	{name: "mode", doc: "`sequential` (default) or `parallel` (also `async`)"},
	{name: "max_concurrency", doc: "iterations at a time in a parallel loop; default 10, at most 500"},
	{name: "batch", doc: "iterations per child workflow, at most 500, or `auto`: more in larger loops; default 1"},
	{name: "failure_budget", doc: "ends the loop early; off unless given"},
	{name: "thresholds", doc: "shares of successes that decide the step's status"},
	{name: "sink", older: saveWord, warned: "save", doc: "where each iteration that succeeded is written"},
	{name: "results", doc: "`inline` (default), or `stats`: keep counts and errors only, for loops whose rows went to sinks"},
	{name: "dead_letter", doc: "a sink for each iteration that failed"},
}}

var deadLetterSection = &section{name: "dead_letter", keys: []key{
	{name: "sink", doc: "where each iteration that failed is written; `result` is the dead letter"},
}}

var rateLimitSection = &section{name: "rate_limit", keys: []key{
	{name: "requests", doc: "how many requests"},
	{name: "per", doc: "in which time; default 1s"},
	{name: "key", doc: "what the limit belongs to, within the playbook; default the host of the URL"},
	{name: "shared", doc: "in place of `key`: the name of a limit that all playbooks share which name it"},
}}

// ownedLimitSection is an entry of the operator's file of rate limits. It is no
// part of the language.
var ownedLimitSection = &section{name: "rate limit", keys: []key{
	{name: "requests", doc: "how many requests"},
	{name: "per", doc: "in which time; default 1s"},
	{name: "max_pause", doc: "how long an answer that asks for patience holds back the others; default 5m"},
}}

var budgetSection = &section{name: "failure_budget", keys: []key{
	{name: "rate", doc: "share of failures, from 0 to 1, that must not be exceeded"},
	{name: "min_samples", doc: "iterations that must have ended first; default 1000"},
}}

var thresholdsSection = &section{name: "thresholds", keys: []key{
	{name: "completed", doc: "least share of successes for `completed`; default 0.95"},
	{name: "partial_success", doc: "least share of successes for `partial_success`; default 0.50"},
}}

var policySection = &section{name: "retry policy", keys: []key{
	{name: "when", doc: "the outcomes that the policy matches"},
	{name: "stop_when", doc: "ends the call; asked before `when`"},
	{name: "then", doc: "what a match does"},
}}

var thenSection = &section{name: "then", keys: []key{
	{name: "max_attempts", doc: "matches until the policy is exhausted; default 3 for failures, 100 for successes"},
	{name: "delay", doc: "a fixed delay, also between pages"},
	{name: "initial_delay", doc: "the first delay; default 1s"},
	{name: "max_delay", doc: "the longest delay; default 60s, or `initial_delay` if longer"},
	{name: "backoff", doc: "`exponential` (default), `linear`, `fixed` or `none`"},
	{name: "backoff_multiplier", doc: "growth of the delay; default 2"},
	{name: "jitter", doc: "`proportional` (default for failures), `full` or `none`"},
	{name: "max_elapsed", doc: "time from the first match after which the policy is exhausted"},
	{name: "max_wait", doc: "longest wait that the other side may ask for; default 1h"},
	{name: "on_exhausted", doc: "`fail`, `succeed` or `continue`"},
	{name: "ignore", doc: "`true`: a failure is an empty answer, and the call succeeds"},
	{name: "result", doc: "the data of the call where this policy ends it as a success"},
	{name: "restart", doc: "`true`: after a failure the pages are dropped and the call begins again; `max_attempts` counts the restarts, default 1"},
	{name: "allow_repeat", doc: "allow a request or a page to come again"},
	{name: "end_on_repeat", doc: "`true`: a request or a page that comes again ends the pages, and nothing is wrong"},
	{name: "next_call", doc: "changes to the request after a success"},
	{name: "collect", doc: "how pages become one result"},
	{name: "sink", older: saveWord, warned: "save", doc: "where the call's result is written, once per call"},
	{name: "per_iteration", aliases: []string{"per_page"}, doc: "a sink per page"},
	{name: "pages_per_activity", doc: "pages that one activity fetches at most; default 50, 1 for an activity per page"},
}}

var perIterationSection = &section{name: "per_iteration", keys: []key{
	{name: "sink", older: saveWord, warned: "save", doc: "where each page is written"},
}}

var nextCallSection = &section{name: "next_call", keys: []key{
	{name: "args", doc: "merged into the args; fields that name args are rendered again"},
	{name: "params", doc: "merged per key; null removes one"},
	{name: "headers", doc: "merged per key; null removes one"},
	{name: "url", older: []string{"endpoint"}, doc: "the next URL, relative to the one before"},
	{name: "method", doc: "replaces the method"},
	{name: "body", older: []string{"payload"}, doc: "replaces the body"},
}}

var collectSection = &section{name: "collect", keys: []key{
	{name: "strategy", doc: "`append` (default), `replace` or `merge`"},
	{name: "path", doc: "dotted path into the page, with [n]; default the whole page"},
	{name: "into", doc: "name of what is collected; default `pages`"},
	{name: "optional", doc: "a missing path adds nothing; where no page has it the result is an empty list, or map with `merge`"},
}}

var routeSection = &section{name: "next entry", keys: []key{
	{name: "when", doc: "a condition; the first that is true is taken"},
	{name: "then", doc: "the steps to start"},
	{name: "else", doc: "the steps to start where no condition is true"},
	{name: "step", doc: "the step to start"},
	{name: "args", doc: "laid over the step's args for this visit"},
}}

var targetSection = &section{name: "next target", keys: []key{
	{name: "step", doc: "the step to start"},
	{name: "args", doc: "laid over the step's args for this visit"},
}}

var sections = []*section{
	playbookSection, metadataSection, workbookSection, stepSection, toolSection, loopSection, deadLetterSection, budgetSection,
	thresholdsSection, rateLimitSection, policySection, thenSection, nextCallSection, collectSection, perIterationSection,
	sinkSection, routeSection, targetSection,
}

// Section describes a map of the language for its documentation.
type Section struct {
	Name string
	// Open sections accept the fields of their tool beside Keys.
	Open bool
	Keys []Key
}

// Key describes one key of a section.
type Key struct {
	Name    string
	Aliases []string
	Doc     string
	Later   bool // kept for later, refused now
}

// Sections are all sections of the language with the keys that they accept, in
// the order of the documentation.
func Sections() []Section {
	all := make([]Section, len(sections))
	for i, s := range sections {
		all[i] = Section{Name: s.name, Open: s.open}
		for _, k := range s.keys {
			all[i].Keys = append(all[i].Keys, Key{Name: k.name, Aliases: k.aliases, Doc: k.doc, Later: k.later})
		}
	}
	return all
}

// find returns the key that a word stands for.
func (s *section) find(name string, older bool) (key, bool) {
	for _, k := range s.keys {
		if k.name == name || slices.Contains(k.aliases, name) || older && slices.Contains(k.older, name) {
			return k, true
		}
	}
	return key{}, false
}

// names are the keys that an author may write now.
func (s *section) names() []string {
	var names []string
	for _, k := range s.keys {
		if !k.later {
			names = append(names, k.name)
		}
	}
	return names
}
