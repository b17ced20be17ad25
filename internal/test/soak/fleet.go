package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// fleet are the workers: two of the current build, and those of builds before it whose runs have not ended.
type fleet struct {
	world *world

	mu       sync.Mutex
	build    int
	current  []*node
	draining []drainingBuild
	restarts int
	killed   []time.Time // when a worker was killed with SIGKILL
}

// drainingBuild is a build that gets no more runs.
type drainingBuild struct {
	build   int
	workers []*node
	since   time.Time
}

const workersOfBuild = 2

func buildName(n int) string { return "b" + strconv.Itoa(n) }

// startWorker starts a worker of a build.
func (f *fleet) startWorker(ctx context.Context, build int) (*node, error) {
	metrics, err := freePort(ctx)
	if err != nil {
		return nil, err
	}
	return f.world.startNode(ctx, metrics, "worker", "--address", f.world.server.Address, "--egress", "egress.yaml", "--playbooks", "playbooks",
		"--deployment", taskQueue, "--build", buildName(build), "--metrics-address", "127.0.0.1:"+strconv.Itoa(metrics))
}

// rotate starts the workers of the next build and makes it current. The build before it drains.
func (f *fleet) rotate(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	next := f.build + 1
	var workers []*node
	for range workersOfBuild {
		worker, err := f.startWorker(ctx, next)
		if err != nil {
			return err
		}
		workers = append(workers, worker)
	}
	if err := f.makeCurrent(ctx, next); err != nil {
		return err
	}
	if f.build > 0 {
		f.draining = append(f.draining, drainingBuild{f.build, f.current, time.Now()})
	}
	f.build, f.current = next, workers
	return nil
}

// makeCurrent sends new runs to a build, as soon as the server knows its workers.
func (f *fleet) makeCurrent(ctx context.Context, build int) error {
	for until := time.Now().Add(startPatience); ; {
		_, err := f.world.starter(ctx, "builds", "current", buildName(build), "--deployment", taskQueue)
		if err == nil || time.Now().After(until) || ctx.Err() != nil {
			return err
		}
		time.Sleep(time.Second)
	}
}

// restart replaces a worker of the current build: the two in turn, by SIGTERM and by SIGKILL in turn.
func (f *fleet) restart(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	place, kill := f.restarts/2%workersOfBuild, f.restarts%2 == 1
	f.restarts++
	if kill {
		f.killed = append(f.killed, time.Now())
		f.current[place].Kill()
	} else if err := stopWell(f.current[place]); err != nil {
		return err
	}
	worker, err := f.startWorker(ctx, f.build)
	if err == nil {
		f.current[place] = worker
	}
	return err
}

// stopWell stops a worker with SIGTERM, which has to end it in time and without an error.
func stopWell(worker *node) error {
	worker.Stop(syscall.SIGTERM, stopPatience)
	if !worker.Cmd.ProcessState.Success() {
		return fmt.Errorf("a worker that got SIGTERM has ended with %s\n%s", worker.Cmd.ProcessState, worker.Output)
	}
	return nil
}

// settled is how long after a rotation a run may still begin on the build before it.
const settled = 30 * time.Second

// retire stops the workers of builds that no run is pinned to.
func (f *fleet) retire(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.draining) > 0 && time.Since(f.draining[0].since) > settled {
		old := f.draining[0]
		open, err := f.world.count(ctx, fmt.Sprintf("%s AND ExecutionStatus = 'Running' AND TemporalWorkerDeploymentVersion = '%s:%s'", pinnedTypes, taskQueue, buildName(old.build)))
		if err != nil || open > 0 {
			return err
		}
		for _, worker := range old.workers {
			if err := stopWell(worker); err != nil {
				return err
			}
		}
		f.draining = f.draining[1:]
	}
	return nil
}

// nodes returns the workers that run, and how often one was restarted.
func (f *fleet) nodes() (workers []*node, build, restarts int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	workers = slices.Clone(f.current)
	for _, old := range f.draining {
		workers = append(workers, old.workers...)
	}
	return workers, f.build, f.restarts
}

// kills returns when workers were killed with SIGKILL.
func (f *fleet) kills() []time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.killed)
}

// stop stops all workers.
func (f *fleet) stop() {
	workers, _, _ := f.nodes()
	for _, worker := range workers {
		worker.Stop(syscall.SIGTERM, stopPatience)
	}
}

// ended returns an error if a worker has ended that nobody has stopped.
func (f *fleet) ended() error {
	workers, _, _ := f.nodes()
	for _, worker := range workers {
		if worker.HasExited() {
			return fmt.Errorf("a worker has ended by itself: %s\n%s", worker.Cmd.ProcessState, worker.Output)
		}
	}
	return nil
}
