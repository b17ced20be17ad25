package oracle_test

import (
	"strings"
	"time"
)

// graph is a playbook that the generator made, or one below another.
type graph struct {
	steps  []*step
	output any // template; nil is the result of the step that ended last
	strict bool
}

func (g *graph) step(name string) *step {
	for _, s := range g.steps {
		if s.name == name {
			return s
		}
	}
	return nil
}

// step is one step. Its requests go to a path of its own, with what tells elements
// and runs apart behind it.
type step struct {
	name        string
	tool        string // "", http, webhook, playbook
	url         any
	method      string
	params      fields
	headers     fields
	body        any
	idempotency string
	args        fields
	loop        *loop
	retry       []*policy
	sink        *sink
	vars        fields
	next        []entry
	below       *graph // of tool playbook
	workload    fields // that it is handed
	timeout     time.Duration
	style       style
	who         []any    // what tells its calls apart
	writes      bool     // it stands for a sink
	entry       bool     // it calls an entry of the workbook
	decoy       bool     // which has a retry that its own replaces
	oldForm     string   // of retry, "" for the list
	rows        string   // path to the rows of a page, "" for none
	where       expr     // which of them, nil for all
	collect     *collect // of pages whose policy has none
}

type loop struct {
	collection  any  // []any, fields for a map, or an expression
	aliases     bool // it is written with other words
	element     string
	parallel    bool
	concurrency int
	batch       any // nil, int or "auto"
	budget      *budget
	completed   float64 // 0 is the default
	partial     float64
	sink        *sink
	statsOnly   bool
}

type budget struct {
	rate    float64
	samples int
}

type sink struct {
	tool  string // http, file or sqlite
	place string // what tells it apart from the others
	url   any
	path  string
	args  any // nil is the result
	// fields are laid over each row, and what is in exclude is left out.
	fields  fields
	exclude []string
	table   string
	mode    string // of the table
	key     string
	retry   []*policy
	style   style
}

type entry struct {
	when    expr
	orElse  bool
	targets []target
	short   bool // {when, step}
}

type target struct {
	step string
	args fields
}

func seconds(d time.Duration) any {
	if d%time.Second == 0 {
		return bare(d.String())
	}
	return d.Seconds()
}

func (g *graph) yaml() []any {
	all := make([]any, len(g.steps))
	for i, s := range g.steps {
		all[i] = s.yaml()
	}
	return all
}

// source is the whole playbook.
func (g *graph) source(data fields) string {
	top := fields{
		{"apiVersion", bare("reprise/v1")},
		{"kind", bare("Playbook")},
		{"metadata", fields{{"name", "oracle"}}},
		{"workload", append(fields{{"api", "http://127.0.0.1:1"}}, fields{}.add("given", data)...)},
	}
	var lists fields
	g.named(map[string]string{}, &lists)
	var workbook []any
	for _, s := range g.steps {
		if s.entry {
			workbook = append(workbook, s.entryYAML())
		}
	}
	top = top.add("policies", lists).add("workbook", workbook)
	top = top.add("strict", g.strict).add("output", g.output).add("workflow", g.yaml())
	return yaml(top)
}

func (s *step) yaml() fields {
	f := fields{{"step", bare(s.name)}}.add("tool", tidy(s.tool))
	if s.entry {
		return s.around(fields{{"step", bare(s.name)}, {"tool", bare("workbook")}, {"name", bare("call_" + s.name)}})
	}
	if s.tool == "webhook" {
		f = f.add("on_start", fields{{"url", s.url}})
	} else {
		f = f.add("url", s.url)
	}
	f = f.add("method", tidy(s.method)).add("params", s.params).add("headers", s.headers).add("body", s.body)
	f = f.add("idempotency", tidy(s.idempotency)).add("args", s.args)
	if s.timeout > 0 {
		f = f.add("timeout", seconds(s.timeout))
	}
	return s.around(f)
}

// around adds what stands in a step around its call.
func (s *step) around(f fields) fields {
	if s.loop != nil {
		f = f.add("loop", s.loop.yaml())
	}
	f = f.add("rows", pathYAML(s.rows))
	if s.where != nil {
		f = f.add("where", s.where)
	}
	if s.collect != nil {
		f = append(f, field{"collect", s.collect.yaml()})
	}
	if s.below != nil {
		f = f.add("workload", s.workload).add("workflow", s.below.yaml())
	}
	switch {
	case !s.entry:
		f = f.add("retry", s.retryYAML())
	case s.decoy && len(s.retry) == 0:
		f = append(f, field{"retry", []any{}})
	case s.decoy:
		f = f.add("retry", s.retryYAML())
	}
	if s.sink != nil {
		f = f.add("sink", s.sink.yaml())
	}
	f = f.add("vars", s.vars)
	if len(s.next) > 0 {
		f = f.add("next", routes(s.next))
	}
	return f
}

// pathYAML is a path, in quotes where brackets would be YAML's.
func pathYAML(path string) any {
	if strings.ContainsAny(path, "[*") {
		return path
	}
	return tidy(path)
}

func tidy(word string) any {
	if word == "" {
		return nil
	}
	return bare(word)
}

func policies(all []*policy) any {
	if len(all) == 0 {
		return nil
	}
	var list []any
	for _, run := range runsOf(all) {
		if run[0].list != nil && run[0].uses {
			list = append(list, fields{{"use", bare(run[0].list.name)}})
			continue
		}
		for _, p := range run {
			list = append(list, p.yaml())
		}
	}
	return list
}

func (l *loop) yaml() fields {
	f := fields{{"collection", l.collection}, {"element", bare(l.element)}}
	if l.aliases {
		f[0].name, f[1].name = "in", "iterator"
	}
	if l.parallel {
		f = f.add("mode", bare("parallel"))
		if l.concurrency > 0 {
			f = f.add("max_concurrency", l.concurrency)
		}
	}
	f = f.add("batch", l.batch)
	if l.budget != nil {
		f = f.add("failure_budget", fields{{"rate", l.budget.rate}, {"min_samples", l.budget.samples}})
	}
	var thresholds fields
	if l.completed > 0 {
		thresholds = thresholds.add("completed", l.completed)
	}
	if l.partial > 0 {
		thresholds = thresholds.add("partial_success", l.partial)
	}
	f = f.add("thresholds", thresholds)
	if l.sink != nil {
		f = f.add("sink", l.sink.yaml())
	}
	if l.statsOnly {
		f = f.add("results", bare("stats"))
	}
	return f
}

func (s *sink) yaml() fields {
	f := fields{{"tool", bare(s.tool)}}.add("url", s.url).add("path", tidy(s.path)).add("args", s.args)
	f = f.add("table", tidy(s.table)).add("mode", tidy(s.mode)).add("key", tidy(s.key))
	if s.fields != nil {
		f = f.add("fields", s.fields)
	}
	if len(s.exclude) > 0 {
		f = f.add("exclude", []any{tidy(s.exclude[0])})
	}
	return f.add("retry", policies(s.retry))
}

func routes(all []entry) []any {
	list := make([]any, len(all))
	for i, e := range all {
		targets := make([]any, len(e.targets))
		for j, t := range e.targets {
			targets[j] = fields{{"step", bare(t.step)}}.add("args", t.args)
		}
		switch {
		case e.orElse:
			list[i] = fields{{"else", targets}}
		case e.when != nil && e.short:
			list[i] = fields{{"when", e.when}, {"step", bare(e.targets[0].step)}}.add("args", e.targets[0].args)
		case e.when != nil:
			list[i] = fields{{"when", e.when}, {"then", targets}}
		default:
			list[i] = targets[0]
		}
	}
	return list
}
