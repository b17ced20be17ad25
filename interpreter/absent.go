package interpreter

import (
	"fmt"
	"slices"

	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// AbsentAtEnd tells of members that what follows a step asks of its result, and
// that a result of its shape does not have: they are always nil, and a sink would
// write nothing but that (language.md, section names).
func AbsentAtEnd(step *playbook.Step, result CallResult) []string {
	var nodes []*playbook.Node
	if !result.Failed() {
		for _, entry := range step.Vars {
			nodes = append(nodes, entry.Value)
		}
	}
	for _, route := range step.Next {
		nodes = append(nodes, route.When)
		for _, target := range route.Targets {
			nodes = append(nodes, target.Args)
		}
	}
	nodes = append(nodes, step.NoticeNodes()...)
	if step.Loop != nil {
		nodes = append(nodes, step.StepSinkNodes()...)
	}
	return absences(nodes, func(ref expression.Ref) (owner string, value any, path []any) {
		switch {
		case ref.Root == "result", ref.Root == "response", ref.Root == step.Name:
			return ref.Root, shaped(step, result.Data.Data), ref.Path
		case ref.Root == "this" && starts(ref.Path, "data"):
			return "this.data", shaped(step, result.Data.Data), ref.Path[1:]
		}
		return "", nil, nil
	})
}

// AbsentAtStart tells the same of what a step asks of the steps before it.
func AbsentAtStart(book *playbook.Playbook, step *playbook.Step, data Data) []string {
	nodes := book.CallNodes(step)
	hidden := []string{}
	if step.Loop != nil {
		nodes, hidden = append(nodes, step.Loop.Collection), append(hidden, step.Loop.Element)
	}
	for _, policy := range step.Retry {
		if policy.Then.Collect != nil {
			hidden = append(hidden, policy.Then.Collect.Into)
		}
	}
	return absences(nodes, func(ref expression.Ref) (owner string, value any, path []any) {
		owner, path = ref.Root, ref.Path
		if ref.Root == "steps" && len(path) > 1 && starts(path[1:], "data") {
			name, _ := path[0].(string)
			owner, path = name, path[2:]
		}
		asked := book.Step(owner)
		if asked == nil || asked.Secret || slices.Contains(hidden, ref.Root) {
			return "", nil, nil
		}
		return owner, shaped(asked, member(member(data.Steps.Data, asked.Name), "data")), path
	})
}

func starts(path []any, key string) bool { return len(path) > 0 && path[0] == key }

// shaped is the result of a step whose members the language knows, nil for others:
// the aggregate of a loop, and what SQL gives.
func shaped(step *playbook.Step, result any) any {
	if step.Loop != nil {
		return result
	}
	if step.Action == nil {
		return nil
	}
	if name, _ := step.Action.ToolName(); playbook.TraitsOf(name).Dialect == "" {
		return nil
	}
	return result
}

// absences looks at the constant paths of nodes. find gives the value that one
// leads into, nil where nothing is known of it.
func absences(nodes []*playbook.Node, find func(expression.Ref) (owner string, value any, path []any)) []string {
	var absent []string
	for _, node := range nodes {
		if node == nil {
			continue
		}
		for _, ref := range node.Refs() {
			owner, value, path := find(ref)
			if text := absence(owner, value, path); text != "" && !slices.Contains(absent, text) {
				absent = append(absent, text)
			}
		}
	}
	return absent
}

// absence says which member of a path a value of a known shape does not have.
// Behind results, errors and rows nothing is known.
func absence(owner string, value any, path []any) string {
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
			return fmt.Sprintf("%s has no member %q, so this is nil; its members are %q", owner, key, sortedKeys(value))
		}
		if key == "stats" {
			return absence(owner+".stats", inner, path[1:])
		}
	}
	return ""
}
