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
	"reprise/interpreter/tree"
	"reprise/workflows/control"
	"reprise/workflows/protocol"
)

// frame is what all parts of a run share: what the run executes, and its progress. Only the run changes it, and
// earlier if the run replaces others. Any part may add a warning or fail the run.
type frame struct {
	protocol.RunFrame
	id    string // workflow ID
	book  *playbook.Playbook
	input protocol.Input
	// controls has people's requests to the run.
	controls *control.Controls
	cancel   workflow.CancelFunc // cancels every branch
}

// newScope returns the scope of expressions with the current data.
func (f *frame) newScope() *interpreter.Scope { return interpreter.NewScope(f.book, f.Run, f.Data) }

// startedAt returns when the run started; for a reprocess, when the reprocess started.
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

// warnAbsent warns, once each, about missing members that expressions of a step read.
func (f *frame) warnAbsent(where string, absent []string) {
	for _, text := range absent {
		found, _, _ := strings.Cut(text, ",")
		if !slices.ContainsFunc(f.Warnings, func(warning string) bool { return strings.Contains(warning, found) }) {
			f.Warnings = append(f.Warnings, where+": "+text)
		}
	}
}

// warnOf warns about questionable data that expressions have reported; where names the expressions.
func (f *frame) warnOf(where string, budget *expression.Budget) {
	for _, text := range budget.Notes() {
		f.addWarning(where + ": " + text)
	}
}

// isStrict reports whether failed iterations of a step make the run a partial success although the step tolerates
// them.
func (f *frame) isStrict(record *protocol.StepRecord) bool {
	return (f.input.Strict || f.book.Strict) && record.Loop != nil && record.Loop.Stats.Failed > 0
}

// addWarning records a warning of the run, once.
func (f *frame) addWarning(text string) {
	f.Warnings = lists.AddUnique(f.Warnings, text)
}

// runTree returns the tree that the run belongs to.
func (f *frame) runTree() tree.Tree {
	if called := f.input.Called; called != nil {
		return called.Tree
	}
	return tree.Tree{Root: f.First, Most: f.Limits.MaxRuns}
}

// knownFiles returns the playbooks that the run names, by file name.
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

// calledBy returns the attempt that started the run, with the current controls of the parent runs.
func (f *frame) calledBy() *protocol.ParentAttempt {
	if f.input.Called == nil {
		return nil
	}
	called := *f.input.Called
	called.Parents = f.controls.Parents
	return &called
}
