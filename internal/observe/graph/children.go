package graph

import (
	"slices"

	"reprise/internal/observe/runs"
	"reprise/interpreter"
	"reprise/interpreter/playbook"
)

// mostInner bounds the playbooks that are drawn within another one, and the runs of these that
// are queried. A playbook that runs itself would be drawn without end.
const mostInner = 20

// Children holds what is needed to draw the playbooks that a playbook runs inside its steps.
type Children struct {
	// Files are the files that the playbook names by path, by the names of their files.
	Files map[string]string
	// Run finds a run that a step has started; nil draws none.
	Run func(id string) (*playbook.Playbook, *runs.Status)

	// Workload has the values of keys from which names in the picture are made; nil stands for the
	// playbook's own.
	Workload any

	drawn int      // so many
	under []string // files that are being drawn
}

// drawChild returns the graph of the playbook that a step runs, nil for none, or where it is
// not known, runs itself or would be one too many.
func (b *Children) drawChild(book *playbook.Playbook, step *playbook.Step, status *runs.Status) *Diagram {
	if b == nil || step.Action == nil {
		return nil
	}
	workload := b.Workload
	b.Workload = nil // a playbook within has its own
	defer func() { b.Workload = workload }()
	action := book.Resolve(step.Action)
	if !action.Traits().Plays || b.drawn == mostInner {
		return nil
	}
	if inner, of := b.startedRun(step, status); inner != nil {
		b.drawn++
		return New(inner, of, b)
	}
	if action.Inline != nil {
		b.drawn++
		return New(action.Inline, nil, b)
	}
	if action.Field(playbook.FieldPath) == nil {
		return nil // a name is that of a file of the workers
	}
	file, err := book.Called(action, "")
	if err != nil || slices.Contains(b.under, file) {
		return nil
	}
	text, known := b.Files[file]
	if !known {
		return nil
	}
	inner, err := interpreter.Load(file, text)
	if err != nil {
		return nil
	}
	b.drawn++
	b.under = append(b.under, file)
	defer func() { b.under = b.under[:len(b.under)-1] }()
	return New(inner, nil, b)
}

// startedRun returns the run that the last visit of a step has started last, nil for none.
// Those of a loop are many, which its counts sum up.
func (b *Children) startedRun(step *playbook.Step, status *runs.Status) (*playbook.Playbook, *runs.Status) {
	if b.Run == nil || status == nil || step.Loop != nil {
		return nil, nil
	}
	child := ""
	for _, visit := range status.Visits(step.Name) {
		child = visit.Child
	}
	if child == "" {
		return nil, nil
	}
	return b.Run(child)
}
