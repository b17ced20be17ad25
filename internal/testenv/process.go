package testenv

import (
	"fmt"
	"net"
	"os/exec"

	"reprise/internal/childproc"
)

// startProcess starts cmd so that it dies with this process, even if that is
// killed (on Linux; elsewhere only Main stops it). It runs as the given account,
// or as ourselves if that is nil.
func startProcess(cmd *exec.Cmd, as *account) (*childproc.Process, error) {
	cmd.SysProcAttr = childAttr(as)
	return childproc.Start(cmd)
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
