// Package testworker runs workers in separate processes, which tests may
// kill. The process is the test binary itself, so a package that uses it needs
//
//	func TestMain(m *testing.M) {
//		testworker.Main()
//		testenv.Main(m)
//	}
package testworker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"google.golang.org/grpc"

	"reprise/activities"
	"reprise/activities/tool"
	"reprise/internal/base/connect"
	"reprise/internal/base/connection"
	"reprise/internal/base/seal"
	"reprise/internal/base/secretstore"
	"reprise/internal/observe/census"
	"reprise/internal/program/host"
	"reprise/internal/program/telemetry"
)

// Environment variables that make the test binary a worker.
const (
	queueVariable     = "TESTWORKER_QUEUE"
	addressVariable   = "TESTWORKER_ADDRESS"
	namespaceVariable = "TESTWORKER_NAMESPACE"
	directoryVariable = "TESTWORKER_DIRECTORY"
	stopVariable      = "TESTWORKER_STOP_TIMEOUT"
	metricsVariable   = "TESTWORKER_METRICS"
	spoolVariable     = "TESTWORKER_SPOOL"
	censusVariable    = "TESTWORKER_CENSUS"
)

// stopTimeout is how long running attempts may continue when a worker is stopped, and stopGrace how long a test waits
// for its process to end.
const (
	stopTimeout = time.Second
	stopGrace   = 30 * time.Second
)

// Main runs a worker, and does not return, in a process that Start started; in others it does nothing. The
// interceptors see every call that the worker makes to the server.
func Main(interceptors ...grpc.UnaryClientInterceptor) {
	if os.Getenv(queueVariable) == "" {
		return
	}
	if err := runWorker(interceptors); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// runWorker runs a worker until standard input ends, which also happens when the test process dies.
func runWorker(interceptors []grpc.UnaryClientInterceptor) error {
	watched, err := newTelemetry(context.Background())
	if err != nil {
		return err
	}
	defer watched.Close()
	var c client.Client
	err = retryUntilReached(func() (err error) {
		c, err = client.DialContext(context.Background(), watched.ClientOptions(connect.WithoutCompression(client.Options{
			HostPort: os.Getenv(addressVariable), Namespace: os.Getenv(namespaceVariable),
			Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler)),
			ConnectionOptions: client.ConnectionOptions{
				DialOptions: []grpc.DialOption{grpc.WithChainUnaryInterceptor(interceptors...)},
			},
		})))
		return err
	})
	if err != nil {
		return err
	}
	defer c.Close()
	keys, err := seal.FromEnvironment(os.LookupEnv)
	if err != nil {
		return err
	}
	catalogue := activities.NewCatalogue(activities.Resources{
		AllowPython: true, Directory: os.Getenv(directoryVariable), SecretKeys: keys,
		Telemetry: watched.AttemptRecorder(), TokenSpool: os.Getenv(spoolVariable), SecretsDirectory: os.Getenv(connection.DirectoryVariable),
		SecretStores: secretstore.FromEnvironment(os.LookupEnv),
	})
	timeout, err := time.ParseDuration(os.Getenv(stopVariable))
	if err != nil {
		return err
	}
	var w worker.Worker
	err = retryUntilReached(func() error {
		w = host.NewWorker(c, catalogue, host.Options{TaskQueue: os.Getenv(queueVariable), StopTimeout: timeout, Telemetry: watched})
		return w.Start()
	})
	if err != nil {
		return err
	}
	if err := activities.ReportTokens(context.Background(), catalogue, c, os.Getenv(namespaceVariable)); err != nil {
		return err
	}
	if every, err := time.ParseDuration(os.Getenv(censusVariable)); err == nil && every > 0 {
		figures := census.NewSampler(c, nil, os.Getenv(namespaceVariable))
		figures.To, figures.TaskQueue, figures.Logger = watched.Gauges(), os.Getenv(queueVariable), slog.New(slog.DiscardHandler)
		go figures.Watch(context.Background(), every)
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	w.Stop()
	return catalogue.Close()
}

// reachPatience is how long a worker tries to reach a server, which may be killed while the worker starts, or be slow
// on a busy machine.
const reachPatience = 2 * time.Minute

// retryUntilReached calls try until it succeeds or reachPatience is over.
func retryUntilReached(try func() error) error {
	const pause = 200 * time.Millisecond
	for until := time.Now().Add(reachPatience); ; time.Sleep(pause) {
		if err := try(); err == nil || time.Now().After(until) {
			return err
		}
	}
}

// newTelemetry returns the telemetry of a worker, as its options or the environment request.
func newTelemetry(ctx context.Context) (*telemetry.Telemetry, error) {
	options := telemetry.Options{Service: "testworker", TraceHeaders: true}
	file := os.Getenv(metricsVariable)
	if file != "" {
		options.MetricsAddress = "127.0.0.1:0"
	}
	watched, err := telemetry.New(ctx, options)
	if err != nil || file == "" {
		return watched, err
	}
	return watched, os.WriteFile(file, []byte(watched.URL()), 0o600)
}

// Options are the options of a worker.
type Options struct {
	Address     string // host:port of the Temporal server
	Namespace   string
	TaskQueue   string
	Directory   string // where relative paths of tools begin
	Connections activities.Connections
	Env         []string // more variables, NAME=value
	// Metrics is the file to which the worker writes the URL of its metrics; "" for no metrics.
	Metrics string
	// Spool is the folder of its token spool; "" keeps tokens in memory only.
	Spool string
	// Census is the interval in which the worker reads the figures of its namespace; 0 is never.
	Census time.Duration
	// StopTimeout is how long running attempts may continue when the worker is stopped; 0 is a second.
	StopTimeout time.Duration
}

// Process is a worker in a separate process.
type Process struct {
	t     testing.TB
	cmd   *exec.Cmd
	stdin io.Closer
	done  chan struct{}
}

// Start starts a worker, which is stopped when the test ends. It passes connections through the environment.
func Start(t testing.TB, options Options) *Process {
	t.Helper()
	p, err := startProcess(options)
	if err != nil {
		t.Fatalf("start a worker process: %v", err)
	}
	p.t = t
	t.Cleanup(p.Stop)
	return p
}

func startProcess(options Options) (*Process, error) {
	binary, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(binary)
	cmd.Env = append(os.Environ(),
		queueVariable+"="+options.TaskQueue, addressVariable+"="+options.Address,
		namespaceVariable+"="+options.Namespace, directoryVariable+"="+options.Directory,
		metricsVariable+"="+options.Metrics, spoolVariable+"="+options.Spool, censusVariable+"="+options.Census.String(),
		stopVariable+"="+cmp.Or(options.StopTimeout, stopTimeout).String())
	for name, url := range options.Connections {
		cmd.Env = append(cmd.Env, tool.ConnectionVariable(name)+"="+url)
	}
	cmd.Env = append(cmd.Env, options.Env...)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &Process{cmd: cmd, stdin: stdin, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		_ = cmd.Wait() // the state is in cmd.ProcessState
	}()
	return p, nil
}

// Done returns a channel that is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// PID returns the process ID, which is the prefix of the worker's identity.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Stop stops the worker gracefully.
func (p *Process) Stop() {
	_ = p.stdin.Close()
	select {
	case <-p.done:
	case <-time.After(stopGrace):
		p.Kill()
	}
}

// Kill ends the process with SIGKILL, so it cannot clean up.
func (p *Process) Kill() {
	p.t.Helper()
	_ = p.cmd.Process.Kill()
	<-p.done
}

// Killed reports whether SIGKILL ended the process.
func (p *Process) Killed() bool {
	<-p.done
	status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

// Err returns nil if the process ended successfully.
func (p *Process) Err() error {
	<-p.done
	if p.cmd.ProcessState.Success() {
		return nil
	}
	return errors.New(p.cmd.ProcessState.String())
}
