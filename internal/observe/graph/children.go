package graph

import (
	"slices"

	"reprise/internal/observe/runs"
	"reprise/interpreter"
	"reprise/interpreter/playbook"
)

// mostInner bounds the nested playbooks that are drawn, and the runs of them that are queried. A playbook that runs
// itself would be drawn endlessly.
const mostInner = 20

// Children is needed to draw the playbooks that steps run, inside their steps.
type Children struct {
	// Files are the playbooks that the playbook refers to by path, by file name.
	Files map[string]string
	// Run finds a run that a step started; if nil, playbooks are drawn without the status of their runs.
	Run func(id string) (*playbook.Playbook, *runs.Status)

	// Workload has the values for names in the picture; nil means the playbook's own workload.
	Workload any

	drawn int      // so many
	under []string // files that are being drawn
}

// drawChild returns the graph of the playbook that a step runs; nil if it runs none or an unknown one, if the
// playbook runs itself, or if mostInner is reached.
func (b *Children) drawChild(book *playbook.Playbook, step *playbook.Step, status *runs.Status) *Diagram {
	if b == nil || step.Action == nil {
		return nil
	}
	workload := b.Workload
	b.Workload = nil // a playbook within has its own
	defer func() { b.Workload = workload }()
	action := book.ResolveAction(step.Action)
	if !action.ToolTraits().Plays || b.drawn == mostInner {
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
	file, err := book.CalledFile(action, "")
	if err != nil || slices.Contains(b.under, file) {
		return nil
	}
	text, known := b.Files[file]
	if !known {
		return nil
	}
	inner, err := interpreter.LoadPlaybook(file, text)
	if err != nil {
		return nil
	}
	b.drawn++
	b.under = append(b.under, file)
	defer func() { b.under = b.under[:len(b.under)-1] }()
	return New(inner, nil, b)
}

// startedRun returns the last run that the last visit of a step started; nil if there is none. A loop starts many
// runs, which its counts summarize, so it has none here.
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
