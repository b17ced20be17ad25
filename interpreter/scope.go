package interpreter

import (
	"time"

	"reprise/interpreter/expression"
	"reprise/interpreter/partition"
	"reprise/interpreter/playbook"
)

// WithStep returns data with the result of a step, for later expressions.
func (d Data) WithStep(name string, result CallResult) Data {
	steps := expression.MergeMaps(d.Steps.Data, map[string]any{name: nil})
	steps.(map[string]any)[name] = result.Envelope() // Merge of maps gives a map
	d.Steps = expression.Of(steps)
	return d
}

// RunInfo identifies a run; it is constant during the run, and kept in workflow history. A reprocess has the
// RunInfo of the original run.
type RunInfo struct {
	WorkflowID string    `json:"workflow_id"` // execution_id in expressions
	RunID      string    `json:"run_id"`      // that of the first history of the run
	StartedAt  time.Time `json:"started_at"`
	Playbook   string    `json:"playbook"`
	// ScheduledAt is the time that a schedule started the run for; zero for other runs.
	ScheduledAt time.Time `json:"scheduled_at,omitzero"`
	// Round numbers the reprocesses of a run, from 1; 0 is the run itself.
	Round int `json:"round,omitempty"`
	// Key is the operation key of the call that started the run, from which the keys of its operations are derived;
	// "" if no step started it. Lap distinguishes the runs started by one call; "" for the first.
	Key string `json:"key,omitempty"`
	Lap string `json:"lap,omitempty"`
	// FullRefresh are the steps that read from the initial values of their states instead of their watermarks.
	FullRefresh []string `json:"full_refresh,omitempty"`
	// Partition is the run's partition; nil if its playbook has none.
	Partition *partition.Partition `json:"partition,omitempty"`
}

// Data is what the run has gathered for expressions. Children get a reduced copy (see CaptureData); kept in
// workflow history.
type Data struct {
	Workload expression.Value `json:"workload,omitzero"`
	Vars     expression.Value `json:"vars,omitzero"`
	Steps    expression.Value `json:"steps,omitzero"` // envelopes by step
}

// ElementPosition is the position of an iteration in its loop; kept in workflow history.
type ElementPosition struct {
	Index int `json:"index"` // from 0
	Size  int `json:"size"`  // of the collection; 0 while the source of the loop may return more
}

// Scope resolves the names of an expression (docs/concepts/expressions.md#names): words of the language first, then
// the element, into, steps and workload keys. It is built once per call and not changed; With returns a scope with
// further names.
type Scope struct {
	parent *Scope
	locals map[string]any

	book *playbook.Playbook
	run  RunInfo
	data Data
	// element and position are set inside a loop.
	element  string
	value    any
	position *ElementPosition
}

// NewScope returns the scope of a run.
func NewScope(book *playbook.Playbook, run RunInfo, data Data) *Scope {
	return &Scope{book: book, run: run, data: data}
}

// WithElement returns the scope of one iteration.
func (s *Scope) WithElement(name string, value any, position ElementPosition) *Scope {
	inner := *s.rootScope()
	inner.parent, inner.locals = nil, nil
	inner.element, inner.value, inner.position = name, value, &position
	return &inner
}

// With returns a scope with names that have precedence over those of s.
func (s *Scope) With(locals map[string]any) *Scope {
	return &Scope{parent: s, locals: locals}
}

// Playbook returns the playbook of the scope.
func (s *Scope) Playbook() *playbook.Playbook { return s.rootScope().book }

// Element returns the element of the iteration, nil outside a loop.
func (s *Scope) Element() any { return s.rootScope().value }

func (s *Scope) rootScope() *Scope {
	for s.parent != nil {
		s = s.parent
	}
	return s
}

// Lookup implements expression.Scope.
func (s *Scope) Lookup(name string) (any, bool) {
	for ; s.parent != nil; s = s.parent {
		if value, found := s.locals[name]; found {
			return value, true
		}
	}
	return s.lookupRoot(name)
}

func (s *Scope) lookupRoot(name string) (any, bool) {
	switch name {
	case "workload":
		return expression.MapOrEmpty(s.data.Workload.Data), true
	case "vars":
		return expression.MapOrEmpty(s.data.Vars.Data), true
	case "steps":
		return expression.MapOrEmpty(s.data.Steps.Data), true
	case "args":
		return map[string]any{}, true
	case "execution_id":
		return s.run.WorkflowID, true
	case "run":
		return s.run.exprValue(), true
	case playbook.PartitionWord:
		if s.run.Partition != nil {
			return s.run.Partition.ExprValue(), true
		}
	case "_loop":
		return s.loopValue(), s.position != nil
	}
	if s.element != "" && name == s.element {
		return s.value, true
	}
	if s.book != nil && s.book.Step(name) != nil {
		envelope, _ := expression.MapMember(s.data.Steps.Data, name).(map[string]any)
		return envelope["data"], true
	}
	value, found := expression.MapOf(s.data.Workload.Data)[name]
	return value, found
}

// exprValue returns the value of `run` in expressions. Missing members are nil.
func (r RunInfo) exprValue() map[string]any {
	words := map[string]any{"id": r.RunID, "started_at": expression.TimeText(r.StartedAt), "playbook": r.Playbook}
	if !r.ScheduledAt.IsZero() { // the values of other runs stay as they are in their histories
		words["scheduled_at"] = expression.TimeText(r.ScheduledAt)
	}
	return words
}

func (s *Scope) loopValue() any {
	if s.position == nil {
		return nil
	}
	loop := map[string]any{"index": s.position.Index, "count": s.position.Index + 1, "size": s.position.Size}
	if s.position.Size == 0 {
		loop["size"] = nil // the source of the loop has not ended
	}
	return loop
}
