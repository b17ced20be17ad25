package expression

import (
	"cmp"
	"fmt"
	"strings"
	"unicode"

	"reprise/interpreter/source"
)

// Placeholder is the position of a {{ }} with its braces, in runes. One that is never closed ends at the end of the
// text.
type Placeholder struct{ Start, End int }

// maxSpan is the most runes that are searched for the end of an expression. Longer expressions are refused anyway.
// Without this bound, a text with many unclosed expressions would be read again for each of them.
const maxSpan = maxSource + 4

// FindSpan returns the {{ }} that opens at offset from. Quotes and braces inside the expression are taken into
// account.
func FindSpan(text []rune, from int) Placeholder {
	return findSpan(text, from).Placeholder
}

// span is a Placeholder with the extent of the expression in it.
type span struct {
	Placeholder

	inner, innerEnd int
	open            bool // never closed
	problem         Problem
}

func findSpans(text []rune) []span {
	var spans []span
	for at := 0; at+1 < len(text); {
		if text[at] != '{' || text[at+1] != '{' {
			at++
			continue
		}
		s := findSpan(text, at)
		spans = append(spans, s)
		at = s.End
	}
	return spans
}

// findSpan returns the span that starts at from. If brackets or quotes in the expression do not match, the span
// ends at the next }}, so that later expressions are still found.
func findSpan(text []rune, from int) span {
	s := span{Placeholder: Placeholder{Start: from}, inner: from + 2}
	end, ok := closeBraces(text[:min(len(text), from+maxSpan)], from+2)
	if !ok {
		end, ok = nextBraces(text, from+2)
	}
	if !ok {
		s.End, s.innerEnd, s.open = len(text), len(text), true
		s.problem = Problem{
			Offset: from, End: from + 2, Code: codeSyntax,
			Message: `"{{" is never closed; to write two braces as text use {{ '{{' }}`,
		}
		return s
	}
	s.End, s.innerEnd = end+2, end
	s.trimMarks(text)
	return s
}

// trimMarks reports Jinja's {{- and -}} as a problem and removes them from the expression.
func (s *span) trimMarks(text []rune) {
	if s.innerEnd > s.inner && text[s.inner] == '-' && !isNumberAt(text, s.inner+1) {
		s.problem = Problem{
			Offset: s.Start, End: s.inner + 1, Code: codeJinjaBlock,
			Message: `"{{-" does not strip white space here; write {{ without -, and {{ -x }} for minus x`,
		}
		s.inner++
	}
	if s.innerEnd > s.inner && text[s.innerEnd-1] == '-' {
		if s.problem.Message == "" {
			s.problem = Problem{
				Offset: s.innerEnd - 1, End: s.End, Code: codeJinjaBlock,
				Message: `"-}}" does not strip white space here; write }} without -`,
			}
		}
		s.innerEnd--
	}
}

func isNumberAt(text []rune, at int) bool {
	return at < len(text) && (isDigit(text[at]) || text[at] == '.' && at+1 < len(text) && isDigit(text[at+1]))
}

// closeBraces returns the offset of the }} that closes an expression: the first one outside quotes and outside
// inner { }.
func closeBraces(text []rune, from int) (int, bool) {
	depth := 0
	for i := from; i < len(text); i++ {
		switch r := text[i]; {
		case isQuote(r):
			end, closed := closeString(text, i)
			if !closed {
				return 0, false
			}
			i = end - 1
		case r == '{':
			depth++
		case r == '}' && depth > 0:
			depth--
		case r == '}' && i+1 < len(text) && text[i+1] == '}':
			return i, true
		}
	}
	return 0, false
}

func nextBraces(text []rune, from int) (int, bool) {
	for i := from; i+1 < len(text); i++ {
		if text[i] == '}' && text[i+1] == '}' {
			return i, true
		}
	}
	return 0, false
}

// findBlocks returns a problem for every {% … %} and {# … #} outside {{ }}.
func findBlocks(text []rune) []Problem {
	var problems []Problem
	skip := findSpans(text)
	unclosed := map[rune]bool{} // marks whose end does not come any more
	for at := 0; at+1 < len(text); at++ {
		if len(skip) > 0 && at >= skip[0].Start {
			at = skip[0].End - 1
			skip = skip[1:]
			continue
		}
		mark := text[at+1]
		if text[at] != '{' || mark != '%' && mark != '#' || unclosed[mark] {
			continue
		}
		end := closeMark(text, at+2, mark)
		if end < 0 {
			unclosed[mark] = true
			continue
		}
		hint := `comments are not part of a template; put them into the YAML as # comment`
		if mark == '%' {
			hint = blockHint(string(text[at+2 : end]))
		}
		problems = append(problems, Problem{Offset: at, End: end + 2, Code: codeJinjaBlock, Message: hint})
		at = end + 1
	}
	return problems
}

func closeMark(text []rune, from int, mark rune) int {
	for i := from; i+1 < len(text); i++ {
		if text[i] == mark && text[i+1] == '}' {
			return i
		}
	}
	return -1
}

// blockHint suggests an expression that does the work of a block.
func blockHint(block string) string {
	block = strings.TrimFunc(strings.Trim(block, "-+"), unicode.IsSpace)
	word, rest, _ := strings.Cut(block, " ")
	rest = strings.TrimSpace(rest)
	write := "write the value as an expression in {{ }}"
	switch word {
	case "if", "elif":
		write = fmt.Sprintf("write {{ a if %s else b }}", cmp.Or(source.CutText(rest, 40), "c"))
	case "else", "endif":
		write = "write {{ a if c else b }}"
	case "for", "endfor":
		write = `write {{ map(xs, #.name) | join("") }}, with # as the element`
	case "set", "endset":
		write = fmt.Sprintf("write {{ let %s; … }}, or set it in vars", cmp.Or(source.CutText(rest, 40), "x = 1"))
	case "raw", "endraw":
		write = "write two braces as {{ '{{' }}"
	}
	return fmt.Sprintf("{%% %s %%} is not accepted; %s", source.CutText(block, 40), write)
}
