package retry

import "reprise/interpreter/ratelimit"

// readWait determines the wait that the server requested: by the policy's retry_after, else by the failure, or by
// the response of a poll whose policy configures no wait. A wait of 0 counts as none.
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
	case r.mayUseServerWait():
		r.asked = ratelimit.ToDuration(valueOr(r.outcome.Meta.RetryAfter, 0))
		if unread := ratelimit.UnreadHeader(r.outcome.Meta.Headers, r.outcome.Meta.Status); unread != "" && r.asked == 0 {
			decision.Unread = unread
		}
	}
	return nil
}

// mayUseServerWait reports whether the response of a poll may determine the wait, because the policy configures none.
func (r *round) mayUseServerWait() bool {
	then := &r.policy.Then
	return then.NextCall == nil && !hasWait(then)
}

// waitIsNamed reports whether the server requested the wait after a failure. Such a wait does not use up an
// attempt. A wait requested with a success counts like any other, because it only says when polling again makes
// sense.
func (r *round) waitIsNamed() bool { return r.outcome.Failed() && r.asked > 0 }
