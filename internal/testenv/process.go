package testenv

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"time"
)

// process is a server that a test process has started.
type process struct {
	cmd    *exec.Cmd
	output *tail
	exited chan struct{} // closed once the process has ended
}

// startProcess starts cmd so that it dies with this process, even if that is
// killed (on Linux; elsewhere only Main stops it). It runs as the given account,
// or as ourselves if that is nil.
func startProcess(cmd *exec.Cmd, as *account) (*process, error) {
	p := &process{cmd: cmd, output: &tail{}, exited: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = p.output, p.output
	cmd.SysProcAttr = childAttr(as)
	// A grandchild may hold the output pipe; do not wait for it for ever.
	cmd.WaitDelay = 2 * time.Second
	if err := onKeeperThread(cmd.Start); err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	go func() {
		defer close(p.exited)
		_ = cmd.Wait() // the state is in cmd.ProcessState
	}()
	return p, nil
}

// hasExited reports whether the process has ended by itself or by a signal.
func (p *process) hasExited() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

// stop asks the process to end and kills it after the grace period.
func (p *process) stop(signal os.Signal, grace time.Duration) {
	_ = p.cmd.Process.Signal(signal)
	select {
	case <-p.exited:
	case <-time.After(grace):
		_ = p.cmd.Process.Kill()
		<-p.exited
	}
}

// keeper is a thread that never ends. Linux sends the parent death signal when
// the thread that started the child ends, not the process, and Go ends threads
// as it likes.
var keeper = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range work {
			f()
		}
	}()
	return work
})

func onKeeperThread(start func() error) error {
	result := make(chan error)
	keeper() <- func() { result <- start() }
	return <-result
}

// tail keeps the end of what is written to it, for error messages.
type tail struct {
	mu   sync.Mutex
	text []byte
}

const tailSize = 8 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if extra := len(t.text) - tailSize; extra > 0 {
		t.text = append(t.text[:0], t.text[extra:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}

// freePort returns a loopback port that is free now. Another process can take it
// before it is used, so callers try again with a new one.
func freePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().(*net.TCPAddr).Port, nil
}
