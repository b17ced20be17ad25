package expression

import (
	"fmt"
	"strings"
	"unicode"
)

// Nested finds templates that stand in the strings of expressions, where they
// are text: in Jinja's place somebody meant their values. A run that is under
// way goes on with them, so they are no problems of parsing. Offsets are those
// of the strings in the template.
func (t *Template) Nested() []Problem {
	var problems []Problem
	for _, s := range t.segments {
		if s.Program == nil {
			continue
		}
		problems = append(problems, shift(nestedIn([]rune(s.Program.source)), s.inner)...)
	}
	return problems
}

func nestedIn(source []rune) []Problem {
	var problems []Problem
	for at := 0; at < len(source); at++ {
		if !isQuote(source[at]) {
			continue
		}
		end, closed := closeString(source, at)
		if !closed {
			break
		}
		if instead, found := unnested(source[at+1:end-1], source[at]); found {
			problems = append(problems, Problem{
				Offset: at, End: end, Code: codeTemplateInString,
				Message: fmt.Sprintf("text in quotes is no template, so its braces are never filled in; write {{ %s }}",
					oneLine(string(source[:at])+operand(instead, source, at, end)+string(source[end:]))),
			})
		}
		at = end - 1
	}
	return problems
}

// unnested writes the content of a string with templates in it as the
// expression that is probably meant, false if there are none. What has been
// text stays text, so that it compares and joins as it did.
func unnested(body []rune, quote rune) (string, bool) {
	var parts []string
	at := 0
	text := func(to int) {
		if at < to {
			parts = append(parts, string(quote)+string(body[at:to])+string(quote))
		}
	}
	for _, s := range findSpans(body) {
		inner := strings.TrimFunc(string(body[s.inner:s.innerEnd]), unicode.IsSpace)
		if s.open || inner == "" {
			continue
		}
		text(s.Start)
		parts = append(parts, inner)
		at = s.End
	}
	if at == 0 {
		return "", false
	}
	text(len(body))
	if len(parts) == 1 {
		return "string(" + parts[0] + ")", true
	}
	for i, part := range parts {
		if strings.ContainsAny(part, " ") && !isQuote(rune(part[0])) {
			parts[i] = "(" + part + ")"
		}
	}
	return strings.Join(parts, " ~ "), true
}

// operand puts an expression of several parts in brackets where it does not
// stand alone.
func operand(text string, source []rune, from, to int) string {
	alone := strings.TrimSpace(string(source[:from])) == "" && strings.TrimSpace(string(source[to:])) == ""
	if alone || !strings.Contains(text, " ~ ") {
		return text
	}
	return "(" + text + ")"
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
