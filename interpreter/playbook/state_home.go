package playbook

import (
	"slices"
	"strings"
	"time"

	"reprise/interpreter/expression"
	"reprise/interpreter/incremental"
	"reprise/interpreter/lists"
	"reprise/interpreter/source"
)

// IncrementalWord is the name of a step's state in its expressions.
const IncrementalWord = "incremental"

// StateHome returns the sink whose destination keeps the state of a step, in the transaction of its rows: the last
// sink that a successful call writes to, otherwise the one for pages, if it is a table whose place does not depend
// on responses. Nil means that Temporal keeps the state.
func (pb *Playbook) StateHome(step *Step) *Sink {
	sink := step.LastSink()
	if sink == nil || sink.Action == nil {
		return nil
	}
	action := pb.ResolveAction(sink.Action)
	if !action.ToolTraits().KeepsStates || action.Field("table") == nil || !step.FixedPlace(action) {
		return nil
	}
	return sink
}

// LastSink returns the last sink that a successful call of the step writes to, nil for none.
func (s *Step) LastSink() *Sink {
	if sinks := s.SuccessSinks(); len(sinks) > 0 {
		return sinks[len(sinks)-1]
	}
	return nil
}

// SuccessSinks returns the sinks that a successful call of the step writes to, in this order.
func (s *Step) SuccessSinks() []*Sink {
	var pages, ends []*Sink
	for _, policy := range s.Retry {
		pages = append(pages, policy.Then.PageSinks...)
		if policy.mayFollowSuccess() {
			ends = append(ends, policy.Then.Sinks...)
		}
	}
	return slices.Concat(pages, ends, s.OwnSinks())
}

// OwnSinks returns the sinks of a step's calls other than those of its policies: the sinks of the step, or of its
// loop.
func (s *Step) OwnSinks() []*Sink {
	if s.Loop != nil {
		return s.Loop.Sinks
	}
	return s.Sinks
}

// AggregateSinks returns the sinks of the step's loop as a whole, nil without a loop.
func (s *Step) AggregateSinks() []*Sink {
	if s.Loop == nil {
		return nil
	}
	return s.Sinks
}

// rowSinks returns the SuccessSinks and the AggregateSinks.
func (s *Step) rowSinks() []*Sink {
	return slices.Concat(s.SuccessSinks(), s.AggregateSinks())
}

// OtherTables returns the tables that permanently get rows of a step, other than the one that keeps its state: each
// once, with name and place as written in the playbook.
func (pb *Playbook) OtherTables(step *Step) []string {
	home, tables := pb.StateHome(step), []string{}
	for _, sink := range step.rowSinks() {
		if sink.Action == nil || pb.ReplacesRows(sink) {
			continue
		}
		action := pb.ResolveAction(sink.Action)
		if !action.writesTable() {
			continue
		}
		if sink != home {
			tables = append(tables, action.tableInPlace(action.Field("table").Raw))
		}
		for _, table := range childTables(action.Field(FieldChildren)) {
			tables = append(tables, action.tableInPlace(table))
		}
	}
	slices.Sort(tables)
	return slices.Compact(tables)
}

// tableInPlace returns a table with the place of the action that writes it, both as written.
func (a *Action) tableInPlace(table string) string {
	words := []string{table, "of", a.Tool.Raw}
	for _, node := range []*Node{a.Auth, a.Field("path")} {
		if node != nil {
			words = append(words, node.Raw)
		}
	}
	return strings.Join(words, " ")
}

// childTables returns the tables for lists in rows, at any depth.
func childTables(children *Node) (tables []string) {
	if children == nil {
		return nil
	}
	for _, child := range children.Entries {
		if table := child.Value.Get("table"); table != nil {
			tables = append(tables, table.Raw)
		}
		tables = append(tables, childTables(child.Value.Get(FieldChildren))...)
	}
	return tables
}

// mayFollowSuccess reports whether a policy can match a success.
func (p *Policy) mayFollowSuccess() bool {
	if p.Then.NextCall != nil || p.Then.Collect != nil {
		return true
	}
	program, ok := p.When.ConditionProgram()
	return !ok || !FailuresOnly(program)
}

// FixedPlace reports whether the destination of a sink of the step does not depend on values that only exist after
// an attempt. A statement determines its destination itself, so it has no fixed place.
func (s *Step) FixedPlace(sink *Action) bool {
	return sink.Field(FieldStatement) == nil && sink.PlaceNaming(s.AttemptNames()...) == nil
}

// FixedAuth reports whether the connection of a sink of the step does not depend on what only exists after an
// attempt.
func (s *Step) FixedAuth(sink *Action) bool {
	return sink.Auth != nil && !sink.Auth.UsesAny(s.AttemptNames()...)
}

// AttemptNames returns the names of values that only exist after an attempt of the step.
func (s *Step) AttemptNames() []string {
	return append(s.CollectedNames(), "response", "error", "this", "page", "_retry", "result", ArgsWord,
		"operation_key", "attempt_key", CallbackWord, IncrementalWord)
}

// PlaceNaming returns the first value that determines where an action writes and uses one of the names, nil for
// none.
func (a *Action) PlaceNaming(names ...string) *Node {
	return lists.First(append([]*Node{a.Tool, a.Auth}, entryValues(a.Fields)...), func(value *Node) bool { return value.UsesAny(names...) })
}

// CollectedNames returns the names of what the calls of the step collect, DefaultInto first.
func (s *Step) CollectedNames() []string {
	names := []string{DefaultInto}
	for collect := range s.CollectSections() {
		if collect.Into != "" {
			names = append(names, collect.Into)
		}
	}
	return names
}

// StateName returns the name of a step's state before a run: with <element> for the element of a loop, and with
// other templates unevaluated.
func (pb *Playbook) StateName(step *Step) string {
	if state := step.Incremental.State; state != nil {
		if state.Template == nil {
			return expression.Text(state.Value)
		}
		return state.Raw
	}
	name := pb.StateGroup(step)
	if step.Loop != nil {
		name += "/<" + step.Loop.Element + ">"
	}
	return name
}

// StateGroup returns the default name of a step's state, without the element of a loop.
func (pb *Playbook) StateGroup(step *Step) string {
	name := pb.Name
	if pb.State != "" {
		name = pb.State
	}
	return name + "/" + step.Name
}

// StateKey returns the key under which visits of a step share a state: the name of the state, in which templates
// with the element are left unevaluated, because a visit includes all of its iterations.
func (pb *Playbook) StateKey(step *Step, scope expression.Scope, b *expression.Budget) (string, error) {
	if step.Incremental.State == nil {
		return pb.StateGroup(step), nil
	}
	element := ""
	if step.Loop != nil {
		element = step.Loop.Element
	}
	return step.Incremental.State.renderWithout(element, scope, b)
}

// KeptState describes a state that runs of a playbook keep.
type KeptState struct {
	Step string // outer/inner for inline playbooks
	Name string // see StateName
	Home *Sink  // nil if Temporal keeps it
	Tool string // of Home
	// Sinks is the number of sinks that a successful call writes to. Without any, the state moves when the run has
	// succeeded.
	Sinks int
	// Inserts is the first sink that would insert rows again which an earlier run has written, nil for none.
	Inserts *Sink
	// Unkeyed is the first sink that inserts rows without a key, which are counted; nil for none.
	Unkeyed *Sink
}

// KeptStates returns the states of a playbook's steps, including those of inline playbooks, in file order.
func (pb *Playbook) KeptStates() []KeptState {
	var all []KeptState
	for _, step := range pb.Steps {
		if step.Action != nil && step.Action.Inline != nil {
			for _, inner := range step.Action.Inline.KeptStates() {
				inner.Step = step.Name + "/" + inner.Step
				all = append(all, inner)
			}
		}
		if step.Incremental == nil {
			continue
		}
		state := KeptState{Step: step.Name, Name: pb.StateName(step), Home: pb.StateHome(step), Sinks: len(step.SuccessSinks()), Inserts: pb.InsertsTwice(step), Unkeyed: pb.InsertsUnkeyed(step)}
		if state.Home != nil {
			state.Tool, _ = pb.ResolveAction(state.Home.Action).ToolName()
		}
		all = append(all, state)
	}
	return all
}

// LiteralTexts returns a literal text, or the texts of a literal list.
func LiteralTexts(value any) []string {
	list, isList := value.([]any)
	if !isList {
		list = []any{value}
	}
	return lists.Pick(list, func(one any) (string, bool) {
		text, isText := one.(string)
		return text, isText
	})
}

// InsertsUnkeyed returns the first sink that inserts rows without a key, for a step that keeps a state; nil for
// none. Rows of a source with tokens are recognized as a whole.
func (pb *Playbook) InsertsUnkeyed(step *Step) *Sink {
	if i := step.Incremental; i == nil || len(i.Key) > 0 || i.Type == incremental.Token {
		return nil
	}
	for _, sink := range step.SuccessSinks() {
		if pb.firstTableSink([]*Sink{sink}, leavesRows) != nil && pb.ResolveAction(sink.Action).Field("key") == nil {
			return sink
		}
	}
	return nil
}

// ArgsWord is the name of the args of a call in expressions.
const ArgsWord = "args"

// Incremental is a step's incremental section: the state that it keeps between runs.
type Incremental struct {
	Pos    source.Position
	Words  Words // keys that the author wrote
	Values Words // positions of their values
	// CursorPath is a dotted path in each row that a page contributes. Token is used instead for sources that
	// return a token; nil otherwise.
	CursorPath string
	Token      *Node
	// InitialValue is nil if a Token has none, or if InitialTemplate gives it for each call; that is nil for a
	// constant value.
	InitialValue    any
	InitialTemplate *Node
	Type            incremental.CursorType
	Format          string // as in incremental.Form, "" for the default of the type
	Lag             incremental.Lag
	Step            string // length of slices, as an amount of add_time; "" for none
	Until           *Node  // end of the last slice; nil for now
	OpenStart       bool   // range_start: open
	Ascending       bool   // row_order: asc
	OnMissing       OnMissing
	Key             []string // nil for that of the sink
	State           *Node    // nil for the default name
	OnConflict      OnConflict
}

// OnMissing says what happens to rows without a cursor.
type OnMissing string

// The values of on_missing; the first is the default.
const (
	MissingFail    OnMissing = "fail"
	MissingInclude OnMissing = "include"
	MissingExclude OnMissing = "exclude"
)

// CursorForm returns the format of the source's cursors.
func (i *Incremental) CursorForm() incremental.Form {
	return incremental.Form{Type: i.Type, Format: i.Format}
}

// InitialCursor returns the cursor from which a step without a state reads; zero if there is none, if it is a token, or
// if it depends on the workload.
func (i *Incremental) InitialCursor() incremental.Cursor {
	if i.InitialValue == nil {
		return incremental.Cursor{}
	}
	initial, err := i.CursorForm().ParseAny(i.InitialValue)
	if err != nil {
		return incremental.Cursor{} // validation has refused it
	}
	return initial
}

// EvalInitial returns the InitialCursor of a call with this scope. The error is an *EvalError.
func (i *Incremental) EvalInitial(scope expression.Scope, b *expression.Budget) (incremental.Cursor, error) {
	if i.InitialTemplate == nil {
		return i.InitialCursor(), nil
	}
	value, err := i.InitialTemplate.Render(scope, b)
	if err != nil {
		return incremental.Cursor{}, err
	}
	initial, err := i.CursorForm().ParseAny(value)
	if err != nil {
		return incremental.Cursor{}, &EvalError{Pos: i.InitialTemplate.Pos, Message: "incremental.initial_value: " + err.Error()}
	}
	return initial, nil
}

// FirstSlice returns the first slice of a call that reads from a cursor; nil if the step does not read in slices. The
// error is an *EvalError.
func (i *Incremental) FirstSlice(from incremental.Cursor, scope expression.Scope, b *expression.Budget, now time.Time) (*incremental.Slice, error) {
	if i.Step == "" {
		return nil, nil
	}
	at, until := i.Values.Place("step", i.Pos), any(i.CursorForm().TimeLike(from, now))
	if i.Until != nil {
		at = i.Until.Pos
		rendered, err := i.Until.Render(scope, b)
		if err != nil {
			return nil, err
		}
		until = rendered
	}
	first, err := i.CursorForm().FirstSlice(from, i.Step, until)
	if err != nil {
		return nil, &EvalError{Pos: at, Message: err.Error()}
	}
	return first, nil
}

// InitialText returns the initial cursor for display, or the template from which it is rendered.
func (i *Incremental) InitialText() expression.Value {
	if i.InitialTemplate != nil {
		return expression.Of(i.InitialTemplate.Raw)
	}
	return i.InitialCursor().Value
}
