package call

import (
	"fmt"
	"slices"
	"time"

	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/retry"
)

// A call reads slices of time one after the other (docs/concepts/state.md#what-a-run-reads): after a slice it
// continues with the first request of the next one.

// startNextSlice continues with the next slice. It returns false if the call ends: because it failed, has not read
// all of the slice, or has read the last one.
func (c *Call) startNextSlice(result *interpreter.CallResult, page []Todo) bool {
	next := c.keeps.NextSlice(c.state.Watermark, c.state.Successes)
	if next == nil || result.Failed() {
		return false
	}
	if result.Meta.Truncated || c.state.Incomplete { // also where a policy accepts that a slice is not read to its end
		result.Meta.Truncated, result.Status = true, interpreter.Partial
		result.Warnings = append(result.Warnings, fmt.Sprintf("%s: nothing was read from %s to %s, as the slice before was not read to its end",
			c.config.CallPlace(), next.From.Text(), next.End.Text()))
		return false
	}
	for _, warning := range result.Warnings {
		c.state.warnOnce(warning)
	}
	now := result.Meta.EndedAt
	in, moment := c.state.Watermark.WithSlice(next), c.newReader().requestMoment()
	moment.Claim, moment.Incremental = in.ClaimKey(c.state.Restarts), c.keeps.ExprValue(in)
	request, repeats, notes, err := c.requests.RenderAgain(&c.state.Requests, moment, now)
	switch {
	case err != nil:
		failure := c.newReader().newResults().completeFailure(interpreter.ExpressionError(c.config.Book, c.config.CallPlace(), err))
		c.planEnd(c.state.failedResult(*failure, now), page...)
		return true
	case repeats:
		failure := c.newReader().newResults().completeFailure(&interpreter.ErrorObject{
			Kind: interpreter.KindRepeat, Class: interpreter.ClassFinal,
			Message: c.config.CallPlace() + ": the request for the next slice was already made in this call; use incremental.from and incremental.to in it",
		})
		c.planEnd(c.state.failedResult(*failure, now), page...)
		return true
	}
	c.warnOf(notes)
	if len(page) == 1 { // the sink of the page, with no move behind it
		page = slices.Concat(page, moveTodo(c.keeps.SliceMove(c.state.Watermark)))
	}
	c.state.Counters.ResetForRestart(c.config.Policies)
	c.state.Pages.StartSlice()
	c.state.Todo = slices.Concat(page, []Todo{{Attempt: &PendingAttempt{Request: &request, Slice: next}}})
	c.state.continueAfterPage()
	return true
}

// endsEmpty ends a call without a request, because its first slice is empty.
func (c *Call) endsEmpty(now time.Time) {
	slice := c.state.Watermark.Slice
	c.state.addWarnings(fmt.Sprintf("%s: nothing was read: incremental.until (%s) is not later than incremental.value (%s)",
		c.config.CallPlace(), slice.End.Text(), slice.From.Text()))
	results := c.newReader().newResults()
	result := results.successResult(ruling{
		Decision: retry.Decision{Ruling: retry.RulingIgnores}, budget: expression.DecisionBudget(now), now: now,
	})
	if data, collects := c.state.Pages.CollectedResult(c.config.collectingOf()); collects {
		data, _ = results.mergeRows(data) // without pages of this slice there is nothing to warn of
		result.Data = expression.Of(data)
	}
	c.planEnd(result)
}
