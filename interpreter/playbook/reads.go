package playbook

import (
	"maps"
	"slices"
)

// WorkloadKeys are the names that values of the workload can have: the keys it
// has, and those that expressions name and only a run supplies. Sorted.
func (pb *Playbook) WorkloadKeys() []string {
	keys := map[string]bool{}
	for key := range pb.Workload {
		keys[key] = true
	}
	pb.eachValue(func(at site, node *Node) {
		for _, ref := range node.Refs() {
			if at.named(ref.Root) {
				continue
			}
			if path := pb.DataPath(ref); path[0] == "workload" && len(path) > 1 {
				keys[path[1]] = true
			}
		}
	})
	return slices.Sorted(maps.Keys(keys))
}
