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
	// required shows how to write the word where it is missing; "" for words
	// that may be.
	required string
	nullable bool // without a value the word counts as left out
	repeats  bool // asks for another attempt; words of then only
	// The rest is filled in by sectionOf.
	domain domain
	what   string // the word in messages
	read   func(d *decoder, w written, into any)
}

// keyOf is a word and how it is read into a T, in one line: a new word is a new
// line of its section.
type keyOf[T any] struct {
	key
	into reader[T]
}

// section is a map of a playbook with known keys. This one table serves
// decoding, the suggestions for misspelt keys, and docs/language.md.
type section struct {
	name   string // as the documentation calls it
	called string // as messages call it, where that is not name
	prefix string // stands before the words in messages about their values
	keys   []key
	open   bool // other keys are fields of the tool
	// fields renames fields of tools as noetl.io/v1 spells them.
	fields map[string]string
	// below is the section whose words are often written here by mistake.
	below *section
}

// sectionOf is a section with its words, which are read into a T.
func sectionOf[T any](s section, words []keyOf[T]) *section {
	for _, word := range words {
		k := word.key
		k.domain, k.what = word.into.domain, s.prefix+k.name
		if read := word.into.read; read != nil {
			k.read = func(d *decoder, w written, into any) { read(d, w, into.(*T)) }
		}
		s.keys = append(s.keys, k)
	}
	return &s
}

// title is what messages call the section.
func (s *section) title() string {
	if s.called != "" {
		return s.called
	}
	return s.name
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
func (s *section) find(name string, older bool) (*key, bool) {
	for i := range s.keys {
		k := &s.keys[i]
		if k.name == name || slices.Contains(k.aliases, name) || older && slices.Contains(k.older, name) {
			return k, true
		}
	}
	return nil, false
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
