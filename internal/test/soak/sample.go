package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/procfs"
)

// measure is what is measured of a process.
type measure int

const (
	memory     measure = iota // bytes that are resident
	goroutines                // of its runtime
	openFiles                 // and sockets
	measures                  // how many there are
)

// point is a measurement of a process.
type point struct {
	at     time.Time
	values [measures]float64
}

// measured has the points of each role: server, serve, worker.
type measured map[string][]point

// roles are those of the processes that are measured, in the order of the table.
var roles = []string{"server", "serve", "worker"}

// measureProcess reads the figures of a process.
func measureProcess(ctx context.Context, pid int, metrics string) (p point, err error) {
	p.at = time.Now()
	process, err := procfs.NewProc(pid)
	if err != nil {
		return p, fmt.Errorf("measure process %d: %w", pid, err)
	}
	status, err := process.NewStatus()
	if err != nil {
		return p, fmt.Errorf("measure process %d: %w", pid, err)
	}
	files, err := process.FileDescriptorsLen()
	if err != nil {
		return p, fmt.Errorf("measure process %d: %w", pid, err)
	}
	p.values[memory], p.values[openFiles] = float64(status.VmRSS), float64(files)
	p.values[goroutines], err = goroutinesAt(ctx, metrics)
	return p, err
}

var errNoGoroutines = errors.New("the metrics have no count of goroutines")

// goroutinesAt reads the count of goroutines from metrics.
func goroutinesAt(ctx context.Context, url string) (float64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return 0, fmt.Errorf("read metrics: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, fmt.Errorf("read metrics: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		if n, found := goroutinesIn(lines.Text()); found {
			return n, nil
		}
	}
	return 0, errors.Join(errNoGoroutines, lines.Err())
}

// goroutinesIn reads the count from a line of metrics: that of Go's collector, or of Temporal's.
func goroutinesIn(line string) (n float64, found bool) {
	name, value, _ := strings.Cut(line, " ")
	name, _, _ = strings.Cut(name, "{")
	if name != "go_goroutines" && name != "num_goroutines" {
		return 0, false
	}
	n, err := strconv.ParseFloat(value[strings.LastIndex(value, " ")+1:], 64)
	return n, err == nil
}

// medianBetween is the median of a measure from one time to another; 0 if it was not measured then.
func medianBetween(points []point, of measure, from, to time.Time) float64 {
	var values []float64
	for _, p := range points {
		if !p.at.Before(from) && p.at.Before(to) {
			values = append(values, p.values[of])
		}
	}
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[len(values)/2]
}

// growth is a measure at the beginning and at the end.
type growth struct{ first, last float64 }

func (g growth) factor() float64 {
	if g.first == 0 {
		return 1
	}
	return g.last / g.first
}

// growthOf compares the first period with the last one.
func growthOf(points []point, of measure, began, now time.Time, period time.Duration) growth {
	return growth{medianBetween(points, of, began, began.Add(period)), medianBetween(points, of, now.Add(-period), now)}
}
