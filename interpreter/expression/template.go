package expression

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// Template is a text with expressions in {{ }}. It is immutable and safe for concurrent use.
type Template struct {
	source   string
	segments []Segment
	single   *Program // the only expression, if there is only white space around it
	base     int      // runes before the source of single
	rows     *RowMap  // nil if the template is not a RowMap
}

// Segment is a part of a template: text, or an expression with its braces. Start and End are offsets in runes in
// the source of the template.
type Segment struct {
	Start, End int
	Text       string   // the rendered text, if Program is nil
	Program    *Program // nil for text
	inner      int      // offset of the source of Program
}

// InnerOffset returns the offset of the source of Program, counted like Start.
func (s Segment) InnerOffset() int { return s.inner }

// ParseTemplate parses a text with expressions. If there are problems it returns those of all expressions, and no
// template.
func ParseTemplate(source string) (*Template, []Problem) {
	text := []rune(source)
	t := &Template{source: source}
	problems := findBlocks(text)
	at := 0
	for _, s := range findSpans(text) {
		t.addText(text, at, s.Start)
		problems = append(problems, t.addSpan(text, s)...)
		at = s.End
	}
	t.addText(text, at, len(text))
	if len(problems) > 0 {
		return nil, sortProblems(problems)
	}
	t.findSingle()
	t.rows = t.rowMap()
	return t, nil
}

func (t *Template) addText(text []rune, from, to int) {
	if from < to {
		t.segments = append(t.segments, Segment{Start: from, End: to, Text: string(text[from:to])})
	}
}

// addSpan compiles the expression of a span.
func (t *Template) addSpan(text []rune, s span) []Problem {
	var problems []Problem
	if s.problem.Message != "" {
		problems = append(problems, s.problem)
	}
	if s.open { // the missing braces explain everything
		return problems
	}
	program, found := Compile(string(text[s.inner:s.innerEnd]))
	t.segments = append(t.segments, Segment{Start: s.Start, End: s.End, Program: program, inner: s.inner})
	return append(problems, shiftProblems(found, s.inner)...)
}

func (t *Template) findSingle() {
	for _, s := range t.segments {
		switch {
		case s.Program == nil && strings.TrimFunc(s.Text, unicode.IsSpace) == "":
		case s.Program == nil || t.single != nil:
			t.single = nil
			return
		default:
			t.single, t.base = s.Program, s.inner
		}
	}
}

// Eval evaluates the segment's expression. The error is an *Error with an offset in the source of the template.
func (s Segment) Eval(scope Scope, b *Budget) (any, error) {
	return s.Program.evalAt(s.inner, scope, b)
}

// evalAt evaluates a program that begins at an offset of its template.
func (p *Program) evalAt(offset int, scope Scope, b *Budget) (any, error) {
	noted := b.NoteCount()
	v, err := p.Eval(scope, b)
	b.moveNotes(noted, offset)
	return v, moveError(err, offset)
}

// Render evaluates the template. A template that is a single expression, apart from white space, returns the value
// with its type; any other returns text. The error is an *Error with an offset in the source of the template.
func (t *Template) Render(scope Scope, b *Budget) (any, error) {
	if t.single != nil {
		return t.single.evalAt(t.base, scope, b)
	}
	if len(t.segments) == 0 {
		return "", nil
	}
	if len(t.segments) == 1 {
		return t.segments[0].Text, nil
	}
	text, _, err := t.evalText(scope, b)
	if err != nil {
		return nil, err
	}
	return text, nil
}

// evalText evaluates a template of several segments. It returns the text and the value of each segment.
func (t *Template) evalText(scope Scope, b *Budget) (text string, parts []any, err error) {
	parts = make([]any, len(t.segments))
	for i, s := range t.segments {
		if s.Program == nil {
			parts[i] = s.Text
			continue
		}
		v, err := s.Eval(scope, b)
		if err != nil {
			return "", nil, err
		}
		parts[i] = v
	}
	joined, err := opText(b, parts)
	if err != nil {
		return "", nil, &Error{Message: err.Error()}
	}
	return Text(joined), parts, nil
}

// Range is a range of bytes in a text. It is stored in workflow history.
type Range struct {
	From int `json:"from"`
	To   int `json:"to"`
}

// RenderPlaced is Render, and also returns the ranges of the text that come from data. Constant expressions, such
// as {{ '{{' }}, come from the author.
func (t *Template) RenderPlaced(scope Scope, b *Budget) (value any, data []Range, err error) {
	if len(t.segments) < 2 || t.single != nil {
		value, err = t.Render(scope, b)
		if err == nil && t.single != nil && t.single.literal == nil {
			data = []Range{{To: len(Text(value))}}
		}
		return value, data, err
	}
	text, parts, err := t.evalText(scope, b)
	if err != nil {
		return nil, nil, err
	}
	at := 0
	for i, s := range t.segments {
		length := len(Text(parts[i]))
		if s.Program != nil && s.Program.literal == nil {
			data = append(data, Range{From: at, To: at + length})
		}
		at += length
	}
	return text, data, nil
}

// moveError shifts the offset of an evaluation error by n runes.
func moveError(err error, n int) error {
	if e, ok := errors.AsType[*Error](err); ok {
		return &Error{Offset: e.Offset + n, Message: e.Message, TooMuch: e.TooMuch}
	}
	return err
}

// LiteralText returns the text of a template whose value does not depend on data: it has no expressions, or only
// literal texts such as {{ '{{' }}.
func (t *Template) LiteralText() (string, bool) {
	if t.single != nil && t.single.literal != nil {
		return *t.single.literal, true
	}
	var out strings.Builder
	for _, s := range t.segments {
		switch {
		case s.Program == nil:
			out.WriteString(s.Text)
		case s.Program.literal != nil:
			out.WriteString(*s.Program.literal)
		default:
			return "", false
		}
	}
	return out.String(), true
}

// SingleProgram returns the program of a template that is a single expression, apart from white space.
func (t *Template) SingleProgram() (*Program, bool) { return t.single, t.single != nil }

// Segments returns the parts in order.
func (t *Template) Segments() []Segment { return slices.Clone(t.segments) }

// Refs returns the references of all expressions, with offsets in the template.
func (t *Template) Refs() []Ref {
	var refs []Ref
	for _, s := range t.segments {
		if s.Program == nil {
			continue
		}
		for _, ref := range s.Program.refs {
			ref.Offset += s.inner
			ref.End += s.inner
			ref.Bare = ref.Bare && t.single != nil
			refs = append(refs, ref)
		}
	}
	return refs
}

// UsesNames reports whether an expression uses one of these names from its scope.
func (t *Template) UsesNames(roots ...string) bool {
	named := func(root string) bool { return slices.Contains(roots, root) }
	return slices.ContainsFunc(t.segments, func(s Segment) bool { return s.Program != nil && slices.ContainsFunc(s.Program.roots, named) })
}

// NestedProblems reports templates inside string literals of expressions. They are plain text there, but authors
// who know Jinja expect them to be evaluated. Parsing does not report them, because open runs with such templates
// have to continue. Offsets are those of the strings in the template.
func (t *Template) NestedProblems() []Problem {
	var problems []Problem
	for _, s := range t.segments {
		if s.Program == nil {
			continue
		}
		problems = append(problems, shiftProblems(nestedProblems([]rune(s.Program.source)), s.inner)...)
	}
	return problems
}

func nestedProblems(source []rune) []Problem {
	var problems []Problem
	for at := 0; at < len(source); at++ {
		if !isQuote(source[at]) {
			continue
		}
		end, closed := closeString(source, at)
		if !closed {
			break
		}
		if instead, found := unnestTemplates(source[at+1:end-1], source[at]); found {
			problems = append(problems, Problem{
				Offset: at, End: end, Code: codeTemplateInString,
				Message: fmt.Sprintf("braces inside a quoted text are not a template and stay as they are; write {{ %s }}",
					strings.Join(strings.Fields(string(source[:at])+operandText(instead, source, at, end)+string(source[end:])), " ")),
			})
		}
		at = end - 1
	}
	return problems
}

// unnestTemplates rewrites the content of a string with templates in it as the expression that is probably meant.
// It returns false if there are no templates. Parts that were text stay text, so that they compare and join as
// before.
func unnestTemplates(body []rune, quote rune) (string, bool) {
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

// operandText puts an expression of several parts in brackets if it is an operand of a larger one.
func operandText(text string, source []rune, from, to int) string {
	alone := strings.TrimSpace(string(source[:from])) == "" && strings.TrimSpace(string(source[to:])) == ""
	if alone || !strings.Contains(text, " ~ ") {
		return text
	}
	return "(" + text + ")"
}
