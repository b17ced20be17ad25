package docs

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"reprise/activities"
	"reprise/internal/program/reference"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
	"reprise/interpreter/playbook/check"
	"reprise/interpreter/source"
)

// ReferencePages returns the pages of docs/reference that follow from the tables of this program and from the OpenAPI
// document of starter serve, by file name. The page of the commands is generated where the commands are defined.
func ReferencePages(catalogue playbook.Tools, openAPI []byte) (map[string]string, error) {
	w := writer{reference.New(catalogue), catalogue}
	api, err := httpAPIPage(openAPI)
	if err != nil {
		return nil, err
	}
	made := map[string]string{"index.md": w.indexPage()}
	for _, page := range reference.Pages() {
		switch page.Name {
		case "commands", "worker":
		case "http-api":
			made[page.Name+".md"] = pageHead(page) + api
		case "tools":
			made[page.Name+".md"] = pageHead(page) + w.toolsPage()
		default:
			made[page.Name+".md"] = pageHead(page) + w.conceptLinks(page) + w.pageSections(page) + w.entriesOfKinds(page)
		}
	}
	return made, nil
}

// writer renders the pages of the reference.
type writer struct {
	all       *reference.Reference
	catalogue playbook.Tools
}

const generated = "<!-- Generated: make reference -->\n\n"

// pageHead returns the start of a page: its title, what it contains, how to read it, and links to parent pages.
func pageHead(page reference.Page) string {
	return fmt.Sprintf("# %s\n\n%s[Documentation](../../README.md) › [Reference](index.md) › %s\n\n%s%s\n", page.Title, generated, page.Title,
		page.About, readings[page.Name])
}

const readKeys = " Each heading is the path of a key. Below it: what the key says, its type, its default, where it may be written, and an example. " +
	"Tests check the examples, whose `api`, `ids`, `day` and `region` are keys of the `workload`. `starter explain KEY` prints the same."

// readings explain how to read pages, by page name.
var readings = map[string]string{
	"playbook": readKeys, "step": readKeys, "retry": readKeys, "loop": readKeys, "sinks": readKeys, "incremental": readKeys,
	"tests":             " Each heading is the path of a key. The examples are tests that pass.",
	"tools":             " Every tool also takes the keys of a call: `args`, `auth`, `timeout` and `idempotency`, as in a [step](step.md). Each field has a heading with its type, what counts without it, and an example, which is checked.",
	"expressions":       " Names come first, functions after them. A function is called as `f(x, y)` or as a filter, `x | f(y)`; `=>` is before what an example gives, and `#` is the element in a condition.",
	"diagnostics":       " Each heading is the code that a message ends with. Both examples are checked: the wrong one gives the code, the right one nothing. `starter explain CODE` prints the same.",
	"statuses":          " `of` says whose status it can be.",
	"events":            " Each heading is the `event` of `starter events --output json`.",
	"metrics":           " Nothing is counted without `--metrics-address` or OpenTelemetry's variables. Each metric has its kind and labels.",
	"configuration":     " A flag counts more than the variable. What is not set has its default. Files come after the variables.",
	"search-attributes": " `starter setup` adds them to a namespace. A filter is `--query` of `starter list`, or the list of Temporal's web UI: `RepriseStatus = \"failed\"`.",
	"exit-codes":        " They are those of `starter run`; other commands give those that fit.",
	"http-api":          " Each heading is a method and a path. The document itself is at `/v1/openapi.json`.",
}

// indexPage returns the index page.
func (w writer) indexPage() string {
	var b strings.Builder
	b.WriteString("# Reference\n\n" + generated + "[Documentation](../../README.md) › Reference\n\n")
	b.WriteString("Every word of Reprise, made from the tables that the programs read with. `starter explain WORD` prints what is here; " +
		"`starter docs --open WORD` opens it in a browser.\n\n")
	rows := [][]string{{"page", "what it has"}}
	for _, page := range reference.Pages() {
		rows = append(rows, []string{fmt.Sprintf("[%s](%s.md)", page.Title, page.Name), page.About})
	}
	b.WriteString(markdownTable(rows))
	return b.String()
}

// pageSections returns the sections of the language that belong to a page.
func (w writer) pageSections(page reference.Page) string {
	var b strings.Builder
	for _, section := range w.all.Sections() {
		if reference.PageOfSection(section.Name) == page.Name {
			b.WriteString(w.sectionText(section))
		}
	}
	return b.String()
}

func (w writer) sectionText(section playbook.Section) string {
	var b strings.Builder
	title := "At a glance"
	if at := reference.PathOfSection(section.Name); at != "" {
		title = codeSpan(at) + " at a glance"
	}
	fmt.Fprintf(&b, "\n## %s\n\n", title)
	rows := [][]string{{"key", "what it says"}}
	var blocks []string
	for _, key := range mostUsedFirst(section) {
		entry, _ := w.all.Key(section.Name, key.Name)
		rows = append(rows, []string{fmt.Sprintf("[%s](#%s)", codeSpan(key.Name), reference.AnchorOf(entry.Name)), entry.Doc})
		blocks = append(blocks, w.entryText(entry, key.Aliases))
	}
	b.WriteString(markdownTable(rows))
	if section.Open {
		b.WriteString("\nOther keys are fields of the tool: [tools](tools.md).\n")
	}
	b.WriteString(strings.Join(blocks, ""))
	return b.String()
}

// entriesOfKinds returns all entries of the kinds that belong to a page.
func (w writer) entriesOfKinds(page reference.Page) string {
	var b strings.Builder
	for _, kind := range reference.Kinds() {
		if kind == reference.OfKey || kind == reference.OfTestKey || kind == reference.OfTool {
			continue
		}
		for _, entry := range w.all.Entries() {
			if entry.Kind == kind && reference.PageOf(entry) == page.Name {
				b.WriteString(w.entryText(entry, nil))
			}
		}
	}
	return b.String()
}

// conceptLinks returns links to the pages that explain a page's entries.
func (w writer) conceptLinks(page reference.Page) string {
	var links []string
	for _, entry := range w.all.Entries() {
		if link := conceptLink(entry); entry.Kind != reference.OfKey && link != "" && reference.PageOf(entry) == page.Name && !slices.Contains(links, link) {
			links = append(links, link)
		}
	}
	if len(links) == 0 {
		return ""
	}
	return fmt.Sprintf("\nExplained in: %s.\n", strings.Join(links, ", "))
}

// headingLevel returns the heading level of an entry's kind: keys and fields are beneath the headings of sections and tools.
func headingLevel(kind reference.Kind) string {
	switch kind {
	case reference.OfKey, reference.OfTestKey, reference.OfField:
		return "###"
	default:
		return "##"
	}
}

// entryText returns the text of an entry. aliases are its other spellings.
func (w writer) entryText(e reference.Entry, aliases []string) string {
	var b strings.Builder
	title := e.Label()
	if e.Kind != reference.OfExit {
		title = codeSpan(title)
	}
	fmt.Fprintf(&b, "\n%s %s\n\n", headingLevel(e.Kind), title)
	if e.Kind == reference.OfFunction {
		fmt.Fprintf(&b, "%s: ", codeSpan(e.Title))
	}
	fmt.Fprintf(&b, "%s\n", strings.TrimSpace(e.Doc))
	if facts := w.entryFacts(e, aliases); len(facts) > 0 {
		fmt.Fprintf(&b, "\n- %s\n", strings.Join(facts, "\n- "))
	}
	for _, one := range []struct{ title, text, words string }{
		{"Wrong:\n\n", e.Wrong, "yaml wrong"}, {"", w.exampleMessages(e), "text"}, {"Right:\n\n", e.Right, "yaml"}, {"", e.Example, exampleWords(e)},
	} {
		if one.text != "" {
			fmt.Fprintf(&b, "\n%s%s%s\n%s\n%s\n", one.title, fence, one.words, strings.TrimRight(one.text, "\n"), fence)
		}
	}
	return b.String()
}

// exampleMessages returns the problems that the check of an entry's wrong example finds.
func (w writer) exampleMessages(e reference.Entry) string {
	if e.Wrong == "" {
		return ""
	}
	limits, _ := activities.LimitsFromEnv(func(string) (string, bool) { return "", false })
	_, found := check.Validate(source.NewFile("example.yaml", []byte(reference.WholePlaybook(e.Wrong))), w.catalogue, check.Options{Limits: limits, Now: reference.ExampleTime})
	var lines []string
	for _, one := range found {
		if one.Code == e.Name {
			lines = append(lines, fmt.Sprintf("%s [%s]", one.Message, one.Code))
		}
	}
	return strings.Join(slices.Compact(lines), "\n")
}

// exampleWords returns the info string of an example's block.
func exampleWords(e reference.Entry) string {
	switch e.Kind {
	case reference.OfFunction:
		return "text expressions"
	case reference.OfVariable:
		return "sh"
	case reference.OfTestKey, reference.OfFile:
		return "yaml fragment"
	default:
		return "yaml"
	}
}

// entryFacts returns the short properties of an entry.
func (w writer) entryFacts(e reference.Entry, aliases []string) []string {
	var facts []string
	add := func(name, text string) {
		if text != "" {
			facts = append(facts, name+": "+text)
		}
	}
	add("Type", e.Type)
	add("Bounds", e.Bounds)
	if e.Required {
		add("Required", "yes")
	}
	add("Default", defaultText(e.Default))
	add(cmp.Or(accepts[e.Kind], "Accepts"), w.words(e))
	add("Also written", codeList(aliases))
	if e.Kind != reference.OfField {
		add(cmp.Or(places[e.Kind], "In"), placesText(e))
	}
	add("Related", w.relatedLinks(e))
	if e.Kind == reference.OfKey {
		add("Explained in", conceptLink(e))
	}
	return facts
}

// places maps kinds to the title of Entry.Where.
var places = map[reference.Kind]string{reference.OfName: "Known", reference.OfStatus: "Of", reference.OfVariable: "Read by", reference.OfFile: "Read by"}

// accepts maps kinds to the title of Entry.Words.
var accepts = map[reference.Kind]string{reference.OfName: "Members", reference.OfMetric: "Labels", reference.OfTool: "Fields"}

func (w writer) words(e reference.Entry) string {
	all := make([]string, len(e.Words))
	for i, word := range e.Words {
		all[i] = codeSpan(word)
		if below, found := w.all.EntryBelow(e, word); found {
			all[i] = w.linkTo(e, below, word)
		}
	}
	return strings.Join(all, ", ")
}

func (w writer) relatedLinks(e reference.Entry) string {
	var all []string
	for _, name := range e.Related {
		if other, found := w.all.EntryOf(e.Kind, name); found {
			all = append(all, w.linkTo(e, other, name))
		}
	}
	return strings.Join(all, ", ")
}

// linkTo returns a link from one entry to another.
func (w writer) linkTo(from, to reference.Entry, name string) string {
	file, anchor, _ := strings.Cut(strings.TrimPrefix(to.Link, reference.Folder), "#")
	if reference.PageOf(from) == reference.PageOf(to) {
		file = ""
	}
	return fmt.Sprintf("[%s](%s#%s)", codeSpan(name), file, anchor)
}

// placesText returns the places in which a word may be written.
func placesText(e reference.Entry) string {
	if e.Kind != reference.OfKey {
		return strings.Join(e.Where, ", ")
	}
	all := slices.Clone(e.Where)
	for i, one := range all {
		if !strings.Contains(one, " ") {
			all[i] = codeSpan(one)
		}
	}
	return strings.Join(all, ", ")
}

// conceptLink returns a link to the page that explains an entry; "" if there is none.
func conceptLink(e reference.Entry) string {
	if e.Concept == "" {
		return ""
	}
	file, anchor, _ := strings.Cut(strings.TrimPrefix(e.Concept, "docs/"), "#")
	name := strings.ReplaceAll(cmp.Or(anchor, strings.TrimSuffix(path.Base(file), ".md")), "-", " ")
	target := "../" + file
	if anchor != "" {
		target += "#" + anchor
	}
	return fmt.Sprintf("[%s](%s)", name, target)
}

// defaultText returns a default as code, unless it is a sentence.
func defaultText(text string) string {
	if text == "" || strings.Contains(text, " ") && !strings.HasPrefix(text, "[") {
		return text
	}
	return codeSpan(text)
}

func codeList(words []string) string {
	all := lists.Map(words, codeSpan)
	return strings.Join(all, ", ")
}
