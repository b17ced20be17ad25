package interpreter_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/interpreter"
	"reprise/interpreter/expression"
)

// bulk is a value of so many bytes of JSON.
func bulk(bytes int) expression.Value {
	if bytes == 0 {
		return expression.Value{}
	}
	return expression.Of(strings.Repeat("b", bytes))
}

func failedRecord(step string, collected, body int) interpreter.StepRecord {
	return interpreter.StepRecord{Step: step, Visit: 1, CallStatus: interpreter.CallStatus{
		Status: interpreter.Failed, Attempts: 3, Error: &interpreter.ErrorObject{
			Kind: interpreter.KindHTTP, Message: step + " failed", Collected: bulk(collected), Body: bulk(body),
		},
	}}
}

func stepWith(step string, visit int, status interpreter.Status) interpreter.StepRecord {
	return interpreter.StepRecord{Step: step, Visit: visit, CallStatus: interpreter.CallStatus{Status: status}}
}

// TestShrunkRunLeavesOutTheBulk: what is too large for a failure goes without what was
// collected; records, statuses, messages and small bodies stay, and the newest
// failure loses least.
func TestShrunkRunLeavesOutTheBulk(t *testing.T) {
	t.Parallel()
	some := make([]interpreter.LoopError, 1000)
	for i := range some {
		some[i] = interpreter.LoopError{Index: i, Error: &interpreter.ErrorObject{Message: strings.Repeat("m", 200), Collected: bulk(500)}}
	}
	looped := interpreter.StepRecord{Step: "loop", Visit: 1, CallStatus: interpreter.CallStatus{Status: interpreter.Partial}, Loop: &interpreter.LoopRecord{
		Stats: interpreter.LoopStats{Total: 2000, Success: 1000, Failed: 1000}, Errors: some,
	}}
	for name, test := range map[string]struct {
		steps           []interpreter.StepRecord // and the run's error is that of the last
		collected, body int                      // of the run's error, afterwards
		left            []string                 // warnings
	}{
		"79 KB collected": {
			[]interpreter.StepRecord{failedRecord("fetch", 79_000, 150)},
			79_000, 150,
			[]string{"what the steps that failed had collected"},
		},
		"too much collected": {
			[]interpreter.StepRecord{failedRecord("fetch", 150_000, 150)},
			0, 150,
			[]string{"what the steps that failed had collected", "what the failure had collected"},
		},
		"bodies too": {
			[]interpreter.StepRecord{failedRecord("a", 0, 60_000), failedRecord("b", 0, 60_000)},
			0, 60_000,
			[]string{"the bodies of the answers"},
		},
		"a body that is too large": {
			[]interpreter.StepRecord{failedRecord("a", 0, 120_000)},
			0, 0,
			[]string{"the bodies of the answers", "the body of the answer"},
		},
		"failed iterations": {
			[]interpreter.StepRecord{looped, failedRecord("b", 10_000, 150)},
			10_000, 150,
			[]string{"what failed iterations had collected", "what the steps that failed had collected", "step loop: of 1000 errors of iterations, only the first "},
		},
		"nothing is too large": {[]interpreter.StepRecord{failedRecord("a", 1000, 1000)}, 1000, 1000, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			steps := append([]interpreter.StepRecord{stepWith("before", 1, interpreter.Completed)}, test.steps...)
			steps = append(steps, stepWith("after", 0, interpreter.Skipped))
			last := *test.steps[len(test.steps)-1].Error
			result := &interpreter.RunResult{
				Status: interpreter.Failed, Error: &last, Steps: append([]interpreter.StepRecord(nil), steps...), Warnings: []string{"first"},
			}
			before := interpreter.EncodedSize(steps)
			result.Shrink(interpreter.MaxFailureDetails)
			require.LessOrEqual(t, interpreter.EncodedSize(result), interpreter.MaxFailureDetails)
			require.Equal(t, before, interpreter.EncodedSize(steps), "the run's own records stay as they are")
			require.Len(t, result.Steps, len(steps))
			for i, record := range result.Steps {
				require.Equal(t, steps[i].Step, record.Step)
				require.Equal(t, steps[i].Status, record.Status)
				if record.Error != nil {
					require.Equal(t, steps[i].Error.Message, record.Error.Message)
				}
				if record.Loop != nil {
					require.Equal(t, steps[i].Loop.Stats, record.Loop.Stats)
					require.Greater(t, len(record.Loop.Errors), 100, "as many as there is room for")
				}
			}
			require.Equal(t, last.Message, result.Error.Message)
			require.Equal(t, [2]int{test.collected, test.body}, [2]int{length(result.Error.Collected), length(result.Error.Body)})
			require.Equal(t, "first", result.Warnings[0])
			require.Len(t, result.Warnings, 1+len(test.left))
			for i, warning := range test.left {
				require.Contains(t, result.Warnings[i+1], warning)
			}
		})
	}
}

func length(value expression.Value) int {
	text, _ := value.Data.(string)
	return len(text)
}

// TestShrunkRunHasTheLastVisits: of very many visits those that went well go first.
func TestShrunkRunHasTheLastVisits(t *testing.T) {
	t.Parallel()
	result := &interpreter.RunResult{Status: interpreter.Failed, Error: &interpreter.ErrorObject{Message: "no"}}
	for i := range 3000 {
		record := stepWith("turn", i+1, interpreter.Completed)
		if i%1000 == 0 {
			record.Status, record.Error, record.Handled = interpreter.Failed, &interpreter.ErrorObject{Message: fmt.Sprint(i)}, true
		}
		result.Steps = append(result.Steps, record)
	}
	result.Shrink(interpreter.MaxFailureDetails)
	require.LessOrEqual(t, interpreter.EncodedSize(result), interpreter.MaxFailureDetails)
	var failed []int
	for _, record := range result.Steps {
		if record.Status == interpreter.Failed {
			failed = append(failed, record.Visit)
		}
	}
	require.Equal(t, []int{1, 1001, 2001}, failed)
	require.Greater(t, len(result.Steps), 300)
	require.Equal(t, 3000, result.Steps[len(result.Steps)-1].Visit)
	require.Contains(t, result.Warnings[0], "of 3000 records of visits")
}

// TestShrunkRunCountsItsWarnings: of many warnings the first stay, and the others are counted.
// It passes mostWarnings.
func TestShrunkRunCountsItsWarnings(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{51: "and 1 more warning", 60: "and 10 more warnings"} {
		result := &interpreter.RunResult{Status: interpreter.Completed, Warnings: make([]string, n)}
		for i := range 3000 {
			result.Steps = append(result.Steps, stepWith("turn", i+1, interpreter.Completed))
		}
		last := stepWith("each", 1, interpreter.Failed) // whose warning is left out
		last.Error, last.Loop = &interpreter.ErrorObject{Kind: interpreter.KindLoop}, &interpreter.LoopRecord{Warning: 51}
		result.Steps = append(result.Steps, last)
		result.Shrink(interpreter.MaxFailureDetails)
		require.Equal(t, want, result.Warnings[50])
		require.Equal(t, result.Warnings, result.FurtherWarnings())
	}
}

// TestShrunkRunLosesItsResultLast: a run that went well loses its result last.
func TestShrunkRunLosesItsResultLast(t *testing.T) {
	t.Parallel()
	result := &interpreter.RunResult{Status: interpreter.Completed, Result: bulk(60_000), Steps: []interpreter.StepRecord{failedRecord("a", 60_000, 100)}}
	result.Shrink(interpreter.MaxFailureDetails)
	require.Equal(t, 60_000, length(result.Result))
	result.Result = bulk(120_000)
	result.Shrink(interpreter.MaxFailureDetails)
	require.Zero(t, length(result.Result))
	require.Len(t, result.Steps, 1)
	require.Contains(t, result.Warnings[len(result.Warnings)-1], "the result; write it")
}

// TestShrunkErrorHasWhatIsSmall: a small body stays beside pages that do not.
func TestShrunkErrorHasWhatIsSmall(t *testing.T) {
	t.Parallel()
	small := failedRecord("a", 79_000, 150).Error.ShrunkError()
	require.Equal(t, [2]int{0, 150}, [2]int{length(small.Collected), length(small.Body)})
	require.Contains(t, small.Message, "collected")
	require.NotContains(t, small.Message, "body")
	small = failedRecord("a", 150, 79_000).Error.ShrunkError()
	require.Equal(t, [2]int{150, 0}, [2]int{length(small.Collected), length(small.Body)})
}

// TestShownErrorHasBothEnds: the last line of a long body, which often has the cause, is part of what a query returns.
func TestShownErrorHasBothEnds(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("  at Export.page\n", 3000) + "Caused by: no such table\n"
	for _, body := range []any{"<html>\n" + long, map[string]any{"first": "<html>", "trace": long, "zlast": "Caused by: no such table"}} {
		failure := &interpreter.ErrorObject{Kind: interpreter.KindHTTP, Message: "HTTP 500", Body: expression.Of(body)}
		shown := failure.ShownError()
		require.Equal(t, "HTTP 500", shown.Message)
		require.Contains(t, shown.Body.Data, "<html>")
		require.Contains(t, shown.Body.Data, "Caused by: no such table")
		require.Contains(t, shown.Body.Data, "left out")
		require.Less(t, interpreter.EncodedSize(shown), 2000)
	}
	require.Nil(t, (*interpreter.ErrorObject)(nil).ShownError())
}
