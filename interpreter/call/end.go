package call

import (
	"fmt"
	"slices"
	"time"

	"reprise/interpreter"
	"reprise/interpreter/call/page"
	"reprise/interpreter/call/sink"
	"reprise/interpreter/call/watermark"
	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
	"reprise/interpreter/retry"
	"reprise/interpreter/source"
)

// This file ends a call: with a result, its sinks, and a move of the state that the step keeps; or by a cancel.

// failCall ends the call with a failure on which the policies do not rule.
func (c *Call) failCall(failure *interpreter.ErrorObject, now time.Time) {
	c.state.Last.Error = c.newReader().newResults().completeFailure(failure)
	c.planEnd(c.state.failedResult(*failure, now))
}

// failBy ends the call because an expression failed; where is its place, for the message.
func (c *Call) failBy(where string, err error, now time.Time) {
	c.failCall(interpreter.ExpressionError(c.config.Book, where, err), now)
}

// planEnd schedules the end of the call: the sinks of the last page, then the sinks of the result.
func (c *Call) planEnd(result *interpreter.CallResult, pageSinks ...Todo) {
	if c.startNextSlice(result, pageSinks) {
		return
	}
	moves, err := c.newReader().endMoves(result)
	if err != nil {
		c.failBy(c.config.CallPlace(), err, result.Meta.EndedAt)
		return
	}
	countedBy := ""
	if c.state.Successes > 1 {
		countedBy = page.CountingParam(c.state.Request.Fields)
	}
	result.Warnings = append(result.Warnings, c.state.Watermark.Warnings(c.config.incrementalSection(), c.config.CallPlace(), c.config.Book.WritesAgain(c.config.Step), countedBy)...)
	if stuck := c.keeps.StuckWarning(c.state.Watermark, c.cutBy); stuck != "" && (result.Meta.Truncated || c.state.Incomplete) && !result.Failed() {
		result.Warnings = append(result.Warnings, c.config.CallPlace()+": "+stuck)
	}
	published, warnings := c.newReader().stagingRound().EndChoices(&c.config.Sinks, result)
	result.Warnings = append(result.Warnings, warnings...)
	sinks := c.config.ForResult(result, &c.state.Pages, c.state.Last.Policy)
	result.Warnings = append(result.Warnings, c.newReader().sinkWarnings(result, pageSinks, sinks)...)
	c.state.Todo = slices.Concat(pageSinks, sinkTodo(sinks...), moves, sinkTodo(published...), []Todo{{End: result}})
	c.state.continueAfterPage()
	c.state.endAfterSinks(&c.config, result.Meta.EndedAt)
}

// sinkWarnings returns warnings about missing members that the sinks of a successful call read from its last page
// or result, and about whole responses that they write as rows.
func (r reader) sinkWarnings(result *interpreter.CallResult, page []Todo, after []sink.Choice) []string {
	if result.Failed() {
		return nil
	}
	var pages []*playbook.Sink
	for _, todo := range page {
		if todo.Sink != nil {
			pages = append(pages, r.config.SinkOf(todo.Sink.Choice))
		}
	}
	behind := lists.Map(after, r.config.SinkOf)
	found := slices.Concat(
		interpreter.AbsentInSinks(pages, r.state.Last.Contribution.Data),
		interpreter.AbsentInSinks(behind, result.Data.Data),
		r.envelopeWarnings(pages, r.state.Last.Contribution.Data),
		r.envelopeWarnings(behind, result.Data.Data))
	return lists.Map(found, func(text string) string { return r.config.CallPlace() + ": " + text })
}

// envelopeWarnings warns about sinks that would write a whole response as one row, with the actual rows inside it
// as JSON. For pages collected unchanged it checks the last one.
func (r reader) envelopeWarnings(sinks []*playbook.Sink, result any) (warnings []string) {
	list, isList := result.([]any)
	pages := isList && len(list) > 0 && r.collectsAnswers()
	if pages {
		result = r.state.Last.Data.Data
	}
	for _, sink := range sinks {
		if warning := interpreter.EnvelopeInSink(r.config.Book, sink, result, pages); warning != "" {
			warnings = append(warnings, warning)
		}
	}
	return warnings
}

// collectsAnswers reports whether the result is a list of unchanged responses.
func (r reader) collectsAnswers() bool {
	collect := r.state.CollectedBy(r.config.collectingOf())
	return collect != nil && collect.Strategy == playbook.Append && collect.Path == "" && r.config.Step.Rows == nil
}

// endMoves returns the moves of the watermark at the end of a call, after its sinks. A call without sinks returns
// the move in its result instead, and the run makes it. The error says that the token of the state could not be
// rendered.
func (r reader) endMoves(result *interpreter.CallResult) ([]Todo, error) {
	own := r.state.Watermark
	if own == nil {
		return nil, nil
	}
	end := watermark.End{
		Failure: result.Error, Incomplete: r.state.Incomplete || result.Meta.Truncated, At: result.Meta.EndedAt, Scope: r.policyScope,
	}
	move, err := r.keeps.EndMove(own, end)
	if section := r.config.incrementalSection(); err == nil && move == nil && section.Token != nil && own.Rows > 0 && end.Failure == nil && !end.Incomplete {
		result.Warnings = append(result.Warnings, fmt.Sprintf("%s: token is nil after %s, so the state has not moved, and the next run reads the same rows; check token",
			r.config.CallPlace(), source.Count(int(own.Rows), "row")))
	}
	if err == nil && move != nil && r.keeps.DefersMove(end) {
		result.Meta.Incremental = &interpreter.CallIncremental{Pending: own.AsMoves(move)}
		move = nil
	}
	return moveTodo(move), err
}

// skipCall fails the call because a person skipped it. If it was waiting to retry a failure, it ends with that
// failure.
func (c *Call) skipCall(settlement interpreter.Settlement, now time.Time) {
	said := settlement.SkipText()
	failure := interpreter.ErrorObject{Kind: interpreter.KindExplicit, Class: interpreter.ClassFinal, Message: c.config.CallPlace() + ": " + said, Attempt: c.state.Attempts, Page: c.state.currentPage(&c.config)}
	if last := c.state.LastFailure(); last != nil {
		failure = *last
		failure.Message += " (" + said + ")"
	}
	if hold := c.state.currentHold(); hold != nil && hold.Failure != nil {
		failure.Body = c.config.shownAnswer(c.state.Last.Data)
	}
	c.state.Last.Error = &failure
	c.planEnd(c.state.failedResult(failure, now))
}

// Cancel ends the call as cancelled; its sinks do not run.
func (c *Call) Cancel(now time.Time) interpreter.CallResult {
	c.saveStopped()
	result := c.state.failedResult(interpreter.ErrorObject{
		Kind: interpreter.KindCancelled, Class: interpreter.ClassFinal, Message: c.config.CallPlace() + ": cancelled",
		Attempt: c.state.Attempts, Page: c.state.lastPage(&c.config),
	}, now)
	c.Finish(*result)
	return *result
}

// Abandon ends the call with a failure, and keeps its state so that a later run can continue it.
func (c *Call) Abandon(failure interpreter.ErrorObject, now time.Time) {
	c.saveStopped()
	c.Finish(*c.state.failedResult(failure, now))
}

// Finish ends the call with a result from another host.
func (c *Call) Finish(result interpreter.CallResult) { c.state.Todo = []Todo{{End: &result}} }

// EndHere ends the call as if its latest page were the last. Because it has not read everything, it publishes
// nothing and moves no watermark. limit is what people increase to read more, such as a flag.
func (c *Call) EndHere(now time.Time, limit string) {
	c.state.Incomplete, c.cutBy = true, limit
	c.planEnd(c.newReader().newResults().successResult(ruling{
		Decision: retry.Decision{Ruling: retry.RulingStops, Policy: c.state.Last.Policy}, budget: expression.DecisionBudget(now), now: now,
	}))
}
