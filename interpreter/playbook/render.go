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

// attachStatements parses the SQL of every statement field once, so that
// nothing has to parse it again while a run is open. Its problems are reported
// by Check. The dialect follows the literal name of the tool.
func attachStatements(pb *Playbook) {
	for _, call := range pb.actions() {
		node := call.action.Field(statementField)
		if node == nil || node.Raw == "" {
			continue
		}
		name, _ := call.action.ToolName()
		dialect := statement.Dialect(cmp.Or(TraitsOf(name).Dialect, string(statement.Postgres)))
		if parsed, problems := statement.Parse(node.Raw, dialect); !hasErrors(problems) {
			node.statement = parsed
		}
	}
}

const statementField = "statement"

func hasErrors(problems []statement.Problem) bool {
	return slices.ContainsFunc(problems, func(p statement.Problem) bool { return !p.Warning })
}

// Statement is the parsed SQL of a statement field, nil for other nodes.
func (n *Node) Statement() *statement.Statement {
	if n == nil {
		return nil
	}
	return n.statement
}

// RenderStatement evaluates the parameters of a statement, in order. The error
// is always an *EvalError.
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

// RenderKey renders the name of what is shared, in which no template may be nil: a
// missing id would quietly mean something else. The error is always an *EvalError.
func (n *Node) RenderKey(scope expression.Scope, b *expression.Budget) (any, error) {
	if n.Template != nil {
		for _, segment := range n.Template.Segments() {
			if segment.Program == nil {
				continue
			}
			value, err := segment.Program.Eval(scope, b)
			if err != nil {
				break // Render reports it with its place
			}
			if value == nil {
				return nil, n.missing(segment, scope, "a key")
			}
		}
	}
	return n.Render(scope, b)
}

// RenderWithout is RenderKey as text, in which expressions that name the element stay as they
// are written. The error is always an *EvalError.
func (n *Node) RenderWithout(element string, scope expression.Scope, b *expression.Budget) (string, error) {
	if n.Template == nil || element == "" || !n.Names(element) {
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
			return "", n.missing(segment, scope, "a key")
		}
		text.WriteString(expression.Text(value))
	}
	return text.String(), nil
}

// missing is the error of a template that gave nil.
func (n *Node) missing(segment expression.Segment, scope expression.Scope, what string) *EvalError {
	return &EvalError{
		Pos: n.Position(segment.Start),
		Message: fmt.Sprintf("{{ %s }} is nil%s; every part of %s must be there",
			strings.TrimSpace(segment.Program.Source()), listUnder(segment.Program, scope), what),
	}
}

// listUnder says why an expression that is one reference is nil, where a list
// was asked for a member; "" else.
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

// mergeMaps lays the entries of one map node over another; either may be nil.
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

// CallNodes are all values that are evaluated where the step's calls run: in
// the child workflows of a loop. The collection, vars, next and the step's own
// sink are evaluated outside.
func (pb *Playbook) CallNodes(step *Step) []*Node {
	actions := []*Action{step.Action}
	if entry := pb.workbookEntry(step.Action); entry != nil {
		actions = append(actions, entry)
	}
	var nodes []*Node
	for _, policy := range step.Retry {
		nodes = append(append(nodes, policy.When, policy.StopWhen), policy.Then.nodes()...)
	}
	if step.Incremental != nil {
		nodes = append(nodes, step.Incremental.Token, step.Incremental.State)
	}
	for _, sink := range step.sinks() {
		if sink.spot != atStepSink || step.Loop == nil {
			actions = append(actions, sink.action)
		}
	}
	for _, action := range actions {
		nodes = append(nodes, action.nodes()...)
	}
	return slices.DeleteFunc(nodes, func(n *Node) bool { return n == nil })
}

// StepSinkNodes are the values of the sink that is on the step itself.
func (s *Step) StepSinkNodes() []*Node {
	if s.Sink == nil {
		return nil
	}
	return s.Sink.Nodes()
}

// Nodes are the values of a sink.
func (s *Sink) Nodes() []*Node {
	return slices.DeleteFunc(s.Action.nodes(), func(n *Node) bool { return n == nil })
}

func (a *Action) nodes() []*Node {
	nodes := append(entryValues(a.Fields), a.Tool, a.Args, a.Auth)
	if a.RateLimit != nil {
		nodes = append(nodes, a.RateLimit.Key, a.RateLimit.Shared)
	}
	for _, policy := range a.Retry {
		nodes = append(nodes, policy.When, policy.StopWhen)
	}
	return nodes
}

// workbookEntry is the entry that an action of tool workbook calls, nil for
// other tools.
func (pb *Playbook) workbookEntry(action *Action) *Action {
	if name, ok := action.ToolName(); !ok || name != WorkbookTool {
		return nil
	}
	node := action.Field("name")
	if node == nil {
		return nil
	}
	return pb.Action(expression.Text(node.Value))
}

// Resolve gives the action a step's call really makes: a step of tool workbook
// uses the entry it names, with its own args, auth and timeout laid over the
// entry's.
func (pb *Playbook) Resolve(action *Action) *Action {
	entry := pb.workbookEntry(action)
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
	merged.RateLimit = action.RateLimit
	return &merged
}

// WorkloadReads is what expressions of a playbook can see of its workload.
type WorkloadReads struct {
	// Whole says that one of them sees all of it.
	Whole bool
	// Keys are those that the playbook's workload has, and those that expressions name
	// and only a run supplies. Sorted.
	Keys []string
}

// WorkloadReads walks over the whole playbook.
func (pb *Playbook) WorkloadReads() WorkloadReads {
	reads, keys := WorkloadReads{}, map[string]bool{}
	for key := range pb.Workload {
		keys[key] = true
	}
	for _, at := range pb.values() {
		for _, ref := range at.node.Refs() {
			if at.named(ref.Root) {
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
