package oracle_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
)

// rowsOf has steps say which rows a page contributes, in the place of the paths of their policies. It is drawn apart.
func (g *generator) rowsOf(book *graph) {
	for _, s := range book.steps {
		if s.below != nil {
			g.rowsOf(s.below)
		}
		st := g.round.styles[s.name]
		if s.tool != "http" || s.oldForm != "" || !g.one(3) || s.collectsBy("merge") {
			continue
		}
		if g.one(2) {
			s.where = pick[expr](g, ends{of: name("row"), with: pick(g, "-0", "-1")}, not{of: ends{of: name("row"), with: "-0"}},
				binary{"and", defined{of: name("row")}, binary{"<", name("response.page"), literal{1 + g.IntN(3)}}})
		}
		// What lacks the path fails the call, which the language does not say of an answer that is no page.
		if st.apart || s.where != nil && g.one(3) {
			continue
		}
		s.rows = pick(g, "items", "items[*]", "items.*")
		if st.pending == 0 && g.one(2) {
			s.rows = pick(g, "info.rows", "info.rows[*]", "info.rows.*")
		}
		for _, p := range s.retry {
			if p.collect != nil {
				p.collect.path = ""
			}
		}
	}
}

// collectsOf has steps collect, in the place of all or some of their policies. Pages of rows that some policies write or collect,
// and others lose, are refused: the step collects them.
func (g *generator) collectsOf(book *graph) {
	for _, s := range book.steps {
		if s.below != nil {
			g.collectsOf(s.below)
		}
		if s.tool != "http" || s.oldForm != "" || !slices.ContainsFunc(s.retry, func(p *policy) bool { return p.next != nil }) {
			continue
		}
		if g.one(3) {
			s.collect = &collect{strategy: pick(g, "", "append", "replace"), path: pick(g, "items", "items", "n", "")}
			if first := s.policyCollect(); first != nil {
				own := *first
				s.collect = &own
			}
			s.collect.optional = s.collect.optional || g.round.styles[s.name].apart
			if s.rows != "" {
				s.collect.path = ""
			}
			for _, p := range s.retry {
				if p.collect != nil && !g.one(3) {
					p.collect = nil
				}
			}
		}
		lost := func(p *policy) bool {
			return p.next != nil && p.page == nil && s.collectOf(p) == nil
		}
		if s.collect == nil && (s.rows != "" || s.where != nil) && slices.ContainsFunc(s.retry, lost) {
			s.collect = &collect{optional: g.round.styles[s.name].apart}
		}
	}
}

// policyCollect is the first collect of a policy, nil for none.
func (s *step) policyCollect() *collect {
	for _, p := range s.retry {
		if p.collect != nil {
			return p.collect
		}
	}
	return nil
}

// collectsBy reports whether a policy of the step collects by a strategy.
func (s *step) collectsBy(strategy string) bool {
	return slices.ContainsFunc(s.retry, func(p *policy) bool { return p.collect != nil && p.collect.strategy == strategy })
}

func (g *generator) contributions() {
	g.Rand = rand.New(rand.NewPCG(g.round.seed, 11))
	g.rowsOf(g.round.book)
	g.Rand = rand.New(rand.NewPCG(g.round.seed, 12))
	g.collectsOf(g.round.book)
}

// ends asks whether something is a text with an end.
type ends struct {
	of   expr
	with string
}

func (e ends) text() string {
	return "(" + e.of.text() + " is string and " + e.of.text() + " endsWith '" + e.with + "')"
}

func (e ends) eval(s scope) (any, error) {
	value, err := e.of.eval(s)
	text, _ := value.(string)
	return strings.HasSuffix(text, e.with), err
}

// contributes is what a page contributes: what its collect takes or its rows, of which where keeps some.
func (c *predictedCall) contributes(by *collect, data any) (part any, found bool, failed *failure) {
	path, optional := "", false
	if by != nil {
		path, optional = by.path, by.optional
	}
	switch {
	case c.s.rows != "":
		rows, has := rowsAt(data, c.s.rows)
		if !has && !optional {
			return nil, false, c.expression()
		}
		if !has && len(rows) == 0 {
			return nil, false, nil
		}
		part = rows
	default:
		if part, found = at(data, path); !found {
			return nil, false, nil
		}
	}
	if c.s.where == nil || part == nil {
		return part, true, nil
	}
	rows, isList := part.([]any)
	if !isList {
		rows = []any{part}
	}
	matched := []any{}
	for _, row := range rows {
		matches, err := c.s.where.eval(c.names(outcome{data: data}).with(scope{"row": row}))
		if err != nil {
			return nil, false, c.expression()
		}
		if truthy(matches) {
			matched = append(matched, row)
		}
	}
	if len(matched) == len(rows) {
		return part, true, nil
	}
	return matched, true, nil
}

// rowsAt are the rows at a path whose end may stand for all elements; false where there is no such path.
func rowsAt(data any, path string) ([]any, bool) {
	base := strings.TrimSuffix(strings.TrimSuffix(path, "[*]"), ".*")
	value, has := at(data, base)
	if !has {
		return []any{}, false
	}
	of, isMap := value.(map[string]any)
	switch {
	case value == nil:
		return []any{}, true
	case base != path && isMap:
		rows := []any{}
		for _, key := range slices.Sorted(maps.Keys(of)) {
			rows = append(rows, joined(of[key])...)
		}
		return rows, true
	}
	rows := []any{}
	if list, isList := value.([]any); isList && base != path {
		for _, each := range list {
			rows = append(rows, joined(each)...)
		}
		return rows, true
	}
	return append(rows, joined(value)...), true
}

// joined are the rows of one value: those of a list, else the value.
func joined(value any) []any {
	if list, isList := value.([]any); isList {
		return list
	}
	return []any{value}
}
