package oracle_test

import (
	"time"
)

// policies gives a step its retry.
func (g *generator) policies(s *step, who []any) {
	if g.one(8) {
		return
	}
	for range g.IntN(3) {
		s.retry = append(s.retry, g.failing(s, who))
	}
	if s.tool == "http" {
		if g.round.styles[s.name].pending > 0 || g.one(10) {
			s.retry = append(s.retry, g.polling())
		}
		if g.one(2) {
			g.paging(s, who)
		}
		if g.one(8) {
			s.retry = append(s.retry, &policy{
				when:   binary{"==", name("response.state"), literal{"done"}},
				result: pick[any](g, nil, fields{{"kept", name("response.n")}, {"page", name("response.page")}}),
			})
		}
	}
	if g.one(8) {
		p := &policy{when: g.onError(), ignore: true}
		p.result = pick[any](g, nil, []any{}, fields{{"gone", name("error.status")}})
		s.retry = append(s.retry, p)
	}
	if g.one(8) {
		p := &policy{when: g.onError(), restart: true, jitter: "none", maxAttempts: g.IntN(3)}
		if !s.writesPages() {
			g.waits(p)
			s.retry = append(s.retry, p)
		}
	}
	g.Shuffle(len(s.retry), func(i, j int) { s.retry[i], s.retry[j] = s.retry[j], s.retry[i] })
	if len(s.retry) > 0 && g.one(6) {
		s.retry[g.IntN(len(s.retry))].stop = pick[expr](g,
			binary{">=", name("_retry.count"), literal{2 + g.IntN(4)}},
			binary{"==", name("error.status"), literal{pick(g, 404, 500)}},
			binary{"==", name("response.n"), literal{g.IntN(10)}})
	}
}

func (s *step) writesPages() bool {
	for _, p := range s.retry {
		if p.page != nil {
			return true
		}
	}
	return false
}

// waits gives a policy how long it waits.
func (g *generator) waits(p *policy) {
	switch g.IntN(6) {
	case 0:
		d := pick(g, 0, time.Second, 3*time.Second, 1500*time.Millisecond)
		p.delay = &d
		return
	case 1:
		p.backoff = "none"
		return
	case 2:
		return
	}
	if g.one(2) {
		d := pick(g, time.Second, 2*time.Second, 5*time.Second, 90*time.Second)
		p.initial = &d
	}
	p.backoff = pick(g, "", "", "linear", "fixed", "exponential")
	if g.one(3) && p.backoff != "linear" && p.backoff != "fixed" {
		p.multiplier = 1 + g.IntN(4)
	}
	if g.one(3) && p.backoff != "fixed" {
		p.maxDelay = pick(g, 3*time.Second, 7*time.Second)
		if p.initial != nil && *p.initial > p.maxDelay {
			p.maxDelay = *p.initial
		}
	}
}

// failing is a policy for failures.
func (g *generator) failing(s *step, who []any) *policy {
	p := &policy{when: g.onError(), jitter: "none"}
	if g.one(5) {
		p.when = binary{"and", p.when, binary{"<", name(pick(g, "_retry.count", "_retry.attempt")), literal{2 + g.IntN(4)}}}
	}
	if s.loop != nil && g.one(8) {
		p.when = binary{"and", p.when, binary{"<", name("_loop.index"), literal{2}}}
	}
	if g.one(10) {
		p.when = not{binary{"or", defined{of: name("response")}, binary{"==", name("error.status"), literal{404}}}}
	}
	if !g.one(5) {
		p.maxAttempts = 1 + g.IntN(5)
	}
	g.waits(p)
	if g.one(8) {
		p.maxElapsed, g.noted = time.Duration(1+g.IntN(12))*time.Second, true
	}
	if g.one(8) {
		p.maxWait = time.Duration(1+g.IntN(6)) * time.Second
	}
	p.onExhausted = pick(g, "", "", "", "fail", "succeed", "continue")
	if g.one(6) && p.onExhausted != "continue" {
		p.sink = g.sink(who, true)
		p.sink.args = fields{{"v", name("result")}, {"status", name("error.status")}, {"count", name("_retry.count")}}
	}
	return p
}

// polling is a policy that asks again until something is ready.
func (g *generator) polling() *policy {
	p := &policy{when: binary{"==", name("response.state"), literal{"pending"}}, maxAttempts: 1 + g.IntN(5)}
	if g.one(2) {
		g.waits(p)
	}
	p.onExhausted = pick(g, "", "", "fail", "continue")
	return p
}

// paging is one policy for pages, or two.
func (g *generator) paging(s *step, who []any) {
	way := g.IntN(4)
	var by *collect
	if g.one(2) {
		by = &collect{strategy: pick(g, "", "append", "append", "replace", "merge")}
		by.path = pick(g, "items", "items", "info.rows", "", "n")
		if by.strategy == "merge" {
			by.path = pick(g, "", "info", "info.deep")
		}
		by.optional = g.round.styles[s.name].apart || g.one(4)
		if g.one(4) {
			by.into = g.fresh("i")
		}
	}
	g.prepare(s, way)
	for i := range 1 + g.IntN(5)/4 {
		p := &policy{when: pick[expr](g, name("response.more"), defined{of: name("response.next")}), next: g.next(s, way)}
		if i > 0 {
			p.when = binary{"<", name("response.page"), literal{2}}
		}
		if by != nil && by.into == "" && by.strategy != "merge" && by.strategy != "replace" && g.one(4) {
			p.when = binary{"and", p.when, binary{"<", filter{of: name("pages")}, literal{1 + g.IntN(5)}}}
		}
		p.collect = by
		g.pagePolicy(s, p, who)
		s.retry = append(s.retry, p)
	}
}

// pagePolicy gives a policy for pages its bounds and sinks.
func (g *generator) pagePolicy(s *step, p *policy, who []any) {
	if g.one(2) {
		p.maxAttempts = 1 + g.IntN(5)
		p.onExhausted = pick(g, "", "", "succeed", "fail", "continue")
	}
	if g.one(4) {
		d := pick(g, 0, time.Second, 2*time.Second)
		p.delay = &d
	}
	p.endOnRepeat = g.one(4)
	p.onePerAct = g.one(4)
	// A page that comes again goes on coming: bounded by attempts alone.
	if g.one(10) && !p.endOnRepeat {
		p.allowRepeat, p.maxAttempts = true, 2+g.IntN(4)
	}
	if s.writesPages() || len(s.retry) > 0 && s.retry[len(s.retry)-1].next != nil {
		p.page = s.retry[len(s.retry)-1].page
		return
	}
	if g.one(3) {
		p.page, p.perPage = g.sink(who, true), g.one(2)
	}
	if g.one(5) {
		// The specification does not say what is written where the policy is exhausted
		// as a failure.
		if sink := g.sink(who, true); p.onExhausted != "fail" {
			p.sink = sink
		}
	}
}

// prepare gives the first request what the way of asking for pages needs.
func (g *generator) prepare(s *step, way int) {
	switch way {
	case 0:
		if g.one(2) {
			s.params = s.params.add("page", 1)
		}
	case 1:
		s.params, s.args = nil, nil
	case 2:
		s.method, s.body = "POST", fields{{"page", 1}, {"from", s.name}}
	case 3:
		s.args = s.args.add("page", 1)
		s.params = s.params.add("page", name("args.page"))
	}
}

func (g *generator) next(s *step, way int) *nextCall {
	next := binary{"+", name("response.page"), literal{1}}
	to := pick[expr](g, next, name("response.next"))
	switch way {
	case 0:
		return &nextCall{params: fields{{"page", name("response.next")}}}
	case 1:
		return &nextCall{url: name("response.next_url")}
	case 2:
		return &nextCall{body: fields{{"page", next}, {"from", s.name}}}
	}
	return &nextCall{args: fields{{"page", to}}}
}
