package playbook

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"reprise/interpreter/expression"
	"reprise/interpreter/statement"
)

// attachStatements parses the SQL of every statement field once, so that nothing has to parse it again during a
// run. Package check reports its problems. The dialect depends on the literal name of the tool.
func attachStatements(pb *Playbook) {
	for _, call := range pb.AllCalls() {
		attachStatement(call.Action)
		if from := call.Action.Field(FieldFrom).AsCall(); from != nil {
			attachStatement(from)
		}
	}
}

func attachStatement(action *Action) {
	node := action.Field(FieldStatement)
	if node == nil || node.Raw == "" {
		return
	}
	name, _ := action.ToolName()
	dialect := statement.Dialect(cmp.Or(TraitsOf(name).Dialect, string(statement.Postgres)))
	if parsed, problems := statement.Parse(node.Raw, dialect); !HasErrors(problems) {
		node.statement = parsed
	}
}

// HasErrors reports whether any problem is not just a warning.
func HasErrors(problems []statement.Problem) bool {
	return slices.ContainsFunc(problems, func(p statement.Problem) bool { return !p.Warning })
}

// Statement returns the parsed SQL of a statement field, nil for other nodes.
func (n *Node) Statement() *statement.Statement {
	if n == nil {
		return nil
	}
	return n.statement
}

// RenderStatement evaluates the parameters of a statement, in order. The error is always an *EvalError.
func (n *Node) RenderStatement(scope expression.Scope, b *expression.Budget) ([]any, error) {
	params, err := n.statement.Render(scope, b)
	if err != nil {
		return nil, n.evalError(err)
	}
	return params, nil
}

// RenderParam evaluates one parameter of a statement. The error is always an
// *EvalError.
func (n *Node) RenderParam(i int, scope expression.Scope, b *expression.Budget) (any, error) {
	param, err := n.statement.RenderParam(i, scope, b)
	if err != nil {
		return nil, n.evalError(err)
	}
	return param, nil
}

// RenderKey renders a name that several runs share. No template in it may be nil, because a missing id would
// silently give another name. The error is always an *EvalError.
func (n *Node) RenderKey(scope expression.Scope, b *expression.Budget) (any, error) {
	if n.Template != nil {
		for _, segment := range n.Template.Segments() {
			if segment.Program == nil {
				continue
			}
			value, err := segment.Program.Eval(scope, b)
			if err != nil {
				break // Render reports it with its position
			}
			if value == nil {
				return nil, n.missingError(segment, scope, "a key")
			}
		}
	}
	return n.Render(scope, b)
}

// renderWithout is RenderKey, but returns text in which expressions with the element are not evaluated. The error
// is always an *EvalError.
func (n *Node) renderWithout(element string, scope expression.Scope, b *expression.Budget) (string, error) {
	if n.Template == nil || element == "" || !n.UsesAny(element) {
		value, err := n.RenderKey(scope, b)
		return expression.Text(value), err
	}
	var text strings.Builder
	for _, segment := range n.Template.Segments() {
		switch {
		case segment.Program == nil:
			text.WriteString(segment.Text)
			continue
		case slices.ContainsFunc(segment.Program.Refs(), func(ref expression.Ref) bool { return ref.Root == element }):
			fmt.Fprintf(&text, "{{ %s }}", strings.TrimSpace(segment.Program.Source()))
			continue
		}
		value, err := segment.Program.Eval(scope, b)
		switch {
		case err != nil:
			return "", &EvalError{Pos: n.Position(segment.Start), Message: n.evalError(err).Message}
		case value == nil:
			return "", n.missingError(segment, scope, "a key")
		}
		text.WriteString(expression.Text(value))
	}
	return text.String(), nil
}

// missingError returns the error about a template whose value is nil.
func (n *Node) missingError(segment expression.Segment, scope expression.Scope, what string) *EvalError {
	return &EvalError{
		Pos: n.Position(segment.Start),
		Message: fmt.Sprintf("{{ %s }} is nil%s; every part of %s needs a value",
			strings.TrimSpace(segment.Program.Source()), listUnder(segment.Program, scope), what),
	}
}

// listUnder explains why an expression is nil if it reads a member of a list; "" otherwise.
func listUnder(program *expression.Program, scope expression.Scope) string {
	refs := program.Refs()
	if len(refs) != 1 || !refs[0].Bare {
		return ""
	}
	if list := refs[0].ListUnder(scope); list != "" {
		return ", as " + list
	}
	return ""
}

// mergeMaps merges the entries of overlay over those of base; either may be nil.
func mergeMaps(base, overlay *Node) *Node {
	switch {
	case base == nil:
		return overlay
	case overlay == nil:
		return base
	}
	merged := &Node{Pos: overlay.Pos, Entries: slices.Clone(overlay.Entries)}
	for _, entry := range base.Entries {
		if overlay.Get(entry.Key) == nil {
			merged.Entries = append(merged.Entries, entry)
		}
	}
	return merged
}

// CallNodes returns all values that are evaluated where the step's calls run, which for a loop is in its child
// workflows. The collection, vars, next and the step's own sinks are evaluated elsewhere.
func (pb *Playbook) CallNodes(step *Step) []*Node {
	actions := []*Action{step.Action}
	if entry := pb.WorkbookEntry(step.Action); entry != nil {
		actions = append(actions, entry)
	}
	var nodes []*Node
	for _, policy := range step.Retry {
		nodes = append(append(nodes, policy.When, policy.StopWhen), policy.Then.ValueNodes()...)
	}
	nodes = append(nodes, step.Where)
	if step.Incremental != nil {
		nodes = append(nodes, step.Incremental.Token, step.Incremental.State, step.Incremental.InitialTemplate, step.Incremental.Until)
	}
	for _, sink := range step.SinkCalls() {
		if sink.Spot != AtStepSink || step.Loop == nil {
			actions = append(actions, sink.Action)
		}
	}
	for _, action := range actions {
		nodes = append(nodes, action.ValueNodes()...)
	}
	return slices.DeleteFunc(nodes, func(n *Node) bool { return n == nil })
}

// StepSinkNodes returns the values of the sinks of the step itself.
func (s *Step) StepSinkNodes() (nodes []*Node) {
	for _, sink := range s.Sinks {
		nodes = append(nodes, sink.ValueNodes()...)
	}
	return nodes
}

// ValueNodes returns the values of a sink.
func (s *Sink) ValueNodes() []*Node {
	return slices.DeleteFunc(s.Action.ValueNodes(), func(n *Node) bool { return n == nil })
}

// ValueNodes returns the templated values of the action, nil for missing ones.
func (a *Action) ValueNodes() []*Node {
	nodes := append(entryValues(a.Fields), a.Tool, a.Args, a.Auth)
	nodes = append(nodes, a.Rows.FieldNodes()...)
	if a.RateLimit != nil {
		nodes = append(nodes, a.RateLimit.Key, a.RateLimit.Shared)
	}
	for _, policy := range a.Retry {
		nodes = append(nodes, policy.When, policy.StopWhen)
	}
	return nodes
}

// WorkbookEntry returns the entry that an action of tool workbook calls, nil for other tools.
func (pb *Playbook) WorkbookEntry(action *Action) *Action {
	if name, ok := action.ToolName(); !ok || name != WorkbookTool {
		return nil
	}
	node := action.Field("name")
	if node == nil {
		return nil
	}
	return pb.Action(expression.Text(node.Value))
}

// ResolveAction returns the action that a call really makes: for tool workbook, the named entry with the call's own args,
// auth and timeout merged over those of the entry.
func (pb *Playbook) ResolveAction(action *Action) *Action {
	entry := pb.WorkbookEntry(action)
	if entry == nil {
		return action
	}
	merged := *entry
	merged.Args = mergeMaps(entry.Args, action.Args)
	if action.Auth != nil {
		merged.Auth = action.Auth
	}
	if action.Timeout != 0 {
		merged.Timeout = action.Timeout
	}
	merged.RateLimit, merged.Rows = action.RateLimit, action.Rows
	return &merged
}

// WorkloadReads is the part of the workload that expressions of a playbook read.
type WorkloadReads struct {
	// Whole says that an expression reads all of it.
	Whole bool
	// Keys are the keys of the playbook's workload, and those that expressions use and only a run provides. Sorted.
	Keys []string
}

// WorkloadReads returns what all expressions of the playbook read.
func (pb *Playbook) WorkloadReads() WorkloadReads {
	reads, keys := WorkloadReads{}, map[string]bool{}
	for key := range pb.Workload {
		keys[key] = true
	}
	for _, at := range pb.AllValues() {
		for _, ref := range at.Node.Refs() {
			if at.IsNoticeName(ref.Root) {
				continue
			}
			switch path := pb.DataPath(ref); {
			case path[0] != "workload":
			case len(path) == 1:
				reads.Whole = true
			default:
				keys[path[1]] = true
			}
		}
	}
	reads.Keys = slices.Sorted(maps.Keys(keys))
	return reads
}

// CodeTexts returns the texts of all fields with the name code, in order and without duplicates, which tools may run as
// programs.
func (pb *Playbook) CodeTexts() []string {
	var codes []string
	for _, call := range pb.AllCalls() {
		if call.Action.Inline != nil {
			codes = append(codes, call.Action.Inline.CodeTexts()...)
		}
		for _, entry := range call.Action.Fields {
			if code, ok := entry.Value.Value.(string); ok && entry.Key == "code" {
				codes = append(codes, code)
			}
		}
	}
	slices.Sort(codes)
	return slices.Compact(codes)
}

// IsDataRoot reports whether a name is that of data of the run.
func IsDataRoot(name string) bool { return name == "workload" || name == "vars" || name == "steps" }

// DataPath returns the path of a reference in the data of a run, below workload, vars or steps, up to its first
// computed member.
func (pb *Playbook) DataPath(ref expression.Ref) []string {
	members := ConstantMembers(ref.Path)
	switch {
	case IsDataRoot(ref.Root):
		return pb.withoutSecret(append([]string{ref.Root}, members...))
	case pb.Step(ref.Root) != nil:
		return pb.withoutSecret(append([]string{"steps", ref.Root, "data"}, members...))
	}
	return append([]string{"workload", ref.Root}, members...)
}

// ConstantMembers returns the path of a reference up to the first index.
func ConstantMembers(path []any) []string {
	var members []string
	for _, key := range path {
		name, ok := key.(string)
		if !ok {
			break
		}
		members = append(members, name)
	}
	return members
}

// ValueNodes returns the values of then itself, without those of its sinks.
func (t *Then) ValueNodes() []*Node {
	nodes := []*Node{t.Result, t.Fail, t.Type, t.RetryAfter}
	if t.NextCall != nil {
		nodes = append(nodes, t.NextCall.ValueNodes()...)
	}
	return nodes
}

// ValueNodes returns the values for the next request, nil for those that it does not change.
func (n *NextCall) ValueNodes() []*Node {
	return []*Node{n.Args, n.Params, n.Headers, n.URL, n.Method, n.Body}
}

// MemberAt returns the member at an index of a path; false if the path is shorter, or has a list index there.
func MemberAt(path []any, i int) (string, bool) {
	if i >= len(path) {
		return "", false
	}
	key, ok := path[i].(string)
	return key, ok
}

// EntryName returns the name of the workbook entry that an action calls; false if it is not literal.
func (a *Action) EntryName() (string, bool) {
	node := a.Field("name")
	if node == nil || !node.IsConstant() {
		return "", false
	}
	name, ok := node.Value.(string)
	return name, ok
}
