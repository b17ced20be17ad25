package reference

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"time"

	"reprise/interpreter/playbook"
)

// hole marks the place in the surrounding YAML where a word is inserted.
const hole = "@"

// wordForm shows how a word of the language is written: a line of YAML that has it, inside the YAML that it needs.
type wordForm struct {
	snippet string // the word with a value
	around  string // the YAML around it, with a hole
}

// samples has the examples of a file, by section and word.
type samples map[string]map[string]wordForm

var (
	//go:embed examples.txt
	examplesText string
	//go:embed fields.txt
	fieldsText string
	//go:embed tests.txt
	testsText string
	//go:embed names.txt
	namesText string
	//go:embed functions.txt
	functionsText string

	keyExamples, fieldExamples, testExamples = readSamples(examplesText), readSamples(fieldsText), readSamples(testsText)
	nameExamples, functionExamples           = readNames(namesText), readFunctions(functionsText)
)

// every is the section for words that are written alike wherever they are allowed.
const every = "every"

// readSamples parses a file of examples. The file's first lines describe the format.
func readSamples(text string) samples {
	all := samples{}
	for _, section := range strings.Split(text, "\n# ")[1:] {
		name, body, _ := strings.Cut(section, "\n")
		blocks := strings.Split("\n"+strings.TrimRight(body, "\n"), "\n-- ")
		usual := strings.TrimPrefix(blocks[0], "\n")
		words := map[string]wordForm{}
		for _, block := range blocks[1:] {
			word, yaml, _ := strings.Cut(block, "\n")
			if inner, other := strings.CutPrefix(word, "in "); other {
				words[inner] = wordForm{words[inner].snippet, yaml}
			} else {
				words[word] = wordForm{yaml, usual}
			}
		}
		all[name] = words
		all[name][""] = wordForm{around: usual}
	}
	return all
}

// exampleOf returns the example of a word in its section, or else the one for all sections. A word that no file has
// is written with a plain value, if its kind has one.
func (s samples) exampleOf(section, word, plain string) wordForm {
	one, found := s[section][word]
	if !found {
		one = wordForm{s[every][word].snippet, s[section][""].around}
	}
	if one.snippet == "" && plain != "" {
		one.snippet = word + ": " + plain
	}
	return one
}

// ofField returns the example of a tool's field. Table fields of sqlite use the examples of postgres.
func (s samples) ofField(tool string, field playbook.Field) wordForm {
	_, found := s[tool][field.Name]
	if found || tool != "sqlite" || s["postgres"][""].around == "" || s[every][field.Name].snippet != "" {
		return s.exampleOf(tool, field.Name, plainValueOfField(field))
	}
	one := s.exampleOf("postgres", field.Name, plainValueOfField(field))
	one.around = strings.NewReplacer("tool: postgres", "tool: sqlite", "auth: pg_main", "path: orders.db").Replace(one.around)
	return one
}

// plainValueOf returns a value of a key that its kind alone gives, and that is not its default; "" if an example has
// to be written.
func plainValueOf(key playbook.Key) string {
	switch key.Kind {
	case playbook.WordBoolean:
		return otherBoolean(key.Default)
	case playbook.WordChoice:
		return otherChoice(key.Accepted, key.Default)
	case playbook.WordDuration, playbook.WordLimit:
		return plainDuration
	default:
		return ""
	}
}

// plainValueOfField is plainValueOf for a field of a tool.
func plainValueOfField(field playbook.Field) string {
	switch {
	case field.Kind == playbook.KindBoolean:
		return otherBoolean(field.Default)
	case len(field.Enum) > 0 && (field.Kind == playbook.KindLiteral || field.Kind == playbook.KindChoice):
		return otherChoice(field.Enum, field.Default)
	case field.Kind == playbook.KindDuration:
		return plainDuration
	}
	return ""
}

const plainDuration = "10m"

func otherBoolean(usual string) string {
	if usual == "true" {
		return "false"
	}
	return "true"
}

func otherChoice(words []string, usual string) string {
	for _, word := range words {
		if word != usual {
			return word
		}
	}
	return ""
}

// readNames parses the examples of names in expressions.
func readNames(text string) map[string]string {
	all := map[string]string{}
	for name, words := range readSamples(text) {
		all[name] = words[""].around
	}
	return all
}

// readFunctions parses the examples of functions: a call and its result. A function may have several; the first one
// is shown.
func readFunctions(text string) map[string]string {
	all := map[string]string{}
	for line := range strings.Lines(text) {
		name, _, _ := strings.Cut(line, "(")
		if all[name] == "" {
			all[name] = strings.TrimSpace(line)
		}
	}
	return all
}

// wholeYAML returns the word inside its YAML. It replaces the word's lines there, or else the hole.
func (s wordForm) wholeYAML() string {
	lines := strings.Split(s.around, "\n")
	at := slices.IndexFunc(lines, func(line string) bool { return strings.HasSuffix(line, hole) })
	if s.snippet == "" || at < 0 {
		return ""
	}
	column := len(lines[at]) - len(hole)
	word, _, _ := strings.Cut(s.snippet, ":")
	for i, line := range lines {
		if len(line) <= column || i == at || !strings.HasPrefix(line[column:], word+":") || strings.Trim(line[:column], " -") != "" {
			continue
		}
		end := i + 1
		for end < len(lines) && isBelow(lines[end], column) {
			end++
		}
		return strings.Join(slices.Concat(withoutHole(lines[:i]), s.snippetLines(line[:column]), withoutHole(lines[end:])), "\n")
	}
	return strings.Join(slices.Concat(lines[:at], s.snippetLines(lines[at][:column]), lines[at+1:]), "\n")
}

// isBelow reports whether a line belongs to the block that begins at a column.
func isBelow(line string, column int) bool {
	return len(line) > column && strings.TrimSpace(line[:column+1]) == "" && !strings.HasSuffix(line, hole)
}

// withoutHole removes the line with the hole.
func withoutHole(lines []string) []string {
	return slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return strings.TrimSpace(line) == hole })
}

// snippetLines returns the lines of the snippet; the first one continues the text before the hole.
func (s wordForm) snippetLines(before string) []string {
	lines := strings.Split(s.snippet, "\n")
	for i := range lines {
		lines[i] = before + lines[i]
		before = strings.Repeat(" ", len(before))
	}
	return lines
}

// usual are the keys of a playbook that examples omit.
var usual = []string{
	"apiVersion: reprise/v1", "kind: Playbook", "metadata: {name: example}",
	`workload: {api: "http://127.0.0.1:1", ids: [1, 2], day: "2026-01-31", region: north}`, "workflow: [{step: begin, vars: {a: 1}}]",
}

// ExampleTime is the time at which examples are checked, because warnings about schedules
// depend on it.
var ExampleTime = time.Date(2026, time.June, 15, 12, 0, 0, 0, time.UTC)

// WholePlaybook returns an example as a whole playbook: an example that begins with "- " is the list of steps, and
// omitted keys get their usual values.
func WholePlaybook(example string) string {
	if strings.HasPrefix(example, "- ") {
		example = "workflow:\n" + example
	}
	text := ""
	for _, line := range usual {
		key, _, _ := strings.Cut(line, ":")
		if !strings.Contains("\n"+example, fmt.Sprintf("\n%s:", key)) {
			text += line + "\n"
		}
	}
	return text + example + "\n"
}
