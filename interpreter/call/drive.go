package call

import (
	"cmp"
	"slices"
	"time"

	"reprise/interpreter/call/request"
	"reprise/interpreter/playbook"
)

// This file has what lets other hosts drive a call for a while: how much of it belongs to one activity, which state
// goes there, and how what the activity has done is applied.

// Bounds of what one activity fetches of a call (docs/concepts/attempts.md#pages),
// so that what a lost worker costs stays small.
const (
	DefaultPagesPerActivity = 50
	// maxBytesPerActivity bounds the bytes that one activity fetches of a call
	// (docs/concepts/attempts.md#pages). All of its pages are in memory and in its result, and
	// are fetched again if the worker is lost.
	maxBytesPerActivity = 1 << 20
	// maxTimePerActivity bounds how long one activity fetches pages of a call, because that
	// work may be lost with its worker.
	maxTimePerActivity = 20 * time.Second
	// MostPagesPerActivity is how many pages an activity may fetch before it has run for quickActivity: ending one
	// activity and beginning another takes as long as fetching several pages.
	MostPagesPerActivity = 500
	quickActivity        = 2 * time.Second
)

// Chunk bounds what one activity does for one call.
type Chunk struct {
	started  time.Time
	restarts int
	pages    int // successes before, of the round with that many restarts
	bytes    int
	// most bounds the pages further; 0 for no such bound.
	most int
}

// NewChunk begins to count.
func (v View) NewChunk(now time.Time) Chunk {
	return Chunk{started: now, restarts: v.state.Restarts, pages: v.state.Successes}
}

// AtMost bounds the pages further; 0 is no such bound.
func (k *Chunk) AtMost(pages int) { k.most = pages }

// Add counts a page's size.
func (k *Chunk) Add(bytes int) { k.bytes += bytes }

// Full reports whether the rest of the call's pages belongs to another activity.
func (k *Chunk) Full(v View, now time.Time) bool {
	pages := v.state.Successes
	if v.state.Restarts == k.restarts {
		pages -= k.pages
	}
	took := now.Sub(k.started)
	return k.most > 0 && pages >= k.most || pages >= v.config.pagesWithin(took, v.state.Last.Policy) || k.bytes >= maxBytesPerActivity || took >= maxTimePerActivity
}

// Detachable reports whether pages may be fetched without the data collected before: not if an
// expression reads it, or pages are merged into it.
func (v View) Detachable() bool {
	if v.config.collectingOf().Uses(playbook.Merge) || v.Traits().InWorkflow {
		return false
	}
	return !slices.ContainsFunc(v.config.Book.CallNodes(v.config.Step), request.Naming(v.config.Step.CollectedNames()...))
}

// EndsNext reports whether nothing is left to do but to end.
func (v View) EndsNext() bool { return v.state.nextTodo().End != nil }

// SinkDue reports whether a sink comes next that has not begun.
func (v View) SinkDue() bool {
	sink := v.state.nextTodo().Sink
	return sink != nil && sink.State == nil
}

// FetchesPage reports whether the call is about to fetch another page without a
// wait, one that may travel with others: its sink for the page before included,
// unless that has begun, and the move of its state.
func (v View) FetchesPage() bool {
	if v.config.Sink != nil || v.state.Successes == 0 || v.config.Policies.Then(v.state.Last.Policy).PagesPerActivity == 1 {
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

// Snapshot is the state at this moment; the call may continue. Between a page and
// the next attempt it leaves the page out where nothing will look at it again:
// a failure that succeeds may end with it.
func (v View) Snapshot() State {
	state := *v.state
	if state.nextTodo().Attempt != nil && !slices.ContainsFunc(v.config.Policies, func(policy *playbook.Policy) bool {
		return policy.Then.OnExhausted == playbook.ExhaustedSucceed || policy.Then.Ignore
	}) {
		state.Last = lastAttempt{Meta: state.Last.Meta, Policy: state.Last.Policy}
	}
	state.Counters.Policies = slices.Clone(state.Counters.Policies)
	return state
}

// SnapshotFor returns the call's state for an activity, nil if it has none. For an activity
// that only fetches pages it omits collected data, so that thousands of pages are not sent with
// every further page; a page that replaces the others is sent.
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

// Apply merges what an activity has done for the call: its result, or its new state, and the
// outcome of an attempt made after that state. It reports whether the call has advanced.
func (c *Call) Apply(driven Driven, now time.Time) (further bool) {
	switch {
	case driven.Result != nil:
		c.Finish(*driven.Result)
		return true
	case driven.State == nil:
		return false
	}
	before := c.state
	c.state = *driven.State
	c.state.Requests.Prepend(before.Seen[:min(driven.SeenBefore, len(before.Seen))])
	c.state.Pages.Attach(&before.Pages)
	if driven.Outcome != nil {
		c.Attempted(*driven.Outcome, now)
	}
	return c.state.isBeyond(before)
}

// pagesWithin is how many pages an activity fetches that has run so long: what the policy says that paged last, or the default.
func (c *Config) pagesWithin(took time.Duration, policy int) int {
	byDefault := DefaultPagesPerActivity
	if took < quickActivity {
		byDefault = MostPagesPerActivity
	}
	return cmp.Or(c.Policies.Then(policy).PagesPerActivity, byDefault)
}
