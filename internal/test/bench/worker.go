package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/workflow"

	"reprise/activities"
	"reprise/activities/tool"
	"reprise/internal/base/connect"
	"reprise/internal/base/payload"
	"reprise/internal/base/sleep"
	"reprise/internal/program/host"
	"reprise/internal/program/telemetry"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// nap is a tool that waits for some milliseconds, or not at all, and returns its element.
type nap struct{}

func (nap) Spec() playbook.ToolSpec {
	return playbook.ToolSpec{
		Name: "nap", Summary: "Waits and gives an element back.",
		Fields: []playbook.Field{
			{Name: "ms", Kind: playbook.KindNumber, Doc: "How long."},
			{Name: "give", Kind: playbook.KindValue, Doc: "What to give."},
		},
	}
}

func (nap) Run(ctx context.Context, in interpreter.ToolInput) (interpreter.ToolResult, error) {
	ms, _ := in.Fields["ms"].Data.(int)
	return interpreter.ToolResult{Data: expression.Of(in.Fields["give"].Data)}, napFor(ctx, ms)
}

func napFor(ctx context.Context, ms int) error {
	return sleep.For(ctx, time.Duration(ms)*time.Millisecond)
}

func handActivity(ctx context.Context, in handInput) (int, error) {
	return in.First, napFor(ctx, in.MS)
}

// dialServer connects to the server, with the payload store that all processes share.
func dialServer(ctx context.Context, address, dir string, watched *telemetry.Telemetry) (client.Client, *payload.Store, error) {
	location, err := payload.DirectoryAddress(dir)
	if err != nil {
		return nil, nil, err
	}
	store, err := payload.Open(ctx, location)
	if err != nil {
		return nil, nil, err
	}
	watched.CountOperations(store)
	options := host.ClientOptions(store, client.Options{HostPort: address, Namespace: connect.DefaultNamespace}, nil)
	c, err := connect.Dial(ctx, watched.ClientOptions(options), nil, nil)
	return c, store, err
}

// runWorker runs a worker until its standard input ends. With REPRISE_METRICS_ADDRESS it serves metrics, which shows their
// cost; BENCH_PROFILE is a folder for its profiles.
func runWorker(ctx context.Context, address, queue, dir string) error {
	watched, err := telemetry.New(ctx, telemetry.Options{MetricsAddress: os.Getenv("REPRISE_METRICS_ADDRESS"), TraceHeaders: true})
	if err != nil {
		return err
	}
	defer watched.Close()
	c, store, err := dialServer(ctx, address, dir, watched)
	if err != nil {
		return fmt.Errorf("connect to %s: %w", address, err)
	}
	defer c.Close()
	payloads, err := host.PayloadLimits(store, os.LookupEnv)
	if err != nil {
		return err
	}
	catalogue := activities.NewCatalogue(activities.Resources{Payloads: payloads, Directory: dir, Telemetry: watched.AttemptRecorder()})
	for _, tool := range []tool.Tool{nap{}, newForgetful(catalogue), newHistoric(catalogue)} {
		if err := catalogue.RegisterTool(tool); err != nil {
			return err
		}
	}
	host.ReserveHeap()
	w := host.NewWorker(c, catalogue, host.Options{TaskQueue: queue, Telemetry: watched})
	w.RegisterWorkflowWithOptions(handLoop, workflow.RegisterOptions{Name: handLoopName})
	w.RegisterWorkflowWithOptions(handIteration, workflow.RegisterOptions{Name: handIterationName})
	w.RegisterActivityWithOptions(handActivity, activity.RegisterOptions{Name: handActivityName})
	w.RegisterWorkflowWithOptions(handPages, workflow.RegisterOptions{Name: handPagesName})
	w.RegisterActivityWithOptions((&handWriter{dir: dir}).page, activity.RegisterOptions{Name: handPageName})
	profiled, err := startProfile(os.Getenv("BENCH_PROFILE"), queue)
	if err != nil {
		return err
	}
	if err := w.Start(); err != nil {
		return fmt.Errorf("start worker: %w", err)
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	w.Stop()
	return errors.Join(catalogue.Close(), profiled())
}

// workerProcess is the process of a worker. Each case has its own, so that its processor time and memory are those of
// the case.
type workerProcess struct {
	cmd   *exec.Cmd
	stdin io.Closer
}

func spawnWorker(binary, address, queue, dir string) (*workerProcess, error) {
	if binary == "" {
		var err error
		if binary, err = os.Executable(); err != nil {
			return nil, fmt.Errorf("find the program: %w", err)
		}
	}
	cmd := exec.Command(binary, //nolint:noctx // it ends when its standard input does
		"-worker", queue, "-address", address, "-store", dir)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start worker: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start worker: %w", err)
	}
	return &workerProcess{cmd: cmd, stdin: stdin}, nil
}

// stopWorker ends the worker and returns its processor time, and its peak memory in bytes.
func (p *workerProcess) stopWorker() (cpu time.Duration, memory int64) {
	_ = p.stdin.Close()
	_ = p.cmd.Wait()
	return usageOf(p.cmd.ProcessState)
}

// usageOf returns the processor time and the peak memory in bytes of a process that has ended.
func usageOf(process *os.ProcessState) (cpu time.Duration, memory int64) {
	if usage, ok := process.SysUsage().(*syscall.Rusage); ok {
		memory = usage.Maxrss * 1024 // kilobytes on Linux
	}
	return process.UserTime() + process.SystemTime(), memory
}
