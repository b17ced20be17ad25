package reference

import (
	_ "embed"
	"fmt"
	"strings"
)

// guide is the introduction that models read before the reference.
//
//go:embed guide.md
var guide string

// link is a link in llms.txt.
type link struct{ to, name, about string }

// LLMs returns llms.txt (https://llmstxt.org): what Reprise is, and links to its documents.
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
		{"docs/tutorial.md", "Tutorial", "From nothing to an incremental load."},
		{"docs/how-to/index.md", "How to", "One page for each task, with whole playbooks that tests run."},
		{"docs/how-to/write-a-playbook.md", "Write a playbook", "`starter new`, `try` and `eval`."},
		{"docs/how-to/test-a-playbook.md", "Test a playbook", "Files of tests, on skipped time."},
		{"docs/how-to/load-a-table.md", "Load a table every night", "Sinks, and states between runs."},
		{"docs/concepts/attempts.md", "Attempts and policies", "What policies decide after each attempt."},
		{"docs/concepts/keys.md", "Keys", "What is sent twice, and how a server can recognize it."},
		{"docs/concepts/expressions.md", "Expressions", "Templates, and values in URLs and SQL."},
	})
	writeLinks(&b, "Optional", []link{
		{"docs/concepts/runs.md", "How a run executes", "Inputs, routes, results, and playbooks in playbooks."},
		{"docs/how-to/models.md", "Let a model write playbooks", "`starter mcp`."},
		{"docs/architecture.md", "Architecture", "How it works inside."},
	})
	b.WriteString("\n<!-- Generated: make reference -->\n")
	return b.String()
}

func writeLinks(b *strings.Builder, title string, links []link) {
	fmt.Fprintf(b, "\n## %s\n\n", title)
	for _, one := range links {
		fmt.Fprintf(b, "- [%s](%s): %s\n", one.name, one.to, one.about)
	}
}

// LLMsFull returns llms-full.txt: the guide and all entries.
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
