package author

import (
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
	"gopkg.in/yaml.v3"

	"reprise/interpreter/yamltree"
)

// playbookDiff returns a unified diff of two playbooks. It ignores comments, descriptions, the order of keys and YAML
// styles; "" means no difference.
func playbookDiff(beforeName, before, afterName, after string) (string, error) {
	now, err := normalizePlaybook(after)
	if err != nil {
		return "", err
	}
	was, err := normalizePlaybook(before)
	if err != nil {
		return "", err
	}
	reorderLike(was, now)
	found := string(diff.Diff(beforeName, []byte(yamltree.EncodeNode(was)), afterName, []byte(yamltree.EncodeNode(now))))
	if _, behind, has := strings.Cut(found, "\n"); has { // the line of the program that made it
		found = behind
	}
	return found, nil
}

// normalizePlaybook parses a playbook and drops what does not change its meaning, except the order of keys.
func normalizePlaybook(text string) (*yaml.Node, error) {
	root, err := yamltree.Parse([]byte(text))
	if err != nil {
		return nil, err
	}
	root = yamltree.WithoutAliases(root, false)
	dropStyles(root)
	if len(root.Content) == 0 {
		return root, nil
	}
	sections := yamltree.KeyValues(root.Content[0])
	if metadata := sections["metadata"]; metadata != nil {
		dropKey(metadata, "description")
	}
	for _, name := range []string{"workflow", "workbook"} {
		if section := sections[name]; section != nil {
			for _, item := range section.Content {
				dropKey(item, "desc")
			}
		}
	}
	return root, nil
}

// dropKey removes a key from a map.
func dropKey(n *yaml.Node, key string) {
	if at := yamltree.IndexOf(n, key); n.Kind == yaml.MappingNode && at >= 0 {
		n.Content = slices.Delete(n.Content, at, at+2)
	}
}

// dropStyles removes the YAML styles of a node and its children; multi-line scalars keep theirs.
func dropStyles(n *yaml.Node) {
	if n.Kind != yaml.ScalarNode || !strings.Contains(n.Value, "\n") {
		n.Style = 0
	}
	for _, child := range n.Content {
		dropStyles(child)
	}
}

// reorderLike sorts the keys of maps in the order of a model's keys at the same path.
func reorderLike(n, model *yaml.Node) {
	if n.Kind != model.Kind {
		return
	}
	switch n.Kind {
	case yaml.MappingNode:
		sortKeys(n, model)
		for at := 0; at < len(n.Content); at += 2 {
			if there := yamltree.IndexOf(model, n.Content[at].Value); there >= 0 {
				reorderLike(n.Content[at+1], model.Content[there+1])
			}
		}
	case yaml.SequenceNode, yaml.DocumentNode:
		for at, item := range n.Content {
			if like := itemMatching(item, model, at); like != nil {
				reorderLike(item, like)
			}
		}
	}
}

func sortKeys(n, model *yaml.Node) {
	type entry struct {
		place      int
		key, value *yaml.Node
	}
	var entries []entry
	for at := 0; at < len(n.Content); at += 2 {
		place := yamltree.IndexOf(model, n.Content[at].Value)
		if place < 0 {
			place = len(model.Content)
		}
		entries = append(entries, entry{place, n.Content[at], n.Content[at+1]})
	}
	slices.SortStableFunc(entries, func(a, b entry) int { return a.place - b.place })
	n.Content = n.Content[:0]
	for _, one := range entries {
		n.Content = append(n.Content, one.key, one.value)
	}
}

// itemMatching returns the item of a model list with the same step or name, else the one at the same position; nil if
// there is none.
func itemMatching(item, model *yaml.Node, at int) *yaml.Node {
	for _, name := range []string{"step", "name"} {
		value := yamltree.KeyValues(item)[name]
		if item.Kind != yaml.MappingNode || value == nil {
			continue
		}
		for _, other := range model.Content {
			if like := yamltree.KeyValues(other)[name]; other.Kind == yaml.MappingNode && like != nil && like.Value == value.Value {
				return other
			}
		}
	}
	if at < len(model.Content) {
		return model.Content[at]
	}
	return nil
}
