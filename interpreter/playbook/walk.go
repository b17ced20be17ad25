package playbook

import (
	"iter"
	"slices"

	"reprise/interpreter/lists"
	"reprise/interpreter/source"
)

// spot says where in a playbook a value is; which names an expression may
// use depends on it (docs/concepts/expressions.md#names).
type spot uint16

const (
	atToolName    spot = 1 << iota // tool: "{{ … }}", resolved before the run starts
	atConcurrency                  // concurrency, before the first step
	atOutput
	atCollection
	atField // fields, args and auth of a step's own call
	atWhen
	atThen
	atThenSink
	atLoopSink
	atStepSink
	atVars
	atNext
	atWorkbook
	atStepNotice // on_success and on_failure of a step
	atRunNotice  // those of the playbook, and notify
	atState      // the name of a step's state, before its first request

	atNotices = atStepNotice | atRunNotice
	atSinks   = atThenSink | atLoopSink | atStepSink | atNotices
	atAfter   = atWhen | atThen | atSinks | atVars | atNext
	inLoop    = atField | atWhen | atThen | atThenSink | atLoopSink
	atRunTime = atOutput | atCollection | atField | atWorkbook | atAfter
	atBegin   = atToolName | atConcurrency // no step has run
	allSpots  = atRunTime | atBegin | atState
)

// site is one spot of one step; step is nil for output and the workbook.
type site struct {
	spot   spot
	step   *Step
	action *Action // the call that the value belongs to, nil elsewhere
	field  string  // the field of the call's tool that the value is, "" for words of the language
}

// actionAt is an action with its site; sink is nil for steps and the workbook.
type actionAt struct {
	site
	sink *Sink
}

// actions are all calls of the playbook in the order of the file.
func (pb *Playbook) actions() []actionAt {
	all := lists.Map(pb.Workbook, func(entry *Action) actionAt { return actionAt{site: site{spot: atWorkbook, action: entry}} })
	for _, step := range pb.Steps {
		if step.Action != nil {
			all = append(all, actionAt{site: site{spot: atField, step: step, action: step.Action}})
		}
		all = append(all, step.sinks()...)
		for _, sink := range slices.Concat(step.Notices(false), step.Notices(true)) {
			all = append(all, actionAt{site: site{spot: atStepNotice, step: step, action: sink.Action}, sink: sink})
		}
	}
	for _, notice := range slices.Concat(pb.OnSuccess, pb.OnFailure, pb.Notify) {
		all = append(all, actionAt{site: site{spot: atRunNotice, action: notice.Sink.Action}, sink: notice.Sink})
	}
	return all
}

// ActionAt is the action of the step with a name, or of the sink at a place such as
// "fetch.retry[1].then.sink"; nil for none.
func (pb *Playbook) ActionAt(place string) *Action {
	for _, at := range pb.actions() {
		if at.sink != nil && at.sink.Place == place || at.sink == nil && at.step != nil && at.step.Name == place {
			return at.action
		}
	}
	return nil
}

// sinks are the sinks of a step, at every place that may have one.
func (s *Step) sinks() []actionAt {
	var all []actionAt
	add := func(at spot, sink *Sink) {
		if sink != nil && sink.Action != nil {
			all = append(all, actionAt{site: site{spot: at, step: s, action: sink.Action}, sink: sink})
		}
	}
	for _, policy := range s.Retry {
		add(atThenSink, policy.Then.PerIteration)
		add(atThenSink, policy.Then.Sink)
	}
	if s.Loop != nil {
		add(atLoopSink, s.Loop.Sink)
		add(atLoopSink, s.Loop.DeadLetter)
	}
	add(atStepSink, s.Sink)
	return all
}

// valueAt is a templated value with its site.
type valueAt struct {
	site
	node *Node
}

// values are all templated values of the playbook.
func (pb *Playbook) values() []valueAt {
	var all []valueAt
	some := func(at site, nodes ...*Node) {
		for _, node := range nodes {
			if node != nil {
				all = append(all, valueAt{at, node})
			}
		}
	}
	for _, call := range pb.actions() {
		at := call.site
		some(site{spot: atToolName, step: at.step, action: at.action}, at.action.Tool)
		for _, field := range at.action.Fields {
			inField := at
			inField.field = field.Key
			some(inField, field.Value)
		}
		some(at, at.action.Args, at.action.Auth)
		if limit := at.action.RateLimit; limit != nil {
			some(at, limit.Key, limit.Shared)
		}
		for _, policy := range at.action.Retry {
			some(at, policy.When, policy.StopWhen)
		}
	}
	for _, step := range pb.Steps {
		if step.Loop != nil {
			some(site{spot: atCollection, step: step}, step.Loop.Collection)
		}
		if i := step.Incremental; i != nil {
			some(site{spot: atThen, step: step}, i.Token)
			some(site{spot: atState, step: step}, i.State)
		}
		for _, policy := range step.Retry {
			some(site{spot: atWhen, step: step}, policy.When, policy.StopWhen)
			some(site{spot: atThen, step: step}, policy.Then.nodes()...)
		}
		some(site{spot: atVars, step: step}, entryValues(step.Vars)...)
		for _, route := range step.Next {
			some(site{spot: atNext, step: step}, route.When)
			for _, target := range route.Targets {
				some(site{spot: atNext, step: step}, target.Args)
			}
		}
	}
	some(site{spot: atOutput}, pb.Output)
	if pb.Concurrency != nil {
		some(site{spot: atConcurrency}, pb.Concurrency.Name())
	}
	return all
}

func entryValues(entries []*Entry) []*Node {
	return lists.Map(entries, func(entry *Entry) *Node { return entry.Value })
}

// All iterates over the node and those below it, in the order of the file.
func (n *Node) All() iter.Seq[*Node] {
	return func(yield func(*Node) bool) { n.visit(yield) }
}

// visit is All of a part; false says that no more is wanted.
func (n *Node) visit(yield func(*Node) bool) bool {
	if n == nil {
		return true
	}
	return yield(n) &&
		!slices.ContainsFunc(n.Items, func(item *Node) bool { return !item.visit(yield) }) &&
		!slices.ContainsFunc(n.Entries, func(entry *Entry) bool { return !entry.Value.visit(yield) })
}

// Templates iterates over the scalars of All that hold a template.
func (n *Node) Templates() iter.Seq[*Node] {
	return func(yield func(*Node) bool) {
		n.visit(func(one *Node) bool { return one.Template == nil || yield(one) })
	}
}

// nextCalls iterates over what the policies of the step change in the next request.
func (s *Step) nextCalls() iter.Seq[*NextCall] {
	return func(yield func(*NextCall) bool) {
		for _, policy := range s.Retry {
			if next := policy.Then.NextCall; next != nil && !yield(next) {
				return
			}
		}
	}
}

// Collects iterates over what the policies of the step collect.
func (s *Step) Collects() iter.Seq[*Collect] {
	return func(yield func(*Collect) bool) {
		for _, policy := range s.Retry {
			if collect := policy.Then.Collect; collect != nil && !yield(collect) {
				return
			}
		}
	}
}

// start is where an action begins: its tool, else the action itself.
func (a *Action) start() source.Position {
	if a.Tool != nil {
		return a.Tool.Pos
	}
	return a.Pos
}

// SinkPlaces are the places of all sinks and notices, in the order of the file.
func (pb *Playbook) SinkPlaces() []string {
	sinks := lists.Pick(pb.actions(), func(call actionAt) (*Sink, bool) { return call.sink, call.sink != nil })
	return lists.Map(sinks, func(sink *Sink) string { return sink.Place })
}
