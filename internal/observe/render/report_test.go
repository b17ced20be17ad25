package render_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/stretchr/testify/require"

	"reprise/internal/base/terminal"
	"reprise/internal/observe/render"
	"reprise/internal/observe/runs"
	"reprise/internal/test/samples"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/workflows/protocol"
)

func record(step string, status interpreter.Status, took time.Duration) protocol.StepRecord {
	return protocol.StepRecord{
		Step: step, Visit: 1, CallStatus: interpreter.CallStatus{Status: status, Attempts: 1, Pages: 1}, StartedAt: samples.Began, EndedAt: samples.Began.Add(took),
	}
}

func looped(failures int) protocol.StepRecord {
	loop := record("fetch", interpreter.Partial, 3320*time.Millisecond)
	loop.Visit, loop.Attempts, loop.Pages = 2, 73, 60
	loop.Loop = &protocol.LoopRecord{Stats: interpreter.LoopStats{
		Total: 100, Success: 100 - failures - 1, Failed: failures, Truncated: 2, Cancelled: 1,
	}}
	for i := range failures { // the order of their ends, not of the collection
		failure := &interpreter.ErrorObject{Kind: interpreter.KindHTTP, Status: 404, Message: "HTTP 404 from GET http://x"}
		if i == 0 {
			failure = &interpreter.ErrorObject{Kind: interpreter.KindHTTP, Status: 503, Message: "after 5 attempts\nno answer", Exhausted: true}
		}
		loop.Loop.Errors = append(loop.Loop.Errors, interpreter.LoopError{
			Index: 99 - i, Element: expression.Of(map[string]any{"id": fmt.Sprintf("p%d", 99-i)}), Error: failure, Attempts: 5 - min(i, 4),
		})
	}
	return loop
}

func TestGoldenReports(t *testing.T) {
	t.Parallel()
	failed := record("b", interpreter.Failed, 90*time.Second)
	failed.Error = &interpreter.ErrorObject{Message: "step b: HTTP 500 from GET http://127.0.0.1/a/rather/long/path that goes on and on"}
	lost, python := looped(2), record("b", interpreter.Failed, 90*time.Second)
	lost.Status = interpreter.Failed
	book, err := interpreter.LoadPlaybook("orders.yaml", `apiVersion: reprise/v1
kind: Playbook
metadata: {name: orders}
workflow:
  - step: b
    tool: python
    code: |
      def main():
        return 1 / 0
  - step: fetch
    tool: http
    url: "http://x"
    sink:
      tool: python
      code: |
        def main(result):
          return result["x"]
`)
	require.NoError(t, err)
	for name, result := range map[string]protocol.Result{
		"completed": {
			Status: interpreter.Completed, Result: expression.Of("Hello"),
			Steps: []protocol.StepRecord{record("greet", interpreter.Completed, 40*time.Millisecond)},
		},
		"failed": {
			Status: interpreter.Failed, Error: failed.Error,
			Steps: []protocol.StepRecord{
				record("a", interpreter.Completed, time.Second), failed,
				{Step: "c", CallStatus: interpreter.CallStatus{Status: interpreter.Skipped}},
			},
		},
		"failed_in_a_loop": {Status: interpreter.Failed, Steps: []protocol.StepRecord{lost}, Error: &interpreter.ErrorObject{
			Kind: interpreter.KindLoop, Message: "step fetch: 2 of 100 iterations failed, 1 cancelled; the first (index 98): HTTP 404 from GET http://x",
		}},
		"failed_in_python": {
			Status: interpreter.Failed, Steps: []protocol.StepRecord{python}, Error: &interpreter.ErrorObject{
				Message: "step b: ZeroDivisionError: division by zero", Body: expression.Of(map[string]any{
					"traceback": "  File \"<b>\", line 2, in main\n    return 1 / 0\n  File \"/usr/lib/x.py\", line 2, in f\nZeroDivisionError: division by zero\n",
				}),
			},
		},
		"failed_in_a_python_sink": {
			Status: interpreter.Failed, Steps: []protocol.StepRecord{record("fetch", interpreter.Failed, time.Second)}, Error: &interpreter.ErrorObject{
				Message: "step fetch: sink fetch.sink: KeyError: 'x'", Body: expression.Of(map[string]any{
					"traceback": "  File \"<fetch.sink>\", line 2, in main\n    return result[\"x\"]\nKeyError: 'x'\n",
				}),
			},
		},
		"failed_below": {
			Status: interpreter.Failed, Steps: []protocol.StepRecord{python}, Error: &interpreter.ErrorObject{
				Kind: interpreter.KindPlaybook, Message: "the run run-1/b#1!1 failed, in fetch: HTTP 503 from GET http://x",
				Body: expression.Of(map[string]any{"cause": "HTTP 503 from GET http://x", "error": map[string]any{"kind": "http"}}),
			},
		},
		"failed_with_a_body": {
			Status: interpreter.Failed, Error: &interpreter.ErrorObject{
				Message: "HTTP 401 from GET http://x", Status: 401,
				Body: expression.Of(map[string]any{"error": "bad \x1b[31mtoken", "codes": []any{1, 2}}),
			},
		},
		"failed_with_a_traceback": {
			Status: interpreter.Failed, Error: &interpreter.ErrorObject{
				Message: "KeyError: 'a'", Body: expression.Of(map[string]any{
					"traceback": "Traceback (most recent call last):\n" + strings.Repeat("  File \"x\", line 1, in f\n", 40) + "KeyError: 'a'\n",
				}),
			},
		},
		"failed_with_a_page": {
			Status: interpreter.Failed, Error: &interpreter.ErrorObject{
				Message: "HTTP 502 from GET http://x", Body: expression.Of("<html>" + strings.Repeat("é", 3000)),
			},
		},
		"partial": {
			Status: interpreter.Partial, Steps: []protocol.StepRecord{looped(2)},
			Result: expression.Of(map[string]any{"a<b": []any{1, "x"}}), Warnings: []string{"something to know"},
		},
		"many_failures": {Status: interpreter.Partial, Steps: []protocol.StepRecord{looped(23)}},
		"long_result":   {Status: interpreter.Completed, Result: expression.Of(strings.Repeat("é", 3000))},
		"no_steps":      {Status: interpreter.Cancelled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var b strings.Builder
			render.PrintReport(&b, render.EndedRun{WorkflowID: "run-1", Result: result, Took: 75 * time.Second, Book: book}, terminal.Paper{Width: 130})
			samples.Golden(t, "report/"+name, b.String())
		})
	}
}

// grouped returns a loop whose failed iterations have several causes.
func grouped() protocol.StepRecord {
	loop := looped(0)
	add := func(index, attempts int, failure interpreter.ErrorObject) {
		loop.Loop.Errors = append(loop.Loop.Errors, interpreter.LoopError{
			Index: index, Element: expression.Of(map[string]any{"id": fmt.Sprintf("p%d", index)}), Attempts: attempts, Error: &failure,
		})
	}
	for i := range 12 { // in the order of their ends
		index := 60 - i
		add(index, 1, interpreter.ErrorObject{
			Kind: interpreter.KindHTTP, Status: 404, Message: fmt.Sprintf("HTTP 404 from GET https://api.example.com/patients/p%d/medications", index),
			Body: expression.Of(map[string]any{"detail": "there is no such patient"}),
		})
	}
	for i := range 3 {
		add(3+i, 3+i, interpreter.ErrorObject{Kind: interpreter.KindTool, Type: "23505", Message: "writing 1 rows to table \"orders\": duplicate key value"})
	}
	for i := range 2 { // without a type, they are one cause only if they say the same
		add(70+i, 1, interpreter.ErrorObject{Kind: interpreter.KindTool, Message: fmt.Sprintf("row 1, column \"n%d\": 1.5 has a fraction", i)})
	}
	loop.Loop.Stats = interpreter.LoopStats{Total: 100, Success: 83, Failed: 17}
	return loop
}

// TestGoldenGroups: at a terminal, failed iterations with the same cause are listed together, the largest group first; a pipe has a
// line for each.
func TestGoldenGroups(t *testing.T) {
	t.Parallel()
	result := protocol.Result{Status: interpreter.Partial, Steps: []protocol.StepRecord{grouped()}}
	for _, width := range []int{40, 80, terminal.Unbounded} {
		var b strings.Builder
		render.PrintReport(&b, render.EndedRun{WorkflowID: "run-1", Result: result, Took: 75 * time.Second}, terminal.Paper{Width: width})
		if width == terminal.Unbounded {
			for _, failure := range result.Steps[0].Loop.Errors {
				require.Contains(t, b.String(), fmt.Sprintf("\n  [%d] {\"id\":\"p%d\"}: ", failure.Index, failure.Index))
				require.Contains(t, b.String(), failure.Error.Message)
			}
			continue
		}
		samples.Golden(t, fmt.Sprintf("report/groups_%d", width), b.String())
	}
}

// TestTrace: what a failure came with, of a run and of its first failed iteration, has the lines of
// the playbook's file.
func TestTrace(t *testing.T) {
	t.Parallel()
	book, err := interpreter.LoadPlaybook("fetch.yaml", `apiVersion: reprise/v1
kind: Playbook
metadata: {name: fetch}
workflow:
  - step: fetch
    tool: python
    loop: {in: [1, 2], iterator: n}
    code: |
      def main():
          return 1 / 0
`)
	require.NoError(t, err)
	failure := &interpreter.ErrorObject{Message: "ZeroDivisionError", Body: expression.Of(map[string]any{
		"traceback": "  File \"<fetch>\", line 2, in main\n    return 1 / 0\nZeroDivisionError\n",
	})}
	loop := record("fetch", interpreter.Partial, time.Second)
	loop.Loop = &protocol.LoopRecord{Errors: []interpreter.LoopError{{Index: 1, Error: &interpreter.ErrorObject{}}, {Index: 0, Error: failure}}}
	for name, result := range map[string]protocol.Result{
		"run":  {Status: interpreter.Failed, Error: failure},
		"loop": {Status: interpreter.Partial, Steps: []protocol.StepRecord{loop}},
	} {
		cause := render.EndedRun{WorkflowID: "run-1", Result: result, Book: book}.Cause()
		text, marked := cause.Body.Text(), cause.Marked
		line := slices.IndexFunc(strings.Split(string(book.File.Bytes()), "\n"), func(line string) bool { return strings.Contains(line, "1 / 0") }) + 1
		require.Equal(t, line, marked, name)
		require.Equal(t, fmt.Sprintf("  File %q, line %d, in main\n    return 1 / 0\nZeroDivisionError", book.File.Name, line), text, name)
	}
	require.Nil(t, render.EndedRun{WorkflowID: "run-1", Result: protocol.Result{Status: interpreter.Completed}}.Cause())
}

// TestCause: a failure is shown with its request, its answer and the policy that decided, and both ends of a long body.
func TestCause(t *testing.T) {
	t.Parallel()
	book, err := interpreter.LoadPlaybook("fetch.yaml", `apiVersion: reprise/v1
kind: Playbook
metadata: {name: fetch}
workflow:
  - step: fetch
    tool: http
    url: http://api
    retry:
      - when: "{{ error.status == 500 }}"
        then: {max_attempts: 3}
`)
	require.NoError(t, err)
	var body strings.Builder
	for i := range 300 {
		fmt.Fprintf(&body, "line %d\n", i+1)
	}
	failure := &interpreter.ErrorObject{
		Kind: interpreter.KindHTTP, Message: "HTTP 500 from GET http://api/orders", URL: "http://api/orders?page=2", Status: 500, Attempt: 3, Policy: 1, Exhausted: true,
		Params: expression.Of(map[string]any{"page": 2, "api_token": "hush"}), Headers: map[string]string{"content-type": "text/plain"}, Body: expression.Of(body.String()),
	}
	step := record("fetch", interpreter.Failed, time.Second)
	result := protocol.Result{Status: interpreter.Failed, Error: failure, Steps: []protocol.StepRecord{step}}
	ended := render.EndedRun{WorkflowID: "run-1", Result: result, Book: book}
	cause := ended.Cause()
	require.Equal(t, "http://api/orders?page=2", cause.Request)
	require.NotContains(t, cause.Params, "hush")
	require.Contains(t, cause.Params, `"page": 2`)
	require.Equal(t, "HTTP 500", cause.Answer)
	require.Equal(t, []string{"content-type: text/plain"}, cause.Headers)
	require.Equal(t, "retry[1], line 9: when {{ error.status == 500 }}. It was exhausted after 3 attempts.", cause.Policy)
	require.Equal(t, 270, cause.Body.Lines)
	require.True(t, strings.HasPrefix(cause.Body.Head, "line 1\n"))
	require.True(t, strings.HasSuffix(cause.Body.Tail, "line 300"))
	require.Equal(t, strings.TrimSpace(body.String()), cause.Body.Text())

	waiting := render.WaitingCause(&runs.Status{Steps: []runs.Step{
		{Step: "done", Item: runs.Item{Status: interpreter.Completed, Error: failure}},
		{Step: "fetch", Visit: 1, Item: runs.Item{Status: interpreter.RetryPending, Error: failure}},
	}})
	require.Equal(t, []string{"fetch", "HTTP 500", "http://api/orders?page=2"}, []string{waiting.Step, waiting.Answer, waiting.Request})
	require.True(t, strings.HasSuffix(waiting.Body.Tail, "line 300"))
	require.Nil(t, render.WaitingCause(&runs.Status{Steps: []runs.Step{{Step: "fetch", Item: runs.Item{Status: interpreter.Running, Error: failure}}}}))

	loop := record("each", interpreter.Failed, time.Second)
	loop.Loop = &interpreter.LoopRecord{Errors: []interpreter.LoopError{{Index: 2, Error: failure}}}
	ofLoop := func(kind interpreter.Kind) *render.Cause {
		result := protocol.Result{Status: interpreter.Failed, Error: &interpreter.ErrorObject{Kind: kind, Message: "row 1 has no key"}, Steps: []protocol.StepRecord{loop}}
		return render.EndedRun{WorkflowID: "run-1", Result: result}.Cause()
	}
	require.Equal(t, "each[2]", ofLoop(interpreter.KindLoop).Step)
	require.Equal(t, []string{"each", "row 1 has no key"}, []string{ofLoop(interpreter.KindSink).Step, ofLoop(interpreter.KindSink).Message}, "its sink failed, and not for the iteration")

	child := &interpreter.ErrorObject{Kind: interpreter.KindPlaybook, Message: "the run b/each#1/2!1 failed: ValueError: no rows\nin main", Body: expression.Of(map[string]any{
		"workflow_id": "b/each#1/2!1", "failed_in": "b/each#1/2!1/load#1!1", "cause": "ValueError: no rows\nin main",
	})}
	loop.Loop = &interpreter.LoopRecord{Errors: []interpreter.LoopError{{Index: 2, Error: child}}}
	require.Equal(t, []string{"b/each#1/2!1/load#1!1", "ValueError: no rows"}, []string{ofLoop(interpreter.KindLoop).Run, ofLoop(interpreter.KindLoop).RunError})
	child.Body = expression.Of(map[string]any{"workflow_id": "b/each#1/2!1"})
	require.Equal(t, []string{"b/each#1/2!1", "the run b/each#1/2!1 failed: ValueError: no rows"}, []string{ofLoop(interpreter.KindLoop).Run, ofLoop(interpreter.KindLoop).RunError})

	// What a child run failed with is shown with the failure that it caused.
	child.Body = expression.Of(map[string]any{"workflow_id": "b/each#1/2!1", "failed_in": "b/each#1/2!1", "cause": failure.Message})
	ended.Partition, ended.Whole = "2024-01-07", "starter follow run-1"
	above := render.EndedRun{WorkflowID: "b", Result: protocol.Result{Status: interpreter.Failed, Error: child, Steps: []protocol.StepRecord{loop}}}
	above.Result.Error = &interpreter.ErrorObject{Kind: interpreter.KindLoop, Message: "1 of 3 iterations failed"}
	loop.Loop.Errors[0].Error = child
	above.ReadChild = func(of *interpreter.ErrorObject) *render.EndedRun {
		require.Equal(t, child, of)
		return &ended
	}
	below := above.Cause()
	require.Equal(t, []string{"each[2]", "b/each#1/2!1", "fetch 2024-01-07", "fetch"}, []string{below.Step, below.Run, below.RunTitle, below.RunStep})
	require.Equal(t, []any{cause.Request, cause.Params, cause.Answer, cause.Headers, cause.Body, cause.Policy}, []any{below.Request, below.Params, below.Answer, below.Headers, below.Body, below.Policy})
	child.Policy, child.Attempt = 2, 1
	require.Equal(t, "retry[2]. It stopped after 1 attempt. In the failed run: "+cause.Policy, above.Cause().Policy)
	child.Policy = 0
	var printed strings.Builder
	render.PrintReport(&printed, above, terminal.Paper{Width: 80})
	require.Contains(t, printed.String(), "    line 300\n")
	require.Contains(t, printed.String(), "to print all of it: starter follow run-1")
	above.ReadChild = func(*interpreter.ErrorObject) *render.EndedRun { return nil }
	require.Empty(t, above.Cause().Body, "it could not be read")

	ended.Whole = ""
	printed.Reset()
	render.PrintReport(&printed, ended, terminal.Paper{Width: 80})
	require.Contains(t, printed.String(), "    line 1\n")
	require.Contains(t, printed.String(), "    line 300\n")
	require.Contains(t, printed.String(), "… 280 more lines not shown; --output json or a pipe shows all of it …")
}

// TestTablesFit: no line of a table is wider than the terminal.
func TestTablesFit(t *testing.T) {
	t.Parallel()
	failed := record("a_step_with_a_rather_long_name_indeed", interpreter.Failed, 90*time.Second)
	failed.Error = &interpreter.ErrorObject{Message: strings.Repeat("HTTP 500 ", 20)}
	records := []protocol.StepRecord{looped(2), failed, {Step: "c", CallStatus: interpreter.CallStatus{Status: interpreter.Skipped}}}
	for _, width := range []int{200, 130, 100, 80, 60, 40, 30} {
		rendered := render.StepTable(records, terminal.Paper{Width: width})
		require.LessOrEqual(t, text.LongestLineLen(rendered), width, "\n%s", rendered)
		words := strings.Join(strings.Fields(rendered), " ")
		for _, want := range []string{"fetch#2", "partial_success", "97 completed, 2 failed, 1 cancelled of 100 (2 truncated)", "skipped"} {
			require.Contains(t, words, want, "%d columns", width)
		}
		samples.Golden(t, fmt.Sprintf("report/width_%d", width), rendered)
	}
}

// TestReportFitsATerminal: failed iterations, warnings and the verdict are broken between words at a
// terminal, and whole anywhere else.
func TestReportFitsATerminal(t *testing.T) {
	t.Parallel()
	long := "HTTP 404 from GET http://127.0.0.1:8088/api/v1/patients/p13/medications?page=1"
	failed := looped(2)
	failed.Loop.Errors[0].Error.Message = long
	outcome := render.EndedRun{WorkflowID: "run-1", Took: time.Second, Result: protocol.Result{
		Status: interpreter.Failed, Steps: []protocol.StepRecord{failed}, Error: &interpreter.ErrorObject{Message: "step fetch: " + long},
		Warnings: []string{"step fetch: 2 of 100 iterations failed (2%); the first (index 98): " + long},
	}}
	var broken, whole strings.Builder
	render.PrintReport(&broken, outcome, terminal.Paper{Width: 80})
	require.LessOrEqual(t, text.LongestLineLen(broken.String()), 80, "%s", broken.String())
	render.PrintReport(&whole, outcome, terminal.Paper{Width: terminal.Unbounded})
	_, below, _ := strings.Cut(whole.String(), "┘\n")
	require.Contains(t, strings.Join(strings.Fields(broken.String()), " "), strings.Join(strings.Fields(below), " "))
	require.Equal(t, 3, strings.Count(whole.String(), long))
	samples.Golden(t, "report/at_a_terminal", broken.String())
}

// TestReportOfAPipeIsWhole: a terminal shows the ends of long texts and says how to see the rest; a pipe gets all of them.
func TestReportOfAPipeIsWhole(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 3000)
	var body strings.Builder
	for i := range 300 {
		fmt.Fprintf(&body, "line %d of the body\n", i+1)
	}
	failed := looped(23)
	failed.Status = interpreter.Failed
	for i := range failed.Loop.Errors {
		failed.Loop.Errors[i].Element = expression.Of(fmt.Sprintf("element %d %s", failed.Loop.Errors[i].Index, strings.Repeat("x", 70)))
		failed.Loop.Errors[i].Error.Message = fmt.Sprintf("row %d: %s!", failed.Loop.Errors[i].Index, strings.Repeat("y", 600))
		failed.Loop.Errors[i].Error.Kind, failed.Loop.Errors[i].Error.Status = interpreter.KindTool, 0 // each has its own cause
	}
	last := failed.Loop.Errors[len(failed.Loop.Errors)-1] // the first of the collection
	last.Error.Body = expression.Of(body.String())
	result := protocol.Result{
		Status: interpreter.Failed, Result: expression.Of(map[string]any{"text": long, "end": []any{"the", "end"}}), Steps: []protocol.StepRecord{failed},
		Error: &interpreter.ErrorObject{Kind: interpreter.KindLoop, Message: "step fetch: 23 iterations failed"},
	}
	const follow = "starter follow run-1 --output json"
	print := func(width int, whole string) string {
		var b strings.Builder
		render.PrintReport(&b, render.EndedRun{WorkflowID: "run-1", Result: result, Whole: whole}, terminal.Paper{Width: width})
		return b.String()
	}
	piped := print(terminal.Unbounded, follow)
	require.NotContains(t, piped, "…")
	require.NotContains(t, piped, follow)
	require.Contains(t, piped, long)
	require.Contains(t, piped, "line 150 of the body")
	require.Equal(t, 24, strings.Count(piped, "yyy!"), "each failed iteration, and the verdict")
	require.Equal(t, 24, strings.Count(piped, strings.Repeat("x", 70)))
	for whole, hint := range map[string]string{follow: "to print all of it: " + follow, "": "--output json or a pipe shows all of it"} {
		shown := print(80, whole)
		require.LessOrEqual(t, len(strings.Split(shown, "\n")), 180)
		require.NotContains(t, shown, "line 150 of the body")
		words := strings.Join(strings.Fields(shown), " ")
		for _, want := range []string{"and 3 more; " + hint, "280 more lines not shown; " + hint, "bytes are not shown; " + hint} {
			require.Contains(t, words, want)
		}
	}
}

// TestReportEndsWithWarnings: in colour on a terminal, and nowhere else.
func TestReportEndsWithWarnings(t *testing.T) {
	t.Parallel()
	result := protocol.Result{
		Status: interpreter.Completed, Result: expression.Of("Hello"), Warnings: []string{"5 of 100 iterations failed"},
	}
	for _, test := range []struct {
		paper terminal.Paper
		want  string
	}{
		{terminal.Paper{Width: terminal.Unbounded}, "warning: 5 of 100 iterations failed\nrun-1: completed\n"},
		{
			terminal.Paper{Colour: true, Width: terminal.Unbounded},
			"\uffff\ufffe\ufffewarning: 5 of 100 iterations failed\ufffe\ufffe\ufffe\nrun-1: \ufffe\uffff\ufffecompleted\ufffe\ufffe\ufffe\n",
		},
	} {
		var b strings.Builder
		render.PrintReport(&b, render.EndedRun{WorkflowID: "run-1", Result: result}, test.paper)
		require.True(t, strings.HasSuffix(b.String(), "\n"+test.want), "%q", b.String())
	}
}
