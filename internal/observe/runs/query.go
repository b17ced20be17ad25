package runs

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"reprise/interpreter"
	"reprise/workflows/protocol"
)

// defaultPatience is the default of Reader.Patience.
const defaultPatience = 5 * time.Second

func (r *Reader) patienceTime() time.Duration { return cmp.Or(r.Patience, defaultPatience) }

// Progress queries a run, a loop, a shard or a call for its progress.
func (r *Reader) Progress(ctx context.Context, workflowID, runID string) (protocol.Progress, error) {
	var progress protocol.Progress
	return progress, r.queryWorkflow(ctx, workflowID, runID, protocol.ProgressQuery, &progress)
}

func (r *Reader) queryWorkflow(ctx context.Context, workflowID, runID, query string, into any, args ...any) error {
	ctx, cancel := context.WithTimeout(ctx, r.patienceTime())
	defer cancel()
	value, err := r.Client.QueryWorkflow(ctx, workflowID, runID, query, args...)
	if err != nil {
		return fmt.Errorf("query the progress of run %s: %w", workflowID, err)
	}
	return value.Get(into)
}

// CallProgress queries the separate workflow in which a step's call continues.
func (r *Reader) CallProgress(ctx context.Context, workflowID string) (protocol.IterationRecord, error) {
	var answer protocol.Iterations
	if err := r.queryWorkflow(ctx, workflowID, "", protocol.IterationsQuery, &answer); err != nil {
		return protocol.IterationRecord{}, err
	}
	if len(answer.Iterations) != 1 {
		return protocol.IterationRecord{}, fmt.Errorf("the workflow %s makes %d calls and not that of a step", workflowID, len(answer.Iterations))
	}
	return answer.Iterations[0], nil
}

// LoopProgress queries a loop and its open shards: a call for each, two or three for a loop of 100,000 iterations,
// and one for each shard whose last iterations wait.
func (r *Reader) LoopProgress(ctx context.Context, workflowID string) (protocol.Progress, error) {
	progress, unread, err := r.loopProgress(ctx, workflowID, func() bool { return true })
	if err == nil && unread != "" {
		err = fmt.Errorf("query the progress of the loop %s: a shard of it gave no answer", workflowID)
	}
	return progress, err
}

// loopProgress is LoopProgress as long as spend allows another call. unread says which part of the loop was not read,
// "" if all was: iterations in that part may have ended.
func (r *Reader) loopProgress(
	ctx context.Context, workflowID string, spend func() bool,
) (progress protocol.Progress, unread unread, err error) {
	if !spend() {
		return progress, notQueried, nil
	}
	progress, err = r.Progress(ctx, workflowID, "")
	for shards := progress.Shards; err == nil && len(shards) > 0; shards = shards[1:] {
		if !spend() {
			return progress, notQueried, nil
		}
		shard, failed := r.Progress(ctx, shards[0], "")
		if failed != nil { // a worker was lost, or replays a long history
			unread = notAnswered
			continue
		}
		shards = append(shards, shard.Shards...)
		addShard(&progress, shard)
	}
	return progress, unread, err
}

// unread is why part of a loop was not read.
type unread string

const (
	notQueried  unread = "not queried"
	notAnswered unread = "not answered"
)

// addShard adds the counts of an open shard, which its loop does not include yet.
func addShard(progress *protocol.Progress, shard protocol.Progress) {
	progress.Stats.Success += shard.Stats.Success
	progress.Stats.Failed += shard.Stats.Failed
	progress.Stats.Truncated += shard.Stats.Truncated
	if shard.Source != nil { // it has read on
		progress.Stats.Total += shard.Stats.Total
		progress.Source = shard.Source
	}
	progress.Within.Success += shard.Within.Success
	progress.Within.Failed += shard.Within.Failed
	progress.Rows = progress.Rows.Plus(shard.Rows)
	progress.Open = append(progress.Open, shard.Open...)
	progress.Active, progress.Waiting, progress.Returning =
		progress.Active+shard.Active, progress.Waiting+shard.Waiting, progress.Returning+shard.Returning
	progress.NextRetryAt = interpreter.EarlierTime(progress.NextRetryAt, shard.NextRetryAt)
}

// latestKnown returns the later of two times; zero if one is not known.
func latestKnown(a, b time.Time) time.Time {
	switch {
	case a.IsZero() || b.IsZero():
		return time.Time{}
	case a.Before(b):
		return b
	}
	return a
}
