// Package statement converts an SQL statement with templates to text with bind parameters. Rendered text never
// becomes part of the statement: an unquoted {{ e }} is a parameter, and so is a literal that contains templates.
// The workflow renders the values, and the activity numbers the parameters of the same source again.
// docs/concepts/expressions.md#values-in-sql has the rules.
package statement

import (
	"errors"
	"slices"
	"strings"

	"reprise/interpreter/expression"
)

// Dialect is the SQL dialect of a statement.
type Dialect string

// The dialects.
const (
	Postgres Dialect = "postgres"
	SQLite   Dialect = "sqlite"
)

// Codes of problems of statements; those of expressions come from package expression.
const (
	CodeNotAValue      = "template-not-a-value"
	CodeNotOne         = "statement-not-one"
	CodeOwnPlaceholder = "own-placeholder"
	CodeReplaceDropped = "sql-replace-dropped"
	CodeSyntax         = "sql-syntax"
	CodeTooLarge       = "too-large"
)

// maxParams bounds the templates of one statement; SQLite accepts at most 32,766 parameters, and nobody writes a
// thousand by hand.
const maxParams = 1000

// Problem is something that the author must change or, if it is a warning, should know. Offsets are runes in the
// statement's source.
type Problem struct {
	expression.Problem
	Warning bool
}

// Statement is a parsed statement. It is immutable and safe for concurrent use.
type Statement struct {
	source  []rune
	dialect Dialect
	verb    string
	params  []*param
	drops   []extent // comments that contain templates
	to      int      // offset after its last token, without the semicolon
	plain   bool
}

// extent is a range of runes in the source.
type extent struct{ start, end int }

// param is one bind parameter.
type param struct {
	extent
	bare     bool
	cast     string // type of a typed literal such as INTERVAL '…'
	unit     string // field after an interval: INTERVAL '…' DAY
	template *expression.Template
	offsets  []int // rune offset in the template -> rune offset in the source
	// lead and trail are the white space around the single expression of a literal; a template would ignore it, a
	// literal keeps it.
	lead, trail string
	single      bool
	key         string // equal keys may share a number
}

// Parse parses a statement. It is usable if no problem is an error; warnings do not matter.
func Parse(source string, d Dialect) (*Statement, []Problem) {
	p := &parser{lexer: lexer{source: []rune(source), dialect: d}}
	p.lexTokens()
	p.mergeTyped()
	p.splitStatements()
	p.checkPlaces()
	p.checkPlaceholders()
	s := &Statement{source: p.source, dialect: d, drops: p.drops, verb: p.verb, plain: p.isPlain()}
	if len(p.tokens) > 0 {
		s.to = p.tokens[len(p.tokens)-1].end
	}
	for _, t := range p.tokens {
		if t.param != nil {
			s.params = append(s.params, t.param)
		}
	}
	slices.SortStableFunc(p.problems, func(a, b Problem) int { return a.Offset - b.Offset })
	return s, p.problems
}

// Verb returns the statement's first word in lower case, such as "select".
func (s *Statement) Verb() string { return s.verb }

// IsPlain reports whether a statement without errors only reads and writes rows and changes nothing in its session.
// It returns false if that is uncertain, and for dialects other than Postgres.
func (s *Statement) IsPlain() bool { return s.plain }

// Params returns the number of parameters.
func (s *Statement) Params() int { return len(s.params) }

// Templates returns the parameters' templates in source order. Their offsets are relative to the template; Refs and
// Render return offsets in the statement.
func (s *Statement) Templates() []*expression.Template {
	templates := make([]*expression.Template, len(s.params))
	for i, p := range s.params {
		templates[i] = p.template
	}
	return templates
}

// ParamOffset returns the offset in the statement of the i-th template, or of the literal around it.
func (s *Statement) ParamOffset(i int) int { return s.params[i].start }

// Refs returns the references in all templates, with offsets in the statement.
func (s *Statement) Refs() []expression.Ref {
	var refs []expression.Ref
	for _, p := range s.params {
		for _, ref := range p.template.Refs() {
			ref.Offset, ref.End = p.sourceOffset(ref.Offset), p.sourceOffset(ref.End)
			refs = append(refs, ref)
		}
	}
	return refs
}

// Render evaluates the parameters in source order. An unquoted template gives its value; a literal gives its text,
// or nil if it is a single expression whose value is nil. The error is an *expression.Error with its offset in the
// statement.
func (s *Statement) Render(scope expression.Scope, b *expression.Budget) ([]any, error) {
	values := make([]any, len(s.params))
	for i := range s.params {
		value, err := s.RenderParam(i, scope, b)
		if err != nil {
			return nil, err
		}
		values[i] = value
	}
	return values, nil
}

// RenderParam evaluates the i-th parameter: see Render.
func (s *Statement) RenderParam(i int, scope expression.Scope, b *expression.Budget) (any, error) {
	p := s.params[i]
	value, err := p.template.Render(scope, b)
	if err != nil {
		return nil, p.moveError(err)
	}
	return p.boundValue(value), nil
}

// Dialect returns the SQL dialect of the statement.
func (s *Statement) Dialect() Dialect { return s.dialect }

// boundValue converts the rendered value of the template to the value that is bound.
func (p *param) boundValue(rendered any) any {
	if p.bare {
		return rendered
	}
	if !p.single {
		return expression.Text(rendered)
	}
	if rendered == nil && p.lead == "" && p.trail == "" {
		return nil
	}
	return p.lead + expression.Text(rendered) + p.trail
}

// sourceOffset converts a rune offset in the template to one in the source.
func (p *param) sourceOffset(offset int) int {
	switch {
	case offset < 0:
		return p.start
	case offset >= len(p.offsets):
		return p.offsets[len(p.offsets)-1]
	}
	return p.offsets[offset]
}

// moveError converts the offset of an evaluation error to one in the statement.
func (p *param) moveError(err error) error {
	if e, ok := errors.AsType[*expression.Error](err); ok {
		return &expression.Error{Offset: p.sourceOffset(e.Offset), Message: e.Message}
	}
	return &expression.Error{Offset: p.start, Message: err.Error()}
}

// isSpace reports whether r is white space in SQL.
func isSpace(r rune) bool { return strings.ContainsRune(" \t\r\n\f\v", r) }
