package workflows_test

import (
	"encoding/json"
	"errors"
	"flag"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"reprise/internal/test/testenv"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/workflows/protocol"
)

var (
	forgeries   = flag.Int("forgeries", 1500, "how many forged inputs to try")
	forgerySeed = flag.Uint64("forgery.seed", 1, "seed of the forged inputs; 0 draws a new seed")
)

// given is what a client starts a workflow with.
type given struct {
	name     string
	workflow string
	args     []any // as JSON has them: the input, and the script of its task
}

// TestForgedInputsEnd: whatever a client writes into the input of a run, of one that
// continues, of a reprocess or of a child, the workflow runs or is refused. It never
// panics, and never keeps from ending.
func TestForgedInputsEnd(t *testing.T) {
	t.Parallel()
	inputs := clientInputs(t)
	seed := *forgerySeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-forgery.seed=%d", seed)
	random := rand.New(rand.NewPCG(seed, seed))
	endings := map[string]int{}
	for i := range *forgeries {
		forged := inputs[random.IntN(len(inputs))]
		forged.args = clone(forged.args).([]any)
		for range 1 + random.IntN(3) {
			forge(random, forged.args)
		}
		ending := forged.ending(t)
		encoded, _ := json.Marshal(forged.args)
		require.NotContains(t, []string{"panic", "hangs"}, ending, "forgery %d of %s: %s", i, forged.name, encoded)
		endings[ending]++
	}
	t.Logf("%v", endings)
	require.Greater(t, endings["refused"], *forgeries/10)
	require.Greater(t, endings["ran"], *forgeries/10)
}

// TestClientsWriteNoState: a run that follows another history, as cron schedules and
// retries do too, takes a state only from that history.
func TestClientsWriteNoState(t *testing.T) {
	t.Parallel()
	for _, input := range clientInputs(t) {
		want := "refused"
		if input.name == "run" || input.name == "reprocess" {
			want = "ran"
		}
		require.Equal(t, want, input.ending(t), input.name)
	}
}

// ending says how a workflow with the input ends that is retried: its history follows
// another one.
func (g given) ending(t *testing.T) string {
	t.Helper()
	s := newStage(t, func(n int, _ interpreter.ToolInput) (any, error) {
		if n%3 == 1 {
			return nil, unavailable()
		}
		return map[string]any{"rows": []any{n}, "next": nil}, nil
	})
	s.env.SetTestTimeout(testenv.Within(20 * time.Second))
	s.env.SetContinuedExecutionRunID("before")
	var args []any
	for _, arg := range g.args {
		encoded, err := json.Marshal(arg)
		require.NoError(t, err)
		args = append(args, json.RawMessage(encoded))
	}
	s.env.ExecuteWorkflow(g.workflow, args...)
	if !s.env.IsWorkflowCompleted() {
		return "hangs"
	}
	err := s.env.GetWorkflowError()
	var panicked *temporal.PanicError
	var timeout *temporal.TimeoutError
	var refused *temporal.ApplicationError
	switch {
	case errors.As(err, &panicked):
		t.Logf("%v\n%s", panicked, panicked.StackTrace())
		return "panic"
	case errors.As(err, &timeout):
		return "hangs"
	case errors.As(err, &refused) && (refused.Type() == protocol.InvalidInput || refused.Type() == protocol.InvalidPlaybook):
		return "refused"
	case err != nil && strings.Contains(err.Error(), "unable to decode"):
		return "undecodable"
	}
	return "ran"
}

// clientInputs are a run, a reprocess, both with a state that a client has written, and
// children without a parent.
func clientInputs(t *testing.T) []given {
	t.Helper()
	origin := interpreter.RunInfo{WorkflowID: "origin", RunID: "first", Playbook: "test"}
	again := &protocol.Reprocess{Origin: origin, Loops: []protocol.ReprocessLoop{{
		Step: "each", Visit: 1, Args: expression.Of(map[string]any{"a": 1}), Vars: expression.Of(map[string]any{"v": 1}),
		Steps:    expression.Of(map[string]any{"fetch": map[string]any{"status": "success"}}),
		Elements: []expression.Value{expression.Of("b"), expression.Of("d")}, Subset: protocol.Subset{Indexes: []int{1, 3}, Size: 5},
	}}}
	state := &protocol.RunState{RunFrame: protocol.RunFrame{Run: origin}, RunPath: protocol.RunPath{Routing: interpreter.Routing{
		Visits: map[string]int{"fetch": 1}, Waiting: []interpreter.Arrival{{Step: "each"}},
	}}}
	batch := batchOfFive("parallel")
	var inputs []given
	for _, one := range []struct {
		name, workflow string
		input          any
	}{
		{"run", protocol.PlaybookWorkflowName, protocol.Input{Name: "test.yaml", Source: longPlaybook}},
		{"reprocess", protocol.PlaybookWorkflowName, protocol.Input{Name: "test.yaml", Source: longPlaybook, Reprocess: again}},
		{"run with a state", protocol.PlaybookWorkflowName, protocol.Input{Name: "test.yaml", Source: longPlaybook, State: state}},
		{"reprocess with a state", protocol.PlaybookWorkflowName, protocol.Input{
			Name: "test.yaml", Source: longPlaybook, Reprocess: again, State: state,
		}},
		{"run in full of a step without a state", protocol.PlaybookWorkflowName, protocol.Input{Name: "test.yaml", Source: longPlaybook, FullRefresh: []string{"fetch"}}},
		{"run of a step", protocol.PlaybookWorkflowName, protocol.Input{Name: "test.yaml", Source: longPlaybook, Called: &protocol.ParentAttempt{Depth: 1}}},
		{"loop", protocol.LoopWorkflowName, protocol.LoopInput{Task: batch.Task, Elements: make([]expression.Value, 2)}},
		{"batch", protocol.CallsWorkflowName, batch},
		{"call", protocol.CallsWorkflowName, protocol.CallsInput{Task: batch.Task}},
	} {
		text, err := json.Marshal(one.input)
		require.NoError(t, err)
		var arg any
		require.NoError(t, json.Unmarshal(text, &arg))
		inputs = append(inputs, given{one.name, one.workflow, []any{arg}})
	}
	return inputs
}

// longPlaybook goes round a cycle, collects pages and writes them.
const longPlaybook = `
apiVersion: reprise/v1
kind: Playbook
metadata: {name: test}
workflow:
  - step: fetch
    tool: http
    url: http://x
    retry:
      - when: response.more is defined
        then:
          next_call: {params: {page: "{{ _retry.index }}"}}
          collect: {path: rows}
          sink: {tool: http, url: http://y, retry: [{when: error is defined, then: {delay: 1h}}]}
          per_iteration: {sink: {tool: http, url: http://z}}
          max_attempts: 5
      - {when: error is defined, then: {max_attempts: 4, delay: 1h, jitter: none}}
    sink: {tool: http, url: http://w}
    next: [{when: "{{ true }}", then: [{step: each, args: {a: 1}}]}]
  - step: each
    tool: http
    url: http://x/{{ item }}
    loop:
      collection: [a, b, c, d, e]
      batch: 5
      mode: parallel
      failure_budget: {rate: 0.5, min_samples: 2}
      sink: {tool: http, url: http://y}
      dead_letter: {sink: {tool: http, url: http://z}}
    retry:
      - {when: error is defined, then: {max_attempts: 3, delay: 1h, jitter: none}}
    next: [{when: "{{ false }}", then: [{step: fetch}]}, {else: [{step: last}]}]
  - step: last
`

func clone(v any) any {
	switch v := v.(type) {
	case map[string]any:
		copied := make(map[string]any, len(v))
		for key, value := range v {
			copied[key] = clone(value)
		}
		return copied
	case []any:
		copied := make([]any, len(v))
		for i, value := range v {
			copied[i] = clone(value)
		}
		return copied
	}
	return v
}

// forge changes one value somewhere in what a workflow is given.
func forge(random *rand.Rand, args []any) {
	type place struct {
		set  func(any)
		drop func()
		was  any
	}
	var places []place
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(v)) {
				if key == "source" || key == "name" {
					continue // the playbook is checked at the door
				}
				places = append(places, place{set: func(x any) { v[key] = x }, drop: func() { delete(v, key) }, was: v[key]})
				walk(v[key])
			}
		case []any:
			for i := range v {
				places = append(places, place{set: func(x any) { v[i] = x }, drop: func() { v[i] = nil }, was: v[i]})
				walk(v[i])
			}
		}
	}
	walk(args[0])
	if len(args) > 1 {
		walk(args[1:])
	}
	if len(places) == 0 {
		return // all of it is gone
	}
	at := places[random.IntN(len(places))]
	if random.IntN(4) == 0 {
		at.drop()
		return
	}
	at.set(instead(random, at.was))
}

// instead is something of the same type that is not what it was, or of another.
func instead(random *rand.Rand, was any) any {
	numbers := []any{-1, 0, 1, 2, 7, 1_000_000, 1 << 40, -1 << 62}
	texts := []any{"", "attempt", "wait", "page_sink", "sinks", "done", "error", "success", "each", "fetch", "no such thing", "2025-03-01T12:00:00Z"}
	switch was := was.(type) {
	case float64:
		return numbers[random.IntN(len(numbers))]
	case string:
		return texts[random.IntN(len(texts))]
	case bool:
		return !was
	case []any:
		if random.IntN(2) == 0 && len(was) > 0 {
			return was[:random.IntN(len(was))]
		}
		return append(slices.Clone(was), was...)
	case map[string]any:
		if random.IntN(2) == 0 {
			return map[string]any{}
		}
	}
	return []any{nil, "x", 5, []any{}, map[string]any{}}[random.IntN(5)]
}
