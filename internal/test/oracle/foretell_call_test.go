package oracle_test

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"reprise/internal/observe/runs"
)

// failure is what is predicted of an error.
type failure struct {
	kind, class string
	status      int
	attempt     int
	page        int
	exhausted   bool
	collected   any
	has         bool          // something was collected
	told        time.Duration // what the other side asks for, 0 for nothing
	body        any
	deaf        bool // ends the call without asking the policies
}

// object is the error as expressions and results have it.
func (f *failure) object() map[string]any {
	o := map[string]any{"kind": f.kind, "class": f.class}
	if f.status > 0 {
		o["status"] = f.status
	}
	if f.attempt > 0 {
		o["attempt"] = f.attempt
	}
	if f.page > 0 {
		o["page"] = f.page
	}
	if f.exhausted {
		o["exhausted"] = true
	}
	if f.has {
		o["collected"] = f.collected
	}
	return o
}

// request is what a call sends.
type request struct {
	method, url string
	params      map[string]any
	headers     map[string]any
	body        any
	args        map[string]any
}

// sent is the request as it goes out: a query of url and params are one.
func (r request) sent() asked {
	at, err := url.Parse(r.url)
	if err != nil {
		panic(err)
	}
	query := at.Query()
	for name, value := range r.params {
		if value == nil {
			continue
		}
		query.Set(name, plain(value))
	}
	a := asked{method: r.method, path: at.Path, query: query.Encode()}
	if r.body != nil {
		a.body = canonical(r.body)
	}
	a.headers = headersOf(func(name string) string { return plain(r.headers[name]) })
	return a
}

// outcome is how an attempt ended.
type outcome struct {
	data    any
	failure *failure
	told    time.Duration // when to ask again, of a success; 0 for nothing
	partial bool
	cut     bool // it said that there is more, and nobody may ask
}

// predictedCall is one call as the specification has it.
type predictedCall struct {
	o       *oracle
	s       *step
	scope   scope
	id      string // of run, step, visit and index
	now     time.Duration
	request request
	sent    map[string]bool
	attempt int // of this request
	all     int // attempts of the call
	page    int // successes of this round
	round   int // restarts
	tallies []tally
	pages   any
	got     bool // something was collected
	used    *collect
	paged   *policy
	last    any // the data of the last success
	before  any // the page before, of those that had a next one
	had     bool
	partial bool
	limited bool // a limit has cut it
}

// ended is how a call ended.
type ended struct {
	data      any
	failure   *failure
	truncated bool
	partial   bool
	attempts  int
	at        time.Duration
	collected any
	has       bool
	count     int   // of pages
	seen      scope // what sinks behind the call see of it
}

// seen is what sinks behind the call see of it.
func (c *predictedCall) seen(e ended) scope {
	status := "success"
	switch {
	case e.failure != nil:
		status = "error"
	case e.partial:
		status = "partial_success"
	}
	return scope{
		"_retry": c.counted(e.failure),
		"this":   map[string]any{"status": status, "meta": map[string]any{"attempts": c.all, "pages": c.page, "truncated": e.truncated}},
	}
}

// counted is what _retry holds. A failure that was ignored is no page, and pages count from 1.
func (c *predictedCall) counted(failed *failure) map[string]any {
	page := c.page
	if failed == nil {
		page = max(page, 1)
	}
	if failed != nil {
		page++
	}
	return map[string]any{"attempt": c.attempt, "count": c.all, "page": page, "index": page}
}

func (o *oracle) call(s *step, sc scope, id string, at time.Duration) ended {
	c := &predictedCall{o: o, s: s, scope: sc, id: id, now: at, tallies: make([]tally, len(s.retry))}
	e := c.run()
	e.attempts, e.at = c.all, c.now
	e.partial, e.collected, e.has = c.partial || c.limited, c.pages, c.got
	e.count, e.seen = c.page, c.seen(e)
	return e
}

func (c *predictedCall) run() ended {
	if err := c.begin(); err != nil {
		return ended{failure: err}
	}
	for {
		c.attempt++
		c.all++
		out := c.perform()
		c.attempted(out.failure != nil)
		if out.failure != nil {
			out.failure.attempt, out.failure.page = c.all, c.page+1
		}
		if result := c.decide(out); result != nil {
			return *result
		}
	}
}

// begin renders the first request.
func (c *predictedCall) begin() *failure {
	args, err := render(c.s.args, c.scope)
	if err != nil {
		return c.expression()
	}
	c.request = request{args: maps.Clone(args.(map[string]any))}
	if over, ok := c.scope["args"].(map[string]any); ok {
		maps.Copy(c.request.args, over)
	}
	c.sent, c.pages, c.got, c.page, c.attempt, c.used, c.paged, c.had = map[string]bool{}, nil, false, 0, 0, nil, nil, false
	return c.fields()
}

func (c *predictedCall) expression() *failure {
	return &failure{kind: "expression", class: "final", deaf: true, attempt: c.all}
}

// fields renders what args may be part of.
func (c *predictedCall) fields() *failure {
	if c.s.tool != "http" && c.s.tool != "webhook" {
		return nil
	}
	sc := c.scope.with(scope{"args": c.request.args})
	at, err := render(c.s.url, sc)
	if err != nil {
		return c.expression()
	}
	params, err := render(c.s.params, sc)
	if err != nil {
		return c.expression()
	}
	headers, err := render(c.s.headers, sc)
	if err != nil {
		return c.expression()
	}
	body, err := render(c.s.body, sc)
	if err != nil {
		return c.expression()
	}
	// A method names no args, so it is rendered once: one of an earlier next_call stays.
	method := cmp.Or(c.request.method, c.s.method)
	if method == "" {
		method = http.MethodGet
		if c.s.tool == "webhook" {
			method = http.MethodPost
		}
	}
	c.request = request{method, at.(string), params.(map[string]any), headers.(map[string]any), body, c.request.args}
	return nil
}

// perform makes an attempt.
func (c *predictedCall) perform() outcome {
	c.now = c.o.holds(c.now)
	if c.s.tool == "playbook" {
		return c.o.playbookBelow(c)
	}
	key := fmt.Sprintf("%s page %d round %d", c.id, c.page+1, c.round)
	a := c.request.sent()
	word := c.s.idempotency
	if word == "" && a.method != http.MethodGet {
		word = "operation"
	}
	if c.s.tool == "webhook" {
		word = "attempt"
	}
	switch word {
	case "attempt":
		key += " attempt " + strconv.Itoa(c.all)
	case "operation":
	default:
		key = ""
	}
	given := c.o.ask(a, key, c.now)
	c.o.log[len(c.o.log)-1].call = c.id
	if c.s.tool == "webhook" {
		return c.await(given)
	}
	return given.outcome()
}

// outcome is what an answer is to a call.
func (a answer) outcome() outcome {
	switch a.broken {
	case "drop":
		return outcome{failure: &failure{kind: "connection", class: "retryable"}}
	case "json":
		return outcome{failure: &failure{kind: "http", class: "retryable", status: a.status}}
	}
	told := a.retryAfter()
	if a.status < 400 {
		return outcome{data: a.body, told: told}
	}
	f := &failure{kind: "http", status: a.status, told: told, body: a.body, class: "final"}
	_, header := a.headers["Retry-After"]
	spent := a.headers["X-RateLimit-Remaining"] == "0" && a.headers["X-RateLimit-Reset"] != ""
	switch {
	case a.status == 429, (a.status == 403 || a.status == 503) && (header || spent):
		f.class = "rate_limited"
	case a.status == 408, a.status == 425, a.status >= 500:
		f.class = "retryable"
	}
	return outcome{failure: f}
}

// retryAfter is what the answer says of when to ask again, 0 for nothing: a wait of nothing is none.
func (a answer) retryAfter() time.Duration {
	said, _ := strconv.Atoi(a.headers["Retry-After"])
	if said <= 0 && slices.Contains([]int{403, 429, 503}, a.status) {
		if left, says := a.headers["X-RateLimit-Remaining"]; !says || left == "0" {
			said, _ = strconv.Atoi(a.headers["X-RateLimit-Reset"])
		}
	}
	return time.Duration(max(said, 0)) * time.Second
}

// names is what conditions and what a policy does see.
func (c *predictedCall) names(out outcome) scope {
	meta := map[string]any{"attempts": c.all, "pages": c.page}
	s := scope{"_retry": c.counted(out.failure), "args": c.request.args, "pages": c.pages, "error": nil, "response": nil, "page": nil}
	for _, p := range c.s.retry {
		if p.collect != nil && p.collect.into != "" {
			s[p.collect.into] = c.pages
		}
	}
	if c.s.collect != nil && c.s.collect.into != "" {
		s[c.s.collect.into] = c.pages
	}
	if out.failure != nil {
		s["error"] = out.failure.object()
		s["this"] = map[string]any{"status": "error", "error": s["error"], "meta": meta}
	} else {
		s["response"], s["page"] = out.data, out.data
		status := "success"
		if out.partial {
			status = "partial_success"
		}
		s["this"] = map[string]any{"status": status, "data": out.data, "meta": meta}
	}
	return c.scope.with(s)
}

// asks is what a policy sees that is asked: the page at hand is collected, as the policy collects it, else as the page
// that ends the call. What cannot be collected is not.
func (c *predictedCall) asks(p *policy, out outcome) scope {
	if out.failure != nil {
		return c.names(out)
	}
	by := c.s.collectOf(p)
	if by == nil {
		by = c.used
	}
	if by == nil {
		by = c.s.collecting()
	}
	would := *c
	if _, failed := would.collects(by, out.data); failed != nil {
		would.pages = c.pages
	}
	return would.names(out)
}

func (c *predictedCall) pageID() string {
	return fmt.Sprintf("%s page %d round %d", c.id, c.page, c.round)
}

func (c *predictedCall) restart() *ended {
	c.round++
	old := c.tallies
	c.tallies = make([]tally, len(old))
	for i := range old {
		c.tallies[i].restarts = old[i].restarts
		c.tallies[i].matched = old[i].matched
	}
	if failed := c.begin(); failed != nil {
		return c.fails(failed)
	}
	return nil
}

// collects takes a page in, and gives what it contributed.
func (c *predictedCall) collects(by *collect, data any) (any, *failure) {
	part, found, failed := c.contributes(by, data)
	if by == nil || failed != nil {
		return part, failed
	}
	c.used = by
	if !found {
		if by.optional {
			c.got = true
			c.pages = c.data()
			return nil, nil
		}
		return nil, c.expression()
	}
	switch by.strategy {
	case "replace":
		c.pages = part
	case "merge":
		over, ok := part.(map[string]any)
		if !ok {
			return nil, c.expression()
		}
		under, _ := c.pages.(map[string]any)
		c.pages = merged(under, over)
	default:
		list, _ := c.pages.([]any)
		list = slices.Clone(list)
		switch p := part.(type) {
		case nil:
		case []any:
			list = append(list, p...)
		default:
			list = append(list, p)
		}
		if list == nil {
			list = []any{}
		}
		c.pages = list
	}
	c.got = true
	return part, nil
}

// at is what a dotted path leads to.
func at(value any, path string) (any, bool) {
	if path == "" {
		return value, true
	}
	if list, index, found := strings.Cut(path, "["); found {
		n, _ := strconv.Atoi(strings.TrimSuffix(index, "]"))
		of, _ := at(value, list)
		if all, ok := of.([]any); ok && n < len(all) {
			return all[n], true
		}
		return nil, false
	}
	s := scope{"x": value}
	found, _ := name("x." + path).eval(s)
	if found != nil {
		return found, true
	}
	parent, last := value, path
	for i := len(path) - 1; i >= 0; i-- {
		if path[i] == '.' {
			parent, _ = name("x." + path[:i]).eval(s)
			last = path[i+1:]
			break
		}
	}
	members, _ := parent.(map[string]any)
	_, has := members[last]
	return nil, has
}

func merged(under, over map[string]any) map[string]any {
	all := maps.Clone(under)
	if all == nil {
		all = map[string]any{}
	}
	for key, value := range over {
		was, ok := all[key].(map[string]any)
		is, also := value.(map[string]any)
		if ok && also {
			all[key] = merged(was, is)
			continue
		}
		all[key] = value
	}
	return all
}

// follow builds the next request.
func (c *predictedCall) follow(next *nextCall, sc scope) *failure {
	if next.args != nil {
		args, err := render(next.args, sc)
		if err != nil || holdsNil(args) {
			return c.expression()
		}
		old := c.request
		c.request.args = merged(old.args, args.(map[string]any))
		if failed := c.fields(); failed != nil {
			return failed
		}
	}
	if next.url != nil {
		to, err := render(next.url, sc)
		if err != nil || to == nil {
			return c.expression()
		}
		from, err := url.Parse(c.request.url)
		if err != nil {
			panic(err)
		}
		relative, err := url.Parse(to.(string))
		if err != nil {
			panic(err)
		}
		c.request.url = from.ResolveReference(relative).String()
	}
	if next.params != nil {
		params, err := render(next.params, sc)
		if err != nil || holdsNil(params) {
			return c.expression()
		}
		all := maps.Clone(c.request.params)
		if all == nil {
			all = map[string]any{}
		}
		maps.Copy(all, params.(map[string]any))
		c.request.params = all
	}
	if next.headers != nil {
		headers, failed := c.headers(next.headers, sc)
		if failed != nil {
			return failed
		}
		c.request.headers = headers
	}
	if next.method != "" {
		c.request.method = next.method
	}
	if next.body != nil {
		body, err := patched(c.request.body, next.body, sc)
		if err != nil {
			return c.expression()
		}
		c.request.body = body
	}
	return nil
}

// headers are those of the next request: a literal null removes one, an expression must not.
func (c *predictedCall) headers(changed fields, sc scope) (map[string]any, *failure) {
	all := maps.Clone(c.request.headers)
	if all == nil {
		all = map[string]any{}
	}
	for _, each := range changed {
		if each.value == nil {
			delete(all, each.name)
			continue
		}
		value, err := render(each.value, sc)
		if err != nil || value == nil {
			return nil, c.expression()
		}
		all[each.name] = value
	}
	return all, nil
}

func holdsNil(value any) bool {
	members, _ := value.(map[string]any)
	for _, each := range members {
		if each == nil {
			return true
		}
	}
	return false
}

// collecting is the first collect of the step: of a policy, else its own, nil for none.
func (s *step) collecting() *collect {
	for _, p := range s.retry {
		if p.collect != nil {
			return p.collect
		}
	}
	return s.collectOf(&policy{})
}

// collectOf is what collects the pages that a policy matches. Where the step says what its rows are, they are collected
// unless page sinks write them.
func (s *step) collectOf(p *policy) *collect {
	switch {
	case p.collect != nil:
		return p.collect
	case s.collect != nil || s.rows == "" && s.where == nil:
		return s.collect
	}
	pages, implied := false, &collect{}
	for _, each := range s.retry {
		if each.page != nil || each.collect != nil && s.rows == "" {
			return nil
		}
		if each.collect != nil {
			implied = each.collect
		}
		pages = pages || each.next != nil
	}
	if !pages {
		return nil
	}
	return implied
}

// data is the result of the call.
func (c *predictedCall) data() any {
	first := c.s.collecting()
	switch {
	case first == nil:
		part, _, _ := c.contributes(nil, c.last)
		if part == nil && c.s.rows != "" {
			return []any{}
		}
		return part
	case c.pages != nil:
		return c.pages
	case first.strategy == "merge":
		return map[string]any{}
	case first.strategy == "replace":
		return nil
	}
	return []any{}
}

// skipped is a call that somebody ended while it waited behind a success.
func (c *predictedCall) skipped(p *policy) *ended {
	f := &failure{kind: "explicit", class: "final", attempt: c.all}
	return c.failsWith(outcome{failure: f}, p)
}

// sleeps waits. It gives false where somebody skips what waits.
func (c *predictedCall) sleeps(wait time.Duration) bool {
	if wait > 0 {
		c.o.emits(runs.StepRetry)
	}
	until, skipped := c.o.waits(c.now, wait)
	c.now = until
	return !skipped
}
