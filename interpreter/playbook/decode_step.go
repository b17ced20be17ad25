package playbook

import (
	"gopkg.in/yaml.v3"

	"reprise/interpreter/expression"
)

func (d *decoder) steps(n *yaml.Node) []*Step {
	items, ok := d.items(n, "workflow")
	if !ok {
		return nil
	}
	if len(items) == 0 {
		d.errorf(position(n), codeEmpty, "workflow has no steps; write at least one, for example - step: start")
		return nil
	}
	if len(items) > maxSteps {
		d.errorf(position(items[maxSteps]), codeTooManySteps, "the workflow has %d steps; it may have %d", len(items), maxSteps)
		items = items[:maxSteps]
	}
	var steps []*Step
	for i, item := range items {
		if step := d.step(item); step != nil {
			step.Index = i
			steps = append(steps, step)
		}
	}
	return steps
}

var stepSection = sectionOf(section{name: "step", called: "an entry of workflow", open: true, fields: olderFields}, withCall((*Step).action, []keyOf[Step]{
	accept(key{name: "step", doc: "the step's name", required: "step: fetch"}, as(WordName, func(d *decoder, w written, s *Step) {
		s.Name, _ = d.name(w.node, w.what)
		s.NamePos = position(w.node)
	})),
	accept(key{name: "desc", doc: "a note for readers", nullable: true}, asText(func(s *Step, text string) { s.Desc = text })),
	accept(key{name: "tool", older: []string{"type"}, doc: "the tool to call; a step without one is a router"}, asPart[Step](WordTool)),
	accept(key{name: "loop", doc: "run the step once per element"}, asSection(func(s *Step, loop *Loop) { s.Loop = loop })),
	accept(key{name: "incremental", doc: "what the step keeps between runs, to read what is new"}, asSection(func(s *Step, i *Incremental) { s.Incremental = i })),
	accept(key{name: "retry", doc: "policies, which are evaluated after every attempt"}, asRetry(func(s *Step, policies []*Policy) { s.Retry = policies })),
	accept(key{name: "sink", older: saveWord, warned: "save", doc: "where the step's result is written"},
		asSection(func(s *Step, sink *Sink) { s.Sink = sink })),
	accept(key{name: "vars", doc: "values set when the step succeeds"}, as(WordMap, func(d *decoder, w written, s *Step) { s.Vars = d.vars(w.node) })),
	accept(key{name: "next", doc: "the steps that follow"},
		as(WordTargets, func(d *decoder, w written, s *Step) { s.Next = d.next(w.node) }).of(routeSection)),
	accept(key{name: "join", doc: "`all`: wait for every branch that can reach the step"}, asOneOf(func(*Step, string) {}, "all")),
	accept(key{name: "on_success", doc: "a notice, or a list of them, once the step has ended well"},
		asNotices(noticeSection, func(s *Step, notices []*Notice) { s.OnSuccess = notices })),
	accept(key{name: "on_failure", doc: "a notice, or a list of them, once the step has failed"},
		asNotices(noticeSection, func(s *Step, notices []*Notice) { s.OnFailure = notices })),
	accept(key{name: "secret", doc: "`true`: the result is encrypted, and only fields of later calls may use it"},
		as(WordBoolean, func(d *decoder, w written, s *Step) {
			s.Secret, s.SecretPos = d.boolean(w.node, w.what), position(w.node)
		})),
	accept(key{name: "rate_limit", doc: "how often the step may send, shared by everyone who sends to the same key"},
		as(WordSection, func(d *decoder, w written, s *Step) { d.stepRateLimit(w.node, s) }).of(rateLimitSection)),
}))

func (s *Step) action() *Action { return s.Action }

// step reads the words that others need first: the name is part of places, and
// older forms of retry depend on the tool.
func (d *decoder) step(n *yaml.Node) *Step {
	f, ok := d.fields(n, stepSection, stepSection.title())
	if !ok {
		return nil
	}
	step := &Step{NamePos: f.pos}
	d.first(f, "step", step)
	step.Action = d.stepAction(f, step)
	d.stepPagination(f, step)
	step.ownRetry = f.get("retry") != nil || len(step.Retry) > 0
	d.words(f, step, at{place: step.Name, tool: literalTool(step.Action)})
	if step.Action != nil {
		d.callArgs(step.Action, "step "+quote(step.Name))
	}
	return step
}

func (d *decoder) vars(n *yaml.Node) []*Entry {
	if isNull(n) || d.broken[n] {
		return nil
	}
	if n.Kind != yaml.MappingNode {
		d.errorf(position(n), codeWrongType, "vars must be a map of names and values, not %s", describeYAML(n))
		return nil
	}
	return d.value(n).Entries
}

// stepAction reads the call of a step; a step without a tool is a router and
// has none.
func (d *decoder) stepAction(f *fields, step *Step) *Action {
	if f.get("tool") != nil {
		return d.action(f, "step "+quote(step.Name))
	}
	accepted := stepSection.names()
	// Where the tool is misspelt, everything else would be reported with it.
	for _, field := range f.rest {
		if expression.Suggest(field.spelt, accepted) == "tool" {
			d.errorf(field.pos, codeUnknownKey, "unknown key %q in step %q; did you mean \"tool\"?", field.spelt, step.Name)
			d.offer(field.spelt, expression.Certain(field.spelt, accepted))
			return nil
		}
	}
	for _, field := range f.rest {
		hint := d.fieldWithoutTool(field.spelt, accepted)
		d.errorf(field.pos, codeUnknownKey, "unknown key %q in step %q, which has no tool%s", shorten(field.spelt), step.Name, hint.text)
		d.offer(field.spelt, hint.certain(field.spelt, accepted))
	}
	for _, k := range callKeys {
		if f.words.Has(k.name) {
			d.errorf(f.words[k.name], codeRouter, "step %q has %q but no tool: a step without a tool only routes; give it a tool or remove %q",
				step.Name, k.name, k.name)
		}
	}
	return nil
}

// fieldWithoutTool is the hint to what is meant by an unknown key of a step that has no tool.
func (d *decoder) fieldWithoutTool(name string, accepted []string) hint {
	if known, ok := stepSection.find(name, true); ok && known.name == "tool" {
		return says(writes(known.name).text + ", such as tool: http")
	} else if ok {
		return writes(known.name)
	}
	if newer, ok := olderFields[name]; ok {
		return writes(newer)
	}
	if hint, found := d.meantKey(name, stepSection); found {
		return hint
	}
	if near := expression.Suggest(name, accepted); near != "" {
		return meant(near)
	}
	return says("; the fields of a call need a tool beside them, such as tool: http")
}
