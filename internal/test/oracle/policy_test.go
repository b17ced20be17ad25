package oracle_test

import (
	"slices"
	"time"
)

// A policy of a retry. What a key of one is, how it is written, drawn and predicted is in this file alone: a new key
// is a field of policy, a line of yaml, a draw in failing, polling or pagePolicy, and a rule in counts, wait or goes. A key
// that counts is also reset by a person's retry-now (awaitsPerson).

type policy struct {
	when, stop  expr
	maxAttempts int
	delay       *time.Duration
	initial     *time.Duration
	maxDelay    time.Duration
	multiplier  int
	backoff     string
	jitter      string
	maxElapsed  time.Duration
	maxWait     time.Duration
	onExhausted string
	ignore      bool
	result      any
	restart     bool
	allowRepeat bool
	endOnRepeat bool
	next        *nextCall
	collect     *collect
	sink        *sink
	page        *sink
	perPage     bool // the other spelling
	onePerAct   bool // pages_per_activity: 1
	fail        any
	class       string
	retryAfter  any
	list        *list // that it stands in
	uses        bool  // and is written as a use of
	short       bool  // its waits are those of a real server
}

// repeats says that a match of the policy goes on.
func (p *policy) repeats() bool {
	return p.maxAttempts > 0 || p.next != nil || p.restart || p.namesWait() || p.jitter != "" || p.maxElapsed > 0 || p.maxWait > 0
}

func (p *policy) namesWait() bool {
	return p.delay != nil || p.initial != nil || p.maxDelay > 0 || p.multiplier > 0 || p.backoff != ""
}

type nextCall struct {
	params  fields
	headers fields
	method  string
	args    fields
	url     any
	body    any
}

type collect struct {
	strategy string
	path     string
	into     string
	optional bool
}

func (c *collect) yaml() fields {
	f := fields{}.add("strategy", tidy(c.strategy)).add("path", pathYAML(c.path))
	return f.add("into", tidy(c.into)).add("optional", c.optional)
}

func (p *policy) yaml() fields {
	var f fields
	if p.when != nil {
		f = append(f, field{"when", p.when})
	}
	if p.stop != nil {
		f = append(f, field{"stop_when", p.stop})
	}
	then := fields{}
	for _, each := range []struct {
		name  string
		value time.Duration
	}{{"max_delay", p.maxDelay}, {"max_elapsed", p.maxElapsed}, {"max_wait", p.maxWait}} {
		if each.value > 0 {
			then = then.add(each.name, seconds(each.value))
		}
	}
	for _, each := range []struct {
		name  string
		value int
	}{{"max_attempts", p.maxAttempts}, {"backoff_multiplier", p.multiplier}} {
		if each.value > 0 {
			then = then.add(each.name, each.value)
		}
	}
	if p.delay != nil {
		then = then.add("delay", seconds(*p.delay))
	}
	if p.initial != nil {
		then = then.add("initial_delay", seconds(*p.initial))
	}
	then = then.add("backoff", tidy(p.backoff)).add("jitter", tidy(p.jitter)).add("on_exhausted", tidy(p.onExhausted))
	then = then.add("ignore", p.ignore).add("result", p.result).add("restart", p.restart)
	then = then.add("fail", p.fail).add("class", tidy(p.class))
	if wait, fixed := p.retryAfter.(time.Duration); fixed {
		then = then.add("retry_after", bare(wait.String()))
	} else {
		then = then.add("retry_after", p.retryAfter)
	}
	then = then.add("allow_repeat", p.allowRepeat).add("end_on_repeat", p.endOnRepeat)
	return append(f, field{"then", p.paging(then)})
}

// paging adds what pages have.
func (p *policy) paging(then fields) fields {
	if p.next != nil {
		next := fields{}.add("params", p.next.params).add("headers", p.next.headers).add("method", tidy(p.next.method)).add("args", p.next.args).add("url", p.next.url).add("body", p.next.body)
		then = then.add("next_call", next)
	}
	if p.collect != nil {
		then = append(then, field{"collect", p.collect.yaml()})
	}
	if p.sink != nil {
		then = then.add("sink", p.sink.yaml())
	}
	if p.page != nil {
		word := "per_iteration"
		if p.perPage {
			word = "per_page"
		}
		then = then.add(word, fields{{"sink", p.page.yaml()}})
	}
	if p.onePerAct {
		then = then.add("pages_per_activity", 1)
	}
	return then
}

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

// tally is what a policy counts.
type tally struct {
	failures, successes int
	since               time.Duration // of the failures
	polls               time.Duration // of the successes
	restarts            int
	matches             int  // that are counted still, told waits with them
	matched             bool // a success of this call
}

// reads is the wait that retry_after of a policy gives, 0 for none.
func (p *policy) reads(sc scope) (time.Duration, error) {
	if wait, fixed := p.retryAfter.(time.Duration); fixed || p.retryAfter == nil {
		return wait, nil
	}
	value, err := render(p.retryAfter, sc)
	if seconds, isNumber := value.(int); isNumber && err == nil {
		return time.Duration(max(seconds, 0)) * time.Second, nil
	}
	return 0, err
}

// decide asks the policies. It gives nil where the call goes on.
func (c *predictedCall) decide(out outcome) *ended {
	if out.failure != nil && out.failure.deaf {
		return c.fails(out.failure)
	}
	page, last, partial, tallies := c.page, c.last, c.partial, slices.Clone(c.tallies)
	if out.failure == nil {
		c.page++
		c.last = out.data
		c.partial = out.partial
		for i := range c.tallies {
			c.tallies[i].failures = 0
			c.tallies[i].matches = 0
		}
	}
	for i, p := range c.s.retry {
		sc := c.asks(p, out)
		if p.stop != nil {
			stops, err := p.stop.eval(sc)
			if err != nil {
				return c.fails(c.expression())
			}
			if truthy(stops) {
				return c.ends(out, nil)
			}
		}
		if p.when != nil {
			matches, err := p.when.eval(sc)
			if err != nil {
				return c.fails(c.expression())
			}
			if !truthy(matches) {
				continue
			}
		}
		if p.fail != nil && out.failure == nil {
			refused, failed := c.refuses(p, out, sc)
			if failed != nil {
				return c.fails(failed)
			}
			c.page, c.last, c.partial, c.tallies = page, last, partial, tallies
			c.refused()
			return c.decide(outcome{failure: refused})
		}
		c.tallies[i].matched = c.tallies[i].matched || out.failure == nil
		if !p.repeats() {
			return c.ends(out, p)
		}
		wait, goes := c.counts(i, p, out, sc)
		if goes {
			return c.goes(p, out, wait, sc)
		}
		switch p.onExhausted {
		case "continue":
		case "pause":
			return c.awaitsPerson(i, p, out)
		default:
			return c.exhausted(p, out)
		}
		if out.failure != nil {
			out.failure.exhausted = true
		} else {
			out.cut = true // there was more
		}
	}
	return c.ends(out, nil)
}

// counts counts a match. It gives the wait before the next attempt, or that there is none.
func (c *predictedCall) counts(i int, p *policy, out outcome, sc scope) (time.Duration, bool) {
	t := &c.tallies[i]
	count, since, most := &t.successes, &t.polls, 100
	if p.next != nil {
		most = 10_000
	}
	switch {
	case out.failure != nil && p.restart:
		count, since, most = &t.restarts, &t.since, 1
	case out.failure != nil:
		count, since, most = &t.failures, &t.since, 3
	}
	if p.maxAttempts > 0 {
		most = p.maxAttempts
	}
	if p.restart {
		most++ // it counts what follows
	}
	told := out.told
	if out.failure != nil {
		told = out.failure.told
	}
	names := p.namesWait()
	if out.failure == nil && (p.next != nil || names) {
		told = 0
	}
	if read, err := p.reads(sc); err == nil && read > 0 {
		told = read
	}
	if t.matches++; t.matches == 1 {
		*since = c.now
	}
	free := out.failure != nil && told > 0 && !p.restart
	if !free {
		*count++
		if *count >= most {
			return 0, false
		}
	}
	wait := p.wait(*count)
	if out.failure == nil && p.next != nil && !names {
		wait = 0
	}
	if told > 0 {
		wait = told
		bound := time.Hour
		if p.maxWait > 0 {
			bound = p.maxWait
		}
		if wait > bound {
			return 0, false
		}
	}
	if p.maxElapsed > 0 && c.now+wait-*since > p.maxElapsed {
		return 0, false
	}
	return wait, true
}

// wait is delay(n).
func (p *policy) wait(n int) time.Duration {
	if p.delay != nil {
		return *p.delay
	}
	initial := time.Second
	if p.initial != nil {
		initial = *p.initial
	}
	most := p.maxDelay
	if most == 0 {
		most = max(time.Minute, initial)
	}
	multiplier := 2
	if p.multiplier > 0 {
		multiplier = p.multiplier
	}
	switch p.backoff {
	case "none":
		return 0
	case "fixed":
		return initial
	case "linear":
		return min(initial*time.Duration(n), most)
	}
	d := initial
	for range n - 1 {
		d = min(d*time.Duration(multiplier), most)
	}
	return min(d, most)
}

// goes is a match that goes on: the same request again, the first, or the next one.
func (c *predictedCall) goes(p *policy, out outcome, wait time.Duration, sc scope) *ended {
	if out.failure != nil {
		if !c.sleeps(wait) {
			return c.failsWith(out, p)
		}
		if p.restart {
			return c.restart()
		}
		return nil
	}
	if p.next == nil {
		if !c.sleeps(wait) {
			return c.skipped(p)
		}
		return nil
	}
	guarded := !p.allowRepeat
	if guarded && c.had && same(c.before, out.data) {
		return c.repeats(p, out, false)
	}
	part, err := c.collects(c.s.collectOf(p), out.data)
	if err != nil {
		return c.fails(err)
	}
	before := c.request
	if failed := c.follow(p.next, c.names(out)); failed != nil {
		_ = c.writes(p.page, c.pageID(), sc, part) // what failed first is told
		return c.fails(failed)
	}
	if c.sent[before.sent().key()] = true; guarded && c.sent[c.request.sent().key()] {
		if failed := c.writes(p.page, c.pageID(), sc, part); failed != nil && p.endOnRepeat {
			return c.fails(failed) // else the call has failed before
		}
		return c.repeats(p, out, true)
	}
	c.before, c.had, c.paged = out.data, true, p
	if failed := c.writes(p.page, c.pageID(), sc, part); failed != nil {
		return c.fails(failed)
	}
	for i, each := range c.s.retry {
		if each.next == nil {
			c.tallies[i].successes = 0
		}
	}
	if !c.sleeps(wait) {
		return c.skipped(p)
	}
	c.attempt = 0
	return nil
}

// repeats ends a call whose pages go round.
func (c *predictedCall) repeats(p *policy, out outcome, collected bool) *ended {
	if !p.endOnRepeat {
		return c.fails(&failure{kind: "repeat", class: "final", attempt: c.all})
	}
	_ = collected // by then, where it was no repeated page
	return c.succeeds(out, p, false)
}
