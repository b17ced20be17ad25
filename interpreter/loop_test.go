package interpreter_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/test/tables"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/incremental"
	"reprise/interpreter/playbook"
)

var thresholds = playbook.Thresholds{Completed: playbook.DefaultCompleted, PartialSuccess: playbook.DefaultPartialSuccess}

// iteration ends as 's'uccess, 't'runcated success, 'f'ailure or 'c'ancelled.
func iteration(index int, how byte) interpreter.IterationResult {
	result := interpreter.IterationResult{Index: index}
	result.Result.Status = interpreter.StatusSuccess
	result.Result.Meta = interpreter.CallMeta{Attempts: 2, Pages: 1, Truncated: how == 't'}
	result.Result.Data = expression.Of(fmt.Sprintf("r%d", index))
	if how == 'f' || how == 'c' {
		kind := interpreter.KindHTTP
		if how == 'c' {
			kind, result.Cancelled = interpreter.KindCancelled, true
		}
		result.Result.Status, result.Result.Data = interpreter.StatusError, expression.Value{}
		result.Result.Error = &interpreter.ErrorObject{Kind: kind, Message: fmt.Sprintf("e%d", index)}
	}
	return result
}

// gather adds iterations in an order; those missing in it never ended.
func gather(how string, order []int) *interpreter.LoopResult {
	loop := interpreter.NewLoopResult(len(how))
	for _, index := range order {
		if how[index] != '-' {
			loop.AddIteration(index, fmt.Sprintf("p%d", index), iteration(index, how[index]))
		}
	}
	return loop
}

func inOrder(n int) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	return order
}

func TestLoopResult(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ how, status, value string }{
		{"", "completed", `{"errors":[],"results":[],"stats":{"cancelled":0,"failed":0,"success":0,"total":0,"truncated":0}}`},
		{"s", "completed", `{"errors":[],"results":["r0"],"stats":{"cancelled":0,"failed":0,"success":1,"total":1,"truncated":0}}`},
		{"t", "completed", `{"errors":[],"results":["r0"],"stats":{"cancelled":0,"failed":0,"success":1,"total":1,"truncated":1}}`},
		{"f", "failed", `{"errors":[{"attempts":2,"element":"p0","error":{"attempt":0,"body":null,"class":"","collected":null,"exhausted":false,"kind":"http","message":"e0","page":0},"index":0}],"results":[null],"stats":{"cancelled":0,"failed":1,"success":0,"total":1,"truncated":0}}`},
		{"c", "failed", `{"errors":[],"results":[null],"stats":{"cancelled":1,"failed":0,"success":0,"total":1,"truncated":0}}`},
		{"-", "failed", `{"errors":[],"results":[null],"stats":{"cancelled":1,"failed":0,"success":0,"total":1,"truncated":0}}`},
		{"st-c", "partial_success", `{"errors":[],"results":["r0","r1",null,null],"stats":{"cancelled":2,"failed":0,"success":2,"total":4,"truncated":1}}`},
		{"fs", "partial_success", `{"errors":[{"attempts":2,"element":"p0","error":{"attempt":0,"body":null,"class":"","collected":null,"exhausted":false,"kind":"http","message":"e0","page":0},"index":0}],"results":[null,"r1"],"stats":{"cancelled":0,"failed":1,"success":1,"total":2,"truncated":0}}`},
	} {
		loop := gather(row.how, inOrder(len(row.how)))
		require.EqualValues(t, row.status, loop.LoopStatus(thresholds), "%q", row.how)
		require.Equal(t, row.value, tables.Encode(t, loop.ExprValue()), "%q", row.how)
	}
}

// TestLoopThresholds stands at the edges: shares are not rounded.
func TestLoopThresholds(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		success, total int
		status         string
	}{
		{0, 0, "completed"},
		{949, 1000, "partial_success"},
		{950, 1000, "completed"},
		{951, 1000, "completed"},
		{9499, 10000, "partial_success"},
		{9500, 10000, "completed"},
		{19, 20, "completed"},
		{18, 20, "partial_success"},
		{94, 99, "partial_success"},
		{95, 100, "completed"},
		{499, 1000, "failed"},
		{500, 1000, "partial_success"},
		{501, 1000, "partial_success"},
		{1, 2, "partial_success"},
		{1, 3, "failed"},
		{2, 3, "partial_success"},
		{0, 1, "failed"},
		{1, 1, "completed"},
		{499_999, 1_000_000, "failed"},
		{949_999, 1_000_000, "partial_success"},
		{950_000, 1_000_000, "completed"},
	} {
		loop := interpreter.LoopResult{Stats: interpreter.LoopStats{Total: row.total, Success: row.success, Failed: row.total - row.success}}
		require.EqualValues(t, row.status, loop.LoopStatus(thresholds), "%d of %d", row.success, row.total)
	}
	for total := 1; total <= 400; total++ {
		for success := 0; success <= total; success++ {
			want := "failed" // by whole numbers, which have no rounding at all
			if success*100 >= total*95 {
				want = "completed"
			} else if success*2 >= total {
				want = "partial_success"
			}
			loop := interpreter.LoopResult{Stats: interpreter.LoopStats{Total: total, Success: success}}
			require.EqualValues(t, want, loop.LoopStatus(thresholds), "%d of %d", success, total)
		}
	}
	own := playbook.Thresholds{Completed: 1, PartialSuccess: 0}
	require.EqualValues(t, "completed", gather("ss", inOrder(2)).LoopStatus(own))
	require.EqualValues(t, "partial_success", gather("ff", inOrder(2)).LoopStatus(own))
}

func TestFailureBudget(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		how     string // in the order of their ends
		rate    float64
		samples int
		message string // "" within the budget
	}{
		{"fsssssssss", 0.10, 10, ""}, // 1 of 10 at 10 % is not more than 10 %
		{"ffssssssss", 0.10, 10, "step s: FailureBudgetExceeded: 2 of 10 ended iterations failed (0.2), budget 0.1 after 10 samples; 0 of 10 did not run to their end"},
		{"ffsssssss-", 0.10, 10, ""}, // too few have ended
		{"ffsssssss-", 0.10, 9, "step s: FailureBudgetExceeded: 2 of 9 ended iterations failed (0.2222222222222222), budget 0.1 after 9 samples; 1 of 10 did not run to their end"},
		{"ccccccccfc", 0.10, 2, ""}, // cancelled ones have not ended
		{"ccccccccff", 0.10, 2, "step s: FailureBudgetExceeded: 2 of 2 ended iterations failed (1), budget 0.1 after 2 samples; 8 of 10 did not run to their end"},
		{"f", 0, 1, "step s: FailureBudgetExceeded: 1 of 1 ended iterations failed (1), budget 0 after 1 samples; 0 of 1 did not run to their end"},
		{"s", 0, 1, ""},
		{"f", 1, 1, ""},
		{"", 0, 0, ""},
		{"--", 0, 0, ""},
	} {
		loop := gather(row.how, inOrder(len(row.how)))
		spent := loop.OverBudget("s", &playbook.FailureBudget{Rate: row.rate, MinSamples: row.samples})
		if row.message == "" {
			require.Nil(t, spent, "%+v", row)
			continue
		}
		require.NotNil(t, spent, "%+v", row)
		require.Equal(t, row.message, spent.Message)
		require.Equal(t, "FailureBudgetExceeded", spent.Type)
		require.Equal(t, interpreter.KindLoop, spent.Kind)
		loop.Budget = spent
		require.Equal(t, interpreter.Failed, loop.LoopStatus(playbook.Thresholds{}), "over budget whatever the thresholds")
	}
	require.Nil(t, gather("ff", inOrder(2)).OverBudget("s", nil), "off unless given")
}

// TestFailureBudgetTellsTheStats: what was in flight when the budget was spent may
// fail or succeed as well.
func TestFailureBudgetTellsTheStats(t *testing.T) {
	t.Parallel()
	step := &playbook.Step{Name: "s", Loop: &playbook.Loop{
		Thresholds: thresholds, FailureBudget: &playbook.FailureBudget{Rate: 0.5, MinSamples: 2},
	}}
	loop := gather("ff--------", inOrder(10))
	loop.Budget = loop.OverBudget("s", step.Loop.FailureBudget)
	require.Contains(t, loop.Budget.Message, "2 of 2 ended iterations failed (1)")
	loop.AddIteration(2, "p2", iteration(2, 'f'))
	loop.AddIteration(3, "p3", iteration(3, 's'))
	result := loop.CallResult(step, tables.Started, tables.Started)
	require.Equal(t, "step s: FailureBudgetExceeded: 3 of 4 ended iterations failed (0.75), budget 0.5 after 2 samples; "+
		"6 of 10 did not run to their end", result.Error.Message)
	require.Equal(t, interpreter.LoopStats{Total: 10, Success: 1, Failed: 3, Cancelled: 6}, loop.Stats)
	require.Equal(t, "step s: 3 of 10 iterations failed (30%); the first (index 0): e0", result.LoopWarning)
	require.False(t, result.Error.SaysWhatFailed())
}

// edgeRow is a row of the table of edges in docs/appendix/edges.md.
var edgeRow = regexp.MustCompile(
	"(?m)^\\| (\\d+) \\| (\\d+) \\| (\\d+) \\| (\\d+) \\| (?:`(.+)`)? ?\\| (\\w*) ?\\| `(\\w+)` \\| .+ \\|$")

// TestLoopEdges: what the language says of statuses and budgets at their edges
// is what the code does, row by row.
func TestLoopEdges(t *testing.T) {
	t.Parallel()
	language, err := os.ReadFile(filepath.Join("..", "docs", "appendix", "edges.md"))
	require.NoError(t, err)
	rows := edgeRow.FindAllStringSubmatch(string(language), -1)
	require.Len(t, rows, 15)
	for _, row := range rows {
		var counts [4]int // total, success, failed, cancelled
		for i := range counts {
			counts[i], err = strconv.Atoi(row[1+i])
			require.NoError(t, err)
		}
		how := strings.Repeat("s", counts[1]) + strings.Repeat("f", counts[2]) + strings.Repeat("-", counts[3])
		require.Len(t, how, counts[0], row[0])
		loop := gather(how, inOrder(len(how)))
		budget, said := budgetOf(t, row[5]), ""
		if budget != nil {
			said = "kept"
		}
		if loop.Budget = loop.OverBudget("s", budget); loop.Budget != nil {
			said = "spent"
			require.Contains(t, loop.Budget.Message, fmt.Sprintf("%d of %d ended iterations failed", counts[2], counts[1]+counts[2]))
			require.Contains(t, loop.Budget.Message, fmt.Sprintf("; %d of %d did not run to their end", counts[3], counts[0]))
		}
		require.Equal(t, row[6], said, row[0])
		require.EqualValues(t, row[7], loop.LoopStatus(thresholds), row[0])
		require.Equal(t, interpreter.LoopStats{
			Total: counts[0], Success: counts[1], Failed: counts[2], Cancelled: counts[3],
		}, loop.Stats, row[0])
	}
}

// budgetOf reads a failure budget as the author writes it; nil for none.
func budgetOf(t *testing.T, text string) *playbook.FailureBudget {
	t.Helper()
	if text == "" {
		return nil
	}
	budget := &playbook.FailureBudget{}
	_, err := fmt.Sscanf(text, "{rate: %g, min_samples: %d}", &budget.Rate, &budget.MinSamples)
	require.NoError(t, err, text)
	return budget
}

// TestLoopProperty adds random mixes in random orders: the figures add up at
// every moment, results and errors stand in the collection's order, and the
// order of ends changes nothing.
func TestLoopProperty(t *testing.T) {
	t.Parallel()
	for seed := range uint64(500) {
		rng := rand.New(rand.NewPCG(seed, 1))
		how := make([]byte, rng.IntN(40))
		want := map[byte]int{}
		for i := range how {
			how[i] = "ssstfc-"[rng.IntN(7)]
			want[how[i]]++
		}
		loop := interpreter.NewLoopResult(len(how))
		for _, index := range rng.Perm(len(how)) {
			if how[index] != '-' {
				loop.AddIteration(index, fmt.Sprintf("p%d", index), iteration(index, how[index]))
			}
			s := loop.Stats
			require.Equal(t, s.Total, s.Success+s.Failed+s.Cancelled)
			require.Equal(t, loop.EndedCount(), s.Success+s.Failed)
		}
		require.Equal(t, interpreter.LoopStats{
			Total: len(how), Success: want['s'] + want['t'], Failed: want['f'], Truncated: want['t'],
			Cancelled: want['c'] + want['-'],
		}, loop.Stats)
		require.Equal(t, 2*(len(how)-want['-']), loop.Attempts)
		require.Len(t, loop.Results, len(how))
		last := -1
		for _, failure := range loop.Errors {
			require.Greater(t, failure.Index, last, "errors in the collection's order")
			require.Equal(t, fmt.Sprintf("p%d", failure.Index), failure.Element.Data)
			require.Equal(t, fmt.Sprintf("e%d", failure.Index), failure.Error.Message)
			last = failure.Index
		}
		for i, result := range loop.Results {
			if how[i] == 's' || how[i] == 't' {
				require.Equal(t, fmt.Sprintf("r%d", i), result.Data)
			} else {
				require.Nil(t, result.Data)
			}
		}
		other, err := json.Marshal(gather(string(how), inOrder(len(how))))
		require.NoError(t, err)
		this, err := json.Marshal(loop)
		require.NoError(t, err)
		require.JSONEq(t, string(other), string(this))
	}
}

func TestElements(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ collection, want string }{
		{`[]`, `[]`},
		{`[3, null, [1], {"a": 1}]`, `[3,null,[1],{"a":1}]`},
		{`{}`, `[]`},
		{
			`{"b": 2, "a": 1, "B": 3, "10": 4, "9": 5}`,
			`[{"key":"10","value":4},{"key":"9","value":5},{"key":"B","value":3},{"key":"a","value":1},{"key":"b","value":2}]`,
		},
	} {
		elements, err := interpreter.LoopElements(tables.Value(t, row.collection))
		require.NoError(t, err)
		require.Equal(t, row.want, tables.Encode(t, elements))
	}
	for _, wrong := range []string{`null`, `"abc"`, `3`, `true`, `1.5`} {
		_, err := interpreter.LoopElements(tables.Value(t, wrong))
		require.ErrorContains(t, err, "loop.collection must be a list or a map, not ")
	}
}

// TestLoopOfAStep takes a loop's result to that of its step.
func TestLoopOfAStep(t *testing.T) {
	t.Parallel()
	step := &playbook.Step{Name: "fetch", Loop: &playbook.Loop{Thresholds: thresholds}}
	ended := tables.Started.Add(time.Minute)

	partial := gather("sfts", inOrder(4)).CallResult(step, tables.Started, ended)
	require.Equal(t, interpreter.Partial, partial.Status)
	require.False(t, partial.Failed(), "partial success takes the routes of a success")
	require.True(t, partial.Meta.Truncated)
	require.Equal(t, 8, partial.Meta.Attempts)
	require.Equal(t, 4, partial.Meta.Pages)

	failed := gather("ffs-", []int{2, 1, 0}).CallResult(step, tables.Started, ended)
	require.Equal(t, interpreter.StatusError, failed.Status)
	require.Equal(t, "step fetch: 2 of 4 iterations failed, 1 cancelled; the first (index 0): e0", failed.Error.Message)
	require.Equal(t, interpreter.KindLoop, failed.Error.Kind)
	scope := interpreter.EndScope(interpreter.NewScope(nil, tables.Run, interpreter.Data{}), nil, failed)
	for name, defined := range map[string]bool{"result": true, "error": true, "response": false} {
		value, _ := scope.Lookup(name)
		require.Equal(t, defined, value != nil, "%s after a failed loop", name)
	}
}

// TestLoopWarnsOfWhatFailed: however it ended.
func TestLoopWarnsOfWhatFailed(t *testing.T) {
	t.Parallel()
	enough := playbook.Thresholds{Completed: 0.5, PartialSuccess: 0.25}
	step := &playbook.Step{Name: "fetch", Loop: &playbook.Loop{Thresholds: enough}}
	for how, want := range map[string]string{
		"ssss":     "",
		"stss":     "",
		"ssc-":     "", // cancelled ones are in the stats
		"sfss":     "step fetch: 1 of 4 iterations failed (25%); the first (index 1): e1",
		"sff":      "step fetch: 2 of 3 iterations failed (66.7%); the first (index 1): e1",
		"ffffffsf": "step fetch: 7 of 8 iterations failed (87.5%); the first (index 0): e0", // its sink may fail too
	} {
		result := gather(how, inOrder(len(how))).CallResult(step, tables.Started, tables.Started)
		require.Equal(t, want, result.LoopWarning, how)
		require.Empty(t, result.Warnings, how)
		require.Equal(t, result.Failed(), result.Error.SaysWhatFailed(), how)
		require.Equal(t, strings.Contains(how, "t"), result.Meta.Truncated, how)
	}
}

// TestLoopInShards: a loop in shards has the result of one in one piece.
// It passes maxLoopWarnings.
func TestLoopInShards(t *testing.T) {
	t.Parallel()
	how := "stfc-ssfft-c"
	whole := gather(how, inOrder(len(how)))
	inParts := interpreter.NewLoopResult(len(how))
	for _, part := range [][2]int{{7, 12}, {0, 3}, {3, 7}} { // in the order in which they end
		begin, end := part[0], part[1]
		of := interpreter.NewLoopResult(end - begin)
		for index := begin; index < end; index++ {
			if how[index] != '-' {
				of.AddIteration(index-begin, fmt.Sprintf("p%d", index), iteration(index, how[index]))
			}
		}
		inParts.MergeShard(begin, of)
	}
	require.Equal(t, whole, inParts)
	require.Equal(t, interpreter.LoopStats{Total: 12, Success: 5, Failed: 3, Cancelled: 4, Truncated: 2}, inParts.Stats)

	// What stopped a part stops the loop; warnings are told up to twenty.
	stopped := interpreter.NewLoopResult(1)
	stopped.Budget = &interpreter.ErrorObject{Message: "spent"}
	for i := range 15 {
		stopped.Warnings = append(stopped.Warnings, fmt.Sprintf("w%d", i))
	}
	merged := interpreter.NewLoopResult(3)
	for place := range 3 {
		merged.MergeShard(place, stopped)
		if place == 0 {
			merged.MergeShard(1, interpreter.NewLoopResult(1))
			require.Equal(t, "spent", merged.Budget.Message)
		}
	}
	require.Len(t, merged.Warnings, 21)
	require.Equal(t, "w4", merged.Warnings[19])
	require.Equal(t, "25 more warnings of iterations not listed; see the stats and the child workflows", merged.Warnings[20])
	require.Equal(t, 25, merged.WarningsLeft)
	again := *merged
	merged.MergeShard(1, &again)
	require.Len(t, merged.Warnings, 21)
	require.Equal(t, "70 more warnings of iterations not listed; see the stats and the child workflows", merged.Warnings[20])
}

// TestStatesOfALoop: a loop counts the states of its iterations and names the one that is farthest
// behind, in whatever order they end and in whatever parts.
func TestStatesOfALoop(t *testing.T) {
	t.Parallel()
	cursor := func(at string) incremental.Cursor {
		if at == "" {
			return incremental.Cursor{}
		}
		parsed, err := incremental.Parse(incremental.Time, at)
		require.NoError(t, err)
		return parsed
	}
	ended := func(index int, at string, moved bool) interpreter.IterationResult {
		of := iteration(index, 's')
		of.Result.Meta.Incremental = &interpreter.CallIncremental{
			State: fmt.Sprintf("shops/fetch/%d", index), Type: incremental.Time, From: cursor("2026-01-01"), Watermark: cursor(at), Rows: index, Moved: moved,
		}
		return of
	}
	all := []interpreter.IterationResult{
		ended(0, "2026-01-04T10:00:00+02:00", false), ended(1, "2026-01-04T09:00:00Z", true), ended(2, "2026-01-03T00:00:00Z", false), iteration(3, 's'),
	}
	for _, order := range [][]int{{0, 1, 2, 3}, {3, 2, 1, 0}, {1, 2, 3, 0}} {
		whole, parts := interpreter.NewLoopResult(4), interpreter.NewLoopResult(4)
		for _, at := range order {
			whole.AddIteration(at, nil, all[at])
			part := interpreter.NewLoopResult(1)
			part.AddIteration(0, nil, all[at])
			parts.MergeShard(at, part)
		}
		for _, loop := range []*interpreter.LoopResult{whole, parts} {
			got := loop.CallResult(&playbook.Step{Loop: &playbook.Loop{}}, tables.Started, tables.Started).Meta.Incremental
			require.Equal(t, &interpreter.StateRecord{
				State: "shops/fetch/2", States: 3, Type: incremental.Time, From: cursor("2026-01-01").Value, Watermark: cursor("2026-01-03T00:00:00Z").Value, Rows: 3,
			}, got.Record())
			require.True(t, got.Moved, "one of them has")
		}
	}
	for _, order := range [][]int{{0, 1}, {1, 0}} {
		one, two := interpreter.NewLoopResult(2), []interpreter.IterationResult{all[0], ended(1, "", false)}
		for _, at := range order {
			one.AddIteration(at, nil, two[at])
		}
		require.Equal(t, "shops/fetch/0", one.Incremental.State, "one whose source has no rows yet is not behind")
		require.Equal(t, 2, one.Incremental.States)
	}
	require.Nil(t, gather("ss", inOrder(2)).CallResult(&playbook.Step{Loop: &playbook.Loop{}}, tables.Started, tables.Started).Meta.Incremental)
}

// TestMovesOfALoop: the moves of iterations that ended well travel in the result, by group, in
// whatever parts; a result that is too large for them fails and has none.
func TestMovesOfALoop(t *testing.T) {
	t.Parallel()
	ended := func(index int, how byte, group string) interpreter.IterationResult {
		of := iteration(index, how)
		of.Result.Meta.Incremental = &interpreter.CallIncremental{Pending: []incremental.Moves{{
			Group: group, Writes: []incremental.StateWrite{{Name: fmt.Sprint(index), Holder: strings.Repeat("h", 100), Number: 1}},
		}}}
		return of
	}
	whole, parts := interpreter.NewLoopResult(6), interpreter.NewLoopResult(6)
	all := []interpreter.IterationResult{
		ended(0, 's', "b"), ended(1, 'f', "b"), ended(2, 's', "a"), ended(3, 'c', "a"), ended(4, 's', "b"), iteration(5, 's'),
	}
	for at, one := range all {
		whole.AddIteration(at, nil, one)
		part := interpreter.NewLoopResult(1)
		part.AddIteration(0, nil, one)
		parts.MergeShard(at, part)
	}
	for _, loop := range []*interpreter.LoopResult{whole, parts} {
		require.Equal(t, "a: 2; b: 0 4; ", namesOf(loop.Incremental.Pending))
		require.Equal(t, 5, loop.Incremental.States)
		require.Equal(t, "b: 0; ", namesOf(all[0].Result.Meta.Incremental.Pending), "that of an iteration stays as it is")
	}
	small := *whole
	small.Shrink("fetch", 10_000)
	require.NotEmpty(t, small.Incremental.Pending)
	small.Shrink("fetch", 600)
	require.Empty(t, small.Incremental.Pending)
	require.Equal(t, 5, small.Incremental.States)
	require.NotEmpty(t, whole.Incremental.Pending)
	failed := small.CallResult(&playbook.Step{Name: "fetch", Loop: &playbook.Loop{}}, tables.Started, tables.Started)
	require.Equal(t, interpreter.KindPayloadTooLarge, failed.Error.Kind)
	require.Contains(t, failed.Error.Message, "write to a table of postgres or sqlite")
}

// namesOf shows the states of moves.
func namesOf(all []incremental.Moves) (text string) {
	for _, moves := range all {
		text += moves.Group + ":"
		for _, write := range moves.Writes {
			text += " " + write.Name
		}
		text += "; "
	}
	return text
}

// TestKnownOfALoop: what is known of a loop decides about its failure budget.
func TestKnownOfALoop(t *testing.T) {
	t.Parallel()
	known := interpreter.LoopCounts{Size: 20}
	for index, how := range "sfcf" {
		known.CountResult(iteration(index, byte(how)).Result)
	}
	require.Equal(t, interpreter.LoopCounts{Size: 20, Success: 1, Failed: 2}, known)
	step := &playbook.Step{Name: "fetch", Loop: &playbook.Loop{FailureBudget: &playbook.FailureBudget{Rate: 0.5, MinSamples: 3}}}
	require.Contains(t, known.BudgetError(step).Message, "17 of 20 did not run to their end")
	step.Loop.FailureBudget.MinSamples = 4
	require.Nil(t, known.BudgetError(step))
}

// TestWhenTheLastAttemptFailed: an error tells it itself; one without a time is as old
// as its call.
func TestWhenTheLastAttemptFailed(t *testing.T) {
	t.Parallel()
	failed := iteration(0, 'f')
	failed.Result.Meta.EndedAt = tables.Started.Add(time.Hour)
	require.Equal(t, tables.Started.Add(time.Hour), interpreter.NewLoopError("p", failed).LastAttemptAt)
	failed.Result.Error.At = tables.Started.Add(time.Minute)
	require.Equal(t, tables.Started.Add(time.Minute), interpreter.NewLoopError("p", failed).LastAttemptAt)
}

// TestEnvelope: names exist where there is something to say.
func TestEnvelope(t *testing.T) {
	t.Parallel()
	result := interpreter.CallResult{
		Status: interpreter.StatusError, Data: expression.Of(1),
		Error: &interpreter.ErrorObject{Kind: "http", Class: "final", Message: "m", Attempt: 2, Page: 1},
		Meta:  interpreter.CallMeta{Attempts: 2, Pages: 1, StartedAt: tables.Started, EndedAt: tables.Started.Add(time.Second)},
	}
	failure := map[string]any{
		"kind": "http", "class": "final", "message": "m", "attempt": 2, "page": 1, "exhausted": false, "body": nil, "collected": nil,
	}
	meta := map[string]any{
		"attempts": 2, "pages": 1, "truncated": false, "started_at": "2026-01-02T03:04:05Z", "ended_at": "2026-01-02T03:04:06Z",
	}
	require.Equal(t, map[string]any{"status": "error", "data": 1, "error": failure, "meta": meta}, result.Envelope())

	after := 1.5
	result.Error.Status, result.Error.Type, result.Error.Policy, result.Error.RetryAfter = 503, "x", 3, &after
	result.Error.Headers = map[string]string{"a": "b"}
	failure["status"], failure["type"], failure["policy"], failure["retry_after"] = 503, "x", 3, 1.5
	failure["headers"] = map[string]any{"a": "b"}
	result.Meta.Tool = interpreter.ToolMeta{Status: 200, Headers: map[string]string{"c": "d"}, Links: map[string]string{"next": "l"}, URL: "http://x"}
	meta["status"], meta["headers"], meta["links"], meta["url"] = 200, map[string]any{"c": "d"}, map[string]any{"next": "l"}, "http://x"
	require.Equal(t, map[string]any{"status": "error", "data": 1, "error": failure, "meta": meta}, result.Envelope())
}

// TestEarlierLoopsAreBounded passes MaxEarlier: histories of so many earlier runs are read.
func TestEarlierLoopsAreBounded(t *testing.T) {
	t.Parallel()
	loop := &interpreter.EarlierLoop{}
	for i := range interpreter.MaxEarlier + 2 {
		loop.AddRun(strconv.Itoa(i))
	}
	require.Len(t, loop.Runs, interpreter.MaxEarlier)
	require.Equal(t, "0", loop.Runs[0])
}
