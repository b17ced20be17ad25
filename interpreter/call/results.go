package call

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"reprise/interpreter"
	"reprise/interpreter/call/page"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
	"reprise/interpreter/retry"
	"reprise/interpreter/source"
)

// results builds what the decisions of a call return: results, errors and waits. It reads the call and changes
// nothing.
type results struct {
	config *Config
	state  *State
	scope  func() *interpreter.Scope // of the policies
}

// successResult returns the result of a call that succeeded, or of one whose result cannot be rendered.
func (r results) successResult(d ruling) *interpreter.CallResult {
	data, warning, err := r.successData(d)
	if err != nil {
		return r.state.failedResult(*r.completeFailure(interpreter.ExpressionError(r.config.Book, r.config.whereThen(d.Policy), err)), d.now)
	}
	s, where := r.state, r.config.CallPlace()
	result := &interpreter.CallResult{
		Status: interpreter.StatusSuccess, Data: expression.Of(data), Meta: s.callMeta(d.now), Warnings: slices.Clone(s.Warnings),
	}
	if warning != "" {
		result.Warnings = append(result.Warnings, where+": "+warning)
	}
	ran := where
	if s.Last.Partition != "" {
		ran += ", partition " + s.Last.Partition
	}
	if s.Last.Partial {
		result.Status = interpreter.Partial
		result.Warnings = append(result.Warnings, ran+": the run that it started was a partial success")
	}
	for _, warning := range s.Last.Warnings {
		result.Warnings = append(result.Warnings, ran+": "+warning)
	}
	if unmatched := s.Unmatched; unmatched != nil && unmatched.Member != "" {
		result.Warnings = append(result.Warnings, fmt.Sprintf("%s: where excluded all %s, and none has %s",
			where, source.Count(s.Excluded, "row"), unmatched.Member))
	} else if unmatched != nil && unmatched.Misspelt != "" {
		result.Warnings = append(result.Warnings, fmt.Sprintf("%s: where: no row has %s", where, unmatched.Misspelt))
	}
	if s.SameRows > 0 {
		result.Warnings = append(result.Warnings, fmt.Sprintf("%s: %s of %d had the same rows as the page before: if the API ignores what next_call changes, "+
			"other rows are missing; if these pages are right, set allow_repeat: true", where, source.Count(s.SameRows, "page"), s.Successes))
	}
	if d.Ruling.MayTruncate() {
		r.markTruncated(result, d)
	} else if unread := r.unreadWarning(d); unread != "" {
		result.Warnings = append(result.Warnings, unread)
	} else {
		before := len(result.Warnings)
		if d.Policy == 0 && d.Ruling != retry.RulingStops {
			r.warnMissingMembers(result, d.budget)
		}
		if shrunk := r.shrunkWarning(); shrunk != "" && d.Policy == 0 && len(result.Warnings) == before {
			result.Warnings = append(result.Warnings, shrunk)
		}
	}
	return result
}

// shrunkWarning says that an earlier page stated more rows than were read, and the last one does not; "" if it is not so. Rows
// that disappear meanwhile move those behind them to pages that were read before.
func (r results) shrunkWarning() string {
	s, read := r.state, r.rowsRead()
	last := page.StatedTotal(s.Last.Data.Data)
	if s.Successes < 2 || read <= 0 || read >= s.Total || last > read {
		return ""
	}
	stated := fmt.Sprint(s.Total)
	if last > 0 {
		stated += fmt.Sprintf(" (the last one %d)", last)
	}
	return fmt.Sprintf("%s: the call read %s, but an earlier page stated %s: if rows were deleted meanwhile, pages by number or offset leave out others",
		r.config.CallPlace(), source.Count(read, "row"), stated)
}

// markTruncated marks a success as partial because a policy's limit stopped it before it had all pages, unless the
// policy accepts that.
func (r results) markTruncated(result *interpreter.CallResult, d ruling) {
	then := r.config.Policies.ThenOf(d.Spent)
	accepted := then.OnExhausted == playbook.ExhaustedSucceed
	if accepted && d.Ruling == retry.RulingTruncates && then.NextCall != nil {
		return
	}
	warning := fmt.Sprintf("%s: policy %d%s stopped the call after %s (%s); the result may be incomplete",
		r.config.CallPlace(), d.Spent, r.config.policySource(d.Spent), source.Count(r.state.Successes, "page"), d.Why)
	result.Meta.Truncated = true
	result.Warnings = append(result.Warnings, warning)
	if accepted {
		return
	}
	result.Status = interpreter.Partial
	result.Cut = &interpreter.Cut{Error: interpreter.ErrorObject{
		Kind: interpreter.KindExhausted, Class: interpreter.ClassFinal, Message: warning, Exhausted: true,
		Attempt: r.state.Attempts, Page: r.state.lastPage(r.config), Policy: d.Spent,
	}}
}

// warnMissingMembers warns that the last page lacks a member that a policy needs to request more. A response without a body
// has neither rows nor members.
func (r results) warnMissingMembers(result *interpreter.CallResult, budget *expression.Budget) {
	s, where := r.state, r.config.CallPlace()
	if s.Last.Data.Data == nil && s.Last.Meta.HasNoBody() {
		// Some APIs end their pages so, some proxies lose bodies, and 202 says that there is no answer yet.
		expectsRows := s.Collector != 0 || r.config.Step.Rows != nil
		isNoted := s.Last.Noted && s.Last.Meta.Headers["content-type"] != "" // the tool warns of one whose type says that it has a value
		if expectsRows && s.Last.Meta.OmitsBody() && !isNoted {
			result.Warnings = append(result.Warnings, fmt.Sprintf("%s: page %d has an empty body (HTTP %d), and counts as one without rows",
				where, s.Successes, s.Last.Meta.Status))
		}
		return
	}
	if lacks := s.Pages.LacksPath(s.Pages.CollectedBy(r.config.collectingOf()), r.config.Step.Rows, s.Last.Data.Data); lacks != "" {
		result.Warnings = append(result.Warnings, where+": "+lacks)
	}
	contribution := s.Last.Contribution.Data
	if pending := r.pendingText(contribution); pending != "" {
		result.Warnings = append(result.Warnings, where+": "+pending)
	}
	if s.Last.Excluded > 0 { // it has rows, of which none may be left
		contribution = true
	}
	if lacks := s.Pages.CutShort(r.config.Policies, s.Last.Data.Data, contribution); lacks != "" {
		result.Meta.Truncated, result.Status = true, interpreter.Partial
		result.Warnings = append(result.Warnings, fmt.Sprintf(
			"%s: page %d %s; the result may be incomplete", where, s.Successes, lacks))
	} else if lacks := s.Pages.MissingMember(r.config.Policies, s.Last.Data.Data); lacks != "" {
		result.Warnings = append(result.Warnings, fmt.Sprintf(
			"%s: the page %s; the result may be incomplete", where, lacks))
	} else if lacks := s.Pages.MisspeltMember(r.config.Policies, s.Last.Data.Data); lacks != "" {
		result.Warnings = append(result.Warnings, fmt.Sprintf("%s: the page %s; the result may be incomplete", where, lacks))
	} else if ended := s.Pages.BelowPageSize(r.config.Policies, func() expression.Scope { return r.scope() }, budget); ended != "" {
		result.Warnings = append(result.Warnings, fmt.Sprintf("%s: the page %s", where, ended))
	}
}

// pendingText describes an only page without rows whose status 202 says that the API has not made them yet; "" for other pages, and
// where a condition reads the status.
func (r results) pendingText(contribution any) string {
	s := r.state
	rows, isList := contribution.([]any)
	if s.Last.Meta.Status != http.StatusAccepted || s.Successes > 1 || !isList || len(rows) > 0 || s.Last.Excluded > 0 || len(r.config.AllSinks()) == 0 {
		return ""
	}
	if paths, reads := r.config.conditionPaths(); reads || len(paths) > 0 {
		return ""
	}
	return "the response has no rows and the status 202 (accepted), which no condition uses: the API may not have them yet; " +
		"write a policy with when: \"{{ this.meta.status == 202 }}\" that polls"
}

// successData returns the data of a successful call, with a warning about it: the rendered result of the policy that ends
// it, else the collected data, else the last page. If a failure ends the call, collected data has precedence.
func (r results) successData(d ruling) (data any, warning string, err error) {
	collected, collects := r.state.Pages.CollectedResult(r.config.collectingOf())
	if r.state.Last.Error != nil && r.state.Collector != 0 {
		data, warning = r.mergeRows(r.state.Collected.Data)
		return data, warning, nil
	}
	if result := r.config.Policies.ThenOf(d.Policy).Result; result != nil {
		data, err = result.Render(r.scope(), d.budget)
		return data, "", err
	}
	if d.Ruling == retry.RulingIgnores {
		return nil, "", nil
	}
	if collects {
		data, warning = r.mergeRows(collected)
		return data, warning, nil
	}
	data, err = r.lastPage(d)
	return data, "", err
}

// mergeRows merges collected rows that have the same values in the columns of merge_by. The warning says which rows came
// less often than others.
func (r results) mergeRows(collected any) (data any, warning string) {
	collect := r.state.CollectedBy(r.config.collectingOf())
	rows, isList := collected.([]any)
	if collect == nil || len(collect.MergeBy) == 0 || !isList {
		return collected, ""
	}
	merged := page.MergeRows(rows, collect.MergeBy)
	if r.state.Successes > 1 {
		warning = merged.Warning(collect.MergeBy)
	}
	return merged.Rows, warning
}

// lastPage returns what the last page contributes.
func (r results) lastPage(d ruling) (any, error) {
	if contribution := r.state.Last.Contribution.Data; contribution != nil {
		return contribution, nil
	}
	return rowSelection{config: r.config, scope: r.scope, budget: d.budget}.pageExtraction().WholePage(r.state.Last.Data.Data)
}

// completeFailure adds to a failure where in the call it happened.
func (r results) completeFailure(failure *interpreter.ErrorObject) *interpreter.ErrorObject {
	failure.Attempt, failure.Page, failure.Policy = r.state.Attempts, r.state.lastPage(r.config), r.state.Last.Policy
	return failure
}

// pollFailure returns the failure of a poll that never became ready.
func (r results) pollFailure(decision retry.Decision) *interpreter.ErrorObject {
	const shown = 200
	answer := r.config.shownAnswer(r.state.Last.Data)
	last := source.CutText(expression.Text(answer.Data), shown)
	failure := r.completeFailure(&interpreter.ErrorObject{
		Kind: interpreter.KindExhausted, Class: interpreter.ClassFinal,
		Message: fmt.Sprintf("%s: policy %d%s matched %d of %d times after %d attempts (%s); last response: %s",
			r.config.CallPlace(), decision.Policy, r.config.policySource(decision.Policy), decision.Count, decision.Limit, r.state.Attempts, decision.Why, last),
	})
	failure.Exhausted, failure.Body = true, answer
	return failure
}

// repeatedResult returns the result of a call whose pages repeat: a failure, unless the policy treats that as the
// last page.
func (r results) repeatedResult(d ruling, format string, args ...any) *interpreter.CallResult {
	if r.config.Policies.ThenOf(d.Policy).EndOnRepeat {
		return r.successResult(d)
	}
	failure := r.completeFailure(&interpreter.ErrorObject{
		Kind: interpreter.KindRepeat, Class: interpreter.ClassFinal,
		Message: fmt.Sprintf("%s: %s, so the pages would never end; check next_call, or set allow_repeat: true, or end_on_repeat: true if this is the end",
			r.config.CallPlace(), fmt.Sprintf(format, args...)),
	})
	return r.state.failedResult(*failure, d.now)
}

// waitOf returns the wait of a decision, nil for none.
func (r results) waitOf(decision retry.Decision) *interpreter.Wait {
	if decision.Delay <= 0 {
		return nil
	}
	wait := interpreter.PhrasedWait(r.config.Name(), decision.Delay, decision.Reason, r.waitPhrase(decision))
	if r.config.Policies.ThenOf(decision.Policy).Restart || decision.Reason == interpreter.ReasonFailure || decision.Reason == interpreter.ReasonPoll {
		wait.Most = decision.Limit
	}
	return wait
}

// waitPhrase says what follows a wait, and why. It is stored, and shown beside timers in Temporal's UI, so it
// contains no countdown. Its numbers are those of the policy: the number of the next attempt, and how many are
// allowed.
func (r results) waitPhrase(decision retry.Decision) interpreter.WaitPhrase {
	after := func(why, what string, numbers ...any) interpreter.WaitPhrase {
		return interpreter.WaitPhrase{What: fmt.Sprintf(what, numbers...), Why: why + ": " + r.state.Last.Error.ShortText()}
	}
	if r.config.Policies.ThenOf(decision.Policy).Restart {
		return after("", "restart %d of %d", decision.Count, decision.Limit)
	}
	switch decision.Reason {
	case interpreter.ReasonPage:
		return interpreter.WaitPhrase{What: fmt.Sprintf("page %d", r.state.Successes+1)}
	case interpreter.ReasonPoll:
		return interpreter.WaitPhrase{What: fmt.Sprintf("poll %d of %d", decision.Count+1, decision.Limit)}
	case interpreter.ReasonRateLimited:
		return after(", as the server requested", "attempt %d", r.state.RequestAttempts+1)
	}
	return after("", "attempt %d of %d", decision.Count+1, decision.Limit)
}

// shownAnswer returns the response as errors quote it: hidden if the step is secret.
func (c *Config) shownAnswer(answer expression.Value) expression.Value {
	if c.Step.Secret {
		return expression.Of(playbook.Hidden)
	}
	return answer
}

// failedResult returns the result of a failed call; data collected so far is kept in the error.
func (s *State) failedResult(failure interpreter.ErrorObject, now time.Time) *interpreter.CallResult {
	if s.Collector != 0 {
		failure.Collected = s.Collected
	}
	return &interpreter.CallResult{Status: interpreter.StatusError, Error: &failure, Meta: s.callMeta(now), Warnings: slices.Clone(s.Warnings)}
}

func (s *State) callMeta(ended time.Time) interpreter.CallMeta {
	return interpreter.CallMeta{
		Attempts: s.Attempts, Pages: s.Successes, Incomplete: s.Incomplete,
		StartedAt: s.StartedAt, EndedAt: ended, Tool: s.Last.Meta, LeftOut: s.LeftOut.Plus(s.Last.Meta.LeftOut),
		Rows: s.Rows,
	}
}
