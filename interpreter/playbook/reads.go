package playbook

import (
	"maps"
	"slices"
)

// WorkloadReads is what expressions of a playbook can see of its workload.
type WorkloadReads struct {
	// Whole says that one of them sees all of it.
	Whole bool
	// Keys are those that the playbook's workload has, and those that expressions name
	// and only a run supplies. Sorted.
	Keys []string
}

// WorkloadReads walks over the whole playbook.
func (pb *Playbook) WorkloadReads() WorkloadReads {
	reads, keys := WorkloadReads{}, map[string]bool{}
	for key := range pb.Workload {
		keys[key] = true
	}
	pb.eachValue(func(at site, node *Node) {
		for _, ref := range node.Refs() {
			if at.named(ref.Root) {
				continue
			}
			switch path := pb.DataPath(ref); {
			case path[0] != "workload":
			case len(path) == 1:
				reads.Whole = true
			default:
				keys[path[1]] = true
			}
		}
	})
	reads.Keys = slices.Sorted(maps.Keys(keys))
	return reads
}
