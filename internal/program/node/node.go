// Package node makes nodes of YAML that look as if a person had written them, for programs that write playbooks.
package node

import (
	"fmt"
	"regexp"
	"strings"

	"gopkg.in/yaml.v3"

	"reprise/internal/program/recording"
	"reprise/interpreter/playbook"
)

// EmptyMap returns a map without keys.
func EmptyMap() *yaml.Node { return &yaml.Node{Kind: yaml.MappingNode} }

// AddKey appends a key to a map.
func AddKey(n *yaml.Node, key string, value *yaml.Node) {
	n.Content = append(n.Content, recording.TextNode(key), value)
}

// ListOf returns a list with an item a line.
func ListOf(items ...*yaml.Node) *yaml.Node {
	return &yaml.Node{Kind: yaml.SequenceNode, Content: items}
}

// FlowList returns a list in one line.
func FlowList(items ...*yaml.Node) *yaml.Node {
	list := ListOf(items...)
	list.Style = yaml.FlowStyle
	return list
}

// FlowMap returns a map in one line, of keys and nodes.
func FlowMap(pairs ...any) *yaml.Node {
	n := EmptyMap()
	n.Style = yaml.FlowStyle
	for i := 0; i+1 < len(pairs); i += 2 {
		AddKey(n, pairs[i].(string), pairs[i+1].(*yaml.Node)) // as they are written in the program
	}
	return n
}

// QuotedText returns a text in double quotes where it has templates, as those are written.
func QuotedText(text string) *yaml.Node {
	n := recording.TextNode(text)
	if n.Style == 0 && strings.Contains(text, "{{") {
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}

// Verbatim is a text whose templates are kept. In other texts braces are escaped.
type Verbatim string

// ValueNode returns any value, in whose texts braces are text. Keys with templates are left out, as no key may have one.
func ValueNode(of any) *yaml.Node {
	switch of := of.(type) {
	case Verbatim:
		return QuotedText(string(of))
	case string:
		return recording.TextNode(EscapeBraces(of))
	case map[string]any:
		n := EmptyMap()
		for _, key := range playbook.SortedKeys(of) {
			if !strings.Contains(key, "{{") {
				AddKey(n, key, ValueNode(of[key]))
			}
		}
		n.Style = FlowIfShort(of)
		return n
	case []any:
		n := &yaml.Node{Kind: yaml.SequenceNode, Style: FlowIfShort(of)}
		for _, item := range of {
			n.Content = append(n.Content, ValueNode(item))
		}
		return n
	}
	return recording.ValueNode(of, true)
}

// FlowIfShort returns the flow style for values that fit into one line.
func FlowIfShort(of any) yaml.Style {
	const width = 70
	if shown := fmt.Sprint(of); len(shown) <= width && !strings.Contains(shown, "\n") {
		return yaml.FlowStyle
	}
	return 0
}

// braces match the beginning of a template, and of Jinja syntax that is refused.
var braces = regexp.MustCompile(`\{[{%#]`)

// EscapeBraces escapes the braces in a text.
func EscapeBraces(text string) string {
	return braces.ReplaceAllStringFunc(text, func(found string) string { return "{{ '" + found + "' }}" })
}
