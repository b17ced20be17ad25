package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"go.temporal.io/api/workflowservice/v1"

	"reprise/internal/base/sleep"
)

// soak is a load with its timetable, and what was measured meanwhile.
type soak struct {
	world     *world
	timetable timetable
	every     time.Duration // between the starts of two runs
	began     time.Time
	fleet     *fleet
	load      *load
	oracle    *oracle
	points    measured
}

// scheduleEvery is how often the schedule reads changes.
const scheduleEvery = "20s"

// run runs the load for its time, waits for the last runs, and returns an error if anything is wrong.
func (s *soak) run(ctx context.Context) error {
	s.points, s.fleet = measured{}, &fleet{world: s.world}
	defer s.fleet.stop()
	s.load = &load{world: s.world, oracle: s.oracle, kills: s.fleet.kills, open: map[int]time.Time{}}
	if err := s.fleet.rotate(ctx); err != nil {
		return err
	}
	if _, err := s.world.starter(ctx, "schedule", "create", changesBook, "playbooks/"+changesBook+".yaml", "--every", scheduleEvery,
		"--set", "api="+s.world.api.url); err != nil {
		return err
	}
	s.began = time.Now()
	if err := s.last(ctx); err != nil {
		return err
	}
	end := time.Now()
	if err := s.finish(ctx); err != nil {
		return err
	}
	fmt.Print(s.report(s.progress(end)))
	return s.verdict(end)
}

// last keeps the load up for its time.
func (s *soak) last(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.timetable.total)
	defer cancel()
	failed := make(chan error, 1)
	var disturbing sync.WaitGroup
	disturbing.Go(func() {
		if err := s.disturb(ctx); err != nil {
			failed <- err
		}
	})
	defer disturbing.Wait()
	starts, samples, reports := time.NewTicker(s.every), time.NewTicker(s.timetable.sample), time.NewTicker(s.timetable.report)
	defer starts.Stop()
	defer samples.Stop()
	defer reports.Stop()
	for {
		select {
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return nil
			}
			return ctx.Err()
		case err := <-failed:
			return err
		case <-starts.C:
			s.load.start(context.WithoutCancel(ctx))
		case <-samples.C:
			if err := s.fleet.ended(); err != nil {
				return err
			}
			s.measure(ctx)
		case now := <-reports.C:
			fmt.Print(s.report(s.progress(now)))
		}
	}
}

// disturb restarts workers and rotates builds until the time is over.
func (s *soak) disturb(ctx context.Context) error {
	restarts, rotations, checks := time.NewTicker(s.timetable.restart), time.NewTicker(s.timetable.rotate), time.NewTicker(s.timetable.sample)
	defer restarts.Stop()
	defer rotations.Stop()
	defer checks.Stop()
	lasting := context.WithoutCancel(ctx)
	for {
		var err error
		select {
		case <-ctx.Done():
			return nil
		case <-restarts.C:
			err = s.fleet.restart(lasting)
		case <-rotations.C:
			err = s.fleet.rotate(lasting)
		case <-checks.C:
			err = s.fleet.retire(lasting)
		}
		if err != nil {
			return err
		}
	}
}

// measure measures all processes. One that ends meanwhile is left out.
func (s *soak) measure(ctx context.Context) {
	workers, _, _ := s.fleet.nodes()
	add := func(role string, pid int, metrics string) {
		if p, err := measureProcess(ctx, pid, metrics); err == nil {
			s.points[role] = append(s.points[role], p)
		}
	}
	add("server", s.world.server.PID(), s.world.serverAt)
	add("serve", s.world.serve.Cmd.Process.Pid, s.world.serve.metrics)
	for _, worker := range workers {
		add("worker", worker.Cmd.Process.Pid, worker.metrics)
	}
}

func (s *soak) progress(now time.Time) progress {
	p := progress{now: now, kills: len(s.fleet.kills())}
	_, p.build, p.restarts = s.fleet.nodes()
	p.started, p.open = s.load.counts()
	return p
}

// finish waits for the last runs, reads the last changes, and looks for what is left.
func (s *soak) finish(ctx context.Context) error {
	s.load.running.Wait()
	if _, err := s.world.starter(ctx, "schedule", "delete", changesBook, "--yes"); err != nil {
		return err
	}
	made := s.world.api.changes(time.Now())
	if err := s.readChanges(ctx); err != nil {
		return err
	}
	if err := s.oracle.judgeChanges(ctx, s.world.database.URL, made); err != nil {
		return err
	}
	s.world.api.answered.Wait()
	if err := s.judgeLeft(ctx); err != nil {
		return err
	}
	return s.judgeAll(ctx)
}

// readChanges has a run read what the schedule has not.
func (s *soak) readChanges(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, runPatience)
	defer cancel()
	id, err := s.load.begin(ctx, changesBook, 0)
	if err != nil {
		return err
	}
	return awaitRun(ctx, s.world.client, id)
}

// pinnedTypes are the workflows that belong to one run.
const pinnedTypes = "WorkflowType IN ('PlaybookWorkflow', 'LoopWorkflow', 'CallsWorkflow')"

// judgeLeft counts the workflows of runs that are open though all have ended, and those that have failed.
func (s *soak) judgeLeft(ctx context.Context) error {
	// The index of the server follows within seconds.
	var open, failed int64
	for until := time.Now().Add(startPatience); ; {
		var err error
		if open, err = s.world.count(ctx, pinnedTypes+" AND ExecutionStatus = 'Running'"); err != nil {
			return err
		}
		if failed, err = s.world.count(ctx, pinnedTypes+" AND ExecutionStatus IN ('Failed', 'Terminated', 'TimedOut')"); err != nil {
			return err
		}
		if open == 0 || time.Now().After(until) || sleep.For(ctx, time.Second) != nil {
			break
		}
	}
	if open > 0 {
		s.oracle.add(tally{stuck: int(open)}, fmt.Sprintf("%d workflows of runs are open", open))
	}
	if c, _ := s.oracle.figures(); int(failed) > c.failed {
		s.oracle.add(tally{failed: int(failed) - c.failed}, fmt.Sprintf("%d workflows have failed", failed))
	}
	return nil
}

// judgeAll compares the rows in the tables with those that were there when the runs ended.
func (s *soak) judgeAll(ctx context.Context) error {
	numbers, err := numbersOf(ctx, s.world.database.URL, "SELECT count(*)::int FROM loaded UNION ALL SELECT count(*)::int FROM changes")
	if err != nil {
		return err
	}
	total := 0
	for _, n := range numbers {
		total += n
	}
	if c, _ := s.oracle.figures(); total < c.rows {
		s.oracle.add(tally{lost: c.rows - total}, fmt.Sprintf("%d rows are lost that were there", c.rows-total))
	} else if total > c.rows {
		s.oracle.add(tally{doubled: total - c.rows}, fmt.Sprintf("%d rows were written after the ends of their runs", total-c.rows))
	}
	if crowded := s.world.api.mostEntered(); crowded > keyLimit {
		s.oracle.add(tally{failed: 1}, fmt.Sprintf("%d runs had the concurrency key at once, not %d", crowded, keyLimit))
	}
	return nil
}

// verdict returns what is wrong.
func (s *soak) verdict(end time.Time) error {
	var wrong []string
	if c, findings := s.oracle.figures(); c.wrong() {
		wrong = append(wrong, findings...)
	}
	wrong = append(wrong, s.tooMuch(end)...)
	if len(wrong) == 0 {
		return nil
	}
	return fmt.Errorf("%d things are wrong:\n  %s", len(wrong), strings.Join(wrong, "\n  "))
}

// count counts the workflows that a query selects.
func (w *world) count(ctx context.Context, query string) (int64, error) {
	counted, err := w.client.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{Namespace: w.server.Namespace, Query: query})
	if err != nil {
		return 0, fmt.Errorf("count workflows: %w", err)
	}
	return counted.GetCount(), nil
}
