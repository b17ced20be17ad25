package playbook

import (
	"slices"

	"reprise/interpreter/expression"
)

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
	mode, _ := a.mode()
	deletes := a.Field(fieldDeleteMissing)
	return a.writesTable() && (mode == modeReplace || deletes != nil && (deletes.Value == true || deletes.Value == "true"))
}

// writesTable reports whether rows are written to a table of a database.
func (a *Action) writesTable() bool { return a.Traits().KeepsStates && a.Field("table") != nil }

// mode is how rows meet those of the table; known is false where a template says it.
func (a *Action) mode() (mode string, known bool) {
	switch field := a.Field(fieldMode); {
	case field == nil:
		return "insert", true
	case field.Template != nil:
		return "", false
	default:
		return expression.Text(field.Value), true
	}
}

// Replaces reports whether a sink is one of mode replace.
func (pb *Playbook) Replaces(sink *Sink) bool {
	mode, _ := pb.Resolve(sink.Action).mode()
	return pb.Stages(sink) && mode == modeReplace
}

// StagingSinks are the sinks of a call of the step whose rows are published at its end, or at that of
// its loop.
func (pb *Playbook) StagingSinks(step *Step) []*Sink {
	return slices.DeleteFunc(step.successSinks(), func(sink *Sink) bool { return !pb.Stages(sink) })
}
