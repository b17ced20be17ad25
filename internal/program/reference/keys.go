package reference

import (
	"fmt"
	"slices"
	"strings"

	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
)

// paths maps sections to their paths, as people write them.
var paths = map[string]string{
	"playbook": "", "metadata": "metadata", "schedule": "metadata.schedule", "trigger": "metadata.triggers", "concurrency": "concurrency",
	"partitions": "partitions", "workbook entry": "workbook", "step": "step", "tool": "tool", "loop": "loop", "source": "loop.source", "incremental": "incremental",
	"dead_letter": "loop.dead_letter", "failure_budget": "loop.failure_budget", "thresholds": "loop.thresholds", "rate_limit": "rate_limit",
	"retry policy": "retry", "then": "retry.then", "next_call": "retry.then.next_call", "collect": "retry.then.collect",
	"per_iteration": "retry.then.per_iteration", "sink": "sink", "notice": "on_failure", "notify": "notify", "expect": "expect",
	"next entry": "next", "next target": "next.then",
	"tests": "", "test test": "tests", "test before": "tests.before", "test answer": "tests.answers", "test at": "tests.at", "test expect": "tests.expect",
}

// testSections returns the sections of test files, with names that differ from those of playbooks.
func testSections() []playbook.Section {
	sections := playbook.TestSections()
	for i := range sections {
		section := &sections[i]
		if section.Name != "tests" {
			section.Name = "test " + section.Name
		}
		for j := range section.Keys {
			if section.Keys[j].Of != "" {
				section.Keys[j].Of = "test " + section.Keys[j].Of
			}
		}
	}
	return sections
}

func (r *Reference) addKeys(sections []playbook.Section, kind Kind) {
	for _, section := range sections {
		r.sections[section.Name] = section
	}
	examples := keyExamples
	if kind == OfTestKey {
		examples = testExamples
	}
	for _, section := range sections {
		r.keys[section.Name], r.spellings[section.Name] = map[string]Entry{}, map[string]string{}
		for _, key := range section.Keys {
			example := examples.exampleOf(strings.TrimPrefix(section.Name, "test "), key.Name, plainValueOf(key))
			entry := Entry{
				Kind: kind, Name: strings.TrimPrefix(paths[section.Name]+"."+key.Name, "."), Doc: toSentence(key.Doc), Type: TypeOfKey(key), Bounds: boundsText(key),
				Default: key.Default, Words: key.Accepted, Required: key.Required, Snippet: example.snippet, Example: example.wholeYAML(),
			}
			if kind == OfKey {
				entry.Where = r.placesOf(section.Name, key.StepsOnly)
			}
			if key.Of != "" {
				entry.Words = lists.Map(r.sections[key.Of].Keys, func(key playbook.Key) string { return key.Name })
			}
			for _, other := range slices.Concat(key.Aliases, key.Older) {
				r.spellings[section.Name][other] = key.Name
			}
			r.addAt(entry, spot{section.Name, key.Name})
		}
	}
}

// types describe the values of keys.
var types = map[playbook.WordKind]string{
	playbook.WordText:       "text, without templates",
	playbook.WordName:       "text that is not empty, without templates",
	playbook.WordChoice:     "one of its words",
	playbook.WordChoices:    "one of its words, or a list of them",
	playbook.WordBoolean:    "true or false",
	playbook.WordInteger:    "a whole number",
	playbook.WordNumber:     "a number",
	playbook.WordDuration:   "a duration such as 90s or 1m30s, or a number of seconds",
	playbook.WordLimit:      "a duration such as 90s or 1m30s, or a number of seconds, longer than 0",
	playbook.WordLength:     "a duration such as 90s, a number, or one of its words",
	playbook.WordScalar:     "text, a number or a boolean, without templates",
	playbook.WordCondition:  "a condition: one expression, in {{ }} or without",
	playbook.WordValue:      "any value, with templates",
	playbook.WordCollection: "a list, a map, or one template that gives one",
	playbook.WordTextValue:  "text, with templates",
	playbook.WordTool:       "the name of a tool, or a map with kind and the tool's fields",
	playbook.WordConnection: "the name of a connection, or a template",
	playbook.WordMapValue:   "a map of values, or one template that gives it",
	playbook.WordMap:        "a map of names and values",
	playbook.WordLabels:     "a map of texts",
	playbook.WordConstants:  "a map of constants, without templates",
	playbook.WordTexts:      "a list of texts",
	playbook.WordNames:      "a text, or a list of texts",
	playbook.WordSection:    "a map",
	playbook.WordSections:   "a list of maps",
	playbook.WordSome:       "a map, or a list of them",
	playbook.WordPolicies:   "a list of policies",
	playbook.WordKeyed:      "a map, or a list of texts",
	playbook.WordLists:      "a map of names and lists of policies",
	playbook.WordTargets:    "the name of a step, a map, or a list of both",
}

// TypeOfKey describes the values of a key.
func TypeOfKey(key playbook.Key) string {
	text := types[key.Kind]
	if key.Kind == playbook.WordBoolean || key.Kind == playbook.WordInteger {
		for _, word := range key.Accepted {
			text += ", or " + word
		}
	}
	return text
}

func boundsText(key playbook.Key) string {
	switch {
	case key.Least != nil && key.Most != nil:
		return fmt.Sprintf("%v to %v", *key.Least, *key.Most)
	case key.Least != nil:
		return fmt.Sprintf("at least %v", *key.Least)
	case key.Most != nil:
		return fmt.Sprintf("at most %v", *key.Most)
	}
	return ""
}

// anchors are the sections at which paths of other sections begin.
var anchors = []string{"playbook", "step", "sink", "notice", "notify", "workbook entry"}

// placesOf returns the paths of a section from the nearest anchors. stepsOnly leaves out places where the retry of
// sinks and notices cannot have the key.
func (r *Reference) placesOf(section string, stepsOnly bool) []string {
	if slices.Contains(anchors, section) {
		return []string{anchorName(section)}
	}
	var found []string
	r.climbTo(section, keyPath{stepsOnly: stepsOnly}, func(path string) { found = append(found, path) })
	slices.Sort(found)
	return slices.Compact(found)
}

// writers are the sections whose retry is only for failures.
var writers = []string{"sink", "notice", "notify"}

// keyPath is the path from a section up to an anchor.
type keyPath struct {
	path      string
	seen      []string // sections
	stepsOnly bool     // it leads through a word that sinks and notices cannot have
}

func anchorName(section string) string {
	switch section {
	case "playbook":
		return "the playbook"
	case "notice":
		return "on_success and on_failure"
	default:
		return strings.TrimSuffix(section, " entry")
	}
}

func (r *Reference) climbTo(section string, way keyPath, visit func(string)) {
	if slices.Contains(anchors, section) {
		if !way.stepsOnly || !slices.Contains(writers, section) {
			visit(strings.TrimPrefix(paths[section]+way.path, "."))
		}
		return
	}
	if slices.Contains(way.seen, section) {
		return
	}
	for _, parent := range playbook.Sections() {
		for _, key := range parent.Keys {
			if key.Of != section {
				continue
			}
			step := "." + key.Name
			if key.Kind == playbook.WordLists {
				step += ".NAME"
			}
			r.climbTo(parent.Name, keyPath{step + way.path, append(slices.Clone(way.seen), section), way.stepsOnly || key.StepsOnly}, visit)
		}
	}
}

// findPath finds keys by a path that begins at any section: with the section's name, or with one of its keys.
func (r *Reference) findPath(question string) []Entry {
	parts := strings.Split(question, ".")
	var found []Entry
	add := func(e Entry, ok bool) {
		if !ok {
			return
		}
		i := slices.IndexFunc(found, func(other Entry) bool {
			return other.Doc == e.Doc && other.Type == e.Type && lastOf(other.Name) == lastOf(e.Name)
		})
		if i < 0 {
			found = append(found, e)
			return
		}
		found[i].Where = slices.Compact(slices.Sorted(slices.Values(slices.Concat(found[i].Where, e.Where))))
	}
	for _, section := range playbook.Sections() {
		if len(parts) > 1 && strings.ReplaceAll(section.Name, " ", "_") == parts[0] {
			add(r.walkPath(section.Name, parts[1:]))
		}
		add(r.walkPath(section.Name, parts))
	}
	return found
}

func lastOf(path string) string {
	_, last, _ := cutLast(path)
	return last
}

// walkPath follows keys downwards from a section.
func (r *Reference) walkPath(section string, parts []string) (Entry, bool) {
	entry, ok := r.Key(section, parts[0])
	if !ok || len(parts) == 1 {
		return entry, ok
	}
	of := r.Child(section, parts[0])
	if of == "" {
		return Entry{}, false
	}
	return r.walkPath(of, parts[1:])
}

// Child returns the section that is the value of a key; "" if there is none.
func (r *Reference) Child(section, key string) string {
	for _, one := range r.sections[section].Keys {
		if one.Name == key || slices.Contains(one.Aliases, key) || slices.Contains(one.Older, key) {
			return one.Of
		}
	}
	return ""
}

// Sections returns the sections of playbooks, then those of test files.
func (r *Reference) Sections() []playbook.Section {
	return append(playbook.Sections(), testSections()...)
}

// EntryBelow returns the entry of a key or field of e by name; false if there is none.
func (r *Reference) EntryBelow(e Entry, word string) (Entry, bool) {
	switch e.Kind {
	case OfTool:
		return r.Field(e.Name, word)
	case OfKey, OfTestKey:
		i := slices.IndexFunc(r.entries, func(other Entry) bool { return other.Kind == e.Kind && other.Name == e.Name })
		section := r.Child(r.at[i].section, r.at[i].word)
		if section == "" {
			return Entry{}, false
		}
		return r.Key(section, word)
	default:
		return Entry{}, false
	}
}
