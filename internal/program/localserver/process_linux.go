package localserver

import "syscall"

// childAttr puts the server into a process group of its own: Ctrl-C on the
// terminal must reach us alone, so that the run can still be cancelled there.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
