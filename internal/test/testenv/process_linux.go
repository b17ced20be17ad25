package testenv

import (
	"syscall"

	"github.com/prometheus/procfs"
)

// childAttr makes the child receive a signal when this process dies, for whatever reason. SIGQUIT ends both servers
// immediately, and PostgreSQL together with its own children.
func childAttr(as *account) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Pdeathsig: syscall.SIGQUIT}
	if as != nil {
		attr.Credential = &syscall.Credential{Uid: uint32(as.uid), Gid: uint32(as.gid)}
	}
	return attr
}

// childrenOf returns the child processes of a process.
func childrenOf(pid int) (children []int) {
	processes, _ := procfs.AllProcs()
	for _, process := range processes {
		if stat, err := process.Stat(); err == nil && stat.PPID == pid {
			children = append(children, process.PID)
		}
	}
	return children
}

// isRunning reports whether a process is running; a zombie is not.
func isRunning(pid int) bool {
	process, err := procfs.NewProc(pid)
	if err != nil {
		return false
	}
	stat, err := process.Stat()
	return err == nil && stat.State != "Z" && stat.State != "X"
}
