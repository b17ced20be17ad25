package oracle_test

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"reprise/internal/observe/runs"
)

// oracle predicts what becomes of a run.
type oracle struct {
	round   *round
	counts  map[string]int
	asked   int
	log     []made
	files   map[string][]string
	keys    map[string][]string // of the rows of tables
	crowded bool                // a loop has more iterations than places: when they begin is not predicted
	torn    bool                // branches were cancelled where others failed
	tied    bool                // branches ended at once
	events  events
	item    item // whose events are predicted
	below   int  // how deep runs are in runs
	// figures are what warnings have to say, each a few words that stand in one of them.
	figures [][]string
}

// steer is a command at a time of the run.
type steer struct {
	at   time.Duration
	verb string // pause, resume, retry_now or skip
}

// holds is when something may begin that is due at a time: behind a pause.
func (o *oracle) holds(at time.Duration) time.Duration {
	paused := false
	for _, s := range o.round.steers {
		switch {
		case s.verb == "pause" && s.at <= at:
			paused = true
		case s.verb == "resume" && paused:
			if s.at > at {
				return s.at
			}
			paused = false
		}
	}
	return at
}

// waits is when a wait ends, and whether somebody has skipped what waited.
func (o *oracle) waits(from, wait time.Duration) (time.Duration, bool) {
	if wait == 0 {
		return from, false
	}
	for _, s := range o.round.steers {
		if s.at <= from || s.at >= from+wait {
			continue
		}
		switch s.verb {
		case "retry_now":
			return s.at, false
		case "skip":
			return s.at, true
		}
	}
	return from + wait, false
}

// mostAsked is more than a run of a random playbook sends.
const mostAsked = 3000

// ask sends a request to the API that is predicted.
func (o *oracle) ask(a asked, key string, at time.Duration) answer {
	n := o.counts[a.key()]
	o.counts[a.key()]++
	if o.asked++; o.asked > mostAsked {
		panic("the oracle sees no end of this:\n" + o.round.describe())
	}
	list := o.round.styles[a.step()].script(o.round.seed, a)
	given := list[min(n, len(list)-1)]
	o.log = append(o.log, made{at: at, asked: a, key: key, said: given.short()})
	return given
}

// await is an attempt that is answered from outside.
func (c *predictedCall) await(given answer) outcome {
	out := given.outcome()
	if out.failure != nil {
		out.failure.kind = "webhook_failure"
		return out
	}
	limit := 5 * time.Minute
	if c.s.timeout > 0 {
		limit = c.s.timeout
	}
	from := c.now
	until := from + limit
	for _, s := range given.outside {
		at := from + s.after
		if c.o.round.real {
			at = from + s.after/quicker
		}
		if at >= until {
			break
		}
		switch s.verb {
		case "progress":
			until = at + limit
		case "complete":
			c.now = at
			return outcome{data: s.value}
		case "fail":
			c.now = at
			f := &failure{kind: "explicit", class: "retryable", body: s.value}
			if s.final {
				f.class = "final"
			}
			return outcome{failure: f}
		}
	}
	c.now = until
	return outcome{failure: &failure{kind: "timeout", class: "retryable"}}
}

// stepEnded is how a visit of a step ended.
type stepEnded struct {
	data     any
	failure  *failure
	status   string
	at       time.Duration
	attempts int
	pages    int
	loop     map[string]any // stats
	cut      bool           // truncated
}

// envelope is the step as steps.NAME has it.
func (e *stepEnded) envelope() map[string]any {
	status := map[string]string{"completed": "success", "partial_success": "partial_success", "failed": "error"}[e.status]
	return map[string]any{"status": status, "meta": map[string]any{"attempts": e.attempts, "pages": e.pages, "truncated": e.cut}}
}

// record is what is predicted of a visit of a step.
type record struct {
	step   string
	visit  int
	status string
	loop   map[string]any
	// attempts of the call, 0 for loops and routers.
	attempts int
}

// ran is how a run ended.
type ran struct {
	status  string
	result  any
	failure *failure
	records []record
	at      time.Duration
}

// branch is a step that goes on, or that waits to begin.
type branch struct {
	step  *step
	args  map[string]any
	laid  []map[string]any // args by the place in the file of the step they come from
	until time.Duration
	end   stepEnded
	visit int
	log   []made
	seq   int
}

// walk is a run under way.
type walk struct {
	o       *oracle
	g       *graph
	id      string
	scope   scope
	moving  []*branch
	waiting map[string]*branch
	visits  map[string]int
	records []record
	vars    map[string]any
	last    any
	partial bool
	failed  bool // an iteration
	seq     int
}

// playbookBelow runs another playbook as an attempt of a call.
func (o *oracle) playbookBelow(c *predictedCall) outcome {
	handed, err := render(c.s.workload, c.scope.with(scope{"args": c.request.args}))
	if err != nil {
		return outcome{failure: c.expression()}
	}
	id := fmt.Sprintf("%s page %d attempt %d", c.id, c.page+1, c.all)
	figures := o.figures                   // those of the other run stay with it
	c.s.below.strict = o.round.book.strict // the language does not say it; what is below belongs to the playbook
	o.below++
	r := o.run(c.s.below, handed.(map[string]any), id, c.now)
	o.below--
	o.figures = figures
	c.now = r.at
	if r.failure != nil {
		return outcome{failure: &failure{kind: "playbook", class: r.failure.class, status: r.failure.status}}
	}
	return outcome{data: r.result, partial: r.status == "partial_success"}
}

// run predicts a run, from a time on.
func (o *oracle) run(g *graph, workload map[string]any, id string, at time.Duration) ran {
	sc := scope{"workload": workload}
	maps.Copy(sc, workload)
	w := &walk{o: o, g: g, id: id, scope: sc, waiting: map[string]*branch{}, visits: map[string]int{}, vars: map[string]any{}}
	first := g.steps[0]
	if named := g.step("start"); named != nil {
		first = named
	}
	w.waiting[first.name] = &branch{step: first}
	for {
		w.start(at)
		if len(w.moving) == 0 {
			break
		}
		b := w.earliest()
		at = b.until
		before := len(o.log)
		o.log = append(o.log, b.log...)
		if failed := w.finish(b); failed != nil {
			w.cancel(at)
			for i := range before {
				if o.tied && o.log[i].at == at { // of a branch that ended at the same time, or was cancelled
					o.torn, o.log[i].open = true, true
				}
			}
			return ran{status: "failed", failure: failed, records: w.records, at: at}
		}
	}
	return w.end(at)
}

// end is a run whose branches have all ended.
func (w *walk) end(at time.Duration) ran {
	r := ran{status: "completed", records: w.records, at: at, result: w.last}
	if w.partial || w.failed && w.g.strict {
		r.status = "partial_success"
	}
	for _, s := range w.g.steps {
		if w.visits[s.name] == 0 {
			r.records = append(r.records, record{step: s.name, status: "skipped"})
		}
	}
	if w.g.output != nil {
		out, err := render(w.g.output, w.scope.with(scope{"vars": w.vars}))
		if err != nil {
			r.status, r.failure = "failed", &failure{kind: "expression", class: "final"}
		}
		r.result = out
	}
	return r
}

// cancel ends the other branches. Their requests from then on may have been made or
// not.
func (w *walk) cancel(at time.Duration) {
	for _, b := range w.moving {
		w.o.torn = true
		for _, m := range b.log {
			if m.at <= at {
				m.open = m.at == at
				w.o.log = append(w.o.log, m)
			}
		}
	}
}

// earliest takes the branch that ends first.
func (w *walk) earliest() *branch {
	best := 0
	for i, b := range w.moving {
		if b.until < w.moving[best].until {
			best = i
		}
	}
	for i, b := range w.moving {
		w.o.tied = w.o.tied || i != best && b.until == w.moving[best].until
	}
	b := w.moving[best]
	w.moving = slices.Delete(w.moving, best, best+1)
	return b
}

// start begins every step that need not wait for another branch.
func (w *walk) start(at time.Duration) {
	for {
		begun := false
		for _, s := range w.g.steps {
			if b := w.waiting[s.name]; b != nil && !w.mayCome(s.name) {
				w.begin(b, at)
				begun = true
			}
		}
		if begun || len(w.moving) > 0 {
			return
		}
		for _, s := range w.g.steps { // every branch waits: the first of the file goes on
			if b := w.waiting[s.name]; b != nil {
				w.begin(b, at)
				begun = true
				break
			}
		}
		if !begun {
			return
		}
	}
}

// mayCome says that another branch can still reach a step without passing through it.
func (w *walk) mayCome(to string) bool {
	for _, b := range w.moving {
		if w.reaches(b.step.name, to, map[string]bool{}) {
			return true
		}
	}
	for from := range w.waiting {
		if from != to && w.reaches(from, to, map[string]bool{}) {
			return true
		}
	}
	return false
}

func (w *walk) reaches(from, to string, seen map[string]bool) bool {
	if seen[from] {
		return false
	}
	seen[from] = true
	for _, e := range w.g.step(from).next {
		for _, t := range e.targets {
			if t.step == to || w.reaches(t.step, to, seen) {
				return true
			}
		}
	}
	return false
}

// begin runs a visit of a step to its end, which others see when its time has come.
func (w *walk) begin(b *branch, at time.Duration) {
	delete(w.waiting, b.step.name)
	s := b.step
	w.visits[s.name]++
	b.visit = w.visits[s.name]
	id := fmt.Sprintf("%s step %s visit %d", w.id, s.name, b.visit)
	sc := w.scope.with(scope{"vars": maps.Clone(w.vars)})
	if b.args != nil {
		sc["args"] = b.args
	}
	log := w.o.log
	w.o.log = nil
	b.end = w.visit(s, sc, id, w.o.holds(at))
	b.until = b.end.at
	b.log, w.o.log = w.o.log, log
	w.seq++
	b.seq = w.seq
	w.moving = append(w.moving, b)
}

// visit is one visit of a step, its sink with it.
func (w *walk) visit(s *step, sc scope, id string, at time.Duration) (e stepEnded) {
	if w.o.below == 0 {
		w.o.item = item{s.name, w.visits[s.name], -1}
		w.o.emits(runs.StepStarted)
		defer func() { e.emits(w.o) }()
	}
	if s.tool == "" {
		return stepEnded{status: "completed", at: at}
	}
	var c ended
	if s.loop != nil {
		e = w.o.loop(s, sc, id, at)
		if failed, _ := e.loop["failed"].(int); failed > 0 {
			w.failed = true
			w.o.figures = append(w.o.figures, []string{s.name, fmt.Sprint(failed), fmt.Sprint(e.loop["total"])})
		}
	} else {
		c = w.o.call(s, sc, id, at)
		e = stepEnded{data: c.data, failure: c.failure, status: "completed", at: c.at, attempts: c.attempts, pages: c.count, cut: c.truncated}
		if c.partial && c.failure == nil {
			e.status = "partial_success"
		}
		if c.truncated {
			w.o.figures = append(w.o.figures, []string{s.name})
		}
	}
	if e.failure != nil && e.loop == nil {
		e.status = "failed"
		return e
	}
	if s.sink != nil {
		names := scope{"result": e.data, "this": map[string]any{"status": e.envelope()["status"]}}
		maps.Copy(names, c.seen)
		if e.failure != nil {
			names["error"] = e.failure.object()
		}
		until, failed := w.o.writes(s.sink, id, sc.with(names), e.at)
		e.at = until
		if failed != nil {
			e.failure, e.status = c.sinkFailed(failed), "failed"
		}
	}
	return e
}

// finish notes the end of a visit and takes its routes. It gives a failure that nobody handles.
func (w *walk) finish(b *branch) *failure {
	s, e := b.step, b.end
	w.records = append(w.records, record{step: s.name, visit: b.visit, status: e.status, loop: e.loop, attempts: e.attempts})
	w.partial = w.partial || e.status == "partial_success"
	steps, _ := w.scope["steps"].(map[string]any)
	steps = maps.Clone(steps)
	if steps == nil {
		steps = map[string]any{}
	}
	steps[s.name] = e.envelope()
	w.scope["steps"] = steps
	if s.tool != "" {
		w.scope[s.name] = e.data
		w.last = e.data
	}
	sc := w.scope.with(scope{"vars": w.vars, "result": e.data, "args": b.args})
	if e.failure == nil {
		sc["response"] = e.data
		vars, err := render(s.vars, sc)
		if err != nil {
			return &failure{kind: "expression", class: "final"}
		}
		all := maps.Clone(w.vars)
		maps.Copy(all, vars.(map[string]any))
		w.vars = all
		sc["vars"] = all
	} else {
		sc["error"] = e.failure.object()
	}
	taken, handled := s.routes(sc, e.failure != nil)
	if e.failure != nil && !handled {
		return e.failure
	}
	if e.failure != nil {
		w.o.figures = append(w.o.figures, []string{s.name})
	}
	for _, t := range taken {
		w.target(s, t, sc)
	}
	return nil
}

// target has a step wait to begin. Args are laid over each other in the order of the file.
func (w *walk) target(from *step, t target, sc scope) {
	b := w.waiting[t.step]
	if b == nil {
		b = &branch{step: w.g.step(t.step), laid: make([]map[string]any, len(w.g.steps))}
		w.waiting[t.step] = b
	}
	args, err := render(t.args, sc)
	if err != nil {
		panic(err)
	}
	place := slices.Index(w.g.steps, from)
	b.laid[place] = merged(b.laid[place], args.(map[string]any))
	b.args = map[string]any{}
	for _, each := range b.laid {
		maps.Copy(b.args, each)
	}
}

// routes are the targets that are taken.
func (s *step) routes(sc scope, failed bool) (taken []target, matched bool) {
	for _, e := range s.next {
		if e.when == nil || failed && !namesError(e.when) {
			continue
		}
		value, err := e.when.eval(sc)
		if err != nil {
			panic(err)
		}
		if truthy(value) {
			return e.targets, true
		}
	}
	if failed {
		return nil, false
	}
	for _, e := range s.next {
		if e.when == nil && !e.orElse {
			taken = append(taken, e.targets...)
		}
	}
	if taken != nil {
		return taken, true
	}
	for _, e := range s.next {
		if e.orElse {
			taken = append(taken, e.targets...)
		}
	}
	return taken, true
}

// namesError says that a condition names error.
func namesError(e expr) bool {
	switch v := e.(type) {
	case name:
		return v == "error" || len(v) > 6 && v[:6] == "error."
	case binary:
		return namesError(v.left) || namesError(v.right)
	case not:
		return namesError(v.of)
	case defined:
		return namesError(v.of)
	case filter:
		return namesError(v.of)
	}
	return false
}
