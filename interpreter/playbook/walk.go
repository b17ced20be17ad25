package playbook

import (
	"iter"
	"slices"

	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
)

// Spot is a kind of place of a value in a playbook, which determines the names that its expressions may use
// (docs/concepts/expressions.md#names).
type Spot uint16

// The spots of a playbook.
const (
	AtToolName    Spot = 1 << iota // tool: "{{ … }}", resolved before the run starts
	AtConcurrency                  // concurrency, before the first step
	AtOutput
	AtCollection
	AtField // fields, args and auth of a step's own call
	AtWhen
	AtThen
	AtThenSink
	AtLoopSink
	AtStepSink
	AtVars
	AtNext
	AtWorkbook
	AtStepNotice // on_success and on_failure of a step
	AtRunNotice  // notices of the playbook, and notify
	AtState      // the name of a step's state, before its first request

	AtNotices = AtStepNotice | AtRunNotice
	AtSinks   = AtThenSink | AtLoopSink | AtStepSink | AtNotices
	AtAfter   = AtWhen | AtThen | AtSinks | AtVars | AtNext
	AtRunTime = AtOutput | AtCollection | AtField | AtWorkbook | AtAfter
	AtBegin   = AtToolName | AtConcurrency // before any step has run
)

// StepSpot is a spot of a step; Step is nil for output and the workbook.
type StepSpot struct {
	Spot   Spot
	Step   *Step
	Action *Action // the call that the value belongs to, nil for none
	Field  string  // the field of the tool with the value, "" for words of the language
	Row    bool    // whether the value is evaluated for each row
}

// CallAt is a call with its spot; Sink is nil for steps and the workbook.
type CallAt struct {
	StepSpot
	Sink *Sink
}

// SectionName returns the name of the section that contains the call.
func (a CallAt) SectionName() string {
	switch {
	case a.Spot&AtNotices != 0:
		return noticeSection.name
	case a.Sink != nil:
		return sinkSection.name
	case a.Step == nil:
		return workbookSection.name
	}
	return stepSection.name
}

// AllCalls returns all calls of the playbook in file order.
func (pb *Playbook) AllCalls() []CallAt {
	all := lists.Map(pb.Workbook, func(entry *Action) CallAt { return CallAt{StepSpot: StepSpot{Spot: AtWorkbook, Action: entry}} })
	for _, step := range pb.CallSteps() {
		if step.Action != nil {
			all = append(all, CallAt{StepSpot: StepSpot{Spot: AtField, Step: step, Action: step.Action}})
		}
		all = append(all, step.SinkCalls()...)
		for _, sink := range slices.Concat(step.Notices(false), step.Notices(true)) {
			all = append(all, CallAt{StepSpot: StepSpot{Spot: AtStepNotice, Step: step, Action: sink.Action}, Sink: sink})
		}
	}
	for _, notice := range slices.Concat(pb.OnSuccess, pb.OnFailure, pb.Notify) {
		all = append(all, CallAt{StepSpot: StepSpot{Spot: AtRunNotice, Action: notice.Sink.Action}, Sink: notice.Sink})
	}
	return all
}

// ActionAt returns the action of the step with a name, or of the sink at a place such as
// "fetch.retry[1].then.sink"; nil for none.
func (pb *Playbook) ActionAt(place string) *Action {
	for _, at := range pb.AllCalls() {
		if at.Sink != nil && at.Sink.Place == place || at.Sink == nil && at.Step != nil && at.Step.Name == place {
			return at.Action
		}
	}
	return nil
}

// SinkCalls returns the sinks of a step, in every place that may have one.
func (s *Step) SinkCalls() []CallAt {
	var all []CallAt
	add := func(at Spot, sinks ...*Sink) {
		for _, sink := range sinks {
			if sink != nil && sink.Action != nil {
				all = append(all, CallAt{StepSpot: StepSpot{Spot: at, Step: s, Action: sink.Action}, Sink: sink})
			}
		}
	}
	for _, policy := range s.Retry {
		add(AtThenSink, policy.Then.PageSinks...)
		add(AtThenSink, policy.Then.Sinks...)
	}
	if s.Loop != nil {
		add(AtLoopSink, s.Loop.Sinks...)
		add(AtLoopSink, s.Loop.DeadLetter)
	}
	add(AtStepSink, s.Sinks...)
	return all
}

// ValueAt is a templated value with its spot.
type ValueAt struct {
	StepSpot
	Node *Node
}

// AllValues returns all templated values of the playbook.
func (pb *Playbook) AllValues() []ValueAt {
	var all []ValueAt
	some := func(at StepSpot, nodes ...*Node) {
		for _, node := range nodes {
			if node != nil {
				all = append(all, ValueAt{at, node})
			}
		}
	}
	for _, call := range pb.AllCalls() {
		at := call.StepSpot
		some(StepSpot{Spot: AtToolName, Step: at.Step, Action: at.Action}, at.Action.Tool)
		for _, field := range at.Action.Fields {
			inField := at
			inField.Field = field.Key
			some(inField, field.Value)
		}
		some(at, at.Action.Args, at.Action.Auth)
		inRow := at
		inRow.Row = true
		some(inRow, at.Action.Rows.FieldNodes()...)
		if limit := at.Action.RateLimit; limit != nil {
			some(at, limit.Key, limit.Shared)
		}
		for _, policy := range at.Action.Retry {
			some(at, policy.When, policy.StopWhen)
		}
	}
	for _, step := range pb.CallSteps() {
		if step.Loop != nil {
			some(StepSpot{Spot: AtCollection, Step: step}, step.Loop.Collection)
		}
		some(StepSpot{Spot: AtThen, Step: step, Row: true}, step.Where)
		if i := step.Incremental; i != nil {
			some(StepSpot{Spot: AtThen, Step: step}, i.Token)
			some(StepSpot{Spot: AtState, Step: step}, i.State, i.InitialTemplate, i.Until)
		}
		for _, policy := range step.Retry {
			some(StepSpot{Spot: AtWhen, Step: step}, policy.When, policy.StopWhen)
			some(StepSpot{Spot: AtThen, Step: step}, policy.Then.ValueNodes()...)
		}
		some(StepSpot{Spot: AtVars, Step: step}, entryValues(step.Vars)...)
		for _, route := range step.Next {
			some(StepSpot{Spot: AtNext, Step: step}, route.When)
			for _, target := range route.Targets {
				some(StepSpot{Spot: AtNext, Step: step}, target.Args)
			}
		}
	}
	some(StepSpot{Spot: AtOutput}, pb.Output)
	if pb.Concurrency != nil {
		some(StepSpot{Spot: AtConcurrency}, pb.Concurrency.Name())
	}
	return all
}

func entryValues(entries []*Entry) []*Node {
	return lists.Map(entries, func(entry *Entry) *Node { return entry.Value })
}

// AllNodes iterates over the node and all nodes in it, in file order.
func (n *Node) AllNodes() iter.Seq[*Node] {
	return func(yield func(*Node) bool) { n.visitAll(yield) }
}

// visitAll passes the node and all nodes in it to yield, and stops when yield returns false.
func (n *Node) visitAll(yield func(*Node) bool) bool {
	if n == nil {
		return true
	}
	return yield(n) &&
		!slices.ContainsFunc(n.Items, func(item *Node) bool { return !item.visitAll(yield) }) &&
		!slices.ContainsFunc(n.Entries, func(entry *Entry) bool { return !entry.Value.visitAll(yield) })
}

// Templates iterates over the scalars of AllNodes that contain a template.
func (n *Node) Templates() iter.Seq[*Node] {
	return func(yield func(*Node) bool) {
		n.visitAll(func(one *Node) bool { return one.Template == nil || yield(one) })
	}
}

// NextCalls iterates over the next_call sections of the step's policies.
func (s *Step) NextCalls() iter.Seq[*NextCall] {
	return func(yield func(*NextCall) bool) {
		for _, policy := range s.Retry {
			if next := policy.Then.NextCall; next != nil && !yield(next) {
				return
			}
		}
	}
}

// CollectSections iterates over the collect sections of the step's policies, and then that of the step itself.
func (s *Step) CollectSections() iter.Seq[*Collect] {
	return func(yield func(*Collect) bool) {
		for _, policy := range s.Retry {
			if collect := policy.Then.Collect; collect != nil && !yield(collect) {
				return
			}
		}
		if s.Collect != nil {
			yield(s.Collect)
		}
	}
}

// ReadsRows reports whether the step selects rows of a page, or keeps a state about them: then lost pages would be
// missing in a table.
func (s *Step) ReadsRows() bool { return s.Rows != nil || s.Where != nil || s.Incremental != nil }

// BatchPath returns where a source of tool file, which is read in batches, has its rows in JSON and XML; nil if the whole is a list. It returns false for a step that reads
// a file at once: one that is no source, or whose policies request the next page or, without a field batch, read the response.
func (s *Step) BatchPath(action *Action) (path []string, reads bool) {
	if !s.IsSource() {
		return nil, false
	}
	for _, policy := range s.Retry {
		if policy.Then.NextCall != nil {
			return nil, false
		}
		for _, node := range []*Node{policy.When, policy.StopWhen} {
			if action.Field(FieldBatch) == nil && node.UsesAny("response", "page", "this", "data", DefaultInto) {
				return nil, false
			}
		}
	}
	var keys []any
	switch {
	case s.Rows != nil:
		keys = s.Rows.Keys
	case s.Collect != nil && s.Collect.Path != "":
		keys, _ = expression.ParsePattern(s.Collect.Path) // the path was checked
	}
	for _, key := range keys {
		name, isName := key.(string)
		if !isName {
			_, isAll := key.(expression.AllOf)
			return path, isAll
		}
		path = append(path, name)
	}
	return path, true
}

// PagesCollect returns the collect for pages whose policy has none, nil for none: that of the step. If ReadsRows is
// true, pages are collected without one, with the strategy of the policies that have one, unless they are written
// page by page.
// The rows of a source's pages are elements, so they are always collected.
func (s *Step) PagesCollect() *Collect {
	switch {
	case s.Collect != nil:
		return s.Collect
	case s.IsSource():
		return &Collect{Pos: s.NamePos, Strategy: Append, Into: DefaultInto, Lists: s.Rows == nil}
	case !s.ReadsRows():
		return nil
	}
	implied, pages := Collect{Strategy: Append, Into: DefaultInto}, s.Incremental != nil && s.Incremental.Step != ""
	for _, policy := range s.Retry {
		then := &policy.Then
		switch {
		case len(then.PageSinks) > 0, then.Collect != nil && s.Rows == nil:
			return nil
		case then.Collect != nil:
			implied = *then.Collect
		}
		pages = pages || then.NextCall != nil
	}
	if !pages {
		return nil
	}
	return &implied
}

// SinkPlaces returns the places of all sinks and notices, in file order.
func (pb *Playbook) SinkPlaces() []string {
	sinks := lists.Pick(pb.AllCalls(), func(call CallAt) (*Sink, bool) { return call.Sink, call.Sink != nil })
	return lists.Map(sinks, func(sink *Sink) string { return sink.Place })
}

// IsNoticeName reports whether a name is one that only notices of the run have.
func (at StepSpot) IsNoticeName(name string) bool {
	return at.Spot == AtRunNotice && slices.Contains(NoticeNames, name)
}
