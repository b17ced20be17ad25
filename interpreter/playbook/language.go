package playbook

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// The room of language.go: what the tables that decode a playbook say of the language. The
// documentation, the JSON Schema, starter explain and the editor are made of it.

// Section describes a map of the language.
type Section struct {
	Name string
	// Open sections accept the fields of their tool beside Keys.
	Open bool
	Keys []Key
}

// Key describes one key of a section.
type Key struct {
	Name    string
	Aliases []string // other spellings
	Older   []string // spellings of noetl.io/v1 only
	Doc     string
	Kind    WordKind
	// Accepted are the words of a choice, else words that may stand in place of the kind.
	Accepted []string
	// Least and Most are bounds of a number, nil for none.
	Least, Most *float64
	// Default is what counts where the key is left out, as an author writes it; "" for
	// nothing, or no one thing.
	Default string
	// Of is the name of the section that stands there, "" for none.
	Of string
	// Example shows the key with a value.
	Example  string
	Required bool
	Nullable bool // without a value it counts as left out
}

// Sections are all sections of the language with the keys that they accept, in
// the order of the documentation.
func Sections() []Section { return described(sections) }

func described(sections []*section) []Section {
	all := make([]Section, len(sections))
	for i, s := range sections {
		all[i] = Section{Name: s.name, Open: s.open}
		for j := range s.keys {
			all[i].Keys = append(all[i].Keys, s.keys[j].described())
		}
	}
	return all
}

func (k *key) described() Key {
	described := Key{
		Name: k.name, Aliases: k.aliases, Older: k.older, Doc: k.doc, Kind: k.domain.kind, Accepted: k.domain.accepted,
		Least: k.domain.least, Most: k.domain.most, Default: asWritten(k.domain.absent), Required: k.required != "", Nullable: k.nullable,
		Example: k.required,
	}
	if k.domain.of != nil {
		described.Of = k.domain.of().name
	}
	if described.Example == "" {
		described.Example = k.name + ": " + sample(described)
	}
	return described
}

// asWritten is a default as an author writes it.
func asWritten(absent any) string {
	if absent == nil {
		return ""
	}
	text := fmt.Sprint(absent)
	if _, isDuration := absent.(time.Duration); !isDuration {
		return text
	}
	if short, ok := strings.CutSuffix(text, "m0s"); ok {
		text = short + "m"
	}
	if short, ok := strings.CutSuffix(text, "h0m"); ok {
		text = short + "h"
	}
	return text
}

// samples are values of words for which the kind alone gives none that tells.
var samples = map[string]string{
	"timeout": "2h", "description": "what it is for", "desc": "reads all pages", "labels": "{team: data}", "strict": "true", "state": "orders",
	"workload": `{api: "https://api.example.com", limit: 100}`, "output": `"{{ len(fetch) }} rows"`, "policies": "{api: [{when: error.class == 'retryable', then: {max_attempts: 5}}]}",
	"schedule": "{cron: \"0 6 * * *\"}", "triggers": "[{sender: github, secret: github_webhook}]", "workbook": "[{name: score, tool: python, code: …}]",
	"notify": "{on: [failed, late], url: \"https://example.com/hook\"}", "on_success": "{url: \"https://example.com/hook\"}", "on_failure": "{url: \"https://example.com/hook\"}",
	"expect": "{within: 30m}", "concurrency": "{key: \"{{ workload.tenant }}\", limit: 1}", "partitions": "{every: day, start: 2024-01-01}",
	"tool": "http", "loop": "{collection: \"{{ ids }}\", element: id}", "incremental": "{cursor_path: updated_at, initial_value: \"2024-01-01T00:00:00Z\"}",
	"retry": "[{when: error.class == 'retryable', then: {max_attempts: 5}}]", "sink": "{tool: postgres, auth: pg_main, table: orders}", "vars": "{total: \"{{ len(result) }}\"}",
	"next": "[{when: \"{{ len(result) > 0 }}\", then: load}, {else: stop}]", "rate_limit": "{requests: 50, per: 1s}", "args": "{day: \"{{ day }}\"}", "auth": "pg_main",
	"then": "{max_attempts: 5, initial_delay: 2s}", "use": "api", "stop_when": "\"{{ response.state == 'done' }}\"", "when": "\"{{ len(result) > 0 }}\"", "else": "stop",
	"max_attempts": "5", "delay": "10s", "max_delay": "5m", "max_elapsed": "15m", "result": "\"{{ [] }}\"", "fail": "\"{{ response.error }}\"", "type": "out_of_credit",
	"retry_after": "\"{{ response.wait }}\"", "next_call": "{params: {page: \"{{ response.page + 1 }}\"}}", "collect": "{strategy: append, path: data}",
	"per_iteration": "{sink: {tool: postgres, auth: pg_main, table: orders}}", "params": "{page: \"{{ response.page + 1 }}\"}", "headers": "{X-Page: \"{{ response.page + 1 }}\"}",
	"url": "\"{{ this.meta.links.next }}\"", "method": "POST", "body": "{cursor: \"{{ response.cursor }}\"}", "path": "data.items", "into": "rows", "element": "patient",
	"failure_budget": "{rate: 0.10}", "thresholds": "{completed: 0.99}", "dead_letter": "{sink: {tool: file, path: failed.jsonl}}", "completed": "0.99", "partial_success": "0.80",
	"cursor_path": "updated_at", "token": "\"{{ response.next_sync_token }}\"", "initial_value": "\"2024-01-01T00:00:00Z\"", "lag": "10m", "key": "id", "shared": "crm",
	"cron": "\"0 6 * * 1-5\"", "every": "1h", "offset": "10m", "zone": "Europe/Berlin", "start": "2024-01-01", "end": "2025-01-01", "catch_up": "24h", "jitter": "30s",
	"name": "crm", "events": "[push]", "header": "X-Signature", "prefix": "\"sha256=\"", "id": "event.id", "restart": "true", "column": "day", "per": "1m",
}

// sample is a value that the key accepts and that is not its default.
func sample(k Key) string {
	other := func(one string) bool { return one != k.Default }
	switch i := slices.IndexFunc(k.Accepted, other); {
	case len(k.Accepted) > 0 && i >= 0 && k.Kind == WordChoice:
		return k.Accepted[i]
	case k.Kind == WordBoolean:
		return "true"
	}
	if value, ok := samples[k.Name]; ok {
		return value
	}
	return k.Default
}

// Name is a name that the language gives a value in expressions.
type Name struct {
	Name string
	Doc  string // what it holds
	// Where says in words where it is known.
	Where string
	// Members are those of the value, nil where they are not fixed.
	Members []string
}

// Names are the names that expressions may use, without those of older forms of retry.
func Names() []Name {
	var all []Name
	for _, w := range words {
		if w.where == 0 {
			continue
		}
		all = append(all, Name{Name: w.name, Doc: w.doc, Where: w.known, Members: members[w.name]})
	}
	return append(all,
		Name{Name: CallbackWord, Doc: "where the answer to this attempt is to be sent", Where: "in on_start and on_cancel of the tools that await an answer", Members: CallbackMembers},
		Name{Name: "event", Doc: "what happened to the run", Where: "in notices of the run", Members: members["event"]},
		Name{Name: "status", Doc: "the status of the run", Where: "in notices of the run"})
}

// MetaMembers are the members of meta in an envelope.
func MetaMembers() []string { return slices.Clone(metaMembers) }
