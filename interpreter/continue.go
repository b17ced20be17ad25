package interpreter

import (
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// A run that a step has started may take the place of an earlier one: it is another
// attempt of the same call, or a reprocess runs the call again. Its operations are
// those of the earlier run and have their keys, and calls that have ended well there
// are not made again (language.md, section playbooks in playbooks).

// Names of what asks earlier runs. They are part of histories.
const (
	// RecallActivity asks earlier runs what they have done.
	RecallActivity = "recall"
	// EndedActivity reads from histories how iterations of loops have ended.
	EndedActivity = "ended_iterations"
	// KeptQuery answers with Kept, also when the run has ended.
	KeptQuery = "kept"
)

// MaxKept bounds the results that a run takes over, in bytes of JSON, and MaxKeptAlong
// those that it takes along into its next history, beside what its steps need. Calls whose results are
// left out are made again.
const (
	MaxKept      = 1 << 20
	MaxKeptAlong = 256 << 10
)

// Identity is what the operation keys of a run begin with: those of a run that a step
// has started follow from the key of the call, whichever attempt makes it.
func (r RunInfo) Identity() string {
	if r.Key != "" {
		return r.Key
	}
	return r.RunID
}

// lap tells the runs of one identity apart, "" for the first.
func (r RunInfo) lap() string {
	switch {
	case r.Round == 0:
		return r.Lap
	case r.Lap == "":
		return fmt.Sprint(r.Round)
	}
	return fmt.Sprintf("%s.%d", r.Lap, r.Round)
}

// LapBelow is RunInfo.Lap of the run that an attempt of this one starts.
func (r RunInfo) LapBelow(attempt int) string {
	lap := r.lap()
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

// MaxEarlier bounds the earlier runs that are asked.
const MaxEarlier = 5

// Kept is what a run that a step has started has done, for one that takes its place.
// It travels through history.
type Kept struct {
	Run   RunInfo    `json:"run"`
	Steps []KeptStep `json:"steps,omitempty"`
	Loops []KeptLoop `json:"loops,omitempty"`
	// Calls are of steps without a loop.
	Calls []KeptCall `json:"calls,omitempty"`
	// Wrote says that more than reads was begun.
	Wrote bool `json:"wrote,omitempty"`
	// Left are the steps whose results were too large.
	Left []string `json:"left,omitempty"`
}

// Within leaves out the largest results until the others take no more than so many
// bytes. What is left out is named.
func (k Kept) Within(most int) Kept {
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

// KeptStep is a visit of a step that has ended well; kept in workflow history.
type KeptStep struct {
	Step   string      `json:"step"`
	Visit  int         `json:"visit"`
	Print  string      `json:"print"` // of what was asked for
	From   string      `json:"from"`  // workflow ID of the run that has made the call
	Result CallResult  `json:"result"`
	Loop   *LoopRecord `json:"loop,omitempty"` // without its errors
}

// KeptLoop is a visit of a step with a loop and the workflow IDs of the loops that
// have run for it, the last one first; kept in workflow history.
type KeptLoop struct {
	Step  string   `json:"step"`
	Visit int      `json:"visit"`
	Runs  []string `json:"runs"`
}

// Recalled is what earlier runs have answered; kept in workflow history.
type Recalled struct {
	Kept
	// From are the workflow IDs of those that have, the last one first.
	From []string `json:"from,omitempty"`
	// Silent are those that are there and could not answer, with the reason.
	Silent []string `json:"silent,omitempty"`
}

// Merge adds what an earlier run has answered to what later ones have.
func (r *Recalled) Merge(id string, kept Kept) {
	if len(r.From) == 0 {
		r.Run = kept.Run
	}
	r.From = append(r.From, id)
	r.Wrote = r.Wrote || kept.Wrote
	for _, step := range kept.Steps {
		if !slices.ContainsFunc(r.Steps, func(has KeptStep) bool { return has.Step == step.Step && has.Visit == step.Visit }) {
			r.Steps = append(r.Steps, step)
		}
	}
	r.mergeCalls(kept.Calls)
	for _, loop := range kept.Loops {
		at := slices.IndexFunc(r.Loops, func(has KeptLoop) bool { return has.Step == loop.Step && has.Visit == loop.Visit })
		if at < 0 {
			r.Loops = append(r.Loops, loop)
			continue
		}
		for _, run := range loop.Runs {
			r.Loops[at].Add(run)
		}
	}
	for _, left := range kept.Left {
		if !slices.Contains(r.Left, left) {
			r.Left = append(r.Left, left)
		}
	}
}

// mergeCalls adds the calls of an earlier run. What a later one has done of them counts.
func (r *Recalled) mergeCalls(calls []KeptCall) {
	for _, call := range calls {
		ended := slices.ContainsFunc(r.Steps, func(has KeptStep) bool { return has.Step == call.Step && has.Visit == call.Visit })
		begun := slices.ContainsFunc(r.Calls, func(has KeptCall) bool { return has.Step == call.Step && has.Visit == call.Visit })
		if !ended && !begun {
			r.Calls = append(r.Calls, call)
		}
	}
}

// Add notes an earlier loop.
func (l *KeptLoop) Add(run string) {
	if !slices.Contains(l.Runs, run) && len(l.Runs) < MaxEarlier {
		l.Runs = append(l.Runs, run)
	}
}

// EndedInput says which loops are meant: workflow IDs, the last one first. Kept in
// workflow history.
type EndedInput struct {
	Loops []string `json:"loops"`
	// Key is what the operation keys of their run begin with; with it the answer has
	// prints. Without it the loop is a part of the run that asks.
	Key string `json:"key,omitempty"`
}

// EndedIterations are the iterations that have ended in loops, by index; kept in
// workflow history.
type EndedIterations struct {
	Iterations []IterationResult `json:"iterations"`
	// Prints are those of what the iterations have asked for.
	Prints []string `json:"prints,omitempty"`
	// Begun are those that were stopped.
	Begun []BegunIteration `json:"begun,omitempty"`
	// Left are those whose results are too large together.
	Left []LeftOut `json:"left,omitempty"`
}

// LeftOut is an iteration whose result is left out; kept in workflow history.
type LeftOut struct {
	Index  int  `json:"i"`
	Failed bool `json:"f,omitempty"`
}

// Result is that of the iteration, as far as it is known.
func (l LeftOut) Result() IterationResult {
	result := IterationResult{Index: l.Index, Result: CallResult{Status: StatusSuccess}}
	if l.Failed {
		result.Result.Status = StatusError
		result.Result.Error = &ErrorObject{Kind: KindTool, Class: ClassRetryable, Message: "its workflow says why it failed"}
	}
	return result
}

// Print tells whether a call asks for the same as another one did at a time: by its
// first request, without the keys, and by what its step says. It is "" where nothing can
// be asked for.
func (c *Call) Print(at time.Time) string {
	first := NewCall(c.config)
	first.state.StartedAt = at
	first.begin(at)
	if first.Result() != nil {
		return ""
	}
	return digest(hex.EncodeToString(first.state.Seen), first.state.Request.Auth, stepText(c.config.Book, c.config.Step))[:operationKeyLength]
}

// LoopPrint is Print for a loop as a whole.
func (t Task) LoopPrint(book *playbook.Playbook, step *playbook.Step, elements []expression.Value) string {
	all := make([]any, len(elements))
	for i, element := range elements {
		all[i] = element.Data
	}
	return digest(t.Args.Data, t.Data.Workload.Data, t.Data.Vars.Data, t.Data.Steps.Data, all, stepText(book, step))[:operationKeyLength]
}

// stepText is what a playbook says of a step, without comments and empty lines.
func stepText(book *playbook.Playbook, step *playbook.Step) string {
	lines := strings.Split(string(book.File.Bytes()), "\n")
	first, end := step.NamePos.Line-1, len(lines)
	if first < 0 || first >= len(lines) {
		return ""
	}
	for _, other := range book.Steps {
		if line := other.NamePos.Line - 1; line > first {
			end = min(end, line)
		}
	}
	above := indentOf(lines[first])
	if !strings.HasPrefix(strings.TrimSpace(lines[first]), "-") {
		above--
	}
	text := []string{strings.TrimSpace(lines[first])}
	for _, line := range lines[first+1 : end] {
		if trimmed := strings.TrimSpace(line); trimmed == "" || trimmed[0] == '#' {
			continue
		}
		if indentOf(line) <= above {
			break
		}
		text = append(text, strings.TrimRight(line, " \t\r"))
	}
	return strings.Join(text, "\n")
}

func indentOf(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

// hasSinks reports whether a step writes results away.
func hasSinks(step *playbook.Step) bool {
	inPolicies := slices.ContainsFunc(step.Retry, func(policy *playbook.Policy) bool {
		return policy.Then.Sink != nil || policy.Then.PerIteration != nil
	})
	return inPolicies || step.Sink != nil || step.Loop != nil && (step.Loop.Sink != nil || step.Loop.DeadLetter != nil)
}

// ReadsOnly reports whether a step does nothing but ask servers for what they have.
func ReadsOnly(book *playbook.Playbook, step *playbook.Step) bool {
	if step.Action == nil {
		return true
	}
	if hasSinks(step) {
		return false
	}
	action := book.Resolve(step.Action)
	if inner := action.Inline; inner != nil {
		return !slices.ContainsFunc(inner.Steps, func(step *playbook.Step) bool { return !ReadsOnly(inner, step) })
	}
	if !action.Traits().Requests {
		return false
	}
	method := action.Field(fieldMethod)
	if method == nil {
		return true
	}
	text, _ := method.Value.(string)
	return method.Constant() && (strings.EqualFold(text, http.MethodGet) || strings.EqualFold(text, http.MethodHead))
}

// IterationPrint is Print of an iteration of a task's loop.
func (t Task) IterationPrint(book *playbook.Playbook, step *playbook.Step, carried CallSnapshot, at time.Time) string {
	return t.Print(t.Call(book, step, carried, func() float64 { return 0 }), at)
}

// Print is that of a call of the task, with the playbooks that it may run.
func (t Task) Print(call *Call, at time.Time) string {
	print := call.Print(at)
	if print != "" && t.Nesting != nil && len(t.Nesting.Files) > 0 {
		print += FilesPrint(t.Nesting.Files)
	}
	return print
}

// FilesPrint tells sets of playbooks apart.
func FilesPrint(files map[string]string) string {
	parts := make([]any, 0, 2*len(files))
	for _, name := range playbook.SortedKeys(files) {
		parts = append(parts, name, files[name])
	}
	return hash(parts...)
}

// MergeChosen adds the iterations of a loop over a choice of the elements.
func (l *LoopResult) MergeChosen(indexes []int, part *LoopResult) {
	if len(l.Results) > 0 && len(part.Results) == len(indexes) {
		for place, index := range indexes {
			l.Results[index] = part.Results[place]
		}
	}
	rest := *part
	rest.Results = nil
	l.Merge(0, &rest)
}
