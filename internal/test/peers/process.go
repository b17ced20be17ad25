package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"reprise/internal/base/childproc"
)

// stopGrace is how long a worker may take to stop.
const stopGrace = 30 * time.Second

func startProcess(ctx context.Context, dir string, env []string, program string, args ...string) (*childproc.Process, error) {
	cmd := exec.CommandContext(context.WithoutCancel(ctx), program, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	return childproc.Start(cmd)
}

// waitForExit waits until a process has ended. It returns an error if the process failed.
func waitForExit(ctx context.Context, p *childproc.Process) error {
	select {
	case <-p.Exited:
	case <-ctx.Done():
		p.Kill()
		return context.Cause(ctx)
	}
	if !p.Cmd.ProcessState.Success() {
		return endedBadly(p)
	}
	return nil
}

func endedBadly(p *childproc.Process) error {
	return fmt.Errorf("%s: %s\n%s", p.Cmd.Path, p.Cmd.ProcessState, p.Output)
}

// waitForOutput waits until the output of a process contains a text.
func waitForOutput(ctx context.Context, p *childproc.Process, text string) error {
	for !strings.Contains(p.Output.String(), text) {
		select {
		case <-p.Exited:
			return endedBadly(p)
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(10 * time.Millisecond):
		}
	}
	return nil
}

// usedResources returns the processor time and the peak memory in bytes of a process that has ended.
func usedResources(p *childproc.Process) (cpu time.Duration, memory int64) {
	state := p.Cmd.ProcessState
	if usage, ok := state.SysUsage().(*syscall.Rusage); ok {
		memory = usage.Maxrss << 10
	}
	return state.UserTime() + state.SystemTime(), memory
}

// processes are the processes of a peer: its worker, if it has one, and the commands that request the job.
type processes struct {
	// startWorker is nil if the command itself does the loading.
	startWorker func(context.Context) (*childproc.Process, error)
	worker      *childproc.Process
	commands    []*childproc.Process
	killed      []*childproc.Process // workers
}

// startProcesses starts a worker.
func startProcesses(ctx context.Context, startWorker func(context.Context) (*childproc.Process, error)) (*processes, error) {
	worker, err := startWorker(ctx)
	return &processes{startWorker: startWorker, worker: worker}, err
}

// runCommand runs a program until it ends.
func (s *processes) runCommand(ctx context.Context, dir string, env []string, program string, args ...string) error {
	p, err := startProcess(ctx, dir, env, program, args...)
	if err != nil {
		return err
	}
	s.commands = append(s.commands, p)
	return waitForExit(ctx, p)
}

// killLoader kills the process that loads with SIGKILL, and starts a new worker. If there is no worker, restart reports
// that the command has to be started again.
func (s *processes) killLoader(ctx context.Context) (restart bool, err error) {
	if s.startWorker == nil {
		s.commands[len(s.commands)-1].Kill()
		return true, nil
	}
	s.worker.Kill()
	s.killed = append(s.killed, s.worker)
	s.worker, err = s.startWorker(ctx)
	return false, err
}

// stop stops all processes, and returns the processor time and the peak memory of those that did the job.
func (s *processes) stop() (cpu time.Duration, memory int64) {
	all := slices.Concat(s.killed, s.commands)
	if s.worker != nil {
		s.worker.Stop(syscall.SIGTERM, stopGrace)
		all = append(all, s.worker)
	}
	for _, p := range all {
		<-p.Exited
		took, most := usedResources(p)
		cpu, memory = cpu+took, max(memory, most)
	}
	return cpu, memory
}
