//go:build !linux

package testenv

import "syscall"

// childAttr cannot tie the child's life to ours here; Main stops it.
func childAttr(*account) *syscall.SysProcAttr { return nil }
