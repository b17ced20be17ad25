package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// errStuck is a run that does not end.
var errStuck = errors.New("stuck")

// oracle counts what is wrong about the runs that have ended.
type oracle struct {
	api *api

	mu       sync.Mutex
	counts   tally
	findings []string // what is wrong, in words
}

// tally is what the oracle has counted.
type tally struct {
	runs, rows, requests int
	failed, stuck        int
	lost, doubled        int // rows
	unasked              int // elements that were never requested
	repeated             int // requests that came again after a worker was killed, as they may
	surplus              int // those for which there is no such reason
}

// wrong reports whether there is anything that may not be.
func (c tally) wrong() bool { return c.failed+c.stuck+c.lost+c.doubled+c.unasked+c.surplus > 0 }

func newOracle(a *api) *oracle { return &oracle{api: a} }

// mostFindings is how many findings are described; the others are only counted.
const mostFindings = 50

func (o *oracle) add(counted tally, findings ...string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	c := &o.counts
	c.runs, c.rows, c.requests = c.runs+counted.runs, c.rows+counted.rows, c.requests+counted.requests
	c.failed, c.stuck = c.failed+counted.failed, c.stuck+counted.stuck
	c.lost, c.doubled, c.unasked = c.lost+counted.lost, c.doubled+counted.doubled, c.unasked+counted.unasked
	c.repeated, c.surplus = c.repeated+counted.repeated, c.surplus+counted.surplus
	for _, finding := range findings {
		if len(o.findings) < mostFindings {
			o.findings = append(o.findings, finding)
			fmt.Println("soak: WRONG:", finding)
		}
	}
}

// figures returns what was counted and found so far.
func (o *oracle) figures() (tally, []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.counts, slices.Clone(o.findings)
}

// judge looks at a run that has ended.
func (o *oracle) judge(ctx context.Context, url string, k kind, number int, ended error, kills []time.Time) {
	asked := o.api.requestsOf(number)
	name := k.name + " " + strconv.Itoa(number)
	switch {
	case ctx.Err() != nil:
		return
	case errors.Is(ended, errStuck):
		o.add(tally{runs: 1, stuck: 1}, fmt.Sprintf("%s is stuck: %v", name, ended))
		return
	case ended != nil:
		o.add(tally{runs: 1, failed: 1}, fmt.Sprintf("%s: %v", name, ended))
		return
	}
	found, err := numbersOf(ctx, url, "SELECT n FROM loaded WHERE run = $1 AND kind = $2", number, k.name)
	if err != nil {
		o.add(tally{runs: 1, failed: 1}, fmt.Sprintf("%s: %v", name, err))
		return
	}
	rows, findings := compareRows(k.written(), found)
	requests, more := compareRequests(k.requests, asked, kills)
	rows.runs, rows.requests, rows.repeated, rows.surplus, rows.unasked = 1, requests.requests, requests.repeated, requests.surplus, requests.unasked
	for _, finding := range append(findings, more...) {
		o.add(tally{}, name+": "+finding)
	}
	o.add(rows)
}

// judgeChanges looks at the rows of the state, once a run has read all that there were at a time.
func (o *oracle) judgeChanges(ctx context.Context, url string, made int) error {
	found, err := numbersOf(ctx, url, "SELECT id FROM changes")
	if err != nil {
		return err
	}
	if len(found) > 0 {
		made = max(made, slices.Max(found)+1) // of those that came while the last run read
	}
	want := make([]int, made)
	for i := range want {
		want[i] = i
	}
	rows, findings := compareRows(want, found)
	for _, finding := range findings {
		o.add(tally{}, changesBook+": "+finding)
	}
	o.add(rows)
	return nil
}

// numbersOf returns the numbers that a query selects.
func numbersOf(ctx context.Context, url, query string, args ...any) ([]int, error) {
	db, err := pgx.Connect(ctx, url)
	if err != nil {
		return nil, fmt.Errorf("connect to PostgreSQL: %w", err)
	}
	defer func() { _ = db.Close(ctx) }()
	rows, err := db.Query(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("read what was loaded: %w", err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowTo[int])
	if err != nil {
		return nil, fmt.Errorf("read what was loaded: %w", err)
	}
	return found, nil
}

// compareRows counts the rows that are missing, and those that came twice or that nobody wrote.
func compareRows(want, found []int) (c tally, findings []string) {
	c.rows = len(found)
	times := map[int]int{}
	for _, n := range found {
		times[n]++
	}
	for _, n := range want {
		switch got := times[n]; {
		case got == 0:
			c.lost++
			findings = append(findings, fmt.Sprintf("row %d is lost", n))
		case got > 1:
			c.doubled += got - 1
			findings = append(findings, fmt.Sprintf("row %d is there %d times", n, got))
		}
		delete(times, n)
	}
	for n, got := range times {
		c.doubled += got
		findings = append(findings, fmt.Sprintf("row %d is there %d times, and nobody writes it", n, got))
	}
	slices.Sort(findings)
	return c, findings
}

// killedAfter is how long before the kill of its worker a request may have been sent that comes again. It is longer than
// an attempt takes, since an activity reports several at once.
const killedAfter = 30 * time.Second

// compareRequests counts requests that came too often, and elements that were never requested. A request may come again if
// a worker was killed in between, shortly after it was first sent: the worker may have sent it, and could not report it.
func compareRequests(want map[string]int, asked map[string][]time.Time, kills []time.Time) (c tally, findings []string) {
	for element, times := range asked {
		c.requests += len(times)
		allowed := want[element]
		for i := allowed; i < len(times); i++ {
			excused := i > 0 && slices.ContainsFunc(kills, func(kill time.Time) bool {
				return kill.Before(times[i]) && slices.ContainsFunc(times[:i], func(sent time.Time) bool {
					return !sent.After(kill) && kill.Sub(sent) < killedAfter
				})
			})
			if excused {
				c.repeated++
				continue
			}
			c.surplus++
			findings = append(findings, fmt.Sprintf("element %q was requested again at %s, after %s", element, clockOf(times[i:]), clockOf(times[:i])))
		}
	}
	for element, least := range want {
		if len(asked[element]) < least {
			c.unasked++
			findings = append(findings, fmt.Sprintf("element %q was requested %d times, not %d", element, len(asked[element]), least))
		}
	}
	slices.Sort(findings)
	return c, findings
}

// clockOf are times for people.
func clockOf(times []time.Time) (text string) {
	for i, t := range times {
		if i > 0 {
			text += ", "
		}
		text += t.Format("15:04:05.000")
	}
	return text
}
