package main

import (
	"fmt"
	"time"

	"github.com/prometheus/procfs"
)

// serverProcess is the Temporal server that bench has started; 0 if it runs elsewhere.
type serverProcess int

// cpu is the processor time that the server has used since it started; 0 if it runs elsewhere.
func (p serverProcess) cpu() (time.Duration, error) {
	if p == 0 {
		return 0, nil
	}
	process, err := procfs.NewProc(int(p))
	if err != nil {
		return 0, fmt.Errorf("read the processor time of the server: %w", err)
	}
	stat, err := process.Stat()
	if err != nil {
		return 0, fmt.Errorf("read the processor time of the server: %w", err)
	}
	return time.Duration(stat.CPUTime() * float64(time.Second)), nil
}
