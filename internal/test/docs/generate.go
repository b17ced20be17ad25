package docs

import (
	"fmt"
	"strings"

	"reprise/internal/observe/runs"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// The marks around a part that is generated; the first names it.
const (
	beginMark = "<!-- generated: "
	endMark   = "<!-- end -->"
)

// Fill is a page with its generated parts as they are now. Errors name a mark that is not
// closed or that stands for nothing.
func Fill(text string) (string, error) {
	parts := generatedParts()
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(text, beginMark)
		out.WriteString(before)
		if !found {
			return out.String(), nil
		}
		name, rest, _ := strings.Cut(rest, " -->")
		part, known := parts[name]
		if !known {
			return "", fmt.Errorf("there is no generated part %q", name)
		}
		_, after, closed := strings.Cut(rest, endMark)
		if !closed {
			return "", fmt.Errorf("the generated part %q has no %s", name, endMark)
		}
		fmt.Fprintf(&out, "%s%s -->\n%s%s", beginMark, name, part, endMark)
		text = after
	}
}

func hasParts(text string) bool { return strings.Contains(text, beginMark) }

func generatedParts() map[string]string {
	parts := map[string]string{"functions": functions(), "codes": codeTable(), "statuses": statuses(), "events": events()}
	for _, section := range playbook.Sections() {
		parts["keys "+section.Name] = keys(section)
	}
	for _, section := range playbook.TestSections() {
		parts["test keys "+section.Name] = keys(section)
	}
	return parts
}

func keys(section playbook.Section) string {
	rows := [][]string{{"key", "what it says"}}
	for _, key := range section.Keys {
		name := code(key.Name)
		for _, alias := range key.Aliases {
			name += ", " + code(alias)
		}
		rows = append(rows, []string{name, key.Doc})
	}
	return table(rows)
}

func functions() string {
	rows := [][]string{{"function", "what it gives"}}
	for _, function := range expression.Functions() {
		rows = append(rows, []string{code(function.Signature), function.Doc})
	}
	return table(rows)
}

func statuses() string {
	rows := [][]string{{"status", "of", "means that it"}}
	for _, info := range interpreter.Statuses() {
		rows = append(rows, []string{code(string(info.Status)), info.Of.String(), info.Doc})
	}
	return table(rows)
}

func events() string {
	rows := [][]string{{"event", "when"}}
	for _, kind := range runs.Kinds() {
		rows = append(rows, []string{code(kind.Name), kind.Doc})
	}
	return table(rows)
}

// codeTable gives every code an anchor, so that a message can be looked up.
func codeTable() string {
	rows := [][]string{{"code", "means that"}}
	for _, one := range playbook.Codes() {
		anchor := fmt.Sprintf(`<a id="%s"></a>%s`, one.Code, code(one.Code))
		rows = append(rows, []string{anchor, one.Meaning})
	}
	return table(rows)
}

func code(text string) string { return "`" + text + "`" }

// table writes a Markdown table; the first row is its head. Text in it is as
// written, but for the bars that would end a cell.
func table(rows [][]string) string {
	var out strings.Builder
	for i, row := range rows {
		for _, cell := range row {
			out.WriteString("| " + strings.ReplaceAll(cell, "|", `\|`) + " ")
		}
		out.WriteString("|\n")
		if i == 0 {
			out.WriteString(strings.Repeat("|---", len(row)) + "|\n")
		}
	}
	return out.String()
}
