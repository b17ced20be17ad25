package interpreter_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/interpreter"
	"reprise/interpreter/ratelimit"
)

func TestControl(t *testing.T) {
	t.Parallel()
	var control interpreter.Control
	require.False(t, control.Resume(""), "nothing is held")
	require.True(t, control.Pause("load"))
	require.True(t, control.Pause("fetch"))
	require.False(t, control.Pause("fetch"), "it is held already")
	require.Equal(t, []string{"fetch", "load"}, control.Steps)
	require.True(t, control.IsPaused("fetch"))
	require.False(t, control.IsPaused("other"))
	before := control
	require.True(t, control.Resume("fetch"))
	require.False(t, control.IsPaused("fetch"))
	require.True(t, before.IsPaused("fetch"), "a copy stays what it was")
	require.True(t, control.Pause(""))
	require.True(t, control.IsPaused("other"))
	require.False(t, control.Resume("other"), "the run is paused, not the step alone")
	require.True(t, control.Resume(""), "and with the run its steps go on")
	require.False(t, control.IsPaused("load"))
	require.Equal(t, 5, control.Version)
	require.True(t, control.Pause(""))
	require.True(t, control.Pause("load"), "a step of a paused run is held for itself as well")
	require.False(t, control.Pause(""), "it is paused already")
	control.TuneStep("load", interpreter.Tuning{MaxConcurrency: 1})
	require.Equal(t, 8, control.Version)
}

// TestHolders: of all that is paused it is known who did that.
func TestHolders(t *testing.T) {
	t.Parallel()
	var control interpreter.Control
	ada, bob, cid := interpreter.Said{By: "ada"}, interpreter.Said{By: "bob"}, interpreter.Said{By: "cid"}
	control.Pause("load")
	control.RecordSaid(ada)
	before := control
	control.Pause("fetch")
	control.RecordSaid(bob)
	control.TuneStep("fetch", interpreter.Tuning{MaxConcurrency: 1})
	control.RecordSaid(cid)
	require.Equal(t, []interpreter.Said{ada, bob, cid}, []interpreter.Said{control.PausedBy("load"), control.PausedBy("fetch"), control.Said})
	require.Len(t, before.Held, 1, "a copy stays what it was")
	control.Pause("")
	control.RecordSaid(cid)
	require.Equal(t, cid, control.PausedBy("load"), "it holds all of them")
	control.Resume("")
	control.RecordSaid(ada)
	require.Empty(t, control.Held)
	require.Zero(t, control.PausedBy("load"))
}

func TestTunings(t *testing.T) {
	t.Parallel()
	var control interpreter.Control
	control.TuneStep("fetch", interpreter.Tuning{MaxConcurrency: 5})
	before := control
	control.TuneStep("fetch", interpreter.Tuning{Rate: &interpreter.Rate{Requests: 20, PerSeconds: 1}})
	require.Equal(t, 5, control.TuningOf("fetch").MaxConcurrency, "one word leaves the other")
	require.Nil(t, before.TuningOf("fetch").Rate, "a copy stays what it was")
	require.Equal(t, interpreter.Tuning{}, control.TuningOf("load"))

	in := interpreter.ToolInput{Tool: "http", Auth: "api"}
	rate := control.TuningOf("fetch").Rate
	require.Equal(t, &ratelimit.Limit{Key: "http/api", Requests: 20, PerSeconds: 1}, rate.OverrideLimit(nil, in))
	limit := ratelimit.Limit{Key: "k", Playbook: "p", Requests: 1, PerSeconds: 2}
	require.Equal(t, &ratelimit.Limit{Key: "k", Playbook: "p", Requests: 20, PerSeconds: 1}, rate.OverrideLimit(&limit, in))
	require.Equal(t, 1, limit.Requests)
	require.Equal(t, &limit, (*interpreter.Rate)(nil).OverrideLimit(&limit, in))
}

// TestControlOfAStep: below a step nothing is known of the others.
func TestControlOfAStep(t *testing.T) {
	t.Parallel()
	var control interpreter.Control
	require.Equal(t, control, control.OfStep("fetch"))
	for _, step := range []string{"fetch", "load"} {
		control.Pause(step)
		control.TuneStep(step, interpreter.Tuning{MaxConcurrency: 5})
		control.RecordSaid(interpreter.Said{By: "ada", Reason: "why"})
	}
	want := interpreter.Control{Version: 4, Steps: []string{"fetch"}, Tunings: map[string]interpreter.Tuning{"fetch": {MaxConcurrency: 5}}}
	require.Equal(t, want, control.OfStep("fetch"))
	require.Equal(t, want, want.OfStep("fetch"))
	require.Equal(t, interpreter.Control{Version: 4}, control.OfStep("other"))
	control.Pause("")
	require.Equal(t, interpreter.Control{Version: 5, Paused: true}, control.OfStep("other"))
}

// TestControlIsBounded passes maxControl.
func TestControlIsBounded(t *testing.T) {
	t.Parallel()
	var control interpreter.Control
	held := 0
	for control.CheckSize() == nil {
		control.Pause(fmt.Sprintf("s%d", held))
		control.RecordSaid(interpreter.Said{By: strings.Repeat("b", 500), Reason: strings.Repeat("r", 500)})
		held++
	}
	require.Equal(t, 48, held)
	require.EqualError(t, control.CheckSize(), "the pauses and settings, with their authors and reasons, would have 50674 bytes, and a run can keep 50000; "+
		"pause the whole run, resume steps first, or give a shorter reason")
}
