// Package node builds YAML nodes in the style of a person, for programs that generate playbooks.
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

// ListOf returns a list with one item per line.
func ListOf(items ...*yaml.Node) *yaml.Node {
	return &yaml.Node{Kind: yaml.SequenceNode, Content: items}
}

// FlowList returns a list on one line, in brackets.
func FlowList(items ...*yaml.Node) *yaml.Node {
	list := ListOf(items...)
	list.Style = yaml.FlowStyle
	return list
}

// FlowMap returns a map on one line, in braces. pairs alternate between keys and nodes.
func FlowMap(pairs ...any) *yaml.Node {
	n := EmptyMap()
	n.Style = yaml.FlowStyle
	for i := 0; i+1 < len(pairs); i += 2 {
		AddKey(n, pairs[i].(string), pairs[i+1].(*yaml.Node)) // as they are written in the program
	}
	return n
}

// QuotedText returns a text node. Texts with templates are in double quotes, as playbooks write them.
func QuotedText(text string) *yaml.Node {
	n := recording.TextNode(text)
	if n.Style == 0 && strings.Contains(text, "{{") {
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}

// Verbatim is a text whose templates stay templates. In other texts braces are escaped.
type Verbatim string

// ValueNode returns the node of any value. Braces in its texts are escaped. Keys with templates are left out, because
// playbooks do not allow them.
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

// braces matches the start of a template, and of Jinja syntax that playbooks reject.
var braces = regexp.MustCompile(`\{[{%#]`)

// EscapeBraces escapes the braces in a text so that they are not a template.
func EscapeBraces(text string) string {
	return braces.ReplaceAllStringFunc(text, func(found string) string { return "{{ '" + found + "' }}" })
}
