package interpreter

import "reprise/interpreter/playbook"

// sortedKeys lists the keys of a map in order. Everything that walks a map in
// this package walks these.
func sortedKeys[V any](m map[string]V) []string { return playbook.SortedKeys(m) }

// clone copies a map, with room for more.
func clone[V any](m map[string]V, more int) map[string]V {
	copied := make(map[string]V, len(m)+more)
	for _, key := range sortedKeys(m) {
		copied[key] = m[key]
	}
	return copied
}
