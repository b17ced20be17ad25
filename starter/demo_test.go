package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/test/testenv"
)

// demo is one `make demo`, in a process group of its own as a terminal makes it.
type demo struct {
	cmd    *exec.Cmd
	output *testenv.Output
	mark   string // in the environment of everything it starts
	ended  chan error
}

func startDemo(t *testing.T, name string) *demo {
	t.Helper()
	d := &demo{
		cmd: exec.Command("make", "demo"), output: &testenv.Output{}, ended: make(chan error, 1),
		mark: fmt.Sprintf("REPRISE_TEST_DEMO=%s-%d", name, os.Getpid()),
	}
	d.cmd.Dir = ".."
	d.cmd.Env = append(os.Environ(), "CI=1", "DEMO_DIR="+filepath.Join(t.TempDir(), "demo"), d.mark)
	d.cmd.Stdout, d.cmd.Stderr = d.output, d.output
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(t, d.cmd.Start())
	go func() { d.ended <- d.cmd.Wait() }()
	t.Cleanup(func() { _ = syscall.Kill(-d.cmd.Process.Pid, syscall.SIGKILL) })
	return d
}

// wait gives the error of the demo's end. Building what is missing takes time.
func (d *demo) wait(t *testing.T) error {
	t.Helper()
	select {
	case err := <-d.ended:
		return err
	case <-time.After(testenv.Within(10 * time.Minute)):
		t.Fatalf("the demo does not end:\n%s", d.output)
		return nil
	}
}

func (d *demo) requireNothingLeft(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool { return len(testenv.ProcessesWith(t, d.mark)) == 0 },
		testenv.Within(20*time.Second), 20*time.Millisecond, "processes left behind:\n%s", d.output)
}

// TestDemo is what a newcomer does first, and then what they do second: Ctrl-C.
func TestDemo(t *testing.T) {
	t.Parallel()
	whole := startDemo(t, "whole")
	require.NoError(t, whole.wait(t), whole.output)
	text := whole.output.String()
	require.Regexp(t, `(?m)^│ fetch_medications +│ partial_success │ 24 completed, 1 failed of 25 │`, text)
	require.Regexp(t, `(?m)^  \[12\] p13: HTTP 404 from GET .*/p13/medications\?page=1 \(1 attempt\)$`, text)
	require.Regexp(t, `(?m)^patient_medications-\w+: partial_success in [\d.m]+s$`, text)
	require.Regexp(t, `patient_medications-\w+ runs: http://\S+/namespaces/default/workflows/patient_medications-\S+/history\n`, text)
	_, end, _ := strings.Cut(text, ": partial_success in ")
	require.NotContains(t, end, "/namespaces/", "nothing leads to a server that is gone")
	require.NotContains(t, end, "dead-letters")
	require.Contains(t, end, "bin/starter dev keeps a server and a worker up")
	require.Contains(t, text, "exit code 4 means partial_success")
	whole.requireNothingLeft(t)

	interrupted := startDemo(t, "interrupted")
	// The run takes seconds, whatever the machine: answers of its API tell it to wait.
	require.Eventually(t, func() bool { return strings.Contains(interrupted.output.String(), " runs: http") },
		testenv.Within(5*time.Minute), 10*time.Millisecond, "%s", interrupted.output)
	require.NoError(t, syscall.Kill(-interrupted.cmd.Process.Pid, syscall.SIGINT))
	require.Error(t, interrupted.wait(t))
	require.Contains(t, interrupted.output.String(), "demo: interrupted")
	interrupted.requireNothingLeft(t)
}
