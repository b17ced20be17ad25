package interpreter

import (
	"fmt"
	"regexp"
	"slices"

	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
)

// AbsentAtEnd returns warnings about members of a step's result that later steps read although a result of its
// shape does not have them. They are always nil, and a sink would write nothing else
// (docs/concepts/expressions.md#names).
func AbsentAtEnd(step *playbook.Step, result CallResult) []string {
	nodes := routeNodes(step)
	if result.Failed() { // then no vars are set
		nodes = nodes[len(step.Vars):]
	}
	nodes = append(nodes, step.NoticeNodes()...)
	if step.Loop != nil {
		nodes = append(nodes, step.StepSinkNodes()...)
	}
	absent := findAbsences(nodes, func(ref expression.Ref) memberPath {
		switch {
		case step.Secret:
		case ref.Root == "result", ref.Root == "response", ref.Root == step.Name:
			return memberPath{owner: ref.Root, value: result.Data.Data, path: ref.Path, shaped: hasShape(step)}
		case ref.Root == "this" && startsWith(ref.Path, "data"):
			return memberPath{owner: "this.data", value: result.Data.Data, path: ref.Path[1:], shaped: hasShape(step)}
		}
		return memberPath{}
	})
	if step.Loop != nil || step.Secret || result.Failed() {
		return absent
	}
	return append(absent, findAbsences(policyNodes(step), func(ref expression.Ref) memberPath {
		if ref.Root != "response" && ref.Root != "page" {
			return memberPath{}
		}
		return memberPath{owner: ref.Root, value: lastAnswer(step, result.Data.Data), path: ref.Path}
	})...)
}

// policyNodes returns the values of a step's retry that are evaluated for a response.
func policyNodes(step *playbook.Step) []*playbook.Node {
	var nodes []*playbook.Node
	for _, policy := range step.Retry {
		nodes = append(nodes, policy.When, policy.StopWhen)
		if next := policy.Then.NextCall; next != nil {
			nodes = append(nodes, next.ValueNodes()...)
		}
	}
	return nodes
}

// lastAnswer returns the last response in a result: for pages collected unchanged, the last page. It returns nil if
// parts of pages were collected.
func lastAnswer(step *playbook.Step, result any) any {
	collects := false
	for collect := range step.CollectSections() {
		if collect.Path != "" || step.Rows != nil {
			return nil
		}
		collects = true
	}
	if pages, ok := result.([]any); ok && collects && len(pages) > 0 {
		return pages[len(pages)-1]
	}
	return result
}

// AbsentInSinks returns warnings about what sinks read from the result that they write and that is not there:
// members of texts, numbers and booleans, and rows at a path that the result lacks, as an error response with
// status 200 does. The sinks then write nothing.
func AbsentInSinks(sinks []*playbook.Sink, result any) []string {
	var nodes []*playbook.Node
	for _, sink := range sinks {
		nodes = append(nodes, sink.ValueNodes()...)
	}
	of := func(ref expression.Ref) memberPath {
		switch {
		case ref.Root == "result":
			return memberPath{owner: ref.Root, value: result, path: ref.Path}
		case ref.Root == "this" && startsWith(ref.Path, "data"):
			return memberPath{owner: "this.data", value: result, path: ref.Path[1:]}
		}
		return memberPath{}
	}
	absent := findAbsences(nodes, of)
	for _, sink := range sinks {
		if text := rowsMissing(sink.Action.Args, of); text != "" && !slices.Contains(absent, text) {
			absent = append(absent, text)
		}
	}
	return absent
}

// expectsNone matches what an author writes to allow for a missing member.
var expectsNone = regexp.MustCompile(`\?|\|\||\b(or|in|if|defined|default|get|coalesce|try)\b`)

// rowsMissing returns a warning if rows are read at a path that the result does not have; "" otherwise. A member
// with the value nil counts as present.
func rowsMissing(rows *playbook.Node, find func(expression.Ref) memberPath) string {
	if rows == nil {
		return ""
	}
	program, isOne := rows.ConditionProgram()
	if !isOne || expectsNone.MatchString(program.Source()) {
		return ""
	}
	for _, ref := range program.Refs() {
		of := find(ref)
		for _, key := range of.path {
			name, isName := key.(string)
			object, isMap := of.value.(map[string]any)
			if !isName || !isMap {
				break
			}
			inner, found := object[name]
			if !found {
				place := rows.Position(ref.Offset)
				return fmt.Sprintf("%s has no member %q, so nothing is written (line %d, column %d); its members are %q",
					of.owner, name, place.Line, place.Column, playbook.SortedKeys(object))
			}
			of.owner, of.value = of.owner+"."+name, inner
		}
	}
	return ""
}

// AbsentAtStart is AbsentAtEnd for what a step reads from earlier steps.
func AbsentAtStart(book *playbook.Playbook, step *playbook.Step, data Data) []string {
	nodes := routeNodes(step)
	if step.Action != nil {
		nodes = append(book.CallNodes(step), nodes...)
	}
	hidden := []string{step.Name}
	if step.Loop != nil {
		if hidden = append(hidden, step.Loop.Element); step.Loop.Source != nil {
			nodes = append(nodes, book.CallNodes(step.Loop.Source)...)
		} else {
			nodes = append(nodes, step.Loop.Collection)
		}
	}
	for collect := range step.CollectSections() {
		hidden = append(hidden, collect.Into)
	}
	return findAbsences(nodes, func(ref expression.Ref) memberPath { return ofStep(book, data, ref, hidden) })
}

// AbsentInOutput is AbsentAtEnd for what the output reads from steps.
func AbsentInOutput(book *playbook.Playbook, data Data) []string {
	return findAbsences([]*playbook.Node{book.Output}, func(ref expression.Ref) memberPath { return ofStep(book, data, ref, nil) })
}

// routeNodes returns the values evaluated after a step: its vars and its routes.
func routeNodes(step *playbook.Step) []*playbook.Node {
	nodes := lists.Map(step.Vars, func(entry *playbook.Entry) *playbook.Node { return entry.Value })
	for _, route := range step.Next {
		nodes = append(nodes, route.When)
		for _, target := range route.Targets {
			nodes = append(nodes, target.Args)
		}
	}
	return nodes
}

// ofStep returns the path into a step's result that a reference reads; the zero value for other references, and for
// names that a local name hides.
func ofStep(book *playbook.Playbook, data Data, ref expression.Ref, hidden []string) memberPath {
	owner, path := ref.Root, ref.Path
	if ref.Root == "steps" && len(path) > 1 && startsWith(path[1:], "data") {
		name, _ := path[0].(string)
		owner, path = name, path[2:]
	}
	step := book.Step(owner)
	if step == nil || step.Secret || slices.Contains(hidden, ref.Root) {
		return memberPath{}
	}
	return memberPath{owner: owner, value: expression.MapMember(expression.MapMember(data.Steps.Data, step.Name), "data"), path: path, shaped: hasShape(step)}
}

func startsWith(path []any, key string) bool { return len(path) > 0 && path[0] == key }

// hasShape reports whether the members of a step's result are known in advance: those of a loop's aggregate, and of
// an SQL result.
func hasShape(step *playbook.Step) bool {
	if step.Loop != nil {
		return true
	}
	if step.Action == nil {
		return false
	}
	name, _ := step.Action.ToolName()
	return playbook.TraitsOf(name).Dialect != ""
}

// memberPath is a path into a value, with the owner of the value as the author wrote it. shaped says that all
// members of the value are known.
type memberPath struct {
	owner  string
	value  any
	path   []any
	shaped bool
}

// findAbsences checks the constant paths in nodes. find returns what such a path reads; the zero value if nothing
// is known about it.
func findAbsences(nodes []*playbook.Node, find func(expression.Ref) memberPath) []string {
	var absent []string
	seen := map[string]bool{} // what is absent, at its first place
	for _, node := range nodes {
		for scalar, ref := range node.ScalarRefs() {
			of := find(ref)
			text := ""
			if of.shaped {
				text = absenceText(of.owner, of.value, of.path)
			}
			what, hint := memberOfText(of)
			if text == "" && what != "" && !seen[what] {
				seen[what] = true
				place := scalar.Position(ref.Offset)
				text = fmt.Sprintf("%s, so this is nil (line %d, column %d)%s", what, place.Line, place.Column, hint)
			}
			if text != "" && !slices.Contains(absent, text) {
				absent = append(absent, text)
			}
		}
	}
	return absent
}

// memberOfText returns which member a path reads from a text, number or boolean, none of which have members, and a
// hint; "" if it reads none.
func memberOfText(of memberPath) (what, hint string) {
	for i, key := range of.path {
		name, isName := key.(string)
		kind := ""
		switch of.value.(type) {
		case nil, []any:
		case map[string]any:
		case string:
			kind, hint = "text", "; where it is JSON, fromJSON reads it"
		default:
			kind = "a " + expression.TypeName(of.value)
		}
		if kind != "" {
			if !isName {
				return "", ""
			}
			return fmt.Sprintf("%s is %s and has no member %q", of.owner, kind, name), hint
		}
		if isName {
			of.owner += "." + name
		} else {
			of.owner += fmt.Sprintf("[%v]", key)
		}
		found, ok := expression.FollowKeys(of.value, of.path[i:i+1])
		if !ok {
			return "", ""
		}
		of.value = found
	}
	return "", ""
}

// absenceText returns a warning if a value of a known shape lacks a member of a path. Members of results, errors
// and rows are unknown.
func absenceText(owner string, value any, path []any) string {
	if len(path) == 0 {
		return ""
	}
	key, isKey := path[0].(string)
	if !isKey {
		return ""
	}
	switch value := value.(type) {
	case []any:
		return fmt.Sprintf("%s is a list of %d and has no member %q, so this is nil", owner, len(value), key)
	case map[string]any:
		inner, found := value[key]
		if !found {
			return fmt.Sprintf("%s has no member %q, so this is nil; its members are %q", owner, key, playbook.SortedKeys(value))
		}
		if key == "stats" {
			return absenceText(owner+".stats", inner, path[1:])
		}
	}
	return ""
}
