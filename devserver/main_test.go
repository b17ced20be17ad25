package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// asServer makes the test binary behave as the devserver, so that tests drive
// a real process without building a second binary.
const asServer = "DEVSERVER_TEST_AS_SERVER"

func TestMain(m *testing.M) {
	if os.Getenv(asServer) != "" {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		context.AfterFunc(ctx, stop)
		os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
	}
	if err := os.Setenv(asServer, "1"); err != nil { // for processes the SDK starts
		panic(err)
	}
	os.Exit(m.Run())
}

func executable(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	require.NoError(t, err)
	return path
}

// process is a devserver started with plain flags.
type process struct {
	cmd    *exec.Cmd
	server string // host:port
	ui     string // URL, empty when it has no port
}

var announced = regexp.MustCompile(`Server:\s+(\S+)\n(?:UI:\s+(http\S+)\n)?`)

func startProcess(t *testing.T, args ...string) *process {
	t.Helper()
	cmd := exec.Command(executable(t), args...)
	out := &watchedOutput{changed: make(chan struct{}, 1)}
	cmd.Stdout, cmd.Stderr = out, os.Stderr
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})
	match := out.await(t, announced, 60*time.Second)
	return &process{cmd: cmd, server: match[1], ui: match[2]}
}

// stopWith sends a signal and returns how long the process took to end well.
func (p *process) stopWith(t *testing.T, signal os.Signal) time.Duration {
	t.Helper()
	begin := time.Now()
	require.NoError(t, p.cmd.Process.Signal(signal))
	late := time.AfterFunc(time.Minute, func() { _ = p.cmd.Process.Kill() })
	defer late.Stop()
	require.NoError(t, p.cmd.Wait(), "exit status, killed after a minute")
	return time.Since(begin)
}

// runOnce runs the devserver to its end and returns status, stdout and stderr.
func runOnce(t *testing.T, args ...string) (int, string, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, executable(t), args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil {
		require.ErrorAs(t, err, &exit)
	}
	return cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()
}

func freePort(t *testing.T) string {
	t.Helper()
	port, err := reservePort(t.Context(), loopback, 0)
	require.NoError(t, err)
	return strconv.Itoa(port)
}
