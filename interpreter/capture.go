package interpreter

import (
	"sort"
	"strings"

	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// Capture copies out of data only what the nodes name: a child workflow gets
// no more than its expressions can reach. Lists are kept whole, since an index
// into a part of them would mean another element.
func Capture(book *playbook.Playbook, data Data, nodes []*playbook.Node) Data {
	var paths [][]string
	for _, node := range nodes {
		for _, ref := range node.Refs() {
			paths = append(paths, book.DataPath(ref))
		}
	}
	whole := map[string]any{
		"workload": data.Workload.Data, "vars": data.Vars.Data, "steps": data.Steps.Data,
	}
	pruned := map[string]any{}
	for _, path := range withoutCovered(paths) {
		copyPath(whole, pruned, path)
	}
	return Data{
		Workload: expression.Of(pruned["workload"]),
		Vars:     expression.Of(pruned["vars"]),
		Steps:    expression.Of(pruned["steps"]),
	}
}

// withoutCovered sorts the paths and drops those that a shorter one includes.
func withoutCovered(paths [][]string) [][]string {
	const separator = "\x00"
	keys := make([]string, 0, len(paths))
	for _, path := range paths {
		keys = append(keys, strings.Join(path, separator)+separator)
	}
	sort.Strings(keys)
	var kept [][]string
	last := ""
	for _, key := range keys {
		if last != "" && strings.HasPrefix(key, last) {
			continue
		}
		last = key
		kept = append(kept, strings.Split(strings.TrimSuffix(key, separator), separator))
	}
	return kept
}

// copyPath copies the branch that path names from one map into another.
func copyPath(from, to map[string]any, path []string) {
	value, found := from[path[0]]
	if !found || value == nil {
		return
	}
	inner, isMap := value.(map[string]any)
	if len(path) == 1 || !isMap {
		to[path[0]] = value
		return
	}
	target, ok := to[path[0]].(map[string]any)
	if !ok {
		target = map[string]any{}
		to[path[0]] = target
	}
	copyPath(inner, target, path[1:])
}
