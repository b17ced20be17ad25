// Package childproc runs servers as child processes that end with this process, even if it is killed (on Linux), and
// keeps the end of their output.
package childproc

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"time"
)

// Process is a child process.
type Process struct {
	Cmd    *exec.Cmd
	Output *Tail         // the end of its standard output and error
	Exited chan struct{} // closed once it has ended
}

// pipeDelay is how long a grandchild may keep the output open after the child has ended.
const pipeDelay = 2 * time.Second

// Start starts cmd. The caller's SysProcAttr ties the child's life to this process.
func Start(cmd *exec.Cmd) (*Process, error) {
	p := &Process{Cmd: cmd, Output: &Tail{}, Exited: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = p.Output, p.Output
	cmd.WaitDelay = pipeDelay
	if err := runOnParentThread(cmd.Start); err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	go func() {
		defer close(p.Exited)
		_ = cmd.Wait() // the state is in cmd.ProcessState
	}()
	return p, nil
}

// HasExited reports whether the process has exited, by itself or by a signal.
func (p *Process) HasExited() bool {
	select {
	case <-p.Exited:
		return true
	default:
		return false
	}
}

// Stop sends the signal, and kills the process if it has not ended after the grace period.
func (p *Process) Stop(signal os.Signal, grace time.Duration) {
	_ = p.Cmd.Process.Signal(signal)
	select {
	case <-p.Exited:
	case <-time.After(grace):
		p.Kill()
	}
}

// Kill ends the process at once and waits for it.
func (p *Process) Kill() {
	_ = p.Cmd.Process.Kill()
	<-p.Exited
}

// keeper is a thread that never ends, on which children are started. Linux sends the parent death signal when the
// thread that started the child ends, not when the process does, and Go ends threads at will.
var parentThread = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range work {
			f()
		}
	}()
	return work
})

func runOnParentThread(start func() error) error {
	result := make(chan error)
	parentThread() <- func() { result <- start() }
	return <-result
}

// Tail keeps the end of what is written to it, for error messages. It is safe
// for concurrent use.
type Tail struct {
	mu   sync.Mutex
	text []byte
}

const tailSize = 8 << 10

// Write keeps the last 8 KiB.
func (t *Tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if extra := len(t.text) - tailSize; extra > 0 {
		t.text = append(t.text[:0], t.text[extra:]...)
	}
	return len(p), nil
}

func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}
