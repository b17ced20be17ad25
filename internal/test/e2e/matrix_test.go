package e2e_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"

	"reprise/activities/tool"
	"reprise/internal/test/testenv"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// soak has the matrix of loops run in full, which takes long: make long.
var soak = flag.Bool("soak", false, "run loops of every size in every way")

// pick is a tool that gives its element, or fails where the playbook says so.
type pick struct{}

func (pick) Spec() playbook.ToolSpec {
	return playbook.ToolSpec{
		Name: "pick", Summary: "Gives its element or fails.",
		Fields: []playbook.Field{
			{Name: "give", Kind: playbook.KindValue, Doc: "What to give."},
			{Name: "fail", Kind: playbook.KindText, Doc: "Type of the failure, if it is to fail."},
		},
	}
}

func (pick) Run(_ context.Context, in interpreter.ToolInput) (interpreter.ToolResult, error) {
	if failure, _ := in.Fields["fail"].Data.(string); failure != "" {
		return interpreter.ToolResult{}, &tool.Error{
			Class: interpreter.ClassFinal, Type: failure, Message: fmt.Sprint("no ", in.Fields["give"].Data),
		}
	}
	return interpreter.ToolResult{Data: in.Fields["give"]}, nil
}

// matrix is a loop in which every nth iteration fails. One whose index divides by
// four fails twice.
const matrix = `
  - step: each
    tool: pick
    give: "{{ element }}"
    fail: "{{ every == 0 or _loop.index %% every > 0 ? '' : _loop.index %% 4 == 0 ? 'again' : 'refused' }}"
    retry:
      - when: "{{ error.type == 'again' }}"
        then: {max_attempts: 2, backoff: none}
    loop: {collection: "{{ elements }}", element: element, mode: %s, max_concurrency: %d, batch: %s}
    sink:
      tool: file
      path: aggregate.jsonl
      args:
        stats: "{{ result.stats }}"
        results: "{{ result.results }}"
        errors: "{{ map(result.errors, [.index, .element, .attempts]) }}"
`

// cell is one loop of the matrix.
type cell struct {
	size, every         int // every nth iteration fails, 0 for none
	mode                string
	batch, window, most int // most is the largest size that runs without -soak; a batch of 0 is auto
}

// largeShares has the one share of failures that loops of a large size have without
// -soak: what the others change shows in small loops.
var largeShares = map[int]int{499: 100, 500: 0, 501: 2, 2001: 2}

// matrixCells are all sizes around the limits of windows, leaves and batches,
// with each share of failures.
func matrixCells() []cell {
	var cells []cell
	for _, way := range []cell{
		{mode: "parallel", batch: 50, window: 100, most: 2001},
		{mode: "sequential", batch: 50, window: 1, most: 501},
		{mode: "parallel", batch: 1, window: 10, most: 11},
		{mode: "sequential", batch: 1, window: 1, most: 2},
	} {
		sizes := []int{0, 1, 2, way.window - 1, way.window, way.window + 1, 499, 500, 501, 2001, 10_000}
		slices.Sort(sizes)
		for _, way.size = range slices.Compact(sizes) {
			for _, way.every = range []int{0, 100, 2, 1} {
				if *soak || way.size <= way.most && (way.size < 499 || way.every == largeShares[way.size]) {
					cells = append(cells, way)
				}
			}
		}
	}
	for _, size := range []int{101, 2001} {
		cells = append(cells, cell{size: size, every: 100, mode: "parallel", window: 100})
	}
	return cells
}

func (c cell) String() string {
	failing := map[int]string{0: "all succeed", 100: "1 in 100 fails", 2: "half fail", 1: "all fail"}[c.every]
	return fmt.Sprintf("%s %d by %s, %s", c.mode, c.size, c.batchWord(), failing)
}

func (c cell) batchWord() string {
	if c.batch == 0 {
		return "auto"
	}
	return strconv.Itoa(c.batch)
}

func (c cell) fails(index int) bool { return c.every > 0 && index%c.every == 0 }

func (c cell) failure(index int) string {
	if index%4 == 0 {
		return "again"
	}
	return "refused"
}

// status is by whole numbers, which have no rounding.
func (c cell) status(success int) string {
	switch {
	case success*100 >= c.size*95:
		return "completed"
	case success*2 >= c.size:
		return "partial_success"
	}
	return "failed"
}

// elements differ from their places.
func (c cell) elements() []any {
	elements := make([]any, c.size)
	for i := range elements {
		elements[i] = 3*i + 7
	}
	return elements
}

// aggregate is what the step's sink has of a loop.
type aggregate struct {
	Stats   interpreter.LoopStats `json:"stats"`
	Results []expression.Value    `json:"results"`
	Errors  [][]int               `json:"errors"` // index, element, attempts
}

func (c cell) want() aggregate {
	want := aggregate{Stats: interpreter.LoopStats{Total: c.size}, Results: []expression.Value{}, Errors: [][]int{}}
	for i, element := range c.elements() {
		if !c.fails(i) {
			want.Results = append(want.Results, expression.Of(element))
			want.Stats.Success++
			continue
		}
		attempts := 1
		if c.failure(i) == "again" {
			attempts = 2
		}
		want.Results = append(want.Results, expression.Value{})
		want.Errors = append(want.Errors, []int{i, element.(int), attempts})
		want.Stats.Failed++
	}
	return want
}

// requireEqual tells the first difference and not all of thousands.
func (a aggregate) requireEqual(w *world, got aggregate, where string) {
	w.t.Helper()
	require.Equal(w.t, [3]any{a.Stats, len(a.Results), len(a.Errors)},
		[3]any{got.Stats, len(got.Results), len(got.Errors)}, "stats, results and errors in %s", where)
	for i, result := range a.Results {
		require.Equal(w.t, result, got.Results[i], "result %d in %s", i, where)
	}
	for i, failure := range a.Errors {
		require.Equal(w.t, failure, got.Errors[i], "error %d in %s: index, element, attempts", i, where)
	}
}

// large is the size beyond which a loop has the payload store that local servers
// have: without one, all its errors are more than a value may have.
const large = 2001

// TestLoopMatrix: whatever the size of a loop and however many of its iterations
// fail, the figures are exact, results and errors stand in order, there is one
// aggregate, and no history becomes long.
func TestLoopMatrix(t *testing.T) {
	t.Parallel()
	for _, c := range matrixCells() {
		t.Run(c.String(), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.tools, w.replays, w.patience = []tool.Tool{pick{}}, 1, testenv.Within(15*time.Minute)
			if *soak {
				w.patience = 2 * time.Hour
			}
			if c.size > large {
				w.workStoring(nil)
			} else {
				w.work()
			}
			c.check(w)
		})
	}
}

func (c cell) check(w *world) {
	run := w.start(book(fmt.Sprintf(matrix, c.mode, c.window, c.batchWord())),
		map[string]any{"elements": c.elements(), "every": c.every})
	result, err := w.outcome(run)
	require.NoError(w.t, err)
	want := c.want()

	require.Len(w.t, result.Steps, 1, "one visit of the step")
	record := step(w.t, result, "each")
	require.EqualValues(w.t, c.status(want.Stats.Success), record.Status)
	require.Equal(w.t, record.Status, result.Status)
	require.Equal(w.t, want.Stats, record.Loop.Stats)
	attempts := want.Stats.Success
	for _, failure := range want.Errors {
		attempts += failure[2]
	}
	require.Equal(w.t, attempts, record.Attempts)
	want.requireEqual(w, written(w), "the step's sink")
	want.requireEqual(w, c.returned(w, record.Loop.WorkflowID), "the loop's result")
	c.checkHistories(w)
}

// written reads what the step's sink has written, once.
func written(w *world) aggregate {
	var found aggregate
	require.NoError(w.t, json.Unmarshal([]byte(w.file("aggregate.jsonl")), &found))
	return found
}

// returned reads the one result that the loop has given to the run.
func (c cell) returned(w *world, loopID string) aggregate {
	loops := 0
	for _, event := range w.histories[0].History.Events {
		if child := event.GetChildWorkflowExecutionCompletedEventAttributes(); child != nil {
			require.Equal(w.t, loopID, child.WorkflowExecution.WorkflowId)
			loops++
		}
	}
	require.Equal(w.t, 1, loops)
	var result interpreter.LoopResult
	require.NoError(w.t, testenv.WaitOutcome(w.t, w.env.Client().GetWorkflow(w.t.Context(), loopID, ""), &result))
	found := aggregate{Stats: result.Stats, Results: result.Results, Errors: [][]int{}}
	for _, failure := range result.Errors {
		element := failure.Element.Data.(int)
		require.Equal(w.t, c.failure(failure.Index), failure.Error.Type, "index %d", failure.Index)
		require.Equal(w.t, fmt.Sprint("no ", element), failure.Error.Message)
		found.Errors = append(found.Errors, []int{failure.Index, element, failure.Attempts})
	}
	return found
}

// Bounds of every history of a run (docs/concepts/loops.md).
const (
	maxEvents = 4096
	maxBytes  = 4 << 20
)

// iteration is the ID of the child of an iteration or a batch.
var iteration = regexp.MustCompile(`/each#1/[0-9]+$`)

// checkHistories: no history is long, no workflow task failed, and a loop of more
// children than a leaf has ran in shards.
func (c cell) checkHistories(w *world) {
	shards, children := false, 0
	for _, history := range w.histories {
		bytes := 0
		for _, event := range history.History.Events {
			bytes += event.Size()
			// A signal that comes while a task completes has the server do the task again.
			if event.GetWorkflowTaskFailedEventAttributes().GetCause() != enums.WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND {
				require.NotEqual(w.t, enums.EVENT_TYPE_WORKFLOW_TASK_FAILED, event.EventType, "%s: %v", history.WorkflowID, event)
			}
		}
		require.Less(w.t, len(history.History.Events), maxEvents, history.WorkflowID)
		require.Less(w.t, bytes, maxBytes, history.WorkflowID)
		shards = shards || strings.Contains(history.WorkflowID, "/shard-")
		if iteration.MatchString(history.WorkflowID) {
			children++
		}
	}
	if c.batch == 0 {
		require.Equal(w.t, map[int]int{100: 100, 101: 34, 2001: 41}[c.size], children)
	}
	switch {
	case children > 400 || c.size > 5000:
		require.True(w.t, shards, "the loop runs in shards")
	case children < 50:
		require.False(w.t, shards, "the loop fits one history")
	}
}

// TestLoopOfLargeValues: each child gets the value that its step names, and still no
// history becomes large.
func TestLoopOfLargeValues(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.tools, w.replays = []tool.Tool{pick{}}, 1
	w.work()
	c := cell{size: 60, batch: 1}
	result := w.completes(book(`
  - step: each
    tool: pick
    give: "{{ len(large) + element }}"
    loop: {collection: "{{ elements }}", element: element, mode: parallel, max_concurrency: 2, batch: 1}
output: "{{ each.results }}"
`), map[string]any{"elements": c.elements(), "large": strings.Repeat("x", 400_000)})
	for i, element := range c.elements() {
		require.Equal(t, 400_000+element.(int), result.([]any)[i])
	}
	c.checkHistories(w)
}

// TestLoopOfManyResults: a loop of thousands whose results are of a size that
// Temporal keeps itself has no large history, also without a payload store.
func TestLoopOfManyResults(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.tools, w.replays, w.patience = []tool.Tool{pick{}}, 1, testenv.Within(15*time.Minute)
	w.work()
	c := cell{size: 10_000, batch: 50}
	result := w.completes(book(fmt.Sprintf(`
  - step: each
    tool: pick
    give: "{{ '%s' ~ element }}"
    loop: {collection: "{{ elements }}", element: element, mode: parallel, max_concurrency: 500, batch: 50}
output: "{{ len(each.results) }}"
`, strings.Repeat("x", 60))), map[string]any{"elements": c.elements()})
	require.Equal(t, c.size, result)
	c.checkHistories(w)
}
