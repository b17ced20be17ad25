package expression

import (
	"fmt"
	"strings"
	"unicode"
)

// ParseCondition parses a condition: one expression, with or without {{ }}. Text outside the braces is a problem,
// because text with an expression in it would always be true.
func ParseCondition(source string) (*Template, []Problem) {
	text := []rune(source)
	if strings.TrimFunc(source, unicode.IsSpace) == "" {
		return nil, []Problem{{
			Offset: 0, End: len(text), Code: codeSyntax,
			Message: "the condition is empty; write true if it should always match",
		}}
	}
	if problems := findBlocks(text); len(problems) > 0 {
		return nil, problems
	}
	spans := findSpans(text)
	if !hasBraces(text) {
		t, problems := bareCondition(source, text)
		if len(problems) == 0 || len(spans) == 0 {
			return t, problems
		}
	}
	t, problems := ParseTemplate(source)
	if beside, found := textBeside(text, spans); found {
		beside.Message = fmt.Sprintf("a condition must be a single expression; write {{ %s }}", withoutBraces(text, spans))
		return nil, sortProblems(append(problems, beside))
	}
	return t, problems
}

// hasBraces reports whether the text has {{ outside quotes; x == '{{' is an expression without braces. A quote that
// is never closed does not start a quoted text.
func hasBraces(text []rune) bool {
	for i := 0; i+1 < len(text); i++ {
		if isQuote(text[i]) {
			if end, closed := closeString(text, i); closed {
				i = end - 1
			}
			continue
		}
		if text[i] == '{' && text[i+1] == '{' {
			return true
		}
	}
	return false
}

func bareCondition(source string, text []rune) (*Template, []Problem) {
	program, problems := Compile(source)
	if len(problems) > 0 {
		return nil, problems
	}
	return &Template{
		source:   source,
		segments: []Segment{{End: len(text), Program: program}},
		single:   program,
	}, nil
}

// textBeside returns a problem with the position of the first thing beside the expression: text other than white
// space, or a second expression.
func textBeside(text []rune, spans []span) (Problem, bool) {
	at := 0
	for i, s := range spans {
		for ; at < s.Start; at++ {
			if !unicode.IsSpace(text[at]) {
				return Problem{Offset: at, End: s.Start, Code: codeConditionText}, true
			}
		}
		if i > 0 {
			return Problem{Offset: s.Start, End: s.End, Code: codeConditionText}, true
		}
		at = s.End
	}
	for ; at < len(text); at++ {
		if !unicode.IsSpace(text[at]) {
			return Problem{Offset: at, End: len(text), Code: codeConditionText}, true
		}
	}
	return Problem{}, false
}

// withoutBraces returns the condition as the single expression that the author probably meant, without the inner
// braces.
func withoutBraces(text []rune, spans []span) string {
	var out strings.Builder
	at := 0
	for _, s := range spans {
		out.WriteString(string(text[at:s.Start]))
		out.WriteString(strings.TrimFunc(string(text[s.inner:s.innerEnd]), unicode.IsSpace))
		at = s.End
	}
	out.WriteString(string(text[at:]))
	return strings.Join(strings.Fields(out.String()), " ")
}
