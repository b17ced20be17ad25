package playbook

import (
	"slices"
)

// checkNotices checks what is to be sent about a run: docs/concepts/runs.md#notices.
func checkNotices(c *checker) {
	if expect, limit := c.pb.Expect, c.pb.Timeout; limit > 0 && expect >= limit {
		c.warnf(c.pb.ExpectPos, codeNoEffect, "expect has no effect: no run takes longer than its timeout of %s", limit)
	}
	for _, notice := range c.pb.Notify {
		if slices.Contains(notice.On, EventLate) && c.pb.Expect == 0 && !c.partial {
			c.warnf(notice.Sink.Pos, codeNoEffect, "late has no effect: no run is late without expect: {within: 30m}")
		}
	}
}
