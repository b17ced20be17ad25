// Package yamltree reads, walks and writes YAML trees: positions, keys of maps, copies without aliases. It is
// independent of playbooks.
package yamltree

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"reprise/interpreter/source"
)

// MaxDepth bounds the nesting of maps and lists in a playbook: code that walks it is recursive, and Go terminates a
// program whose stack overflows.
const MaxDepth = 64

// ErrSeveralDocuments means that a text contains more than one document.
var ErrSeveralDocuments = errors.New("several documents")

// Parse parses a text with one document, and returns a node of kind document. It converts panics of the parser to
// errors, because the parser is a dependency and the input is untrusted.
func Parse(data []byte) (root *yaml.Node, err error) {
	defer func() {
		if failure := recover(); failure != nil {
			root, err = nil, fmt.Errorf("yaml: the parser failed: %v", failure)
		}
	}()
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	root = &yaml.Node{}
	if err := decoder.Decode(root); err != nil {
		return nil, err
	}
	var second yaml.Node
	if err := decoder.Decode(&second); err == nil {
		return nil, ErrSeveralDocuments
	} else if !errors.Is(err, io.EOF) {
		return nil, err
	}
	return root, nil
}

// EncodeNode returns a node as YAML, indented by two; "" if that fails.
func EncodeNode(n *yaml.Node) (text string) {
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

// PositionOf returns the position of a node.
func PositionOf(n *yaml.Node) source.Position {
	return source.Position{Line: n.Line, Column: n.Column}
}

// Pairs iterates over the keys of a map with their values.
func Pairs(n *yaml.Node) iter.Seq2[*yaml.Node, *yaml.Node] {
	return func(yield func(key, value *yaml.Node) bool) {
		for i := 0; i+1 < len(n.Content) && yield(n.Content[i], n.Content[i+1]); i += 2 {
		}
	}
}

// KeyValues returns the values of a map by their keys.
func KeyValues(n *yaml.Node) map[string]*yaml.Node {
	keys := map[string]*yaml.Node{}
	for key, value := range Pairs(n) {
		keys[key.Value] = value
	}
	return keys
}

// IndexOf returns the index of a key in the content of a map, -1 if it is missing.
func IndexOf(n *yaml.Node, key string) int {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return i
		}
	}
	return -1
}

// KeyAt returns the key, or the item of a list, at a path of keys and item numbers from n. If the path ends early,
// it returns the last one found.
func KeyAt(n *yaml.Node, keys []string) *yaml.Node {
	found := n
	for _, key := range keys {
		if item, err := strconv.Atoi(key); n.Kind == yaml.SequenceNode && err == nil && item < len(n.Content) {
			found, n = n.Content[item], n.Content[item]
			continue
		}
		next := IndexOf(n, key)
		if next < 0 {
			break
		}
		found, n = n.Content[next], n.Content[next+1]
	}
	return found
}

// PlaceOf returns the place in a YAML file to which keys, and indexes of list items, lead; path alone if the file cannot be
// parsed.
func PlaceOf(path string, data []byte, keys []string) string {
	root, unread := Parse(data)
	if unread != nil || len(root.Content) == 0 {
		return path
	}
	return fmt.Sprintf("%s:%s", path, PositionOf(KeyAt(root.Content[0], keys)))
}

// EachScalar calls visit for every scalar below the node, except keys. It does not follow aliases.
func EachScalar(n *yaml.Node, visit func(*yaml.Node)) {
	if n.Kind == yaml.ScalarNode {
		visit(n)
	}
	for i, inner := range n.Content {
		if n.Kind != yaml.MappingNode || i%2 == 1 {
			EachScalar(inner, visit)
		}
	}
}

// StyleOf returns the style of a scalar.
func StyleOf(n *yaml.Node) source.Style {
	switch {
	case n.Style&yaml.SingleQuotedStyle != 0:
		return source.SingleQuoted
	case n.Style&yaml.DoubleQuotedStyle != 0:
		return source.DoubleQuoted
	case n.Style&yaml.LiteralStyle != 0:
		return source.Literal
	case n.Style&yaml.FoldedStyle != 0:
		return source.Folded
	}
	return source.Plain
}

// QuoteStyle returns the most readable style for a text, of those that mark it as text.
func QuoteStyle(text string) yaml.Style {
	switch {
	case strings.Contains(text, "\n"):
		return yaml.LiteralStyle
	case strings.ContainsAny(text, `"\`) && !strings.Contains(text, "'"):
		return yaml.SingleQuotedStyle
	}
	return yaml.DoubleQuotedStyle
}

// WithoutAliases returns a copy of a tree without aliases; withComments keeps the comments. Nodes nested deeper than
// MaxDepth are omitted.
func WithoutAliases(n *yaml.Node, withComments bool) *yaml.Node {
	return resolveNode(n, withComments, 0)
}

func resolveNode(n *yaml.Node, withComments bool, depth int) *yaml.Node {
	if n.Kind == yaml.AliasNode && depth <= MaxDepth {
		return resolveNode(n.Alias, withComments, depth+1)
	}
	copied := *n
	copied.Anchor, copied.Alias = "", nil
	if !withComments {
		copied.HeadComment, copied.LineComment, copied.FootComment = "", "", ""
	}
	copied.Content = make([]*yaml.Node, 0, len(n.Content))
	if depth <= MaxDepth { // deeper files have been refused before
		for _, inner := range n.Content {
			copied.Content = append(copied.Content, resolveNode(inner, withComments, depth+1))
		}
	}
	return &copied
}
