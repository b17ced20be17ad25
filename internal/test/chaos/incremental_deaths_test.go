package chaos_test

import (
	"context"
	"slices"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"reprise/internal/test/testenv"
	"reprise/interpreter"
	"reprise/workflows/protocol"
)

// startAndHold starts a run and returns at some moment of it: while a request is held, until
// release lets it go on, or soon after one.
func (r *incrementalRound) startAndHold() (run client.WorkflowRun, release func()) {
	if r.chance(2) {
		run, release, _ = r.held()
		return run, release
	}
	wanted := r.requests() + r.between(1, 1+2*len(r.source.shops))
	run = r.start()
	r.await("some requests have been made, or the run ends", func() bool { return r.requests() >= wanted || r.ended() })
	time.Sleep(time.Duration(r.between(0, 50)) * time.Millisecond)
	return run, func() {}
}

// killServerInRun: what the worker has done meanwhile cannot be told, or it is killed as well.
func (r *incrementalRound) killServerInRun() {
	run, release := r.startAndHold()
	r.server.Kill()
	r.kills++
	if r.chance(2) {
		release()
	}
	both := r.chance(3)
	if both {
		r.kill()
	}
	r.server.Start(r.t)
	release()
	if both {
		r.startWorker()
	}
	r.finish(run)
}

func (r *incrementalRound) killServerBehindRun() {
	r.finish(r.start())
	r.server.Kill()
	r.kills++
	r.server.Start(r.t)
}

// killDatabaseInRun: it is away while a page is read, or is written.
func (r *incrementalRound) killDatabaseInRun() {
	run, release := r.startAndHold()
	r.db.Kill(r.t)
	r.kills++
	if r.chance(2) {
		release()
		time.Sleep(time.Duration(r.between(0, 500)) * time.Millisecond)
	}
	r.db.Start(r.t)
	release()
	r.endWithout(run)
}

// killDatabaseInWrite: it has begun to write rows and state.
func (r *incrementalRound) killDatabaseInWrite() {
	unlock := r.db.LockTable(r.t, "kept")
	run := r.start()
	r.await("a sink waits for its table, or the run ends", func() bool { return r.db.CountWaiting(r.t, "kept") > 0 || r.ended() })
	r.db.Kill(r.t)
	r.kills++
	unlock()
	r.db.Start(r.t)
	r.endWithout(run)
}

// killDatabaseBehindRun: the next run may claim its state before the database is back.
func (r *incrementalRound) killDatabaseBehindRun() {
	r.finish(r.start())
	r.db.Kill(r.t)
	r.kills++
	if r.chance(2) {
		r.db.Start(r.t)
		return
	}
	run := r.start()
	time.Sleep(time.Duration(r.between(0, 500)) * time.Millisecond)
	r.db.Start(r.t)
	r.endWithout(run)
}

// endWithout waits for the end of a run that had no database for a while. It may fail where
// nothing is tried again.
func (r *incrementalRound) endWithout(run client.WorkflowRun) {
	r.t.Helper()
	if r.of.again {
		r.finish(run)
		return
	}
	r.await("the run ends", r.ended)
	if err := run.Get(r.t.Context(), nil); err != nil {
		r.t.Log(err)
	}
}

// mortal gives the round servers of its own, which it may kill.
func (r *incrementalRound) mortal() {
	r.ownServer()
	if r.of.isPostgres() {
		r.db = testenv.PostgresServer(r.t)
	}
}

// terminateAndMeet terminates a run while it holds the state for which another one waits.
func (r *incrementalRound) terminateAndMeet() {
	first, release, is := r.held()
	defer release()
	if !is { // it had fewer requests
		return
	}
	second := r.start()
	r.until("the second run waits for the state", func() bool { return r.waitsForState(second) })
	if r.chance(2) {
		release() // what the first one writes may be the last that is its own
	}
	require.NoError(r.t, r.env.Client().TerminateWorkflow(r.t.Context(), first.GetID(), "", "for the test"))
	release()
	r.finish(second)
}

// waitsForState reports whether a run says that another one has its state.
func (r *incrementalRound) waitsForState(run client.WorkflowRun) bool {
	progress, found := r.progress(run)
	return found && slices.ContainsFunc(progress.Steps, func(step protocol.StepRecord) bool { return step.Reason == interpreter.ReasonState })
}

// progress is what a run says of itself; false where it cannot.
func (r *incrementalRound) progress(run client.WorkflowRun) (progress protocol.Progress, found bool) {
	ctx, cancel := context.WithTimeout(r.t.Context(), beat*20)
	defer cancel()
	answer, err := r.env.Client().QueryWorkflow(ctx, run.GetID(), run.GetRunID(), protocol.ProgressQuery)
	return progress, err == nil && answer.Get(&progress) == nil
}
