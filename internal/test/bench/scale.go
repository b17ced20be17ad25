package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"reprise/interpreter/lists"

	"github.com/jedib0t/go-pretty/v6/table"
)

// Limits that no loop may exceed, however long it is. For events and bytes they are those at which Temporal suggests
// continue-as-new.
const (
	maxEvents = 4096
	maxBytes  = 4 << 20
	maxMemory = 150_000_000 // of the worker
	maxSlower = 1.3         // time of an iteration, against that in the shortest loop
)

// growingLoops returns cases that differ only in the length of their loop, shortest first.
func (o options) growingLoops() ([]one, error) {
	sizes, err := parseNumbers("-scale", o.scale)
	if err != nil {
		return nil, err
	}
	cases := lists.Map(sizes, func(n int) one { return one{group: scale, name: fmt.Sprint(n), n: n, source: scaleBook(n)} })
	return cases, nil
}

// measureGrowth measures how the cost of loops grows with their length, prints a table, and returns an error if something
// grows that must not.
func (b *bench) measureGrowth(ctx context.Context, cases []one, stdout io.Writer) error {
	t := newTable("scale: window 100, results: stats, a tool that answers at once", 1,
		"iterations", "time", "per second", "ms each", "to "+cases[0].name,
		"longest history", "largest history", "events each", "worker CPU ms each", "server CPU ms each", "peak MB")
	var shortest figures
	var missed []error
	for i, c := range cases {
		f, err := b.runCase(ctx, c)
		if err != nil {
			return err
		}
		if i == 0 {
			shortest = f
		}
		n := float64(f.n)
		t.AppendRow(table.Row{
			f.name, f.took.Round(10 * time.Millisecond), fmt.Sprintf("%.0f", f.rate()), fmt.Sprintf("%.3f", 1e3/f.rate()),
			fmt.Sprintf("%.2f", f.timesSlower(shortest)), f.most, f.large, fmt.Sprintf("%.2f", float64(f.events)/n),
			fmt.Sprintf("%.2f", f.cpuEach()), fmt.Sprintf("%.2f", f.serverEach()), fmt.Sprintf("%.0f", float64(f.memory)/1e6),
		})
		missed = append(missed, f.outgrownLimits(shortest))
	}
	if _, err := fmt.Fprintf(stdout, "%s\n\n", t.Render()); err != nil {
		return err
	}
	return errors.Join(missed...)
}

// timesSlower returns how many times longer an iteration takes than in the shortest loop.
func (f figures) timesSlower(shortest figures) float64 { return shortest.rate() / f.rate() }

// outgrownLimits returns an error that names the figures which grew with the loop.
func (f figures) outgrownLimits(shortest figures) error {
	var missed []error
	check := func(what string, value, most float64) {
		if value > most {
			missed = append(missed, fmt.Errorf("%d iterations: %s is %.10g, more than %.10g", f.n, what, value, most))
		}
	}
	check("the longest history, in events,", float64(f.most), maxEvents)
	check("the largest history, in bytes,", float64(f.large), maxBytes)
	check("the peak memory of the worker, in bytes,", float64(f.memory), maxMemory)
	check("the time of an iteration, against the shortest loop,", f.timesSlower(shortest), maxSlower)
	return errors.Join(missed...)
}
