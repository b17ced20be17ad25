package call

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"reprise/interpreter"
	"reprise/interpreter/call/await"
	"reprise/interpreter/call/page"
	"reprise/interpreter/call/sink"
	"reprise/interpreter/expression"
	"reprise/interpreter/incremental"
	"reprise/interpreter/playbook"
	"reprise/interpreter/source"
)

// This file updates a State: after an outcome, for a page, and at the end.

// currentPage returns the number of the current page: successes so far + 1. For the call of a sink, it is the page
// that the sink writes.
func (s *State) currentPage(config *Config) int {
	if config.Sink != nil {
		return config.Sink.Page
	}
	return s.Successes + 1
}

// lastPage returns the page of the last attempt, from 1; before the first attempt of a request it is the page of
// that request.
func (s *State) lastPage(config *Config) int {
	due := s.nextTodo().Attempt != nil && s.RequestAttempts == 0
	if config.Sink != nil || s.Last.Error != nil || due {
		return s.currentPage(config)
	}
	return max(s.Successes, 1)
}

// recordOutcome stores an outcome and completes its error.
func (s *State) recordOutcome(outcome interpreter.Outcome, config *Config, now time.Time) {
	counts := outcome.Meta.Rows != nil
	s.Rows = s.Rows.Plus(outcome.Rows).Plus(outcome.Meta.Rows).CountedOrNil()
	outcome.Meta.Rows = nil
	if outcome.Failed() {
		failure := *outcome.Err
		if failure.Kind == interpreter.KindWorkerLost && failure.Type != interpreter.TypeStopped {
			s.Lost++
		}
		failure.Attempt, failure.Page, failure.At = s.Attempts, s.currentPage(config), now
		meta := s.Last.Meta
		if failure.Answer != nil {
			meta, failure.Answer = failure.AnswerMeta(), nil
		}
		// The last page is kept, because on_exhausted may make it the result.
		s.Last = lastAttempt{Data: s.Last.Data, Meta: meta, Error: &failure}
		return
	}
	s.Last = lastAttempt{Data: expression.Of(outcome.Data), Meta: outcome.Meta, Partial: outcome.Partial, Partition: outcome.Partition, Warnings: outcome.Warnings, Counts: counts}
	if config.Sink == nil {
		s.Successes++
	}
}

// addPage collects the page of the last attempt, and reads the cursors of its rows. A returned failure ends the
// call, and the page is not written.
func (s *State) addPage(config *Config, d ruling, rows rowSelection) *interpreter.ErrorObject {
	section := config.incrementalSection()
	rows.excluded = func(n int) {
		s.Last.Excluded += n
		s.Excluded += n
	}
	rows.unmatched = func(rows []any, matched int) { s.Unmatched = s.Unmatched.plusPage(config.Step.Where, rows, matched) }
	rows.lacking = func(all, withCursor any) { s.Watermark = s.Watermark.CountMissing(all, withCursor) }
	s.noteSigns(config)
	contribution, err := s.Pages.CollectPage(config.collectingOf(), d.Decision, s.Last.Data, rows.pageExtraction())
	if s.Last.Contribution = contribution; err != nil {
		return interpreter.ExpressionError(config.Book, config.CallPlace(), err)
	}
	same := s.SameRows
	if s.countRead(config, contribution.Data); config.comparesRows() {
		s.CompareRows(contribution.Data)
	}
	s.warnOfRows(config, d, s.SameRows > same)
	if section == nil {
		return nil
	}
	var failure *interpreter.ErrorObject
	if s.Watermark, failure = s.Watermark.Read(section, contribution.Data, s.StartedAt); failure != nil {
		failure.Message = fmt.Sprintf("%s: page %d, %s", config.CallPlace(), s.Successes, failure.Message)
		return failure
	}
	s.Watermark = s.Watermark.CountOlder(section, contribution.Data, config.Book.UnsequencedKey(config.Step))
	return nil
}

// warnOfRows warns about rows that may be missing or come twice, as the requests and the rows of pages show. same says that the
// page has the rows of the page before, of which there is a warning of its own.
func (s *State) warnOfRows(config *Config, d ruling, same bool) {
	edge, moved := s.EdgeText(s.Last.Data.Data, config.insertsEqualRows()), ""
	if edge == "" && !same && config.comparesRows() && config.writesEqualRows() {
		moved = s.MovedText(s.Last.Contribution.Data, s.Successes)
	}
	for _, text := range []string{
		s.SkippedText(s.rowsOfPage()), edge, moved,
		s.PolledText(s.polledRows(config), !d.Repeats()),
	} {
		if text != "" {
			s.warnOnce(config.CallPlace() + ": " + text)
		}
	}
}

// insertsEqualRows reports whether a sink of the call writes a row that comes twice as two rows.
func (c *Config) insertsEqualRows() bool {
	return c.Step.Incremental == nil && slices.ContainsFunc(c.AllSinks(), c.inserts)
}

// inserts reports whether a sink inserts rows into a table.
func (c *Config) inserts(sink *playbook.Sink) bool {
	action := c.Book.ResolveAction(sink.Action)
	mode := action.Field(playbook.FieldMode)
	return action.ToolTraits().Dialect != "" && action.Field("statement") == nil && (mode == nil || mode.Value == "insert")
}

// writesEqualRows reports whether a row that comes twice is two rows of what sinks write: those of the call or, if its rows are the
// elements of a loop, those of the iterations.
func (c *Config) writesEqualRows() bool {
	if c.Sink != nil || c.Step.Incremental != nil || c.Step.Secret {
		return false
	}
	sinks := c.AllSinks()
	if of := c.Book.Step(playbook.LoopStep(c.Step.Name)); c.Step.IsSource() && of != nil {
		sinks = append(slices.Clone(sinks), of.Loop.Sinks...)
	}
	return slices.ContainsFunc(sinks, func(sink *playbook.Sink) bool {
		traits := c.Book.ResolveAction(sink.Action).ToolTraits()
		return traits.IntoFile || traits.Requests || c.inserts(sink)
	})
}

// notePoll notes the rows of a response after which the same request is sent again.
func (s *State) notePoll(config *Config) {
	if config.Sink == nil && !config.Step.Secret {
		s.NotePoll(s.polledRows(config))
	}
}

// polledRows returns the rows of the last response: what the step's rows or collect say, or the response itself.
func (s *State) polledRows(config *Config) []any {
	rows := s.Last.Data.Data
	switch collect := config.Step.PagesCollect(); {
	case config.Step.Rows != nil:
		return page.RowsAt(rows, config.Step.Rows)
	case collect != nil && collect.Path != "":
		rows, _, _ = expression.ValueAtPath(rows, collect.Path)
	}
	list, _ := rows.([]any)
	return list
}

// rowsOfPage returns how many rows the last page had, those that were excluded too.
func (s *State) rowsOfPage() int {
	rows, _ := s.Last.Contribution.Data.([]any)
	return max(len(rows)+s.Last.Excluded, page.LongestList(s.Last.Data.Data, 0))
}

// comparesRows reports whether the call has pages whose rows have to differ from those of the page before.
func (c *Config) comparesRows() bool {
	pages := false
	for _, policy := range c.Policies {
		if policy.Then.AllowRepeat {
			return false
		}
		pages = pages || policy.Then.NextCall != nil
	}
	return pages
}

// noteSigns notes what a page says about the whole: how many rows there are, and, once a call, that a part of it failed. A child
// run has a status for that: `errors` in its result may be those of a loop, which that run has accepted.
func (s *State) noteSigns(config *Config) {
	s.Total = max(s.Total, page.StatedTotal(s.Last.Data.Data))
	plays := config.Book.ResolveAction(config.Action).ToolTraits().Plays
	if config.Step.Secret || plays {
		return
	}
	s.noteInnerPages(config)
	s.noteFailedItems(config)
	if member, _ := page.UnreadFailure(s.Last.Data.Data, nil); member == "" {
		return
	}
	paths, _ := config.conditionPaths()
	member, condition := page.UnreadFailure(s.Last.Data.Data, paths)
	if member == "" {
		return
	}
	hint := fmt.Sprintf("; if that is a failure, write a policy with when: \"{{ %s }}\" and then: {fail: …}", condition)
	if config.Sink != nil {
		hint = ": the API may not have accepted all rows"
	}
	s.warnOnce(fmt.Sprintf("%s: the response has %s, which no condition uses, so it counts as a success%s", config.CallPlace(), member, hint))
}

// noteFailedItems notes, once a call, elements of a response that say that they failed: those of a sink, and of any response with the
// status 207, if no condition reads them.
func (s *State) noteFailedItems(config *Config) {
	partial := s.Last.Meta.Status == http.StatusMultiStatus
	if s.Last.Meta.Status == 0 || config.Sink == nil && !partial {
		return
	}
	paths, _ := config.conditionPaths()
	path, failed, first := page.FailedItems(s.Last.Data.Data, partial, paths)
	if failed == 0 {
		return
	}
	s.warnOnce(fmt.Sprintf("%s: the response counts as a success (status %d), but %s failed in %s, which no condition reads: %s",
		config.CallPlace(), s.Last.Meta.Status, source.Count(failed, "element"), path, playbook.ShortenText(expression.Text(first))))
}

// searchedPages is how many pages of a call are searched for lists with further pages, and of the later ones one in so many: a
// source that cuts lists short does so on many pages.
const searchedPages = 10

// noteInnerPages notes, once a call, a list within rows that has further pages, if the playbook names the list or a sink
// writes it, and no expression reads the sign.
func (s *State) noteInnerPages(config *Config) {
	if config.Sink != nil || s.Last.Meta.Status == 0 || s.Successes > searchedPages && s.Successes%searchedPages != 0 {
		return
	}
	whole := slices.ContainsFunc(config.AllSinks(), func(sink *playbook.Sink) bool { return sink.Action.Args == nil })
	for _, inner := range page.InnerPages(s.Last.Data.Data) {
		if text := config.Book.File.Bytes(); inner.IsRead(text) || !whole && !inner.IsNamed(text) {
			continue
		}
		s.warnOnce(fmt.Sprintf("%s: rows have %s, which no expression uses: they have more %s than the response; read the rest of each row in a loop over the rows",
			config.CallPlace(), inner.Path(), inner.Field))
		return
	}
}

// countRead counts the rows that a page contributes as read.
func (s *State) countRead(config *Config, contribution any) {
	if !s.Last.Counts || config.Sink != nil {
		return
	}
	rows, isList := contribution.([]any)
	read := int64(len(rows))
	if !isList && contribution != nil && len(config.AllSinks()) > 0 {
		read = 1
	}
	s.Rows = s.Rows.Plus(&interpreter.Rows{RowTotals: interpreter.RowTotals{Read: read}}).CountedOrNil()
}

// endAfterSinks completes the result of a call whose sinks are done, and sets its end time. Until then the
// result, which expressions of the sinks read, has the time of the decision.
func (s *State) endAfterSinks(config *Config, now time.Time) {
	if s.nextTodo().End == nil {
		return
	}
	result := *s.nextTodo().End
	result.Meta.EndedAt = now
	if own := s.Watermark; own != nil {
		shown := own.DescribeState(config.incrementalSection())
		if before := result.Meta.Incremental; before != nil {
			shown.Pending = before.Pending
		}
		if s.Rows == nil { // an older worker made the attempts: a replay must produce the same result
			shown.Before = incremental.Cursor{}
		}
		result.Meta.Incremental = shown
	}
	result.Meta.LeftOut, result.Meta.Rows = s.LeftOut.Plus(s.Last.Meta.LeftOut), s.Rows
	if config.Sink == nil {
		result.Warnings = append(result.Warnings, sink.LeftOutWarnings(config.CallPlace(), result.Meta.LeftOut)...)
	}
	s.replaceLast(Todo{End: &result})
}

// recordAwaited records that the attempt was sent and that the call waits for its answer.
func (s *State) recordAwaited(awaited *await.AnswerWait) {
	s.Todo = []Todo{{Await: awaited}, {Attempt: &PendingAttempt{}}}
}
