package attempt

import (
	"context"
	"fmt"
	"time"

	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
	"reprise/interpreter/ratelimit"
)

// defaultMaxPause bounds how long a response that asks clients to wait pauses other attempts
// under its rate limit. Without it, one odd header stops all of them.
const defaultMaxPause = 5 * time.Minute

// RateLimits are the operator's limits, by their keys: names that playbooks
// share, or hosts. All requests to such a key are under its limit, from all playbooks
// together; playbooks can ask for less and not for more.
type RateLimits map[string]playbook.OwnedLimit

// maxPause is how long a response may pause the attempts under a limit.
func (r RateLimits) maxPause(limit ratelimit.Limit) time.Duration {
	if pause := r[limit.Key].MaxPause; pause > 0 {
		return pause
	}
	return defaultMaxPause
}

// limitOf returns the limit of an attempt, nil for none; more says that its playbook asks for
// more than the operator allows.
func (r RateLimits) limitOf(in interpreter.ToolInput) (limit *ratelimit.Limit, more bool) {
	asked := in.RateLimit
	key := ""
	if asked != nil {
		key = asked.Key
	} else if len(r) > 0 {
		key = in.LimitKey()
	}
	owned, ok := r[key]
	if !ok || owned.Requests == 0 {
		return asked, false
	}
	given := &ratelimit.Limit{Key: key, Requests: owned.Requests, PerSeconds: owned.Per.Seconds()}
	if asked == nil {
		return given, false
	}
	if asked.Interval() < given.Interval() {
		return given, true
	}
	given.Requests, given.PerSeconds = asked.Requests, asked.PerSeconds
	return given, false
}

// limitOf returns the limit that an attempt is under, nil for none. A playbook
// that asks for more than it gets is logged once.
func (p *pacer) limitOf(in interpreter.ToolInput) *ratelimit.Limit {
	limit, more := p.limits.limitOf(in)
	if !more {
		return limit
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if asker := in.RateLimit.Playbook + "\x00" + in.Step + "\x00" + limit.Key; !p.warned[asker] && len(p.warned) < mostWarned {
		p.warned[asker] = true
		p.logger.Warn("a step requests more than the operator's rate limit, which applies", "playbook", in.RateLimit.Playbook,
			"step", in.Step, "key", limit.Key, "requests", limit.Requests, "per_seconds", limit.PerSeconds)
	}
	return limit
}

// mostWarned bounds the steps that are remembered as warned about, in memory.
const mostWarned = 1000

// Warnings are about steps that ask for more than the operator allows, if their keys are known
// before the run.
func (r RateLimits) Warnings(book *playbook.Playbook) []string {
	var all []string
	for _, step := range book.Steps {
		if step.Action == nil || step.Action.RateLimit == nil || len(r) == 0 {
			continue
		}
		asked := step.Action.RateLimit
		in := interpreter.ToolInput{RateLimit: &ratelimit.Limit{
			Key: literalKey(book.ResolveAction(step.Action)), Requests: asked.Requests, PerSeconds: asked.Per.Seconds(),
		}}
		if limit, more := r.limitOf(in); more {
			all = append(all, fmt.Sprintf("%s:%s: step %q requests %d per %s for %q; the worker's rate limit applies: %d per %s",
				book.File.Name, asked.Pos, step.Name, asked.Requests, asked.Per, limit.Key, limit.Requests, limit.Period()))
		}
	}
	return all
}

// literalKey returns the key of an action's limit, "" where it is a template.
func literalKey(action *playbook.Action) string {
	node := action.RateLimit.Key
	if action.RateLimit.Shared != nil {
		node = action.RateLimit.Shared
	}
	switch {
	case node != nil && node.Template == nil:
		return expression.Text(node.Value)
	case node != nil:
		return ""
	}
	if url := action.Field("url"); url != nil && url.Template == nil {
		return interpreter.ToolInput{Fields: map[string]expression.Value{"url": expression.Of(url.Value)}}.LimitKey()
	}
	return ""
}

// longestPause bounds, in seconds, how long the attempts under a rate limit are paused.
const longestPause = 365 * 24 * 3600

// PauseRateLimit is the local activity with which a workflow pauses the attempts under a rate
// limit if a successful response asks clients to wait. Calls in activities pause them directly.
func (r *Runner) PauseRateLimit(ctx context.Context, in interpreter.PauseRateLimitInput) error {
	if limit := r.pacer.limitOf(in.Attempt); limit != nil {
		r.pacer.pauseLimit(ctx, *limit, time.Duration(min(in.Seconds, longestPause)*float64(time.Second)))
	}
	return nil
}
