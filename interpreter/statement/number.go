package statement

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
)

// NumberedStatement is a statement with numbered parameters, as sent to a server.
type NumberedStatement struct {
	Text string
	// Order has at n-1 the index of the value for parameter n.
	Order []int
	marks []mark
}

// mark maps a place in the text to its origin in the source.
type mark struct {
	out, source int
	param       bool
}

// NumberParams numbers the parameters. share gives equal templates the same number: otherwise f({{ n }}) … GROUP BY f({{ n
// }}) are different expressions for PostgreSQL. cast gives unquoted values the type that an equal literal would
// have. values come from Render.
func (s *Statement) NumberParams(values []any, share, cast bool) NumberedStatement {
	w := &writer{s: s}
	numbers := map[string]int{}
	at := 0
	for i, p := range s.params {
		w.copySource(at, p.start)
		number, known := numbers[p.key]
		if !share || !known {
			w.out.Order = append(w.out.Order, i)
			number = len(w.out.Order)
			numbers[p.key] = number
		}
		w.writeParam(p, number, w.castSuffix(p, values, i, cast))
		at = p.end
	}
	w.copySource(at, s.to)
	w.out.Text = string(w.text)
	return w.out
}

// SourceOffset returns the offset in the source of a rune of the text, from 0. inParam says that it belongs to a
// parameter.
func (n NumberedStatement) SourceOffset(at int) (offset int, inParam bool) {
	for i := len(n.marks) - 1; i >= 0; i-- {
		m := n.marks[i]
		if m.out > at {
			continue
		}
		if m.param {
			return m.source, true
		}
		return m.source + at - m.out, false
	}
	return 0, false
}

// ParamSource returns the author's text of the parameter at a rune offset.
func (s *Statement) ParamSource(offset int) string {
	for _, p := range s.params {
		if p.start <= offset && offset < p.end {
			return string(s.source[p.start:p.end])
		}
	}
	return ""
}

type writer struct {
	s    *Statement
	text []rune
	out  NumberedStatement
}

// copySource writes a range of the source, without comments that contain templates.
func (w *writer) copySource(from, to int) {
	for _, drop := range w.s.drops {
		if drop.start < from || drop.start >= to {
			continue
		}
		w.copyPlain(from, drop.start)
		w.text = append(w.text, ' ')
		from = drop.end
	}
	w.copyPlain(from, to)
}

func (w *writer) copyPlain(from, to int) {
	if from >= to {
		return
	}
	w.separate(w.s.source[from])
	w.out.marks = append(w.out.marks, mark{out: len(w.text), source: from})
	w.text = append(w.text, w.s.source[from:to]...)
}

// separate inserts a space if a parameter would otherwise merge with a name or number.
func (w *writer) separate(next rune) {
	if len(w.text) == 0 {
		return
	}
	last := w.text[len(w.text)-1]
	if (isNamePart(last) || last == '?') && (isNamePart(next) || next == '?') {
		w.text = append(w.text, ' ')
	}
}

func (w *writer) writeParam(p *param, number int, suffix string) {
	sign := "$"
	if w.s.dialect == SQLite {
		sign = "?"
	}
	text := sign + strconv.Itoa(number)
	switch {
	case p.unit != "":
		// After a parameter, the field would only truncate: 3 would be 3 seconds.
		text = "CAST(CAST(" + text + " AS text) || ' " + p.unit + "' AS " + p.cast + ")"
	case p.cast != "":
		text = "CAST(" + text + " AS " + p.cast + ")"
	}
	text += suffix
	w.separate([]rune(text)[0])
	w.out.marks = append(w.out.marks, mark{out: len(w.text), source: p.start, param: true})
	w.text = append(w.text, []rune(text)...)
}

// castSuffix returns the cast of an unquoted value.
func (w *writer) castSuffix(p *param, values []any, i int, cast bool) string {
	if !cast || !p.bare || w.s.dialect != Postgres || i >= len(values) {
		return ""
	}
	return literalCast(values[i])
}

// literalCast returns a cast to the type that PostgreSQL gives to a literal with the value; "" for text, nil, lists
// and maps, whose literals have no type.
func literalCast(value any) string {
	switch v := value.(type) {
	case bool:
		return "::bool"
	case int:
		if v >= math.MinInt32 && v <= math.MaxInt32 {
			return "::int4"
		}
		return "::int8"
	case float64:
		return "::numeric"
	case json.Number:
		if strings.ContainsAny(v.String(), "nN") { // NaN
			return ""
		}
		return "::numeric"
	}
	return ""
}
