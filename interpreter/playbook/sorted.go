package playbook

import (
	"sort"
)

// SortedKeys returns the keys of a map in order. Code that walks a map on behalf of a workflow uses it, so that no
// decision depends on Go's random order.
func SortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	//workflowcheck:ignore the keys are sorted before anyone sees them
	for key := range m {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	return keys
}

// CloneMap copies a map, with room for more entries.
func CloneMap[V any](m map[string]V, more int) map[string]V {
	copied := make(map[string]V, len(m)+more)
	for _, key := range SortedKeys(m) {
		copied[key] = m[key]
	}
	return copied
}
