package playbook

import (
	"gopkg.in/yaml.v3"

	"reprise/interpreter/lists"
)

// routeSection is an entry of next, which is read into the target that it may be itself. The meaning of when, then
// and else depends on which of them are present: see route.
var routeSection = sectionOf(section{name: "next entry", called: "an entry of next"}, []keyOf[Target]{
	acceptKey(key{name: "when", doc: "a condition; the first entry whose condition is true is taken"}, asPart[Target](WordCondition)),
	acceptKey(key{name: "then", doc: "the steps to start"}, asPart[Target](WordTargets).of(targetSection)),
	acceptKey(key{name: "else", doc: "the steps to start if no condition is true"}, asPart[Target](WordTargets).of(targetSection)),
	acceptKey(key{name: "step", doc: targetStep.doc}, targetStep.into),
	targetArgs,
})

var targetSection = sectionOf(section{name: "next target"}, []keyOf[Target]{targetStep, targetArgs})

var (
	targetStep = acceptKey(key{name: "step", doc: "the step to start", required: "step: load"},
		readAs(WordName, func(d *decoder, w written, t *Target) {
			t.Step, _ = d.readName(w.node, w.what)
			t.Pos = positionOf(w.node)
		}))
	targetArgs = acceptKey(key{name: "args", doc: "override the step's `args` for this visit"},
		asMap(func(t *Target, n *Node) { t.Args = n }))
)

// readNext reads the routes of a step: a name, a list of names, or entries.
func readNext(d *decoder, n *yaml.Node) []*Route {
	if d.broken[n] {
		return nil
	}
	return readEach(oneOrMore(n), func(n *yaml.Node) *Route { return readRoute(d, n) })
}

func readRoute(d *decoder, n *yaml.Node) *Route {
	if d.broken[n] {
		return nil
	}
	if n.Kind != yaml.MappingNode {
		target := readTarget(d, n, "next")
		if target == nil {
			return nil
		}
		return &Route{Pos: positionOf(n), Targets: []*Target{target}}
	}
	f, ok := d.readFields(n, routeSection, routeSection.sectionTitle())
	if !ok {
		return nil
	}
	route := &Route{Pos: f.pos, Else: f.words.Has("else")}
	if n := f.getValue("when"); n != nil {
		if route.When = d.conditionNode(n, "when"); route.When == nil {
			return nil // without its condition, the entry would always be followed
		}
	}
	readRouteTargets(d, f, route)
	return route
}

// readRouteTargets reads the targets of an entry, which can be written in one of three ways.
func readRouteTargets(d *decoder, f *fields, route *Route) {
	if route.Else && route.When != nil {
		d.Errorf(f.words["else"], CodeConflict, "when and else are in one entry of next; put a - before else")
		return
	}
	ways := lists.Filter([]string{"step", "then", "else"}, func(way string) bool { return f.words.Has(way) })
	switch {
	case len(ways) == 0:
		d.Errorf(f.pos, CodeMissingKey, "an entry of next needs a step, for example step: %s", "load")
		return
	case len(ways) > 1:
		d.Errorf(f.words[ways[1]], CodeConflict, "%s and %s are in one entry of next; keep one of them", ways[0], ways[1])
		return
	}
	if f.words.Has("args") && ways[0] != "step" {
		d.Errorf(f.words["args"], CodeConflict, "args of an entry of next belong beside step; write %s: [{step: …, args: …}]", ways[0])
	}
	switch ways[0] {
	case "step":
		if target := readStepTarget(d, f); target != nil {
			route.Targets = []*Target{target}
		}
	case "then":
		if route.When == nil {
			d.Errorf(f.words["then"], CodeMissingKey, "then needs a when beside it; without a condition, use step: or else:")
		}
		fallthrough
	default:
		route.Targets = readTargets(d, f.getValue(ways[0]), ways[0])
	}
}

func readTargets(d *decoder, n *yaml.Node, what string) []*Target {
	if d.broken[n] {
		return nil
	}
	items := oneOrMore(n)
	if len(items) == 0 {
		d.Errorf(positionOf(n), codeEmpty, "%s names no step; write for example %s: [{step: load}]", what, what)
	}
	return readEach(items, func(item *yaml.Node) *Target { return readTarget(d, item, what) })
}

// readTarget reads a step's name, or a map with the name and args.
func readTarget(d *decoder, n *yaml.Node, what string) *Target {
	if d.broken[n] {
		return nil
	}
	if n.Kind == yaml.MappingNode {
		f, ok := d.readFields(n, targetSection, "an entry of "+what)
		if !ok {
			return nil
		}
		return readStepTarget(d, f)
	}
	if n.Kind == yaml.SequenceNode || isNull(n) {
		d.Errorf(positionOf(n), codeWrongType, "%s must name a step, not %s", what, describeYAML(n))
		return nil
	}
	name, ok := d.readName(n, what)
	if !ok {
		return nil
	}
	return &Target{Pos: positionOf(n), Step: name}
}

// readStepTarget reads a map with a step and args; nil without the name of a step.
func readStepTarget(d *decoder, f *fields) *Target {
	target := &Target{}
	d.readWords(f, target, at{})
	if target.Step == "" {
		return nil
	}
	return target
}
