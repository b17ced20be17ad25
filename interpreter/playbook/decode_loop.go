package playbook

import (
	"strings"

	"gopkg.in/yaml.v3"
)

// The defaults of a loop: docs/language.md, section loop.
const (
	DefaultElement        = "item"
	DefaultMaxConcurrency = 10
	DefaultBatch          = 1
	DefaultCompleted      = 0.95
	DefaultPartialSuccess = 0.50
	DefaultMinSamples     = 1000
)

func (d *decoder) loop(n *yaml.Node, step string) *Loop {
	f, ok := d.fields(n, loopSection, "loop")
	if !ok {
		return nil
	}
	loop := &Loop{
		Pos: f.pos, Words: f.words, Values: f.places(Words{}, ""), Element: DefaultElement, Mode: Sequential,
		MaxConcurrency: DefaultMaxConcurrency, Batch: DefaultBatch,
		Thresholds: Thresholds{Completed: DefaultCompleted, PartialSuccess: DefaultPartialSuccess},
	}
	if d.require(f, "loop", "collection", `collection: "{{ patient_ids }}"`) {
		loop.Collection = d.collection(f.get("collection"))
	}
	if n := f.get("element"); n != nil {
		loop.Element, _ = d.name(n, "element")
	}
	if n := f.get("mode"); n != nil {
		if mode := d.oneOf(n, "mode", "sequential", "parallel", "async"); mode == "parallel" || mode == "async" {
			loop.Mode = Parallel
		}
	}
	d.loopNumbers(f, loop)
	if n := f.get("sink"); n != nil {
		loop.Sink = readSection[Sink](d, n, at{place: step + ".loop.sink"})
	}
	if n := f.get("dead_letter"); n != nil {
		if l := readSection[deadLetter](d, n, at{place: step + ".loop.dead_letter"}); l != nil {
			loop.DeadLetter = l.sink
		}
	}
	return loop
}

// collection refuses constants that can only fail when the step runs.
func (d *decoder) collection(n *yaml.Node) *Node {
	node := d.value(n)
	switch {
	case d.broken[n]:
		return nil
	case node.kind == constantNode:
		hint := `such as "{{ patient_ids }}"`
		if text, ok := node.Value.(string); ok && namePattern.MatchString(text) {
			hint = `such as "{{ ` + text + ` }}"`
		}
		d.errorf(node.Pos, CodeWrongType, "collection must be a list, a map or a template that gives one, %s, not %s", hint, describeYAML(n))
		return nil
	}
	return node
}

func (d *decoder) loopNumbers(f *fields, loop *Loop) {
	if n := f.get("max_concurrency"); n != nil {
		if v, ok := d.integer(n, "max_concurrency"); ok {
			loop.MaxConcurrency = v
		} else {
			delete(loop.Words, "max_concurrency")
		}
	}
	if n := f.get("batch"); n != nil {
		d.batch(n, loop)
	}
	if n := f.get("results"); n != nil {
		loop.StatsOnly = d.oneOf(n, "results", "inline", "stats") == "stats"
	}
	if n := f.get("failure_budget"); n != nil {
		loop.FailureBudget = d.failureBudget(n, loop.Values)
	}
	if n := f.get("thresholds"); n != nil {
		d.thresholds(n, &loop.Thresholds, loop.Values)
	}
}

func (d *decoder) batch(n *yaml.Node, loop *Loop) {
	text := n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str" && !strings.Contains(n.Value, "{{")
	switch {
	case text && n.Value == "auto":
		loop.AutoBatch = true
	case text && !d.broken[n]:
		d.errorf(position(n), CodeWrongType, "batch must be a whole number or auto, not %s", describeYAML(n))
	default:
		if v, ok := d.integer(n, "batch"); ok {
			loop.Batch = v
		}
	}
}

func (d *decoder) failureBudget(n *yaml.Node, places Words) *FailureBudget {
	f, ok := d.fields(n, budgetSection, "failure_budget")
	if !ok || !d.require(f, "failure_budget", "rate", "rate: 0.10") {
		return nil
	}
	f.places(places, "failure_budget.")
	budget := &FailureBudget{MinSamples: DefaultMinSamples}
	rate, ok := d.number(f.get("rate"), "failure_budget.rate")
	if !ok {
		return nil
	}
	budget.Rate = rate
	if n := f.get("min_samples"); n != nil {
		if v, ok := d.integer(n, "failure_budget.min_samples"); ok {
			budget.MinSamples = v
		}
	}
	return budget
}

// thresholds reads the shares. Where only completed is given and stands below
// the other's default, the other follows it.
func (d *decoder) thresholds(n *yaml.Node, t *Thresholds, places Words) {
	f, ok := d.fields(n, thresholdsSection, "thresholds")
	if !ok {
		return
	}
	f.places(places, "thresholds.")
	if n := f.get("completed"); n != nil {
		if v, ok := d.number(n, "thresholds.completed"); ok {
			t.Completed = v
			t.PartialSuccess = min(t.PartialSuccess, v)
		}
	}
	if n := f.get("partial_success"); n != nil {
		if v, ok := d.number(n, "thresholds.partial_success"); ok {
			t.PartialSuccess = v
			if f.get("completed") == nil {
				t.Completed = max(t.Completed, v)
			}
		}
	}
}

// deadLetter is the section of that name.
type deadLetter struct{ sink *Sink }

var deadLetterSection = sectionOf(section{name: "dead_letter"}, []keyOf[deadLetter]{
	{key{name: "sink", doc: "where each iteration that failed is written; `result` is the dead letter", required: innerSink},
		asSection(func(l *deadLetter, s *Sink) { l.sink = s })},
})

func (*deadLetter) section() *section { return deadLetterSection }

func (l *deadLetter) decode(d *decoder, f *fields, at at) bool {
	d.words(f, l, at)
	return true
}
