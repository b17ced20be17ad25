package e2e_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"reprise/internal/observe/deadletter"
	"reprise/internal/observe/ending"
	"reprise/internal/test/testenv"
	"reprise/interpreter"
)

// rowPerElement writes a row for each element and then ends it, which takes
// longer than the test for those in workload.slow: their rows are there while they go on.
const rowPerElement = `
  - step: fetch
    tool: http
    url: "{{ api }}/status/{{ 404 if item in workload.broken else 200 }}"
    loop:
      collection: "{{ 0..(workload.n - 1) }}"
      %s
      sink:
        tool: http
        method: GET
        timeout: %s
        url: "{{ api }}{{ '/slow?ms=%d&n=' if item in workload.slow else '/echo?n=' }}{{ item }}{{ workload.ballast[:0] }}"
    retry:
      - when: "{{ error is not defined }}"
        then: {sink: {tool: postgres, auth: pg, table: done, args: {n: "{{ item }}"}}}
    sink:
      tool: http
      url: "{{ api }}/api/v1/writes"
      args: {total: "{{ result.stats.total }}", success: "{{ result.stats.success }}"}
workload: {n: 20, slow: [], broken: [], ballast: ""}
`

// interrupted is a loop in which something ends the run, or most of it, before
// its elements are done.
type interrupted struct {
	*world
	db  *testenv.Database
	n   int
	run client.WorkflowRun
}

func newInterrupted(t *testing.T, loop string, workload map[string]any) *interrupted {
	t.Helper()
	w := newWorld(t)
	w.replays = 1
	i := &interrupted{world: w, db: w.database(), n: workload["n"].(int)}
	w.work()
	i.db.Exec(t, "CREATE TABLE done (n int)")
	slow := min(testenv.Within(time.Minute), 5*time.Minute) // which is the most that the API takes
	i.run = w.start(book(fmt.Sprintf(rowPerElement, loop, 2*slow, slow.Milliseconds())), workload)
	return i
}

// terminate terminates a run, which is not waited for.
func (i *interrupted) terminate(run client.WorkflowRun) {
	i.t.Helper()
	i.terminates = true
	require.NoError(i.t, i.env.Client().TerminateWorkflow(i.t.Context(), run.GetID(), "", "for the test"))
}

// left are the iterations that a reprocess takes with --cancelled, by index.
func (i *interrupted) left() []deadletter.Letter {
	i.t.Helper()
	letters := i.chain(i.run).Select(deadletter.Filter{Cancelled: true})
	slices.SortFunc(letters, func(x, y deadletter.Letter) int { return x.Index - y.Index })
	return letters
}

func indexes(letters []deadletter.Letter) []int {
	all := make([]int, len(letters))
	for i, letter := range letters {
		all[i] = letter.Index
	}
	return all
}

// ended counts how often the iterations of each element came to their end.
func (i *interrupted) ended() map[string]int {
	times := map[string]int{}
	for _, request := range i.api.Requests("") {
		if n, found := strings.CutPrefix(request.Query, "n="); found && request.Path == "/echo" {
			times[n]++
		}
	}
	return times
}

// finish takes up what is left and checks that every element is done then.
func (i *interrupted) finish(left []deadletter.Letter) {
	t := i.t
	t.Helper()
	again := i.reprocess(i.run, left, "", map[string]any{"slow": []any{}, "broken": []any{}})
	result, err := i.outcome(again)
	require.NoError(t, err)
	require.EqualValues(t, "completed", result.Status, "%+v", result.Error)
	require.Equal(t, interpreter.LoopStats{Total: len(left), Success: len(left)}, step(t, result, "fetch").Loop.Stats)
	require.Equal(t, map[string]any{"total": len(left), "success": len(left)}, i.bodies()[len(i.bodies())-1])

	require.Empty(t, i.left(), "there is nothing to do")
	all := i.chain(i.run).Select(deadletter.Filter{Cancelled: true, All: true})
	for _, letter := range all {
		require.Equal(t, deadletter.Resolved, letter.State, letter.ID)
	}
	require.Equal(t, []any{map[string]any{"rows": i.n, "elements": i.n}},
		i.rows(i.db, "SELECT count(*) AS rows, count(DISTINCT n) AS elements FROM done"), "each element is written once")
	ended, taken := i.ended(), indexes(all)
	for n := range i.n {
		times := ended[fmt.Sprint(n)]
		if _, again := slices.BinarySearch(sorted(taken), n); again {
			require.Positive(t, times, "element %d", n)
		} else {
			require.Equal(t, 1, times, "element %d had succeeded and does not run again", n)
		}
	}
}

func sorted(numbers []int) []int {
	slices.Sort(numbers)
	return numbers
}

// TestReprocessOfWhatWasCancelled: in the middle of a loop its run is cancelled
// or terminated.
func TestReprocessOfWhatWasCancelled(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		loop string
		n    int
		slow []any
		// left is what a cancel leaves, nil where that is up to the machine; stopped is
		// what a terminate leaves.
		left, stopped []int
	}{
		"sequential": {loop: "mode: sequential", n: 10, slow: []any{6}, left: seq(6, 10), stopped: seq(6, 10)},
		"parallel":   {loop: "mode: parallel\n      max_concurrency: 4", n: 30, slow: []any{5, 8}},
		// Of the batch under way the activity tells what it did when it is cancelled.
		"batches":          {loop: "batch: 5", n: 22, slow: []any{7}, left: seq(7, 22), stopped: seq(5, 22)},
		"parallel batches": {loop: "mode: parallel\n      max_concurrency: 10\n      batch: 5", n: 60, slow: []any{13, 14, 30}},
	} {
		workload := map[string]any{"n": test.n, "slow": test.slow}
		t.Run(name+", cancelled", func(t *testing.T) {
			t.Parallel()
			i := newInterrupted(t, test.loop, workload)
			i.awaitRequests("/slow", len(test.slow))
			require.Empty(t, i.chain(i.run).Cancelled, "while the run goes on nobody knows")
			stats := step(t, i.cancel(i.run), "fetch").Loop.Stats
			left := i.left()
			require.Equal(t, stats.Cancelled, len(left))
			require.Equal(t, test.n, stats.Success+len(left))
			if test.left != nil {
				require.Equal(t, test.left, indexes(left))
			}
			i.finish(left)
		})
		t.Run(name+", terminated", func(t *testing.T) {
			t.Parallel()
			i := newInterrupted(t, test.loop, workload)
			i.awaitRequests("/slow", len(test.slow))
			i.terminate(i.run)
			left := i.left()
			for _, letter := range left {
				require.Equal(t, deadletter.Cancelled, letter.State)
				require.Equal(t, letter.Index, letter.Element.Data)
			}
			if test.stopped != nil {
				require.Equal(t, test.stopped, indexes(left))
			}
			i.finish(left)
		})
	}
}

func seq(from, to int) []int {
	var all []int
	for n := from; n < to; n++ {
		all = append(all, n)
	}
	return all
}

// TestReprocessOfASpentBudget: what failed and what never ran are taken up
// together.
func TestReprocessOfASpentBudget(t *testing.T) {
	t.Parallel()
	i := newInterrupted(t, "failure_budget: {rate: 0.5, min_samples: 3}",
		map[string]any{"n": 12, "broken": []any{0, 2}})
	result, err := i.outcome(i.run)
	require.NoError(t, err)
	stats := step(t, result, "fetch").Loop.Stats
	require.Equal(t, interpreter.LoopStats{Total: 12, Success: 1, Failed: 2, Cancelled: 9}, stats)
	chain := i.chain(i.run)
	require.Len(t, chain.Letters, 2, "what was cancelled is no dead letter")
	require.Equal(t, 9, chain.CountCancelled(deadletter.Filter{}))
	require.Zero(t, chain.CountCancelled(deadletter.Filter{Step: "other"}))
	left := i.left()
	require.Equal(t, append([]int{0}, seq(2, 12)...), indexes(left))

	// Without those that were cancelled, only they are left.
	again := i.reprocess(i.run, chain.Letters, "", map[string]any{"broken": []any{}})
	_, err = i.outcome(again)
	require.NoError(t, err)
	require.Equal(t, seq(3, 12), indexes(i.left()))
	i.finish(i.left())
}

// TestReprocessOfATerminatedReprocess: what a reprocess has done is done, what
// it has not is left.
func TestReprocessOfATerminatedReprocess(t *testing.T) {
	t.Parallel()
	i := newInterrupted(t, "mode: sequential", map[string]any{"n": 12, "slow": []any{3}, "broken": []any{1}})
	i.awaitRequests("/slow", 1)
	i.terminate(i.run)
	require.Equal(t, append([]int{1}, seq(3, 12)...), indexes(i.left()))

	again := i.reprocess(i.run, i.left(), "", map[string]any{"slow": []any{7}, "broken": []any{4}})
	i.awaitRequests("/slow", 2)
	states := map[string]int{}
	for _, letter := range i.left() {
		states[letter.State]++
	}
	require.Equal(t, map[string]int{deadletter.Open: 1, deadletter.Reprocessing: 5}, states,
		"1 has failed in the first run and succeeded since, 4 in this one; 3, 5 and 6 have succeeded")
	i.terminate(again)
	left := i.left()
	require.Equal(t, append([]int{4}, seq(7, 12)...), indexes(left))
	require.Equal(t, deadletter.Open, left[0].State)
	require.Equal(t, deadletter.Cancelled, left[1].State)
	i.finish(left)
}

// TestReprocessOfShardsThatNeverBegan: a loop in shards ends in one of them, and
// what is left may be a loop in shards again.
func TestReprocessOfShardsThatNeverBegan(t *testing.T) {
	t.Parallel()
	const (
		n    = 110
		loop = "mode: parallel\n      max_concurrency: 20\n      batch: 2\n      results: stats"
	)
	for name, test := range map[string]struct {
		slow          int // the first of those that fill the window
		begun, shards int // shards of the loop, and of its reprocess
		end           func(*interrupted)
	}{
		"cancelled in the second": {slow: 84, begun: 2, shards: 0, end: func(i *interrupted) { i.cancel(i.run) }},
		"terminated in the first": {slow: 4, begun: 1, shards: 2, end: func(i *interrupted) { i.terminate(i.run) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var slow []any
			for k := range 10 {
				slow = append(slow, test.slow+2*k)
			}
			i := newInterrupted(t, loop, map[string]any{"n": n, "slow": slow, "ballast": ballast})
			i.awaitRequests("/slow", len(slow))
			require.Len(t, i.shards(i.run), test.begun)
			test.end(i)
			i.finish(i.left())
			chain := i.chain(i.run)
			require.Len(t, i.shards(i.env.Client().GetWorkflow(t.Context(), chain.Rounds[0].WorkflowID, "")), test.shards)
		})
	}
}

// shards are the workflow IDs of the shards of a run's loops.
func (i *interrupted) shards(run client.WorkflowRun) []string {
	var shards []string
	for _, history := range testenv.Histories(i.t, i.env.Client(), run.GetID(), "") {
		if strings.Contains(history.WorkflowID, "/shard-") {
			shards = append(shards, history.WorkflowID)
		}
	}
	return shards
}

// TestReprocessOfALoopTerminatedByHand: a part of a run that somebody ended
// while the run went on.
func TestReprocessOfALoopTerminatedByHand(t *testing.T) {
	t.Parallel()
	i := newInterrupted(t, "mode: parallel\n      max_concurrency: 3", map[string]any{"n": 9, "slow": []any{4}})
	i.terminates = true
	i.awaitRequests("/slow", 1)
	i.awaitLoop(i.run, "fetch", 8)
	require.NoError(t, i.env.Client().TerminateWorkflow(t.Context(), i.run.GetID()+"/fetch#1", "", "for the test"))
	_, err := ending.WaitForResult(t.Context(), i.run)
	require.NoError(t, err)
	require.Equal(t, []int{4}, indexes(i.left()))
	i.finish(i.left())
}
