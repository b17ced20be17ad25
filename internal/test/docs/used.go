package docs

import (
	"cmp"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"gopkg.in/yaml.v3"

	"reprise/internal/program/reference"
	"reprise/interpreter/playbook"
	"reprise/playbooks"
)

// uses counts the keys in the example playbooks and their tests, by "PARENT.KEY", such as "then.max_attempts".
var uses = sync.OnceValue(func() map[string]int {
	counts := map[string]int{}
	names, _ := fs.Glob(playbooks.FS, "*.yaml") // the pattern is right
	for _, name := range names {
		for _, file := range []string{name, strings.TrimSuffix(name, ".yaml") + "_test.yaml"} {
			var document yaml.Node
			if text, err := fs.ReadFile(playbooks.FS, file); err == nil && yaml.Unmarshal(text, &document) == nil {
				countKeys(&document, "", counts)
			}
		}
	}
	return counts
})

func countKeys(node *yaml.Node, parent string, counts map[string]int) {
	if node.Kind != yaml.MappingNode {
		for _, child := range node.Content {
			countKeys(child, parent, counts)
		}
		return
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key := node.Content[i].Value
		counts[parent+"."+key]++
		countKeys(node.Content[i+1], key, counts)
	}
}

// parents maps sections to the key that contains them, if its name differs.
var parents = map[string]string{"step": "workflow", "playbook": ""}

// mostUsedFirst returns the keys of a section: the required ones, then those that examples use, most frequent first,
// then the others in their original order.
func mostUsedFirst(section playbook.Section) []playbook.Key {
	path := strings.TrimSuffix(reference.PathOfSection(section.Name), "[]")
	parent := path[strings.LastIndex(path, ".")+1:]
	if other, found := parents[parent]; found {
		parent = other
	}
	use := func(key playbook.Key) int {
		if key.Required {
			const always = 1 << 30
			return always
		}
		return uses()[parent+"."+key.Name]
	}
	sorted := slices.Clone(section.Keys)
	slices.SortStableFunc(sorted, func(a, b playbook.Key) int { return cmp.Compare(use(b), use(a)) })
	return sorted
}
