package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"reprise/interpreter/lists"

	"github.com/jedib0t/go-pretty/v6/table"
)

// How long a case is measured on each of two builds. The server and the machine do other work, which can change a
// single ratio by a tenth.
const (
	leastPairs = 5
	mostPairs  = 15
	longEnough = time.Minute // on each build, all pairs together
)

// pair are the figures of a case on two builds, measured one right after the other.
type pair struct{ now, before figures }

// compareBuilds compares this build with another one: it measures the cases alternately on both, on one server, and prints
// a table. It skips the workflows by hand, which are the same in both builds.
func (b *bench) compareBuilds(ctx context.Context, other string, groups [][]one, stdout io.Writer) error {
	for _, group := range groups {
		t := newTable(group[0].group, 2, "", "pairs", "per second", "before", "ratio", "least", "most",
			"worker CPU ms each", "before", "server CPU ms each", "before", "bytes each", "before")
		for _, c := range group {
			if c.source == "" {
				continue
			}
			pairs, err := b.measurePairs(ctx, other, c)
			if err != nil {
				return err
			}
			t.AppendRow(pairsRow(pairs))
		}
		if _, err := fmt.Fprintf(stdout, "%s\n\n", t.Render()); err != nil {
			return err
		}
	}
	return nil
}

// measurePairs measures a case on both builds. Which build is first alternates, because a server gets slower as it fills.
func (b *bench) measurePairs(ctx context.Context, other string, c one) ([]pair, error) {
	var all []pair
	for took := time.Duration(0); len(all) < leastPairs || took < longEnough && len(all) < mostPairs; {
		before := c
		before.worker = other
		order := []one{c, before}
		if len(all)%2 == 1 {
			slices.Reverse(order)
		}
		var p pair
		for _, next := range order {
			f, err := b.runCase(ctx, next)
			if err != nil {
				return nil, err
			}
			if next.worker == other {
				p.before = f
			} else {
				p.now = f
			}
		}
		all, took = append(all, p), took+p.now.took
	}
	return all, nil
}

// pairsRow returns the table row of a case, with medians over its pairs.
func pairsRow(pairs []pair) table.Row {
	of := func(figure func(pair) float64) []float64 {
		all := lists.Map(pairs, figure)
		slices.Sort(all)
		return all
	}
	ratios := of(func(p pair) float64 { return p.now.rate() / p.before.rate() })
	middle := func(figure func(pair) float64) float64 { return medianOf(of(figure)) }
	return table.Row{
		pairs[0].now.name, len(pairs),
		fmt.Sprintf("%.0f", middle(func(p pair) float64 { return p.now.rate() })),
		fmt.Sprintf("%.0f", middle(func(p pair) float64 { return p.before.rate() })),
		fmt.Sprintf("%.2f", medianOf(ratios)), fmt.Sprintf("%.2f", ratios[0]), fmt.Sprintf("%.2f", ratios[len(ratios)-1]),
		fmt.Sprintf("%.2f", middle(func(p pair) float64 { return p.now.cpuEach() })),
		fmt.Sprintf("%.2f", middle(func(p pair) float64 { return p.before.cpuEach() })),
		fmt.Sprintf("%.2f", middle(func(p pair) float64 { return p.now.serverEach() })),
		fmt.Sprintf("%.2f", middle(func(p pair) float64 { return p.before.serverEach() })),
		fmt.Sprintf("%.0f", middle(func(p pair) float64 { return p.now.bytesEach() })),
		fmt.Sprintf("%.0f", middle(func(p pair) float64 { return p.before.bytesEach() })),
	}
}

// medianOf returns the median of sorted figures.
func medianOf(all []float64) float64 {
	half := len(all) / 2
	if len(all)%2 == 1 {
		return all[half]
	}
	return (all[half-1] + all[half]) / 2
}
