package interpreter

import "sort"

// sortedKeys lists the keys of a map in order. Everything that walks a map in
// this package walks these, so that no decision depends on Go's random order.
func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	//workflowcheck:ignore the keys are sorted before anyone sees them
	for key := range m {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	return keys
}

// clone copies a map, with room for more.
func clone[V any](m map[string]V, more int) map[string]V {
	copied := make(map[string]V, len(m)+more)
	for _, key := range sortedKeys(m) {
		copied[key] = m[key]
	}
	return copied
}
