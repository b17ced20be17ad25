package reference

import (
	_ "embed"
	"fmt"
	"strings"
)

// guide is what a model is shown before the reference.
//
//go:embed guide.md
var guide string

// link is one of llms.txt.
type link struct{ to, name, about string }

// LLMs is llms.txt (https://llmstxt.org): what Reprise is, and where its documents are.
func LLMs() string {
	var b strings.Builder
	head, _, _ := strings.Cut(guide, "\n## ")
	b.WriteString(strings.TrimSpace(head) + "\n")
	words := []link{{"llms-full.txt", "The whole reference", "A guide, then every word of the language and of the programs."}}
	for _, page := range Pages() {
		words = append(words, link{Folder + page.Name + ".md", page.Title, page.About})
	}
	words = append(words, link{"schema/playbook.schema.json", "JSON Schema", "For editors, and for output that has to be a playbook."})
	writeLinks(&b, "Reference", words)
	writeLinks(&b, "Guides", []link{
		{"docs/writing.md", "Writing a playbook", "`starter new`, `try` and `eval`."},
		{"docs/testing.md", "Testing a playbook", "Files of tests, on skipped time."},
		{"docs/recipes.md", "Recipes", "Whole playbooks for common tasks, each tested."},
		{"docs/loading-data.md", "Loading data", "Sinks, states between runs, and replacing tables."},
		{"docs/language.md", "The language", "What each part of a playbook means."},
		{"docs/tutorial.md", "Tutorial", "From nothing to an incremental load."},
	})
	writeLinks(&b, "Optional", []link{
		{"docs/operations.md", "Operations", "Running, observing and steering runs."},
		{"docs/editor.md", "Editors and models", "`starter lsp` and `starter mcp`."},
		{"docs/architecture.md", "Architecture", "How it works inside."},
	})
	return b.String()
}

func writeLinks(b *strings.Builder, title string, links []link) {
	fmt.Fprintf(b, "\n## %s\n\n", title)
	for _, one := range links {
		fmt.Fprintf(b, "- [%s](%s): %s\n", one.name, one.to, one.about)
	}
}

// LLMsFull is llms-full.txt: a guide, and all entries.
func (r *Reference) LLMsFull() string {
	var b strings.Builder
	b.WriteString(strings.TrimSpace(guide) + "\n")
	for _, kind := range Kinds() {
		plural := kind.Plural()
		fmt.Fprintf(&b, "\n## %s\n", strings.ToUpper(plural[:1])+plural[1:])
		for _, entry := range r.entries {
			if entry.Kind == kind {
				b.WriteString("\n### " + strings.TrimSpace(entry.Markdown()) + "\n")
			}
		}
	}
	return b.String()
}
