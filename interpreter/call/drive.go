package call

import (
	"cmp"
	"reflect"
	"slices"
	"time"

	"reprise/interpreter/call/request"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// This file lets an activity drive a call for a while: how much work it gets, which state is sent to it, and how
// its results are applied.

// Limits on the pages that one activity fetches (docs/concepts/attempts.md#pages), so that a lost worker costs
// little.
const (
	DefaultPagesPerActivity = 50
	// maxBytesPerActivity bounds the size of the pages that one activity fetches for a call. They are all in memory
	// and in its result, and are fetched again if the worker is lost.
	maxBytesPerActivity = 1 << 20
	// maxTimePerActivity bounds how long one activity fetches pages for a call, because that work may be lost with
	// its worker.
	maxTimePerActivity = 20 * time.Second
	// MostPagesPerActivity bounds the pages of an activity that has run for less than quickActivity: ending an
	// activity and starting another takes as long as fetching several pages.
	MostPagesPerActivity = 500
	quickActivity        = 2 * time.Second
)

// Chunk measures the work that one activity has done for one call.
type Chunk struct {
	started  time.Time
	restarts int
	pages    int // successes before the chunk, in the round with that many restarts
	bytes    int
	// most is an additional bound on the pages; 0 for none.
	most int
}

// NewChunk starts a measurement at the call's current page.
func (v View) NewChunk(now time.Time) Chunk {
	return Chunk{started: now, restarts: v.state.Restarts, pages: v.state.Successes}
}

// AtMost sets an additional bound on the pages; 0 for none.
func (k *Chunk) AtMost(pages int) { k.most = pages }

// AddPageSize adds the size of a page, in bytes.
func (k *Chunk) AddPageSize(bytes int) { k.bytes += bytes }

// IsFull reports whether the remaining pages of the call should be left to another activity.
func (k *Chunk) IsFull(v View, now time.Time) bool {
	pages := v.state.Successes
	if v.state.Restarts == k.restarts {
		pages -= k.pages
	}
	took := now.Sub(k.started)
	return k.most > 0 && pages >= k.most || pages >= v.config.pagesWithin(took, v.state.Last.Policy) || k.bytes >= maxBytesPerActivity || took >= maxTimePerActivity
}

// CanDetachPages reports whether an activity can fetch pages without the data collected before. It cannot if an
// expression reads that data, or if pages are merged into it.
func (v View) CanDetachPages() bool {
	if v.config.collectingOf().UsesStrategy(playbook.Merge) || v.ToolTraits().InWorkflow {
		return false
	}
	return !slices.ContainsFunc(v.config.Book.CallNodes(v.config.Step), request.UsesAny(v.config.Step.CollectedNames()...))
}

// IsAtEnd reports whether the end of the call is next.
func (v View) IsAtEnd() bool { return v.state.nextTodo().End != nil }

// SinkDue reports whether a sink is next that has not begun.
func (v View) SinkDue() bool {
	sink := v.state.nextTodo().Sink
	return sink != nil && sink.State == nil
}

// FetchesPage reports whether the call is about to fetch another page without a wait, so that an activity may fetch
// several. The sink of the page before, unless it has begun, and the move of the state may come first.
func (v View) FetchesPage() bool {
	if v.config.Sink != nil || v.state.Successes == 0 || v.config.Policies.ThenOf(v.state.Last.Policy).PagesPerActivity == 1 {
		return false
	}
	behind := v.state.Todo
	if v.SinkDue() {
		behind = behind[1:]
	}
	if len(behind) > 0 && behind[0].State != nil {
		behind = behind[1:]
	}
	if len(behind) == len(v.state.Todo) && v.state.RequestAttempts > 0 {
		return false
	}
	return len(behind) == 1 && behind[0].Attempt != nil
}

// Snapshot returns a copy of the current state. Between a page and the next attempt it omits the page, unless a
// policy may make it the result of a later failure.
func (v View) Snapshot() State {
	state := *v.state
	if state.nextTodo().Attempt != nil && !slices.ContainsFunc(v.config.Policies, func(policy *playbook.Policy) bool {
		return policy.Then.OnExhausted == playbook.ExhaustedSucceed || policy.Then.Ignore
	}) {
		state.Last = lastAttempt{Meta: state.Last.Meta, Policy: state.Last.Policy}
	}
	if !state.Last.Contribution.IsZero() {
		state.Last.omitContribution(v.config.contributionPath(&state))
	}
	state.Counters.Policies = slices.Clone(state.Counters.Policies)
	return state
}

// setState replaces the state by a snapshot.
func (c *Call) setState(snapshot State) {
	snapshot.Last.restoreContribution()
	c.state = snapshot
}

// contributionPath returns the path of the rows in a page: that of the step's rows, or of the collect that
// was used last; "" for the whole page.
func (c *Config) contributionPath(state *State) string {
	if c.Step.Rows != nil && c.Sink == nil {
		return c.Step.Rows.Text
	}
	if collect := state.CollectedBy(c.collectingOf()); collect != nil {
		return collect.Path
	}
	return ""
}

// omitContribution replaces the contribution by its path if it is the value at that path of the page.
func (a *lastAttempt) omitContribution(path string) {
	if value, found := valueAt(a.Data.Data, path); found && isSame(value, a.Contribution.Data) {
		a.Contribution, a.ContributionAt = expression.Value{}, &path
	}
}

// restoreContribution is the reverse of omitContribution.
func (a *lastAttempt) restoreContribution() {
	if a.ContributionAt == nil {
		return
	}
	value, _ := valueAt(a.Data.Data, *a.ContributionAt)
	a.Contribution, a.ContributionAt = expression.Of(value), nil
}

// valueAt returns the value at a path, all of v for the path "".
func valueAt(v any, path string) (value any, found bool) {
	if path == "" {
		return v, true
	}
	value, found, err := expression.ValueAtPath(v, path)
	return value, found && err == nil
}

// isSame reports whether two values are one list or one map in memory, which needs no comparison of their elements.
func isSame(a, b any) bool {
	switch a := a.(type) {
	case []any:
		b, _ := b.([]any)
		return len(a) > 0 && len(a) == len(b) && &a[0] == &b[0]
	case map[string]any:
		b, isMap := b.(map[string]any)
		return isMap && reflect.ValueOf(a).UnsafePointer() == reflect.ValueOf(b).UnsafePointer()
	}
	return false
}

// SnapshotFor returns the state to send to an activity, nil if the call has none. For an activity that only fetches
// pages it omits collected data, so that thousands of pages are not sent along with every further page, unless
// later pages may replace that data.
func (v View) SnapshotFor(pages bool) *State {
	if !v.Begun && !v.state.Recalls && len(v.state.Warnings) == 0 {
		return nil
	}
	state := v.Snapshot()
	if pages {
		state.Pages.Detach(v.config.collectingOf())
	}
	return &state
}

// Apply merges what an activity did for the call: its result, or its new state, and the outcome of an attempt made
// after that state. It reports whether the call has advanced.
func (c *Call) Apply(driven Driven, now time.Time) (further bool) {
	switch {
	case driven.Result != nil:
		c.Finish(*driven.Result)
		return true
	case driven.State == nil:
		return false
	}
	before := c.state
	c.setState(*driven.State)
	c.state.Requests.PrependFingerprints(before.Seen[:min(driven.SeenBefore, len(before.Seen))])
	c.state.Pages.Attach(&before.Pages)
	if driven.Outcome != nil {
		c.ApplyOutcome(*driven.Outcome, now)
	}
	return c.state.isBeyond(before)
}

// pagesWithin returns how many pages an activity may fetch that has run for took: the pages_per_activity of the
// policy that paged last, or the default.
func (c *Config) pagesWithin(took time.Duration, policy int) int {
	byDefault := DefaultPagesPerActivity
	if took < quickActivity {
		byDefault = MostPagesPerActivity
	}
	return cmp.Or(c.Policies.ThenOf(policy).PagesPerActivity, byDefault)
}
