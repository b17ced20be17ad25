package interpreter

import (
	"cmp"
	"fmt"
	"slices"

	"reprise/interpreter/lists"
)

// A run started by a step may replace an earlier one: as another attempt of the same call, or because a reprocess
// repeats the call. Its operations then have the keys of the earlier run, and calls that succeeded there are not
// repeated (docs/concepts/runs.md#playbooks-in-playbooks).

// Names of activities and queries that read earlier runs. They are part of histories.
const (
	// RecallActivity reads the work of earlier runs.
	RecallActivity = "recall"
	// EndedActivity reads from histories the outcomes of iterations.
	EndedActivity = "ended_iterations"
	// EarlierQuery returns an EarlierWork, even when the run has ended.
	EarlierQuery = "kept"
)

// Calls whose results are dropped because of these bounds are repeated.
const (
	// MaxEarlierBytes bounds the results that a run reuses from earlier ones, in bytes of JSON: they are in a
	// single message, which Temporal rejects above 2 MB.
	MaxEarlierBytes = 1 << 20
	// MaxEarlierAlong bounds the results that a run passes to its next history for later runs, in bytes of JSON, in
	// addition to the data of its steps.
	MaxEarlierAlong = 256 << 10
)

// KeyPrefix returns the prefix of the operation keys of a run. For a run started by a step it is derived from the
// key of the call, so that all attempts of the call have the same.
func (r RunInfo) KeyPrefix() string { return cmp.Or(r.Key, r.RunID) }

// WholeLap returns a text that distinguishes the runs of one identity, "" for the first.
func (r RunInfo) WholeLap() string {
	switch {
	case r.Round == 0:
		return r.Lap
	case r.Lap == "":
		return fmt.Sprint(r.Round)
	}
	return fmt.Sprintf("%s.%d", r.Lap, r.Round)
}

// ChildLap returns the RunInfo.Lap of the run that an attempt of this run starts.
func (r RunInfo) ChildLap(attempt int) string {
	lap := r.WholeLap()
	if lap == "" && attempt == 1 {
		return ""
	}
	return fmt.Sprintf("%sa%d", lap, attempt)
}

// Recall identifies the runs that may have made a call before; kept in workflow history.
type Recall struct {
	// Key is RunInfo.Key of all of them.
	Key string `json:"key"`
	// Attempts are the workflow IDs of runs started by previous attempts, latest first.
	Attempts []string `json:"attempts,omitempty"`
	// Runs are the workflow IDs of the earlier runs of the parent run, latest first. The runs that their attempts
	// started are found by Suffix and the number of the attempt.
	Runs   []string `json:"runs,omitempty"`
	Suffix string   `json:"suffix,omitempty"`
}

// MaxEarlier bounds the earlier runs that are read when a run replaces one that itself replaced another one, and so
// on.
const MaxEarlier = 5

// EarlierWork is the work of a run started by a step, for a run that replaces it. It travels through history.
type EarlierWork struct {
	Run   RunInfo       `json:"run"`
	Steps []EarlierStep `json:"steps,omitempty"`
	Loops []EarlierLoop `json:"loops,omitempty"`
	// Calls are the unfinished calls of steps without a loop.
	Calls []EarlierCall `json:"calls,omitempty"`
	// Wrote says that the run has begun more than reads.
	Wrote bool `json:"wrote,omitempty"`
	// Left are the steps whose results were dropped because they were too large.
	Left []string `json:"left,omitempty"`
}

// WithinBytes drops the largest results until the rest is at most most bytes, and records the names of their steps
// in Left.
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

// EarlierStep is a visit of a step that has succeeded; kept in workflow history.
type EarlierStep struct {
	Step   string      `json:"step"`
	Visit  int         `json:"visit"`
	Print  string      `json:"print"` // digest of what was requested
	From   string      `json:"from"`  // workflow ID of the run that made the call
	Result CallResult  `json:"result"`
	Loop   *LoopRecord `json:"loop,omitempty"` // without its errors
}

// EarlierLoop is a visit of a step with a loop, and the workflow IDs of the loops that have run for it, latest
// first; kept in workflow history.
type EarlierLoop struct {
	Step  string   `json:"step"`
	Visit int      `json:"visit"`
	Runs  []string `json:"runs"`
}

// EarlierAnswers is the combined work of earlier runs; kept in workflow history.
type EarlierAnswers struct {
	EarlierWork
	// From are the workflow IDs of the runs that were read, latest first.
	From []string `json:"from,omitempty"`
	// Silent lists earlier runs that could not be read, with the reason.
	Silent []string `json:"silent,omitempty"`
}

// AddEarlier adds the work of an earlier run to that of later ones.
func (r *EarlierAnswers) AddEarlier(id string, work EarlierWork) {
	if len(r.From) == 0 {
		r.Run = work.Run
	}
	r.From = append(r.From, id)
	r.Wrote = r.Wrote || work.Wrote
	for _, step := range work.Steps {
		if !slices.ContainsFunc(r.Steps, func(has EarlierStep) bool { return has.Step == step.Step && has.Visit == step.Visit }) {
			r.Steps = append(r.Steps, step)
		}
	}
	r.mergeCalls(work.Calls)
	for _, loop := range work.Loops {
		at := slices.IndexFunc(r.Loops, func(has EarlierLoop) bool { return has.Step == loop.Step && has.Visit == loop.Visit })
		if at < 0 {
			r.Loops = append(r.Loops, loop)
			continue
		}
		for _, run := range loop.Runs {
			r.Loops[at].AddRun(run)
		}
	}
	r.Left = lists.AddUnique(r.Left, work.Left...)
}

// mergeCalls adds the unfinished calls of an earlier run, except those that a later one has ended or begun.
func (r *EarlierAnswers) mergeCalls(calls []EarlierCall) {
	for _, call := range calls {
		ended := slices.ContainsFunc(r.Steps, func(has EarlierStep) bool { return has.Step == call.Step && has.Visit == call.Visit })
		begun := slices.ContainsFunc(r.Calls, func(has EarlierCall) bool { return has.Step == call.Step && has.Visit == call.Visit })
		if !ended && !begun {
			r.Calls = append(r.Calls, call)
		}
	}
}

// AddRun adds an earlier loop, up to MaxEarlier.
func (l *EarlierLoop) AddRun(run string) {
	if !slices.Contains(l.Runs, run) && len(l.Runs) < MaxEarlier {
		l.Runs = append(l.Runs, run)
	}
}

// EndedInput identifies loops by their workflow IDs, latest first. Kept in workflow history.
type EndedInput struct {
	Loops []string `json:"loops"`
	// Key is the prefix of the operation keys of the loop's run; with it, the result has digests. Without it, the
	// loop belongs to the reading run.
	Key string `json:"key,omitempty"`
}

// EndedIterations are the iterations of loops that have ended, by index; kept in workflow history.
type EndedIterations struct {
	Iterations []IterationResult `json:"iterations"`
	// Prints are the digests of what the iterations requested.
	Prints []string `json:"prints,omitempty"`
	// Begun lists the iterations that were stopped.
	Begun []BegunIteration `json:"begun,omitempty"`
	// Left lists iterations whose results were dropped because all of them together are too large.
	Left []LeftOut `json:"left,omitempty"`
}

// LeftOut is an iteration whose result was dropped; kept in workflow history.
type LeftOut struct {
	Index  int  `json:"i"`
	Failed bool `json:"f,omitempty"`
}

// IterationResult returns the part of the iteration's result that is still known.
func (l LeftOut) IterationResult() IterationResult {
	result := IterationResult{Index: l.Index, Result: CallResult{Status: StatusSuccess}}
	if l.Failed {
		result.Result.Status = StatusError
		result.Result.Error = &ErrorObject{Kind: KindTool, Class: ClassRetryable, Message: "its workflow says why it failed"}
	}
	return result
}

// MergeChosen adds the result of a loop over a selection of the elements, with their indexes.
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

// EarlierCall is the unfinished call of a visit; kept in workflow history.
type EarlierCall struct {
	Step  string `json:"step"`
	Visit int    `json:"visit"`
	// By is the ID of the workflow that was making the call when it was stopped; "" if the call has failed and
	// starts anew.
	By string `json:"by,omitempty"`
}

// BegunIteration is an iteration that has begun and not ended in an earlier loop; kept in workflow history.
type BegunIteration struct {
	Index int    `json:"i"`
	By    string `json:"by"` // ID of the workflow that was making its call
}
