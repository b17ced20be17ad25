package interpreter

import (
	"slices"
	"sort"
	"strings"

	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
)

// CaptureData copies from data only what the nodes use, so that a child workflow gets only what its expressions can
// read. Lists are copied whole, since an index into a part of one would refer to another element.
func CaptureData(book *playbook.Playbook, data Data, nodes []*playbook.Node) Data {
	paths := dataPaths(book, nodes)
	whole := map[string]any{
		"workload": data.Workload.Data, "vars": data.Vars.Data, "steps": data.Steps.Data,
	}
	pruned := PrunePaths(whole, paths)
	return Data{
		Workload: expression.Of(pruned["workload"]),
		Vars:     expression.Of(pruned["vars"]),
		Steps:    expression.Of(pruned["steps"]),
	}
}

// dataPaths returns the paths into data that the nodes read.
func dataPaths(book *playbook.Playbook, nodes []*playbook.Node) [][]string {
	var paths [][]string
	for _, node := range nodes {
		for _, ref := range node.Refs() {
			paths = append(paths, book.DataPath(ref))
		}
	}
	return paths
}

// UncapturedNames lists the results and vars that the iterations of step name in book read, with its sink and
// notices, and did not read in origin, the playbook of the earlier run. That run did not record them, so these
// iterations cannot be run again from its record.
func UncapturedNames(origin, book *playbook.Playbook, name string) []string {
	recorded := loopPaths(origin, name)
	var missing []string
	for _, path := range loopPaths(book, name) {
		covered := slices.ContainsFunc(recorded, func(other []string) bool {
			return len(other) <= len(path) && slices.Equal(other, path[:len(other)])
		})
		if text := strings.Join(path, "."); !covered && path[0] != "workload" && !slices.Contains(missing, text) {
			missing = append(missing, text)
		}
	}
	slices.Sort(missing)
	return missing
}

func loopPaths(book *playbook.Playbook, name string) [][]string {
	step := book.Step(name)
	return dataPaths(book, append(book.CallNodes(step), step.EndNodes()...))
}

// PrunePaths returns a copy of a map with only the values at some paths.
func PrunePaths(whole map[string]any, paths [][]string) map[string]any {
	pruned := map[string]any{}
	for _, path := range withoutCovered(paths) {
		copyPath(whole, pruned, path)
	}
	return pruned
}

// withoutCovered returns the paths sorted, without those below another one.
func withoutCovered(paths [][]string) [][]string {
	const separator = "\x00"
	keys := lists.Map(paths, func(path []string) string { return strings.Join(path, separator) + separator })
	sort.Strings(keys)
	var outermost [][]string
	last := ""
	for _, key := range keys {
		if last != "" && strings.HasPrefix(key, last) {
			continue
		}
		last = key
		outermost = append(outermost, strings.Split(strings.TrimSuffix(key, separator), separator))
	}
	return outermost
}

// copyPath copies the value at a path from one map into another.
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
