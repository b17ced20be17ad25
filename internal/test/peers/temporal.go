package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"reprise/internal/base/childproc"
)

// temporalCommand runs this program as a worker of hand-written workflows. Its arguments are server, namespace,
// database.
const temporalCommand = "work-by-hand"

const (
	handQueue  = "by-hand"
	handJob    = "load"
	handList   = "load-list"
	handPage   = "load-page"
	handPolls  = "polls by hand"
	pagesAtOne = 500 // pages of a history, after which a list continues as new
)

// temporalWay is a workflow with an activity per page, which fetches and writes it, and a child workflow per element.
type temporalWay struct{}

func (temporalWay) name() string { return "Temporal by hand" }

func (temporalWay) prepare(ctx context.Context, w *world, _ job) (*processes, error) {
	return startProcesses(ctx, func(ctx context.Context) (*childproc.Process, error) {
		p, err := startProcess(ctx, w.directory, nil, w.executed, temporalCommand, w.server.Address, w.server.Namespace, w.database.URL)
		if err == nil {
			err = waitForOutput(ctx, p, handPolls)
		}
		return p, err
	})
}

func (temporalWay) load(ctx context.Context, w *world, j job, _ *processes) error {
	c, err := dialTemporal(ctx, w.server.Address, w.server.Namespace)
	if err != nil {
		return err
	}
	defer c.Close()
	run, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{TaskQueue: handQueue}, handJob, w.api.url, j.elements)
	if err != nil {
		return fmt.Errorf("start the workflow: %w", err)
	}
	if err := run.Get(ctx, nil); err != nil {
		return fmt.Errorf("the workflow: %w", err)
	}
	return nil
}

func dialTemporal(ctx context.Context, address, namespace string) (client.Client, error) {
	quiet := log.NewStructuredLogger(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})))
	c, err := client.DialContext(ctx, client.Options{HostPort: address, Namespace: namespace, Logger: quiet})
	if err != nil {
		return nil, fmt.Errorf("connect to Temporal: %w", err)
	}
	return c, nil
}

func workByHand(ctx context.Context, args []string) error {
	if len(args) != 3 {
		return fmt.Errorf("%w: %s ADDRESS NAMESPACE DATABASE", errUsage, temporalCommand)
	}
	c, err := dialTemporal(ctx, args[0], args[1])
	if err != nil {
		return err
	}
	defer c.Close()
	db, err := pgxpool.New(ctx, args[2])
	if err != nil {
		return fmt.Errorf("connect to PostgreSQL: %w", err)
	}
	defer db.Close()
	w := worker.New(c, handQueue, worker.Options{})
	w.RegisterWorkflowWithOptions(jobByHand, workflow.RegisterOptions{Name: handJob})
	w.RegisterWorkflowWithOptions(listByHand, workflow.RegisterOptions{Name: handList})
	w.RegisterActivityWithOptions(func(ctx context.Context, list string, number int) (more bool, err error) {
		got, err := getPage(ctx, list, number)
		if err == nil {
			err = writeRows(ctx, db, got.Rows)
		}
		return got.HasMore, err
	}, activity.RegisterOptions{Name: handPage})
	if err := w.Start(); err != nil {
		return fmt.Errorf("start the worker: %w", err)
	}
	defer w.Stop()
	fmt.Println(handPolls)
	<-ctx.Done()
	return nil
}

// jobByHand loads one list, or the lists of all elements with limited concurrency.
func jobByHand(ctx workflow.Context, api string, elements int) error {
	if elements == 0 {
		return listByHand(ctx, api+"/rows", 1)
	}
	running := workflow.NewSemaphore(ctx, width)
	group := workflow.NewWaitGroup(ctx)
	var failed error
	for n := range elements {
		if err := running.Acquire(ctx, 1); err != nil {
			return fmt.Errorf("wait for a place: %w", err)
		}
		group.Add(1)
		workflow.Go(ctx, func(ctx workflow.Context) {
			defer group.Done()
			defer running.Release(1)
			child := workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{})
			if err := workflow.ExecuteChildWorkflow(child, handList, fmt.Sprintf("%s/elements/%d/rows", api, n), 1).Get(ctx, nil); err != nil {
				failed = err
			}
		})
	}
	group.Wait(ctx)
	return failed
}

// listByHand loads the pages of a list, starting at first.
func listByHand(ctx workflow.Context, list string, first int) error {
	pages := workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: 10 * time.Second, RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 5},
	})
	for number := first; ; number++ {
		if number == first+pagesAtOne {
			return workflow.NewContinueAsNewError(ctx, handList, list, number)
		}
		more := false
		if err := workflow.ExecuteActivity(pages, handPage, list, number).Get(ctx, &more); err != nil {
			return fmt.Errorf("page %d: %w", number, err)
		}
		if !more {
			return nil
		}
	}
}
