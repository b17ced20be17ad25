package e2e_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"reprise/activities"
	"reprise/internal/host"
)

// Variables that make the test binary a worker.
const (
	workerQueue     = "E2E_WORKER_QUEUE"
	workerAddress   = "E2E_WORKER_ADDRESS"
	workerNamespace = "E2E_WORKER_NAMESPACE"
	workerDirectory = "E2E_WORKER_DIRECTORY"
)

// workerProcess is a worker that runs until its standard input ends, which it
// does when the test process goes away.
func workerProcess() int {
	quiet := log.NewStructuredLogger(slog.New(slog.DiscardHandler))
	c, err := client.DialContext(context.Background(), client.Options{
		HostPort: os.Getenv(workerAddress), Namespace: os.Getenv(workerNamespace), Logger: quiet,
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer c.Close()
	catalogue := activities.NewCatalogue(activities.Resources{AllowPython: true, Directory: os.Getenv(workerDirectory)})
	worker := host.NewWorker(c, catalogue, host.Options{TaskQueue: os.Getenv(workerQueue), StopTimeout: time.Second})
	if err := worker.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	worker.Stop()
	_ = catalogue.Close()
	return 0
}

// workerOf is a worker in a process of its own.
type workerOf struct {
	t     *testing.T
	cmd   *exec.Cmd
	stdin io.Closer
	done  chan struct{} // closed when the process has ended
}

// spawn starts a worker process. Connections of the world reach it through its
// environment.
func (w *world) spawn() *workerOf {
	w.t.Helper()
	binary, err := os.Executable()
	require.NoError(w.t, err)
	cmd := exec.Command(binary)
	cmd.Env = append(os.Environ(),
		workerQueue+"="+w.queue, workerAddress+"="+w.env.Address, workerNamespace+"="+w.env.Namespace,
		workerDirectory+"="+w.dir)
	for name, url := range w.connected {
		cmd.Env = append(cmd.Env, activities.ConnectionVariable(name)+"="+url)
	}
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	require.NoError(w.t, err)
	require.NoError(w.t, cmd.Start())
	spawned := &workerOf{t: w.t, cmd: cmd, stdin: stdin, done: make(chan struct{})}
	go func() {
		_ = cmd.Wait()
		close(spawned.done)
	}()
	w.t.Cleanup(spawned.stop)
	return spawned
}

// stop lets the worker end as it does when it is told to.
func (p *workerOf) stop() {
	_ = p.stdin.Close()
	select {
	case <-p.done:
	case <-time.After(15 * time.Second):
		p.kill()
	}
}

// kill ends the process with SIGKILL: it can neither finish nor say goodbye.
func (p *workerOf) kill() {
	p.t.Helper()
	_ = p.cmd.Process.Kill()
	<-p.done
}
