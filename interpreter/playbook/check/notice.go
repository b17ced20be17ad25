package check

import (
	"slices"

	"reprise/interpreter/playbook"
)

// checkNotices checks the notices of a run: docs/concepts/runs.md#notices.
func checkNotices(c *checker) {
	if expect, limit := c.pb.Expect, c.pb.Timeout; limit > 0 && expect >= limit {
		c.Warnf(c.pb.ExpectPos, codeNoEffect, "expect has no effect: a run cannot take longer than its timeout of %s", limit)
	}
	for _, notice := range c.pb.Notify {
		if slices.Contains(notice.On, playbook.EventLate) && c.pb.Expect == 0 && !c.partial {
			c.Warnf(notice.Sink.Pos, codeNoEffect, "late has no effect without an expectation; add expect: {within: 30m}")
		}
	}
}
