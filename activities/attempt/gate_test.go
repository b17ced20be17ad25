package attempt_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/activities/attempt"
	"reprise/internal/test/testenv"
	"reprise/interpreter"
)

// TestGateAsksOncePerPatience: however many attempts begin, the server is asked
// about their run once in a while.
func TestGateAsksOncePerPatience(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	gate := attempt.NewGate(func(context.Context, string) (interpreter.Control, error) {
		asked.Add(1)
		return interpreter.Control{Version: 1, Paused: true}, nil
	})
	var wait sync.WaitGroup
	for range 100 {
		wait.Go(func() { require.True(t, gate.Control(t.Context(), "run", 0).Paused) })
	}
	testenv.Wait(t, wait.Wait, "the answers of the gate")
	require.EqualValues(t, 1, asked.Load())
	gate.Control(t.Context(), "another", 0)
	require.EqualValues(t, 2, asked.Load(), "runs are asked about one by one")
	require.Eventually(t, func() bool {
		gate.Control(t.Context(), "run", 0)
		return asked.Load() > 2
	}, testenv.Within(time.Minute), 10*time.Millisecond, "what is known grows old")
}

// TestGateKnowsNothingOlderThanTheWorkflow: an attempt that was scheduled after a
// command does not go by what was known before it.
func TestGateKnowsNothingOlderThanTheWorkflow(t *testing.T) {
	t.Parallel()
	control := interpreter.Control{}
	gate := attempt.NewGate(func(context.Context, string) (interpreter.Control, error) { return control, nil })
	require.True(t, control.Pause(""))
	require.True(t, gate.Control(t.Context(), "run", 0).Paused)
	require.True(t, control.Resume(""))
	require.False(t, gate.Control(t.Context(), "run", control.Version).Paused)
}

// TestGateGoesByWhatItKnew: a server that does not answer changes nothing.
func TestGateGoesByWhatItKnew(t *testing.T) {
	t.Parallel()
	var away atomic.Bool
	gate := attempt.NewGate(func(context.Context, string) (interpreter.Control, error) {
		if away.Load() {
			return interpreter.Control{}, errors.New("away")
		}
		return interpreter.Control{Version: 1, Steps: []string{"fetch"}}, nil
	})
	require.True(t, gate.Control(t.Context(), "run", 0).IsPaused("fetch"))
	away.Store(true)
	require.True(t, gate.Control(t.Context(), "run", 2).IsPaused("fetch"))
	require.False(t, gate.Control(t.Context(), "new", 0).IsPaused("fetch"))
}
