package testenv

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os/exec"
	"strconv"

	"reprise/internal/base/childproc"
)

// startProcess starts cmd so that it dies with this process, even if this one is killed (on Linux; elsewhere only
// Main stops it). It runs as the given user, or as ours for nil.
func startProcess(cmd *exec.Cmd, as *account) (*childproc.Process, error) {
	cmd.SysProcAttr = childAttr(as)
	return childproc.Start(cmd)
}

// Ports of servers that are stopped and restarted. They are outside the range that the system assigns to outgoing
// connections, which starts at 32768 on Linux and at 49152 elsewhere: an assigned port could not be reused.
const firstPort, lastPort = 15_000, 30_000

// freePort returns a loopback port that is free now. Another process can take it before it is used, so callers have
// to retry with another one.
func freePort() (int, error) {
	var failure error
	for range 20 {
		port := firstPort + rand.IntN(lastPort-firstPort)
		listener, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port))
		if err == nil {
			return port, listener.Close()
		}
		failure = err
	}
	return 0, fmt.Errorf("find a free port: %w", failure)
}
