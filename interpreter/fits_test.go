package interpreter_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/interpreter"
)

// TestForgedStatesDoNotPanic takes states of random calls, changes something in
// each, and drives those that are still taken for states of the call. They may do
// anything but panic.
func TestForgedStatesDoNotPanic(t *testing.T) {
	t.Parallel()
	refused, driven := map[interpreter.Phase]int{}, map[interpreter.Phase]int{}
	for seed := range uint64(120) {
		rng := rand.New(rand.NewPCG(seed, 7))
		c := randomCall(rng)
		book := decode(t, c.body)
		for _, state := range statesOf(t, c.call(t), rng) {
			for range 20 {
				forged := forgeState(t, rng, state)
				call := interpreter.Task{Run: run, Visit: 1}.Call(book, book.Steps[0], interpreter.Carried{}, rng.Float64)
				call.State = interpreter.CallState{}
				if json.Unmarshal([]byte(forged), &call.State) != nil {
					continue
				}
				phase := call.State.Phase
				if call.Check() != nil {
					refused[phase]++
					continue
				}
				driven[phase]++
				require.NotPanics(t, func() { driveAnyhow(rng, call) }, "seed %d: %s\n%s", seed, forged, c.body)
			}
		}
	}
	for _, phase := range []interpreter.Phase{
		interpreter.PhaseAttempt, interpreter.PhasePage, interpreter.PhaseWait, interpreter.PhaseSinks,
	} {
		require.Greater(t, refused[phase], 20, "%s: %v", phase, refused)
		require.Greater(t, driven[phase], 20, "%s: %v", phase, driven)
	}
}

// statesOf are states that a call goes through, each of which fits.
func statesOf(t *testing.T, call *interpreter.Call, rng *rand.Rand) []any {
	t.Helper()
	var states []any
	for round := 0; round < 60 && !call.Finished(); round++ {
		step(rng, call, started.Add(time.Duration(round)*time.Second), func() {
			require.NoError(t, call.Check())
			text, err := json.Marshal(call.State)
			require.NoError(t, err)
			var state any
			require.NoError(t, json.Unmarshal(text, &state))
			states = append(states, state)
		})
	}
	return states
}

// step does one thing that a call asks for. look is called while it has its sink
// under way too.
func step(rng *rand.Rand, call *interpreter.Call, now time.Time, look func()) {
	command := call.Next(now)
	look()
	switch command.Kind {
	case interpreter.DoAttempt:
		call.Attempted(anyOutcome(rng), now)
	case interpreter.DoWait:
		call.Waited()
	case interpreter.DoSink:
		if rng.IntN(2) == 0 {
			step(rng, command.Sink, now, func() {})
			call.State.Sink = &command.Sink.State
			look()
		}
		if rng.IntN(3) > 0 {
			call.SinkDone(interpreter.CallResult{Status: interpreter.StatusSuccess}, now)
			return
		}
		call.SinkDone(interpreter.CallResult{
			Status: interpreter.StatusError, Error: &interpreter.ErrorObject{Kind: interpreter.KindTool, Message: "no"},
		}, now)
	case interpreter.DoFinish:
	}
}

// driveAnyhow uses all of a call that its hosts use.
func driveAnyhow(rng *rand.Rand, call *interpreter.Call) {
	if call.State.Phase == interpreter.PhaseWait {
		call.WaitedUntil(started, started)
	}
	for round := 0; round < 40 && !call.Finished(); round++ {
		now := started.Add(time.Duration(round) * time.Minute)
		call.TurnsPage()
		if call.Detachable() {
			state := call.Detach()
			call.Attach(interpreter.Driven{State: &state}, now)
		}
		call.Verdict()
		call.Ledgers(now)
		mark := call.Mark()
		if call.SinkDue() {
			_, _ = call.NoteOf(mark, now)
			call.Fixed()
		}
		call.Snapshot()
		step(rng, call, now, func() {})
	}
	call.Cancel(started)
}

func anyOutcome(rng *rand.Rand) interpreter.Outcome {
	seconds := 2.0
	switch rng.IntN(6) {
	case 0:
		return interpreter.Outcome{Err: &interpreter.ErrorObject{Kind: interpreter.KindHTTP, Class: interpreter.ClassRetryable, Status: 503}}
	case 1:
		return interpreter.Outcome{Err: &interpreter.ErrorObject{
			Kind: interpreter.KindHTTP, Class: interpreter.ClassRateLimited, Status: 429, RetryAfter: &seconds,
		}}
	case 2:
		return interpreter.Outcome{Data: map[string]any{"state": "running"}}
	case 3:
		return interpreter.Outcome{}
	}
	n := rng.IntN(1000)
	return interpreter.Outcome{Data: map[string]any{"more": true, "n": n, "rows": []any{n}, "next": fmt.Sprintf("?p=%d", n)}}
}

// stateKeys are those of a state on which the machine relies most.
var stateKeys = []string{
	"phase", "phase", "sinks", "sinks", "sink", "collector", "pager", "after", "paged_by", "counters", "wait", "result", "matched", "last", "request",
	"attempts", "request_attempts", "successes", "collected", "detached", "restarts", "seen",
}

// forgeState is a state as JSON in which one value or two are others.
func forgeState(t *testing.T, rng *rand.Rand, state any) string {
	t.Helper()
	text, err := json.Marshal(state)
	require.NoError(t, err)
	var forged any
	require.NoError(t, json.Unmarshal(text, &forged))
	for range 1 + rng.IntN(2) {
		var places []func(any)
		if top, isMap := forged.(map[string]any); isMap && rng.IntN(3) > 0 {
			for _, key := range stateKeys {
				places = append(places, func(x any) { top[key] = x })
			}
		} else {
			collectPlaces(forged, &places)
		}
		places[rng.IntN(len(places))]([]any{
			nil, -1, 0, 1, 3, 99, 1 << 40, "", "x", "attempt", "wait", "page_sink", "sinks", "done", "error", true, false,
			[]any{},
			[]any{map[string]any{}},
			map[string]any{},
			map[string]any{"policy": 1},
			map[string]any{"after": 1},
			[]any{map[string]any{"after": 9}},
			[]any{map[string]any{"policy": 1}},
			[]any{map[string]any{"dead_letter": true}},
			[]any{1, 99},
		}[rng.IntN(26)])
	}
	text, err = json.Marshal(forged)
	require.NoError(t, err)
	return string(text)
}

// collectPlaces lists what changes each value within another.
func collectPlaces(v any, places *[]func(any)) {
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			*places = append(*places, func(x any) { v[key] = x })
			collectPlaces(v[key], places)
		}
	case []any:
		for i := range v {
			*places = append(*places, func(x any) { v[i] = x })
			collectPlaces(v[i], places)
		}
	}
}
