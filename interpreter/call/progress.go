package call

import (
	"fmt"
	"time"

	"reprise/interpreter"
	"reprise/interpreter/call/await"
	"reprise/interpreter/call/sink"
	"reprise/interpreter/call/watermark"
	"reprise/interpreter/expression"
)

// This file has what an outcome, a page and the end change in a State.

// page is the current page: successes so far + 1; a sink's is its origin's.
func (s *State) page(config *Config) int {
	if config.Sink != nil {
		return config.Sink.Page
	}
	return s.Successes + 1
}

// lastPage is the page the last attempt was for, from 1; before the first attempt
// of a request it is the page that is due.
func (s *State) lastPage(config *Config) int {
	due := s.head().Attempt != nil && s.RequestAttempts == 0
	if config.Sink != nil || s.Last.Error != nil || due {
		return s.page(config)
	}
	return max(s.Successes, 1)
}

// record records an outcome and completes its error.
func (s *State) record(outcome interpreter.Outcome, config *Config, now time.Time) {
	if outcome.Failed() {
		failure := *outcome.Err
		if failure.Kind == interpreter.KindWorkerLost && failure.Type != interpreter.TypeStopped {
			s.Lost++
		}
		failure.Attempt, failure.Page, failure.At = s.Attempts, s.page(config), now
		meta := s.Last.Meta
		if failure.Answer != nil {
			meta, failure.Answer = failure.AnswerMeta(), nil
		}
		// The last page stays: on_exhausted may make it the result.
		s.Last = lastAttempt{Data: s.Last.Data, Meta: meta, Error: &failure}
		return
	}
	s.Last = lastAttempt{Data: expression.Of(outcome.Data), Meta: outcome.Meta, Partial: outcome.Partial, Warnings: outcome.Warnings}
	if config.Sink == nil {
		s.Successes++
	}
}

// addPage collects the page of the last attempt, and reads the cursors of what it contributes. The failure is one
// that ends the call; the page is not written then.
func (s *State) addPage(config *Config, d decided) *interpreter.ErrorObject {
	section := config.incremental()
	var keep func(page any) any
	if section != nil {
		keep = func(page any) any {
			kept := watermark.WithoutMissing(section, page)
			s.Watermark = s.Watermark.LeftOut(page, kept)
			return kept
		}
	}
	contribution, err := s.Pages.Add(config.Policies, d.Decision, s.Last.Data, keep)
	if s.Last.Contribution = contribution; err != nil {
		return interpreter.ExpressionError(config.Book, config.Where(), err)
	}
	if section == nil {
		return nil
	}
	var failure *interpreter.ErrorObject
	if s.Watermark, failure = s.Watermark.Read(section, contribution.Data, s.StartedAt); failure != nil {
		failure.Message = fmt.Sprintf("%s: page %d, %s", config.Where(), s.Successes, failure.Message)
	}
	return failure
}

// endsBehindSinks moves the end of a call whose sinks are all done to a time, and completes its result. Until then
// the result, which the sinks see, has the time of the decision.
func (s *State) endsBehindSinks(config *Config, now time.Time) {
	if s.head().End == nil {
		return
	}
	result := *s.head().End
	result.Meta.EndedAt = now
	if own := s.Watermark; own != nil {
		shown := own.Shown(config.incremental())
		if before := result.Meta.Incremental; before != nil {
			shown.Pending = before.Pending
		}
		result.Meta.Incremental = shown
	}
	result.Meta.LeftOut = s.LeftOut.Plus(s.Last.Meta.LeftOut)
	if config.Sink == nil {
		result.Warnings = append(result.Warnings, sink.LeftOutWarnings(config.Where(), result.Meta.LeftOut)...)
	}
	s.replaceLast(Todo{End: &result})
}

// awaits has the call wait for an answer to the attempt that has been sent.
func (s *State) awaits(awaited *await.Awaited) {
	s.Todo = []Todo{{Await: awaited}, {Attempt: &PendingAttempt{}}}
}
