package playbook

import (
	"slices"

	"reprise/interpreter/source"
)

// DataWord is the name in older playbooks of the result in sinks, vars and next, and of the page in next_call. The
// list does not have it.
const DataWord = "data"

// OlderName is a use of a name that is now called differently.
type OlderName struct {
	Pos          source.Position
	Older, Newer string
	Scalar       source.Position // position of the scalar that contains the name
	Offset       int             // in the text of the scalar, in runes
}

// OlderNames returns the uses of data that now have another name, in file order.
func (pb *Playbook) OlderNames() []OlderName {
	_, isKey := pb.Workload[DataWord]
	if _, handed := pb.WorkloadPos[DataWord]; isKey || handed {
		return nil // which may be meant
	}
	seen := map[source.Position]bool{} // of values that are repeated by aliases
	var names []OlderName
	look := func(newer string, nodes ...*Node) {
		for _, node := range nodes {
			for scalar, ref := range node.ScalarRefs() {
				if ref.Root != DataWord || scalar.origin != nil {
					continue
				}
				if pos := scalar.Position(ref.Offset); !seen[pos] {
					seen[pos] = true
					names = append(names, OlderName{pos, DataWord, newer, scalar.Pos, ref.Offset})
				}
			}
		}
	}
	for _, call := range pb.AllCalls() {
		if call.Sink != nil {
			look("result", append(entryValues(call.Action.Fields), call.Action.Args)...)
		}
		if call.Action.Inline != nil {
			names = append(names, call.Action.Inline.OlderNames()...)
		}
	}
	for _, step := range pb.Steps {
		look("result", entryValues(step.Vars)...)
		for _, route := range step.Next {
			look("result", route.When)
			for _, target := range route.Targets {
				look("result", target.Args)
			}
		}
		for next := range step.NextCalls() {
			look("response", next.ValueNodes()...)
		}
	}
	slices.SortFunc(names, func(a, b OlderName) int { return a.Pos.Compare(b.Pos) })
	return names
}
