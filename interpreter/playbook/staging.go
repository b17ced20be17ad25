package playbook

import "slices"

// The words of table sinks whose rows are published together (docs/concepts/written-once.md#rows-that-are-published-together).
const (
	fieldMode          = "mode"
	fieldDeleteMissing = "delete_missing"
	modeReplace        = "replace"
)

// Stages reports whether what a sink writes is published together at the end of the call or loop:
// in mode replace, and with delete_missing.
func (pb *Playbook) Stages(sink *Sink) bool {
	return sink != nil && sink.Action != nil && pb.Resolve(sink.Action).stages()
}

func (a *Action) stages() bool {
	if !a.Traits().KeepsStates || a.Field("table") == nil {
		return false
	}
	mode, deletes := a.Field(fieldMode), a.Field(fieldDeleteMissing)
	return mode != nil && mode.Value == modeReplace || deletes != nil && (deletes.Value == true || deletes.Value == "true")
}

// Replaces reports whether a sink is one of mode replace.
func (pb *Playbook) Replaces(sink *Sink) bool {
	mode := pb.Resolve(sink.Action).Field(fieldMode)
	return pb.Stages(sink) && mode != nil && mode.Value == modeReplace
}

// StagingSinks are the sinks of a call of the step whose rows are published at its end, or at that of
// its loop.
func (pb *Playbook) StagingSinks(step *Step) []*Sink {
	return slices.DeleteFunc(step.successSinks(), func(sink *Sink) bool { return !pb.Stages(sink) })
}
