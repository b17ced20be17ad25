package oracle_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// list is a list of policies that the playbook gives a name.
type list struct{ name string }

// moreWords gives a round what wide ones do not have: answers that say they worked and did
// not, lists of policies with a name, calls of the workbook and bodies that are merged.
// They are drawn apart too.
func (g *generator) moreWords() {
	g.Rand = rand.New(rand.NewPCG(g.round.seed, 3))
	g.refuses(g.round.book)
	g.merges(g.round.book)
	g.lends(g.round.book)
	for _, s := range g.round.book.steps {
		if s.tool == "http" && g.one(4) {
			s.entry, s.decoy = true, g.one(3)
		}
	}
}

// refuses has the API answer with codes, and policies take such answers for failures.
func (g *generator) refuses(book *graph) {
	for _, s := range book.steps {
		if s.below != nil {
			g.depth++
			g.refuses(s.below)
			g.depth--
		}
		if s.tool != "http" || !g.one(2) {
			continue
		}
		st := g.round.styles[s.name]
		st.coded = 1 + g.IntN(3)
		g.round.styles[s.name] = st
		for range 1 + g.IntN(2) {
			s.retry = slices.Insert(s.retry, g.IntN(len(s.retry)+1), g.refusing())
		}
		if g.one(2) {
			p := &policy{when: binary{"==", name("error.kind"), literal{"response"}}, jitter: "none", maxAttempts: 1 + g.IntN(4)}
			if g.one(3) {
				p.when = binary{"==", name("error.class"), literal{pick(g, "retryable", "rate_limited")}}
			}
			g.waits(p)
			p.onExhausted = pick(g, "", "", "succeed", "continue")
			s.retry = slices.Insert(s.retry, g.IntN(len(s.retry)+1), p)
		}
		for _, p := range s.retry {
			both := p.fail == nil && p.jitter != "" && !p.restart && !p.ignore && p.result == nil
			if _, every := p.when.(defined); both && every && g.one(4) {
				p.when, p.fail, p.class = binary{"or", p.when, defined{of: name("response.code")}}, mixed{"both"}, "retryable"
			}
		}
	}
}

// refusing is a policy that takes an answer for a failure.
func (g *generator) refusing() *policy {
	p := &policy{fail: pick[any](g, mixed{"code ", name("response.code")}, name("response.code"), mixed{"refused"})}
	p.when = pick[expr](g,
		defined{of: name("response.code")},
		binary{"==", name("response.code"), literal{pick(g, "LIMIT", "BUSY")}},
		binary{"and", defined{of: name("response.code")}, binary{"<", name("_retry.count"), literal{2 + g.IntN(3)}}})
	p.class = pick(g, "", "final", "retryable", "retryable", "rate_limited")
	p.retryAfter = pick[any](g, nil, nil, name("response.wait"), name("response.nowhere"), 2, 1500*time.Millisecond)
	return p
}

// requestedWaits has policies read out of the outcome how long to wait. After failures that becomes nothing, as such a
// wait uses up no attempt.
func (g *generator) requestedWaits(book *graph) {
	for _, s := range book.steps {
		if s.below != nil {
			g.requestedWaits(s.below)
		}
		for _, p := range s.retry {
			if s.oldForm != "" || !p.repeats() || p.fail != nil || !g.one(4) {
				continue
			}
			p.retryAfter = pick[any](g, binary{"-", literal{1 + g.IntN(5)}, name("_retry.count")}, name("this.nowhere"), 0)
		}
	}
}

// merges has pages change a part of a body.
func (g *generator) merges(book *graph) {
	for _, s := range book.steps {
		if s.below != nil {
			g.merges(s.below)
		}
		body, ok := s.body.(fields)
		if !ok {
			continue
		}
		for i, p := range slices.DeleteFunc(slices.Clone(s.retry), func(p *policy) bool { return p.next == nil || p.next.body == nil }) {
			if i == 0 {
				s.body = append(slices.Clone(body), field{"opt", fields{{"a", 1}, {"b", fields{{"c", 2}, {"l", []any{1, 2}}}}, {"t", "x"}}})
			}
			change := fields{p.next.body.(fields)[0]}
			switch g.IntN(5) {
			case 0:
				change = append(change, field{"opt", fields{{"a", nil}, {"b", fields{{"d", name("response.page")}}}}})
			case 1:
				change = append(change, field{"opt", fields{{"b", fields{{"c", nil}, {"l", []any{name("response.n")}}}}, {"t", fields{{"y", 1}}}}})
			case 2:
				change = append(change, field{"opt", name("response.info")})
			case 3:
				change = append(change, field{"opt", name("response.nowhere")}, field{"from", nil})
			}
			p.next.body = change
		}
	}
}

// lends gives some policies that follow each other a name, and has other steps use them.
func (g *generator) lends(book *graph) {
	var shared []*policy
	for _, s := range book.steps {
		if s.below != nil {
			g.lends(s.below)
		}
		if len(s.retry) > 0 && g.one(3) {
			from := g.IntN(len(s.retry))
			to := from + 1 + g.IntN(len(s.retry)-from)
			named := &list{name: fmt.Sprintf("list_%s", s.name)}
			shared = nil
			for _, p := range s.retry[from:to] {
				p.list = named
				if s.loop == nil && p.sink == nil && p.page == nil && p.next == nil && p.collect == nil && !p.restart {
					shared = append(shared, p)
				}
			}
			if len(shared) != to-from {
				shared = nil
			}
			continue
		}
		if s.tool == "http" && shared != nil && s.loop == nil && g.one(2) {
			at := g.IntN(len(s.retry) + 1)
			for i, p := range shared {
				own := *p
				s.retry = slices.Insert(s.retry, at+i, &own)
			}
		}
	}
}

// named collects the lists of a playbook and marks the policies that are written as uses
// of them: a list that is not the same in two places, as one was made smaller, is written
// out there.
func (g *graph) named(texts map[string]string, lists *fields) {
	for _, s := range g.steps {
		for _, run := range runsOf(s.retry) {
			l := run[0].list
			if l == nil {
				continue
			}
			written := make([]any, len(run))
			for i, p := range run {
				written[i] = p.yaml()
			}
			text := yaml(written)
			known, found := texts[l.name]
			if !found {
				texts[l.name] = text
				*lists = append(*lists, field{l.name, written})
			}
			for _, p := range run {
				p.uses = !found || known == text
			}
		}
		if s.below != nil {
			s.below.named(texts, lists)
		}
	}
}

// runsOf are the policies of a retry, those of one list together.
func runsOf(all []*policy) [][]*policy {
	var runs [][]*policy
	for i, p := range all {
		if i > 0 && p.list != nil && all[i-1].list == p.list {
			runs[len(runs)-1] = append(runs[len(runs)-1], p)
			continue
		}
		runs = append(runs, []*policy{p})
	}
	return runs
}

// entryYAML is the workbook entry that the step calls.
func (s *step) entryYAML() fields {
	f := fields{{"name", bare("call_" + s.name)}, {"tool", bare(s.tool)}}.add("url", s.url)
	f = f.add("method", tidy(s.method)).add("params", s.params).add("headers", s.headers).add("body", s.body)
	f = f.add("idempotency", tidy(s.idempotency)).add("args", s.args)
	if s.decoy {
		return append(f, field{"retry", []any{fields{{"when", defined{of: name("error")}}, {"then", fields{{"ignore", true}}}}}})
	}
	return f.add("retry", s.retryYAML())
}

// refuses is the failure that a policy makes of an answer.
func (c *predictedCall) refuses(p *policy, out outcome, sc scope) (*failure, *failure) {
	f := &failure{kind: "response", class: "final", attempt: c.all, page: c.page, told: out.told}
	if p.class != "" {
		f.class = p.class
	}
	if p.retryAfter == nil {
		return f, nil
	}
	var err error
	if f.told, err = p.reads(sc); err != nil {
		return nil, c.expression()
	}
	return f, nil
}

// patched is a body with what a page changes in it.
func patched(under, change any, sc scope) (any, error) {
	members, isMap := change.(fields)
	list, isList := change.([]any)
	switch {
	case isList: // what is in it is part of the body too
		all := make([]any, len(list))
		for i, element := range list {
			if element == nil {
				continue
			}
			var err error
			if all[i], err = patched(nil, element, sc); err != nil {
				return nil, err
			}
		}
		return all, nil
	case !isMap:
		value, err := render(change, sc)
		if err != nil {
			return nil, err
		}
		if value == nil {
			return nil, errNil
		}
		over, both := value.(map[string]any)
		if was, ok := under.(map[string]any); ok && both {
			return merged(was, over), nil
		}
		return value, nil
	}
	was, _ := under.(map[string]any)
	all := map[string]any{}
	for k, v := range was {
		all[k] = v
	}
	for _, member := range members {
		if member.value == nil {
			delete(all, member.name)
			continue
		}
		value, err := patched(all[member.name], member.value, sc)
		if err != nil {
			return nil, err
		}
		all[member.name] = value
	}
	return all, nil
}
