package call

import (
	"fmt"

	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// The rows of a sink with mode replace, or with delete_missing, are staged by each write, and published
// together (docs/concepts/written-once.md#rows-that-are-published-together): at the end of the call, or, of iterations, at that
// of their loop. Only what has read all is published.

// stagingIDLength is 80 bits in hexadecimal, so that names of tables with it are short.
const stagingIDLength = 20

// staging is what a sink that is due does to staged rows, nil for a sink that stages none.
func (c *Call) staging(sink *playbook.Sink, do interpreter.StagingStep) *interpreter.Staging {
	if !c.config.Book.Stages(sink) {
		return nil
	}
	staging := interpreter.Staging{Part: c.config.Index, Round: c.state.Restarts, Do: do}
	if staging.ID = LoopStaging(c.config.Run, c.config.Step, c.config.Visit, sink); c.config.Index == nil {
		staging.ID = stagingID(c.ledgerKey(), sink.Place)
	}
	return &staging
}

// LoopStaging names what a loop stages for a sink. It is the same for all runs of an identity: an
// iteration that one of them has finished is not made again by the next.
func LoopStaging(run interpreter.RunInfo, step *playbook.Step, visit int, sink *playbook.Sink) string {
	return stagingID(run.Identity(), step.Name, visit, sink.Place)
}

func stagingID(parts ...any) string { return expression.Digest(parts...)[:stagingIDLength] }

// stage has the call of a sink stage its rows, or publish what is staged.
func (c *Call) stage(staging *interpreter.Staging) {
	c.config.Sink.staging = staging
	if staging == nil || staging.Do == "" {
		return
	}
	action := *c.action
	action.Args = nil // there are no rows
	c.action = &action
}

// publishes reports whether the sink writes no rows, but sees to those that are staged.
func (s *sinkSource) publishes() bool { return s.staging != nil && s.staging.Do != "" }

// NewPublish is the call that publishes what the iterations of a loop have staged, or the sink on its step.
func NewPublish(config Config, sink *playbook.Sink) *Call {
	call := NewSink(config, sink, 1, nil)
	call.stage(&interpreter.Staging{ID: LoopStaging(config.Run, config.Step, config.Visit, sink), Do: interpreter.StagingPublish})
	return call
}

// Stage has the sink on a step with a loop stage its rows, where it is one that does.
func (c *Call) Stage(sink *playbook.Sink) *Call {
	if c.config.Book.Stages(sink) {
		c.stage(&interpreter.Staging{ID: LoopStaging(c.config.Run, c.config.Step, c.config.Visit, sink)})
	}
	return c
}

// endStaging is what becomes of staged rows at the end of a call: where it has read all they are
// published, and of an iteration those of rounds before are dropped.
func (c *Call) endStaging(result *interpreter.CallResult) (todo []Todo) {
	if c.config.Sink != nil || result.Failed() {
		return nil
	}
	do := interpreter.StagingPublish
	switch {
	case c.config.Index == nil:
	case c.state.Restarts == 0:
		return nil
	default:
		do = interpreter.StagingSettle
	}
	whole := !result.Meta.Truncated && !result.Meta.Incomplete && result.Status == interpreter.StatusSuccess
	for _, pending := range c.config.endSinks() {
		switch sink := c.config.pendingSink(pending); {
		case !c.config.Book.Stages(sink):
		case do == interpreter.StagingPublish && !whole:
			result.Warnings = append(result.Warnings, Unpublished(c.config.Book, sink))
		default:
			pending.Do = do
			todo = append(todo, Todo{Sink: &pending})
		}
	}
	return todo
}

// endSinks are all sinks that a call may write to that ends well.
func (c *Config) endSinks() (all []pendingSink) {
	for _, policy := range c.Policies {
		if policy.Then.PerIteration != nil {
			all = append(all, pendingSink{Policy: policy.Number, Page: true})
		}
	}
	for _, policy := range c.Policies {
		if policy.Then.Sink != nil {
			all = append(all, pendingSink{Policy: policy.Number})
		}
	}
	for i := range c.After {
		all = append(all, pendingSink{After: i + 1})
	}
	return all
}

// Unpublished is the warning of a sink whose rows are not published because not all was read.
func Unpublished(book *playbook.Playbook, sink *playbook.Sink) string {
	if book.Replaces(sink) {
		return fmt.Sprintf("sink %s: not all was read, so its table keeps the rows of before", sink.Place)
	}
	return fmt.Sprintf("sink %s: not all was read, so no row was deleted from its table", sink.Place)
}
