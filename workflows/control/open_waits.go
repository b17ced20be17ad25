package control

import (
	"time"

	"reprise/interpreter"
	"reprise/workflows/protocol"
)

// The status of a run that has not ended is a search attribute, by which lists find runs that
// people hold or have to answer. Each change of it is an event of the run's history, so it changes
// only where a status begins that people care for:
//
//   - paused: people hold the run, or all of it that is open;
//   - queued: it waits for its turn under its concurrency key, or all of it that is open does;
//   - awaiting: an attempt of a step awaits its answer, or a loop whose attempts are answered from
//     outside is running, which sends no signal for each of its iterations;
//   - retry_pending: all that is open waits for a retry, for at least MinShownWait each;
//   - running: all other runs.
//
// So an attempt costs two events at most, and none where it waits for less than MinShownWait. What
// waits in a child workflow is known from its reports (wait_report.go).

// MinShownWait is the shortest wait for a retry that changes the status of a run.
const MinShownWait = 30 * time.Second

// OpenWaits summarizes the open work of a workflow, and how much of it waits.
type OpenWaits struct {
	open  int
	of    map[interpreter.Status]int
	until time.Time // when the first wait for a retry ends; zero if only people end them
	// Expires is when the first wait reported by a child ends.
	Expires time.Time
	// Reported says that a child has reported a wait, Held that something is paused in this workflow, and fresh
	// that a wait without an end may have just begun.
	Reported, Held, fresh bool
}

// AddWork adds one piece of open work; until is the end of its wait for a retry.
func (w *OpenWaits) AddWork(status interpreter.Status, until time.Time) {
	if w.of == nil {
		w.of = map[interpreter.Status]int{}
	}
	w.open++
	w.of[status]++
	if status == interpreter.RetryPending {
		w.until = interpreter.EarlierTime(w.until, until)
	}
	if status != interpreter.Running && until.IsZero() {
		w.fresh = true
	}
}

// addReport adds the open work that a child has reported.
func (w *OpenWaits) addReport(report protocol.WaitReport) {
	fresh := w.fresh
	w.AddWork(report.Status, report.Until)
	w.fresh, w.Reported, w.Expires = fresh, true, interpreter.EarlierTime(w.Expires, report.Until)
}

// Status returns the status of a workflow with this open work.
func (w *OpenWaits) Status() interpreter.Status {
	paused, queued, waiting := w.of[interpreter.Paused], w.of[interpreter.Queued], w.of[interpreter.RetryPending]
	switch {
	case w.open == 0:
		return interpreter.Running
	case w.of[interpreter.Awaiting] > 0:
		return interpreter.Awaiting
	case paused == w.open:
		return interpreter.Paused
	case queued == w.open:
		return interpreter.Queued
	case paused+queued+waiting == w.open:
		return interpreter.RetryPending
	}
	return interpreter.Running
}

// waitReport returns the report to the parent workflow.
func (w *OpenWaits) waitReport() protocol.WaitReport {
	report := protocol.WaitReport{Status: w.Status()}
	if report.Status == interpreter.RetryPending {
		report.Until = w.until
	}
	return report
}
