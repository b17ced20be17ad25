package localserver

import "syscall"

// childAttr puts the server into its own process group: Ctrl-C on the terminal must reach only this process, so that
// the run can still be cancelled on the server.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
