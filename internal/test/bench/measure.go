package main

import (
	"context"
	"fmt"
	"os"
	"time"

	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"reprise/internal/observe/ending"
	"reprise/interpreter/expression"
	"reprise/workflows/protocol"
)

// one is a case of the benchmark.
type one struct {
	group, name string
	n           int // iterations or pages
	source      string
	by          *handInput // by hand, in place of a playbook
	pages       string     // by hand: where the pages are that one workflow collects
	worker      string     // the program that is the worker; this one if empty
	small       bool       // n runs of one iteration, one after the other
	// program does the job without Temporal, and returns the number of rows.
	program func(context.Context) (int, error)
}

// figures are the measurements of a case.
type figures struct {
	one
	root   string // condition of the workflows that did it; empty for a program
	began  time.Time
	took   time.Duration
	cpu    time.Duration // of the worker
	server time.Duration // processor time of the server meanwhile; 0 where it is not ours
	memory int64         // its peak, in bytes
	events int64         // of all workflows of the run
	bytes  int64         // of their histories
	most   int64         // events of the longest history
	large  int64         // bytes of the largest history
}

func (f figures) rate() float64 { return float64(f.n) / f.took.Seconds() }

// cpuEach returns the processor time that the worker needs per iteration or page, in ms.
func (f figures) cpuEach() float64 { return f.cpu.Seconds() * 1e3 / float64(f.n) }

// serverEach returns the processor time that the server needs per iteration or page, in ms.
func (f figures) serverEach() float64 { return f.server.Seconds() * 1e3 / float64(f.n) }

// allCPU returns the processor time of worker and server together, in seconds.
func (f figures) allCPU() float64 { return (f.cpu + f.server).Seconds() }

func (f figures) bytesEach() float64 { return float64(f.bytes) / float64(f.n) }

// addFigures adds the measurements of another run of the same case.
func (f *figures) addFigures(other figures) {
	n := f.n + other.n
	f.one = other.one
	f.n = n
	f.took += other.took
	f.cpu += other.cpu
	f.server += other.server
	f.events += other.events
	f.bytes += other.bytes
	f.memory = max(f.memory, other.memory)
	f.most = max(f.most, other.most)
	f.large = max(f.large, other.large)
}

// bench runs cases one after the other on one server.
type bench struct {
	client  client.Client
	server  serverProcess
	address string
	store   string
	count   int
}

// runCase runs a case on a new worker. The worker is warmed up with a playbook of one element.
func (b *bench) runCase(ctx context.Context, c one) (figures, error) {
	b.count++
	queue := fmt.Sprintf("bench-%d-%d", os.Getpid(), b.count)
	worker, err := spawnWorker(c.worker, b.address, queue, b.store)
	if err != nil {
		return figures{}, err
	}
	f := figures{one: c}
	defer func() {
		if worker != nil {
			worker.stopWorker()
		}
	}()
	if _, err := b.doJob(ctx, queue, "warm-"+queue, one{n: 1, source: loopBook(1, 1, 1, 0)}); err != nil {
		return f, err
	}
	id := "run-" + queue
	before, err := b.server.cpu()
	if err != nil {
		return f, err
	}
	f.began = time.Now()
	if f.took, err = b.doJob(ctx, queue, id, c); err != nil {
		return f, fmt.Errorf("%s, %s: %w", c.group, c.name, err)
	}
	after, err := b.server.cpu()
	if err != nil {
		return f, err
	}
	f.server = after - before
	f.cpu, f.memory = worker.stopWorker()
	worker = nil
	if c.program != nil {
		return figures{one: c, began: f.began, took: f.took}, nil // what it used is not the worker's
	}
	f.root = "= '" + id + "'"
	if c.small {
		f.root = "STARTS_WITH '" + id + "-'"
	}
	return f, b.addHistories(ctx, &f)
}

// doJob does the job of a case, checks that it is complete, and returns the time it took.
func (b *bench) doJob(ctx context.Context, queue, id string, c one) (time.Duration, error) {
	options := client.StartWorkflowOptions{ID: id, TaskQueue: queue}
	began := time.Now()
	done, err := 0, error(nil)
	switch {
	case c.small:
		done, err = b.smallRuns(ctx, options, c)
	case c.by != nil:
		done, err = b.loopByHand(ctx, options, c)
	case c.pages != "":
		done, err = b.pagesByHand(ctx, options, c.pages)
	case c.program != nil:
		done, err = c.program(ctx)
	default:
		done, err = b.runPlaybook(ctx, options, c)
	}
	took := time.Since(began)
	if err == nil && (done%c.n != 0 || done == 0) { // pages have 100 rows
		err = fmt.Errorf("did %d of %d", done, c.n)
	}
	return took, err
}

// smallRuns executes runs of one step one after the other, and returns how many had the right result.
func (b *bench) smallRuns(ctx context.Context, options client.StartWorkflowOptions, c one) (done int, err error) {
	prefix := options.ID
	for i := range c.n {
		got := 0
		options.ID = fmt.Sprintf("%s-%d", prefix, i)
		if c.by == nil {
			got, err = b.runPlaybook(ctx, options, c)
		} else {
			got, err = b.stepByHand(ctx, options)
		}
		if err != nil {
			return done, fmt.Errorf("run %s: %w", options.ID, err)
		}
		done += got
	}
	return done, nil
}

func (b *bench) stepByHand(ctx context.Context, options client.StartWorkflowOptions) (result int, err error) {
	run, err := b.client.ExecuteWorkflow(ctx, options, handIterationName, handInput{ID: options.ID, First: 1})
	if err != nil {
		return 0, err
	}
	return result, run.Get(ctx, &result)
}

func (b *bench) loopByHand(ctx context.Context, options client.StartWorkflowOptions, c one) (int, error) {
	in := *c.by
	in.ID, in.Size = options.ID, c.n
	run, err := b.client.ExecuteWorkflow(ctx, options, handLoopName, in)
	if err != nil {
		return 0, err
	}
	var results []int
	if err := run.Get(ctx, &results); err != nil {
		return 0, err
	}
	for i, result := range results {
		if result != i {
			return 0, fmt.Errorf("result %d is %d", i, result)
		}
	}
	return len(results), nil
}

func (b *bench) pagesByHand(ctx context.Context, options client.StartWorkflowOptions, url string) (int, error) {
	run, err := b.client.ExecuteWorkflow(ctx, options, handPagesName, handPagesInput{URL: url})
	if err != nil {
		return 0, err
	}
	rows := 0
	err = run.Get(ctx, &rows)
	return rows, err
}

func (b *bench) runPlaybook(ctx context.Context, options client.StartWorkflowOptions, c one) (int, error) {
	run, err := b.client.ExecuteWorkflow(ctx, options, protocol.PlaybookWorkflowName,
		protocol.Input{Name: "bench.yaml", Source: c.source, Workload: expression.Of(map[string]any{})})
	if err != nil {
		return 0, err
	}
	result, err := ending.WaitForResult(ctx, run)
	if err != nil {
		return 0, err
	}
	done, _ := result.Result.Data.(int)
	if result.Status != "completed" {
		return 0, fmt.Errorf("ended as %s with %v: %s", result.Status, result.Result.Data, result.Error.ShortText())
	}
	return done, nil
}

// addHistories adds the sizes of a case's workflow histories to its figures.
func (b *bench) addHistories(ctx context.Context, f *figures) error {
	all, err := b.listExecutions(ctx, f.root)
	for _, execution := range all {
		f.events += execution.GetHistoryLength()
		f.bytes += execution.GetHistorySizeBytes()
		f.most = max(f.most, execution.GetHistoryLength())
		f.large = max(f.large, execution.GetHistorySizeBytes())
	}
	return err
}

// listExecutions returns the workflows whose root matches a condition, including all runs of a continue-as-new chain. The
// list is eventually consistent, so it is read until it no longer changes.
func (b *bench) listExecutions(ctx context.Context, root string) ([]*workflowpb.WorkflowExecutionInfo, error) {
	for last := -1; ; {
		var all []*workflowpb.WorkflowExecutionInfo
		var token []byte
		for {
			page, err := b.client.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
				PageSize: 1000, NextPageToken: token,
				Query: fmt.Sprintf("RootWorkflowId %s AND ExecutionStatus IN ('Completed', 'ContinuedAsNew')", root),
			})
			if err != nil {
				return nil, fmt.Errorf("list the workflows whose root %s: %w", root, err)
			}
			all = append(all, page.GetExecutions()...)
			if token = page.GetNextPageToken(); len(token) == 0 {
				break
			}
		}
		if len(all) > 0 && len(all) == last {
			return all, nil
		}
		last = len(all)
		time.Sleep(300 * time.Millisecond)
	}
}
