// Command soak runs a mixed load for hours while workers are restarted and builds are rotated, and compares what the
// processes need at the beginning and at the end: make soak HOURS=4.
//
// A Temporal server keeps its state in PostgreSQL. Two workers run loops with children and batches, pages with sinks,
// retries with waits, approvals, callbacks, a state that a schedule reads on from, a rate limit and a concurrency key. A
// worker is restarted every ten minutes, by SIGTERM and by SIGKILL in turn; each hour a new build replaces the workers. In
// the end an oracle counts what the runs wrote to PostgreSQL and what they requested: nothing may be lost, doubled or stuck.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := runSoak(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

var errUsage = errors.New("wrong usage")

// growthLimit is how much more a process may need at the end than at the beginning.
const growthLimit = 1.1

func runSoak(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("soak", flag.ContinueOnError)
	hours := flags.Float64("hours", 4, "how long the load lasts")
	every := flags.Duration("every", 2*time.Second, "time between the starts of two runs")
	if err := flags.Parse(args); err != nil {
		return errors.Join(errUsage, err)
	}
	if flags.NArg() > 0 || *hours < 0.02 || *every <= 0 {
		return fmt.Errorf("%w: flags are -hours, a number from 0.02 on, and -every, a duration", errUsage)
	}
	w, err := newWorld(ctx)
	defer w.stop()
	if err != nil {
		return err
	}
	s := &soak{world: w, timetable: timetableOf(*hours), every: *every, began: time.Now(), oracle: newOracle(w.api)}
	return s.run(ctx)
}

// timetable says when what happens.
type timetable struct {
	total, restart, rotate, sample, report time.Duration
	// compared is how long each of the two periods is that are compared: the first and the last.
	compared time.Duration
}

// timetableOf returns the timetable of a soak of so many hours. In less than an hour, everything comes more often.
func timetableOf(hours float64) timetable {
	total := time.Duration(hours * float64(time.Hour))
	t := timetable{
		total:   total,
		restart: min(10*time.Minute, total/6), rotate: min(time.Hour, total/2),
		sample: min(time.Minute, total/60), report: min(10*time.Minute, total/6),
	}
	t.compared = min(time.Hour, total/3)
	return t
}
