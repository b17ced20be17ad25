package main

import (
	"fmt"
	"strings"
	"time"
)

// progress is what a report says beside the figures of processes.
type progress struct {
	now             time.Time
	build           int
	restarts, kills int
	started, open   int
}

// report returns a table of at most 80 columns.
func (s *soak) report(p progress) string {
	var b strings.Builder
	passed := p.now.Sub(s.began)
	period := min(s.timetable.compared, passed/2)
	fmt.Fprintf(&b, "\nsoak: %s of %s, build %s, restarts %d (%d kills), runs %d, open %d\n\n",
		shortTime(passed), shortTime(s.timetable.total), buildName(p.build), p.restarts, p.kills, p.started, p.open)
	fmt.Fprintf(&b, "%-8s %22s %22s %22s\n", "", "memory MB", "goroutines", "open files")
	fmt.Fprintf(&b, "%-8s %22s %22s %22s\n", "", "first  last      x", "first  last      x", "first  last      x")
	for _, role := range roles {
		fmt.Fprintf(&b, "%-8s", role)
		for of := range measures {
			g := growthOf(s.points[role], of, s.began, p.now, period)
			first, last := g.first, g.last
			if of == memory {
				first, last = first/(1<<20), last/(1<<20)
			}
			fmt.Fprintf(&b, " %9.0f %5.0f %6.2f", first, last, g.factor())
		}
		b.WriteString("\n")
	}
	c, _ := s.oracle.figures()
	fmt.Fprintf(&b, "\nruns ended %d, failed %d, stuck %d; rows %d, lost %d, doubled %d\n", c.runs, c.failed, c.stuck, c.rows, c.lost, c.doubled)
	fmt.Fprintf(&b, "requests %d, repeated after a SIGKILL %d, without reason %d, missing %d\n", c.requests, c.repeated, c.surplus, c.unasked)
	return b.String()
}

// tooMuch returns what has grown beyond the limit.
func (s *soak) tooMuch(now time.Time) (found []string) {
	names := [measures]string{"memory", "goroutines", "open files"}
	for _, role := range roles {
		for of := range measures {
			g := growthOf(s.points[role], of, s.began, now, s.timetable.compared)
			if g.factor() > growthLimit {
				found = append(found, fmt.Sprintf("%s of %s: %.2f times that of the beginning (at most %.1f)", names[of], role, g.factor(), growthLimit))
			}
		}
	}
	return found
}

// shortTime is a duration to the minute, or to the second if it is short.
func shortTime(d time.Duration) string {
	if d < 10*time.Minute {
		return d.Round(time.Second).String()
	}
	return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
}
