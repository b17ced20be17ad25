package interpreter

import (
	"cmp"
	"fmt"
	"slices"

	"reprise/interpreter/lists"
)

// A run that a step has started may replace an earlier one: it is another attempt of the same
// call, or a reprocess runs the call again. Its operations then have the keys of the earlier
// run's, and calls that ended well there are not repeated
// (docs/concepts/runs.md#playbooks-in-playbooks).

// Names of what reads earlier runs. They are part of histories.
const (
	// RecallActivity reads what earlier runs have done.
	RecallActivity = "recall"
	// EndedActivity reads from histories how iterations of loops have ended.
	EndedActivity = "ended_iterations"
	// EarlierQuery answers with Kept, also when the run has ended.
	EarlierQuery = "kept"
)

// Calls whose results are left out are made again.
const (
	// MaxEarlierBytes bounds the results that a run takes over from an earlier one, in bytes of JSON:
	// they are in its first message, which Temporal refuses over 2 MB.
	MaxEarlierBytes = 1 << 20
	// MaxEarlierAlong bounds the results that a run takes along into its next history, in bytes of
	// JSON, beside what its steps need.
	MaxEarlierAlong = 256 << 10
)

// Identity begins the operation keys of a run. In a run started by a step it is derived from
// the key of the call, so that all attempts of the call have the same.
func (r RunInfo) Identity() string { return cmp.Or(r.Key, r.RunID) }

// WholeLap distinguishes the runs of one identity, "" for the first.
func (r RunInfo) WholeLap() string {
	switch {
	case r.Round == 0:
		return r.Lap
	case r.Lap == "":
		return fmt.Sprint(r.Round)
	}
	return fmt.Sprintf("%s.%d", r.Lap, r.Round)
}

// ChildLap is RunInfo.Lap of the run that an attempt of this one starts.
func (r RunInfo) ChildLap(attempt int) string {
	lap := r.WholeLap()
	if lap == "" && attempt == 1 {
		return ""
	}
	return fmt.Sprintf("%sa%d", lap, attempt)
}

// Recall says which runs may have made a call before; kept in workflow history.
type Recall struct {
	// Key is RunInfo.Key of all of them.
	Key string `json:"key"`
	// Attempts are the workflow IDs of the attempts before, the last one first.
	Attempts []string `json:"attempts,omitempty"`
	// Runs are the workflow IDs of the earlier runs of the one above, the last one
	// first. Theirs are found by Suffix and the number of an attempt.
	Runs   []string `json:"runs,omitempty"`
	Suffix string   `json:"suffix,omitempty"`
}

// MaxEarlier bounds the earlier runs whose histories are read when a run takes the place of one
// that took the place of another one.
const MaxEarlier = 5

// EarlierWork is what a run that a step has started has done, for one that replaces it.
// It travels through history.
type EarlierWork struct {
	Run   RunInfo       `json:"run"`
	Steps []EarlierStep `json:"steps,omitempty"`
	Loops []EarlierLoop `json:"loops,omitempty"`
	// Calls are of steps without a loop.
	Calls []EarlierCall `json:"calls,omitempty"`
	// Wrote says that more than reads was begun.
	Wrote bool `json:"wrote,omitempty"`
	// Left are the steps whose results were too large.
	Left []string `json:"left,omitempty"`
}

// WithinBytes drops the largest results until the rest fits into so many bytes. Dropped results
// are named.
func (k EarlierWork) WithinBytes(most int) EarlierWork {
	sizes, size := make([]int, len(k.Steps)), 0
	for i, step := range k.Steps {
		sizes[i] = EncodedSize(step)
		size += sizes[i]
	}
	k.Steps, k.Left = slices.Clone(k.Steps), slices.Clone(k.Left)
	for size > most {
		at := 0
		for i := range sizes {
			if sizes[i] > sizes[at] {
				at = i
			}
		}
		size -= sizes[at]
		k.Left = append(k.Left, k.Steps[at].Step)
		k.Steps, sizes = slices.Delete(k.Steps, at, at+1), slices.Delete(sizes, at, at+1)
	}
	return k
}

// EarlierStep is a visit of a step that has ended well; kept in workflow history.
type EarlierStep struct {
	Step   string      `json:"step"`
	Visit  int         `json:"visit"`
	Print  string      `json:"print"` // of what was requested
	From   string      `json:"from"`  // workflow ID of the run that has made the call
	Result CallResult  `json:"result"`
	Loop   *LoopRecord `json:"loop,omitempty"` // without its errors
}

// EarlierLoop is a visit of a step with a loop and the workflow IDs of the loops that
// have run for it, the last one first; kept in workflow history.
type EarlierLoop struct {
	Step  string   `json:"step"`
	Visit int      `json:"visit"`
	Runs  []string `json:"runs"`
}

// EarlierAnswers is what earlier runs have done; kept in workflow history.
type EarlierAnswers struct {
	EarlierWork
	// From are the workflow IDs of those that have, the last one first.
	From []string `json:"from,omitempty"`
	// Silent lists earlier runs that could not answer, with the reason.
	Silent []string `json:"silent,omitempty"`
}

// Merge adds what an earlier run has answered to what later ones have.
func (r *EarlierAnswers) Merge(id string, kept EarlierWork) {
	if len(r.From) == 0 {
		r.Run = kept.Run
	}
	r.From = append(r.From, id)
	r.Wrote = r.Wrote || kept.Wrote
	for _, step := range kept.Steps {
		if !slices.ContainsFunc(r.Steps, func(has EarlierStep) bool { return has.Step == step.Step && has.Visit == step.Visit }) {
			r.Steps = append(r.Steps, step)
		}
	}
	r.mergeCalls(kept.Calls)
	for _, loop := range kept.Loops {
		at := slices.IndexFunc(r.Loops, func(has EarlierLoop) bool { return has.Step == loop.Step && has.Visit == loop.Visit })
		if at < 0 {
			r.Loops = append(r.Loops, loop)
			continue
		}
		for _, run := range loop.Runs {
			r.Loops[at].Add(run)
		}
	}
	r.Left = lists.Add(r.Left, kept.Left...)
}

// mergeCalls adds the calls of an earlier run. What a later one has done of them counts.
func (r *EarlierAnswers) mergeCalls(calls []EarlierCall) {
	for _, call := range calls {
		ended := slices.ContainsFunc(r.Steps, func(has EarlierStep) bool { return has.Step == call.Step && has.Visit == call.Visit })
		begun := slices.ContainsFunc(r.Calls, func(has EarlierCall) bool { return has.Step == call.Step && has.Visit == call.Visit })
		if !ended && !begun {
			r.Calls = append(r.Calls, call)
		}
	}
}

// Add notes an earlier loop.
func (l *EarlierLoop) Add(run string) {
	if !slices.Contains(l.Runs, run) && len(l.Runs) < MaxEarlier {
		l.Runs = append(l.Runs, run)
	}
}

// EndedInput says which loops are meant: workflow IDs, the last one first. Kept in
// workflow history.
type EndedInput struct {
	Loops []string `json:"loops"`
	// Key begins the operation keys of the loop's run; with it, the answer has fingerprints.
	// Without it, the loop belongs to the reading run.
	Key string `json:"key,omitempty"`
}

// EndedIterations are the iterations that have ended in loops, by index; kept in
// workflow history.
type EndedIterations struct {
	Iterations []IterationResult `json:"iterations"`
	// Prints are the prints of what the iterations have requested.
	Prints []string `json:"prints,omitempty"`
	// Begun lists the stopped iterations.
	Begun []BegunIteration `json:"begun,omitempty"`
	// Left lists iterations whose results were dropped because together they are too large.
	Left []LeftOut `json:"left,omitempty"`
}

// LeftOut is an iteration whose result is left out; kept in workflow history.
type LeftOut struct {
	Index  int  `json:"i"`
	Failed bool `json:"f,omitempty"`
}

// IterationResult returns what is known of the iteration's result.
func (l LeftOut) IterationResult() IterationResult {
	result := IterationResult{Index: l.Index, Result: CallResult{Status: StatusSuccess}}
	if l.Failed {
		result.Result.Status = StatusError
		result.Result.Error = &ErrorObject{Kind: KindTool, Class: ClassRetryable, Message: "its workflow says why it failed"}
	}
	return result
}

// MergeChosen adds the iterations of a loop over a choice of the elements.
func (l *LoopResult) MergeChosen(indexes []int, chosen *LoopResult) {
	if len(l.Results) > 0 && len(chosen.Results) == len(indexes) {
		for position, index := range indexes {
			l.Results[index] = chosen.Results[position]
		}
	}
	rest := *chosen
	rest.Results = nil
	l.MergeShard(0, &rest)
}

// EarlierCall is the call of a visit that has begun and not ended well; kept in workflow
// history.
type EarlierCall struct {
	Step  string `json:"step"`
	Visit int    `json:"visit"`
	// By is the workflow ID of the one that was making the call when it was stopped, ""
	// where the call has failed: then it begins anew.
	By string `json:"by,omitempty"`
}

// BegunIteration is an iteration that has begun and not ended in an earlier loop; kept
// in workflow history.
type BegunIteration struct {
	Index int    `json:"i"`
	By    string `json:"by"` // workflow ID of the one that was making its call
}
