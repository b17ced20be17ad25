package chaos_test

import (
	"net/http"
	"strings"
)

// maxKills is how often the worker is killed in a moving round. An attempt whose
// worker is lost four times has failed.
const maxKills = 3

// strike kills the worker some times: while it asks for the page behind one that
// is written, in a sink, or in its talk with the server. The first kill comes in
// any case, others where the run has not ended before.
func (r *movingRound) strike() {
	r.t.Helper()
	kills := r.between(1, maxKills)
	for n := 1; n <= kills; n++ {
		first := n == 1
		var struck bool
		switch r.random.IntN(6) {
		case 0:
			struck = r.killInMovingWrite(first)
		case 1:
			struck = r.killBeforeItIsTold(first)
		case 2:
			struck = r.killAfterItWasTold(first)
		default:
			struck = r.killBehindPage(first)
		}
		if !struck {
			break
		}
	}
	if r.alive() {
		return
	}
	r.startWorker()
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
func (r *movingRound) killBehindPage(first bool) bool {
	r.t.Helper()
	most := r.movement.leastReads() - len(r.movement.elements)
	if !first {
		most = len(r.movement.elements)
	}
	pass := r.between(0, max(most-1, 0)/2)
	passed := make(chan struct{}, pass)
	hold := r.api.Hold(func(request *http.Request) bool {
		if !goesOn(request) {
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
	if !r.comes(first, "another page is asked for", func() bool { return hold.Waiting() > 0 }) {
		return false
	}
	r.kill()
	return true
}

// goesOn reports whether a request reads another page than the first.
func goesOn(request *http.Request) bool {
	query := request.URL.Query()
	return strings.HasPrefix(request.URL.Path, "/api/v1/moving/") &&
		(query.Get("after") != "" || query.Get("offset") != "" && query.Get("offset") != "0")
}

// killInMovingWrite kills the worker while a sink waits for its table or for the
// answer to a write that was carried out, or was not. Other sinks cannot be held,
// so it dies somewhere.
func (r *movingRound) killInMovingWrite(first bool) bool {
	r.t.Helper()
	for _, s := range r.movement.sinks {
		switch {
		case strings.HasPrefix(s.kind, "postgres"):
			return r.killAtTable(first, s.table())
		case s.kind == kindHTTP:
			return r.killAtWrite(first)
		}
	}
	return r.killSomewhere(first)
}

// killSomewhere kills the worker when some request has come, whatever it is doing
// then.
func (r *movingRound) killSomewhere(first bool) bool {
	r.t.Helper()
	at := r.requests() + r.between(1, r.movement.leastReads())
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
	unlock := r.db.Lock(r.t, table)
	defer unlock()
	r.ensureWorker()
	if !r.comes(first, "a sink waits for the table "+table, func() bool { return r.db.Waiting(r.t, table) > 0 }) {
		return false
	}
	r.kill()
	return true
}

func (r *movingRound) killAtWrite(first bool) bool {
	r.t.Helper()
	hold := r.api.Hold
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
	if !r.comes(first, "a sink writes to the API", func() bool { return held.Waiting() > 0 }) {
		return false
	}
	r.kill()
	return true
}

// killBeforeItIsTold: an activity has done all it had to do, and the server does
// not know.
func (r *movingRound) killBeforeItIsTold(first bool) bool {
	r.t.Helper()
	return r.killAtMoment(first, moment{What: "activity", When: "before", Nth: r.between(1, 2)})
}

// killAfterItWasTold: the result of an activity is in history, and no workflow
// task has taken it up.
func (r *movingRound) killAfterItWasTold(first bool) bool {
	r.t.Helper()
	return r.killAtMoment(first, moment{What: "activity", When: "after", Nth: r.between(1, 2)})
}

// killAtMoment needs a worker that knows when it has to die; one that runs
// already is stopped for it.
func (r *movingRound) killAtMoment(first bool, m moment) bool {
	r.t.Helper()
	if r.alive() {
		return r.killBehindPage(first)
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
