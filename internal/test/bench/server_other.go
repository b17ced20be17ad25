//go:build !linux

package main

import "time"

// serverProcess is the PID of a server that bench has started. Its processor time is known only on Linux.
type serverProcess int

func (serverProcess) cpu() (time.Duration, error) { return 0, nil }

func (serverProcess) familyCPU() (time.Duration, error) { return 0, nil }
