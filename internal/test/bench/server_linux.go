package main

import (
	"fmt"
	"time"

	"github.com/prometheus/procfs"
)

// serverProcess is the PID of a server that bench has started; 0 if the server runs elsewhere.
type serverProcess int

// cpu returns the processor time that the server has used since its start; 0 if it runs elsewhere.
func (p serverProcess) cpu() (time.Duration, error) {
	if p == 0 {
		return 0, nil
	}
	stat, err := p.stat()
	if err != nil {
		return 0, err
	}
	return inSeconds(stat.CPUTime()), nil
}

// familyCPU returns the processor time of a server with a process per session: its own, that of its child processes,
// and of those that have ended.
func (p serverProcess) familyCPU() (time.Duration, error) {
	stat, err := p.stat()
	if err != nil {
		return 0, err
	}
	processes, err := procfs.AllProcs()
	if err != nil {
		return 0, fmt.Errorf("read the processor time of the server: %w", err)
	}
	ended := procfs.ProcStat{UTime: uint(stat.CUTime), STime: uint(stat.CSTime)}
	used := stat.CPUTime() + ended.CPUTime()
	for _, process := range processes {
		if child, err := process.Stat(); err == nil && child.PPID == int(p) {
			used += child.CPUTime()
		}
	}
	return inSeconds(used), nil
}

func (p serverProcess) stat() (stat procfs.ProcStat, err error) {
	process, err := procfs.NewProc(int(p))
	if err == nil {
		stat, err = process.Stat()
	}
	if err != nil {
		return stat, fmt.Errorf("read the processor time of the server: %w", err)
	}
	return stat, nil
}

func inSeconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
