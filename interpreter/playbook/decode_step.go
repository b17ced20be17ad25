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
		d.errorf(position(n), CodeEmpty, "workflow has no steps; write at least one, for example - step: start")
		return nil
	}
	if len(items) > MaxSteps {
		d.errorf(position(items[MaxSteps]), CodeTooManySteps, "the workflow has %d steps; it may have %d", len(items), MaxSteps)
		items = items[:MaxSteps]
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

func (d *decoder) step(n *yaml.Node) *Step {
	f, ok := d.fields(n, stepSection, "an entry of workflow")
	if !ok {
		return nil
	}
	step := &Step{Pos: f.pos, NamePos: f.pos}
	if d.require(f, "an entry of workflow", "step", "step: fetch") {
		step.Name, _ = d.name(f.get("step"), "step")
		step.NamePos = position(f.get("step"))
	}
	if n := f.get("desc"); n != nil && !isNull(n) {
		step.Desc, _ = d.text(n, "desc")
	}
	step.Action = d.stepAction(f, step)
	if n := f.get("secret"); n != nil {
		step.Secret, step.SecretPos = d.boolean(n, "secret"), position(n)
	}
	if n := f.get("rate_limit"); n != nil {
		d.stepRateLimit(n, step)
	}
	d.stepPagination(f, step)
	if n := f.get("loop"); n != nil {
		step.Loop = d.loop(n, step.Name)
	}
	if n := f.get("retry"); n != nil {
		step.Retry = d.retry(n, step.Name+".retry", literalTool(step.Action))
	}
	if n := f.get("sink"); n != nil {
		step.Sink = readSection[Sink](d, n, at{place: step.Name + ".sink"})
	}
	d.stepRoutes(f, step)
	return step
}

// stepRoutes reads what happens when the step has ended.
func (d *decoder) stepRoutes(f *fields, step *Step) {
	if n := f.get("vars"); n != nil {
		step.Vars = d.vars(n)
	}
	if n := f.get("join"); n != nil {
		d.oneOf(n, "join", "all")
	}
	if n := f.get("next"); n != nil {
		step.Next, step.NextPos = d.next(n), position(n)
	}
}

func (d *decoder) vars(n *yaml.Node) []*Entry {
	if isNull(n) || d.broken[n] {
		return nil
	}
	if n.Kind != yaml.MappingNode {
		d.errorf(position(n), CodeWrongType, "vars must be a map of names and values, not %s", describeYAML(n))
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
			d.errorf(field.pos, CodeUnknownKey, "unknown key %q in step %q; did you mean \"tool\"?", field.spelt, step.Name)
			return nil
		}
	}
	for _, field := range f.rest {
		hint := "; the fields of a call need a tool beside them, such as tool: http"
		if known, ok := stepSection.find(field.spelt, true); ok {
			hint = "; " + Version + " writes " + quote(known.name)
		} else if newer, ok := olderFields[field.spelt]; ok {
			hint = "; " + Version + " writes " + quote(newer)
		} else if near := expression.Suggest(field.spelt, accepted); near != "" {
			hint = "; did you mean " + quote(near) + "?"
		}
		d.errorf(field.pos, CodeUnknownKey, "unknown key %q in step %q, which has no tool%s", shorten(field.spelt), step.Name, hint)
	}
	for _, k := range callKeys {
		if f.words.Has(k.name) {
			d.errorf(f.words[k.name], CodeRouter, "step %q has %q but no tool: a step without a tool only routes; give it a tool or remove %q",
				step.Name, k.name, k.name)
		}
	}
	return nil
}
