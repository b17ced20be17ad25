package interpreter_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
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
	refused, driven := map[string]int{}, map[string]int{}
	for seed := range uint64(120) {
		rng := rand.New(rand.NewPCG(seed, 7))
		c := randomCall(rng)
		if seed%3 == 0 {
			index := 2
			c.index, c.size = &index, 5
			c.body = strings.Replace(c.body, "    retry:\n", "    loop: {collection: [1, 2, 3, 4, 5], dead_letter: {sink: {tool: file, path: d}}}\n    retry:\n", 1)
			c.body = strings.Replace(c.body, callSink, "", 1)
		}
		book := decode(t, c.body)
		for _, state := range statesOf(t, c.call(t), rng) {
			for range 20 {
				forged := forgeState(t, rng, state)
				call := interpreter.Task{Run: run, Visit: 1}.Call(book, book.Steps[0], interpreter.Carried{Index: c.index, Size: c.size}, rng.Float64)
				call.State = interpreter.CallState{}
				if json.Unmarshal([]byte(forged), &call.State) != nil {
					continue
				}
				next := comes(call.State)
				if call.Check() != nil {
					refused[next]++
					continue
				}
				driven[next]++
				require.NotPanics(t, func() { driveAnyhow(rng, call) }, "seed %d: %s\n%s", seed, forged, c.body)
			}
		}
	}
	for _, next := range []string{"attempt", "page", "wait", "sink", "dead letter"} {
		require.Greater(t, refused[next], 20, "%s: %v", next, refused)
		require.Greater(t, driven[next], 20, "%s: %v", next, driven)
	}
}

// comes names what a state says comes next, "" where it says nothing.
func comes(state interpreter.CallState) string {
	if len(state.Todo) == 0 {
		return ""
	}
	switch next := state.Todo[0]; {
	case next.Attempt != nil:
		return "attempt"
	case next.Wait != nil:
		return "wait"
	case next.Sink == nil:
		return "end"
	case next.Sink.Page:
		return "page"
	case next.Sink.DeadLetter:
		return "dead letter"
	}
	return "sink"
}

// TestTodoFits: a row of things to do is one that an outcome gives, or no call is
// made of it.
func TestTodoFits(t *testing.T) {
	t.Parallel()
	const (
		attempt = `{"attempt":{}}`
		another = `{"attempt":{"request":{"fields":{}}}}`
		wait    = `{"wait":{"delay":1000}}`
		page    = `{"sink":{"policy":1,"page":true}}`
		policy  = `{"sink":{"policy":1}}`
		after   = `{"sink":{"after":1}}`
		dead    = `{"sink":{"dead_letter":true}}`
		end     = `{"end":{"status":"success"}}`
		failed  = `{"end":{"status":"error","error":{"kind":"http"}}}`
		waits   = `{"sink":{"after":1,"state":{"todo":[{"wait":{"delay":1}},{"attempt":{}}]}}}`
		begun   = `{"sink":{"policy":1,"page":true,"state":{"todo":[{"end":{"status":"success"}}]}}}`
	)
	row := func(todo ...string) string { return "[" + strings.Join(todo, ",") + "]" }
	for todo, want := range map[string]string{
		row():                                       "",
		row(attempt):                                "",
		row(wait, attempt):                          "",
		row(page, another):                          "",
		row(page, wait, another):                    "",
		row(begun, wait, another):                   "",
		row(end):                                    "",
		row(failed):                                 "",
		row(page, end):                              "",
		row(page, policy, after, end):               "",
		row(waits, end):                             "",
		row(policy, dead, failed):                   "",
		row(dead, failed):                           "",
		row(`{}`):                                   "not one thing",
		row(`{"attempt":{},"wait":{}}`, end):        "not one thing",
		row(another):                                "another request",
		row(wait, another):                          "another request",
		row(attempt, end):                           "more than sinks",
		row(attempt, attempt):                       "waits for nothing",
		row(page, attempt):                          "has no request",
		row(page, wait, attempt):                    "has no request",
		row(page):                                   "no attempt and to no end",
		row(page, wait):                             "no attempt and to no end",
		row(wait):                                   "no attempt and to no end",
		row(wait, end):                              "more than sinks",
		row(wait, wait, attempt):                    "waits for nothing",
		row(page, policy, wait, attempt):            "has no request",
		row(page, policy, wait, another):            "waits for nothing",
		row(dead, policy, failed):                   "has not failed",
		row(`{"wait":{"delay":-1}}`, attempt):       "waits for nothing",
		row(after, attempt):                         "waits for nothing",
		row(after):                                  "no attempt and to no end",
		row(page, page, end):                        "comes another",
		row(policy, page, end):                      "comes another",
		row(end, end):                               "more than sinks",
		row(end, after):                             "no attempt and to no end",
		row(dead, end):                              "has not failed",
		row(policy, waits, end):                     "comes another",
		row(`{"sink":{"policy":9}}`, end):           "there is no sink",
		row(`{"sink":{"policy":-1}}`, end):          "there is no sink",
		row(`{"sink":{"policy":2}}`, end):           "there is no sink",
		row(`{"sink":{"after":2}}`, end):            "there is no sink",
		row(`{"sink":{}}`, end):                     "there is no sink",
		row(`{"sink":{"page":true}}`, another):      "there is no sink",
		row(`{"sink":{"after":1,"page":true}}`):     "there is no sink",
		row(`{"sink":{"policy":1,"after":1}}`, end): "there is no sink",
		row(`{"sink":{"dead_letter":true,"page":true}}`, failed):                   "there is no sink",
		row(`{"end":{"status":"over"}}`):                                           `status "over"`,
		row(`{"end":{"status":"error"}}`):                                          "a failure without an error",
		row(page, `{"end":{"status":"error"}}`):                                    "a failure without an error",
		row(`{"sink":{"after":1,"state":{"todo":[{"wait":{"delay":1}}]}}}`, end):   "the sink under way: ",
		row(`{"sink":{"after":1,"state":{"todo":[{"sink":{"after":1}}]}}}`, end):   "the sink under way: ",
		row(`{"sink":{"after":1,"state":{"attempts":-1}}}`, end):                   "the sink under way: ",
		row(`{"sink":{"after":1,"state":{"counters":{"policies":[{}]}}}}`, failed): "the sink under way: ",
	} {
		index := 1
		c := &callCase{visit: 1, index: &index, size: 3, element: "b", body: `workflow:
  - step: fetch
    tool: http
    url: http://x/
    retry:
      - when: "{{ response.more }}"
        then:
          next_call: {params: {n: "{{ response.n }}"}}
          per_page: {sink: {tool: file, path: p}}
          sink: {tool: file, path: a}
      - when: "{{ error is defined }}"
        then: {max_attempts: 2}
    loop:
      collection: [a, b, c]
      sink: {tool: file, path: b}
      dead_letter: {sink: {tool: file, path: d}}
`}
		call := c.call(t)
		require.NoError(t, json.Unmarshal([]byte(todo), &call.State.Todo), todo)
		err := call.Check()
		if want == "" {
			require.NoError(t, err, todo)
			continue
		}
		require.ErrorContains(t, err, want, todo)
	}
}

// TestBegunCallHasSomethingToDo: a state without it would begin again.
func TestBegunCallHasSomethingToDo(t *testing.T) {
	t.Parallel()
	call := pagesOf(t, "", "")
	require.NoError(t, call.Check())
	page(call, started, 1)
	require.NoError(t, call.Check())
	call.State.Todo = nil
	require.ErrorContains(t, call.Check(), "nothing is to do")
	require.ErrorContains(t, call.Resume([]byte(`{"state":{"written":2}}`)), "write 2 does not say how the call goes on")
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
	case interpreter.DoHold:
		call.Settle(interpreter.Settlement{Skip: rng.IntN(2) == 0}, now)
	case interpreter.DoWait:
		call.Waited()
	case interpreter.DoSink:
		if rng.IntN(2) == 0 {
			step(rng, command.Sink, now, func() {})
			call.SinkLeft(command.Sink)
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
	if call.Waits(started) != nil {
		call.WaitedUntil(started, started)
	}
	for round := 0; round < 40 && !call.Finished(); round++ {
		now := started.Add(time.Duration(round) * time.Minute)
		call.TurnsPage()
		if call.Detachable() {
			call.Apply(interpreter.Driven{State: call.Handed(true)}, now)
		}
		call.Verdict()
		call.Ledgers(now)
		mark := call.Mark()
		if call.SinkDue() {
			_, _ = call.NoteOf(mark, interpreter.NotedOnce, now)
			call.Fixed()
		}
		call.Snapshot()
		step(rng, call, now, func() {})
	}
	call.Cancel(started)
}

func anyOutcome(rng *rand.Rand) interpreter.Outcome {
	seconds := 2.0
	switch rng.IntN(7) {
	case 4:
		return interpreter.Outcome{Err: &interpreter.ErrorObject{Kind: interpreter.KindHeld, Held: &interpreter.Hold{Version: rng.IntN(3)}}}
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
	"todo", "todo", "todo", "todo", "todo", "collector", "pager", "paged_by", "counters", "turn", "matched", "last", "request",
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
			nil, -1, 0, 1, 3, 99, 1 << 40, "", "x", "error", "success", true, false,
			[]any{},
			[]any{map[string]any{}},
			map[string]any{},
			map[string]any{"policy": 1},
			map[string]any{"policy": 1, "page": true},
			map[string]any{"after": 1},
			map[string]any{"dead_letter": true},
			map[string]any{"status": "error"},
			[]any{map[string]any{"attempt": map[string]any{}}},
			[]any{map[string]any{"wait": map[string]any{"delay": 1}}, map[string]any{"attempt": map[string]any{}}},
			[]any{map[string]any{"sink": map[string]any{"after": 9}}, map[string]any{"end": map[string]any{"status": "success"}}},
			[]any{map[string]any{"sink": map[string]any{"policy": 1}}, map[string]any{"end": map[string]any{"status": "success"}}},
			[]any{map[string]any{"sink": map[string]any{"dead_letter": true}}, map[string]any{"end": map[string]any{"status": "error"}}},
			[]any{map[string]any{"end": map[string]any{"status": "success"}}},
			[]any{1, 99},
		}[rng.IntN(28)])
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
