//go:build !linux

package main

import "time"

// serverProcess is a server that bench has started. Its processor time is
// only known on Linux.
type serverProcess int

func (serverProcess) cpu() (time.Duration, error) { return 0, nil }

func (serverProcess) familyCPU() (time.Duration, error) { return 0, nil }
