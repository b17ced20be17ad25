package interpreter_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/test/tables"
	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/interpreter/call/request"
	"reprise/interpreter/call/sink"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
	"reprise/interpreter/playbook/check"
	"reprise/interpreter/source"
)

// benchPlaybook has n steps, each with pages, retries and sinks.
func benchPlaybook(n int) string {
	var text strings.Builder
	text.WriteString("apiVersion: reprise/v1\nkind: Playbook\nmetadata: {name: bench}\nworkload: {api: http://x, ids: [1, 2]}\nworkflow:\n")
	for i := range n {
		fmt.Fprintf(&text, `  - step: s%d
    tool: http
    url: "{{ api }}/items/{{ args.page }}"
    args: {page: 1}
    params: {page: "{{ args.page }}", size: 100}
    headers: {X-Key: "{{ operation_key }}"}
    retry:
      - when: "{{ error.class in ['retryable', 'rate_limited'] }}"
        then: {max_attempts: 5, initial_delay: 1s}
      - when: "{{ response.paging.hasMore }}"
        then:
          next_call: {args: {page: "{{ response.paging.page + 1 }}"}}
          collect: {path: data}
    sink: {tool: file, path: "s%d.jsonl", args: {rows: "{{ result | length }}"}}
`, i, i)
		if i+1 < n {
			fmt.Fprintf(&text, "    next: s%d\n", i+1)
		}
	}
	return text.String()
}

func BenchmarkDecode(b *testing.B) {
	for _, n := range []int{1, 10, 100} {
		text := []byte(benchPlaybook(n))
		b.Run(fmt.Sprint(n, " steps"), func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				_, _ = playbook.Decode(source.NewFile("bench.yaml", text))
			}
		})
	}
}

// benchTools are the tools of benchPlaybook.
type benchTools struct{}

func (benchTools) Names() []string { return []string{"file", "http"} }

func (benchTools) Spec(name string) (playbook.ToolSpec, bool) {
	switch name {
	case "http":
		return playbook.ToolSpec{Name: name, Fields: []playbook.Field{
			{Name: "url", Kind: playbook.KindText}, {Name: "params", Kind: playbook.KindMap}, {Name: "headers", Kind: playbook.KindMap},
		}}, true
	case "file":
		return playbook.ToolSpec{Name: name, Writes: true, Fields: []playbook.Field{{Name: "path", Kind: playbook.KindText}}}, true
	}
	return playbook.ToolSpec{}, false
}

func BenchmarkValidate(b *testing.B) {
	for _, n := range []int{1, 10, 100} {
		file := source.NewFile("bench.yaml", []byte(benchPlaybook(n)))
		_, found := check.Validate(file, benchTools{}, check.Options{})
		require.Empty(b, found)
		b.Run(fmt.Sprint(n, " steps"), func(b *testing.B) {
			for b.Loop() {
				_, _ = check.Validate(file, benchTools{}, check.Options{})
			}
		})
	}
}

// BenchmarkLoad finds a playbook that the worker has compiled before.
func BenchmarkLoad(b *testing.B) {
	text := benchPlaybook(10)
	for b.Loop() {
		if _, err := interpreter.LoadPlaybook("bench.yaml", text); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCheck500 decodes, checks and compiles the largest playbook that is
// allowed, as run and validate do.
func BenchmarkCheck500(b *testing.B) {
	const most = 500
	text := []byte(benchPlaybook(most))
	b.ReportAllocs()
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, found := check.Validate(source.NewFile("bench.yaml", text), benchTools{}, check.Options{}); found.HasErrors() {
			b.Fatal(found)
		}
	}
}

func BenchmarkCompile(b *testing.B) {
	for b.Loop() {
		if _, problems := expression.ParseTemplate("{{ api }}/items/{{ (response.paging.page | default(0)) + 1 }}"); len(problems) > 0 {
			b.Fatal(problems)
		}
	}
}

func benchScope(b *testing.B, rows int) (*playbook.Playbook, *interpreter.Scope, any) {
	book, found := playbook.Decode(source.NewFile("bench.yaml", []byte(benchPlaybook(1))))
	require.False(b, found.HasErrors(), "%v", found)
	data := make([]any, rows)
	for i := range data {
		data[i] = map[string]any{"id": i, "name": "n", "tags": []any{"a", "b"}}
	}
	page := map[string]any{"data": data, "paging": map[string]any{"page": 1, "hasMore": true}}
	scope := interpreter.NewScope(book, tables.Run, interpreter.Data{Workload: expression.Of(book.Workload)})
	return book, scope, page
}

func BenchmarkEvaluate(b *testing.B) {
	book, scope, page := benchScope(b, 100)
	scope = scope.With(map[string]any{"response": page, "error": nil, "args": map[string]any{"page": 1}})
	step := book.Steps[0]
	for name, node := range map[string]*playbook.Node{
		"condition": step.Retry[1].When, "url": step.Action.Field("url"), "params": step.Action.Field("params"),
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := node.Render(scope, tables.NewBudget()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkGraph works out who can reach whom in the largest playbook that is
// allowed; a run does it once, inside a workflow task.
func BenchmarkGraph(b *testing.B) {
	var text strings.Builder
	text.WriteString("workflow:\n")
	const most = 500
	for i := range most {
		fmt.Fprintf(&text, "  - {step: s%d, tool: http, url: http://x, next: [s%d, s%d]}\n", i, (i+1)%most, (i+7)%most)
	}
	book := tables.DecodeBody(b, text.String())
	for b.Loop() {
		interpreter.NewGraph(book)
	}
}

// BenchmarkCall makes calls of 50 pages, with all that lies between a request
// and its result.
func BenchmarkCall(b *testing.B) {
	for _, rows := range []int{1, 100} {
		b.Run(fmt.Sprint(rows, " rows a page"), func(b *testing.B) {
			book, scope, _ := benchScope(b, 0)
			step := book.Steps[0]
			for b.Loop() {
				machine := call.New(call.Config{
					Source: request.Source{Book: book, Run: tables.Run, Step: step, Action: step.Action, Visit: 1, Scope: scope},
					Sinks:  sink.Sinks{Policies: step.Retry}, Random: func() float64 { return 0.5 },
				})
				for page := 1; ; page++ {
					command := machine.Next(tables.Started)
					if command.Kind == call.DoFinish {
						require.Len(b, command.Result.Data.Data, 50*rows)
						break
					}
					data := make([]any, rows)
					for i := range data {
						data[i] = map[string]any{"id": page*rows + i}
					}
					machine.ApplyOutcome(interpreter.Outcome{Data: map[string]any{
						"data": data, "paging": map[string]any{"page": page, "hasMore": page < 50},
					}}, tables.Started)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/50, "ns/page")
		})
	}
}

// BenchmarkCollect appends pages to a list; the cost of one must not grow with
// the pages before it.
func BenchmarkCollect(b *testing.B) {
	for _, pages := range []int{10, 1000} {
		b.Run(fmt.Sprint(pages, " pages"), func(b *testing.B) {
			book, scope, _ := benchScope(b, 0)
			step := book.Steps[0]
			policies := []*playbook.Policy{step.Retry[1]}
			then := &policies[0].Then
			then.MaxAttempts = new(pages + 1)
			policies[0].Number = 1
			for b.Loop() {
				call := call.New(call.Config{
					Source: request.Source{Book: book, Run: tables.Run, Step: step, Action: step.Action, Visit: 1, Scope: scope},
					Sinks:  sink.Sinks{Policies: policies}, Random: func() float64 { return 0.5 },
				})
				for page := 1; page <= pages; page++ {
					call.Next(tables.Started)
					call.ApplyOutcome(interpreter.Outcome{Data: map[string]any{
						"data": []any{page}, "paging": map[string]any{"page": page, "hasMore": true},
					}}, tables.Started)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(pages), "ns/page")
		})
	}
}

// BenchmarkAggregate gathers the iterations of a loop; every tenth fails.
func BenchmarkAggregate(b *testing.B) {
	for _, n := range []int{100, 100_000} {
		b.Run(fmt.Sprint(n, " iterations"), func(b *testing.B) {
			iterations := make([]interpreter.IterationResult, n)
			for i := range iterations {
				how := byte('s')
				if i%10 == 0 {
					how = 'f'
				}
				iterations[i] = iteration(i, how)
			}
			step := &playbook.Step{Name: "fetch", Loop: &playbook.Loop{Thresholds: thresholds}}
			for b.Loop() {
				loop := interpreter.NewLoopResult(n)
				for i := range iterations {
					loop.AddIteration(n-1-i, i, iterations[n-1-i]) // the worst order
				}
				loop.CallResult(step, tables.Started, tables.Started.Add(time.Second))
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/iteration")
		})
	}
}
