package run

import (
	"maps"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
	"reprise/workflows/control"
	"reprise/workflows/protocol"
)

// frame is what all parts of a run share: what the run executes, and its progress. Only the run changes it, and
// earlier if the run replaces others. Any part may warn, or fail the run.
type frame struct {
	protocol.RunFrame
	id    string // of its workflow
	book  *playbook.Playbook
	input protocol.Input
	// controls has people's requests to the run.
	controls *control.Controls
	cancel   workflow.CancelFunc // of every branch
}

// newScope is what expressions see now.
func (f *frame) newScope() *interpreter.Scope { return interpreter.NewScope(f.book, f.Run, f.Data) }

// startedAt is when the run first started; the origin of a reprocess did before.
func (f *frame) startedAt() time.Time {
	if !f.StartedAt.IsZero() {
		return f.StartedAt
	}
	return f.Run.StartedAt
}

// failRun records the failure that ends the run and cancels every branch.
func (f *frame) failRun(failure *interpreter.ErrorObject) {
	if f.Failure == nil {
		f.Failure = failure
	}
	f.cancel()
}

// warnAbsent warns once of members that a step names and that are not there.
func (f *frame) warnAbsent(where string, absent []string) {
	for _, text := range absent {
		found, _, _ := strings.Cut(text, ",")
		if !slices.ContainsFunc(f.Warnings, func(warning string) bool { return strings.Contains(warning, found) }) {
			f.Warnings = append(f.Warnings, where+": "+text)
		}
	}
}

// warnOf warns about questionable data that expressions have noted; where names the
// expressions.
func (f *frame) warnOf(where string, budget *expression.Budget) {
	for _, text := range budget.Notes() {
		f.addWarning(where + ": " + text)
	}
}

// isStrict reports whether failed iterations of a step keep the run from being
// completed, however many of them the step itself lets pass.
func (f *frame) isStrict(record *protocol.StepRecord) bool {
	return (f.input.Strict || f.book.Strict) && record.Loop != nil && record.Loop.Stats.Failed > 0
}

// addWarning records a warning of the run, once.
func (f *frame) addWarning(text string) {
	f.Warnings = lists.Add(f.Warnings, text)
}

// runTree is the tree of the run.
func (f *frame) runTree() interpreter.Tree {
	if called := f.input.Called; called != nil {
		return called.Tree
	}
	return interpreter.Tree{Root: f.First, Most: f.Limits.MaxRuns}
}

// knownFiles are the playbooks that the run names and has.
func (f *frame) knownFiles() map[string]string {
	if len(f.Files) == 0 {
		return f.input.Files
	}
	all := maps.Clone(f.Files)
	for _, name := range playbook.SortedKeys(f.input.Files) {
		all[name] = f.input.Files[name]
	}
	return all
}

// calledBy is the attempt that has started the run, with what is known of the parent runs
// by now.
func (f *frame) calledBy() *protocol.ParentAttempt {
	if f.input.Called == nil {
		return nil
	}
	called := *f.input.Called
	called.Parents = f.controls.Parents
	return &called
}
