package playbook

import (
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"reprise/interpreter/yamltree"
)

// flowWidth bounds the width of a line in which a map is written; a wider map takes several lines.
const flowWidth = 88

// printRetry returns a list of policies in the style of docs/concepts/attempts.md, under the key retry and without
// comments.
func printRetry(list *yaml.Node) string {
	root := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Content: []*yaml.Node{
		{Kind: yaml.ScalarNode, Tag: "!!str", Value: "retry"}, yamltree.WithoutAliases(list, false),
	}}
	StyleList(root.Content[1])
	return yamltree.EncodeNode(root)
}

// StyleList gives the list its canonical style: a line for each policy, and a then of plain words in one line.
// Parts written by authors keep their style.
func StyleList(list *yaml.Node) {
	list.Style = 0
	if len(list.Content) == 0 {
		list.Style = yaml.FlowStyle
	}
	for _, policy := range list.Content {
		policy.Style = 0
		if then := yamltree.KeyValues(policy)["then"]; then != nil && plainWords(then) {
			then.Style = yaml.FlowStyle
			if len("    then: "+yamltree.EncodeNode(then)) > flowWidth {
				then.Style = 0
			}
		}
	}
}

// plainWords reports whether a map has only scalars without comments.
func plainWords(n *yaml.Node) bool {
	for _, inner := range n.Content {
		if inner.Kind != yaml.ScalarNode || inner.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 ||
			inner.HeadComment+inner.LineComment+inner.FootComment != "" {
			return false
		}
	}
	return true
}

// DurationText formats a duration as authors do: 90s, 5m, 1h30m.
func DurationText(length time.Duration) string {
	text := length.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
