//go:build !linux

package activities

import "syscall"

// dieWithWorker does nothing: only Linux ties a process to its parent.
func dieWithWorker(*syscall.SysProcAttr) {}
