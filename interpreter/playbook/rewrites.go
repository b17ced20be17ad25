package playbook

import (
	"slices"

	"reprise/interpreter/expression"
)

// WritesOnce is the first sink into a table whose rows another run of the same partition would not
// take the place of, also one of steps that are written out within a step; nil for none.
func (pb *Playbook) WritesOnce() *Sink {
	for _, step := range pb.Steps {
		for _, sink := range step.successSinks() {
			if sink.Action == nil {
				continue
			}
			if action := pb.Resolve(sink.Action); action.Traits().KeepsStates && action.Field("table") != nil && !action.rewrites() {
				return sink
			}
		}
		if step.Action != nil && step.Action.Inline != nil {
			if sink := step.Action.Inline.WritesOnce(); sink != nil {
				return sink
			}
		}
	}
	return nil
}

// rewrites reports whether rows of a table take the place of those that are there.
func (a *Action) rewrites() bool {
	mode := a.Field("mode")
	return mode != nil && (mode.Template != nil || slices.Contains([]string{"upsert", "replace"}, expression.Text(mode.Value)))
}
