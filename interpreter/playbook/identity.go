package playbook

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"reprise/interpreter/yamltree"
)

// ContentHash returns a hash of what a playbook does. It ignores comments, descriptions, the order of keys, the
// notation of values, and which partitions exist. A partition is stale if it was done by a playbook with another
// identity.
func (pb *Playbook) ContentHash() string {
	const digits = 16
	var text strings.Builder
	if root, err := yamltree.Parse([]byte(pb.SourceText())); err == nil && len(root.Content) > 0 {
		tree := yamltree.WithoutAliases(root.Content[0], false)
		dropKeys(yamltree.KeyValues(tree)["metadata"], "description")
		dropKeys(yamltree.KeyValues(tree)["partitions"], "start", "end")
		dropDescriptions(yamltree.KeyValues(tree)["workflow"])
		writeTree(&text, tree)
	}
	sum := sha256.Sum256([]byte(text.String()))
	return hex.EncodeToString(sum[:])[:digits]
}

// dropDescriptions removes the descriptions of steps, including those of inline playbooks.
func dropDescriptions(steps *yaml.Node) {
	if steps == nil || steps.Kind != yaml.SequenceNode {
		return
	}
	for _, step := range steps.Content {
		dropKeys(step, "desc")
		keys := yamltree.KeyValues(step)
		dropDescriptions(keys["workflow"])
		if tool := keys["tool"]; tool != nil {
			dropDescriptions(yamltree.KeyValues(tool)["workflow"])
		}
	}
}

// dropKeys removes keys from a map.
func dropKeys(n *yaml.Node, keys ...string) {
	if n == nil || n.Kind != yaml.MappingNode {
		return
	}
	for i := len(n.Content) - 2; i >= 0; i -= 2 {
		if slices.Contains(keys, n.Content[i].Value) {
			n.Content = slices.Delete(n.Content, i, i+2)
		}
	}
}

// writeTree writes a canonical text of a tree.
func writeTree(text *strings.Builder, n *yaml.Node) {
	switch n.Kind {
	case yaml.MappingNode:
		type entry struct{ key, value *yaml.Node }
		var entries []entry
		for key, value := range yamltree.Pairs(n) {
			entries = append(entries, entry{key, value})
		}
		slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.key.Value, b.key.Value) })
		text.WriteString("{")
		for _, one := range entries {
			writeTree(text, one.key)
			writeTree(text, one.value)
		}
		text.WriteString("}")
	case yaml.SequenceNode:
		text.WriteString("[")
		for _, item := range n.Content {
			writeTree(text, item)
		}
		text.WriteString("]")
	default:
		text.WriteString(n.ShortTag() + strconv.Quote(n.Value) + ",")
	}
}
