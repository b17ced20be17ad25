package playbook

import (
	"slices"

	"reprise/interpreter/source"
)

// DataWord is what older playbooks call the result in sinks, vars and next,
// and the page in next_call. The list knows it in no place.
const DataWord = "data"

// OlderName is one use of a name that is called otherwise now.
type OlderName struct {
	Pos          source.Position
	Older, Newer string
	Scalar       source.Position // of the scalar that the name is in
	Offset       int             // in the scalar's text, in runes
}

// OlderNames are the uses of data that have another name now, in the order of
// the file.
func (pb *Playbook) OlderNames() []OlderName {
	_, isKey := pb.Workload[DataWord]
	if _, handed := pb.WorkloadPos[DataWord]; isKey || handed {
		return nil // which may be meant
	}
	seen := map[source.Position]bool{} // of values that aliases repeat
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
	for _, call := range pb.Actions() {
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
			look("response", next.Nodes()...)
		}
	}
	slices.SortFunc(names, func(a, b OlderName) int { return a.Pos.Compare(b.Pos) })
	return names
}
