package interpreter

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
	"reprise/interpreter/source"
)

// LoopElements returns the elements of a loop: the items of a list, or the entries of a map as {key, value} in key
// order.
func LoopElements(collection any) ([]any, error) {
	switch c := collection.(type) {
	case []any:
		return c, nil
	case map[string]any:
		elements := lists.Map(playbook.SortedKeys(c), func(key string) any { return map[string]any{"key": key, "value": c[key]} })
		return elements, nil
	}
	return nil, fmt.Errorf("loop.collection must be a list or a map, not %s", expression.TypeName(collection))
}

// IterationResult is the result of one iteration; kept in workflow history.
type IterationResult struct {
	Index     int        `json:"index"`
	Result    CallResult `json:"result"`
	Cancelled bool       `json:"cancelled,omitempty"` // it neither succeeded nor failed
}

// LoopStats counts iterations: Total = Success + Failed + Cancelled. Truncated counts some of the successes. Kept
// in workflow history.
type LoopStats struct {
	Total     int `json:"total"` // iterations of the loop
	Success   int `json:"success"`
	Failed    int `json:"failed"`
	Truncated int `json:"truncated"` // successes that lack pages, because a policy was exhausted
	Cancelled int `json:"cancelled"`
}

// LoopError is a failed iteration in a loop's result; kept in workflow history.
type LoopError struct {
	Index    int              `json:"index"`
	Element  expression.Value `json:"element"`
	Error    *ErrorObject     `json:"error"`
	Attempts int              `json:"attempts"` // made before it failed
	// LastAttemptAt is when the last attempt ended, or when the iteration ended if it made none. Expressions do not
	// see it.
	LastAttemptAt time.Time `json:"last_attempt_at,omitzero"`
}

// NewLoopError returns the LoopError of a failed iteration.
func NewLoopError(element any, iteration IterationResult) LoopError {
	result, failure := iteration.Result, *iteration.Result.Error
	failure.At = time.Time{} // it is beside it
	return LoopError{
		Index: iteration.Index, Element: expression.Of(element), Error: &failure,
		Attempts: result.Meta.Attempts, LastAttemptAt: result.FailedAt(),
	}
}

// LoopResult collects the results of a loop in the order of its collection; kept in workflow history.
type LoopResult struct {
	Results []expression.Value `json:"results"`
	Errors  []LoopError        `json:"errors"` // by index
	Stats   LoopStats          `json:"stats"`
	// Attempts and Pages are the sums over all iterations.
	Attempts int `json:"attempts"`
	Pages    int `json:"pages"`
	// Partial counts the successes that were partial successes.
	Partial int `json:"partial,omitempty"`
	// Incomplete counts the successes that have not read everything for a reason other than truncation.
	Incomplete int `json:"incomplete,omitempty"`
	// Cut is the Cut of the first iteration, in collection order, that has one.
	Cut *Cut `json:"cut,omitempty"`
	// Budget is the error if the failure budget ended the loop; nil otherwise.
	Budget *ErrorObject `json:"budget,omitempty"`
	// SourceError is the failure of the source, after which no elements came; SourceCut says that it did not return
	// all its elements.
	SourceError *ErrorObject `json:"source_error,omitempty"`
	SourceCut   bool         `json:"source_cut,omitempty"`
	// Broken is the error if the loop, or a shard of it, was terminated from outside; nil otherwise.
	Broken   *ErrorObject `json:"broken,omitempty"`
	Warnings []string     `json:"warnings,omitempty"`
	// WarningsLeft counts the warnings that are not in Warnings, whose last entry then says so.
	WarningsLeft int `json:"warnings_left,omitempty"`
	// Incremental summarizes the states of the iterations; nil for none.
	Incremental *CallIncremental `json:"incremental,omitempty"`
	// Rows counts what all iterations did to data, including failed ones; nil if nothing was counted.
	Rows *Rows `json:"rows,omitempty"`
	// Next is set if a shard of a loop ended early because its history became long: the position in the shard of
	// the first element that did not start.
	Next int `json:"next,omitempty"`
}

// NewLoopResult returns the result of a loop over n elements. Every iteration counts as cancelled until AddIteration records
// its end, so that none is ever lost.
func NewLoopResult(n int) *LoopResult {
	return &LoopResult{
		Results: make([]expression.Value, n), Errors: []LoopError{},
		Stats: LoopStats{Total: n, Cancelled: n},
	}
}

// AddElements adds n elements from a source, which count as cancelled until AddIteration records their end.
func (l *LoopResult) AddElements(n int) {
	l.Stats.Total += n
	l.Stats.Cancelled += n
}

// DropResults drops the results of iterations, and keeps counts and errors (docs/concepts/loops.md).
func (l *LoopResult) DropResults() { l.Results = []expression.Value{} }

// AddIteration records the result of the iteration at a position of the loop, from 0.
func (l *LoopResult) AddIteration(position int, element any, iteration IterationResult) {
	result := iteration.Result
	l.Attempts += result.Meta.Attempts
	l.Pages += result.Meta.Pages
	l.Rows = l.Rows.Plus(result.Meta.Rows)
	l.Incremental = l.Incremental.withStates(result.Meta.Incremental)
	if !iteration.Cancelled && !result.Failed() {
		l.Incremental.addPending(result.Meta.Incremental)
	}
	for _, warning := range iteration.Result.Warnings {
		l.AddWarning(fmt.Sprintf("iteration %d: %s", iteration.Index, warning))
	}
	if iteration.Cancelled {
		return
	}
	l.Stats.Cancelled--
	if result.Failed() {
		l.Stats.Failed++
		l.addError(NewLoopError(element, iteration))
		return
	}
	l.Stats.Success++
	if result.Status == Partial {
		l.Partial++
	}
	if result.Cut != nil {
		l.addCut(&Cut{Index: &iteration.Index, Error: result.Cut.Error})
	}
	if result.Meta.Truncated {
		l.Stats.Truncated++
	} else if result.Meta.Incomplete {
		l.Incomplete++
	}
	if len(l.Results) > 0 {
		l.Results[position] = result.Data
	}
}

// MergeShard adds the result of a shard that begins at a position of the loop.
func (l *LoopResult) MergeShard(position int, shard *LoopResult) {
	if len(l.Results) > 0 {
		copy(l.Results[position:], shard.Results)
	}
	for _, failure := range shard.Errors {
		l.addError(failure)
	}
	l.Stats.Success += shard.Stats.Success
	l.Stats.Failed += shard.Stats.Failed
	l.Stats.Truncated += shard.Stats.Truncated
	l.Stats.Cancelled = l.Stats.Total - l.Stats.Success - l.Stats.Failed
	l.Attempts += shard.Attempts
	l.Pages += shard.Pages
	l.Rows = l.Rows.Plus(shard.Rows)
	l.Partial += shard.Partial
	l.Incomplete += shard.Incomplete
	l.Incremental = l.Incremental.withStates(shard.Incremental)
	l.Incremental.addPending(shard.Incremental)
	l.addCut(shard.Cut)
	listed := shard.Warnings
	if shard.WarningsLeft > 0 {
		listed = listed[:len(listed)-1]
	}
	for _, warning := range listed {
		l.AddWarning(warning)
	}
	l.countLeft(shard.WarningsLeft)
	if shard.Budget != nil {
		l.Budget = shard.Budget
	}
	if shard.Broken != nil {
		l.Broken = shard.Broken
	}
	if shard.SourceError != nil {
		l.SourceError = shard.SourceError
	}
	l.SourceCut = l.SourceCut || shard.SourceCut
}

// addCut keeps the cut of the first iteration in collection order.
func (l *LoopResult) addCut(cut *Cut) {
	if cut != nil && (l.Cut == nil || *cut.Index < *l.Cut.Index) {
		l.Cut = cut
	}
}

// ReadAll reports whether every iteration has read everything that it was supposed to.
func (l *LoopResult) ReadAll() bool {
	return l.Stats.Success == l.Stats.Total && l.Stats.Truncated+l.Incomplete+l.Partial == 0 && l.Budget == nil && l.Broken == nil &&
		l.SourceError == nil && !l.SourceCut
}

// maxLoopWarnings bounds the warnings of iterations that a loop's result repeats: 100,000 iterations may have as
// many. The stats count all of them.
const maxLoopWarnings = 20

// AddWarning adds a warning, up to maxLoopWarnings, and counts further ones.
func (l *LoopResult) AddWarning(warning string) {
	if len(l.Warnings) >= maxLoopWarnings {
		l.countLeft(1)
		return
	}
	l.Warnings = append(l.Warnings, warning)
}

// countLeft counts n warnings that are not listed, and says so in the last entry.
func (l *LoopResult) countLeft(n int) {
	if n == 0 {
		return
	}
	l.WarningsLeft += n
	l.Warnings = append(l.Warnings[:min(len(l.Warnings), maxLoopWarnings)],
		source.Count(l.WarningsLeft, "more warning")+" of iterations not listed; see the stats and the child workflows")
}

// addError inserts an error so that errors are in collection order, in whatever order iterations end.
func (l *LoopResult) addError(failure LoopError) {
	at := sort.Search(len(l.Errors), func(i int) bool { return l.Errors[i].Index > failure.Index })
	l.Errors = slices.Insert(l.Errors, at, failure)
}

// EndedCount returns the number of iterations that succeeded or failed.
func (l *LoopResult) EndedCount() int { return l.Stats.Success + l.Stats.Failed }

// OverBudget returns an error with the exact figures if the failure budget is spent; nil otherwise.
func (l *LoopResult) OverBudget(step string, budget *playbook.FailureBudget) *ErrorObject {
	if budget == nil || l.EndedCount() == 0 || l.EndedCount() < budget.MinSamples {
		return nil
	}
	if l.failureRate() <= budget.Rate {
		return nil
	}
	return l.budgetExceeded(step, budget)
}

// SaysWhatFailed reports whether the error of a step names a failed iteration. That of a loop does, that of its
// failure budget does not.
func (e *ErrorObject) SaysWhatFailed() bool {
	return e != nil && e.Kind == KindLoop && e.Type != typeBudgetExceeded
}

// typeBudgetExceeded is the error type of a loop whose failure budget is spent.
const typeBudgetExceeded = "FailureBudgetExceeded"

// budgetExceeded returns that error, with the figures of the stats.
func (l *LoopResult) budgetExceeded(step string, budget *playbook.FailureBudget) *ErrorObject {
	return &ErrorObject{
		Kind: KindLoop, Class: ClassFinal, Type: typeBudgetExceeded,
		Message: fmt.Sprintf("step %s: %s: %d of %d ended iterations failed (%g), budget %g "+
			"after %d samples; %d of %d did not run to their end",
			step, typeBudgetExceeded, l.Stats.Failed, l.EndedCount(), l.failureRate(), budget.Rate, budget.MinSamples,
			l.Stats.Cancelled, l.Stats.Total),
	}
}

// failureRate returns the share of failures among the ended iterations.
func (l *LoopResult) failureRate() float64 { return float64(l.Stats.Failed) / float64(l.EndedCount()) }

// The size of a loop that does not fit into one history, and is therefore a tree of shards (workflows/loop).
const (
	// LeafBatches bounds the children of a leaf. A sequential loop adds nine events for each.
	LeafBatches = 400
	// FanShards bounds the shards of an inner workflow, whose history contains their inputs and results.
	FanShards = 12
	// LeafElements bounds the elements of a loop that starts its iterations itself. A shard can end early and leave
	// the rest to its loop; a whole loop cannot, and would hold results of shards in addition to those of its own
	// iterations.
	LeafElements = 5000
)

// ShardSize returns the number of elements in each shard of n elements in batches: whole batches, and few enough
// shards for one history. leaf and shards are LeafBatches and FanShards, or less where each child gets much.
func ShardSize(n, batch, leaf, shards int) int {
	batches := (n + batch - 1) / batch
	perShard := max(leaf, (batches+shards-1)/shards)
	return min(n, perShard*batch)
}

// LoopCounts has the counts of a loop that its failure budget depends on; batches continue counting from them. Kept
// in workflow history.
type LoopCounts struct {
	Size    int `json:"size"` // of the whole loop
	Success int `json:"success"`
	Failed  int `json:"failed"`
}

// CountResult counts the result of an iteration, unless it was cancelled.
func (k *LoopCounts) CountResult(result CallResult) {
	switch {
	case !result.Failed():
		k.Success++
	case result.Error.Kind != KindCancelled:
		k.Failed++
	}
}

// BudgetError returns the error of a loop whose failure budget is spent, nil otherwise; see OverBudget.
func (k LoopCounts) BudgetError(step *playbook.Step) *ErrorObject {
	all := LoopResult{Stats: LoopStats{
		Total: k.Size, Success: k.Success, Failed: k.Failed, Cancelled: k.Size - k.Success - k.Failed,
	}}
	return all.OverBudget(step.Name, step.Loop.FailureBudget)
}

// LoopStatus returns the status of the step, determined by the share of successes, unrounded
// (docs/concepts/loops.md). A loop over an empty collection is completed.
func (l *LoopResult) LoopStatus(thresholds playbook.Thresholds) Status {
	if l.Budget != nil || l.Broken != nil || l.SourceError != nil {
		return Failed
	}
	if l.Stats.Total == 0 {
		return Completed
	}
	share := float64(l.Stats.Success) / float64(l.Stats.Total)
	switch {
	case share >= thresholds.Completed:
		return Completed
	case share >= thresholds.PartialSuccess:
		return Partial
	}
	return Failed
}

// ExprValue returns the loop's result for expressions.
func (l *LoopResult) ExprValue() map[string]any {
	results := lists.Map(l.Results, func(result expression.Value) any { return result.Data })
	failures := make([]any, len(l.Errors))
	for i, failure := range l.Errors {
		failures[i] = map[string]any{
			"index": failure.Index, "element": failure.Element.Data,
			"error": failure.Error.Value(), "attempts": failure.Attempts,
		}
	}
	return map[string]any{"results": results, "errors": failures, "stats": map[string]any{
		"total": l.Stats.Total, "success": l.Stats.Success, "failed": l.Stats.Failed,
		"truncated": l.Stats.Truncated, "cancelled": l.Stats.Cancelled,
	}}
}

// CallResult returns the loop's result as the result of its step.
func (l *LoopResult) CallResult(step *playbook.Step, started, ended time.Time) CallResult {
	status := l.LoopStatus(step.Loop.Thresholds)
	if status == Completed && l.Partial > 0 {
		status = Partial
	}
	result := CallResult{
		Status: StatusSuccess, Data: expression.Of(l.ExprValue()), Warnings: l.Warnings, Cut: l.Cut,
		Meta: CallMeta{
			Attempts: l.Attempts, Pages: l.Pages, Truncated: l.Stats.Truncated > 0,
			StartedAt: started, EndedAt: ended, Incremental: l.Incremental, Rows: l.Rows,
		},
	}
	switch status {
	case Partial:
		result.Status = Partial
	case Failed:
		result.Status = StatusError
		result.Error = l.failureOf(step)
	}
	if l.Stats.Failed > 0 {
		result.LoopWarning = l.failureWarning(step)
	}
	return result
}

// failureWarning returns the warning that counts the failed iterations. It is given in addition to the loop's own
// error, which an error of its sink may replace.
func (l *LoopResult) failureWarning(step *playbook.Step) string {
	share := 100 * float64(l.Stats.Failed) / float64(l.Stats.Total)
	return fmt.Sprintf("step %s: %d of %d iterations failed (%.3g%%)", step.Name, l.Stats.Failed, l.Stats.Total, share) + firstFailureText(l.Errors)
}

// firstFailureText describes the first failed iteration, as the end of a message.
func firstFailureText(failed []LoopError) string {
	if len(failed) == 0 {
		return ""
	}
	return fmt.Sprintf("; the first (index %d): %s", failed[0].Index, failed[0].Error.Message)
}

func (l *LoopResult) failureOf(step *playbook.Step) *ErrorObject {
	switch {
	case l.Budget != nil && l.Budget.Type == typeBudgetExceeded:
		return l.budgetExceeded(step.Name, step.Loop.FailureBudget) // those in flight have ended since
	case l.Budget != nil:
		return l.Budget
	}
	if l.SourceError != nil && l.Broken == nil {
		return l.sourceError(step)
	}
	failure := &ErrorObject{
		Kind: KindLoop, Class: ClassFinal,
		Message: fmt.Sprintf("step %s: %d of %d iterations failed", step.Name, l.Stats.Failed, l.Stats.Total),
	}
	if l.Stats.Cancelled > 0 {
		failure.Message += fmt.Sprintf(", %d cancelled", l.Stats.Cancelled)
	}
	failure.Message += firstFailureText(l.Errors)
	if l.Broken != nil {
		failure.Type = l.Broken.Type
		failure.Message += "; it was ended from outside: " + l.Broken.Message
	}
	return failure
}

// typeSourceFailed is the error type of a loop whose source failed.
const typeSourceFailed = "SourceFailed"

// sourceError returns that error: the number of elements before the failure, and their outcomes.
func (l *LoopResult) sourceError(step *playbook.Step) *ErrorObject {
	return &ErrorObject{
		Kind: KindLoop, Class: ClassFinal, Type: typeSourceFailed, Status: l.SourceError.Status,
		Message: fmt.Sprintf("step %s: its source failed after %d elements, of which %d completed, %d failed and %d were cancelled: %s",
			step.Name, l.Stats.Total, l.Stats.Success, l.Stats.Failed, l.Stats.Cancelled, l.SourceError.Message),
	}
}

// DeadLetterSink returns the sink of a step's failed iterations; nil for none.
func DeadLetterSink(step *playbook.Step) *playbook.Sink {
	if step.Loop == nil {
		return nil
	}
	return step.Loop.DeadLetter
}

// UnwrittenWarnings returns warnings about a failed iteration that its dead letter sink does not get, because it failed
// after, or without, its sinks.
func UnwrittenWarnings(step *playbook.Step) []string {
	if DeadLetterSink(step) == nil {
		return nil
	}
	return []string{"its failure is not written to the sink of loop.dead_letter, but starter dead-letters lists it"}
}

// TextSoFar is ProgressText for a loop whose source may return more elements: "35 completed, 1 failed, 164 to go of 200 so
// far".
func (s LoopStats) TextSoFar(open bool) string {
	if !open {
		return s.ProgressText()
	}
	return s.ProgressText() + " so far"
}

// ProgressText describes the progress or the end of a loop, in the same words everywhere: "35 completed, 1 failed, 164 to
// go of 200". It omits zeros without information.
func (s LoopStats) ProgressText() string {
	parts := []string{fmt.Sprintf("%d completed", s.Success)}
	for _, part := range []struct {
		n    int
		what string
	}{
		{s.Failed, "failed"},
		{s.Cancelled, "cancelled"},
		{s.Total - s.Success - s.Failed - s.Cancelled, "to go"},
	} {
		if part.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", part.n, part.what))
		}
	}
	return fmt.Sprintf("%s of %d", strings.Join(parts, ", "), s.Total)
}
