package playbook

import (
	"strings"

	"gopkg.in/yaml.v3"
)

// The defaults of a loop: docs/concepts/loops.md.
const (
	defaultElement        = "item"
	defaultMaxConcurrency = 10
	defaultBatch          = "auto"
	DefaultCompleted      = 0.95
	DefaultPartialSuccess = 0.50
	defaultMinSamples     = 1000
)

var loopSection = sectionOf(section{name: "loop"}, []keyOf[Loop]{
	acceptKey(key{name: "collection", aliases: []string{"in"}, doc: "a list, or a map (sorted by key, elements `{key, value}`)"},
		readAs(WordCollection, func(d *decoder, w written, l *Loop) { l.Collection = readCollection(d, w.node) })),
	acceptKey(key{name: "source", doc: "in place of `collection`: a call whose pages give the elements while the loop runs"},
		asSection(func(l *Loop, source *loopSource) { l.Source = &source.step })),
	acceptKey(key{name: "element", aliases: []string{"iterator"}, doc: "the name of the element in expressions; default `item`"},
		asName(func(l *Loop, name string) { l.Element = name }).or(defaultElement)),
	acceptKey(key{name: "mode", doc: "`sequential` (default) or `parallel` (also `async`)"},
		asOneOf(func(l *Loop, mode LoopMode) {
			if mode != Sequential {
				l.Mode = Parallel
			}
		}, Sequential, Parallel, "async").or(Sequential)),
	acceptKey(key{name: "max_concurrency", doc: "how many iterations of a parallel loop run at a time; default 10, at most 500"},
		readAs(WordInteger, readMaxConcurrency).from(1).to(MaxConcurrencyLimit).byRule().or(defaultMaxConcurrency)),
	acceptKey(key{name: "batch", doc: "iterations per child workflow, up to 500; the default `auto` takes more in larger loops"},
		readAs(WordInteger, readBatch).from(1).to(MaxBatch).byRule().also(defaultBatch).or(defaultBatch)),
	acceptKey(key{name: "failure_budget", doc: "ends the loop early if too many iterations fail; off by default"},
		readAs(WordSection, func(d *decoder, w written, l *Loop) { l.FailureBudget = readFailureBudget(d, w.node, l.Values) }).of(budgetSection)),
	acceptKey(key{name: "thresholds", doc: "the shares of successful iterations that decide the step's status"},
		readAs(WordSection, func(d *decoder, w written, l *Loop) { readThresholds(d, w.node, &l.Thresholds, l.Values) }).of(thresholdsSection)),
	acceptKey(key{name: "sink", older: saveWord, warned: "save", doc: "where each successful iteration is written: one sink, or a list of sinks that are written in order"},
		asSome(func(l *Loop, sinks []*Sink) { l.Sinks = sinks })),
	acceptKey(key{name: "results", doc: "`inline` (default), or `stats`: keeps only counts and errors, for loops that write their rows to sinks"},
		asOneOf(func(l *Loop, results string) { l.StatsOnly = results == "stats" }, "inline", "stats").or("inline")),
	acceptKey(key{name: "dead_letter", doc: "a sink for failed iterations"},
		asSection(func(l *Loop, letter *deadLetter) { l.DeadLetter = letter.sink })),
})

func (*Loop) section() *section { return loopSection }

func (l *Loop) decode(d *decoder, f *fields, where at) bool { //nolint:unparam // sections may be refused
	*l = Loop{
		Pos: f.pos, Words: f.words, Values: f.keyPositions(Words{}, ""), Element: defaultElement, Mode: Sequential,
		MaxConcurrency: defaultMaxConcurrency, AutoBatch: true,
		Thresholds: Thresholds{Completed: DefaultCompleted, PartialSuccess: DefaultPartialSuccess},
	}
	d.readWords(f, l, where)
	if f.getValue("source") == nil {
		d.requireKeys(f, f.path, "collection", exampleCollection)
		return true
	}
	if l.Words.Has("collection") {
		d.Errorf(l.Words["source"], CodeConflict, "a loop has a collection or a source, not both; remove one of them")
	}
	l.StatsOnly = l.StatsOnly || !l.Words.Has("results")
	return true
}

// exampleCollection is an example for a loop with neither a collection nor a source.
const exampleCollection = `collection: "{{ patient_ids }}"`

// readCollection reads the collection of a loop, and reports constants that would certainly fail when the step
// runs.
func readCollection(d *decoder, n *yaml.Node) *Node {
	node := d.valueNode(n)
	switch {
	case d.broken[n]:
		return nil
	case node.Kind == ConstantNode:
		hint := `such as "{{ patient_ids }}"`
		if text, ok := node.Value.(string); ok && NamePattern.MatchString(text) {
			hint = `such as "{{ ` + text + ` }}"`
		}
		d.Errorf(node.Pos, codeWrongType, "collection must be a list, a map or a template that gives one, %s, not %s", hint, describeYAML(n))
		return nil
	case node.Template != nil:
		if _, single := node.Template.SingleProgram(); !single {
			d.Errorf(node.Pos, codeWrongType, "collection must be a list or a map, and text with templates is text; use a single {{ }} that returns a list or a map")
			return nil
		}
	}
	return node
}

// readMaxConcurrency reads max_concurrency; an invalid value counts as omitted. Bounds are checked once it is known
// that the loop is parallel.
func readMaxConcurrency(d *decoder, w written, loop *Loop) {
	if v, ok := d.readInteger(w.node, w.what); ok {
		loop.MaxConcurrency = v
	} else {
		delete(loop.Words, w.name)
	}
}

func readBatch(d *decoder, w written, loop *Loop) {
	n := w.node
	text := n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str" && !strings.Contains(n.Value, "{{")
	switch {
	case text && n.Value == defaultBatch:
	case text && !d.broken[n]:
		d.Errorf(positionOf(n), codeWrongType, "batch must be a whole number or auto, not %s", describeYAML(n))
	default:
		if v, ok := d.readInteger(n, "batch"); ok {
			loop.Batch, loop.AutoBatch = v, false
		}
	}
}

// budget is a failure_budget as written; rate is nil if missing.
type budget struct {
	rate       *float64
	minSamples int
}

var budgetSection = sectionOf(section{name: "failure_budget", prefix: "failure_budget."}, []keyOf[budget]{
	acceptKey(key{name: "rate", doc: "the share of failures, from 0 to 1, above which the loop ends", required: "rate: 0.10"},
		asNumber(func(b *budget, v float64) { b.rate = &v }).from(0).to(1).byRule()),
	acceptKey(key{name: "min_samples", doc: "how many iterations must have ended before the rate counts; default 1000"},
		asInteger(func(b *budget, n int) { b.minSamples = n }).from(0).byRule().or(defaultMinSamples)),
})

// readFailureBudget reads failure_budget; nil without a rate.
func readFailureBudget(d *decoder, n *yaml.Node, places Words) *FailureBudget {
	f, ok := d.readFields(n, budgetSection, budgetSection.sectionTitle())
	if !ok {
		return nil
	}
	f.keyPositions(places, budgetSection.prefix)
	given := budget{minSamples: defaultMinSamples}
	d.readWords(f, &given, at{})
	if given.rate == nil {
		return nil
	}
	return &FailureBudget{Rate: *given.rate, MinSamples: given.minSamples}
}

// shares are the thresholds as written, nil if missing.
type shares struct{ completed, partial *float64 }

var thresholdsSection = sectionOf(section{name: "thresholds", prefix: "thresholds."}, []keyOf[shares]{
	acceptKey(key{name: "completed", doc: "the least share of successful iterations for `completed`; default 0.95"},
		asNumber(func(s *shares, v float64) { s.completed = &v }).from(0).to(1).byRule().or(DefaultCompleted)),
	acceptKey(key{name: "partial_success", doc: "the least share of successful iterations for `partial_success`; default 0.50"},
		asNumber(func(s *shares, v float64) { s.partial = &v }).from(0).to(1).byRule().or(DefaultPartialSuccess)),
})

// readThresholds reads the thresholds. If only one of them is given and it contradicts the default of the other,
// that default follows it.
func readThresholds(d *decoder, n *yaml.Node, t *Thresholds, places Words) {
	f, ok := d.readFields(n, thresholdsSection, thresholdsSection.sectionTitle())
	if !ok {
		return
	}
	f.keyPositions(places, thresholdsSection.prefix)
	var given shares
	d.readWords(f, &given, at{})
	if given.completed != nil {
		t.Completed = *given.completed
		t.PartialSuccess = min(t.PartialSuccess, t.Completed)
	}
	if given.partial != nil {
		t.PartialSuccess = *given.partial
		if f.getValue("completed") == nil {
			t.Completed = max(t.Completed, t.PartialSuccess)
		}
	}
}

// deadLetter is the section dead_letter.
type deadLetter struct{ sink *Sink }

var deadLetterSection = sectionOf(section{name: "dead_letter"}, []keyOf[deadLetter]{
	acceptKey(key{name: "sink", doc: "where each failed iteration is written; `result` is the dead letter", required: innerSink},
		asSection(func(l *deadLetter, s *Sink) { l.sink = s })),
})

func (*deadLetter) section() *section { return deadLetterSection }

func (l *deadLetter) decode(d *decoder, f *fields, where at) bool {
	d.readWords(f, l, where)
	return true
}

// The bounds of a loop: docs/concepts/loops.md.
const (
	// MaxConcurrencyLimit bounds loop.max_concurrency (docs/concepts/loops.md). Temporal rejects more than 2,000
	// open children of one workflow, and their starts and ends wait for one lock.
	MaxConcurrencyLimit = 500
	// MaxBatch bounds loop.batch: the iterations of a batch share one history.
	MaxBatch = 500
)

// sourceSection is the section of the call that provides the elements of a loop:
// docs/concepts/loops.md#elements-from-a-source.
var sourceSection = sectionOf(section{name: "source", prefix: "loop.source.", called: "loop.source", open: true, fields: olderFields}, withCall((*Step).action, []keyOf[Step]{
	acceptKey(key{name: "tool", older: []string{"type"}, doc: "the tool that gives the elements: `http`, `file`, `postgres` or `sqlite`", required: "tool: http"}, asPart[Step](WordTool)),
	rowsKey, whereKey, collectKey, retryKey, limitKey,
}))

// loopSource is the source of a loop while it is decoded.
type loopSource struct{ step Step }

func (*loopSource) section() *section { return sourceSection }

// decode reads a source as a separate step. Its place is loop.source below the step, and its name begins with the
// name of the step.
func (l *loopSource) decode(d *decoder, f *fields, where at) bool {
	l.step = Step{Name: sourceName(where.place), NamePos: f.pos, ownRetry: true}
	if f.getValue("tool") == nil {
		d.needsWord(f, "tool")
		return false
	}
	l.step.Action = readAction(d, f, "loop.source")
	d.readWords(f, &l.step, at{place: l.step.Name, tool: literalTool(l.step.Action)})
	readCallArgs(d, l.step.Action, "loop.source")
	return true
}

// sourceName returns the name of a source, given its place in the file, such as "visit.loop.source".
func sourceName(place string) string {
	return strings.TrimSuffix(place, ".loop"+SourceSuffix) + SourceSuffix
}
