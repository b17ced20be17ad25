package ui

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"reprise/internal/base/terminal"
	"reprise/internal/observe/render"
	"reprise/internal/observe/runs"
	"reprise/internal/program/backfill"
	"reprise/interpreter"
	"reprise/interpreter/lists"
)

const (
	// shownNeeds bounds the listed runs of each kind that need somebody.
	shownNeeds = 5
	// brokenListed is how many runs since yesterday that failed, or succeeded in part, are listed in one call. Where there are
	// more, partial successes are counted by calls of their own.
	brokenListed = 100
	// countsLast is how long counts of ended runs are shown without counting again.
	countsLast = 5 * time.Second
	// countsStale is how long counts are shown while they are being counted again, if that takes longer than
	// countsWait: among 100,000 runs a server may need a second. After that, or if there are no counts yet, the page
	// shows none. An open page gets new counts when it next refreshes.
	countsStale = time.Minute
	countsWait  = 100 * time.Millisecond
	// countingTime bounds a count in the background.
	countingTime = 30 * time.Second
	// zoneCookie is the cookie with the time zone of a person who chose local times.
	zoneCookie = "reprise_zone"
)

// Values of the filter "ended": since when a run has ended.
const (
	endedToday     = "today"
	endedYesterday = "yesterday"
)

// Values of the filter "now" in addition to those of runs.Filter, and nowPerson, the kind of open runs that a filter of its own selects.
const (
	nowLate     = "late"
	nowNoWorker = "no-worker"
	nowPerson   = "person"
)

// overview is the top of the start page: the number of runs of each kind, and the runs that need somebody.
type overview struct {
	Tiles []countTile
	Zone  string // of the midnights
	Needs []runRow
	// Stopped are the task queues with open runs whose workers do not respond.
	Stopped []stoppedQueue
	More    bool // there are more open runs than were read

	open                      []runs.Found
	broken                    []runs.Found // since yesterday
	again                     map[string][]runs.Found
	counted                   map[string]int // open runs on the server by what its list says of them, where there are more than were read
	today, yesterday          shownCounts
	partial, partialYesterday int  // partial successes since midnight, and since yesterday
	partialPending            bool // these are not known yet
	calls                     int
}

// countTile is a count of runs, with links to those runs.
type countTile struct {
	Name        string
	Status      interpreter.Status // whose colour it has
	Count       int
	IsPending   bool // Count and Since are not known yet
	Path, When  string
	Since       int
	SincePath   string // "" for what is open
	IsCurrent   bool
	SinceActive bool
}

// stoppedQueue is a task queue with open runs whose workers do not respond.
type stoppedQueue struct {
	Name, Command string
	Runs          int
}

// endedCounts caches counts briefly: every open page requests them every few seconds. It is safe for concurrent use.
type endedCounts struct {
	mu       sync.Mutex
	known    map[time.Time]endedCount
	counting map[time.Time]*recount
	wait     time.Duration // in place of countsWait
}

type endedCount struct {
	runs.EndedCounts
	at time.Time
}

// recount is a count that the server is making.
type recount struct {
	done chan struct{} // closed once err is set
	err  error
}

// shownCounts are counts to show on a page.
type shownCounts struct {
	runs.EndedCounts
	isPending bool // they are not known yet
}

// countFunc counts the runs that ended since a time.
type countFunc func(ctx context.Context, since time.Time) (runs.EndedCounts, error)

// countsOf counts the runs that ended since a time; asked reports whether the server was called. It waits only
// briefly: if the server takes longer, it returns cached counts that are not too old, or none, and the next page has
// the new ones.
func (c *endedCounts) countsOf(ctx context.Context, count countFunc, since, now time.Time) (counts shownCounts, asked bool, err error) {
	known, found := c.lastCounts(since)
	if found && now.Sub(known.at) < countsLast {
		return shownCounts{EndedCounts: known.EndedCounts}, false, nil
	}
	counting, asked := c.recountLater(ctx, count, since, now)
	select {
	case <-counting.done:
		known, found = c.lastCounts(since)
		if counting.err != nil {
			return counts, asked, counting.err
		}
	case <-time.After(cmp.Or(c.wait, countsWait)):
	case <-ctx.Done():
	}
	if !found || now.Sub(known.at) >= countsStale {
		return shownCounts{isPending: true}, asked, nil
	}
	return shownCounts{EndedCounts: known.EndedCounts}, asked, nil
}

// lastCounts returns the cached counts.
func (c *endedCounts) lastCounts(since time.Time) (endedCount, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known, found := c.known[since]
	return known, found
}

// recountLater counts again in the background, once at a time; begun reports whether this call started it.
func (c *endedCounts) recountLater(ctx context.Context, count countFunc, since, now time.Time) (counting *recount, begun bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if counting, is := c.counting[since]; is {
		return counting, false
	}
	if c.counting == nil {
		c.counting = map[time.Time]*recount{}
	}
	counting = &recount{done: make(chan struct{})}
	c.counting[since] = counting
	go func() {
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), countingTime)
		defer cancel()
		counts, err := count(limited, since)
		if counting.err = err; err == nil {
			c.cacheCounts(counts, since, now)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.counting, since)
		close(counting.done)
	}()
	return counting, true
}

// cacheCounts caches counts.
func (c *endedCounts) cacheCounts(counts runs.EndedCounts, since, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	const most = 100 // times: two for each zone of those who look
	if c.known == nil || len(c.known) >= most {
		c.known = map[time.Time]endedCount{}
	}
	c.known[since] = endedCount{counts, now}
}

// zoneOf returns the time zone that a person has chosen; UTC by default.
func zoneOf(r *http.Request) *time.Location {
	given, err := r.Cookie(zoneCookie)
	if err != nil || len(given.Value) > 100 {
		return time.UTC
	}
	name, err := url.QueryUnescape(given.Value)
	if err != nil || name == "" || name == "Local" {
		return time.UTC
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return time.UTC
	}
	return zone
}

// dayStarts returns the beginning of the day and of the previous day.
func dayStarts(now time.Time, zone *time.Location) (today, yesterday time.Time) {
	year, month, day := now.In(zone).Date()
	return time.Date(year, month, day, 0, 0, 0, 0, zone), time.Date(year, month, day-1, 0, 0, 0, 0, zone)
}

// readOverview reads the top of the start page. needs says whether to list the runs that need somebody.
func (s *Server) readOverview(r *http.Request, now time.Time, needs bool) (*overview, error) {
	zone := zoneOf(r)
	o := &overview{Zone: zone.String()}
	today, yesterday := dayStarts(now, zone)
	var group errgroup.Group
	var calls [4]int // of each of these
	count := func(into *shownCounts, since time.Time, made *int) func() error {
		return func() (err error) {
			var asked bool
			ended := func(ctx context.Context, since time.Time) (runs.EndedCounts, error) {
				return runs.CountEnded(ctx, s.Runs, since)
			}
			if *into, asked, err = s.ended.countsOf(r.Context(), ended, since, now); asked {
				*made = 1
			}
			return err
		}
	}
	group.Go(count(&o.today, today, &calls[0]))
	group.Go(count(&o.yesterday, yesterday, &calls[1]))
	group.Go(func() error { return s.countOpen(r.Context(), o, &calls[2]) })
	group.Go(func() error { return s.brokenLately(r.Context(), o, dayTimes{today, yesterday, now}, needs, &calls[3]) })
	err := group.Wait()
	for _, made := range calls {
		o.calls += made
	}
	return o, err
}

// countOpen lists the open runs, and counts them by what they are doing where there are too many for that.
func (s *Server) countOpen(ctx context.Context, o *overview, calls *int) error {
	*calls = 1
	var err error
	if o.open, o.More, err = runs.OpenRuns(ctx, s.Runs); err != nil {
		return err
	}
	if !o.More {
		return nil
	}
	o.counted = map[string]int{}
	for kind, filter := range map[string]runs.Filter{
		nowPerson: {NeedsPerson: true}, runs.DoingWait: {Doing: runs.DoingWait}, runs.DoingWork: {Doing: runs.DoingWork},
	} {
		counted, err := runs.CountRuns(ctx, s.Runs, filter)
		*calls++
		if err != nil && !errors.Is(err, runs.ErrNoAttributes) {
			return err
		}
		o.counted[kind] = counted
	}
	return nil
}

// listedKind returns what an open run is doing, as far as the server's list shows it.
func listedKind(run runs.Found) string {
	switch {
	case run.NeedsPerson():
		return nowPerson
	case run.Status == interpreter.RetryPending || run.Status == interpreter.Queued:
		return runs.DoingWait
	}
	return runs.DoingWork
}

// kindOf returns the kind by which a tile counts an open run. Each run has one: without a worker none waits or runs.
func (s *silences) kindOf(run runs.Found, now time.Time) string {
	if s.hasSilence(run, now) {
		return nowNoWorker
	}
	return listedKind(run)
}

// openOfKind returns the open runs that a tile counts.
func (s *silences) openOfKind(o *overview, kind string, now time.Time) []runs.Found {
	if kind == nowLate {
		return o.lateRuns(now)
	}
	return lists.Filter(o.open, func(run runs.Found) bool { return s.kindOf(run, now) == kind })
}

// countKinds counts the open runs of each kind. Of those that were not read it is not known whether they have workers.
func (s *silences) countKinds(o *overview, now time.Time) map[string]int {
	counts := map[string]int{nowLate: len(o.lateRuns(now))}
	without := map[string]int{} // runs without a worker, by what the server counts them as
	for _, run := range o.open {
		kind := s.kindOf(run, now)
		counts[kind]++
		if kind == nowNoWorker {
			without[listedKind(run)]++
		}
	}
	for kind, counted := range o.counted {
		counts[kind] = max(counts[kind], counted-without[kind])
	}
	return counts
}

// brokenLately lists the runs since yesterday that failed or succeeded in part, and counts the latter. again says that those are
// looked for which run iterations of them again.
func (s *Server) brokenLately(ctx context.Context, o *overview, at dayTimes, again bool, calls *int) error {
	*calls = 1
	page, err := s.Runs.Page(ctx, runs.Filter{Broken: true, EndedSince: at.yesterday}, brokenListed, nil)
	if errors.Is(err, runs.ErrNoAttributes) {
		return nil
	}
	if err != nil {
		return err
	}
	o.broken = page.Runs
	retried := lists.Filter(o.broken, func(run runs.Found) bool { return run.DeadLetters > 0 })
	var group errgroup.Group
	counted := 0
	group.Go(func() error { return s.countPartial(ctx, o, page.Next != nil, at, &counted) })
	if again && len(retried) > 0 {
		*calls++
		group.Go(func() (err error) {
			o.again, err = s.Runs.Reprocesses(ctx, retried)
			return err
		})
	}
	err = group.Wait()
	*calls += counted
	return err
}

// dayTimes are the beginning of the day and of the day before, and the time of the page.
type dayTimes struct{ today, yesterday, now time.Time }

// countPartial counts the partial successes among the listed runs, or on the server where more were not listed. Such counts are
// cached like those of all ended runs.
func (s *Server) countPartial(ctx context.Context, o *overview, more bool, at dayTimes, calls *int) error {
	count := func(ctx context.Context, since time.Time) (runs.EndedCounts, error) {
		n, err := runs.CountRuns(ctx, s.Runs, runs.Filter{Status: interpreter.Partial, EndedSince: since})
		return runs.EndedCounts{Completed: n}, err // these are the partial successes
	}
	if !more {
		since := func(when time.Time) int {
			return len(lists.Filter(o.broken, func(run runs.Found) bool {
				return run.Status == interpreter.Partial && !run.EndedAt.Before(when)
			}))
		}
		o.partial, o.partialYesterday = since(at.today), since(at.yesterday)
		return nil
	}
	var group errgroup.Group
	var counted [2]shownCounts
	var asked [2]bool
	for i, since := range []time.Time{at.today, at.yesterday} {
		group.Go(func() (err error) {
			counted[i], asked[i], err = s.partial.countsOf(ctx, count, since, at.now)
			return err
		})
	}
	err := group.Wait()
	for i := range counted {
		o.partialPending = o.partialPending || counted[i].isPending
		if asked[i] {
			*calls++
		}
	}
	o.partial, o.partialYesterday = counted[0].Completed, counted[1].Completed
	return err
}

// setTiles sets the counts, each with a link to the runs counted. open are those of open runs, by their kinds.
func (o *overview) setTiles(query url.Values, open map[string]int) {
	since := "since midnight"
	if o.Zone == time.UTC.String() {
		since = "since midnight UTC"
	}
	pending := o.today.isPending || o.yesterday.isPending
	closed := func(name string, status interpreter.Status, pending bool, today, yesterday int) countTile {
		path := func(ended string) string {
			return "/?" + url.Values{"status": {string(status)}, "ended": {ended}}.Encode()
		}
		tile := countTile{
			Name: name, Status: status, Count: today, IsPending: pending, Path: path(endedToday), When: since, Since: yesterday,
			SincePath: path(endedYesterday),
		}
		if query.Get("status") == string(status) {
			tile.IsCurrent, tile.SinceActive = query.Get("ended") == endedToday, query.Get("ended") == endedYesterday
		}
		return tile
	}
	now := func(name string, status interpreter.Status, kind string) countTile {
		key, value := "now", kind
		if kind == nowPerson {
			key, value = "person", "1"
		}
		return countTile{Name: name, Status: status, Count: open[kind], Path: "/?" + url.Values{key: {value}}.Encode(), When: "now", IsCurrent: query.Get(key) == value}
	}
	late := now("Late", interpreter.Partial, nowLate)
	late.When = "among open runs" // which other tiles count too
	o.Tiles = []countTile{
		closed("Failed", interpreter.Failed, pending, o.today.Failed, o.yesterday.Failed),
		closed("Partial success", interpreter.Partial, o.partialPending, o.partial, o.partialYesterday),
		now("Need a person", interpreter.Awaiting, nowPerson),
		now("No worker", interpreter.RetryPending, nowNoWorker),
		now("Waiting", interpreter.RetryPending, runs.DoingWait),
		now("Running", interpreter.Running, runs.DoingWork),
		late,
		closed("Completed", interpreter.Completed, pending || o.partialPending, max(0, o.today.Completed-o.partial), max(0, o.yesterday.Completed-o.partialYesterday)),
	}
}

// lateRuns returns the open runs that take longer than expected, the latest first.
func (o *overview) lateRuns(now time.Time) []runs.Found {
	late := lists.Filter(o.open, func(run runs.Found) bool { return run.LateBy(now) > 0 })
	slices.SortStableFunc(late, func(x, y runs.Found) int { return cmp.Compare(y.LateBy(now), x.LateBy(now)) })
	return late
}

// needingRuns returns the runs that need somebody, each once: failed runs, runs that wait for a person, late runs.
func (o *overview) needingRuns(now time.Time) []runs.Found {
	var all []runs.Found
	add := func(list []runs.Found) {
		added := 0
		for _, run := range list {
			if !containsRun(all, run) && added < shownNeeds {
				all, added = append(all, run), added+1
			}
		}
	}
	add(lists.Filter(o.broken, func(run runs.Found) bool {
		if run.Origin != "" && run.Status == interpreter.Partial {
			return false // the run whose iterations have failed again is listed
		}
		return !slices.ContainsFunc(o.again[run.WorkflowID], func(other runs.Found) bool {
			return !other.Ended() || other.Status == interpreter.Completed
		})
	}))
	add(lists.Filter(o.open, runs.Found.NeedsPerson))
	add(o.lateRuns(now))
	return all
}

// containsRun reports whether a list contains a run.
func containsRun(list []runs.Found, run runs.Found) bool {
	return slices.ContainsFunc(list, func(other runs.Found) bool { return other.LastRunID() == run.LastRunID() })
}

// needRows describes the runs that need somebody, with buttons for what to do next.
func (s *Server) needRows(rows []runRow, person Person) []runRow {
	return lists.Map(rows, func(row runRow) runRow {
		row.Needs = true
		confirm := func(name, command string) {
			query := url.Values{"command": {command}, "run": {row.Run.LastRunID()}}
			row.Next = append(row.Next, link{name, runPath(row.Run.WorkflowID) + "/confirm?" + query.Encode()})
		}
		switch {
		case row.Fault.Text == historyGone:
		case row.Run.Ended() && row.Run.DeadLetters > 0 && row.Run.Origin == "" && s.Reprocess != nil && person.Operator:
			confirm("Run failed iterations again…", reprocess)
		case row.Run.Ended() && row.Run.Origin == "" && s.Again != nil && person.Operator:
			confirm("Run again…", runAgain)
		case row.Run.Ended() && row.Run.DeadLetters > 0:
			row.Next = append(row.Next, link{"See what failed", failedPath(row.Run.WorkflowID)})
		case row.Run.Ended():
		case row.Status == interpreter.Awaiting:
			row.Next = append(row.Next, link{"Answer", "/inbox?" + url.Values{"run": {row.Run.WorkflowID}}.Encode()})
		case row.Status == interpreter.Paused && person.Operator:
			row.Next = append(row.Next, link{"Resume or cancel", row.Path})
		case row.Status == interpreter.RetryPending && row.Run.NextRetryAt.IsZero() && person.Operator:
			row.Next = append(row.Next, link{"Retry or skip", row.Path})
		default:
			row.Next = append(row.Next, link{"See what it does", row.Path})
		}
		if of, isBackfill := strings.CutSuffix(row.Run.Playbook, backfill.Suffix); isBackfill && s.Library != nil && s.Library.Has(of) {
			row.Next = append(row.Next, link{"See which partitions are missing", bookPath(of) + "#partitions"})
		}
		return row
	})
}

// stoppedQueues returns the task queues of open runs whose workers do not respond.
func (s *silences) stoppedQueues(open []runs.Found, now time.Time) []stoppedQueue {
	var all []stoppedQueue
	for _, run := range open {
		if !s.hasSilence(run, now) {
			continue
		}
		at := slices.IndexFunc(all, func(other stoppedQueue) bool { return other.Name == run.TaskQueue })
		if at < 0 {
			at, all = len(all), append(all, stoppedQueue{Name: run.TaskQueue, Command: render.StartWorker(run.TaskQueue, "")})
		}
		all[at].Runs++
	}
	return all
}

// lateText describes by how much an open run is late; "" if it is not.
func lateText(run runs.Found, now time.Time) string {
	by := run.LateBy(now)
	if by == 0 || run.Ended() {
		return ""
	}
	return "late by " + terminal.Duration(by.Round(time.Second)) + ": expected within " + terminal.Duration(run.Expect)
}
