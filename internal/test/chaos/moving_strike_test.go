package chaos_test

import (
	"net/http"
	"strings"
)

// maxKills is how often the worker is killed in a moving round. An attempt whose
// worker is lost four times has failed. The short form takes one less, since each
// costs the time in which the server notices.
const maxKills = 3

// blow is one way to kill the worker. It reports false where the run has ended
// before; the first of a round comes in any case, unless it is for late pages.
type blow func(r *movingRound, first bool) bool

// Blows of which one is drawn each time: most fall where something is written and
// nobody knows.
var (
	pageBlows = []blow{
		killBehindPage, killBehindPage, killBehindPage, killBehindPage,
		killBeforeReport, killAfterReport, killInMovingWrite, killSomewhere, killTwice, killTwice,
	}
	callBlows = []blow{
		killBehindPage, killBehindPage, killBeforeReport, killBeforeReport,
		killAfterReport, killInMovingWrite, killInMovingWrite, killSomewhere, killTwice,
	}
)

// strike kills the worker some times: while it asks for the page behind one that
// is written, in a sink, or in its talk with the server.
func (r *movingRound) strike(short bool) {
	r.t.Helper()
	blows, most := callBlows, maxKills
	if r.movement.of.place == placePage {
		blows = pageBlows
	}
	if short {
		most--
	}
	for n := range r.between(1, most) {
		if r.kills >= most {
			break
		}
		if !blows[r.random.IntN(len(blows))](r, n == 0) {
			break
		}
	}
	r.ensureWorker()
}

// alive reports whether there is a worker that has not been killed.
func (r *stage) alive() bool {
	if r.worker == nil {
		return false
	}
	select {
	case <-r.worker.Done():
		return false
	default:
		return true
	}
}

// ensureWorker starts a worker if there is none.
func (r *stage) ensureWorker() {
	r.t.Helper()
	if !r.alive() {
		r.startWorker()
	}
}

// comes waits until something has happened, and false tells that the run has
// ended without it. The first strike of a round has to happen.
func (r *movingRound) comes(first bool, what string, happened func() bool) bool {
	r.t.Helper()
	if first {
		r.until(what, happened)
		return true
	}
	var did bool
	r.await(what+", or the run ends", func() bool {
		did = happened()
		return did || r.ended()
	})
	return did
}

// killBehindPage holds reads that ask for another page than the first, from the
// nth on, and kills the worker: what came before is written, as far as it has to
// be, and nobody knows.
func killBehindPage(r *movingRound, first bool) bool {
	r.t.Helper()
	elements := len(r.movement.elements)
	pass := r.between(0, max(r.movement.usualReads()-elements, elements)/(1+r.kills)-1)
	first = first && pass < elements // every element goes on once in any case
	passed := make(chan struct{}, pass)
	hold := r.api.HoldRequests(func(request *http.Request) bool {
		if !isFurtherPage(request) {
			return false
		}
		select {
		case passed <- struct{}{}:
			return false
		default:
			return true
		}
	})
	defer hold.Release()
	r.t.Logf("the worker dies while it asks for a page, after %d others", pass)
	r.ensureWorker()
	if !r.comes(first, "another page is asked for", func() bool { return hold.HeldRequests() > 0 }) {
		return false
	}
	r.kill()
	return true
}

// killTwice kills the worker behind some page, and the next one a few pages on, often before it has reported
// anything: what the two have written only their ledgers know.
func killTwice(r *movingRound, first bool) bool {
	r.t.Helper()
	if !killBehindPage(r, first) {
		return false
	}
	if r.kills >= maxKills {
		return true
	}
	pass := r.between(0, 3)
	passed := make(chan struct{}, pass)
	hold := r.api.HoldRequests(func(request *http.Request) bool {
		if !isFurtherPage(request) {
			return false
		}
		select {
		case passed <- struct{}{}:
			return false
		default:
			return true
		}
	})
	defer hold.Release()
	r.t.Logf("the next worker dies behind %d pages", pass)
	r.ensureWorker()
	if r.comes(false, "another page is asked for", func() bool { return hold.HeldRequests() > 0 }) {
		r.kill()
	}
	return true
}

// isFurtherPage reports whether a request reads another page than the first.
func isFurtherPage(request *http.Request) bool {
	query := request.URL.Query()
	return strings.HasPrefix(request.URL.Path, "/api/v1/moving/") &&
		(query.Get("after") != "" || query.Get("offset") != "" && query.Get("offset") != "0")
}

// killInMovingWrite kills the worker while a sink waits for its table or for the
// answer to a write that was carried out, or was not. Other sinks cannot be held,
// so it dies somewhere.
func killInMovingWrite(r *movingRound, first bool) bool {
	r.t.Helper()
	for _, s := range r.movement.sinks {
		switch {
		case strings.HasPrefix(s.kind, "postgres"):
			return r.killAtTable(first, s.table())
		case s.kind == kindHTTP:
			return r.killAtWrite(first)
		}
	}
	return killSomewhere(r, first)
}

// killSomewhere kills the worker when some request has come, whatever it is doing
// then.
func killSomewhere(r *movingRound, first bool) bool {
	r.t.Helper()
	at := r.requests() + r.between(1, 2*len(r.movement.elements))
	r.t.Logf("the worker dies at request %d", at)
	r.ensureWorker()
	if !r.comes(first, "more requests are made", func() bool { return r.requests() >= at }) {
		return false
	}
	r.kill()
	return true
}

func (r *movingRound) killAtTable(first bool, table string) bool {
	r.t.Helper()
	r.t.Logf("the worker dies in a write to %s", table)
	if r.alive() { // the table is locked at some point of the run
		at := r.requests() + r.between(1, len(r.movement.elements))
		if !r.comes(first, "some more requests are made", func() bool { return r.requests() >= at }) {
			return false
		}
	}
	unlock := r.db.LockTable(r.t, table)
	defer unlock()
	r.ensureWorker()
	if !r.comes(first, "a sink waits for the table "+table, func() bool { return r.db.CountWaiting(r.t, table) > 0 }) {
		return false
	}
	r.kill()
	return true
}

func (r *movingRound) killAtWrite(first bool) bool {
	r.t.Helper()
	hold := r.api.HoldRequests
	if r.chance(2) {
		hold = r.api.HoldAnswer
	}
	pass := r.between(0, len(r.movement.elements)/3)
	passed := make(chan struct{}, pass)
	held := hold(func(request *http.Request) bool {
		if request.Method != http.MethodPost {
			return false
		}
		select {
		case passed <- struct{}{}:
			return false
		default:
			return true
		}
	})
	defer held.Release()
	r.t.Logf("the worker dies in a write to the API, after %d others", pass)
	r.ensureWorker()
	if !r.comes(first, "a sink writes to the API", func() bool { return held.HeldRequests() > 0 }) {
		return false
	}
	r.kill()
	return true
}

// killBeforeReport: an activity has done all it had to do, and the server does
// not know.
func killBeforeReport(r *movingRound, first bool) bool {
	r.t.Helper()
	return r.killAtMoment(first, moment{What: "activity", When: "before", Nth: r.between(1, 2)})
}

// killAfterReport: the result of an activity is in history, and no workflow
// task has taken it up.
func killAfterReport(r *movingRound, first bool) bool {
	r.t.Helper()
	return r.killAtMoment(first, moment{What: "activity", When: "after", Nth: r.between(1, 2)})
}

// killAtMoment needs a worker that knows when it has to die; one that runs
// already is stopped for it.
func (r *movingRound) killAtMoment(first bool, m moment) bool {
	r.t.Helper()
	if r.alive() {
		return killBehindPage(r, first)
	}
	if first {
		m.Nth = 1
	}
	r.t.Logf("the worker dies %s", m)
	r.startWorker(m.env()...)
	if !r.comes(first, "the worker dies "+m.String(), func() bool { return !r.alive() }) {
		return false
	}
	r.wasKilled()
	return true
}
