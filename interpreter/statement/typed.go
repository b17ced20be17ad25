package statement

import "slices"

// mergeTyped merges INTERVAL '…' and the like into one token: a parameter cannot follow a type, but CAST($1 AS
// interval) is equivalent.
func (p *parser) mergeTyped() {
	if p.dialect != Postgres {
		return
	}
	for i := 0; i < len(p.tokens); i++ {
		t := p.tokens[i]
		if t.param == nil || t.param.bare {
			continue
		}
		from := p.typeBefore(i)
		if from == i {
			continue
		}
		to, unit := i+1, ""
		cast := string(p.source[p.tokens[from].start:p.tokens[i-1].end])
		if p.isAny(from, "interval") {
			to = p.fieldsBehind(to)
			if to > i+1 {
				unit = p.tokens[i+1].text
				cast += " " + string(p.source[p.tokens[i+1].start:p.tokens[to-1].end])
			}
			if p.isAny(i+2, "to") {
				p.addProblem(t.extent, CodeNotAValue, notAValue("part of an interval with two fields", "write the units into the literal, such as INTERVAL '{{ d }} days {{ h }} hours'"))
			}
		}
		merged := *t.param
		merged.cast, merged.unit = cast, unit
		merged.extent = extent{p.tokens[from].start, p.tokens[to-1].end}
		merged.key += " as " + cast
		p.tokens = slices.Replace(p.tokens, from, to, token{
			extent: merged.extent, kind: paramToken, text: t.text, param: &merged,
		})
		i = from
	}
}

// typeBefore returns the index at which a type directly before token i begins, i if there is none.
func (p *parser) typeBefore(i int) int {
	if p.isAny(i-1, "zone") && p.isAny(i-2, "time") && p.isAny(i-3, "with", "without") {
		at := p.beforeSize(i - 3)
		if p.isAny(at-1, "timestamp", "time") {
			return at - 1
		}
		return i
	}
	if p.isAny(i-1, "precision") && p.isAny(i-2, "double") {
		return i - 2
	}
	at := p.beforeSize(i)
	if at > 0 && p.tokens[at-1].kind == wordToken && types[p.tokens[at-1].text] && !p.isAny(at-2, ".") {
		return at - 1
	}
	return i
}

// beforeSize skips (3) or (10, 2) before token i, and returns the index before it.
func (p *parser) beforeSize(i int) int {
	if !p.isAny(i-1, ")") {
		return i
	}
	at := i - 2
	for at >= 0 && (p.tokens[at].kind == numberToken || p.isAny(at, ",")) {
		at--
	}
	if at > 0 && p.isAny(at, "(") && at < i-2 {
		return at
	}
	return i
}

// fieldsBehind skips DAY TO SECOND(3) after an interval, and returns the index after it.
func (p *parser) fieldsBehind(i int) int {
	field := func(i int) bool {
		return i < len(p.tokens) && p.tokens[i].kind == wordToken && intervalFields[p.tokens[i].text]
	}
	if !field(i) {
		return i
	}
	i++
	if p.isAny(i, "to") && field(i+1) {
		i += 2
	}
	if p.isAny(i, "(") && i+2 < len(p.tokens) && p.tokens[i+1].kind == numberToken && p.isAny(i+2, ")") {
		i += 3
	}
	return i
}
