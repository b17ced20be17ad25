//go:build !unix

package localserver

import "syscall"

func childAttr() *syscall.SysProcAttr { return nil }
