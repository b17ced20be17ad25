package playbook

// The bounds of a loop: docs/language.md, section loop.
const (
	MaxConcurrencyLimit = 500
	MaxBatch            = 500
)

// checkLoop checks the numbers of a loop. Names of a loop are checked where
// they are used: check_names.go.
func checkLoop(c *checker) {
	for _, loop := range c.pb.loops() {
		c.checkWindow(loop)
		c.checkShares(loop)
	}
}

func (c *checker) checkWindow(loop *Loop) {
	if n := loop.MaxConcurrency; loop.Words.Has("max_concurrency") {
		if n < 1 || n > MaxConcurrencyLimit {
			c.errorf(loop.Words["max_concurrency"], CodeBounds, "max_concurrency must be from 1 to %d, not %d", MaxConcurrencyLimit, n)
		}
		if loop.Mode != Parallel {
			c.warnf(loop.Words["max_concurrency"], CodeNoEffect, "max_concurrency has no effect: a sequential loop runs one iteration at a time; add mode: parallel")
		}
	}
	if n := loop.Batch; loop.Words.Has("batch") && (n < 1 || n > MaxBatch) {
		c.errorf(loop.Words["batch"], CodeBounds, "batch must be from 1 to %d, not %d", MaxBatch, n)
	}
}

func (c *checker) checkShares(loop *Loop) {
	if budget := loop.FailureBudget; budget != nil {
		pos := loop.Words.At("failure_budget", loop.Pos)
		if !isShare(budget.Rate) {
			c.errorf(pos, CodeBounds, "failure_budget.rate must be from 0 to 1, not %v: it is a share, so 0.1 means 10 %%", budget.Rate)
		}
		if budget.MinSamples < 1 {
			c.errorf(pos, CodeBounds, "failure_budget.min_samples must be at least 1, not %d", budget.MinSamples)
		}
	}
	pos := loop.Words.At("thresholds", loop.Pos)
	t := loop.Thresholds
	switch {
	case !isShare(t.Completed):
		c.errorf(pos, CodeBounds, "thresholds.completed must be from 0 to 1, not %v: it is a share, so 0.95 means 95 %%", t.Completed)
	case !isShare(t.PartialSuccess):
		c.errorf(pos, CodeBounds, "thresholds.partial_success must be from 0 to 1, not %v: it is a share, so 0.5 means 50 %%", t.PartialSuccess)
	case t.Completed < t.PartialSuccess:
		c.errorf(pos, CodeBounds, "thresholds.completed (%v) must be at least thresholds.partial_success (%v)", t.Completed, t.PartialSuccess)
	}
}

// isShare is false for NaN too.
func isShare(v float64) bool { return v >= 0 && v <= 1 }
