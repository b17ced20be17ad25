package activities

import "syscall"

// dieWithWorker has the kernel kill the process when the worker dies, SIGKILL
// included: an attempt nobody waits for must not go on working.
func dieWithWorker(attributes *syscall.SysProcAttr) {
	attributes.Pdeathsig = syscall.SIGKILL
}
