//go:build !linux

package testenv

import "syscall"

// childAttr cannot bind the child's life to ours on this system; Main stops it.
func childAttr(*account) *syscall.SysProcAttr { return nil }

// childrenOf returns nil, because children are not known on this system.
func childrenOf(int) []int { return nil }

func isRunning(int) bool { return false }
