package workflows_test

import (
	"encoding/json"
	"errors"
	"flag"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/workflows"
)

var (
	forgeries   = flag.Int("forgeries", 1500, "how many forged inputs to try")
	forgerySeed = flag.Uint64("forgery.seed", 1, "seed of the forged inputs; 0 draws a new seed")
)

// handedOn is an input that a worker has written.
type handedOn struct {
	name     string
	workflow string
	args     []any // as JSON has them: the input, and the script of its task
}

// TestForgedInputsEnd: an input of the next history or of a child that somebody
// has changed at random either runs or is refused. It never panics, and never
// keeps the workflow from ending.
func TestForgedInputsEnd(t *testing.T) {
	t.Parallel()
	goesOn := continuedInputs(t)
	inputs := slices.Concat(storedInputs(t), goesOn)
	require.GreaterOrEqual(t, len(goesOn), 5)
	seed := *forgerySeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-forgery.seed=%d", seed)
	random := rand.New(rand.NewPCG(seed, seed))
	endings := map[string]int{}
	for i := range *forgeries {
		forged := inputs[random.IntN(len(inputs))]
		if i%2 == 0 {
			forged = goesOn[random.IntN(len(goesOn))]
		}
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

// TestWhatWorkersHandOnFits: the inputs themselves are taken.
func TestWhatWorkersHandOnFits(t *testing.T) {
	t.Parallel()
	for _, given := range slices.Concat(storedInputs(t), continuedInputs(t)) {
		require.Equal(t, "ran", given.ending(t), given.name)
	}
}

// ending says how a workflow with the input ends.
func (h handedOn) ending(t *testing.T) string {
	t.Helper()
	s := newStage(t, func(n int, _ interpreter.ToolInput) (any, error) {
		if n%3 == 1 {
			return nil, unavailable()
		}
		return map[string]any{"rows": []any{n}, "next": nil}, nil
	})
	s.env.SetTestTimeout(20 * time.Second)
	s.env.SetContinuedExecutionRunID("before")
	var args []any
	for _, arg := range h.args {
		encoded, err := json.Marshal(arg)
		require.NoError(t, err)
		args = append(args, json.RawMessage(encoded))
	}
	if h.workflow == workflows.PlaybookWorkflowName {
		s.env.ExecuteWorkflow(h.workflow, args...)
	} else {
		s.env.RegisterWorkflowWithOptions(func(ctx workflow.Context) error {
			ctx = workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{WorkflowID: "child"})
			workflow.Go(ctx, func(ctx workflow.Context) { // a loop with a place for everybody
				for {
					workflow.GetSignalChannel(ctx, "place").Receive(ctx, nil)
					workflow.SignalExternalWorkflow(ctx, "child", "", "control", map[string]any{"place": map[string]any{}})
				}
			})
			workflow.Go(ctx, func(ctx workflow.Context) { // and a person who gives up what waits for one
				for workflow.Sleep(ctx, 1000*time.Hour) == nil {
					workflow.SignalExternalWorkflow(ctx, "child", "", "control", map[string]any{"settle": map[string]any{"skip": true}})
				}
			})
			return workflow.ExecuteChildWorkflow(ctx, h.workflow, args...).Get(ctx, nil)
		}, workflow.RegisterOptions{Name: "parent"})
		s.env.ExecuteWorkflow("parent")
	}
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
	case errors.As(err, &refused) && (refused.Type() == workflows.InvalidInput || refused.Type() == workflows.InvalidPlaybook):
		return "refused"
	case err != nil && strings.Contains(err.Error(), "unable to decode"):
		return "undecodable"
	}
	return "ran"
}

// storedInputs are those of the children in the stored histories.
func storedInputs(t *testing.T) []handedOn {
	t.Helper()
	var all []handedOn
	for _, name := range slices.Sorted(maps.Keys(stored)) {
		for i, history := range load(t, name) {
			if history.Type == workflows.PlaybookWorkflowName || i > 3 {
				continue
			}
			started := history.History.Events[0].GetWorkflowExecutionStartedEventAttributes()
			all = append(all, handedOn{
				name: filepath.Join(name, stored[name][i]), workflow: history.Type, args: decoded(t, started.Input),
			})
		}
	}
	return all
}

func decoded(t *testing.T, payloads *commonpb.Payloads) []any {
	t.Helper()
	args := make([]any, len(payloads.GetPayloads()))
	for i, payload := range payloads.GetPayloads() {
		require.NoError(t, converter.GetDefaultDataConverter().FromPayload(payload, &args[i]))
	}
	return args
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

// continuedInputs are those with which runs, batches and calls go on.
func continuedInputs(t *testing.T) []handedOn {
	t.Helper()
	waiting := func(n int, in interpreter.ToolInput) (any, error) {
		if *in.Index == failsFirst+1 {
			return map[string]any{"pending": true}, nil
		}
		return failing(n, in)
	}
	var all []handedOn
	for _, batch := range []struct {
		mode   string
		answer play
	}{{"parallel", waiting}, {"sequential", failing}} {
		s := longOnceFailed(t, batch.answer)
		s.runBatch(batchOfFive(batch.mode))
		all = append(all, handedOn{batch.mode + " batch that goes on", workflows.IterationWorkflowName, next(t, s)})
	}
	run := handedOn{"run that goes on", workflows.PlaybookWorkflowName, []any{workflows.Input{Name: "test.yaml", Source: longPlaybook}}}
	for range 2 {
		s := longOnceFailed(t, func(n int, in interpreter.ToolInput) (any, error) {
			if n%3 == 1 {
				return nil, unavailable()
			}
			return map[string]any{"rows": []any{n}, "more": n < 5}, nil
		})
		s.env.SetContinuedExecutionRunID("before")
		s.env.SetOnChildWorkflowStartedListener(func(info *workflow.Info, _ workflow.Context, args converter.EncodedValues) {
			child := handedOn{name: "child of the run, " + info.WorkflowType.Name, workflow: info.WorkflowType.Name}
			child.args = decoded(t, converter.GetPayloads(args))
			all = append(all, child)
		})
		s.env.ExecuteWorkflow(run.workflow, run.args...)
		var goesOn *workflow.ContinueAsNewError
		if !errors.As(s.env.GetWorkflowError(), &goesOn) {
			require.NoError(t, s.env.GetWorkflowError())
			break
		}
		run.args = next(t, s)
		all = append(all, run)
	}
	telling := longOnceFailed(t, until(1, unavailable()))
	telling.refuses = func(int, interpreter.ToolInput) error { return unavailable() }
	telling.env.ExecuteWorkflow(workflows.PlaybookWorkflowName, workflows.Input{Name: "test.yaml", Source: longTelling})
	return append(all, handedOn{"run with a notice that goes on", workflows.PlaybookWorkflowName, next(t, telling)})
}

func next(t *testing.T, s *stage) []any {
	t.Helper()
	var next *workflow.ContinueAsNewError
	require.ErrorAs(t, s.env.GetWorkflowError(), &next)
	return decoded(t, next.Input)
}

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

// TestPartOfAChoiceFits: a part of a reprocess begins at a place of the
// collection, which may lie behind the number of elements that were chosen.
func TestPartOfAChoiceFits(t *testing.T) {
	t.Parallel()
	part := workflows.LoopInput{
		Task: batchOfFive("parallel").Task, Elements: make([]expression.Value, 1),
		Chosen: &workflows.Chosen{Indexes: []int{4}, Size: 5}, Part: &workflows.Part{First: 4, Size: 2, Success: 1},
	}
	require.Equal(t, "ran", handedOn{workflow: workflows.LoopWorkflowName, args: []any{part}}.ending(t))
	part.Chosen = nil
	require.Equal(t, "refused", handedOn{workflow: workflows.LoopWorkflowName, args: []any{part}}.ending(t))
}
