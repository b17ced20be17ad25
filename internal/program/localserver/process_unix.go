//go:build unix && !linux

package localserver

import "syscall"

// childAttr puts the server into its own process group, as on Linux. Only Linux can also tie the child's life to
// ours.
func childAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
