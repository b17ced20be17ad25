package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
)

// startProfile starts to profile this worker until stop is called. stop writes the CPU profile to NAME.cpu in dir, and the
// allocations to NAME.allocs. Without dir, profile does nothing.
func startProfile(dir, name string) (stop func() error, err error) {
	if dir == "" {
		return func() error { return nil }, nil
	}
	const sampled = 64 << 10 // bytes: one allocation in so many
	runtime.MemProfileRate = sampled
	cpu, err := os.Create(filepath.Join(dir, name+".cpu"))
	if err != nil {
		return nil, fmt.Errorf("profile a worker: %w", err)
	}
	if err := pprof.StartCPUProfile(cpu); err != nil {
		return nil, errors.Join(fmt.Errorf("profile a worker: %w", err), cpu.Close())
	}
	return func() error {
		pprof.StopCPUProfile()
		allocs, err := os.Create(filepath.Join(dir, name+".allocs"))
		if err != nil {
			return errors.Join(fmt.Errorf("profile a worker: %w", err), cpu.Close())
		}
		return errors.Join(pprof.Lookup("allocs").WriteTo(allocs, 0), allocs.Close(), cpu.Close())
	}, nil
}
