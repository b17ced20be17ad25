package main

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"
)

// The workflows that somebody would write by hand for the same job: a child with one activity per iteration, limited
// concurrency, and shards for long loops. Playbooks are measured against their rate.

// handInput is the input of a loop, or of a shard of one.
type handInput struct {
	ID    string `json:"id"`
	First int    `json:"first"`
	Size  int    `json:"size"`
	Width int    `json:"width"` // iterations at a time
	MS    int    `json:"ms"`    // how long the activity takes
	URL   string `json:"url"`   // of pages that each iteration fetches and writes; none if empty
}

// handShard is how many children one history starts.
const handShard = 400

func handLoop(ctx workflow.Context, in handInput) ([]int, error) {
	if in.Size > handShard {
		return handShards(ctx, in)
	}
	results := make([]int, in.Size)
	next, free := 0, in.Width
	var failure error
	done := workflow.NewChannel(ctx)
	for ended := 0; ended < in.Size; ended++ {
		for ; free > 0 && next < in.Size; next, free = next+1, free-1 {
			position := next
			options := workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{
				WorkflowID: fmt.Sprintf("%s/%d", in.ID, in.First+position),
			})
			child := workflow.ExecuteChildWorkflow(options, handIterationName, handInput{
				ID: in.ID, First: in.First + position, MS: in.MS, URL: in.URL,
			})
			workflow.Go(ctx, func(ctx workflow.Context) {
				if err := child.Get(ctx, &results[position]); err != nil {
					failure = err
				}
				done.Send(ctx, nil)
			})
		}
		done.Receive(ctx, nil)
		free++
	}
	return results, failure
}

func handShards(ctx workflow.Context, in handInput) ([]int, error) {
	var all []int
	for first := 0; first < in.Size; first += handShard {
		shard := in
		shard.ID = fmt.Sprintf("%s/shard-%d", in.ID, first)
		shard.First, shard.Size = first, min(handShard, in.Size-first)
		options := workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{WorkflowID: shard.ID})
		var results []int
		if err := workflow.ExecuteChildWorkflow(options, handLoopName, shard).Get(ctx, &results); err != nil {
			return nil, fmt.Errorf("shard from %d: %w", first, err)
		}
		all = append(all, results...)
	}
	return all, nil
}

func handIteration(ctx workflow.Context, in handInput) (int, error) {
	if in.URL != "" {
		return handElement(ctx, in)
	}
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: time.Minute, HeartbeatTimeout: 10 * time.Second,
	})
	var result int
	err := workflow.ExecuteActivity(ctx, handActivityName, in).Get(ctx, &result)
	return result, err
}

// Names of the workflows and activities written by hand.
const (
	handLoopName      = "HandLoop"
	handIterationName = "HandIteration"
	handActivityName  = "hand"
	handPagesName     = "HandPages"
	handPageName      = "handPage"
)
