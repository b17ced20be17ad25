package oracle_test

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// round is one playbook, the API that it asks and what people do to the run.
type round struct {
	seed   uint64
	book   *graph
	styles map[string]style
	data   fields // workload
	steers []steer
	// hosted says that an activity may make several attempts that need no wait.
	hosted bool
	// real says that the round runs on a server, where times are not exact.
	real bool
	// wide says that the round has what narrow ones do not have.
	wide bool
}

// generator makes rounds. The same seed makes the same round.
type generator struct {
	*rand.Rand

	round *round
	n     int
	noted bool // a word was used that counts real time
	depth int
}

func narrow(seed uint64) *generator {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 1)), round: &round{seed: seed, styles: map[string]style{}}}
	g.round.book = g.graph(0, 1+g.IntN(4), nil)
	g.round.hosted = !g.noted && g.one(2)
	if g.one(3) && !g.round.apart() {
		g.steers()
	}
	return g
}

// one is true once in n.
func (g *generator) one(n int) bool { return g.IntN(n) == 0 }

func pick[T any](g *generator, all ...T) T { return all[g.IntN(len(all))] }

func (g *generator) fresh(prefix string) string {
	g.n++
	return fmt.Sprintf("%s%d", prefix, g.n)
}

// steers are what people do: at times when nothing else happens.
func (g *generator) steers() {
	at := time.Duration(g.IntN(8))*time.Second + 537*time.Millisecond // when no wait ends
	switch {
	case g.one(3):
		g.round.steers = append(g.round.steers, steer{at, "retry_now"})
	default:
		until := at + time.Duration(1+g.IntN(10))*time.Second + 213*time.Millisecond
		g.round.steers = append(g.round.steers, steer{at, "pause"}, steer{until, "resume"})
	}
}

// apart says that something of the run goes on in other workflows, which hear of commands
// within two seconds and not at once.
func (r *round) apart() bool {
	for _, s := range r.book.steps {
		if s.below != nil || s.loop != nil {
			return true
		}
	}
	return false
}

// graph makes a playbook of n steps. Which run asks is told by who.
func (g *generator) graph(depth, n int, who []any) *graph {
	made := &graph{strict: depth == 0 && g.one(8)}
	for range n {
		made.steps = append(made.steps, g.step(depth, who))
	}
	for i := 1; i < n; i++ {
		parents := map[int]bool{g.IntN(i): true}
		if depth > 0 {
			parents = map[int]bool{i - 1: true}
		} else if g.one(3) {
			parents[g.IntN(i)] = true
		}
		for p := range i {
			if parents[p] {
				g.route(made.steps[p], made.steps[i].name, depth)
			}
		}
	}
	for _, s := range made.steps {
		g.tidyRoutes(s)
		if g.one(8) && depth == 0 {
			g.again(s)
		}
	}
	if depth == 0 && (n > 1 || g.one(3)) {
		all := fields{}
		for _, s := range made.steps {
			if s.tool != "" {
				all = append(all, field{s.name, name(s.name)})
			}
		}
		if len(all) > 0 {
			made.output = all
		}
	}
	return made
}

// route adds a way from a step to another.
func (g *generator) route(s *step, to string, depth int) {
	e := entry{targets: []target{{step: to}}}
	if g.one(3) {
		e.targets[0].args = fields{{"x", pick[any](g, literal{g.IntN(5)}.value, g.about(s), mixed{"from ", literal{s.name}})}}
	}
	switch g.IntN(6) {
	case 0:
		e.when = g.condition(s)
		e.short = g.one(2)
	case 1:
		if s.tool != "" {
			e.when = binary{"or", defined{of: name("error")}, g.condition(s)}
		}
	case 2:
		e.orElse = depth == 0
	}
	s.next = append(s.next, e)
	if depth == 0 && s.tool != "" && g.one(3) {
		s.next = append(s.next, entry{when: g.onError(), targets: []target{{step: to}}})
	}
}

// tidyRoutes has entries that belong together be one, and puts else last.
func (g *generator) tidyRoutes(s *step) {
	g.Shuffle(len(s.next), func(i, j int) { s.next[i], s.next[j] = s.next[j], s.next[i] })
	var rest []entry
	var otherwise *entry
	conditions := 0
	for _, e := range s.next {
		if !e.orElse {
			rest = append(rest, e)
			if e.when != nil {
				conditions++
			}
			continue
		}
		if otherwise == nil {
			otherwise = &entry{orElse: true}
		}
		otherwise.targets = append(otherwise.targets, e.targets...)
	}
	if otherwise != nil && (conditions == 0 || conditions != len(rest)) {
		otherwise.orElse = false // no condition that it could stand beside
		for _, t := range otherwise.targets {
			rest = append(rest, entry{targets: []target{t}})
		}
		otherwise = nil
	}
	if otherwise != nil {
		rest = append(rest, *otherwise)
	}
	s.next = rest
}

// again has a step be visited a second time.
func (g *generator) again(s *step) {
	if s.tool == "" {
		return
	}
	counter := "c_" + s.name
	so := filter{of: name("vars." + counter), fallback: literal{0}}
	s.vars = append(s.vars, field{counter, binary{"+", so, literal{1}}})
	e := entry{when: binary{"<", so, literal{2}}, targets: []target{{step: s.name}}}
	s.next = append([]entry{e}, s.next...)
	if len(s.next) > 1 && s.next[len(s.next)-1].orElse {
		return
	}
}

// about is something that a route can say of the step before.
func (g *generator) about(s *step) expr {
	if s.loop != nil {
		return name("result.stats.success")
	}
	return defined{of: name("result")}
}

func (g *generator) condition(s *step) expr {
	switch {
	case s.tool == "":
		return pick[expr](g, literal{true}, literal{false})
	case s.loop != nil:
		return pick[expr](g, binary{"<", name("result.stats.failed"), literal{1 + g.IntN(2)}}, binary{"==", name("result.stats.total"), name("result.stats.success")})
	case s.tool == "http" && s.collecting() == nil:
		return pick[expr](g, binary{"<", name("result.n"), literal{5}}, name("result.more"), defined{of: name("result.next"), absent: true})
	}
	return pick[expr](g, defined{of: name("result")}, defined{of: name("result"), absent: true})
}

// step makes a step with a tool, or a router.
func (g *generator) step(depth int, who []any) *step {
	s := &step{name: g.fresh("s"), tool: "http"}
	switch k := g.IntN(24); {
	case k == 0 && depth == 0:
		s.tool = ""
		return s
	case k < 4 && depth == 0:
		s.tool = "playbook"
	case k == 4 && depth == 0:
		s.tool = "webhook"
	}
	if g.one(2) && s.tool != "webhook" {
		who = append(append([]any{}, who...), g.loop(s, who))
	}
	switch s.tool {
	case "playbook":
		s.workload = fields{{"api", name("api")}, {"who", append(mixed{s.name + "-"}, who...)}}
		g.depth++
		s.below = g.graph(depth+1, 1+g.IntN(2), []any{name("who")})
		g.depth--
	default:
		g.request(s, who)
	}
	s.who = who
	g.policies(s, who)
	if g.one(5) {
		s.sink = g.sink(atStep(s, who), s.loop == nil)
		if s.loop != nil {
			s.sink.args = fields{{"stats", name("result.stats")}, {"results", name("result.results")}}
		}
	}
	if g.one(5) && depth == 0 {
		s.vars = fields{{"v_" + s.name, pick[any](g, g.about(s), literal{s.name}.value)}}
	}
	return s
}

// atStep is who asks, without the element.
func atStep(s *step, who []any) []any {
	if s.loop != nil {
		return who[:len(who)-1]
	}
	return who
}

// loop gives a step a loop, and what tells its elements apart.
func (g *generator) loop(s *step, who []any) any {
	l := &loop{element: g.fresh("e"), parallel: g.one(2)}
	s.loop = l
	n := g.IntN(6)
	element := expr(name(l.element))
	if g.one(4) {
		pairs := fields{}
		for i := range n {
			pairs = append(pairs, field{fmt.Sprintf("k%d", (i*7)%10), i})
		}
		l.collection, element = pairs, name(l.element+".key")
	} else {
		list := []any{}
		for i := range n {
			list = append(list, pick[any](g, i, fmt.Sprintf("e%d", i)))
		}
		l.collection = list
	}
	if l.parallel && g.one(2) {
		l.concurrency = 1 + g.IntN(6)
	}
	l.batch = pick[any](g, nil, 1, 2, 3, "auto")
	if word, ok := l.batch.(string); ok {
		l.batch = bare(word)
	}
	if !l.parallel && g.one(4) {
		l.budget = &budget{rate: pick(g, 0.0, 0.25, 0.5, 0.9), samples: 1 + g.IntN(4)}
	}
	if g.one(3) {
		l.completed = pick(g, 0.3, 0.5, 0.99)
		l.partial = pick(g, 0.01, 0.2)
	}
	l.statsOnly = g.one(8)
	if g.one(4) {
		l.sink = g.sink(append(append([]any{}, who...), element), true)
	}
	return element
}

// request gives a step what it sends.
func (g *generator) request(s *step, who []any) {
	at := mixed{name("api"), "/" + s.name}
	for _, each := range who {
		at = append(at, "/", each)
	}
	if len(who) == 0 {
		at = append(at, "/x")
	}
	s.url = at
	s.style = g.style()
	if s.tool == "webhook" {
		s.style.answers = pick(g, []string{"complete"}, []string{"complete", "fail", "final", "none", "progress"})
		s.style.pending, s.style.pages = 0, 1
		s.timeout = pick(g, 0, 10*time.Second, 40*time.Second)
		g.round.styles[s.name] = s.style
		return
	}
	if g.one(4) {
		s.method = pick(g, "POST", "PUT")
		s.body = fields{{"from", s.name}}
	}
	if g.one(4) {
		s.idempotency = pick(g, "operation", "attempt", "none")
	}
	if g.one(3) {
		s.params = fields{{"x", name("args.x")}}
		s.args = fields{{"x", g.IntN(3)}}
	}
	g.round.styles[s.name] = s.style
}

func (g *generator) style() style {
	st := style{pages: 1 + g.IntN(4), most: 1 + g.IntN(3), seldom: pick(g, 0, 0.3, 0.6, 1)}
	all := []string{"500", "503", "404", "409", "410", "408", "429", "429told", "503told", "404told", "403spent", "403left", "drop", "json"}
	for range 1 + g.IntN(3) {
		st.troubles = append(st.troubles, pick(g, all...))
	}
	if g.one(3) {
		st.pending = 1 + g.IntN(3)
	}
	if g.one(4) {
		st.dead = 0.3
	}
	st.back, st.flat, st.told, st.apart = g.one(6), g.one(10), g.one(2), g.one(4)
	return st
}

// sink makes a sink. Its rows have the result in a map, so that each write is one row.
func (g *generator) sink(who []any, refuses bool) *sink {
	s := &sink{tool: "http", place: g.fresh("k")}
	s.args = fields{{"v", name("result")}}
	if g.one(3) && g.depth == 0 { // in the test environment all runs have one ID, and writes of runs below the same keys
		s.tool, s.path = "file", s.place+".jsonl"
		return s
	}
	at := mixed{name("api"), "/" + s.place}
	for _, each := range who {
		at = append(at, "/", each)
	}
	s.url = at
	if !refuses || g.one(2) {
		return s
	}
	s.style = style{troubles: []string{"500", "503", "409", "429told"}, most: 3, seldom: 0.6, pages: 1}
	g.round.styles[s.place] = s.style
	for range g.IntN(3) {
		p := &policy{when: g.onError(), maxAttempts: 1 + g.IntN(4), jitter: "none"}
		g.waits(p)
		if g.one(5) {
			p = &policy{when: binary{"==", name("error.status"), literal{409}}, ignore: true}
		}
		s.retry = append(s.retry, p)
	}
	return s
}

// onError is a condition of failures.
func (g *generator) onError() expr {
	switch g.IntN(7) {
	case 0, 1:
		return defined{of: name("error")}
	case 2:
		return binary{"==", name("error.status"), literal{pick(g, 500, 503, 404, 409, 410, 429)}}
	case 3:
		return binary{"in", name("error.status"), literal{[]any{500, 503, 404, 429}}}
	case 4:
		return binary{"in", name("error.class"), literal{[]any{"retryable", "rate_limited"}}}
	case 5:
		return binary{"==", name("error.kind"), literal{pick(g, "http", "connection", "playbook")}}
	}
	return binary{">=", name("error.status"), literal{pick(g, 409, 500)}}
}
