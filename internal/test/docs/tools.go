package docs

import (
	"fmt"
	"strings"
	"time"

	"reprise/interpreter/playbook"
)

const toolsHead = `# The tools

<!-- Generated from the specs of the tools: go run ./internal/test/docs/generate -->

What a step can call. Every tool also takes the words of the language that stand
with a call: args, auth, timeout and idempotency, as in [a step](language.md#step). A
tool that can write may be a [sink](concepts/written-once.md). The worker resolves what auth
names: [connections](concepts/security.md#connections).

`

// Tools is docs/tools.md for a catalogue of tools.
func Tools(catalogue playbook.Tools) string {
	var out strings.Builder
	out.WriteString(toolsHead)
	rows := [][]string{{"tool", "what it does", "sink"}}
	for _, name := range catalogue.Names() {
		spec, _ := catalogue.Spec(name)
		rows = append(rows, []string{fmt.Sprintf("[%s](#%s)", code(name), name), spec.Summary, sinkWord(spec)})
	}
	rows = append(rows, []string{"[`workbook`](concepts/runs.md#workbook-and-named-policies)", "Calls an entry of the playbook's workbook.", "no"})
	out.WriteString(table(rows))
	for _, name := range catalogue.Names() {
		spec, _ := catalogue.Spec(name)
		out.WriteString("\n" + tool(spec))
	}
	return out.String()
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

func tool(spec playbook.ToolSpec) string {
	var out strings.Builder
	fmt.Fprintf(&out, "## %s\n\n%s\n\n%s\n\n", spec.Name, spec.Summary, strings.TrimSpace(spec.Doc))
	rows := [][]string{{"field", "holds", "what it says"}}
	for _, field := range spec.Described() {
		rows = append(rows, []string{code(field.Name), valuesOf(field), fieldDoc(field)})
	}
	out.WriteString(table(rows))
	out.WriteString("\n" + demands(spec) + "An attempt has " + limit(spec) + " unless `timeout` says otherwise.\n\n")
	fmt.Fprintf(&out, "%syaml\n- %s%s\n", fence, strings.ReplaceAll(strings.TrimSpace(spec.Example), "\n", "\n  "), "\n"+fence)
	return strings.ReplaceAll(out.String(), "\n  \n", "\n\n")
}

// kinds are the words for kinds of fields.
var kinds = map[playbook.FieldKind]string{
	playbook.KindValue:     "any value",
	playbook.KindText:      "text",
	playbook.KindMap:       "a map",
	playbook.KindList:      "a list",
	playbook.KindStatement: "SQL",
	playbook.KindCode:      "code, no template",
	playbook.KindLiteral:   "a constant",
	playbook.KindDuration:  "a duration",
	playbook.KindNumber:    "a number",
	playbook.KindBoolean:   "true or false",
	playbook.KindSteps:     "a list of steps",
	playbook.KindRequest:   "a request",
}

func valuesOf(field playbook.Field) string {
	if len(field.Enum) == 0 {
		return kinds[field.Kind]
	}
	words := make([]string, len(field.Enum))
	for i, word := range field.Enum {
		words[i] = code(word)
	}
	if field.Kind == playbook.KindChoice {
		words = append(words, "or a map")
	}
	return strings.Join(words, ", ")
}

func fieldDoc(field playbook.Field) string {
	doc := field.Doc
	if field.Default != "" {
		doc += " Default: " + field.Default + "."
	}
	if field.Required {
		doc += " Required."
	}
	for i, need := range field.Needs {
		doc += []string{" Only with ", " or "}[min(i, 1)] + code(need.Field+": "+need.Value)
	}
	if len(field.Needs) > 0 {
		doc += "."
	}
	return doc
}

// demands says which fields must be there together.
func demands(spec playbook.ToolSpec) string {
	var out strings.Builder
	for _, group := range spec.RequireOneOf {
		words := make([]string, len(group))
		for i, word := range group {
			words[i] = code(word)
		}
		if len(words) == 1 {
			fmt.Fprintf(&out, "%s is needed. ", words[0])
			continue
		}
		fmt.Fprintf(&out, "One of %s is needed. ", strings.Join(words, ", "))
	}
	for _, need := range spec.RequireIf {
		fmt.Fprintf(&out, "%s needs %s. ", code(need.Field+": "+need.Value), code(need.Needs))
	}
	return out.String()
}

func limit(spec playbook.ToolSpec) string {
	if playbook.TraitsOf(spec.Name).Endless {
		return "no time limit"
	}
	if timeout := playbook.TraitsOf(spec.Name).Timeout; timeout < time.Minute {
		return fmt.Sprintf("%g seconds", timeout.Seconds())
	}
	return fmt.Sprintf("%g minutes", playbook.TraitsOf(spec.Name).Timeout.Minutes())
}
