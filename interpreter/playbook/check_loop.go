package playbook

// The bounds of a loop: docs/concepts/loops.md.
const (
	MaxConcurrencyLimit = 500
	maxBatch            = 500
)

// checkLoop checks the numbers of a loop. Names of a loop are checked where
// they are used: check_names.go.
func checkLoop(c *checker) {
	for _, step := range c.pb.Steps {
		if step.Loop != nil {
			c.checkWindow(step.Loop)
			c.checkShares(step.Loop)
		}
	}
}

func (c *checker) checkWindow(loop *Loop) {
	if n := loop.MaxConcurrency; loop.Words.Has("max_concurrency") {
		if n < 1 || n > MaxConcurrencyLimit {
			c.errorf(loop.Values["max_concurrency"], codeBounds, "max_concurrency must be from 1 to %d, not %d", MaxConcurrencyLimit, n)
		}
		if loop.Mode != Parallel {
			c.warnf(loop.Words["max_concurrency"], codeNoEffect, "max_concurrency has no effect: a sequential loop runs one iteration at a time; add mode: parallel")
		}
	}
	if n := loop.Batch; !loop.AutoBatch && (n < 1 || n > maxBatch) {
		c.errorf(loop.Values["batch"], codeBounds, "batch must be from 1 to %d, not %d", maxBatch, n)
	}
}

func (c *checker) checkShares(loop *Loop) {
	if budget := loop.FailureBudget; budget != nil {
		c.checkShare(loop, "failure_budget.rate", budget.Rate, "0.1 means 10%")
		if budget.MinSamples < 0 {
			c.errorf(loop.Values.at("failure_budget.min_samples", loop.Pos), codeBounds,
				"failure_budget.min_samples must not be negative, not %d", budget.MinSamples)
		}
	}
	t := loop.Thresholds
	completed := c.checkShare(loop, "thresholds.completed", t.Completed, "0.95 means 95%")
	partial := c.checkShare(loop, "thresholds.partial_success", t.PartialSuccess, "0.5 means 50%")
	if completed && partial && t.Completed < t.PartialSuccess {
		c.errorf(loop.Values.at("thresholds.completed", loop.Pos), codeBounds,
			"thresholds.completed (%v) must be at least thresholds.partial_success (%v)", t.Completed, t.PartialSuccess)
	}
}

// checkShare refuses what is not from 0 to 1, NaN included.
func (c *checker) checkShare(loop *Loop, name string, v float64, example string) bool {
	if v >= 0 && v <= 1 {
		return true
	}
	c.errorf(loop.Values.at(name, loop.Pos), codeBounds, "%s must be from 0 to 1, not %v: it is a share, so %s", name, v, example)
	return false
}
