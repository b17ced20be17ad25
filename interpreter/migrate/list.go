package migrate

import (
	"strings"

	"gopkg.in/yaml.v3"

	"reprise/interpreter/yamltree"
)

// flowList writes the list in one line, for a step that is in brackets.
func flowList(list *yaml.Node) {
	list.Style = yaml.FlowStyle
	for _, inner := range list.Content {
		flowList(inner)
	}
	if list.Kind == yaml.ScalarNode {
		list.Style = 0
		if strings.ContainsAny(list.Value, "{}[],:#\"'") {
			list.Style = yamltree.QuoteStyle(list.Value)
		}
	}
}
