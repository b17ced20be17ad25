package retry

import "reprise/interpreter/ratelimit"

// readWait finds the wait that the other side requests: as retry_after of the policy reads it, else
// as the failure says, or the answer of a poll whose policy names no wait. A wait of nothing is none.
func (r *round) readWait(conditions conditions, decision *Decision) error {
	decision.Requested = 0
	if r.policy.Then.RetryAfter != nil {
		told, unread, err := conditions.RetryAfter(r.policy)
		if err != nil {
			return err
		}
		if r.asked, decision.Unread = told, unread; r.asked > 0 {
			decision.Requested = r.asked
			return nil
		}
	}
	switch {
	case r.outcome.Failed():
		r.asked = ratelimit.ToDuration(valueOr(r.outcome.Err.RetryAfter, 0))
	case r.pollsByAnswer():
		r.asked = ratelimit.ToDuration(valueOr(r.outcome.Meta.RetryAfter, 0))
		if unread := ratelimit.UnreadHeader(r.outcome.Meta.Headers, r.outcome.Meta.Status); unread != "" && r.asked == 0 {
			decision.Unread = unread
		}
	}
	return nil
}

// pollsByAnswer reports whether the answer of a poll may say when to ask again, as the policy
// names no wait.
func (r *round) pollsByAnswer() bool {
	then := &r.policy.Then
	return then.NextCall == nil && !hasWait(then)
}

// waitIsNamed reports whether the other side said after a failure how long to wait. Such a wait does
// not use up an attempt. One that follows a success is counted like any other: the other side is well, and
// says only when it is worth asking.
func (r *round) waitIsNamed() bool { return r.outcome.Failed() && r.asked > 0 }
