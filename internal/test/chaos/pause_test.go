package chaos_test

import (
	"context"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"reprise/internal/test/testenv"
	"reprise/workflows/protocol"
)

const (
	// heldWithin is how long after a pause attempts may still begin, and slack what
	// a crowded machine adds to that.
	heldWithin = 2 * time.Second
	slack      = 3 * time.Second
	// noticed is a pause in which the server notices that a worker is gone, and gives
	// what that one did to another.
	noticed = 30 * time.Second
)

// halt is a time in which the run was paused, or its loop alone: from the answer
// to the pause until somebody resumed it.
type halt struct {
	step     string
	from, to time.Time
}

func (h halt) of(item, items int) bool { return h.step == "" || item < items }

// pauseAndResume pauses the run while a request is under way, and some more times
// while it goes on. Now and then the worker is killed meanwhile, and another one
// gets the attempts that the first one had begun.
func pauseAndResume(r *round) {
	r.holdRequest()
	for n := range r.between(1, 3) {
		if n > 0 {
			more := r.api.count() + r.between(1, max(r.scenario.attempts()-r.api.count(), 1))
			over := false
			r.await("more requests come, or the run ends", func() bool {
				over = r.ended()
				return over || r.api.count() >= more
			})
			if over {
				return
			}
		}
		h := halt{step: []string{"", "fetch"}[r.random.IntN(2)]}
		if n > 0 && r.chance(2) {
			r.api.release()
		}
		standing, err := r.steer(protocol.PauseUpdate, h.step)
		if err != nil && n > 0 && r.isOver() {
			return
		}
		require.NoError(r.t, err, "pause %q", h.step)
		require.True(r.t, standing.Changed, "pause %q", h.step)
		h.from = time.Now()
		r.holdOn(n == 0)
		h.to = time.Now()
		standing, err = r.steer(protocol.ResumeUpdate, h.step)
		if err != nil && r.isOver() {
			return // what was paused had nothing left to do
		}
		require.NoError(r.t, err, "resume %q", h.step)
		require.True(r.t, standing.Changed, "resume %q", h.step)
		r.halts = append(r.halts, h)
		r.t.Logf("paused %q at %s for %s", h.step, h.from.Format(time.TimeOnly), h.to.Sub(h.from).Round(time.Millisecond))
	}
}

// holdOn lets a pause last.
func (r *round) holdOn(first bool) {
	d := heldWithin + slack + time.Duration(r.between(500, 3000))*time.Millisecond
	kill := !r.short && first && r.chance(2)
	if kill {
		d += noticed
		r.kill()
	}
	r.api.release()
	if kill {
		r.startWorker()
	}
	over := time.Now().Add(d)
	r.await("the pause is over", func() bool { return time.Now().After(over) })
}

// steer sends a command to the run.
func (r *stage) steer(update, step string) (protocol.CommandResult, error) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	var standing protocol.CommandResult
	handle, err := r.env.Client().UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
		WorkflowID: r.run.GetID(), UpdateName: update, Args: []any{protocol.CommandInput{Step: step, By: "chaos"}},
		WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	if err != nil {
		return standing, err
	}
	return standing, handle.Get(ctx, &standing)
}

// isOver reports whether the run has ended, or does in a moment.
func (r *stage) isOver() bool {
	for range 20 {
		if r.ended() {
			return true
		}
		time.Sleep(beat)
	}
	return false
}

// requirePaused: what was paused began no attempt, and something was.
func requirePaused(r *round, _ []testenv.RunHistory) {
	r.t.Helper()
	require.NotEmpty(r.t, r.halts, "nothing was paused")
	for _, made := range r.api.log() {
		for _, h := range r.halts {
			held := h.of(made.item, r.scenario.items) && made.arrived.After(h.from.Add(heldWithin+slack)) && made.arrived.Before(h.to)
			require.False(r.t, held, "item %d, attempt %d began %s after %q was paused", made.item, made.attempt, made.arrived.Sub(h.from), h.step)
		}
	}
}
