package check

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"reprise/interpreter/lists"
)

// pythonMain describes the function main in the code of a call.
type pythonMain struct {
	at     int  // offset of main, in runes
	async  bool // async def
	params []pythonParam
	// open says that main accepts any keyword argument.
	open bool
	// returns says that the code has a word with which main may give a result or fail: see pythonEnd. Whether main itself has it is
	// not examined, so code without such a word certainly has no result.
	returns bool
}

type pythonParam struct {
	name     string
	optional bool
}

func (m *pythonMain) acceptsArg(name string) bool {
	return m.open || slices.ContainsFunc(m.params, func(p pythonParam) bool { return p.name == name })
}

func (m *pythonMain) paramNames() []string {
	return lists.Map(m.params, func(param pythonParam) string { return param.name })
}

var (
	pythonDef  = regexp.MustCompile(`(?m)^(async[ \t]+)?def[ \t]+(main)[ \t]*(?:\[[^\]]*\])?\(`)
	pythonBind = regexp.MustCompile(`(?m)^\s+(?:async[ \t]+)?def[ \t]+main\b|\bmain\s*(?::[^=\n]*)?=[^=]|\bimport\b[^\n]*\bmain\b|\bimport[ \t]+\*|\bglobals\(|\bmain\s*,|\bclass[ \t]+main\b`)
	pythonEnd  = regexp.MustCompile(`\b(return|yield|raise|lambda)\b`)
	pythonName = regexp.MustCompile(`^[\pL_][\pL\pN_]*$`)
)

// readMain finds the function main at the top of Python code; nil if there is none, or if it is ambiguous: bound
// twice, conditional, or decorated. The code is not run and need not compile.
func readMain(code string) *pythonMain {
	plain := blankPython(code)
	found := pythonDef.FindAllStringSubmatchIndex(plain, -1)
	if len(found) != 1 || pythonBind.MatchString(plain) || isDecorated(plain[:found[0][0]]) {
		return nil
	}
	at := found[0]
	main := &pythonMain{at: len([]rune(plain[:at[4]])), async: at[2] >= 0, returns: pythonEnd.MatchString(plain)}
	text, ok := insideBrackets(plain[at[1]:])
	if !ok {
		return nil
	}
	for _, param := range splitTop(text) {
		if !main.addParam(strings.TrimSpace(param)) {
			return nil
		}
	}
	return main
}

// isDecorated reports whether the code before a function ends with a decorator.
func isDecorated(before string) bool {
	lines := strings.Split(before, "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		if line := lines[i]; strings.TrimSpace(line) != "" && !strings.ContainsRune(" \t)]}#", rune(line[0])) {
			return line[0] == '@'
		}
	}
	return false
}

// addParam parses one parameter; it returns false if it cannot.
func (m *pythonMain) addParam(text string) bool {
	switch {
	case text == "", text == "*":
		return true
	case text == "/", strings.Contains(text, "lambda"):
		return false // the tool reports the problem at run time
	case strings.HasPrefix(text, "**"):
		m.open = true
		return true
	case strings.HasPrefix(text, "*"):
		return true
	}
	name, _, optional := strings.Cut(text, "=")
	name, _, _ = strings.Cut(name, ":")
	name = strings.TrimSpace(name)
	m.params = append(m.params, pythonParam{name: name, optional: optional})
	return pythonName.MatchString(name)
}

// insideBrackets returns the text up to the bracket that closes an already open one.
func insideBrackets(text string) (string, bool) {
	depth := 1
	for i, c := range text {
		switch c {
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			depth--
		}
		if depth == 0 {
			return text[:i], true
		}
	}
	return "", false
}

// splitTop splits a text at the commas outside of brackets.
func splitTop(text string) []string {
	var parts []string
	depth, from := 0, 0
	for i, c := range text {
		switch c {
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			depth--
		case ',':
			if depth == 0 {
				parts = append(parts, text[from:i])
				from = i + 1
			}
		}
	}
	return append(parts, text[from:])
}

// blankPython replaces the contents of strings and comments by blanks, keeping quotes, so that offsets do not
// change.
func blankPython(code string) string {
	out := []rune(code)
	eachPythonText(out, func(from, to int, _ string) {
		for i := from; i < to; i++ {
			if out[i] != '\n' {
				out[i] = ' '
			}
		}
	})
	return string(out)
}

// eachPythonText calls visit for the contents of each string and comment. kind is "#" for comments, otherwise the
// letters before the quotes, in lower case.
func eachPythonText(code []rune, visit func(from, to int, kind string)) {
	for i := 0; i < len(code); i++ {
		switch c := code[i]; c {
		case '#':
			end := i + 1
			for end < len(code) && code[end] != '\n' {
				end++
			}
			visit(i+1, end, "#")
			i = end
		case '"', '\'':
			width := 1
			if i+2 < len(code) && code[i+1] == c && code[i+2] == c {
				width = 3
			}
			kind := stringPrefix(code, i)
			end := stringEnd(code, i+width, c, width)
			visit(i+width, end, kind)
			i = end + width - 1
		}
	}
}

// stringEnd returns the offset of the closing quotes of a string.
func stringEnd(code []rune, i int, quote rune, width int) int {
	for ; i < len(code); i++ {
		switch {
		case code[i] == '\\':
			i++
		case width == 1 && code[i] == '\n':
			return i // it does not compile
		case code[i] == quote && (width == 1 || i+2 < len(code) && code[i+1] == quote && code[i+2] == quote):
			return i
		}
	}
	return len(code)
}

// stringPrefix returns the letters directly before a quote, such as f or rb.
func stringPrefix(code []rune, quote int) string {
	from := quote
	for from > 0 && quote-from < 3 && strings.ContainsRune("rRbBuUfFtT", code[from-1]) {
		from--
	}
	return strings.ToLower(string(code[from:quote]))
}

var templateInCode = regexp.MustCompile(`\{\{[-\s]*[\pL_][^{}\n]*\}\}`)

// codeTemplate is a {{ }} in code that looks like a template.
type codeTemplate struct {
	at   int    // offset in runes
	text string // including its braces
	// quoted says that it is in a string, where it is just text.
	quoted bool
}

// templatesIn returns apparent templates in code. In an f-string or a format string, {{ is a brace.
func templatesIn(code string) []codeTemplate {
	var found []codeTemplate
	runes := []rune(code)
	look := func(text string, at int, quoted bool) {
		before := 0
		for _, match := range templateInCode.FindAllStringIndex(text, -1) {
			at, before = at+utf8.RuneCountInString(text[before:match[0]]), match[0]
			found = append(found, codeTemplate{at: at, text: text[match[0]:match[1]], quoted: quoted})
		}
	}
	look(blankPython(code), 0, false)
	eachPythonText(runes, func(from, to int, kind string) {
		if kind != "#" && !strings.ContainsAny(kind, "ft") {
			look(string(runes[from:min(to, len(runes))]), from, true)
		}
	})
	for i := range found { // the blanked text lacks the contents of strings in it
		if end := found[i].at + len([]rune(found[i].text)); end <= len(runes) {
			found[i].text = string(runes[found[i].at:end])
		}
	}
	slices.SortFunc(found, func(a, b codeTemplate) int { return a.at - b.at })
	return found
}
