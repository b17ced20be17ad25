package playbook

import (
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"reprise/interpreter/expression"
	"reprise/interpreter/source"
	"reprise/interpreter/yamltree"
)

const (
	// maxAliases bounds the aliases of a file, including those in repeated parts: nine lines of aliases to aliases
	// can be a billion values.
	maxAliases = 100
	// MaxSteps bounds the steps of a playbook: checks compare each step with each other.
	MaxSteps = 500
	// maxExpanded bounds the nodes that aliases add; 100 aliases to a large map would turn a small file into a
	// large playbook.
	maxExpanded = 100_000
)

// inspector walks every node once before anything is decoded. After that the tree has no aliases, only text keys,
// and a bounded depth.
type inspector struct {
	*decoder

	aliases, expanded int
	open              map[*yaml.Node]bool // aliases that are currently expanded
	fatal             bool
}

// inspectTree reports invalid YAML, and replaces aliases by the nodes that they refer to. It returns false if the
// tree is not safe to walk.
func (d *decoder) inspectTree(root *yaml.Node) bool {
	in := &inspector{decoder: d, open: map[*yaml.Node]bool{}}
	in.inspectNode(root, 1, false, "")
	return !in.fatal
}

// inspectNode inspects a node; label is the text before it in its line, such as "url:", for messages.
func (in *inspector) inspectNode(n *yaml.Node, depth int, inFlow bool, label string) {
	if in.fatal {
		return
	}
	if len(in.open) > 0 {
		if in.expanded++; in.expanded > maxExpanded {
			in.failAt(n, codeTooManyAliases, "with its aliases, the playbook has more than %d values; use fewer aliases", maxExpanded)
			return
		}
	}
	if depth > yamltree.MaxDepth && len(n.Content) > 0 {
		in.failAt(n, codeTooDeep, "maps and lists are nested more than %d levels deep", yamltree.MaxDepth)
		return
	}
	in.checkTag(n)
	in.checkNumber(n)
	flow := inFlow || n.Style&yaml.FlowStyle != 0
	switch {
	case n.Kind == yaml.MappingNode && in.looksLikeTemplate(n):
		in.broken[n] = true
		in.reportUnquoted(positionOf(n), label, in.templateText(n, inFlow))
	case n.Kind == yaml.MappingNode:
		in.walkMap(n, depth, flow)
	case n.Kind == yaml.SequenceNode:
		for i := range n.Content {
			in.inspectChild(n, i, depth, flow, "-")
		}
	}
}

func (in *inspector) failAt(n *yaml.Node, code, format string, args ...any) {
	in.fatal = true
	in.Errorf(positionOf(n), code, format, args...)
}

// inspectChild inspects Content[i]; an alias is replaced by its target.
func (in *inspector) inspectChild(n *yaml.Node, i, depth int, flow bool, label string) {
	next := n.Content[i]
	if next.Kind != yaml.AliasNode {
		in.inspectNode(next, depth+1, flow, label)
		return
	}
	if in.aliases++; in.aliases > maxAliases {
		in.failAt(next, codeTooManyAliases, "the file has more than %d aliases, counting repeated parts each time", maxAliases)
		return
	}
	target := next.Alias
	if in.open[target] || in.containsNode(target, n) {
		in.failAt(next, codeAliasCycle, "the alias *%s is inside its own anchor", next.Value)
		return
	}
	in.open[target] = true
	in.inspectNode(target, depth+1, flow, label)
	delete(in.open, target)
	n.Content[i] = target
}

// containsNode reports whether inner is part of outer as written. It is called once per alias, of which there are
// few.
func (in *inspector) containsNode(outer, inner *yaml.Node) bool {
	if outer == inner {
		return true
	}
	return slices.ContainsFunc(outer.Content, func(part *yaml.Node) bool { return part.Kind != yaml.AliasNode && in.containsNode(part, inner) })
}

// walkMap inspects keys and values, and removes unusable keys.
func (in *inspector) walkMap(n *yaml.Node, depth int, flow bool) {
	first := map[string]*yaml.Node{}
	usable := n.Content[:0:0]
	for i := 0; i+1 < len(n.Content) && !in.fatal; i += 2 {
		in.inspectChild(n, i, depth, flow, "?")
		if in.fatal {
			return
		}
		keyNode := n.Content[i]
		if !in.usableKey(keyNode) {
			continue
		}
		in.inspectChild(n, i+1, depth, flow, keyNode.Value+":")
		if earlier, ok := first[keyNode.Value]; ok {
			in.Errorf(positionOf(keyNode), CodeDuplicateKey, "the key %q occurs twice in this map; the first is on line %d",
				ShortenText(keyNode.Value), earlier.Line)
			continue
		}
		first[keyNode.Value] = keyNode
		usable = append(usable, keyNode, n.Content[i+1])
	}
	n.Content = usable
}

func (in *inspector) usableKey(n *yaml.Node) bool {
	switch {
	case in.broken[n]:
		return false
	case n.Kind != yaml.ScalarNode:
		in.Errorf(positionOf(n), codeWrongType, "a key must be text, not %s", describeYAML(n))
	case n.ShortTag() == "!!merge":
		in.Errorf(positionOf(n), codeMergeKey, "the merge key << is not accepted; write the keys out, or repeat a whole value with an alias")
	case n.ShortTag() == "!!null" && n.Value != "null": // it is an ordinary word
		in.Errorf(positionOf(n), codeWrongType, "a key must be text, not null")
	case strings.Contains(n.Value, "{{"):
		in.Errorf(positionOf(n), codeTemplateNotAllowed, "a key must not be a template: its value must be known before the run")
	default:
		return true
	}
	return false
}

// tags are the allowed types of values. A timestamp is read as text.
var tags = map[yaml.Kind][]string{
	yaml.MappingNode:  {"!!map"},
	yaml.SequenceNode: {"!!seq"},
	yaml.ScalarNode:   {"!!str", "!!int", "!!float", "!!bool", "!!null", "!!timestamp", "!!merge"},
}

func (in *inspector) checkTag(n *yaml.Node) {
	tag := n.ShortTag()
	if slices.Contains(tags[n.Kind], tag) {
		return
	}
	in.broken[n] = true
	hint := "text that begins with ! must be quoted"
	if tag == "!!binary" {
		hint = "write the text in base64 and decode it in the tool"
	}
	in.Errorf(positionOf(n), codeYAMLTag, "the YAML type %s is not accepted; %s", tag, hint)
}

// checkNumber reports a number that the YAML parser reads as text because it is out of its range.
func (in *inspector) checkNumber(n *yaml.Node) {
	if n.Kind != yaml.ScalarNode || n.Style != 0 || n.ShortTag() != "!!str" || strings.Trim(n.Value, "0123456789_+-.eE") != "" {
		return
	}
	if err := expression.CheckDigits(n.Value); err != nil {
		in.Errorf(positionOf(n), codeBadNumber, "%s", err)
	}
}

// looksLikeTemplate recognises {{ x }} without quotes: a map in braces whose first key is a map in braces, with
// nothing between the two.
func (in *inspector) looksLikeTemplate(n *yaml.Node) bool {
	if n.Style&yaml.FlowStyle == 0 || len(n.Content) == 0 {
		return false
	}
	first := n.Content[0]
	return first.Kind == yaml.MappingNode && first.Style&yaml.FlowStyle != 0 &&
		first.Line == n.Line && first.Column == n.Column+1
}

// templateText returns the text of an unquoted template: up to the end of its line, or up to its closing braces if
// more of a map or list in brackets follows.
func (in *inspector) templateText(n *yaml.Node, inFlow bool) string {
	line := []rune(in.File.Line(n.Line))
	if n.Column > len(line) {
		return "{{ … }}"
	}
	text := string(line[n.Column-1:])
	if !inFlow {
		return withoutComment(text)
	}
	depth := 0
	for i, r := range text {
		switch r {
		case '{':
			depth++
		case '}':
			depth--
		}
		if depth == 0 {
			return text[:i+1]
		}
	}
	return text
}

func withoutComment(text string) string {
	if i := strings.Index(text, " #"); i >= 0 {
		text = text[:i]
	}
	return strings.TrimRight(text, " \t")
}

// reportUnquoted reports a template without quotes and shows how to write it.
func (d *decoder) reportUnquoted(pos source.Position, label, text string) {
	quoted := `"` + text + `"`
	switch {
	case !strings.ContainsAny(text, `"\`):
	case !strings.Contains(text, "'"):
		quoted = "'" + text + "'"
	default:
		quoted = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
	}
	if label != "" {
		quoted = label + " " + quoted
	}
	d.Errorf(pos, codeUnquotedTemplate, "a template needs quotes, because YAML reads {{ as a map; write %s", quoted)
}
