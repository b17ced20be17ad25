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

// LLMs is llms.txt (https://llmstxt.org): what Reprise is, and where its documents are.
func LLMs() string {
	var b strings.Builder
	head, _, _ := strings.Cut(guide, "\n## ")
	b.WriteString(strings.TrimSpace(head) + "\n")
	for _, section := range []struct {
		title string
		links [][3]string
	}{
		{"Reference", [][3]string{
			{"llms-full.txt", "The whole reference", "every key, tool, field, name, function, diagnostic, status, event and exit code, with a guide before it"},
			{"docs/language.md", "The language", "what each part of a playbook means"},
			{"docs/tools.md", "The tools", "fields and examples of each tool"},
			{"schema/playbook.schema.json", "JSON Schema", "of a playbook, for editors and for constrained output"},
		}},
		{"Guides", [][3]string{
			{"docs/writing.md", "Writing a playbook", "starter new, try, eval, and starter mcp for models"},
			{"docs/testing.md", "Testing a playbook", "files of tests, on skipped time"},
			{"docs/recipes.md", "Recipes", "whole playbooks for common tasks, each tested"},
			{"docs/loading-data.md", "Loading data", "sinks, states between runs, replacing tables"},
			{"docs/tutorial.md", "Tutorial", "from nothing to an incremental load"},
		}},
		{"Optional", [][3]string{
			{"docs/operations.md", "Operations", "running, observing and steering runs"},
			{"docs/waiting.md", "Waiting", "waits, answers of people and of other systems"},
			{"docs/coming-from.md", "Coming from another tool", "the words of Airflow, dlt and others"},
			{"docs/architecture.md", "Architecture", "how it works inside"},
		}},
	} {
		fmt.Fprintf(&b, "\n## %s\n\n", section.title)
		for _, link := range section.links {
			fmt.Fprintf(&b, "- [%s](%s): %s\n", link[1], link[0], link[2])
		}
	}
	return b.String()
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
