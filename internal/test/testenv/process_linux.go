package testenv

import "syscall"

// childAttr makes the child get a signal when we die, in whatever way. SIGQUIT
// ends both servers at once, and PostgreSQL together with its own children.
func childAttr(as *account) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Pdeathsig: syscall.SIGQUIT}
	if as != nil {
		attr.Credential = &syscall.Credential{Uid: uint32(as.uid), Gid: uint32(as.gid)}
	}
	return attr
}
