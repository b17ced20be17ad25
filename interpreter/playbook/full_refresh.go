package playbook

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
)

// FullRefreshable returns the steps of a playbook that keep a state, in file order; those of an inline playbook as
// STEP/INNER.
func (pb *Playbook) FullRefreshable() []string {
	return lists.Map(pb.KeptStates(), func(state KeptState) string { return state.Step })
}

// stepWithin returns the step with a name, or the step STEP/INNER of an inline playbook, and the playbook that
// contains it; nil if there is none.
func (pb *Playbook) stepWithin(name string) (of *Playbook, step *Step) {
	outer, inner, isWithin := strings.Cut(name, "/")
	step = pb.Step(outer)
	switch {
	case !isWithin:
		return pb, step
	case step == nil || step.Action == nil || step.Action.Inline == nil:
		return pb, nil
	}
	return step.Action.Inline.stepWithin(inner)
}

// StripStepPrefix returns the names that begin with STEP/, without that prefix, for the inline playbook of the step.
func StripStepPrefix(step string, names []string) []string {
	return lists.Pick(names, func(name string) (string, bool) { return strings.CutPrefix(name, step+"/") })
}

// CheckFullRefresh returns an error for steps that cannot read from the initial value again: those that keep no
// state, and those whose sink would insert the rows of earlier runs twice.
func (pb *Playbook) CheckFullRefresh(steps []string) error {
	for _, name := range steps {
		of, step := pb.stepWithin(name)
		outer, _, isWithin := strings.Cut(name, "/")
		switch runs := pb.Step(outer); {
		case step != nil && step.Incremental == nil:
			return fmt.Errorf("step %q has no incremental, so it always reads everything%s", name, pb.otherSteps(name))
		case step != nil:
		case isWithin && runs != nil && runs.Action != nil && runs.Action.Inline == nil && pb.ResolveAction(runs.Action).ToolTraits().Plays:
			return fmt.Errorf("step %q runs the playbook of another file; to read it in full, run that file with --full-refresh", outer)
		default:
			return fmt.Errorf("playbook %s has no step %q to read in full%s", pb.Name, name, pb.otherSteps(name))
		}
		if sink := of.InsertsTwice(step); sink != nil {
			return fmt.Errorf("step %q reads all rows again, and the sink on line %d would insert rows that the table already has; "+
				"use mode: upsert with a key, or empty the table and forget the state with starter state reset", name, sink.Pos.Line)
		}
	}
	if len(steps) != len(slices.Compact(slices.Sorted(slices.Values(steps)))) {
		return errors.New("a step is named twice among those to read in full")
	}
	return nil
}

// otherSteps returns a hint with the steps that keep a state.
func (pb *Playbook) otherSteps(name string) string {
	known := pb.FullRefreshable()
	if near := expression.Suggest(name, known); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	if len(known) == 0 {
		return "; no step of the playbook keeps a state"
	}
	return "; those that keep a state: " + strings.Join(known, ", ")
}

// InsertsTwice returns the first sink of a step that would insert rows again which an earlier run has written, nil
// for none.
func (pb *Playbook) InsertsTwice(step *Step) *Sink {
	return pb.firstTableSink(step.rowSinks(), func(mode string) bool { return mode == "insert" })
}

// InsertsRows reports whether a sink of a step's calls skips rows that were written before. Modes that overwrite
// rows need not do that.
func (pb *Playbook) InsertsRows(step *Step) bool { return pb.InsertingSink(step) != nil }

// InsertingSink returns the first such sink, nil for none.
func (pb *Playbook) InsertingSink(step *Step) *Sink {
	return pb.firstTableSink(step.SuccessSinks(), leavesRows)
}

// WritesAgain reports whether a sink of a step would write rows again if they are read again, because it inserts,
// or does not write to a table.
func (pb *Playbook) WritesAgain(step *Step) bool {
	return slices.ContainsFunc(step.SuccessSinks(), func(sink *Sink) bool {
		if sink.Action == nil {
			return false
		}
		action := pb.ResolveAction(sink.Action)
		mode, known := action.WriteMode()
		return !action.writesTable() || !known || mode == "insert"
	})
}

// UnsequencedKey returns the constant key of the first sink of a step that upserts rows without sequence_by, so that the
// row written last replaces others with its key, whatever their cursors; nil if there is none.
func (pb *Playbook) UnsequencedKey(step *Step) []string {
	upserts := func(mode string) bool { return strings.EqualFold(mode, "upsert") }
	for _, sink := range step.SuccessSinks() {
		if pb.firstTableSink([]*Sink{sink}, upserts) == nil {
			continue
		}
		action := pb.ResolveAction(sink.Action)
		if key := action.Field("key"); key != nil && key.IsConstant() && action.Field("sequence_by") == nil {
			return LiteralTexts(key.Value)
		}
	}
	return nil
}

// leavesRows reports whether a sink with this mode leaves existing rows of its table unchanged.
func leavesRows(mode string) bool { return !IsRepeatable(mode) }

// firstTableSink returns the first sink that writes to a table with a matching mode, nil for none.
func (pb *Playbook) firstTableSink(sinks []*Sink, is func(mode string) bool) *Sink {
	for _, sink := range sinks {
		if sink.Action == nil {
			continue
		}
		action := pb.ResolveAction(sink.Action)
		if mode, known := action.WriteMode(); action.writesTable() && known && is(mode) {
			return sink
		}
	}
	return nil
}

// WritesOnce returns the first sink into a table, including those of inline playbooks, whose rows another run of
// the same partition would not replace; nil for none.
func (pb *Playbook) WritesOnce() *Sink {
	for _, step := range pb.Steps {
		if sink := pb.firstTableSink(step.SuccessSinks(), leavesRows); sink != nil {
			return sink
		}
		if step.Action != nil && step.Action.Inline != nil {
			if sink := step.Action.Inline.WritesOnce(); sink != nil {
				return sink
			}
		}
	}
	return nil
}
