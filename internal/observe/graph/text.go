package graph

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"reprise/internal/base/terminal"
	"reprise/interpreter"
	"reprise/interpreter/lists"
)

// fillColour returns the fill colour for a status; "" without one.
func fillColour(state interpreter.Status) string {
	if state == "" {
		return ""
	}
	return state.StatusColour().Fill
}

// Text returns the graph as text for a terminal: every step and its routes.
func (g *Diagram) Text() string {
	return terminal.OneLine(g.title) + "\n" + g.stepsText()
}

func (g *Diagram) stepsText() string {
	var b strings.Builder
	for _, step := range g.steps {
		b.WriteString("\n" + step.name)
		if step.tool == "" {
			b.WriteString("  (router)")
		} else {
			b.WriteString("  " + terminal.OneLine(step.tool))
		}
		if step.state != "" {
			b.WriteString("  [" + terminal.OneLine(strings.Join(append([]string{step.word}, step.details...), ", ")) + "]")
		}
		b.WriteString("\n")
		if step.joins {
			b.WriteString("│  joins " + strings.Join(step.from, ", ") + "\n")
		}
		if step.loop != "" {
			b.WriteString("│  " + terminal.OneLine(step.loop) + "\n")
		}
		for _, sink := range step.sinks {
			b.WriteString("│  sink, " + sink.when + ": " + terminal.OneLine(sink.target) + "\n")
		}
		if step.inner != nil {
			b.WriteString("│  runs " + terminal.OneLine(step.inner.title) + "\n")
			for line := range strings.Lines(step.inner.stepsText()) {
				b.WriteString(strings.TrimRight("│    "+line, " \n") + "\n")
			}
		}
		for i, route := range step.routes {
			corner := "├"
			if i == len(step.routes)-1 {
				corner = "└"
			}
			label := ""
			if route.label != "" {
				label = " " + terminal.OneLine(route.label) + " ─"
			}
			fmt.Fprintf(&b, "%s─%s▶ %s\n", corner, label, route.to)
		}
	}
	return b.String()
}

// stepIDs returns IDs of the steps for formats that need words: n1 and so on, and n1_1 for nested steps.
func (g *Diagram) stepIDs(prefix string) map[string]string {
	ids := map[string]string{}
	for i, step := range g.steps {
		ids[step.name] = fmt.Sprintf("%s%d", prefix, i+1)
	}
	return ids
}

// Mermaid returns the graph in Mermaid syntax. Labels are quoted, and characters with a special meaning are written
// as entities.
func (g *Diagram) Mermaid() string {
	var b strings.Builder
	fmt.Fprintf(&b, "---\ntitle: %s\n---\nflowchart TD\n", yamlText(g.title))
	used := map[interpreter.Status][]string{}
	g.mermaidSteps(&b, "n", "  ", used)
	for _, state := range slices.Sorted(maps.Keys(used)) {
		fmt.Fprintf(&b, "  classDef %s fill:%s,stroke:#333,color:#111\n  class %s %s\n",
			state, fillColour(state), strings.Join(used[state], ","), state)
	}
	return b.String()
}

// mermaidSteps writes steps with prefixed IDs, and records the IDs by status in used.
func (g *Diagram) mermaidSteps(b *strings.Builder, prefix, indent string, used map[interpreter.Status][]string) {
	ids := g.stepIDs(prefix)
	for _, step := range g.steps {
		id, open, shut := ids[step.name], "[", "]"
		switch {
		case step.tool == "":
			open, shut = "([", "])"
		case step.loop != "":
			open, shut = "[[", "]]"
		}
		fmt.Fprintf(b, "%s%s%s\"%s\"%s\n", indent, id, open, strings.Join(lists.Map(step.boxLines(), mermaidText), "<br/>"), shut)
		if step.state != "" {
			used[step.state] = append(used[step.state], id)
		}
		for i, sink := range step.sinks {
			fmt.Fprintf(b, "%s%ss%d[(\"%s\")]\n%s%s -. \"%s\" .-> %ss%d\n", indent, id, i+1, mermaidText(sink.target),
				indent, id, mermaidText(sink.when), id, i+1)
		}
		if step.inner != nil {
			fmt.Fprintf(b, "%ssubgraph %sg[\"%s\"]\n", indent, id, mermaidText(step.inner.title))
			step.inner.mermaidSteps(b, id+"_", indent+"  ", used)
			fmt.Fprintf(b, "%send\n%s%s -. \"runs\" .-> %sg\n", indent, indent, id, id)
		}
	}
	for _, step := range g.steps {
		for _, route := range step.routes {
			label := ""
			if route.label != "" {
				label = `|"` + mermaidText(route.label) + `"|`
			}
			fmt.Fprintf(b, "%s%s -->%s %s\n", indent, ids[step.name], label, ids[route.to])
		}
	}
}

// mermaidText writes characters that could be markup of Mermaid, Markdown or HTML as Mermaid entities.
func mermaidText(text string) string {
	var b strings.Builder
	for _, r := range terminal.OneLine(text) {
		if strings.ContainsRune("\"#&<>`*\\;|%", r) {
			fmt.Fprintf(&b, "#%d;", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// yamlText returns a text as a quoted YAML string.
func yamlText(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "---", `\x2d\x2d\x2d`, "<", `\x3c`).Replace(terminal.OneLine(text)) + `"`
}

// DOT returns the graph for Graphviz.
func (g *Diagram) DOT() string {
	var b strings.Builder
	fmt.Fprintf(&b, "digraph {\n  label=%s; labelloc=t; fontname=\"sans-serif\"\n", dotText(g.title))
	b.WriteString("  node [shape=box, style=\"rounded,filled\", fillcolor=white, fontname=\"sans-serif\"]\n")
	b.WriteString("  edge [fontname=\"sans-serif\", fontsize=10]\n")
	g.dotSteps(&b, "n", "  ")
	b.WriteString("}\n")
	return b.String()
}

// dotSteps writes steps with prefixed IDs.
func (g *Diagram) dotSteps(b *strings.Builder, prefix, indent string) {
	ids := g.stepIDs(prefix)
	for _, step := range g.steps {
		id, more := ids[step.name], ""
		switch {
		case step.tool == "":
			more = ", shape=oval"
		case step.loop != "":
			more = ", peripheries=2"
		}
		if colour := fillColour(step.state); colour != "" {
			more += fmt.Sprintf(", fillcolor=%q", colour)
		}
		fmt.Fprintf(b, "%s%s [label=%s%s]\n", indent, id, dotText(step.boxLines()...), more)
		for i, sink := range step.sinks {
			fmt.Fprintf(b, "%s%ss%d [label=%s, shape=cylinder, style=filled]\n%s%s -> %ss%d [label=%s, style=dashed]\n",
				indent, id, i+1, dotText(sink.target), indent, id, id, i+1, dotText(sink.when))
		}
		if inner := step.inner; inner != nil && len(inner.steps) > 0 {
			fmt.Fprintf(b, "%ssubgraph cluster_%s {\n%s  label=%s; style=dashed\n", indent, id, indent, dotText(inner.title))
			inner.dotSteps(b, id+"_", indent+"  ")
			fmt.Fprintf(b, "%s}\n%s%s -> %s_1 [label=\"runs\", style=dotted]\n", indent, indent, id, id)
		}
	}
	for _, step := range g.steps {
		for _, route := range step.routes {
			fmt.Fprintf(b, "%s%s -> %s", indent, ids[step.name], ids[route.to])
			if route.label != "" {
				fmt.Fprintf(b, " [label=%s]", dotText(route.label))
			}
			b.WriteString("\n")
		}
	}
}

// dotText returns lines of text as a DOT string. DOT resolves HTML entities, so & is escaped.
func dotText(lines ...string) string {
	escaped := lists.Map(lines, func(line string) string {
		return strings.NewReplacer(`\`, `\\`, `"`, `\"`, "&", "&amp;").Replace(terminal.OneLine(line))
	})
	return `"` + strings.Join(escaped, `\n`) + `"`
}
