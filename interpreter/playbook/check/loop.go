package check

import (
	"fmt"
	"slices"

	"reprise/interpreter/playbook"
	"reprise/interpreter/source"
)

// checkLoop checks the numbers of a loop. Names in loops are checked where they are used: names.go.
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

// checkShare reports a number that is not from 0 to 1; NaN is not.
func checkShare(c *checker, loop *playbook.Loop, name string, v float64, example string) bool {
	if v >= 0 && v <= 1 {
		return true
	}
	c.Errorf(loop.Values.Place(name, loop.Pos), playbook.CodeBounds, "%s must be from 0 to 1, not %v: it is a share, so %s", name, v, example)
	return false
}

// sourceTools are the tools that can be the source of a loop.
var sourceTools = []string{"http", "file", "postgres", "sqlite"}

// checkSources checks loops over a source: docs/concepts/loops.md#elements-from-a-source.
func checkSources(c *checker) {
	for _, step := range c.pb.Steps {
		if step.Loop == nil || step.Loop.Source == nil || step.Action == nil {
			continue
		}
		checkSourceCall(c, step.Loop.Source)
		checkSourcePages(c, step.Loop.Source)
		checkSourceLoop(c, step)
	}
}

// checkSourceCall reports calls that return no rows.
func checkSourceCall(c *checker, from *playbook.Step) {
	tool := c.toolOf(from.Action)
	if tool == "" || slices.Contains(sourceTools, tool) {
		return
	}
	c.Errorf(from.Action.Tool.Pos, playbook.CodeConflict,
		"a source cannot use tool %s; it can use %s. Call other tools in an earlier step, and use its result in collection", playbook.ShortenText(tool), playbook.JoinNames(sourceTools))
}

// checkSourcePages reports keys that cannot apply to the pages of a source: each page is discarded once its
// elements have begun.
func checkSourcePages(c *checker, from *playbook.Step) {
	refuse := func(pos source.Position, what, instead string) {
		c.Errorf(pos, playbook.CodeConflict, "a source cannot have %s: %s", what, instead)
	}
	for collect := range from.CollectSections() {
		if collect.Strategy != playbook.Append {
			refuse(collect.Words.Place("strategy", collect.Pos), fmt.Sprintf("strategy: %s", collect.Strategy), "its pages become elements one after another; remove the strategy")
		}
		if len(collect.MergeBy) > 0 {
			refuse(collect.Words.Place("merge_by", collect.Pos), "merge_by", "its pages become elements one after another, before all rows are known")
		}
	}
	for _, sink := range from.SinkCalls() {
		refuse(sink.Sink.Pos, "a sink", "its pages become elements; write them with the sink of the loop")
	}
	for _, policy := range from.Retry {
		if then := &policy.Then; then.Restart {
			refuse(then.Words.Place("restart", policy.Pos), "restart", "iterations of earlier pages have already started; remove it")
		}
	}
	collected := from.CollectedNames()
	for _, node := range c.pb.CallNodes(from) {
		for leaf, ref := range node.ScalarRefs() {
			if slices.Contains(collected, ref.Root) {
				refuse(c.placeOf(leaf, ref.Offset).sourcePosition(), playbook.QuoteWord(ref.Root), "earlier pages are not kept; use page or response")
			}
		}
	}
}

// checkSourceLoop reports keys of a loop that need all of its results, or its elements in advance.
func checkSourceLoop(c *checker, step *playbook.Step) {
	loop := step.Loop
	if !loop.StatsOnly {
		c.Errorf(loop.Words.Place("results", loop.Pos), playbook.CodeConflict,
			"a loop over a source keeps no results, because there may be any number of them; remove results: inline, and write the rows with the sink of the loop")
	}
	if tool := c.toolOf(step.Action); playbook.TraitsOf(tool).Awaits {
		c.Errorf(step.Action.Tool.Pos, playbook.CodeConflict,
			"a loop over a source cannot await answers (tool %s); read the list in an earlier step, and use its result in collection", tool)
	}
	if step.Incremental != nil {
		c.Errorf(step.Incremental.Pos, playbook.CodeConflict,
			"incremental does not work in a loop over a source; read the list in an earlier step, and use its result in collection")
	}
}

// checkReadBatch reports a batch of a file that is not read in batches.
func checkReadBatch(c *checker, call playbook.CallAt) {
	batch := call.Action.Field(playbook.FieldBatch)
	switch {
	case batch == nil || call.Spot == playbook.AtWorkbook:
		return
	case call.Step != nil && call.Step.Loop != nil:
		c.Errorf(batch.Pos, playbook.CodeConflict, "a step reads a file at once; batch of its loop is written below loop, and that of a source below loop.source")
		return
	case call.Step == nil || !call.Step.IsSource():
		c.Errorf(batch.Pos, playbook.CodeConflict,
			"a step reads a file at once, and batch applies only to the source of a loop; remove it, or for a large file use tool: transfer or loop.source")
		return
	}
	if _, reads := call.Step.BatchPath(call.Action); reads {
		return
	}
	for _, policy := range call.Step.Retry {
		if policy.Then.NextCall != nil {
			c.Errorf(policy.Then.Words.Place("next_call", policy.Pos), playbook.CodeConflict, "a source with batch reads its file to the end, one page after the other; remove next_call, or batch")
			return
		}
	}
	pos := batch.Pos
	if call.Step.Rows != nil {
		pos = call.Step.Rows.Pos
	}
	c.Errorf(pos, playbook.CodeConflict, "the rows of a file that is read in batches are found by names with dots between them, such as data.items; remove the index, or batch")
}
