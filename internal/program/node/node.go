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

// Map is a map without keys.
func Map() *yaml.Node { return &yaml.Node{Kind: yaml.MappingNode} }

// Add appends a key to a map.
func Add(n *yaml.Node, key string, value *yaml.Node) {
	n.Content = append(n.Content, recording.Text(key), value)
}

// List is a list with an item a line.
func List(items ...*yaml.Node) *yaml.Node {
	return &yaml.Node{Kind: yaml.SequenceNode, Content: items}
}

// FlowList is a list in one line.
func FlowList(items ...*yaml.Node) *yaml.Node {
	list := List(items...)
	list.Style = yaml.FlowStyle
	return list
}

// Flow is a map in one line, of keys and nodes.
func Flow(pairs ...any) *yaml.Node {
	n := Map()
	n.Style = yaml.FlowStyle
	for i := 0; i+1 < len(pairs); i += 2 {
		Add(n, pairs[i].(string), pairs[i+1].(*yaml.Node)) // as they are written in the program
	}
	return n
}

// Quoted is a text in double quotes where it has templates, as those are written.
func Quoted(text string) *yaml.Node {
	n := recording.Text(text)
	if n.Style == 0 && strings.Contains(text, "{{") {
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}

// Verbatim is a text with templates, which is written as it is. In other texts braces are text.
type Verbatim string

// Value is any value, in whose texts braces are text. Keys with templates are left out, as no key may have one.
func Value(of any) *yaml.Node {
	switch of := of.(type) {
	case Verbatim:
		return Quoted(string(of))
	case string:
		return recording.Text(Escaped(of))
	case map[string]any:
		n := Map()
		for _, key := range playbook.SortedKeys(of) {
			if !strings.Contains(key, "{{") {
				Add(n, key, Value(of[key]))
			}
		}
		n.Style = FlowIfShort(of)
		return n
	case []any:
		n := &yaml.Node{Kind: yaml.SequenceNode, Style: FlowIfShort(of)}
		for _, item := range of {
			n.Content = append(n.Content, Value(item))
		}
		return n
	}
	return recording.Node(of, true)
}

// FlowIfShort is the style of what fits into one line there.
func FlowIfShort(of any) yaml.Style {
	const width = 70
	if shown := fmt.Sprint(of); len(shown) <= width && !strings.Contains(shown, "\n") {
		return yaml.FlowStyle
	}
	return 0
}

// braces are what begins a template, or what is refused because it does in Jinja.
var braces = regexp.MustCompile(`\{[{%#]`)

// Escaped is a text in which braces are text.
func Escaped(text string) string {
	return braces.ReplaceAllStringFunc(text, func(found string) string { return "{{ '" + found + "' }}" })
}
