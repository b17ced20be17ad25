package interpreter_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/interpreter/call/page"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

func failedLoop(n, message, collected int) *interpreter.LoopResult {
	result := interpreter.NewLoopResult(n)
	for i := range n {
		result.AddIteration(i, i, interpreter.IterationResult{Index: i, Result: interpreter.CallResult{
			Status: interpreter.StatusError,
			Error: &interpreter.ErrorObject{
				Kind: interpreter.KindTool, Message: strings.Repeat("m", message),
				Collected: expression.Of(strings.Repeat("c", collected)),
			},
		}})
	}
	return result
}

// withHeaders gives each error of a loop headers of so many bytes.
func withHeaders(result *interpreter.LoopResult, bytes int) *interpreter.LoopResult {
	for _, failure := range result.Errors {
		failure.Error.Headers = map[string]string{"x": strings.Repeat("h", bytes)}
	}
	return result
}

// TestShrunkLoop: whatever a loop gives crosses the boundary, and the stats are
// never touched.
func TestShrunkLoop(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		result *interpreter.LoopResult
		errors int // kept; -1 for some
		budget bool
	}{
		"small":              {failedLoop(10, 100, 100), 10, false},
		"much collected":     {failedLoop(100, 100, 50_000), 100, false},
		"many headers":       {withHeaders(failedLoop(2_000, 100, 0), 1_000), 2_000, false},
		"very many failures": {failedLoop(20_000, 300, 0), -1, true},
		"long messages":      {failedLoop(2_000, 4_000, 4_000), -1, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stats := test.result.Stats
			test.result.Shrink("fetch", interpreter.MaxInlinePayload)
			require.LessOrEqual(t, interpreter.EncodedSize(test.result), interpreter.MaxInlinePayload)
			require.Equal(t, stats, test.result.Stats)
			require.Equal(t, test.budget, test.result.Budget != nil)
			if test.errors >= 0 {
				require.Len(t, test.result.Errors, test.errors)
				return
			}
			require.NotEmpty(t, test.result.Errors)
			require.Contains(t, test.result.Warnings[len(test.result.Warnings)-1], "errors")
			require.Equal(t, interpreter.KindPayloadTooLarge, test.result.Budget.Kind)
		})
	}
}

// TestShrunkBatch: iterations that failed keep what failed them, and their data goes.
func TestShrunkBatch(t *testing.T) {
	t.Parallel()
	output := &interpreter.CallsOutput{Iterations: make([]interpreter.IterationResult, 50)}
	for i := range output.Iterations {
		output.Iterations[i] = interpreter.IterationResult{Index: i, Result: interpreter.CallResult{
			Status: interpreter.StatusError,
			Data:   expression.Of(strings.Repeat("d", 40_000)),
			Error: &interpreter.ErrorObject{
				Kind: interpreter.KindSink, Message: "no", Collected: expression.Of(strings.Repeat("c", 90_000)),
			},
		}}
	}
	output.Shrink(&playbook.Step{Loop: &playbook.Loop{}}, interpreter.MaxInlinePayload)
	require.LessOrEqual(t, interpreter.EncodedSize(output), interpreter.MaxInlinePayload)
	for _, iteration := range output.Iterations {
		require.Equal(t, interpreter.KindSink, iteration.Result.Error.Kind, "the error is still the first one")
	}
}

// TestShrunkBatchSaysWhatIsTooLarge: a result beyond its share is a failure that
// warns where nothing writes it, and its neighbours keep theirs.
func TestShrunkBatchSaysWhatIsTooLarge(t *testing.T) {
	t.Parallel()
	const most, share = 200_000, 100_000 / 2
	for name, test := range map[string]struct {
		bytes    int // of the second result
		step     playbook.Step
		message  string
		warnings []string
	}{
		"its share": {share, playbook.Step{Loop: &playbook.Loop{}}, "", []string{"before"}},
		"a byte more": {
			share + 1,
			playbook.Step{Loop: &playbook.Loop{}},
			"the result of iteration 8 has 50001 bytes, more than the 50000 that it may have; write rows with a sink and return less",
			[]string{"before"},
		},
		"with a sink for failures": {
			share + 1,
			playbook.Step{Loop: &playbook.Loop{DeadLetter: &playbook.Sink{}}},
			"the result of iteration 8 has 50001 bytes, more than the 50000 that it may have; write rows with a sink and return less",
			[]string{"before", "its failure is not written to the sink of loop.dead_letter, but starter dead-letters lists it"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			meta := interpreter.CallMeta{Attempts: 2, Tool: interpreter.ToolMeta{Status: 200}}
			output := &interpreter.CallsOutput{Iterations: []interpreter.IterationResult{
				{Index: 7, Result: interpreter.CallResult{Status: interpreter.StatusSuccess, Data: bulk(10)}},
				{Index: 8, Result: interpreter.CallResult{
					Status: interpreter.StatusSuccess, Data: bulk(test.bytes - 2), Meta: meta, Warnings: []string{"before"},
				}},
			}}
			output.Shrink(&test.step, most)
			require.Equal(t, bulk(10), output.Iterations[0].Result.Data)
			result := output.Iterations[1].Result
			require.Equal(t, interpreter.CallMeta{Attempts: 2}, result.Meta)
			require.Equal(t, test.warnings, result.Warnings)
			require.Equal(t, test.message != "", result.Failed())
			if result.Failed() {
				require.Equal(t, interpreter.KindPayloadTooLarge, result.Error.Kind)
				require.Equal(t, test.message, result.Error.Message)
				require.Nil(t, result.Data.Data)
			}
		})
	}
}

// TestShrunkDrive: of calls that are too large together those go that take more
// than their share: a result fails, and what was half-way begins again.
func TestShrunkDrive(t *testing.T) {
	t.Parallel()
	step := &playbook.Step{Loop: &playbook.Loop{DeadLetter: &playbook.Sink{}}}
	result := func(bytes int) call.Driven {
		return call.Driven{Result: &interpreter.CallResult{
			Status: interpreter.StatusSuccess, Data: bulk(bytes), Meta: interpreter.CallMeta{Attempts: 3},
		}}
	}
	halfWay := func(bytes int) call.Driven {
		return call.Driven{State: &call.State{Todo: []call.Todo{{Attempt: &call.PendingAttempt{}}}, Pages: page.Pages{Collected: bulk(bytes)}}}
	}
	for name, test := range map[string]struct {
		calls []call.Driven
		fits  []bool
	}{
		"all have room":         {[]call.Driven{result(700), result(10), halfWay(10)}, []bool{true, true, true}},
		"a large result":        {[]call.Driven{result(1900), result(10), halfWay(10)}, []bool{false, true, true}},
		"a large state":         {[]call.Driven{result(10), halfWay(1900)}, []bool{true, false}},
		"both":                  {[]call.Driven{result(1900), halfWay(1900), {}}, []bool{false, false, true}},
		"more than their share": {[]call.Driven{result(900), halfWay(900)}, []bool{false, false}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const most = 2000
			before := slices.Clone(test.calls)
			output := call.DriveOutput{Calls: test.calls}.Shrink(step, most)
			require.LessOrEqual(t, interpreter.EncodedSize(output), most)
			for i, driven := range output.Calls {
				switch {
				case test.fits[i]:
					require.Equal(t, before[i], driven)
				case before[i].State != nil:
					require.Equal(t, call.Driven{}, driven)
				default:
					require.Equal(t, interpreter.KindPayloadTooLarge, driven.Result.Error.Kind)
					require.Regexp(t, `^the result of an iteration has \d+ bytes, more than its share of \d+ in its batch; `, driven.Result.Error.Message)
					require.Equal(t, 3, driven.Result.Meta.Attempts)
					require.Len(t, driven.Result.Warnings, 1)
				}
			}
		})
	}
}

// TestShrunkDriven: an outcome that cannot travel beside the state is left out.
func TestShrunkDriven(t *testing.T) {
	t.Parallel()
	driven := call.Driven{State: &call.State{}, Outcome: &interpreter.Outcome{Data: "page"}}
	size := interpreter.EncodedSize(call.DriveOutput{Calls: []call.Driven{driven}})
	require.Equal(t, driven, driven.WithinBytes(size))
	require.Equal(t, call.Driven{State: driven.State}, driven.WithinBytes(size-1))
	require.NotNil(t, driven.Outcome)
}

func TestMeasure(t *testing.T) {
	t.Parallel()
	size, failure := interpreter.MeasureSize(bulk(98), 100, "the text")
	require.Equal(t, 100, size)
	require.Nil(t, failure)
	_, failure = interpreter.MeasureSize(bulk(99), 100, "the text")
	require.Equal(t, &interpreter.ErrorObject{
		Kind: interpreter.KindPayloadTooLarge, Class: interpreter.ClassFinal,
		Message: "the text has 101 bytes, more than the 100 that a payload may have; " +
			"write rows with a sink instead of returning them",
	}, failure)
}

// TestShrunkCall: data that is too large is a failure; a failure goes without its
// bulk, and without data only where that is not enough.
func TestShrunkCall(t *testing.T) {
	t.Parallel()
	const most = 10_000
	failed := func(data, collected int) interpreter.CallResult {
		return interpreter.CallResult{Status: interpreter.StatusError, Data: bulk(data), Error: &interpreter.ErrorObject{
			Kind: interpreter.KindSink, Message: "no", Collected: bulk(collected),
		}}
	}
	for name, test := range map[string]struct {
		result    interpreter.CallResult
		kind      interpreter.Kind
		data      int // kept
		collected int // kept
	}{
		"small":                    {interpreter.CallResult{Status: interpreter.StatusSuccess, Data: bulk(9_000)}, "", 9_000, 0},
		"large data":               {interpreter.CallResult{Status: interpreter.StatusSuccess, Data: bulk(11_000)}, interpreter.KindPayloadTooLarge, 0, 0},
		"a small failure":          {failed(3_000, 5_000), interpreter.KindSink, 3_000, 5_000},
		"much collected":           {failed(3_000, 11_000), interpreter.KindSink, 3_000, 0},
		"data of a failure":        {failed(11_000, 100), interpreter.KindSink, 0, 100},
		"both of them are too big": {failed(11_000, 11_000), interpreter.KindSink, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			result, own := test.result, test.result.Error
			before := interpreter.EncodedSize(own)
			result.Meta.Attempts, result.Warnings = 3, []string{"kept"}
			result.ShrinkResult("the result of step fetch", most)
			require.LessOrEqual(t, interpreter.EncodedSize(result), most)
			require.Equal(t, test.data, length(result.Data))
			require.Equal(t, 3, result.Meta.Attempts)
			require.Equal(t, []string{"kept"}, result.Warnings)
			require.Equal(t, test.kind != "", result.Failed())
			if result.Failed() {
				require.Equal(t, test.kind, result.Error.Kind)
				require.Equal(t, test.collected, length(result.Error.Collected))
			}
			require.Equal(t, before, interpreter.EncodedSize(own), "the call's own error stays as it is")
		})
	}
}
