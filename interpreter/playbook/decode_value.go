package playbook

import (
	"strings"

	"gopkg.in/yaml.v3"

	"reprise/interpreter/expression"
	"reprise/interpreter/source"
	"reprise/interpreter/yamltree"
)

// valueNode returns a Node for any YAML: every text in it may be a template.
func (d *decoder) valueNode(n *yaml.Node) *Node {
	node := &Node{Pos: positionOf(n), file: d.File}
	switch {
	case d.broken[n]:
		node.constant = true
	case n.Kind == yaml.SequenceNode:
		d.listInto(node, n)
	case n.Kind == yaml.MappingNode:
		d.entriesInto(node, n, func(_ string, value *yaml.Node) *Node { return d.valueNode(value) })
	default:
		d.scalarNode(node, n)
	}
	return node
}

func (d *decoder) listInto(node *Node, n *yaml.Node) {
	node.Kind, node.constant = ListNode, true
	node.Items = make([]*Node, len(n.Content))
	values := make([]any, len(n.Content))
	for i, item := range n.Content {
		node.Items[i] = d.valueNode(item)
		node.constant = node.constant && node.Items[i].constant
		values[i] = node.Items[i].Value
	}
	if node.constant {
		node.Value = values
	}
}

// nestedCall reads a call that is a field of another one. As in any call, templates in its statement become bind
// parameters.
func (d *decoder) nestedCall(n *yaml.Node) *Node {
	node := &Node{Pos: positionOf(n), file: d.File}
	d.entriesInto(node, n, func(key string, value *yaml.Node) *Node {
		if key == FieldStatement {
			return d.rawText(value)
		}
		return d.valueNode(value)
	})
	return node
}

func (d *decoder) entriesInto(node *Node, n *yaml.Node, read func(key string, value *yaml.Node) *Node) {
	node.Kind, node.constant = MapNode, true
	node.Entries = make([]*Entry, 0, len(n.Content)/2)
	values := make(map[string]any, len(n.Content)/2)
	for key, value := range yamltree.Pairs(n) {
		entry := &Entry{Key: key.Value, KeyPos: positionOf(key), Value: read(key.Value, value)}
		node.Entries = append(node.Entries, entry)
		node.constant = node.constant && entry.Value.constant
		values[entry.Key] = entry.Value.Value
	}
	if node.constant {
		node.Value = values
	}
}

func (d *decoder) scalarNode(node *Node, n *yaml.Node) {
	node.Raw, node.style = n.Value, yamltree.StyleOf(n)
	if from := d.origins[n]; from != nil {
		node.origin, node.style = from.origin, from.style
	}
	if tag := n.ShortTag(); tag != "!!str" {
		node.constant, node.Value = true, d.freeValue(n)
		return
	}
	template, problems := expression.ParseTemplate(n.Value)
	d.templateProblems(node, problems)
	if len(problems) > 0 || template == nil {
		node.constant = true
		d.broken[n] = true
		return
	}
	if text, ok := template.LiteralText(); ok {
		node.constant, node.Value = true, text
		return
	}
	node.Kind, node.Template = TemplateNode, template
	d.dollarBraces(node)
}

// dollarBraces warns about text that begins like a template in GitHub Actions: the $ would remain.
func (d *decoder) dollarBraces(node *Node) {
	if at := strings.Index(node.Raw, "${{"); at >= 0 && strings.TrimSpace(node.Raw[:at]) == "" {
		d.Warnf(node.Position(at), codeDollarBraces,
			"${{ … }} is the syntax of GitHub Actions, and the $ stays as text; write {{ … }} without the $")
	}
}

// templateProblems reports problems of a template at their positions in the file.
func (d *decoder) templateProblems(node *Node, problems []expression.Problem) {
	if len(problems) == 0 {
		return
	}
	places := node.Positions()
	for _, problem := range problems {
		hint := ""
		if problem.Code == "syntax" {
			hint = d.cutByComment(node, places[len(places)-1])
		}
		pos := places[min(max(problem.Offset, 0), len(places)-1)]
		d.Errorf(pos, problem.Code, "%s%s", problem.Message, hint)
		d.AddFix(problem.Old, problem.New)
	}
}

// cutByComment explains a plain scalar that ends early: " #" begins a comment, while # is the element in
// predicates.
func (d *decoder) cutByComment(node *Node, end source.Position) string {
	if node.style != source.Plain || node.Raw == "" {
		return ""
	}
	rest := []rune(d.File.Line(end.Line))
	if end == node.Pos || end.Column > len(rest) {
		return ""
	}
	if strings.HasPrefix(strings.TrimLeft(string(rest[end.Column-1:]), " \t"), "#") {
		return `; YAML takes " #" and what follows for a comment: put the text in quotes`
	}
	return ""
}

// rawText returns a constant Node for text that is never a template, or whose templates are handled elsewhere:
// code, and SQL.
func (d *decoder) rawText(n *yaml.Node) *Node {
	if n.Kind != yaml.ScalarNode || d.broken[n] {
		return d.valueNode(n)
	}
	node := &Node{Pos: positionOf(n), Raw: n.Value, file: d.File, style: yamltree.StyleOf(n), constant: true}
	if tag := n.ShortTag(); tag == "!!str" || tag == "!!timestamp" {
		node.Value = n.Value
	} else {
		node.Value = d.freeValue(n)
	}
	return node
}

// conditionNode returns a Node for an expression, with or without braces. YAML's booleans and numbers are read as
// text.
func (d *decoder) conditionNode(n *yaml.Node, what string) *Node {
	node := &Node{Pos: positionOf(n), file: d.File}
	if d.broken[n] {
		return nil
	}
	if n.Kind != yaml.ScalarNode || n.ShortTag() == "!!null" {
		d.Errorf(node.Pos, codeWrongType, "%s must be a condition such as \"{{ error is defined }}\", not %s", what, describeYAML(n))
		return nil
	}
	node.Raw, node.style, node.Kind = n.Value, yamltree.StyleOf(n), TemplateNode
	if from := d.origins[n]; from != nil {
		node.origin, node.style = from.origin, from.style
	}
	template, problems := expression.ParseCondition(n.Value)
	d.templateProblems(node, problems)
	if len(problems) > 0 || template == nil {
		return nil
	}
	node.Template = template
	return node
}

// mapOrTemplate returns a Node for a map, or for a template that returns a map.
func (d *decoder) mapOrTemplate(n *yaml.Node, what string) *Node {
	if isNull(n) {
		return nil
	}
	node := d.valueNode(n)
	if d.broken[n] || n.Kind == yaml.MappingNode {
		return node
	}
	if node.Template != nil {
		if _, single := node.Template.SingleProgram(); single {
			return node
		}
	}
	d.Errorf(node.Pos, codeWrongType, "%s must be a map, or one template that gives a map, not %s", what, describeYAML(n))
	return nil
}

func isNull(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null"
}
