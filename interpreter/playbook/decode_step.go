package playbook

import (
	"strings"

	"gopkg.in/yaml.v3"

	"reprise/interpreter/expression"
)

func readSteps(d *decoder, n *yaml.Node) []*Step {
	items, ok := d.readItems(n, "workflow")
	if !ok {
		return nil
	}
	if len(items) == 0 {
		d.Errorf(positionOf(n), codeEmpty, "workflow has no steps; write at least one, for example - step: start")
		return nil
	}
	if len(items) > MaxSteps {
		d.Errorf(positionOf(items[MaxSteps]), codeTooManySteps, "the workflow has %d steps; at most %d are allowed", len(items), MaxSteps)
		items = items[:MaxSteps]
	}
	var steps []*Step
	for i, item := range items {
		if step := readStep(d, item); step != nil {
			step.Index = i
			steps = append(steps, step)
		}
	}
	return steps
}

// Words of the calls of steps and sources, in addition to the fields of their tools.
var rowsKey = acceptKey(key{name: "rows", doc: "dotted path to the rows of a page, for results, sinks and `incremental`; `*` is each element, as in `data.items[*].node`"},
	readAs(WordText, func(d *decoder, w written, s *Step) { s.Rows = readRowsPath(d, w.node) }))

var whereKey = acceptKey(key{name: "where", doc: "a condition over `row`; rows for which it is false are left out before results, sinks and `incremental` see them"},
	asCondition(func(s *Step, n *Node) { s.Where = n }))

var collectKey = acceptKey(key{name: "collect", doc: "how pages are combined into one result, where the policy that a page matches has no `collect`"},
	asSection(func(s *Step, c *Collect) { s.Collect = c }))

var retryKey = acceptKey(key{name: "retry", doc: "policies that decide, after every attempt, whether to retry, fetch the next page or stop"}, asRetry(func(s *Step, policies []*Policy) { s.Retry = policies }))

var limitKey = acceptKey(key{name: "rate_limit", doc: "how often the step may send requests; everyone who sends under the same key shares the limit"},
	readAs(WordSection, func(d *decoder, w written, s *Step) { readStepRateLimit(d, w.node, s) }).of(rateLimitSection))

var stepSection = sectionOf(section{name: "step", called: "an entry of workflow", open: true, fields: olderFields}, withCall((*Step).action, []keyOf[Step]{
	acceptKey(key{name: "step", doc: "the name of the step", required: "step: fetch"}, readAs(WordName, func(d *decoder, w written, s *Step) {
		s.Name, _ = d.readName(w.node, w.what)
		s.NamePos = positionOf(w.node)
	})),
	acceptKey(key{name: "desc", doc: "a note for readers", nullable: true}, asText(func(s *Step, text string) { s.Desc = text })),
	acceptKey(key{name: "tool", older: []string{"type"}, doc: "the tool to call; a step without a tool only routes"}, asPart[Step](WordTool)),
	acceptKey(key{name: "loop", doc: "runs the step once per element"}, asSection(func(s *Step, loop *Loop) { s.Loop = loop })),
	rowsKey,
	whereKey,
	collectKey,
	acceptKey(key{name: "incremental", doc: "what the step remembers between runs, so that it reads only what is new"}, asSection(func(s *Step, i *Incremental) { s.Incremental = i })),
	retryKey,
	acceptKey(key{name: "sink", older: saveWord, warned: "save", doc: "where the step's result is written: one sink, or a list of sinks that are written in order"},
		asSome(func(s *Step, sinks []*Sink) { s.Sinks = sinks })),
	acceptKey(key{name: "vars", doc: "values to set when the step succeeds"}, readAs(WordMap, func(d *decoder, w written, s *Step) { s.Vars = readVars(d, w.node) })),
	acceptKey(key{name: "next", doc: "the steps that follow"},
		readAs(WordTargets, func(d *decoder, w written, s *Step) { s.Next = readNext(d, w.node) }).of(routeSection)),
	acceptKey(key{name: "join", doc: "`all`: waits for every branch that can reach the step"}, asOneOf(func(*Step, string) {}, "all")),
	acceptKey(key{name: "on_success", doc: "a notice, or a list of them, sent when the step has ended well"},
		asNotices(noticeSection, func(s *Step, notices []*Notice) { s.OnSuccess = notices })),
	acceptKey(key{name: "on_failure", doc: "a notice, or a list of them, sent when the step has failed"},
		asNotices(noticeSection, func(s *Step, notices []*Notice) { s.OnFailure = notices })),
	acceptKey(key{name: "secret", doc: "`true`: encrypts the result, which only fields of later calls may then use"},
		readAs(WordBoolean, func(d *decoder, w written, s *Step) {
			s.Secret, s.SecretPos = d.readBoolean(w.node, w.what), positionOf(w.node)
		})),
	limitKey,
}))

// readRowsPath reads a dotted path to the rows of a page.
func readRowsPath(d *decoder, n *yaml.Node) *RowPath {
	text, ok := d.readName(n, "rows")
	if !ok {
		return nil
	}
	plain, isJSONPath := strings.CutPrefix(text, "$")
	if plain = strings.TrimPrefix(plain, "."); isJSONPath {
		if _, err := expression.ParsePattern(plain); err == nil {
			d.Errorf(positionOf(n), codePath, "%s is JSONPath; a path is dotted and starts at the page: write rows: %s", ShortenText(text), plain)
			return nil
		}
	}
	keys, err := expression.ParsePattern(text)
	if err != nil {
		d.Errorf(positionOf(n), codePath, "the path of rows is invalid: %s", err)
		return nil
	}
	return &RowPath{Pos: positionOf(n), Text: text, Keys: keys}
}

func (s *Step) action() *Action { return s.Action }

// readStep reads a step. The words on which others depend are read first: the name is part of places, and older
// forms of retry depend on the tool.
func readStep(d *decoder, n *yaml.Node) *Step {
	f, ok := d.readFields(n, stepSection, stepSection.sectionTitle())
	if !ok {
		return nil
	}
	step := &Step{NamePos: f.pos}
	d.readFirst(f, "step", step)
	step.Action = readStepAction(d, f, step)
	d.stepPagination(f, step)
	step.ownRetry = f.getValue("retry") != nil || len(step.Retry) > 0
	d.readWords(f, step, at{place: step.Name, tool: literalTool(step.Action)})
	if step.Action != nil {
		readCallArgs(d, step.Action, "step "+QuoteWord(step.Name))
	}
	return step
}

func readVars(d *decoder, n *yaml.Node) []*Entry {
	if isNull(n) || d.broken[n] {
		return nil
	}
	if n.Kind != yaml.MappingNode {
		d.Errorf(positionOf(n), codeWrongType, "vars must be a map of names and values, not %s", describeYAML(n))
		return nil
	}
	return d.valueNode(n).Entries
}

// readStepAction reads the call of a step; nil for a router, which has no tool.
func readStepAction(d *decoder, f *fields, step *Step) *Action {
	if f.getValue("tool") != nil {
		return readAction(d, f, "step "+QuoteWord(step.Name))
	}
	accepted := stepSection.keyNames()
	// If the tool is misspelt, everything else would be reported with it.
	for _, field := range f.rest {
		if expression.Suggest(field.spelt, accepted) == "tool" {
			d.Errorf(field.pos, CodeUnknownKey, "unknown key %q in step %q; did you mean \"tool\"?", field.spelt, step.Name)
			d.AddFix(field.spelt, expression.SuggestCertain(field.spelt, accepted))
			return nil
		}
	}
	for _, field := range f.rest {
		hint := readFieldWithoutTool(d, field.spelt, accepted)
		d.Errorf(field.pos, CodeUnknownKey, "unknown key %q in step %q, which has no tool%s", ShortenText(field.spelt), step.Name, hint.Text)
		d.AddFix(field.spelt, hint.CertainReplacement(field.spelt, accepted))
	}
	for _, k := range callKeys {
		if f.words.Has(k.name) {
			d.Errorf(f.words[k.name], CodeRouter, "step %q has %q but no tool: a step without a tool only routes; give it a tool or remove %q",
				step.Name, k.name, k.name)
		}
	}
	return nil
}

// readFieldWithoutTool returns a hint for an unknown key of a step that has no tool.
func readFieldWithoutTool(d *decoder, name string, accepted []string) Hint {
	if known, ok := stepSection.findKey(name, true); ok && known.name == "tool" {
		return PlainHint(writeInstead(known.name).Text + ", such as tool: http")
	} else if ok {
		return writeInstead(known.name)
	}
	if newer, ok := olderFields[name]; ok {
		return writeInstead(newer)
	}
	if hint, found := d.foreignKeyHint(name, stepSection); found {
		return hint
	}
	if near := expression.Suggest(name, accepted); near != "" {
		return DidYouMean(near)
	}
	return PlainHint("; the fields of a call need a tool beside them, such as tool: http")
}
