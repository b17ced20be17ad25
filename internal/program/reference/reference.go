// Package reference documents every word of the language: keys, names and functions of expressions, tools and their
// fields, diagnostics, statuses, events and exit codes. `starter explain`, editors, `starter mcp`, the JSON Schema
// and llms-full.txt use it.
package reference

import (
	"cmp"
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"reprise/internal/base/exitcode"
	"reprise/internal/base/meter"
	"reprise/internal/observe/runs"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
	"reprise/interpreter/playbook/check"
)

// Kind is the kind of word that an entry documents.
type Kind string

// The kinds of entries.
const (
	OfKey       Kind = "key"
	OfTool      Kind = "tool"
	OfField     Kind = "field"
	OfName      Kind = "name"
	OfFunction  Kind = "function"
	OfTestKey   Kind = "test key"
	OfCode      Kind = "diagnostic"
	OfStatus    Kind = "status"
	OfEvent     Kind = "event"
	OfAttribute Kind = "search attribute"
	OfMetric    Kind = "metric"
	OfVariable  Kind = "variable"
	OfFile      Kind = "file"
	OfExit      Kind = "exit code"
)

// Kinds returns all kinds, in the order in which they are listed.
func Kinds() []Kind {
	return []Kind{
		OfKey, OfTool, OfField, OfName, OfFunction, OfTestKey, OfCode, OfStatus, OfEvent, OfAttribute, OfMetric, OfVariable, OfFile, OfExit,
	}
}

// Entry documents one word.
type Entry struct {
	Kind Kind   `json:"kind"`
	Name string `json:"name"` // as people ask for it, such as retry.then.max_wait
	Doc  string `json:"doc"`  // Markdown, one paragraph
	// Type describes the accepted values, Bounds the range of a number, and Default what an omitted word means; each
	// is "" if there is nothing to say.
	Type    string `json:"type,omitempty"`
	Bounds  string `json:"bounds,omitempty"`
	Default string `json:"default,omitempty"`
	// Words are the accepted words: values of a choice, members of a name, or the keys and fields of a section or
	// tool.
	Words []string `json:"words,omitempty"`
	// Where lists the places where the word is allowed.
	Where    []string `json:"where,omitempty"`
	Required bool     `json:"required,omitempty"`
	// Example is YAML, or a function call with its result; see WholePlaybook.
	Example string `json:"example,omitempty"`
	// Snippet is just the key or field with a value: max_wait: 10m.
	Snippet string `json:"snippet,omitempty"`
	// Wrong is an example that causes the diagnostic, and Right a corrected one.
	Wrong string `json:"wrong,omitempty"`
	Right string `json:"right,omitempty"`
	// Title is the heading of the entry, if that is more than the name.
	Title string `json:"title,omitempty"`
	// Related are the names of related entries.
	Related []string `json:"related,omitempty"`
	// Link is the file and heading of the entry in the reference, and Concept the heading that explains it; "" if
	// there is none.
	Link    string `json:"link"`
	Concept string `json:"concept,omitempty"`
}

// Reference has all entries. It is immutable and safe for concurrent use.
type Reference struct {
	entries   []Entry
	at        []spot                      // of the entries
	keys      map[string]map[string]Entry // by section and key
	fields    map[string]map[string]Entry // by tool and field
	sections  map[string]playbook.Section
	spellings map[string]map[string]string // of keys: section, then any spelling, to the name
}

// New returns the reference of the language with a catalogue of tools.
func New(tools playbook.Tools) *Reference {
	r := &Reference{
		keys: map[string]map[string]Entry{}, fields: map[string]map[string]Entry{}, sections: map[string]playbook.Section{},
		spellings: map[string]map[string]string{},
	}
	r.addKeys(playbook.Sections(), OfKey)
	r.addTools(tools)
	r.addExpressions()
	r.addKeys(testSections(), OfTestKey)
	r.addCodes()
	r.addRuns()
	r.addPrograms()
	r.linkEntries()
	return r
}

func (r *Reference) addExpressions() {
	for _, name := range check.ExpressionNames() {
		r.addEntry(Entry{
			Kind: OfName, Name: name.Name, Doc: toSentence(name.Doc), Words: name.Members, Where: []string{name.Where}, Example: nameExamples[name.Name],
		})
	}
	for _, function := range expression.FunctionDocs() {
		r.addEntry(Entry{Kind: OfFunction, Name: function.Name, Title: function.Signature, Doc: function.Doc, Example: functionExamples[function.Name]})
	}
}

func (r *Reference) addCodes() {
	for _, code := range check.DiagnosticCodes() {
		more := explanations[code.Code]
		r.addEntry(Entry{Kind: OfCode, Name: code.Code, Doc: toSentence(code.Meaning) + " " + more.why, Wrong: more.wrong, Right: more.right})
	}
}

// addRuns adds statuses, events and other words about runs.
func (r *Reference) addRuns() {
	for _, status := range interpreter.Statuses() {
		r.addEntry(Entry{Kind: OfStatus, Name: string(status.Status), Doc: status.Doc, Where: []string{status.Of.String()}})
	}
	for _, kind := range runs.EventKinds() {
		r.addEntry(Entry{Kind: OfEvent, Name: kind.Name, Doc: toSentence(kind.Doc)})
	}
	for _, one := range attributes {
		r.addEntry(Entry{Kind: OfAttribute, Name: one.name, Doc: one.doc, Type: one.kind})
	}
	for _, one := range meter.AllMetrics() {
		r.addEntry(Entry{Kind: OfMetric, Name: one.Name, Doc: one.Help, Type: string(one.Kind), Words: one.Labels})
	}
}

// addPrograms adds what the programs read, and their exit codes.
func (r *Reference) addPrograms() {
	for _, one := range variables {
		r.addEntry(Entry{Kind: OfVariable, Name: one.name, Doc: one.doc, Default: one.absent, Where: []string{one.of}, Example: one.name + "=" + one.example})
	}
	for _, one := range files {
		r.addEntry(Entry{Kind: OfFile, Name: one.name, Doc: one.doc, Where: []string{one.of}, Example: one.example})
	}
	for _, one := range exitcode.AllStatuses() {
		r.addEntry(Entry{Kind: OfExit, Name: strconv.Itoa(one.Status), Title: fmt.Sprintf("Exit code %d", one.Status), Doc: toSentence(one.Doc)})
	}
}

// linkEntries adds links, and facts that follow from other entries.
func (r *Reference) linkEntries() {
	for i := range r.entries {
		e := &r.entries[i]
		e.Link, e.Concept, e.Related = linkOf(*e), conceptOf(*e), relatedTo(*e)
		switch section, last := r.at[i].section, r.at[i].word; e.Kind {
		case OfKey, OfTestKey:
			r.keys[section][last] = *e
		case OfField:
			r.fields[section][last] = *e
		}
	}
}

// toSentence converts a phrase in a table to a sentence.
func toSentence(text string) string {
	if text == "" {
		return ""
	}
	text = strings.ToUpper(text[:1]) + text[1:]
	if !strings.HasSuffix(text, ".") {
		text += "."
	}
	return text
}

func (r *Reference) addEntry(e Entry) { r.addAt(e, spot{}) }

// addAt adds an entry that can also be found by its section or tool.
func (r *Reference) addAt(e Entry, at spot) {
	r.entries, r.at = append(r.entries, e), append(r.at, at)
}

// spot is the section or tool of a word.
type spot struct{ section, word string }

func (r *Reference) addTools(tools playbook.Tools) {
	for _, name := range tools.Names() {
		spec, _ := tools.Spec(name)
		where := []string{"tool of a step"}
		if spec.Writes {
			where = append(where, "tool of a sink")
		}
		r.addEntry(Entry{
			Kind: OfTool, Name: name, Doc: spec.Summary + "\n\n" + strings.TrimSpace(spec.Doc), Words: spec.FieldNames(), Where: where,
			Example: listItem(strings.TrimSpace(spec.Example)),
		})
		r.fields[name] = map[string]Entry{}
		for _, field := range spec.DescribedFields() {
			example := fieldExamples.ofField(name, field)
			r.addAt(Entry{
				Kind: OfField, Name: name + "." + field.Name, Doc: field.Doc + needsText(field), Type: fieldTypes[field.Kind], Default: field.Default, Words: field.Enum,
				Where: []string{"a call of " + name}, Required: field.Required, Snippet: example.snippet, Example: example.wholeYAML(),
			}, spot{name, field.Name})
		}
	}
}

// needsText describes which other fields a field needs.
func needsText(field playbook.Field) string {
	if len(field.Needs) == 0 {
		return ""
	}
	words := lists.Map(field.Needs, func(need playbook.Need) string { return fmt.Sprintf("`%s: %s`", need.Field, need.Value) })
	return " Only with " + strings.Join(words, " or ") + "."
}

// listItem returns a map as an item of a list.
func listItem(yaml string) string {
	return strings.ReplaceAll("- "+strings.ReplaceAll(yaml, "\n", "\n  "), "\n  \n", "\n\n")
}

// fieldTypes describe the values of tools' fields.
var fieldTypes = map[playbook.FieldKind]string{
	playbook.KindValue:     "any value",
	playbook.KindText:      "text",
	playbook.KindMap:       "a map, or one template that gives it",
	playbook.KindList:      "a list, or one template that gives it",
	playbook.KindColumns:   "a list of names, or a map from names to types",
	playbook.KindStatement: "SQL, whose templates become bind parameters",
	playbook.KindCode:      "code, which is no template",
	playbook.KindLiteral:   "a text or a list of texts, without templates",
	playbook.KindDuration:  "a duration such as 90s, or a number of seconds",
	playbook.KindNumber:    "a number",
	playbook.KindBoolean:   "true or false",
	playbook.KindRequest:   "a request: a map with the fields of http",
	playbook.KindChoice:    "a word, or a map",
	playbook.KindSteps:     "a list of steps",
	playbook.KindCall:      "a map with tool and the fields of that tool",
}

// Entries returns all entries, in the order of Kinds and of the documentation.
func (r *Reference) Entries() []Entry { return slices.Clone(r.entries) }

// Key returns the entry of a key, in any spelling, in a section.
func (r *Reference) Key(section, key string) (Entry, bool) {
	e, ok := r.keys[section][cmp.Or(r.spellings[section][key], key)]
	return e, ok
}

// Field returns the entry of a field of a tool.
func (r *Reference) Field(tool, field string) (Entry, bool) {
	e, ok := r.fields[tool][field]
	return e, ok
}

// EntryOf returns the entry with a kind and name.
func (r *Reference) EntryOf(kind Kind, name string) (Entry, bool) {
	i := slices.IndexFunc(r.entries, func(e Entry) bool { return e.Kind == kind && e.Name == name })
	if i < 0 {
		return Entry{}, false
	}
	return r.entries[i], true
}

// Find returns the entries that match a question: a name of any kind, or a path of keys such as retry.then.max_wait,
// which may begin at any section. Equal entries of several sections are returned once. If nothing matches, the
// question may be the end of the name of a field or test key, such as csv.delimiter, or a value: upsert finds the
// fields `mode` that accept it.
func (r *Reference) Find(question string) []Entry {
	question = plainQuestion(question)
	found := lists.Filter(r.entries, func(e Entry) bool { return e.Kind != OfKey && strings.EqualFold(e.Name, question) })
	if found = append(r.findPath(question), found...); len(found) > 0 {
		return found
	}
	end := "." + strings.ToLower(question)
	found = r.distinctEntries(func(e Entry) bool {
		return (e.Kind == OfField || e.Kind == OfTestKey) && strings.HasSuffix(strings.ToLower(e.Name), end)
	})
	if len(found) > 0 {
		return found
	}
	return r.distinctEntries(func(e Entry) bool {
		return slices.ContainsFunc(e.Words, func(word string) bool { return strings.EqualFold(word, question) })
	})
}

// distinctEntries returns the selected entries; of those with the same text only the first.
func (r *Reference) distinctEntries(selects func(Entry) bool) []Entry {
	var found []Entry
	for _, e := range r.entries {
		if selects(e) && !slices.ContainsFunc(found, func(other Entry) bool { return other.Doc == e.Doc }) {
			found = append(found, e)
		}
	}
	return found
}

// plainQuestion removes the brackets of templates, functions and lists from a question.
func plainQuestion(question string) string {
	question = strings.TrimSpace(strings.Trim(strings.TrimSpace(question), "{}"))
	if name, _, isCall := strings.Cut(question, "("); isCall {
		question = name
	}
	question = strings.TrimPrefix(question, "exit ")
	if strings.HasPrefix(question, connectionPrefix) {
		question = connectionPrefix + "NAME"
	}
	for _, prefix := range []string{"workflow.", "workflow[]."} {
		question = strings.TrimPrefix(question, prefix)
	}
	if parts := strings.SplitN(question, ".", 3); len(parts) > 1 && parts[0] == "policies" { // a list of policies by its name
		question = strings.Join(append([]string{"retry"}, parts[2:]...), ".")
	}
	var out strings.Builder
	for i := 0; i < len(question); i++ {
		if end := strings.IndexByte(question[i:], ']'); question[i] == '[' && end > 0 {
			i += end
			continue
		}
		out.WriteByte(question[i])
	}
	return out.String()
}

// connectionPrefix begins the environment variables of connections, which end with the connection's name.
const connectionPrefix = "REPRISE_AUTH_"

// Suggest returns the name that was probably meant; "" if none is similar.
func (r *Reference) Suggest(question string) string {
	question = plainQuestion(question)
	var names []string
	for _, e := range r.entries {
		names = append(names, e.Name)
		if _, last, ok := cutLast(e.Name); ok {
			names = append(names, last)
		}
	}
	for _, section := range r.spellings {
		names = slices.AppendSeq(names, maps.Keys(section))
	}
	before, last, nested := cutLast(question)
	if near := expression.Suggest(question, names); near != "" || !nested {
		return near
	}
	if near := expression.Suggest(last, r.wordsBelow(before)); near != "" {
		return before + "." + near
	}
	return expression.Suggest(last, names)
}

func cutLast(path string) (before, last string, found bool) {
	i := strings.LastIndexByte(path, '.')
	if i < 0 {
		return "", path, false
	}
	return path[:i], path[i+1:], true
}

// wordsBelow returns the words below a path.
func (r *Reference) wordsBelow(path string) []string {
	var names []string
	for _, e := range r.Find(path) {
		names = append(names, e.Words...)
	}
	_, last, _ := cutLast(path)
	return slices.AppendSeq(names, maps.Keys(r.spellings[last]))
}

// NamesOf lists the names of a kind in the order of the documentation.
func (r *Reference) NamesOf(kind Kind) []string {
	return lists.Pick(r.entries, func(e Entry) (string, bool) { return e.Name, e.Kind == kind })
}

// Plural returns the plural of a kind, for lists.
func (k Kind) Plural() string {
	switch k {
	case OfStatus:
		return "statuses"
	default:
		return string(k) + "s"
	}
}

// Markdown returns the entry as editors show it.
func (e Entry) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "**%s** (%s)\n\n%s\n", escapeText(e.Heading()), e.Kind, e.Doc)
	for _, fact := range e.Facts() {
		fmt.Fprintf(&b, "\n- %s: %s", fact.Name, fact.Text)
	}
	b.WriteString("\n")
	for _, block := range []struct{ title, text string }{{"Wrong", e.Wrong}, {"Right", e.Right}, {"Example", e.Example}} {
		if block.text != "" {
			fmt.Fprintf(&b, "\n%s:\n\n```yaml\n%s\n```\n", block.title, strings.TrimRight(block.text, "\n"))
		}
	}
	return b.String()
}

func escapeText(text string) string {
	return strings.NewReplacer("_", `\_`, "*", `\*`, "[", `\[`).Replace(text)
}

// Heading returns the heading of the entry.
func (e Entry) Heading() string { return cmp.Or(e.Title, e.Name) }

// Property is a fact about an entry.
type Property struct{ Name, Text string }

// Facts returns what is known about an entry besides its text and examples.
func (e Entry) Facts() []Property {
	facts := []Property{
		{"type", e.Type},
		{"bounds", e.Bounds},
		{"default", e.Default},
		{wordsOf[e.Kind], strings.Join(e.Words, ", ")},
		{"where", strings.Join(e.Where, ", ")},
		{"related", strings.Join(e.Related, ", ")},
		{"explained", e.Concept},
		{"link", e.Link},
	}
	if e.Required {
		facts[2].Text = "none, it is required"
	}
	return slices.DeleteFunc(facts, func(fact Property) bool { return fact.Text == "" })
}

// wordsOf names what Entry.Words are for each kind.
var wordsOf = map[Kind]string{OfKey: "accepts", OfField: "accepts", OfTestKey: "accepts", OfTool: "fields", OfName: "members", OfMetric: "labels"}

//go:embed codes.txt
var codesText string

// explanation is the text about a diagnostic in codes.txt.
type explanation struct{ why, wrong, right string }

var explanations = readExplanations(codesText)

func readExplanations(text string) map[string]explanation {
	all := map[string]explanation{}
	for _, section := range strings.Split(text, "\n# ")[1:] {
		code, body, _ := strings.Cut(section, "\n")
		why, examples, _ := strings.Cut(body, "\n-- wrong\n")
		wrong, right, _ := strings.Cut(examples, "\n-- right\n")
		all[code] = explanation{why: strings.TrimSpace(why), wrong: strings.TrimRight(wrong, "\n"), right: strings.TrimRight(right, "\n")}
	}
	return all
}
