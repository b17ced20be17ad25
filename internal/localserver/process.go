package localserver

import (
	"fmt"
	"os/exec"
	"runtime"
	"sync"
	"time"
)

// process is the server's process. It dies with ours, even if that is killed
// (on Linux).
type process struct {
	cmd    *exec.Cmd
	output *tail
	exited chan struct{} // closed once the process has ended
}

func startProcess(cmd *exec.Cmd) (*process, error) {
	p := &process{cmd: cmd, output: &tail{}, exited: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = p.output, p.output
	cmd.SysProcAttr = childAttr()
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

func (p *process) hasExited() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.exited
}

// keeper is a thread that never ends. Linux sends the parent death signal when
// the thread that started the child ends, and Go ends threads as it likes.
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

const tailSize = 4 << 10

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
