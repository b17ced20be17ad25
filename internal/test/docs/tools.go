package docs

import (
	"fmt"
	"strings"
	"time"

	"reprise/internal/program/reference"
	"reprise/interpreter/playbook"
)

// toolsPage returns the page of the tools.
func (w writer) toolsPage() string {
	var b strings.Builder
	rows := [][]string{{"tool", "what it does", "sink"}}
	for _, name := range w.catalogue.Names() {
		spec, _ := w.catalogue.Spec(name)
		rows = append(rows, []string{fmt.Sprintf("[%s](#%s)", codeSpan(name), name), spec.Summary, sinkWord(spec)})
	}
	rows = append(rows, []string{"[`workbook`](playbook.md#workbook)", "Calls an entry of the playbook's workbook.", "no"})
	b.WriteString("\n" + markdownTable(rows))
	for _, name := range w.catalogue.Names() {
		spec, _ := w.catalogue.Spec(name)
		b.WriteString("\n" + w.toolText(spec))
	}
	return b.String()
}

func sinkWord(spec playbook.ToolSpec) string {
	switch {
	case spec.SinkOnly:
		return "only"
	case spec.Writes:
		return "yes"
	}
	return "no"
}

func (w writer) toolText(spec playbook.ToolSpec) string {
	var b strings.Builder
	tool, _ := w.all.EntryOf(reference.OfTool, spec.Name)
	fmt.Fprintf(&b, "## %s\n\n%s\n\n%s\n\n", spec.Name, spec.Summary, strings.TrimSpace(spec.Doc))
	rows := [][]string{{"field", "what it says"}}
	for _, field := range spec.DescribedFields() {
		rows = append(rows, []string{fmt.Sprintf("[%s](#%s)", codeSpan(field.Name), reference.AnchorOf(spec.Name+"."+field.Name)), field.Doc})
	}
	b.WriteString(markdownTable(rows))
	b.WriteString("\n" + requiredText(spec) + "An attempt has " + limitText(spec) + " unless `timeout` says otherwise.\n")
	fmt.Fprintf(&b, "\n%syaml\n%s\n%s\n", fence, tool.Example, fence)
	for _, field := range spec.DescribedFields() {
		entry, _ := w.all.Field(spec.Name, field.Name)
		b.WriteString(w.entryText(entry, nil))
	}
	return b.String()
}

// requiredText describes which fields are required together.
func requiredText(spec playbook.ToolSpec) string {
	var out strings.Builder
	for _, group := range spec.RequireOneOf {
		if len(group) == 1 {
			fmt.Fprintf(&out, "%s is needed. ", codeSpan(group[0]))
			continue
		}
		fmt.Fprintf(&out, "One of %s is needed. ", codeList(group))
	}
	for _, need := range spec.RequireIf {
		fmt.Fprintf(&out, "%s needs %s. ", codeSpan(need.Field+": "+need.Value), codeSpan(need.Needs))
	}
	return out.String()
}

func limitText(spec playbook.ToolSpec) string {
	if playbook.TraitsOf(spec.Name).Endless {
		return "no time limit"
	}
	if timeout := playbook.TraitsOf(spec.Name).Timeout; timeout < time.Minute {
		return fmt.Sprintf("%g seconds", timeout.Seconds())
	}
	return fmt.Sprintf("%g minutes", playbook.TraitsOf(spec.Name).Timeout.Minutes())
}
