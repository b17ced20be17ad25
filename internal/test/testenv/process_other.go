//go:build !linux

package testenv

import "syscall"

// childAttr cannot tie the child's life to ours here; Main stops it.
func childAttr(*account) *syscall.SysProcAttr { return nil }

// childrenOf are not known here.
func childrenOf(int) []int { return nil }

func isRunning(int) bool { return false }
