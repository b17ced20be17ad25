package check

import (
	"reprise/interpreter/playbook"
)

// checkLoop checks the numbers of a loop. Names of a loop are checked where
// they are used: names.go.
func checkLoop(c *checker) {
	for _, step := range c.pb.Steps {
		if step.Loop != nil {
			checkWindow(c, step.Loop)
			checkShares(c, step.Loop)
		}
	}
}

func checkWindow(c *checker, loop *playbook.Loop) {
	if n := loop.MaxConcurrency; loop.Words.Has("max_concurrency") {
		if n < 1 || n > playbook.MaxConcurrencyLimit {
			c.Errorf(loop.Values["max_concurrency"], playbook.CodeBounds, "max_concurrency must be from 1 to %d, not %d", playbook.MaxConcurrencyLimit, n)
		}
		if loop.Mode != playbook.Parallel {
			c.Warnf(loop.Words["max_concurrency"], codeNoEffect, "max_concurrency has no effect: a sequential loop runs one iteration at a time; add mode: parallel")
		}
	}
	if n := loop.Batch; !loop.AutoBatch && (n < 1 || n > playbook.MaxBatch) {
		c.Errorf(loop.Values["batch"], playbook.CodeBounds, "batch must be from 1 to %d, not %d", playbook.MaxBatch, n)
	}
}

func checkShares(c *checker, loop *playbook.Loop) {
	if budget := loop.FailureBudget; budget != nil {
		checkShare(c, loop, "failure_budget.rate", budget.Rate, "0.1 means 10%")
		if budget.MinSamples < 0 {
			c.Errorf(loop.Values.Place("failure_budget.min_samples", loop.Pos), playbook.CodeBounds,
				"failure_budget.min_samples must not be negative, not %d", budget.MinSamples)
		}
	}
	t := loop.Thresholds
	completed := checkShare(c, loop, "thresholds.completed", t.Completed, "0.95 means 95%")
	partial := checkShare(c, loop, "thresholds.partial_success", t.PartialSuccess, "0.5 means 50%")
	if completed && partial && t.Completed < t.PartialSuccess {
		c.Errorf(loop.Values.Place("thresholds.completed", loop.Pos), playbook.CodeBounds,
			"thresholds.completed (%v) must be at least thresholds.partial_success (%v)", t.Completed, t.PartialSuccess)
	}
}

// checkShare refuses what is not from 0 to 1, NaN included.
func checkShare(c *checker, loop *playbook.Loop, name string, v float64, example string) bool {
	if v >= 0 && v <= 1 {
		return true
	}
	c.Errorf(loop.Values.Place(name, loop.Pos), playbook.CodeBounds, "%s must be from 0 to 1, not %v: it is a share, so %s", name, v, example)
	return false
}
