package cost

import (
	"cmp"
	"fmt"

	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
)

// Assumption is what a person assumes about a run that has not begun.
type Assumption struct {
	Elements int // of each loop whose collection the playbook does not list
	Pages    int // of each call that fetches pages
	Attempts int // of each call that repeats failures, where each but the last fails
}

// Forecast is what a run of a playbook would cost if each of its steps is visited once.
type Forecast struct {
	Cost
	// Steps are the parts of the steps, in the order of the file. The rest is the run around them.
	Steps []StepCost `json:"steps"`
	// Notes say what is not part of it.
	Notes []string `json:"notes,omitempty"`
}

// StepCost is the part of a step.
type StepCost struct {
	Step string `json:"step"`
	Cost
}

// aroundSteps is the start of a run, its check, and its status at the end as a search attribute.
const aroundSteps = 3

// Sizes of histories in bytes, as measured with responses of some hundred bytes.
const (
	bytesOfRun      = 1_200 // around its steps
	bytesOfAttempt  = 1_500
	bytesOfRetry    = 4_200 // in a loop, with the wait
	bytesOfChild    = 4_500 // with what its parent records of it
	bytesOfElement  = 1_000
	bytesOfPage     = 200
	bytesOfWriting  = 2_300 // of an iteration's sink
	bytesOfAwaiting = 1_500
)

// Foretell returns what a run would cost in a namespace that starter setup has prepared. Attempts are assumed to be
// shorter than the time between two heartbeats.
func Foretell(book *playbook.Playbook, a Assumption) Forecast {
	f := Forecast{Cost: Cost{Actions: aroundSteps, Workflows: 1, HistoryBytes: bytesOfRun}, Steps: []StepCost{}}
	rows := false
	for i, step := range book.Steps {
		of := f.stepCost(step, a)
		if i == 0 && step.Loop == nil && step.Action != nil && isPlaybook(step.Action) {
			of.Actions-- // the markers of the check and of the child run are those of one workflow task
		}
		of.Actions += len(step.OnSuccess)
		if step.Action != nil && step.Action.ToolTraits().Awaits {
			of.Actions += 2 // the status of the run becomes awaiting, and running again
		}
		f.Steps = append(f.Steps, StepCost{step.Name, of})
		f.Cost = f.Plus(of)
		rows = rows || countsRows(step)
	}
	if f.Actions += len(book.OnSuccess); rows {
		f.Actions++ // the memo shows the rows
	}
	f.noteUncounted("concurrency", book.Concurrency != nil)
	f.noteUncounted("partitions", book.Partitions != nil)
	f.noteUncounted("notify", len(book.Notify) > 0)
	return f
}

// noteUncounted notes that something that the playbook uses is not counted.
func (f *Forecast) noteUncounted(what string, used bool) {
	if used {
		f.addNote("%s is not counted", what)
	}
}

func (f *Forecast) addNote(format string, args ...any) {
	f.Notes = lists.AddUnique(f.Notes, fmt.Sprintf(format, args...))
}

// countsRows reports whether a step counts rows that the run shows.
func countsRows(step *playbook.Step) bool {
	if step.Rows != nil || step.Collect != nil || len(sinksOf(step)) > 0 {
		return true
	}
	for _, policy := range step.Retry {
		if policy.Then.Collect != nil {
			return true
		}
	}
	return false
}

// sinksOf returns the sinks of a step: first those of the step itself, then those of its loop and of its policies, with
// those of pages.
func sinksOf(step *playbook.Step) (sinks []*playbook.Sink) {
	sinks = append(sinks, step.Sinks...)
	if step.Loop != nil {
		sinks = append(sinks, step.Loop.Sinks...)
	}
	for _, policy := range step.Retry {
		sinks = append(append(sinks, policy.Then.Sinks...), policy.Then.PageSinks...)
	}
	return sinks
}

// stepCost returns the cost of one visit of a step.
func (f *Forecast) stepCost(step *playbook.Step, a Assumption) Cost {
	if step.Action == nil {
		return Cost{}
	}
	f.noteUncounted("rate_limit of "+step.Name, step.Action.RateLimit != nil)
	f.noteUncounted("incremental of "+step.Name, step.Incremental != nil)
	if step.Loop != nil {
		return f.loopCost(step, a)
	}
	of := f.callCost(step, a)
	for range sinksOf(step) {
		of = of.Plus(Cost{Actions: 1, HistoryBytes: bytesOfAttempt})
	}
	return of
}

// callCost returns the cost of a call in the workflow of its run, without sinks.
func (f *Forecast) callCost(step *playbook.Step, a Assumption) Cost {
	retry := Cost{Actions: 2, HistoryBytes: 2 * bytesOfAttempt}.Times(retriesOf(step, a)) // a timer, and another attempt
	traits := step.Action.ToolTraits()
	name, _ := step.Action.ToolName()
	switch {
	case isPlaybook(step.Action):
		return f.childCost(step, a).Plus(retry)
	case traits.Awaits: // its question or request, its timeout, the answer
		of := Cost{Actions: 3, HistoryBytes: bytesOfAwaiting}
		if name != "approval" || step.Action.Field("on_start") != nil {
			of = of.Plus(Cost{Actions: 1, HistoryBytes: bytesOfAttempt})
		}
		return of.Plus(retry)
	}
	of := Cost{Actions: 1, HistoryBytes: bytesOfAttempt}
	if further := pagesOf(step, a) - 1; further > 0 {
		activities := (further + pagesPerActivity(step) - 1) / pagesPerActivity(step)
		of = of.Plus(Cost{Actions: activities, HistoryBytes: activities*bytesOfAttempt + further*bytesOfPage})
	}
	return of.Plus(retry)
}

func isPlaybook(action *playbook.Action) bool {
	name, _ := action.ToolName()
	return name == playbook.PlaybookTool
}

// childCost returns the cost of a run of another playbook: a marker with its text, its start, and what it does.
func (f *Forecast) childCost(step *playbook.Step, a Assumption) Cost {
	of := Cost{Actions: 3, HistoryBytes: bytesOfChild}
	if step.Action.Inline == nil {
		f.addNote("%s runs another playbook, whose steps are not counted; estimate that one by itself", step.Name)
		return of.Plus(Cost{Actions: 1, Workflows: 1})
	}
	inner := Foretell(step.Action.Inline, a)
	for _, note := range inner.Notes {
		f.addNote("%s", note)
	}
	inner.Actions-- // it is started by its parent
	return of.Plus(inner.Cost)
}

// loopCost returns the cost of a loop: a workflow for it, one for each batch, and those of shards.
func (f *Forecast) loopCost(step *playbook.Step, a Assumption) Cost {
	elements := a.Elements
	if listed := step.Loop.Collection; listed != nil && listed.Template == nil {
		if list, ok := listed.Value.([]any); ok {
			elements = len(list)
		} else if listed.Items != nil {
			elements = len(listed.Items)
		}
	}
	if step.Loop.Source != nil {
		f.addNote("the pages of the source of %s are not counted", step.Name)
	}
	batch := step.Loop.BatchSize(elements)
	children := (elements + batch - 1) / batch
	of := f.treeCost(step, elements, batch, false)
	of = of.Plus(Cost{Actions: 2, Workflows: 1, HistoryBytes: bytesOfChild}.Times(children))
	of = of.Plus(f.batchCost(step, elements, children, a))
	for range step.Sinks {
		of = of.Plus(Cost{Actions: 1, HistoryBytes: bytesOfAttempt})
	}
	return of
}

// treeCost returns the cost of the workflows of a loop over n elements that are not those of its batches.
func (f *Forecast) treeCost(step *playbook.Step, n, batch int, shard bool) Cost {
	own := Cost{Actions: 2, Workflows: 1, HistoryBytes: bytesOfChild}
	size := interpreter.ShardSize(n, batch, interpreter.LeafBatches, interpreter.FanShards)
	if (n+batch-1)/batch <= interpreter.LeafBatches && (shard || n <= interpreter.LeafElements) {
		return own
	}
	for from := 0; from < n; from += size {
		own = own.Plus(f.treeCost(step, min(size, n-from), batch, true))
		if from+size < n && step.Loop.Mode == playbook.Parallel {
			own.Actions += step.Loop.MaxConcurrency // signals of what it uses of the window while the next one begins
		}
	}
	return own
}

// batchCost returns the cost of what the children of a loop do.
func (f *Forecast) batchCost(step *playbook.Step, elements, children int, a Assumption) Cost {
	if isPlaybook(step.Action) || step.Action.ToolTraits().Awaits {
		return f.callCost(step, a).Times(elements)
	}
	of := Cost{Actions: children, HistoryBytes: elements * bytesOfElement}
	if pages := pagesOf(step, a); pages > 1 {
		of.HistoryBytes += elements * pages * bytesOfPage
	}
	of = of.Plus(Cost{Actions: 2, HistoryBytes: bytesOfRetry}.Times(elements * retriesOf(step, a)))
	for _, sink := range sinksOf(step)[len(step.Sinks):] {
		of.HistoryBytes += elements * bytesOfWriting
		of.Actions += sinkActivities(step.Loop, sink, elements, children)
	}
	return of
}

// sinkActivities returns how many activities write the iterations of a loop to a sink. A table has a ledger, so the
// activity that makes the attempt also writes. Other sinks wait until the attempts are in the history: those of a
// batch, or of one iteration after the other.
func sinkActivities(loop *playbook.Loop, sink *playbook.Sink, elements, children int) int {
	switch {
	case sink.Action.Field("table") != nil && sink.Action.Field("statement") == nil:
		return 0
	case loop.Mode == playbook.Parallel:
		return children
	}
	return elements
}

// pagesOf returns the pages of a call.
func pagesOf(step *playbook.Step, a Assumption) int {
	for _, policy := range step.Retry {
		if policy.Then.NextCall != nil {
			return max(a.Pages, 1)
		}
	}
	return 1
}

// pagesPerActivity returns how many pages an activity fetches, if they follow each other quickly.
func pagesPerActivity(step *playbook.Step) int {
	for _, policy := range step.Retry {
		if policy.Then.PagesPerActivity > 0 {
			return policy.Then.PagesPerActivity
		}
	}
	return call.MostPagesPerActivity
}

// retriesOf returns the failed attempts of a call that repeats failures.
func retriesOf(step *playbook.Step, a Assumption) int {
	most := 0
	for _, policy := range step.Retry {
		if policy.Then.NextCall == nil {
			most = max(most, cmp.Or(pointed(policy.Then.MaxAttempts), a.Attempts))
		}
	}
	return max(min(a.Attempts, most)-1, 0)
}

// pointed returns the value of a pointer, 0 for nil.
func pointed(n *int) int {
	if n == nil {
		return 0
	}
	return *n
}
