package oracle_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// scopes gives a round what other rounds do not have: names in conditions, sinks and the output,
// collections that an expression gives, pages that change headers and the method, and older forms
// of retry. They are drawn apart too.
func (g *generator) scopes() {
	g.Rand = rand.New(rand.NewPCG(g.round.seed, 4))
	g.collections(g.round.book)
	g.changesMore(g.round.book)
	g.older(g.round.book)
	g.names(g.round.book)
	g.outputs(g.round.book)
}

// collections has loops run over what an expression gives, whose elements may be anything.
func (g *generator) collections(book *graph) {
	g.round.data = fields{{"text", "text"}, {"number", 7}}
	for i, s := range book.steps {
		if s.loop == nil || !g.one(3) {
			continue
		}
		before := book.steps[:i]
		s.loop.aliases = g.one(2)
		switch {
		case len(before) > 0 && !book.branches() && g.one(2):
			of := before[g.IntN(len(before))]
			if of.tool == "" {
				continue
			}
			s.loop.collection = filter{of: name(of.name + "." + pick(g, "items", "results")), fallback: literal{[]any{}}}
		case g.one(5):
			s.loop.collection = name(pick(g, "given.nowhere", "given.text", "given.number"))
		default:
			s.loop.collection = name("given." + s.name)
			g.round.data = append(g.round.data, field{s.name, g.anything()})
		}
		s.byIndex()
	}
}

// anything is a collection whose elements are of every kind, some of them twice.
func (g *generator) anything() any {
	if g.one(4) {
		pairs := fields{}
		for i := range g.IntN(5) {
			pairs = append(pairs, field{fmt.Sprintf("k%d", (i*7)%10), g.value(2)})
		}
		return pairs
	}
	list := []any{}
	for range g.IntN(6) {
		list = append(list, g.value(2))
	}
	return list
}

// value is a value of JSON, so deep at most.
func (g *generator) value(depth int) any {
	switch n := g.IntN(8); {
	case n == 0 && depth > 0:
		return []any{g.value(depth - 1), g.value(depth - 1)}
	case n == 1 && depth > 0:
		return fields{{"a", g.value(depth - 1)}, {"b", g.value(depth - 1)}}
	case n == 2:
		return []any{}
	case n == 3 && depth > 0:
		return nil
	case n == 4:
		return pick[any](g, true, false, "", "007", 0, 9007199254740993)
	}
	return g.IntN(3)
}

// byIndex has what a loop's iterations send tell them apart by their index.
func (s *step) byIndex() {
	s.url = indexed(s.url, s.loop.element)
	for i := range s.workload {
		s.workload[i].value = indexed(s.workload[i].value, s.loop.element)
	}
	for _, each := range append(s.callSinks(), s.loop.sink) {
		if each == nil {
			continue
		}
		each.url = indexed(each.url, s.loop.element)
		if args, ok := each.args.(fields); ok && !args.has("element") {
			each.args = append(args, field{"element", name(s.loop.element)})
		}
	}
}

// indexed is a text with the index of an element in the place of the element.
func indexed(value any, element string) any {
	text, ok := value.(mixed)
	if !ok {
		return value
	}
	text = slices.Clone(text)
	for i, part := range text {
		if part == any(name(element)) || part == any(name(element+".key")) {
			text[i] = name("_loop.index")
		}
	}
	return text
}

// callSinks are those that a step's policies have.
func (s *step) callSinks() (all []*sink) {
	for _, p := range s.retry {
		for _, each := range []*sink{p.sink, p.page} {
			if each != nil && !slices.Contains(all, each) {
				all = append(all, each)
			}
		}
	}
	return all
}

func (f fields) has(name string) bool {
	return slices.ContainsFunc(f, func(each field) bool { return each.name == name })
}

// changesMore has pages change headers or the method, and collects an element of a list.
func (g *generator) changesMore(book *graph) {
	for _, s := range book.steps {
		if s.below != nil {
			g.changesMore(s.below)
		}
		byHeader := g.one(3)
		for _, p := range s.retry {
			if p.next == nil {
				continue
			}
			if byHeader && p.next.params != nil {
				p.next.params, p.next.headers = nil, fields{{"X-Page", p.next.params[0].value}}
				if g.one(3) {
					p.next.headers = append(p.next.headers, field{"X-First", nil})
				}
				s.params = slices.DeleteFunc(slices.Clone(s.params), func(f field) bool { return f.name == "page" })
				s.headers = fields{{"X-First", mixed{"of ", literal{s.name}}}}
			}
			if s.body == nil && p.next.body == nil && g.one(5) {
				p.next.method = "PUT"
			}
		}
		if by := s.collecting(); by != nil && by.path == "items" && g.one(4) {
			by.path = pick(g, "items[0]", "items[1]")
		}
	}
}

// names has conditions and sinks see more.
func (g *generator) names(book *graph) {
	for _, s := range book.steps {
		if s.below != nil {
			g.names(s.below)
		}
		for _, p := range s.retry {
			if p.when != nil && s.oldForm == "" && p.jitter != "" && p.fail == nil && g.one(4) {
				p.when = binary{"and", p.when, g.bounded(s)}
			}
		}
		for _, each := range s.callSinks() {
			g.more(each, name("_retry.page"), name("_retry.attempt"), name("this.status"), name("this.meta.attempts"), name("this.meta.pages"), name("error.page"))
		}
		own := []expr{name("this.status")}
		if s.loop == nil {
			own = append(own, name("this.meta.attempts"), name("this.meta.pages"), name("_retry.page"), name("_retry.count"))
		} else {
			g.more(s.loop.sink, name("_loop.count"), name("_loop.size"), name("this.status"), name("this.meta.attempts"), name("_retry.page"))
		}
		g.more(s.sink, own...)
	}
}

// bounded is a condition that holds for a while.
func (g *generator) bounded(s *step) expr {
	left := []string{"_retry.page", "this.meta.attempts", "error.attempt", "error.page", "_retry.index"}
	if s.loop != nil {
		left = append(left, "_loop.count", "_loop.size")
	}
	return binary{"<", name(pick(g, left...)), literal{2 + g.IntN(3)}}
}

// more has a sink write one of these.
func (g *generator) more(to *sink, names ...expr) {
	if to == nil || !g.one(3) {
		return
	}
	if args, ok := to.args.(fields); ok && !args.has("also") {
		to.args = append(args, field{"also", []any{pick(g, names...), pick(g, names...)}})
	}
}

// outputs has the output show the envelopes of steps.
func (g *generator) outputs(book *graph) {
	all, ok := book.output.(fields)
	if !ok || !g.one(2) {
		return
	}
	for _, s := range book.steps {
		if s.tool == "" {
			continue
		}
		of := "steps." + s.name
		all = append(all, field{"status_" + s.name, name(of + ".status")})
		if s.loop == nil {
			all = append(all, field{"meta_" + s.name, []any{
				name(of + ".meta.attempts"), name(of + ".meta.pages"), binary{"==", name(of + ".meta.truncated"), literal{true}},
			}})
		}
	}
	book.output = all
}

// older writes the retry of some steps in one of its older forms.
func (g *generator) older(book *graph) {
	for _, s := range book.steps {
		if s.below != nil {
			g.older(s.below)
		}
		if s.tool != "http" || !g.one(6) {
			continue
		}
		s.oldForm = pick(g, "number", "flat", "events", "seconds", "class", "milliseconds")
		s.retry = g.olderPolicies(s)
	}
}

// olderPolicies are the policies that an older form becomes.
func (g *generator) olderPolicies(s *step) []*policy {
	p := &policy{when: defined{of: name("error")}, jitter: "none", maxAttempts: 1 + g.IntN(4)}
	wait := func(all ...time.Duration) *time.Duration { d := pick(g, all...); return &d }
	switch s.oldForm {
	case "flat":
		p.when = g.onError()
		p.initial, p.multiplier, p.maxDelay = wait(time.Second, 3*time.Second), 1+g.IntN(3), time.Minute
		if g.one(3) {
			p.stop = binary{">=", name("_retry.count"), literal{2 + g.IntN(3)}}
		}
	case "events":
		p.when, p.initial = g.onError(), wait(500*time.Millisecond, 2*time.Second)
		all := []*policy{p}
		for _, each := range s.retry {
			if each.next != nil && each.collect == nil && each.list == nil {
				return append(all, &policy{when: each.when, next: each.next, maxAttempts: 1 + g.IntN(5)})
			}
		}
		return all
	case "seconds":
		p.maxAttempts++ // at least one retry
		p.when = binary{"in", name("error.kind"), literal{[]any{"webhook_failure", "http", "connection"}}}
		p.initial, p.multiplier, p.maxDelay = wait(5*time.Second, time.Second), 1+g.IntN(3), 300*time.Second
	case "class":
		p.when = binary{"in", name("error.class"), literal{[]any{"retryable", "rate_limited"}}}
		p.initial, p.multiplier, p.maxDelay = wait(time.Minute, 2*time.Second), 1+g.IntN(3), time.Hour
	case "milliseconds":
		p.when = binary{"in", name("error.status"), literal{pick(g, []any{500, 429}, []any{503, 404, 409})}}
		if p.delay = wait(time.Second, 1500*time.Millisecond); g.one(2) {
			p.initial, p.delay, p.backoff, p.maxDelay = p.delay, nil, "linear", time.Minute
		}
	}
	return []*policy{p}
}

// retryYAML is a step's retry as it is written.
func (s *step) retryYAML() any {
	if len(s.retry) == 0 || s.oldForm == "" {
		return policies(s.retry)
	}
	p := s.retry[0]
	f := fields{}
	switch s.oldForm {
	case "number":
		if p.maxAttempts == 3 {
			return bare("true")
		}
		return p.maxAttempts
	case "flat":
		f = append(f, field{"when", p.when})
		if p.stop != nil {
			f = append(f, field{"stop_when", p.stop})
		}
		f = f.add("max_attempts", p.maxAttempts)
		if p.initial != nil {
			f = f.add("initial_delay", seconds(*p.initial))
		}
		if p.multiplier > 0 {
			f = f.add("backoff_multiplier", p.multiplier)
		}
		if p.maxDelay > 0 {
			f = f.add("max_delay", seconds(p.maxDelay))
		}
	case "events":
		return s.eventsYAML()
	case "seconds":
		return fields{
			{"max_retries", p.maxAttempts - 1},
			{"initial_delay_secs", int(p.initial.Seconds())},
			{"backoff_multiplier", p.multiplier},
			{"max_delay_secs", int(p.maxDelay.Seconds())},
			{"retry_on", []any{"webhook_failure"}},
		}
	case "class":
		return fields{
			{"max_attempts", p.maxAttempts},
			{"initial_backoff", seconds(*p.initial)},
			{"max_backoff", seconds(p.maxDelay)},
			{"backoff_multiplier", p.multiplier},
		}
	case "milliseconds":
		f = fields{{"max_attempts", p.maxAttempts}, {"backoff", bare("fixed")}}
		if p.delay == nil {
			f[1].value = bare("linear")
			f = append(f, field{"base_delay_ms", int(p.initial.Milliseconds())}, field{"max_delay_ms", int(p.maxDelay.Milliseconds())})
		} else {
			f = append(f, field{"base_delay_ms", int(p.delay.Milliseconds())})
		}
		return append(f, field{"retriable_errors", p.when.(binary).right.(literal).value})
	}
	return f
}

func (s *step) eventsYAML() fields {
	f := fields{}
	for _, p := range s.retry {
		if p.next == nil {
			of := fields{{"when", p.when}, {"max_attempts", p.maxAttempts}, {"jitter", bare("none")}}
			if *p.initial != 500*time.Millisecond {
				of = append(of, field{"initial_delay", seconds(*p.initial)})
			}
			f = append(f, field{"on_error", of})
			continue
		}
		f = append(f, field{"on_success", p.paging(fields{{"while", p.when}, {"max_attempts", p.maxAttempts}})})
	}
	return f
}
