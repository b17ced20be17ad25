package playbook

import (
	"bytes"
	"strings"
	"time"

	"gopkg.in/yaml.v3"
)

// flowWidth is how wide a line may get before its map is written in lines.
const flowWidth = 88

// printRetry writes a list of policies as docs/language.md does, below the key
// retry and without comments.
func printRetry(list *yaml.Node) string {
	root := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Content: []*yaml.Node{
		{Kind: yaml.ScalarNode, Tag: "!!str", Value: "retry"}, resolved(list, false),
	}}
	styleList(root.Content[1])
	return encode(root)
}

// styleList gives the list its canonical form: policies in lines, a then of
// plain words in one. What authors wrote keeps its form.
func styleList(list *yaml.Node) {
	list.Style = 0
	if len(list.Content) == 0 {
		list.Style = yaml.FlowStyle
	}
	for _, policy := range list.Content {
		policy.Style = 0
		if then := keysOf(policy)["then"]; then != nil && plainWords(then) {
			then.Style = yaml.FlowStyle
			if len("    then: "+encode(then)) > flowWidth {
				then.Style = 0
			}
		}
	}
}

// flowList writes the list in one line, for a step that is in brackets.
func flowList(list *yaml.Node) {
	list.Style = yaml.FlowStyle
	for _, inner := range list.Content {
		flowList(inner)
	}
	if list.Kind == yaml.ScalarNode {
		list.Style = 0
		if strings.ContainsAny(list.Value, "{}[],:#\"'") {
			list.Style = conditionStyle(list.Value)
		}
	}
}

// plainWords reports whether a map has nothing but scalars without comments.
func plainWords(n *yaml.Node) bool {
	for _, inner := range n.Content {
		if inner.Kind != yaml.ScalarNode || inner.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 ||
			inner.HeadComment+inner.LineComment+inner.FootComment != "" {
			return false
		}
	}
	return true
}

// encode writes a node as YAML, indented by two; "" if that is not possible.
func encode(n *yaml.Node) (text string) {
	defer func() {
		if recover() != nil { // the encoder panics on trees it does not know
			text = ""
		}
	}()
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(n); err != nil {
		return ""
	}
	return strings.TrimSuffix(out.String(), "\n") + "\n"
}

// resolved copies a tree: aliases are written out, and comments stay only
// where they are asked for.
func resolved(n *yaml.Node, withComments bool) *yaml.Node {
	return resolvedDepth(n, withComments, 0)
}

func resolvedDepth(n *yaml.Node, withComments bool, depth int) *yaml.Node {
	if n.Kind == yaml.AliasNode && depth <= MaxDepth {
		return resolvedDepth(n.Alias, withComments, depth+1)
	}
	copied := *n
	copied.Anchor, copied.Alias = "", nil
	if !withComments {
		copied.HeadComment, copied.LineComment, copied.FootComment = "", "", ""
	}
	copied.Content = make([]*yaml.Node, 0, len(n.Content))
	if depth <= MaxDepth { // deeper files are refused before
		for _, inner := range n.Content {
			copied.Content = append(copied.Content, resolvedDepth(inner, withComments, depth+1))
		}
	}
	return &copied
}

// durationText writes a duration as authors do: 90s, 5m, 1h30m.
func durationText(length time.Duration) string {
	text := length.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
